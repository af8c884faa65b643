import { useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

/** Takes a file by dropping it or from a dialog. */
export function DropZone({
  label,
  onFile,
  kinds = '.csv,.xlsx,text/csv',
}: {
  label: string
  onFile: (file: File) => void
  /** Which files the dialog offers; null for any. */
  kinds?: string | null
}) {
  const [isOver, setIsOver] = useState(false)
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way; the label takes keyboard and pointer.
    <div
      class={`drop-zone${isOver ? ' drop-zone-over' : ''}`}
      onDragOver={event => {
        event.preventDefault()
        setIsOver(true)
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={event => {
        event.preventDefault()
        setIsOver(false)
        const [file] = event.dataTransfer?.files ?? []
        if (file !== undefined) onFile(file)
      }}
    >
      <Icon name="lists" />
      <label>
        <b>{label}</b>, or choose it.{kinds !== null && (kinds.includes('.xlsx') ? ' CSV or Excel.' : ' CSV.')}
        <input
          type="file"
          class="hidden-label"
          accept={kinds ?? undefined}
          onChange={event => {
            const [file] = event.currentTarget.files ?? []
            if (file !== undefined) onFile(file)
            // The same file can be chosen again, once it is corrected.
            event.currentTarget.value = ''
          }}
        />
      </label>
    </div>
  )
}

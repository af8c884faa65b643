import { useRef, useState } from 'preact/hooks'
import { type Asked, useAsked } from './asked.ts'
import { Icon } from './icon.tsx'

/** Takes a file by dropping it or from a dialog. */
export function DropZone({
  label,
  onFile,
  kinds = '.csv,.xlsx,text/csv',
  hint,
  takesMany = false,
  asked,
}: {
  label: string
  onFile: (file: File) => void
  /** Which files the dialog offers; null for any. */
  kinds?: string | null
  /** What the file must be, unless it is a table. */
  hint?: string
  /** Whether several files can be given at once, each for itself. */
  takesMany?: boolean
  /** What the palette asks for to open the dialog. */
  asked?: Asked
}) {
  const input = useRef<HTMLInputElement>(null)
  // The browser allows it within seconds of the key or click in the palette.
  useAsked(asked, () => input.current?.click())
  const [isOver, setIsOver] = useState(false)
  const take = (files: FileList | null | undefined) => {
    for (const file of [...(files ?? [])].slice(0, takesMany ? undefined : 1)) onFile(file)
  }
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
        take(event.dataTransfer?.files)
      }}
    >
      <Icon name="lists" />
      <label>
        <b>{label}</b>, or choose {takesMany ? 'files' : 'one'}.
        {kinds !== null && ` ${hint ?? (kinds.includes('.xlsx') ? 'CSV or Excel.' : 'CSV.')}`}
        <input
          ref={input}
          type="file"
          class="hidden-label"
          accept={kinds ?? undefined}
          multiple={takesMany}
          onChange={event => {
            take(event.currentTarget.files)
            // The same file can be chosen again, once it is corrected.
            event.currentTarget.value = ''
          }}
        />
      </label>
    </div>
  )
}

import { useRef, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'
import { type PageAction, usePageAction } from './page-action.ts'

type DropZoneProps = {
  label: string
  onFile: (file: File) => void
  /** The file types that the dialog offers; null for any. */
  kinds?: string | null
  /** Describes the file if it is not a table. */
  hint?: string
  /** Whether several files can be given at once. Each is handled separately. */
  takesMany?: boolean
  /** The palette's action that opens the dialog. */
  pageAction?: PageAction
}

/** Accepts a file that is dropped or chosen in a dialog. */
export function DropZone(props: DropZoneProps) {
  const { label, onFile, kinds = '.csv,.xlsx,text/csv', hint, takesMany = false, pageAction } = props
  const input = useRef<HTMLInputElement>(null)
  // The browser allows this for a few seconds after the key press or click in the palette.
  usePageAction(pageAction, () => input.current?.click())
  const [isOver, setIsOver] = useState(false)
  const take = (files: FileList | null | undefined) => {
    for (const file of [...(files ?? [])].slice(0, takesMany ? undefined : 1)) onFile(file)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is an alternative; the label handles keyboard and pointer.
    <div
      class={`drop-zone row${isOver ? ' drop-zone-over' : ''}`}
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
            // Lets the reader choose the same file again after correcting it.
            event.currentTarget.value = ''
          }}
        />
      </label>
    </div>
  )
}

import { ApiError } from '@openwage/sdk'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from './icon.tsx'
import { Failure, Skeleton } from './states.tsx'

/** Takes a file by dropping it or from a dialog. */
export function DropZone({
  label,
  onFile,
  kinds = '.csv,.xlsx,text/csv',
  takesMany = false,
}: {
  label: string
  onFile: (file: File) => void
  /** Which files the dialog offers; null for any. */
  kinds?: string | null
  /** Whether several files can be given at once, each for itself. */
  takesMany?: boolean
}) {
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
        <b>{label}</b>, or choose {takesMany ? 'them' : 'it'}.{kinds !== null && ' CSV or Excel.'}
        <input
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

/** A sheet is shown around its errors, not as a whole. */
const rowsMax = 200

/** The errors of a file, marked in the rows of the sheet itself. An Excel sheet is not read here, so its rows have numbers only. */
export function SheetProblems({ file, error }: { file: File; error: unknown }) {
  const [rows, setRows] = useState<string[][]>()
  useEffect(() => {
    setRows(undefined)
    if (/\.xlsx$/i.test(file.name)) setRows([])
    else
      void file
        .slice(0, 20_000_000)
        .text()
        .then(text => setRows(parseCsv(text)))
  }, [file])
  if (!(error instanceof ApiError)) return <Failure error={error} />
  const problems = new Map<number, string[]>()
  const others: string[] = []
  for (const issue of error.issues) {
    const row = 'row' in issue ? Number(issue.row) : Number.NaN
    if (Number.isInteger(row)) problems.set(row, [...(problems.get(row) ?? []), issue.message])
    else others.push(issue.message)
  }
  if (problems.size === 0) return <Failure error={error} />
  if (rows === undefined) return <Skeleton lines={5} />
  const [header = []] = rows
  const shown = [...problems].sort(([one], [other]) => one - other).slice(0, rowsMax)
  return (
    <div class="stack-s" role="alert">
      <h2 class="bad">
        {problems.size === 1 ? 'One row has' : `${problems.size} rows have`} errors. Nothing was changed; correct the
        file and drop it again.
      </h2>
      {others.map(message => (
        <p key={message}>{message}</p>
      ))}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard. */}
      <section class="sheet" tabIndex={0} aria-label="Rows with errors">
        <table>
          <thead>
            <tr>
              <th scope="col">Row</th>
              {header.map(title => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
              <th scope="col">What is wrong</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(([row, messages]) => (
              <tr key={row}>
                <th scope="row">{row}</th>
                {header.map((title, index) => (
                  <td
                    key={title}
                    class={
                      names(
                        messages.flatMap(each => each.split('; ')),
                        title,
                      )
                        ? 'sheet-bad'
                        : undefined
                    }
                  >
                    {rows[row - 1]?.[index] ?? ''}
                  </td>
                ))}
                <td class="sheet-problem">{messages.join('; ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {problems.size > shown.length && <p class="quiet">The first {rowsMax} rows with errors are shown.</p>}
    </div>
  )
}

/** A message names the column that it is about, as in the file or without spaces and underscores. */
function names(messages: string[], title: string): boolean {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[\s_]/g, '')
  return messages.some(message => plain(message.split(':', 1)[0] ?? '').includes(plain(title)))
}

/** Reads the cells of a CSV file for display; the service reads it for good. */
function parseCsv(text: string): string[][] {
  const firstLine = text.slice(0, text.indexOf('\n') >>> 0)
  const delimiter =
    [',', ';', '\t'].sort((one, other) => firstLine.split(other).length - firstLine.split(one).length)[0] ?? ','
  const rows: string[][] = [[]]
  let cell = ''
  let isQuoted = false
  for (let at = text.startsWith('\uFEFF') ? 1 : 0; at < text.length; at++) {
    const letter = text[at] ?? ''
    if (isQuoted) {
      if (letter !== '"') cell += letter
      else if (text[at + 1] === '"') {
        cell += '"'
        at++
      } else isQuoted = false
    } else if (letter === '"' && cell === '') isQuoted = true
    else if (letter === delimiter || letter === '\n') {
      rows.at(-1)?.push(cell.replace(/\r$/, ''))
      cell = ''
      if (letter === '\n') rows.push([])
    } else cell += letter
  }
  rows.at(-1)?.push(cell)
  return rows
}

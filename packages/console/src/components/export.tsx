import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { act } from '../act.ts'
import { messageOf } from '../problems.ts'
import { toast } from '../toasts.ts'
import { ActButton } from './act-button.tsx'
import { Icon } from './icon.tsx'

/** More than a spreadsheet opens with ease, and than a browser should keep in memory. */
const rowsMax = 100_000

/** Downloads every row of a list as it is filtered, over all its pages. */
export function ExportButton<Row>({
  name,
  label = 'Export CSV',
  columns,
  rows,
}: {
  name: string
  label?: string
  columns: [string, (row: Row) => string | number | boolean | null][]
  rows: () => AsyncIterable<Row>
}) {
  const [count, setCount] = useState<number | null>(null)
  const start = async () => {
    const lines = [columns.map(([title]) => cellOf(title)).join(',')]
    setCount(0)
    try {
      for await (const row of rows()) {
        // The first line has the titles.
        if (lines.length > rowsMax) {
          toast(`The file ends after ${rowsMax} rows; narrow the filters for the rest`, { kind: 'bad' })
          break
        }
        lines.push(columns.map(([, value]) => cellOf(value(row))).join(','))
        if (lines.length % 1_000 === 0) setCount(lines.length)
      }
      download(`${name}.csv`, new Blob([`${lines.join('\r\n')}\r\n`], { type: 'text/csv' }))
    } catch (error) {
      toast(messageOf(error), { kind: 'bad' })
    }
    setCount(null)
  }
  return (
    <button type="button" class="button" disabled={count !== null} onClick={() => void start()}>
      <Icon name="download" />
      {count === null ? label : `Exporting… ${count || ''}`}
    </button>
  )
}

/** Downloads a file that the service writes. */
export function DownloadButton({
  name,
  file,
  children,
}: {
  name: string
  file: () => PromiseLike<Response>
  children: ComponentChildren
}) {
  return (
    <ActButton act={() => act(async () => download(name, await (await file()).blob()), undefined)}>
      <Icon name="download" />
      {children}
    </ActButton>
  )
}

/** Quoted where needed; a text that a spreadsheet would take for a formula, full-width signs included, gets an apostrophe. */
function cellOf(value: string | number | boolean | null): string {
  if (value === null) return ''
  const isNumber = typeof value !== 'string' || /^-?\d+(\.\d+)?$/.test(value)
  const text = isNumber || !/^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(String(value)) ? String(value) : `'${value}`
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function download(name: string, content: Blob): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  // The browser has read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

import { ApiError } from '@midmonth/sdk'
import { useEffect, useState } from 'preact/hooks'
import { sendTable } from '../api.ts'
import { plural } from '../format.ts'
import { Button } from './button.tsx'
import { ExportButton } from './export.tsx'
import { Chips } from './filters.tsx'
import { Failure, Skeleton } from './states.tsx'

type Sheet = { header: string[]; rows: Map<number, string[]> }
type Problem = { row: number; messages: string[]; columns: Set<string> }

/** As many rows as a person reads before the next correction. Each click shows as many again. */
const rowsAtOnce = 100
/** An error names this many rows. One more issue counts the rest. */
const issuesMax = 1_000

/** Marks the errors of a CSV or Excel file in its own rows, as read by the service. */
export function SheetProblems({ file, error }: { file: File; error: unknown }) {
  const [sheet, setSheet] = useState<Sheet>()
  const [column, setColumn] = useState<string>()
  const [shownMax, setShownMax] = useState(rowsAtOnce)
  const { messages, others } = issuesOf(error)
  useEffect(() => {
    setSheet(undefined)
    setColumn(undefined)
    setShownMax(rowsAtOnce)
    if (messages.size > 0) void readRows(file, [...messages.keys()]).then(setSheet)
  }, [file, error])
  if (messages.size === 0) return <Failure error={error} />
  if (sheet === undefined) return <Skeleton lines={5} />
  const { header, rows } = sheet
  const problems = [...messages]
    .map(([row, all]): Problem => ({ row, messages: all, columns: columnsOf(all, header) }))
    .sort((one, other) => one.row - other.row)
  const counts = countsOf(problems)
  const chosen = column === undefined ? problems : problems.filter(({ columns }) => columns.has(column))
  return (
    <div class="stack stack-s" role="alert">
      <h2 class="bad">
        {problems.length === 1
          ? 'One row has'
          : `${others.length > 0 ? 'More than ' : ''}${plural(problems.length, 'row')} have`}{' '}
        errors. Nothing was changed; correct the file and drop it again.
      </h2>
      {others.map(message => (
        <p key={message}>{message}</p>
      ))}
      <div class="sheet-tools row row-wrap">
        {counts.size > 1 && (
          <Chips
            label="Show only the errors of one column"
            values={[...counts.keys()]}
            labelOf={name => (
              <>
                {name} <span class="quiet">{counts.get(name)}</span>
              </>
            )}
            chosen={column === undefined ? [] : [column]}
            onPress={name => {
              setColumn(name === column ? undefined : name)
              setShownMax(rowsAtOnce)
            }}
          />
        )}
        <ExportButton
          name={`errors-of-${file.name.replace(/\.\w+$/, '')}`}
          label="Errors as CSV"
          columns={[
            ['row', (problem: Problem) => problem.row],
            ...header.map((title, index): [string, (problem: Problem) => string] => [
              title,
              ({ row }) => rows.get(row)?.[index] ?? '',
            ]),
            ['what_is_wrong', problem => problem.messages.join('; ')],
          ]}
          rows={async () => problems}
        />
      </div>
      <SheetTable problems={chosen.slice(0, shownMax)} sheet={sheet} />
      {chosen.length > shownMax && (
        <div>
          <Button act={() => setShownMax(shownMax + rowsAtOnce)}>Show more of {plural(chosen.length, 'row')}</Button>
        </div>
      )}
    </div>
  )
}

function SheetTable({ problems, sheet: { header, rows } }: { problems: Problem[]; sheet: Sheet }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard.
    <section class="sheet" tabIndex={0} aria-label="Rows with errors">
      <table>
        <thead>
          <tr>
            <th scope="col">Row</th>
            <th scope="col">What is wrong</th>
            {header.map((title, index) => (
              <th key={index} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {problems.map(({ row, messages, columns }) => (
            <tr key={row}>
              <th scope="row">{row}</th>
              <td class="sheet-problem">{messages.join('; ')}</td>
              {header.map((title, index) => (
                <td key={index} class={columns.has(title) ? 'sheet-bad' : undefined}>
                  {rows.get(row)?.[index] ?? ''}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Groups the messages by row. Messages about no row are separate. */
function issuesOf(error: unknown): { messages: Map<number, string[]>; others: string[] } {
  const messages = new Map<number, string[]>()
  const others: string[] = []
  const issues = error instanceof ApiError ? error.issues : []
  for (const [index, issue] of issues.entries()) {
    const row = 'row' in issue ? Number(issue.row) : Number.NaN
    if (!Number.isInteger(row) || index >= issuesMax) others.push(issue.message)
    // Messages about settlements begin with the row, which has its own column here.
    else messages.set(row, [...(messages.get(row) ?? []), issue.message.replace(/^Row \d+: /, '')])
  }
  return { messages, others }
}

async function readRows(file: File, numbers: number[]): Promise<Sheet> {
  try {
    const read = await sendTable<{ header: string[]; rows: { row: number; cells: string[] }[] }>(
      `/console/v1/sheet-rows?rows=${numbers.join()}`,
      file,
    )
    const rows = read.rows.map(({ row, cells }): [number, string[]] => [row, cells])
    return { header: read.header, rows: new Map([[1, read.header], ...rows]) }
  } catch {
    // Row numbers and messages help even without the rows.
    return { header: [], rows: new Map() }
  }
}

/** The columns that messages name, either as in the file or without spaces and underscores. */
function columnsOf(messages: string[], header: string[]): Set<string> {
  const heads = messages.flatMap(each => each.split('; ')).map(each => plain(each.split(':', 1)[0] ?? ''))
  return new Set(header.filter(title => title !== '' && heads.some(head => head.includes(plain(title)))))
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[\s_-]/g, '')
}

/** Counts the rows with an error per column, most errors first. */
function countsOf(problems: Problem[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { columns } of problems) for (const name of columns) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map([...counts].sort(([, one], [, other]) => other - one))
}

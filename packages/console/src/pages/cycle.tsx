import { ApiError, type Deduction, type PayCycle, type Settlement, type SettlementLine } from '@midmonth/sdk'
import { useRoute } from 'preact-iso'
import { announce } from '../act.ts'
import { api, sendCsv } from '../api.ts'
import { authorName, useAuthors } from '../components/author.tsx'
import { Button } from '../components/button.tsx'
import { DownloadButton, ExportButton, type ExportColumn } from '../components/export.tsx'
import { FileCheck } from '../components/file-check.tsx'
import { Field, Form, requireAmount } from '../components/form.tsx'
import { Figure, Page, Panel, Pending, PendingPage } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { useSummaries } from '../components/pay-run-summaries.ts'
import { type Column, TablePanel } from '../components/table.tsx'
import { useToday } from '../components/today.ts'
import { Amount, Id, State, Time } from '../components/values.tsx'
import { formatDay, formatMoney, formatNumber, plural } from '../format.ts'
import { hrefOfRecord } from '../places.ts'
import { useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { daysLeft } from './cycles.tsx'
import { payRunColumns } from './pay-runs.tsx'

type PayCycleId = PayCycle['id']

export default function CyclePage() {
  const { id } = useRoute().params as { id: PayCycleId }
  const today = useToday()
  const { value, error, reload: retry } = useLoaded(`pay-cycle ${id}`, () => api.payCycles.get(id))
  if (value === undefined) return <PendingPage title="Pay cycle" error={error} onRetry={retry} />
  return (
    <Page
      title={`${formatDay(value.startDate)} – ${formatDay(value.endDate)}`}
      actions={
        may('payroll', 'support', 'viewer') && (
          <DownloadButton name={`deductions-${id}.csv`} file={() => api.payCycles.exportDeductions(id)}>
            Deductions as CSV
          </DownloadButton>
        )
      }
    >
      <div class="row row-wrap above">
        <State state={value.status} />
        {value.status === 'Closed' && <SettledBy id={id} />}
        <span class="record-to">{daysLeft(value, today)}</span>
        <Id id={id} isLink={false} />
      </div>
      <div class="stack">
        {value.status === 'Closed' && <SettlementPanel id={id} />}
        <PayRunsOfCycle id={id} />
        <Deductions id={id} isOpen={value.status === 'Open'} />
      </div>
    </Page>
  )
}

/** Says when a cycle was settled and by whom. */
function SettledBy({ id }: { id: PayCycleId }) {
  const settled = useAuthors('pay_cycle.settle', [id]).get(id)
  if (settled === undefined) return null
  return (
    <>
      <State state="settled" />
      <span class="record-to">
        <Time at={settled.at} />, by {authorName(settled)}
      </span>
    </>
  )
}

const deductionColumns: Column<Deduction>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Id', cell: ({ memberId }) => <Id id={memberId} />, isMinor: true },
  { title: 'To deduct', cell: ({ total }) => <Amount money={total} />, isFigure: true },
]

function Deductions({ id, isOpen }: { id: PayCycleId; isOpen: boolean }) {
  const listed = useList(`cycle-deductions ${id}`, take => api.payCycles.listDeductions(id, { take }))
  return (
    <TablePanel
      title={isOpen ? 'Deductions so far' : 'Deductions'}
      label="Deductions"
      aside={listed.first && <span class="quiet">{formatNumber(listed.first.total)} members</span>}
      columns={deductionColumns}
      list={listed}
      keyOf={({ memberId, total }) => `${memberId} ${total.currency}`}
      empty="No member withdrew in this cycle"
    />
  )
}

const lineColumns: Column<SettlementLine>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
  { title: 'Deduction', cell: ({ deducted }) => <Amount money={deducted} />, isFigure: true, isMinor: true },
  { title: 'Taken', cell: ({ taken }) => <Amount money={taken} />, isFigure: true, isLead: true },
  { title: 'Carried', cell: ({ carried }) => <Amount money={carried} />, isFigure: true, isMinor: true },
  { title: 'Written off', cell: ({ writtenOff }) => <Amount money={writtenOff} />, isFigure: true, isMinor: true },
]

const csvColumns: ExportColumn<SettlementLine>[] = [
  'memberId',
  'outcome',
  'deducted',
  'taken',
  'carried',
  'writtenOff',
  ['currency', line => line.deducted.currency],
]

/** Shows what payroll deducted next to what was due, or lets payroll report it. */
function SettlementPanel({ id }: { id: PayCycleId }) {
  const listed = useList(`cycle-settlement ${id}`, take => api.payCycles.listSettlementLines(id, { take }))
  if (listed.error instanceof ApiError && listed.error.status === 404)
    return may('payroll') ? (
      <Settle id={id} />
    ) : (
      <Panel title="Settlement">
        <p>Payroll has not yet reported its deductions.</p>
      </Panel>
    )
  if (listed.first === undefined) return <Pending error={listed.error} lines={4} />
  return (
    <TablePanel
      title="Settlement"
      aside={<ExportButton name={`settlement-${id}`} columns={csvColumns} rows={listed.all} />}
      columns={lineColumns}
      list={listed}
      keyOf={({ memberId, deducted }) => `${memberId} ${deducted.currency}`}
      empty="Nothing to deduct"
    >
      <Outcomes settlement={listed.first} />
      <SettledSides id={id} settlement={listed.first} />
    </TablePanel>
  )
}

/** The pay runs that became available to members in the cycle, newest first. */
function PayRunsOfCycle({ id }: { id: PayCycleId }) {
  const load = (take: number) => api.payRuns.list({ payCycleId: id, take })
  const listed = useList(`pay-runs-of-cycle ${id}`, load, { take: 10 })
  return (
    <TablePanel
      title="Pay runs"
      aside={listed.first && <span class="quiet">{formatNumber(listed.first.total)}</span>}
      columns={payRunColumns}
      list={{ ...listed, rows: useSummaries(listed.rows) }}
      hrefOf={hrefOfRecord}
      empty="No pay runs in this cycle"
    />
  )
}

type SettlementOutcomes = Pick<Settlement, 'matched' | 'short' | 'over' | 'unknown'>

function OutcomeFigures({ outcomes: { matched, short, over, unknown } }: { outcomes: SettlementOutcomes }) {
  return (
    <>
      <Figure title="Matched">{formatNumber(matched)}</Figure>
      <Figure title="Short">{formatNumber(short)}</Figure>
      <Figure title="Over">{formatNumber(over)}</Figure>
      <Figure title="Unknown">{formatNumber(unknown)}</Figure>
    </>
  )
}

function Outcomes({ settlement }: { settlement: Settlement }) {
  const { totals, paymentReference } = settlement
  return (
    <div class="figures figures-flush">
      <OutcomeFigures outcomes={settlement} />
      {totals.map(total => (
        <Figure
          key={total.due.currency}
          title="Still due"
          note={paymentReference && <>Reference {paymentReference}</>}
          money={total.due}
        />
      ))}
    </div>
  )
}

// A person reads at most a few hundred differences; the rest is in the export.
const linesReadMax = 10_000

/** The lines of a settled cycle that differ. */
function SettledSides({ id, settlement }: { id: PayCycleId; settlement: Settlement }) {
  const differences = settlement.short + settlement.over + settlement.unknown
  const { value: lines } = useLoaded(differences === 0 ? null : `cycle-differences ${id}`, async () => {
    const found: SettlementLine[] = []
    let read = 0
    for await (const line of api.payCycles.listSettlementLines(id, { take: 1_000 })) {
      read += 1
      if (line.outcome !== 'matched') found.push(line)
      if (found.length === differences || read === linesReadMax) break
    }
    return found
  })
  if (lines === undefined) return null
  return (
    <div class="panel-body">
      <Sides lines={lines} outcomes={settlement} />
    </div>
  )
}

const sides = [
  {
    outcome: 'short',
    title: 'Short',
    meaning: 'Payroll took less than the deduction.',
    none: 'Payroll took every deduction in full.',
  },
  {
    outcome: 'over',
    title: 'Over',
    meaning: 'Payroll took more. The excess is returned to members: it lowers their deduction in the open cycle.',
    none: 'No over-deductions.',
  },
  {
    outcome: 'unknown',
    title: 'Unknown',
    meaning: 'These members had no deduction. The amount taken is returned to them in the open cycle.',
    none: 'Every member in the file had a deduction.',
  },
] as const

type SidesProps = {
  lines: SettlementLine[]
  outcomes: SettlementOutcomes
  shortfallPolicy?: Preview['shortfallPolicy']
}

/** The differences side by side, with how each is resolved. */
function Sides({ lines, outcomes, shortfallPolicy }: SidesProps) {
  return (
    <div class="sides">
      {sides.map(({ outcome, title, meaning, none }) => {
        const count = outcomes[outcome]
        return (
          <section key={outcome} class="side-by-side stack" aria-label={title}>
            <h3>
              <State state={outcome} tone={count === 0 ? 'calm' : undefined} /> {formatNumber(count)}
            </h3>
            <p class="quiet">
              {count === 0 ? none : meaning}
              {outcome === 'short' && count > 0 && <Shortfall policy={shortfallPolicy} />}
            </p>
            <Differences lines={lines.filter(line => line.outcome === outcome)} count={count} />
          </section>
        )
      })}
    </div>
  )
}

/** Explains how shortfalls are resolved, which is one setting for all members. Without the setting, each line says how its shortfall was resolved. */
function Shortfall({ policy }: { policy: Preview['shortfallPolicy'] | undefined }) {
  if (policy === undefined) return null
  return (
    <>
      {policy === 'carry'
        ? ' The shortfall is carried: it is deducted in the open cycle.'
        : ' The shortfall is written off: it becomes a cost to the employer, and the member owes nothing.'}{' '}
      The operator controls this setting, which applies to all members.
    </>
  )
}

/** Lines shown per side; the rest is in the table or the export. */
const differencesMax = 50

function Differences({ lines, count }: { lines: SettlementLine[]; count: number }) {
  if (lines.length === 0) return null
  return (
    <>
      <ul class="differences">
        {lines.slice(0, differencesMax).map(line => (
          <li key={`${line.memberId} ${line.deducted.currency}`}>
            <MemberName id={line.memberId} />
            <b>
              <Amount money={{ ...line.taken, amount: line.taken.amount - line.deducted.amount }} signed />
            </b>
            <span class="quiet">
              took <Amount money={line.taken} /> of <Amount money={line.deducted} />
            </span>
            <span class="quiet">{resolutionOf(line)}</span>
          </li>
        ))}
      </ul>
      {count > Math.min(lines.length, differencesMax) && (
        <p class="quiet">{plural(count - Math.min(lines.length, differencesMax), 'more member')}</p>
      )}
    </>
  )
}

function resolutionOf({ carried, writtenOff }: SettlementLine): string {
  if (writtenOff.amount > 0) return 'written off'
  return carried.amount > 0 ? 'carried' : 'returned'
}

type Preview = SettlementOutcomes & {
  shortfallPolicy: 'carry' | 'write_off'
  totals: Omit<Settlement['totals'][number], 'due'>[]
  lines: SettlementLine[]
}

/** Compares a dropped file with the deductions, and settles the cycle when the reader confirms. */
function Settle({ id }: { id: PayCycleId }) {
  return (
    <Panel title="Settlement">
      <div class="stack">
        <p>
          Payroll has not yet reported its deductions. Download the deductions as CSV, correct the column{' '}
          <code>amount_decimal</code> where payroll took a different amount, and drop the file here. Nothing is booked
          until you settle.
        </p>
        <FileCheck
          label="Preview of the settlement"
          kinds=".csv,text/csv"
          pageAction="settle"
          check={file => sendCsv<Preview>(`/console/v1/pay-cycles/${id}/settlement-files`, file)}
        >
          {({ file, result, discard }) => (
            <>
              <SettlementPreview preview={result} />
              <Form
                submit="Settle cycle (final)"
                isFinal
                onSubmit={async fields => {
                  requireTotals(result.totals, fields)
                  await api.payCycles.settle(id, file)
                  announce('Cycle settled', 'cycle', 'pay-cycle', 'authors')
                }}
              >
                {result.totals.filter(isUnusual).map(total => (
                  <UnusualTotal key={total.taken.currency} total={total} />
                ))}
              </Form>
              <div>
                <Button act={discard}>Discard</Button>
              </div>
            </>
          )}
        </FileCheck>
      </div>
    </Panel>
  )
}

type Total = Preview['totals'][number]

/** Whether the total taken differs so much from the deductions that the file may be for another cycle, or in another unit. */
function isUnusual({ deducted, taken }: Total): boolean {
  const [due, reported] = [BigInt(deducted.amount), BigInt(taken.amount)]
  const difference = reported > due ? reported - due : due - reported
  return difference * 10n > (due < 0n ? -due : due)
}

const totalFieldOf = ({ taken }: Total) => `total-${taken.currency}`

/** The field in which the reader types the total to confirm an unusual settlement. */
function UnusualTotal({ total }: { total: Total }) {
  const { deducted, taken } = total
  return (
    <Field
      label={`Total taken, ${taken.currency}`}
      name={totalFieldOf(total)}
      note={`The file takes ${formatMoney(taken)} of ${formatMoney(deducted)}. Settling is final; type the total to confirm`}
      isRequired
    />
  )
}

/** @throws FieldProblems unless the reader has typed the unusual totals */
function requireTotals(totals: Total[], fields: Record<string, string>): void {
  for (const total of totals.filter(isUnusual)) {
    const name = totalFieldOf(total)
    // Accepts thousands separators and a currency.
    const typed = (fields[name] ?? '').replace(/[^\d.-]/g, '')
    requireAmount({ [name]: typed }, name, { money: total.taken, what: 'the total of the file' })
  }
}

function SettlementPreview({ preview }: { preview: Preview }) {
  return (
    <>
      <div class="figures">
        <OutcomeFigures outcomes={preview} />
        {preview.totals.map(total => (
          <Figure
            key={total.deducted.currency}
            title={`Taken in ${total.deducted.currency}`}
            note={`of ${formatMoney(total.deducted)} to deduct`}
            money={total.taken}
          />
        ))}
      </div>
      <Sides lines={preview.lines} outcomes={preview} shortfallPolicy={preview.shortfallPolicy} />
    </>
  )
}

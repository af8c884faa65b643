import { ApiError, type Deduction, type PayCycle, type Settlement, type SettlementLine } from '@openwage/sdk'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { api } from '../api.ts'
import { DropZone, SheetProblems } from '../components/drop-zone.tsx'
import { download, ExportButton } from '../components/export.tsx'
import { Icon } from '../components/icon.tsx'
import { Figure, Page, Panel } from '../components/layout.tsx'
import { MemberName } from '../components/member-name.tsx'
import { Empty, Failure, messageOf, Skeleton } from '../components/states.tsx'
import { type Column, Table } from '../components/table.tsx'
import { toast } from '../components/toast.tsx'
import { Amount, Id, State } from '../components/values.tsx'
import { formatDay, formatNumber } from '../format.ts'
import { at } from '../places.ts'
import { reload, useList, useLoaded } from '../query.ts'
import { may } from '../session.ts'
import { daysLeft } from './cycles.tsx'

type PayCycleId = PayCycle['id']

const back = () => ({ href: at('cycles'), title: 'Pay cycles' })

export default function CyclePage() {
  const { id } = useRoute().params as { id: PayCycleId }
  const { value, error, reload: retry } = useLoaded(`pay-cycle ${id}`, () => api.payCycles.get(id))
  if (value === undefined)
    return (
      <Page title="Pay cycle" back={back()}>
        {error === undefined ? <Skeleton /> : <Failure error={error} onRetry={retry} />}
      </Page>
    )
  return (
    <Page
      title={`${formatDay(value.startDate)} – ${formatDay(value.endDate)}`}
      back={back()}
      actions={may('payroll', 'support', 'viewer') && <DeductionsButton id={id} />}
    >
      <div class="record-head">
        <State state={value.status} />
        <span class="record-to">{daysLeft(value)}</span>
        <Id id={id} isLink={false} />
      </div>
      <div class="stack">
        {value.status === 'Closed' && <SettlementPanel id={id} />}
        <Deductions id={id} isOpen={value.status === 'Open'} />
      </div>
    </Page>
  )
}

function DeductionsButton({ id }: { id: PayCycleId }) {
  return (
    <button
      type="button"
      class="button"
      onClick={() =>
        void api.payCycles
          .exportDeductions(id)
          .then(async file => download(`deductions-${id}.csv`, await file.blob()))
          .catch(error => toast(messageOf(error), { kind: 'bad' }))
      }
    >
      <Icon name="download" />
      Deductions as CSV
    </button>
  )
}

const deductionColumns: Column<Deduction>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Id', cell: ({ memberId }) => <Id id={memberId} />, isMinor: true },
  { title: 'To deduct', cell: ({ total }) => <Amount money={total} />, isFigure: true },
]

function Deductions({ id, isOpen }: { id: PayCycleId; isOpen: boolean }) {
  const listed = useList(
    `cycle-deductions ${id}`,
    () => api.payCycles.listDeductions(id, { take: 50 }),
    page => page.deductions,
  )
  return (
    <Panel
      isFlush
      title={isOpen ? 'Deductions so far' : 'Deductions'}
      aside={listed.first && <span class="quiet">{formatNumber(listed.first.total)} members</span>}
    >
      <Table
        label="Deductions"
        columns={deductionColumns}
        list={listed}
        keyOf={({ memberId, total }) => `${memberId} ${total.currency}`}
        empty={<Empty title="No member withdrew in this cycle" />}
      />
    </Panel>
  )
}

const lineColumns: Column<SettlementLine>[] = [
  { title: 'Member', cell: ({ memberId }) => <MemberName id={memberId} /> },
  { title: 'Outcome', cell: ({ outcome }) => <State state={outcome} /> },
  { title: 'Deduction', cell: ({ deducted }) => <Amount money={deducted} />, isFigure: true, isMinor: true },
  { title: 'Taken', cell: ({ taken }) => <Amount money={taken} />, isFigure: true },
  { title: 'Carried', cell: ({ carried }) => <Amount money={carried} />, isFigure: true, isMinor: true },
  { title: 'Written off', cell: ({ writtenOff }) => <Amount money={writtenOff} />, isFigure: true, isMinor: true },
]

/** What payroll took, beside what it should have taken; or the place to say it. */
function SettlementPanel({ id }: { id: PayCycleId }) {
  const listed = useList(
    `cycle-settlement ${id}`,
    () => api.payCycles.listSettlementLines(id, { take: 100 }),
    page => page.lines,
  )
  if (listed.error instanceof ApiError && listed.error.status === 404)
    return may('payroll') ? (
      <Settle id={id} />
    ) : (
      <Panel title="Settlement">
        <p>Payroll has not reported yet what it took.</p>
      </Panel>
    )
  if (listed.error !== undefined) return <Failure error={listed.error} />
  if (listed.first === undefined) return <Skeleton lines={4} />
  return (
    <Panel
      isFlush
      title="Settlement"
      aside={
        <ExportButton
          name={`settlement-${id}`}
          columns={[
            ['member_id', (line: SettlementLine) => line.memberId],
            ['outcome', line => line.outcome],
            ['deducted_minor_units', line => line.deducted.amount],
            ['taken_minor_units', line => line.taken.amount],
            ['carried_minor_units', line => line.carried.amount],
            ['written_off_minor_units', line => line.writtenOff.amount],
            ['currency', line => line.deducted.currency],
          ]}
          rows={() => api.payCycles.listSettlementLines(id, { take: 1_000 })}
        />
      }
    >
      <Outcomes settlement={listed.first} />
      <Table
        label="Settlement"
        columns={lineColumns}
        list={listed}
        keyOf={({ memberId, deducted }) => `${memberId} ${deducted.currency}`}
        empty={<Empty title="Nothing was to be deducted" />}
      />
    </Panel>
  )
}

function Outcomes({ settlement }: { settlement: Settlement }) {
  const { matched, short, over, unknown, totals, paymentReference } = settlement
  return (
    <div class="figures figures-flush">
      <Figure title="Matched">{formatNumber(matched)}</Figure>
      <Figure title="Short">{formatNumber(short)}</Figure>
      <Figure title="Over">{formatNumber(over)}</Figure>
      <Figure title="Unknown">{formatNumber(unknown)}</Figure>
      {totals.map(total => (
        <Figure key={total.due.currency} title="Still due" note={paymentReference && <>Reference {paymentReference}</>}>
          <Amount money={total.due} />
        </Figure>
      ))}
    </div>
  )
}

function Settle({ id }: { id: PayCycleId }) {
  const [problem, setProblem] = useState<unknown>()
  const [file, setFile] = useState<File>()
  const upload = async (dropped: File) => {
    setFile(dropped)
    setProblem(undefined)
    try {
      await api.payCycles.settle(id, dropped)
      toast('The cycle is settled')
      reload('cycle')
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <Panel title="Settlement">
      <div class="stack">
        <p>
          Payroll has not reported yet what it took. Take the deductions as CSV, correct what was taken, and drop the
          file here. Settling is final.
        </p>
        <DropZone label="Drop payroll’s file here" onFile={upload} />
        {problem !== undefined && file !== undefined && <SheetProblems file={file} error={problem} />}
      </div>
    </Panel>
  )
}

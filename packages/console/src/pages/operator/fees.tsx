import { useRoute } from 'preact-iso'
import { act, announce } from '../../act.ts'
import { Button } from '../../components/button.tsx'
import { ExportButton, type ExportColumn } from '../../components/export.tsx'
import { useFilters } from '../../components/filters.tsx'
import { amountIn, FieldProblems, readFields } from '../../components/form.tsx'
import { DrawerButton, Page, PendingPage } from '../../components/layout.tsx'
import { Changes, changedBy, ReviewedForm } from '../../components/reviewed-form.tsx'
import { type Column, Table, TablePanel } from '../../components/table.tsx'
import { Amount, Day } from '../../components/values.tsx'
import { dayIn } from '../../days.ts'
import { formatMoney, formatNumber } from '../../format.ts'
import type { FeeLine, FeeSums, Partner, PartnerId, Revenue } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'
import { MovementFields } from './floats.tsx'
import { InvoiceTable, useInvoices } from './invoices.tsx'

/** The fees of a partner: revenue, invoices and monthly statements. */
export default function Fees() {
  const { id } = useRoute().params as { id: PartnerId }
  const back = { href: `/console/operator/partners/${id}`, title: 'Partner' }
  const { value, error, reload: retry } = useLoaded(`operator-partner ${id}`, () => operators.getPartner(id))
  const invoices = useInvoices({ partnerId: id })
  if (value === undefined) return <PendingPage title="Fees" back={back} error={error} onRetry={retry} />
  return (
    <Page title={`Fees of ${value.name}`} back={back}>
      <div class="stack">
        <RevenuePanel partnerId={id} />
        <InvoiceTable title="Invoices" list={invoices} isOfPartner />
        <Statement partner={value} />
      </div>
    </Page>
  )
}

function RevenuePanel({ partnerId }: { partnerId: PartnerId }) {
  const { value, error } = useLoaded(`operator-revenue ${partnerId}`, () => operators.getRevenue(partnerId))
  const amount = (title: string, of: (revenue: Revenue) => Revenue['inFloat']): Column<Revenue> => ({
    title,
    cell: revenue => <Amount money={of(revenue)} />,
    isFigure: true,
  })
  const issueInvoice = ({ currency }: Revenue) =>
    act(
      () => operators.issueInvoice(partnerId, { currency }),
      ({ number, sum }) => `Invoice ${number} of ${formatMoney(sum)}`,
      'operator-invoices',
      'operator-revenue',
    )
  const columns: Column<Revenue>[] = [
    { title: 'Currency', cell: ({ currency }) => <b>{currency}</b> },
    amount('In the float', ({ inFloat }) => inFloat),
    { ...amount('Collected', ({ collected }) => collected), isMinor: true },
    { ...amount('Withdrawn', ({ withdrawn }) => withdrawn), isMinor: true },
    { ...amount('Arriving', ({ arriving }) => arriving), isMinor: true },
    { ...amount('Invoiced', ({ invoiced }) => invoiced), isMinor: true },
    { ...amount('Invoices paid', ({ paid }) => paid), isMinor: true },
    {
      title: 'Change',
      isTitleHidden: true,
      cell: revenue => (
        <span class="float-acts">
          <DrawerButton text="Withdraw" title={`Withdraw revenue from the float, ${revenue.currency}`}>
            {close => <WithdrawRevenue partnerId={partnerId} revenue={revenue} onDone={close} />}
          </DrawerButton>
          <Button act={() => issueInvoice(revenue)}>Issue an invoice</Button>
        </span>
      ),
      isFigure: true,
    },
  ]
  return (
    <TablePanel
      title="Revenue"
      columns={columns}
      list={{ rows: value?.revenue, error }}
      keyOf={({ currency }) => currency}
      empty="No fees yet"
      hint="Fees appear with the first tier in a currency."
    />
  )
}

type WithdrawRevenueProps = { partnerId: PartnerId; revenue: Revenue; onDone: () => void }

function WithdrawRevenue({ partnerId, revenue: { currency }, onDone }: WithdrawRevenueProps) {
  return (
    <ReviewedForm
      plan={async fields => {
        const amount = readFields(fields, field => field('amount', amountIn(currency)))
        const { reference = '' } = fields
        // Read now: the page may have been open for hours.
        const { revenue } = await operators.getRevenue(partnerId)
        const before = revenue.find(each => each.currency === currency)?.inFloat ?? { amount: 0, currency }
        if (amount.amount > before.amount)
          throw new FieldProblems(
            new Map([['amount', `Only ${formatMoney(before)} of collected fees is in the float`]]),
          )
        return { amount, reference, before }
      }}
      review={({ amount, before }) => (
        <>
          <p>
            <b>{formatMoney(amount)}</b> will be recorded as withdrawn from the float.
          </p>
          <Changes label="Revenue" changes={[changedBy('In the float', before, -amount.amount)]} />
        </>
      )}
      confirm={({ amount }) => `Withdraw ${formatMoney(amount)}`}
      onConfirm={async ({ amount, reference }) => {
        await operators.withdrawRevenue(partnerId, { amount, reference })
        announce(`${formatMoney(amount)} recorded as withdrawn from the float`, 'operator-revenue', 'operator-float')
        onDone()
      }}
    >
      <p>Record a transfer of collected fees from the float’s account to your own, up to the free amount.</p>
      <MovementFields currency={currency} needsReference />
    </ReviewedForm>
  )
}

type Fees = Omit<FeeLine, 'day' | 'tier'>

const feeColumns: Column<Fees>[] = [
  { title: 'Withdrawals', cell: ({ withdrawals }) => formatNumber(withdrawals), isFigure: true, isMinor: true },
  { title: 'Members pay', cell: ({ memberFees }) => <Amount money={memberFees} />, isFigure: true },
  { title: 'The employer pays', cell: ({ employerFees }) => <Amount money={employerFees} />, isFigure: true },
  {
    title: 'Refunded to members',
    cell: ({ memberFeesGivenBack }) => <Amount money={memberFeesGivenBack} />,
    isFigure: true,
    isMinor: true,
  },
  {
    title: 'Refunded to the employer',
    cell: ({ employerFeesGivenBack }) => <Amount money={employerFeesGivenBack} />,
    isFigure: true,
    isMinor: true,
  },
]
const lineColumns: Column<FeeLine>[] = [
  { title: 'Day', cell: ({ day }) => <Day day={day} /> },
  { title: 'Tier', cell: ({ tier }) => tier },
  ...feeColumns,
]
const sumColumns: Column<FeeSums>[] = [
  { title: 'Currency', cell: ({ currency }) => <b>{currency}</b> },
  ...feeColumns,
  { title: 'Collected', cell: ({ collected }) => <Amount money={collected} />, isFigure: true },
]

const csvColumns: ExportColumn<FeeLine>[] = [
  'day',
  'tier',
  'withdrawals',
  'memberFees',
  'employerFees',
  'givenBack',
  'memberFeesGivenBack',
  'employerFeesGivenBack',
  ['currency', line => line.memberFees.currency],
]

function Statement({ partner: { id, settings } }: { partner: Partner }) {
  const filters = useFilters()
  const month = filters.get('month') || dayIn(settings.timeZone, new Date()).slice(0, 7)
  const load = () => operators.getFeeStatement(id, { month })
  const { value, error, reload: retry } = useLoaded(`operator-fees ${id} ${month}`, load)
  return (
    <TablePanel
      title="Monthly statement"
      label="Fees by day and tier"
      aside={<ExportButton name={`fees-${month}`} columns={csvColumns} rows={async () => (await load()).lines} />}
      columns={lineColumns}
      list={{ rows: value?.lines, error, reload: retry }}
      keyOf={({ day, tier, memberFees }) => `${day} ${tier} ${memberFees.currency}`}
      empty="No fees in this month"
    >
      <div class="panel-body">
        <label class="filter-field row">
          <span>Month</span>
          <input type="month" value={month} onChange={event => filters.set('month', event.currentTarget.value)} />
        </label>
      </div>
      {value !== undefined && value.sums.length > 0 && (
        <Table label="Totals" columns={sumColumns} list={{ rows: value.sums }} keyOf={({ currency }) => currency} />
      )}
    </TablePanel>
  )
}

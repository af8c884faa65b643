import { useRoute } from 'preact-iso'
import { announce } from '../../act.ts'
import { Button } from '../../components/button.tsx'
import { Field } from '../../components/form.tsx'
import { KeyValuesPanel, Page, PendingPage, RecordHead } from '../../components/layout.tsx'
import { FormButton } from '../../components/reason.tsx'
import { type Column, TablePanel } from '../../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import type { Invoice as InvoiceDetails, InvoiceId, InvoiceLine, PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { useLoaded } from '../../query.ts'

const columns: Column<InvoiceLine>[] = [
  { title: 'Day', cell: ({ day }) => <Day day={day} /> },
  { title: 'Tier', cell: ({ tier }) => tier },
  { title: 'Withdrawals', cell: ({ withdrawals }) => formatNumber(withdrawals), isFigure: true, isMinor: true },
  { title: 'Fees', cell: ({ fees }) => <Amount money={fees} />, isFigure: true },
  { title: 'Refunded', cell: ({ feesGivenBack }) => <Amount money={feesGivenBack} />, isFigure: true },
]

export default function Invoice() {
  const { partner, id } = useRoute().params as { partner: PartnerId; id: InvoiceId }
  const { value, error, reload: retry } = useLoaded(`operator-invoice ${id}`, () => operators.getInvoice(partner, id))
  if (value === undefined) return <PendingPage title="Invoice" error={error} onRetry={retry} />
  return (
    <Page title={`Invoice ${value.number}`} actions={<Actions invoice={value} />}>
      <RecordHead amount={value.sum}>
        <State state={value.status} />
      </RecordHead>
      <div class="columns">
        <TablePanel
          title="Fees by day and tier"
          label="Lines"
          columns={columns}
          list={{ rows: value.lines }}
          keyOf={({ day, tier }) => `${day} ${tier}`}
        />
        <KeyValuesPanel
          entries={[
            ['Partner', <Id key="partner" id={value.partnerId} />],
            ['From', <Day key="from" day={value.firstDay} />],
            ['Through', <Day key="through" day={value.lastDay} />],
            ['Issued', <Time key="issued" at={value.issuedAt} />],
            ['Paid on', <Day key="paid" day={value.paid?.on ?? null} />],
            ['Reference', value.paid?.reference ?? '–'],
          ]}
        />
      </div>
    </Page>
  )
}

function Actions({ invoice: { partnerId, id, status } }: { invoice: InvoiceDetails }) {
  const change = async (changing: PromiseLike<unknown>, done: string) => {
    await changing
    announce(done, 'operator-invoice', 'operator-revenue')
  }
  return (
    <>
      <Button act={() => print()}>Print</Button>
      {status === 'open' && (
        <>
          <FormButton
            text="Mark as paid"
            onSubmit={({ reference = '', on = '' }) =>
              change(operators.payInvoice(partnerId, id, { reference, on }), 'Invoice marked as paid')
            }
          >
            <p>The invoiced fees become revenue. The money is in your own account, not in the float.</p>
            <Field label="Transfer reference" name="reference" isRequired />
            <Field label="Day of arrival" name="on" type="date" note="In the partner’s time zone" isRequired />
          </FormButton>
          <FormButton
            text="Void"
            isFinal
            onSubmit={({ note = '' }) => change(operators.voidInvoice(partnerId, id, { note }), 'Invoice voided')}
          >
            <p>The next invoice includes these fees.</p>
            <NoteField />
          </FormButton>
        </>
      )}
      {status === 'paid' && (
        <FormButton
          text="Reopen"
          onSubmit={({ note = '' }) => change(operators.reopenInvoice(partnerId, id, { note }), 'Invoice reopened')}
        >
          <p>These fees no longer count as revenue.</p>
          <NoteField />
        </FormButton>
      )}
    </>
  )
}

function NoteField() {
  return <Field label="Note" name="note" note="For the audit log; no personal data" isRequired />
}

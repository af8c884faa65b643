import { useRoute } from 'preact-iso'
import { announce } from '../../act.ts'
import { Button } from '../../components/button.tsx'
import { Field, Form } from '../../components/form.tsx'
import { DrawerButton, KeyValues, Page, Panel, PendingPage, RecordHead } from '../../components/layout.tsx'
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
    <Page
      title={`Invoice ${value.number}`}
      actions={
        <>
          <Button act={() => print()}>Print</Button>
          {value.status === 'open' && (
            <>
              <DrawerButton text="Mark as paid">{close => <Pay invoice={value} onDone={close} />}</DrawerButton>
              <DrawerButton text="Void">{close => <Void invoice={value} onDone={close} />}</DrawerButton>
            </>
          )}
          {value.status === 'paid' && (
            <DrawerButton text="Reopen">{close => <Reopen invoice={value} onDone={close} />}</DrawerButton>
          )}
        </>
      }
    >
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
        <Panel title="Details">
          <Details invoice={value} />
        </Panel>
      </div>
    </Page>
  )
}

function Details({ invoice: { partnerId, firstDay, lastDay, issuedAt, paid } }: { invoice: InvoiceDetails }) {
  return (
    <KeyValues
      entries={[
        ['Partner', <Id key="partner" id={partnerId} />],
        ['From', <Day key="from" day={firstDay} />],
        ['Through', <Day key="through" day={lastDay} />],
        ['Issued', <Time key="issued" at={issuedAt} />],
        ['Paid on', <Day key="paid" day={paid === null ? null : paid.on} />],
        ['Reference', paid?.reference ?? '–'],
      ]}
    />
  )
}

type ActProps = { invoice: InvoiceDetails; onDone: () => void }

async function change(changing: PromiseLike<unknown>, done: string): Promise<void> {
  await changing
  announce(done, 'operator-invoice', 'operator-revenue')
}

function Pay({ invoice: { partnerId, id }, onDone }: ActProps) {
  return (
    <Form
      submit="Mark as paid"
      onSubmit={async ({ reference = '', on = '' }) => {
        await change(operators.payInvoice(partnerId, id, { reference, on }), 'Invoice marked as paid')
        onDone()
      }}
    >
      <p>The invoiced fees become revenue. The money is in your own account, not in the float.</p>
      <Field label="Transfer reference" name="reference" isRequired />
      <Field label="Day of arrival" name="on" type="date" note="In the partner’s time zone" isRequired />
    </Form>
  )
}

function Reopen({ invoice: { partnerId, id }, onDone }: ActProps) {
  return (
    <Form
      submit="Reopen"
      onSubmit={async ({ note = '' }) => {
        await change(operators.reopenInvoice(partnerId, id, { note }), 'Invoice reopened')
        onDone()
      }}
    >
      <p>These fees no longer count as revenue.</p>
      <NoteField />
    </Form>
  )
}

function Void({ invoice: { partnerId, id }, onDone }: ActProps) {
  return (
    <Form
      submit="Void"
      isFinal
      onSubmit={async ({ note = '' }) => {
        await change(operators.voidInvoice(partnerId, id, { note }), 'Invoice voided')
        onDone()
      }}
    >
      <p>The next invoice includes these fees.</p>
      <NoteField />
    </Form>
  )
}

function NoteField() {
  return <Field label="Note" name="note" note="For the audit log; no personal data" isRequired />
}

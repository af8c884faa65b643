import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { Field, Form } from '../../components/form.tsx'
import { Drawer, KeyValues, Page, Panel, PendingPage } from '../../components/layout.tsx'
import { type Column, Table } from '../../components/table.tsx'
import { Amount, Day, Id, State, Time } from '../../components/values.tsx'
import { formatNumber } from '../../format.ts'
import type { Invoice as InvoiceDetails, InvoiceId, InvoiceLine, PartnerId } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useLoaded } from '../../query.ts'
import { toast } from '../../toasts.ts'

const back = { href: '/console/operator/invoices', title: 'Invoices' }

const columns: Column<InvoiceLine>[] = [
  { title: 'Day', cell: ({ day }) => <Day day={day} /> },
  { title: 'Tier', cell: ({ tier }) => tier },
  { title: 'Withdrawals', cell: ({ withdrawals }) => formatNumber(withdrawals), isFigure: true, isMinor: true },
  { title: 'Fees', cell: ({ fees }) => <Amount money={fees} />, isFigure: true },
  { title: 'Refunded', cell: ({ feesGivenBack }) => <Amount money={feesGivenBack} />, isFigure: true },
]

const actions = {
  pay: { title: 'Mark as paid', done: 'Invoice marked as paid' },
  reopen: { title: 'Reopen', done: 'Invoice reopened' },
  void: { title: 'Void', done: 'Invoice voided' },
} as const
type Action = keyof typeof actions

export default function Invoice() {
  const { partner, id } = useRoute().params as { partner: PartnerId; id: InvoiceId }
  const { value, error, reload: retry } = useLoaded(`operator-invoice ${id}`, () => operators.getInvoice(partner, id))
  const [doing, setDoing] = useState<Action>()
  if (value === undefined) return <PendingPage title="Invoice" back={back} error={error} onRetry={retry} />
  const possible: Action[] = value.status === 'open' ? ['pay', 'void'] : value.status === 'paid' ? ['reopen'] : []
  const onDone = (act: Action) => {
    toast(actions[act].done)
    reload('operator-invoice', 'operator-revenue')
    setDoing(undefined)
  }
  return (
    <Page
      title={`Invoice ${value.number}`}
      back={back}
      actions={
        <>
          <button type="button" class="button" onClick={() => print()}>
            Print
          </button>
          {possible.map(act => (
            <button key={act} type="button" class="button" onClick={() => setDoing(act)}>
              {actions[act].title}
            </button>
          ))}
        </>
      }
    >
      <div class="record-head">
        <span class="record-amount">
          <Amount money={value.sum} />
        </span>
        <State state={value.status} />
      </div>
      <div class="columns">
        <Panel isFlush title="Fees by day and tier">
          <Table
            label="Lines"
            columns={columns}
            list={{ rows: value.lines }}
            keyOf={({ day, tier }) => `${day} ${tier}`}
          />
        </Panel>
        <Panel title="Details">
          <Details invoice={value} />
        </Panel>
      </div>
      <Drawer
        title={doing === undefined ? '' : actions[doing].title}
        isOpen={doing !== undefined}
        onClose={() => setDoing(undefined)}
      >
        {doing === 'pay' && <Pay invoice={value} onDone={() => onDone('pay')} />}
        {(doing === 'reopen' || doing === 'void') && (
          <ReopenOrVoid invoice={value} act={doing} onDone={() => onDone(doing)} />
        )}
      </Drawer>
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
        ['Paid on', paid === null ? '–' : <Day key="paid" day={paid.on} />],
        ['Reference', paid?.reference ?? '–'],
      ]}
    />
  )
}

type ActProps = { invoice: InvoiceDetails; onDone: () => void }

function Pay({ invoice: { partnerId, id }, onDone }: ActProps) {
  return (
    <Form
      submit="Mark as paid"
      onSubmit={async ({ reference = '', on = '' }) => {
        await operators.payInvoice(partnerId, id, { reference, on })
        onDone()
      }}
    >
      {problemOf => (
        <>
          <p>The invoiced fees become revenue. The money is in your own account, not in the float.</p>
          <Field label="Transfer reference" name="reference" problem={problemOf('reference')} isRequired />
          <Field
            label="Day of arrival"
            name="on"
            type="date"
            problem={problemOf('on')}
            note="In the partner’s time zone"
            isRequired
          />
        </>
      )}
    </Form>
  )
}

function ReopenOrVoid({ invoice: { partnerId, id }, act, onDone }: ActProps & { act: 'reopen' | 'void' }) {
  return (
    <Form
      submit={actions[act].title}
      isFinal={act === 'void'}
      onSubmit={async ({ note = '' }) => {
        await (act === 'void' ? operators.voidInvoice : operators.reopenInvoice)(partnerId, id, { note })
        onDone()
      }}
    >
      {problemOf => (
        <>
          <p>{act === 'void' ? 'The next invoice includes these fees.' : 'These fees no longer count as revenue.'}</p>
          <Field
            label="Note"
            name="note"
            problem={problemOf('note')}
            note="For the audit log; no personal data"
            isRequired
          />
        </>
      )}
    </Form>
  )
}

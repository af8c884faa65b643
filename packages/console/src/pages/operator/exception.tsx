import { useRoute } from 'preact-iso'
import { admin } from '../../admin.ts'
import { Choice, Field, Form } from '../../components/form.tsx'
import { KeyValues, Page, Panel } from '../../components/layout.tsx'
import { Failure, Skeleton } from '../../components/states.tsx'
import { toast } from '../../components/toast.tsx'
import { Amount, Id, State, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type { ExceptionClosing, PayoutException, PayoutExceptionId } from '../../generated/admin.ts'
import { reload, useLoaded } from '../../query.ts'

const back = { href: '/console/operator/exceptions', title: 'Exceptions' }

const decisions: [string, string][] = [
  ['ignore', 'Ignore: nothing follows'],
  ['attach', 'Attach: it is about the payment with this reference'],
  ['give_back', 'Give back: it was not paid, the member can withdraw again'],
  ['book', 'Book: it is a movement of a float, or pays a settlement'],
]

export default function ExceptionPage() {
  const { id } = useRoute().params as { id: PayoutExceptionId }
  const { value, error, reload: retry } = useLoaded(`operator-exception ${id}`, () => admin.getPayoutException(id))
  if (value === undefined)
    return (
      <Page title="Exception" back={back}>
        {error === undefined ? <Skeleton lines={8} /> : <Failure error={error} onRetry={retry} />}
      </Page>
    )
  return (
    <Page title={inWords(value.kind)} back={back}>
      <div class="record-head">
        {value.amount && (
          <span class="record-amount">
            <Amount money={value.amount} />
          </span>
        )}
        <State state={value.closedAt === null ? 'open' : 'closed'} />
      </div>
      <div class="columns">
        <div class="stack">
          <Panel title="What happened">
            <p>{value.reason}</p>
          </Panel>
          {value.closedAt === null ? <Decide id={id} /> : <Decided exception={value} />}
        </div>
        <Panel title="Details">
          <KeyValues
            entries={[
              ['Exception', <Id key="id" id={id} isLink={false} />],
              ['Rail', value.rail],
              ['Since', <Time key="since" at={value.openedAt} />],
              ['Reference', value.reference ?? '–'],
              ['Code of the bank', value.reasonCode ?? '–'],
              [
                'File',
                value.fileName === null ? '–' : `${value.fileName}${value.line === null ? '' : `, line ${value.line}`}`,
              ],
              ['Partner', value.partnerId === null ? '–' : <Id key="partner" id={value.partnerId} />],
              [
                'Withdrawal',
                value.withdrawalId === null ? '–' : <Id key="withdrawal" id={value.withdrawalId} isLink={false} />,
              ],
            ]}
          />
        </Panel>
      </div>
    </Page>
  )
}

function Decide({ id }: { id: PayoutExceptionId }) {
  return (
    <Panel title="Decide">
      <Form
        submit="Close the exception"
        onSubmit={async fields => {
          const given = Object.entries(fields).filter(([, value]) => value !== '')
          // The service judges what is missing.
          await admin.closePayoutException(id, Object.fromEntries(given) as ExceptionClosing)
          toast('Closed')
          reload('operator-exception')
        }}
      >
        {problemOf => (
          <>
            <Choice label="Decision" name="decision" choices={decisions} />
            <Field label="Why" name="note" problem={problemOf('note')} isRequired />
            <Field label="Reference" name="reference" problem={problemOf('reference')} note="To attach, or to book" />
            <div class="form-row">
              <Field label="Partner" name="partnerId" problem={problemOf('partnerId')} note="To book" />
              <Field
                label="Pay cycle"
                name="payCycleId"
                problem={problemOf('payCycleId')}
                note="To book a settlement"
              />
            </div>
          </>
        )}
      </Form>
    </Panel>
  )
}

function Decided({ exception: { decision, note, closedBy, closedAt } }: { exception: PayoutException }) {
  return (
    <Panel title="Decided">
      <KeyValues
        entries={[
          ['Decision', decision === null ? '–' : inWords(decision)],
          ['Why', note ?? '–'],
          ['By', closedBy ?? '–'],
          ['When', <Time key="closed" at={closedAt} />],
        ]}
      />
    </Panel>
  )
}

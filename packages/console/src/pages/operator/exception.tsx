import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { amountIn, Choice, Field, Form, readFields } from '../../components/form.tsx'
import { KeyValues, Page, Panel, PendingPage } from '../../components/layout.tsx'
import { Person } from '../../components/person.tsx'
import { Amount, Id, State, Time } from '../../components/values.tsx'
import { inWords } from '../../format.ts'
import type {
  ExceptionClosing,
  PayoutException,
  PayoutExceptionDetails,
  PayoutExceptionId,
} from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload, useLoaded } from '../../query.ts'
import { session } from '../../session.ts'
import { toast } from '../../toasts.ts'
import { Proposed } from './proposals.tsx'

const back = { href: '/console/operator/exceptions', title: 'Exceptions' }

export default function ExceptionPage() {
  const { id } = useRoute().params as { id: PayoutExceptionId }
  const { value, error, reload: retry } = useLoaded(`operator-exception ${id}`, () => operators.getPayoutException(id))
  if (value === undefined) return <PendingPage title="Exception" back={back} error={error} onRetry={retry} />
  const { withdrawalId, partnerId } = value
  const details: [string, ComponentChildren][] = [
    ['Exception', <Id key="id" id={id} isLink={false} />],
    ['Rail', value.rail],
    ['Since', <Time key="since" at={value.openedAt} />],
    ['The bank says', value.outcome === null ? '–' : <State key="outcome" state={value.outcome} />],
    ['Reference', value.reference === null ? '–' : <Id key="reference" id={value.reference} isWhole isLink={false} />],
    ['The bank’s code', value.reasonCode ?? '–'],
    ['File', value.fileName === null ? '–' : `${value.fileName}${value.line === null ? '' : `, line ${value.line}`}`],
    ['Batch', value.batchId === null ? '–' : <Id key="batch" id={value.batchId} />],
    ['Partner', partnerId === null ? '–' : <Id key="partner" id={partnerId} />],
    [
      'Withdrawal',
      withdrawalId === null ? (
        '–'
      ) : (
        <Id key="withdrawal" id={withdrawalId} href={`/console/${partnerId}/withdrawals/${withdrawalId}`} />
      ),
    ],
  ]
  return (
    <Page title={titles[value.kind] ?? inWords(value.kind)} back={back}>
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
            {value.bankText !== null && <blockquote class="bank-text">{value.bankText}</blockquote>}
            {value.proposals.length > 0 && (
              <p>
                The words of the bank name{' '}
                {value.proposals.map(({ reference, withdrawalId, partnerId: of, amount }) => (
                  <span key={reference}>
                    <Id id={reference} isWhole href={`/console/${of}/withdrawals/${withdrawalId}`} />{' '}
                    <Amount money={amount} />{' '}
                  </span>
                ))}
              </p>
            )}
            {value.isBookedElsewhere && (
              <p class="notice">
                Another message has booked the same amount on the same day. It may be the same money.
              </p>
            )}
          </Panel>
          {value.closedAt === null && value.proposal !== null && <Proposed subject={id} proposal={value.proposal} />}
          {value.closedAt === null ? <Decide exception={value} /> : <Decided exception={value} />}
        </div>
        <Panel title="Details">
          <KeyValues entries={details} />
        </Panel>
      </div>
    </Page>
  )
}

const titles: Record<string, string> = {
  unmatched: 'An answer without a payment of ours',
  amount: 'Another amount than ours',
  paid_after_give_back: 'Paid after its money was given back',
  contradiction: 'An answer that contradicts an earlier one',
  duplicate: 'The bank took it for a duplicate',
  refused: 'An answer that could not be recorded',
  money_in: 'Money arrived that nothing explains',
  money_out: 'Money left that nothing explains',
  float: 'The paying account lacked money',
  blocked: 'Something holds payments back',
  unreadable: 'An answer that cannot be read',
  statement_gap: 'A statement is missing',
  opening_balance: 'A statement does not continue the one before',
  bank_balance: 'The bank’s balance is not what the books explain',
}

const decisions = {
  ignore: ['Ignore', 'Nothing follows from it.'],
  attach: ['Attach', 'It is about the payment below: money that arrived returns it, money that left pays it.'],
  give_back: ['Give back', 'It was not paid: the member has the money back, and can withdraw again.'],
  recover: ['Recover', 'The bank has paid after all: the members repay, from what is available first.'],
  write_off: ['Write off', 'The operator bears the money that left; the float lacks it until it is covered.'],
  book: ['Book', 'It is a movement of a partner’s float, or pays a settlement.'],
} as const
type Decision = keyof typeof decisions

/** What the server would not refuse outright: money that the bank has booked for us is not ignored. */
function choicesFor(exception: PayoutException): Decision[] {
  const { kind, outcome, reference, bookedOn, amount } = exception
  if (kind === 'money_in') return ['book', 'attach', 'ignore']
  if (kind === 'money_out') return ['book', 'attach', 'recover', 'write_off', 'ignore']
  if (kind === 'paid_after_give_back') return ['recover', bookedOn === null ? 'ignore' : 'write_off']
  const isBooked =
    bookedOn !== null && amount !== null && (exception.batchId !== null || exception.withdrawalId !== null)
  const isDebit = isBooked && (outcome === 'paid' || amount.amount < 0)
  return [
    ...(outcome === null && !isDebitOfBatch(exception) ? [] : (['attach'] as const)),
    ...(reference === null ? [] : (['give_back'] as const)),
    ...(isDebit ? (['write_off'] as const) : []),
    ...(isBooked && !isDebit && (kind === 'amount' || kind === 'contradiction') ? (['book'] as const) : []),
    ...(isBooked && kind !== 'bank_balance' ? [] : (['ignore'] as const)),
  ]
}

/** The bank debited a batch with another sum: what it did not make must be named. */
const isDebitOfBatch = ({ kind, amount, batchId, withdrawalId }: PayoutException) =>
  kind === 'amount' && amount !== null && batchId !== null && withdrawalId === null

const isOfBatch = ({ batchId, withdrawalId }: PayoutException) => batchId !== null && withdrawalId === null

function bodyOf(given: Record<string, string>, { amount }: PayoutException): ExceptionClosing {
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
  const { decision = '', note = '', charge, borneBy, ...others } = fields
  // Money in words can be that of several payments.
  const isOfSeveral = decision === 'attach' && (others.reference ?? '').trim().split(/[\s,;]+/).length > 1
  const { reference, references = isOfSeveral ? reference : undefined, ...rest } = others
  const currency = amount?.currency
  return {
    ...rest,
    ...(reference === undefined || isOfSeveral ? {} : { reference }),
    // The server says which field is missing or wrong.
    ...{ decision: decision as ExceptionClosing['decision'], note },
    ...(references === undefined ? {} : { references: references.split(/[\s,;]+/).filter(Boolean) }),
    ...(charge === undefined || currency === undefined
      ? {}
      : {
          charge: {
            amount: readFields({ charge }, field => field('charge', amountIn(currency))),
            borneBy: borneBy === 'partner' ? 'partner' : 'operator',
          },
        }),
  }
}

/** The one payment that the words name, or those that add up to the money. */
function proposed({ proposals, amount }: PayoutExceptionDetails): string {
  const sum = proposals.reduce((total, payment) => total + payment.amount.amount, 0)
  const isExact = amount !== null && sum === Math.abs(amount.amount)
  return proposals.length === 1 || isExact ? proposals.map(({ reference }) => reference).join(' ') : ''
}

function Decide({ exception }: { exception: PayoutExceptionDetails }) {
  const { id, partnerId } = exception
  const [decision, setDecision] = useState<Decision>()
  return (
    <Panel title="Decide">
      <Form
        submit="Close the exception"
        isFinal
        onSubmit={async fields => {
          const { closedAt } = await operators.closePayoutException(id, bodyOf(fields, exception))
          toast(closedAt === null ? 'Proposed: another person must make the same decision' : 'Closed')
          reload('operator-exception', 'operator-proposals')
        }}
      >
        {problemOf => (
          <>
            <fieldset class="role-fields">
              <legend>What follows</legend>
              {choicesFor(exception).map(choice => (
                <label key={choice}>
                  <input type="radio" name="decision" value={choice} onChange={() => setDecision(choice)} />
                  <span>
                    <b>{decisions[choice][0]}</b> <span class="quiet">{decisions[choice][1]}</span>
                  </span>
                </label>
              ))}
            </fieldset>
            {problemOf('decision') !== undefined && (
              <p class="field-problem" role="alert">
                Choose what follows
              </p>
            )}
            {decision === 'attach' && (
              <Field
                label="Reference of the payment or batch"
                name="reference"
                problem={problemOf('reference') ?? problemOf('references')}
                note="MM… or the withdrawal’s id; several payments, separated by spaces, if they add up to the money"
                value={proposed(exception)}
                isRequired
              />
            )}
            {(decision === 'attach' || decision === 'give_back') && exception.amount !== null && (
              <div class="form-row">
                <Field
                  label={`Charge of the bank, ${exception.amount.currency}`}
                  name="charge"
                  problem={problemOf('charge')}
                  note="If the amount is not exactly the payment’s"
                />
                <Choice
                  label="Borne by"
                  name="borneBy"
                  value="operator"
                  choices={[
                    ['operator', 'The operator'],
                    ['partner', 'The partner'],
                  ]}
                />
              </div>
            )}
            {decision === 'give_back' && isDebitOfBatch(exception) && (
              <Field
                label="References of the payments that the bank did not make"
                name="references"
                problem={problemOf('references')}
                note="MM…, separated by spaces. They must add up to what the bank did not debit; the others are then paid"
                isRequired
              />
            )}
            {decision === 'recover' && exception.kind === 'money_out' && (
              <Field
                label="References of the payments that the bank made"
                name="references"
                problem={problemOf('references')}
                note="MM…, separated by spaces. Their money was given back, and they add up to the debit"
                value={exception.proposals.map(({ reference }) => reference).join(' ')}
                isRequired
              />
            )}
            {(decision === 'recover' || decision === 'write_off') && isOfBatch(exception) && (
              <Field
                label="References of the payments that the bank made"
                name="references"
                problem={problemOf('references')}
                note="MM…, separated by spaces. Leave empty for all whose money was given back"
              />
            )}
            {decision === 'write_off' && exception.withdrawalId === null && (
              <PartnerField partnerId={partnerId} problemOf={problemOf} />
            )}
            {decision === 'book' && <BookFields partnerId={partnerId} problemOf={problemOf} />}
            <Field
              label="Why"
              name="note"
              problem={problemOf('note')}
              note="For operators and the audit log; nothing personal"
              isRequired
            />
          </>
        )}
      </Form>
    </Panel>
  )
}

type FieldsProps = { partnerId: string | null; problemOf: (name: string) => string | undefined }

function PartnerField({ partnerId, problemOf }: FieldsProps) {
  const partners = session.value?.partners ?? []
  return (
    <>
      <Choice
        label="Whose float"
        name="partnerId"
        value={partnerId ?? ''}
        choices={[['', 'Choose the partner'], ...partners.map(({ id, name }): [string, string] => [id, name])]}
      />
      {problemOf('partnerId') !== undefined && (
        <p class="field-problem" role="alert">
          Choose the partner
        </p>
      )}
    </>
  )
}

function BookFields({ partnerId, problemOf }: FieldsProps) {
  return (
    <>
      <PartnerField partnerId={partnerId} problemOf={problemOf} />
      <div class="form-row">
        <Field
          label="Pay cycle"
          name="payCycleId"
          problem={problemOf('payCycleId')}
          note="If it pays a settlement: pc_…"
        />
        <Field
          label="Reference of the movement"
          name="reference"
          problem={problemOf('reference')}
          note="If it does not pay a settlement. By default, the bank’s"
        />
      </div>
    </>
  )
}

function Decided({ exception: { decision, note, closedBy, closedAt } }: { exception: PayoutException }) {
  const meaning = decision === 'applied' ? 'Closed automatically: a later answer explains it' : undefined
  return (
    <Panel title="Decided">
      <KeyValues
        entries={[
          ['Decision', decision === null ? '–' : (meaning ?? inWords(decision))],
          ['Why', note ?? '–'],
          ['By', closedBy === 'system' ? 'Midmonth' : <Person key="by" who={closedBy} />],
          ['When', <Time key="closed" at={closedAt} />],
        ]}
      />
    </Panel>
  )
}

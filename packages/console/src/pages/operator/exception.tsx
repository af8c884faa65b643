import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useRoute } from 'preact-iso'
import { announce } from '../../act.ts'
import { amountIn, BorneBy, Choice, Field, Form, Options, ReasonField, readFields } from '../../components/form.tsx'
import { KeyValuesPanel, Page, Panel, PendingPage, RecordHead } from '../../components/layout.tsx'
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
import { useLoaded } from '../../query.ts'
import { session } from '../../session.ts'
import { Proposed } from './proposals.tsx'

export default function ExceptionPage() {
  const { id } = useRoute().params as { id: PayoutExceptionId }
  const { value, error, reload: retry } = useLoaded(`operator-exception ${id}`, () => operators.getPayoutException(id))
  if (value === undefined) return <PendingPage title="Exception" error={error} onRetry={retry} />
  const { withdrawalId, partnerId } = value
  const details: [string, ComponentChildren][] = [
    ['Exception', <Id key="id" id={id} isLink={false} />],
    ['Rail', value.rail],
    ['Since', <Time key="since" at={value.openedAt} />],
    ['Bank’s answer', value.outcome === null ? '–' : <State key="outcome" state={value.outcome} />],
    ['Reference', <Id key="reference" id={value.reference} isWhole isLink={false} />],
    ['The bank’s code', value.reasonCode ?? '–'],
    ['File', value.fileName === null ? '–' : `${value.fileName}${value.line === null ? '' : `, line ${value.line}`}`],
    ['Batch', <Id key="batch" id={value.batchId} />],
    ['Partner', <Id key="partner" id={partnerId} />],
    [
      'Withdrawal',
      <Id key="withdrawal" id={withdrawalId} href={`/console/${partnerId}/withdrawals/${withdrawalId}`} />,
    ],
  ]
  return (
    <Page title={titles[value.kind] ?? inWords(value.kind)}>
      <RecordHead amount={value.amount}>
        <State state={value.closedAt === null ? 'open' : 'closed'} />
      </RecordHead>
      <div class="columns">
        <div class="stack">
          <Panel title="What happened">
            <p>{value.reason}</p>
            {value.bankText !== null && <blockquote class="bank-text">{value.bankText}</blockquote>}
            {value.proposals.length > 0 && (
              <p>
                The bank’s text names{' '}
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
                Another bank message booked the same amount on the same day. It may be the same money.
              </p>
            )}
          </Panel>
          {value.closedAt === null && value.proposal !== null && <Proposed subject={id} proposal={value.proposal} />}
          {value.closedAt === null ? <Decide exception={value} /> : <Decided exception={value} />}
        </div>
        <KeyValuesPanel entries={details} />
      </div>
    </Page>
  )
}

const titles: Record<string, string> = {
  unmatched: 'Answer without a matching payment',
  amount: 'Amount differs from ours',
  paid_after_give_back: 'Paid after the money was returned to the member',
  contradiction: 'Answer contradicts an earlier one',
  duplicate: 'Rejected by the bank as a duplicate',
  refused: 'Answer could not be recorded',
  money_in: 'Unexplained money in',
  money_out: 'Unexplained money out',
  float: 'Insufficient money in the paying account',
  blocked: 'Payments are blocked',
  unreadable: 'Unreadable answer',
  statement_gap: 'Missing statement',
  opening_balance: 'Opening balance differs from the previous closing balance',
  bank_balance: 'Bank balance differs from the books',
}

const decisions = {
  ignore: 'Nothing changes.',
  attach: 'The answer belongs to the payment below: money in means that it was returned, money out that it was paid.',
  give_back: 'The payment was not made: the money is returned to the member, who can withdraw it again.',
  recover: 'The bank paid after all: the members repay, first from their available balance.',
  write_off: 'The operator bears the loss; the float is short until the operator covers it.',
  book: 'The money moves a partner’s float or pays a settlement.',
} as const
type Decision = keyof typeof decisions

/** The decisions that the server accepts: money that the bank booked for us cannot be ignored. */
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

/** Whether the bank debited a different sum for a batch. The operator must then name the payments that the bank did not make. */
const isDebitOfBatch = ({ kind, amount, batchId, withdrawalId }: PayoutException) =>
  kind === 'amount' && amount !== null && batchId !== null && withdrawalId === null

const isOfBatch = ({ batchId, withdrawalId }: PayoutException) => batchId !== null && withdrawalId === null

function bodyOf(given: Record<string, string>, { amount }: PayoutException): ExceptionClosing {
  const fields = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== ''))
  const { decision = '', note = '', charge, borneBy, ...others } = fields
  // The bank's text can name several payments.
  const isOfSeveral = decision === 'attach' && (others.reference ?? '').trim().split(/[\s,;]+/).length > 1
  const { reference, references = isOfSeveral ? reference : undefined, ...rest } = others
  const currency = amount?.currency
  return {
    ...rest,
    ...(reference === undefined || isOfSeveral ? {} : { reference }),
    // The server validates the fields.
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

/** The only payment that the bank's text names, or several payments that add up to the money. */
function suggestedReferences({ proposals, amount }: PayoutExceptionDetails): string {
  const sum = proposals.reduce((total, payment) => total + payment.amount.amount, 0)
  const isExact = amount !== null && sum === Math.abs(amount.amount)
  return proposals.length === 1 || isExact ? proposals.map(({ reference }) => reference).join(' ') : ''
}

function Decide({ exception }: { exception: PayoutExceptionDetails }) {
  const { id, partnerId, amount } = exception
  const [decision, setDecision] = useState<Decision>()
  return (
    <Panel title="Decide">
      <Form
        submit="Close the exception"
        isFinal
        onSubmit={async fields => {
          const { closedAt } = await operators.closePayoutException(id, bodyOf(fields, exception))
          announce(
            closedAt === null ? 'Proposed; another person must make the same decision' : 'Closed',
            'operator-exception',
            'operator-proposals',
          )
        }}
      >
        <Options
          label="Decision"
          name="decision"
          meanings={decisions}
          among={choicesFor(exception)}
          missing="Choose a decision"
          onChoose={setDecision}
        />
        {decision === 'attach' && (
          <Field
            label="Payment or batch reference"
            name="reference"
            problemsOf={['references']}
            note="MM… or the withdrawal id; separate several payments that add up to the money with spaces"
            value={suggestedReferences(exception)}
            isRequired
          />
        )}
        {(decision === 'attach' || decision === 'give_back') && amount !== null && (
          <div class="form-row">
            <Field
              label={`Bank charge, ${amount.currency}`}
              name="charge"
              note="If the amount differs from the payment’s"
            />
            <BorneBy label="Borne by" />
          </div>
        )}
        {decision === 'give_back' && isDebitOfBatch(exception) && (
          <Field
            label="References of payments that the bank did not make"
            name="references"
            note="MM…, separated by spaces. They must add up to the amount not debited; the other payments then count as paid"
            isRequired
          />
        )}
        {decision === 'recover' && exception.kind === 'money_out' && (
          <Field
            label="References of payments that the bank made"
            name="references"
            note="MM…, separated by spaces. Payments whose money was returned and that add up to the debit"
            value={exception.proposals.map(({ reference }) => reference).join(' ')}
            isRequired
          />
        )}
        {(decision === 'recover' || decision === 'write_off') && isOfBatch(exception) && (
          <Field
            label="References of payments that the bank made"
            name="references"
            note="MM…, separated by spaces. Leave empty for all payments whose money was returned"
          />
        )}
        {decision === 'write_off' && exception.withdrawalId === null && <PartnerField partnerId={partnerId} />}
        {decision === 'book' && (
          <>
            <PartnerField partnerId={partnerId} />
            <div class="form-row">
              <Field label="Pay cycle" name="payCycleId" note="If the money pays a settlement: pc_…" />
              <Field
                label="Movement reference"
                name="reference"
                note="If the money does not pay a settlement. Defaults to the bank’s reference"
              />
            </div>
          </>
        )}
        <ReasonField />
      </Form>
    </Panel>
  )
}

function PartnerField({ partnerId }: { partnerId: string | null }) {
  const partners = session.value?.partners ?? []
  return (
    <Choice
      label="Partner whose float it is"
      name="partnerId"
      value={partnerId ?? ''}
      choices={{ '': 'Choose the partner', ...Object.fromEntries(partners.map(({ id, name }) => [id, name])) }}
      missing="Choose the partner"
    />
  )
}

function Decided({ exception: { decision, note, closedBy, closedAt } }: { exception: PayoutException }) {
  const meaning = decision === 'applied' ? 'Closed automatically: a later answer explains it' : undefined
  return (
    <KeyValuesPanel
      title="Decided"
      entries={[
        ['Decision', decision === null ? '–' : (meaning ?? inWords(decision))],
        ['Reason', note ?? '–'],
        ['By', closedBy === 'system' ? 'Midmonth' : <Person key="by" who={closedBy} />],
        ['When', <Time key="closed" at={closedAt} />],
      ]}
    />
  )
}

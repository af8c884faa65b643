import { useState } from 'preact/hooks'
import { amountIn, Choice, Field, Form, readFields } from '../../components/form.tsx'
import { Drawer } from '../../components/layout.tsx'
import { Amount } from '../../components/values.tsx'
import type { PaymentOutcome, Payout } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'
import { reload } from '../../query.ts'
import { toast } from '../../toasts.ts'

type Payment = Pick<Payout, 'reference' | 'amount' | 'outcome' | 'removedAt'>

const outcomes = {
  paid: ['Paid', 'The bank made the payment. The withdrawal becomes paid.'],
  failed: [
    'Failed',
    'The bank has not made the payment and will not. The money is returned to the member. Rejected while the bank may still pay, or while an undecided debit may be this payment.',
  ],
  returned: [
    'Returned',
    'The bank made the payment, but the money came back and is returned to the member. Requires the day and amount of the credit.',
  ],
} as const
type ChosenOutcome = keyof typeof outcomes

/** The outcomes that can be recorded for a sent payment. */
function choicesFor({ outcome, removedAt }: Payment): ChosenOutcome[] {
  if (removedAt !== null || outcome === 'failed' || outcome === 'returned') return []
  return outcome === 'paid' ? ['returned'] : ['paid', 'failed', 'returned']
}

/** Records the outcome of a sent payment when no bank file contains the answer. */
export function RecordOutcome({ payment }: { payment: Payment }) {
  const [isOpen, setIsOpen] = useState(false)
  if (choicesFor(payment).length === 0) return null
  return (
    <>
      <button
        type="button"
        class="button"
        aria-label={`Record outcome of ${payment.reference}`}
        onClick={() => setIsOpen(true)}
      >
        Record outcome
      </button>
      <Drawer title={`Outcome of ${payment.reference}`} isOpen={isOpen} onClose={() => setIsOpen(false)}>
        {isOpen && <OutcomeForm payment={payment} onDone={() => setIsOpen(false)} />}
      </Drawer>
    </>
  )
}

function OutcomeForm({ payment, onDone }: { payment: Payment; onDone: () => void }) {
  const [outcome, setOutcome] = useState<ChosenOutcome>()
  const { reference, amount } = payment
  return (
    <>
      <p>
        For a payment of <Amount money={amount} /> without an answer in the bank’s files. If a later file reports the
        same outcome, nothing changes; a different outcome opens an exception. If two people had to approve the batch,
        or if the operator bears a charge, another person must record the same outcome.
      </p>
      <Form
        submit="Record the outcome"
        isFinal
        onSubmit={async fields => {
          const { outcome: recorded } = await operators.decidePaymentOutcome(reference, bodyOf(fields, payment))
          toast(recorded === fields.outcome ? 'Recorded' : 'Proposed; another person must record the same outcome')
          reload('operator-batch', 'operator-proposals', 'withdrawal')
          onDone()
        }}
      >
        {problemOf => (
          <>
            <fieldset class="role-fields">
              <legend>Outcome</legend>
              {choicesFor(payment).map(choice => (
                <label key={choice}>
                  <input type="radio" name="outcome" value={choice} onChange={() => setOutcome(choice)} />
                  <span>
                    <b>{outcomes[choice][0]}</b> <span class="quiet">{outcomes[choice][1]}</span>
                  </span>
                </label>
              ))}
            </fieldset>
            {problemOf('outcome') !== undefined && (
              <p class="field-problem" role="alert">
                Choose an outcome
              </p>
            )}
            {outcome === 'returned' && (
              <>
                <div class="form-row">
                  <Field
                    label="Booked on"
                    name="bookedOn"
                    type="date"
                    problem={problemOf('bookedOn')}
                    note="The day of the credit"
                    isRequired
                  />
                  <Field
                    label={`Amount that arrived, ${amount.currency}`}
                    name="amount"
                    problem={problemOf('amount')}
                    note="If less than the payment, the bank kept the difference as a charge"
                    isRequired
                  />
                </div>
                <Choice
                  label="Charge borne by"
                  name="borneBy"
                  value="operator"
                  choices={[
                    ['operator', 'The operator'],
                    ['partner', 'The partner'],
                  ]}
                />
              </>
            )}
            <Field
              label="Evidence"
              name="note"
              problem={problemOf('note')}
              note="For operators and the audit log; no personal data"
              isRequired
            />
          </>
        )}
      </Form>
    </>
  )
}

function bodyOf(fields: Record<string, string>, { amount: { currency } }: Payment): PaymentOutcome {
  const { note = '', borneBy } = fields
  // The server rejects a missing outcome.
  const outcome = (fields.outcome ?? '') as ChosenOutcome
  if (outcome !== 'returned') return { outcome, note }
  const credit = readFields(fields, field => ({
    bookedOn: field('bookedOn', dayIn),
    amount: field('amount', amountIn(currency)),
  }))
  return { outcome, note, credit, borneBy: borneBy === 'partner' ? 'partner' : 'operator' }
}

function dayIn(text: string): string {
  if (text === '') throw new TypeError('Enter the day on which the bank booked the credit')
  return text
}

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
  paid: ['Paid', 'The bank has paid it. The withdrawal is paid.'],
  failed: [
    'Failed',
    'The bank has not paid it, and will not. The member has the money back. Refused while the bank may still pay, and while a debit that waits for a decision may be this payment.',
  ],
  returned: [
    'Returned',
    'The bank has paid it, and the money came back. The member has the money back. Needs the day and amount of the credit.',
  ],
} as const
type Outcome = keyof typeof outcomes

/** The outcomes that can be recorded for a payment that was sent. */
function choicesFor({ outcome, removedAt }: Payment): Outcome[] {
  if (removedAt !== null || outcome === 'failed' || outcome === 'returned') return []
  return outcome === 'paid' ? ['returned'] : ['paid', 'failed', 'returned']
}

/** Records the outcome of a sent payment that no file of the bank answers. */
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
  const [outcome, setOutcome] = useState<Outcome>()
  const { reference, amount } = payment
  return (
    <>
      <p>
        For the payment of <Amount money={amount} /> that no file of the bank answers. A file that says the same later
        changes nothing; a file that says something else opens an exception. If two people had to approve the batch, or
        the operator bears a charge, another person must record the same outcome.
      </p>
      <Form
        submit="Record the outcome"
        isFinal
        onSubmit={async fields => {
          const { outcome: recorded } = await operators.decidePaymentOutcome(reference, bodyOf(fields, payment))
          toast(recorded === fields.outcome ? 'Recorded' : 'Proposed: another person must record the same outcome')
          reload('operator-batch', 'operator-proposals', 'withdrawal')
          onDone()
        }}
      >
        {problemOf => (
          <>
            <fieldset class="role-fields">
              <legend>What became of it</legend>
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
                Choose what became of it
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
                    note="If it is less than the payment, the bank kept the difference as a charge"
                    isRequired
                  />
                </div>
                <Choice
                  label="A charge is borne by"
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
              label="How you know"
              name="note"
              problem={problemOf('note')}
              note="For operators and the audit log; nothing personal"
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
  // The server says that the outcome is missing.
  const outcome = (fields.outcome ?? '') as Outcome
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

import { useState } from 'preact/hooks'
import { announce } from '../../act.ts'
import { amountIn, BorneBy, Field, Form, Options, ReasonField, readFields } from '../../components/form.tsx'
import { DrawerButton } from '../../components/layout.tsx'
import { Amount } from '../../components/values.tsx'
import type { PaymentOutcome, Payout } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'

type Payment = Pick<Payout, 'reference' | 'amount' | 'outcome' | 'removedAt'>

const outcomes = {
  paid: 'The bank made the payment. The withdrawal becomes paid.',
  failed:
    'The bank has not made the payment and will not. The money is returned to the member. Rejected while the bank may still pay, or while an undecided debit may be this payment.',
  returned:
    'The bank made the payment, but the money came back and is returned to the member. Requires the day and amount of the credit.',
} as const
type ChosenOutcome = keyof typeof outcomes

/** The outcomes that can be recorded for a sent payment. */
function choicesFor({ outcome, removedAt }: Payment): ChosenOutcome[] {
  if (removedAt !== null || outcome === 'failed' || outcome === 'returned') return []
  return outcome === 'paid' ? ['returned'] : ['paid', 'failed', 'returned']
}

/** Records the outcome of a sent payment when no bank file contains the answer. */
export function RecordOutcome({ payment }: { payment: Payment }) {
  const { reference } = payment
  if (choicesFor(payment).length === 0) return null
  return (
    <DrawerButton text="Record outcome" title={`Outcome of ${reference}`} label={`Record outcome of ${reference}`}>
      {close => <OutcomeForm payment={payment} onDone={close} />}
    </DrawerButton>
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
          announce(
            recorded === fields.outcome ? 'Recorded' : 'Proposed; another person must record the same outcome',
            'operator-batch',
            'operator-proposals',
            'withdrawal',
          )
          onDone()
        }}
      >
        <Options
          label="Outcome"
          name="outcome"
          meanings={outcomes}
          among={choicesFor(payment)}
          missing="Choose an outcome"
          onChoose={setOutcome}
        />
        {outcome === 'returned' && (
          <>
            <div class="form-row">
              <Field label="Booked on" name="bookedOn" type="date" note="The day of the credit" isRequired />
              <Field
                label={`Amount that arrived, ${amount.currency}`}
                name="amount"
                note="If less than the payment, the bank kept the difference as a charge"
                isRequired
              />
            </div>
            <BorneBy label="Charge borne by" />
          </>
        )}
        <ReasonField label="Evidence" />
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

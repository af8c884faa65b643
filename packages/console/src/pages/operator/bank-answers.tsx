import { act } from '../../act.ts'
import { api, partnerHeaders } from '../../api.ts'
import { ChoiceButton } from '../../components/button.tsx'
import { DrawerButton } from '../../components/layout.tsx'
import { plural } from '../../format.ts'
import type { PayoutBatch } from '../../generated/operator.ts'
import { operators } from '../../operators.ts'

type Answers = Parameters<typeof api.sandbox.bankFiles.answer>[1]

/** The files with which a sandbox bank can answer a batch. The title is the button's label. */
const answers: { title: string; meaning: string; file: Answers }[] = [
  {
    title: 'Pay all',
    meaning: 'Every payment is booked (camt.054).',
    file: { format: 'camt.054', outcomes: [{ outcome: 'paid' }] },
  },
  {
    title: 'Refuse all',
    meaning: 'The accounts are closed (pain.002, AC04).',
    file: { format: 'pain.002', outcomes: [{ outcome: 'failed', reasonCode: 'AC04' }] },
  },
  {
    title: 'Accept the batch',
    meaning: 'The bank has accepted the file (pain.002, ACSP).',
    file: { format: 'pain.002', batch: { outcome: 'accepted' } },
  },
  {
    title: 'Reject the batch',
    meaning:
      'The file is malformed (pain.002, FF01). The money is returned to the members, unless the bank may have another copy.',
    file: { format: 'pain.002', batch: { outcome: 'rejected', reasonCode: 'FF01' } },
  },
  {
    title: 'Reject the batch as a duplicate',
    meaning: 'The bank already has the message id (pain.002, DU01).',
    file: { format: 'pain.002', batch: { outcome: 'rejected', reasonCode: 'DU01' } },
  },
  {
    title: 'Reject the batch with free text',
    meaning: '“DUPLICATE FILE: message id already processed” (pain.002, NARR).',
    file: {
      format: 'pain.002',
      batch: { outcome: 'rejected', reasonCode: 'NARR', reasonText: 'DUPLICATE FILE: message id already processed' },
    },
  },
  {
    title: 'Return all',
    meaning: 'The money is returned after it was booked (camt.054, MD07).',
    file: { format: 'camt.054', outcomes: [{ outcome: 'returned', reasonCode: 'MD07' }] },
  },
]

/** Simulates the bank of a sandbox: generates its answer to a sent batch and imports the file as if an operator had dropped it. */
export function BankAnswers({ batch: { id, rail } }: { batch: PayoutBatch }) {
  const answer = async ({ file }: (typeof answers)[number]) => {
    // The simulated bank answers in the name of the partner that owns the payments.
    const { payments } = await operators.listBatchPayments(id, { take: 1 })
    const headers = partnerHeaders(payments[0]?.partnerId)
    const response = await api.sandbox.bankFiles.answer(id, file, { headers })
    const { records } = await operators.importBankFile(rail, await response.blob(), { name: `${id}.xml` })
    return records
  }
  const choose = async (chosen: (typeof answers)[number], close: () => void) => {
    const records = await act(
      () => answer(chosen),
      count => `${plural(count, 'record')} imported; the withdrawals are updated within seconds`,
      'operator-',
    )
    if (records !== undefined) close()
  }
  return (
    <DrawerButton text="Simulate the bank">
      {close => (
        <>
          <p>In a sandbox, you choose the bank’s answer. The file is imported as if you had dropped it.</p>
          <ul class="choices">
            {answers.map(each => (
              <li key={each.title}>
                <ChoiceButton act={() => choose(each, close)}>
                  <b>{each.title}</b>
                  <span class="quiet">{each.meaning}</span>
                </ChoiceButton>
              </li>
            ))}
          </ul>
        </>
      )}
    </DrawerButton>
  )
}

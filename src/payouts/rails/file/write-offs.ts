import { sql, type Tx } from '../../../database/database.ts'
import { problem } from '../../../errors.ts'
import * as float from '../../../float/float.ts'
import { inWords } from '../../../money.ts'
import type * as exceptions from '../../exceptions.ts'
import { keepWrittenOff } from './bank-records.ts'
import { lockGivenBack } from './recoveries.ts'

/**
 * Books money that left the account at the operator's cost, in the floats that it left: of the partners whose payments the bank made,
 * or of the partner that is named. Nothing changes for members.
 * @throws Problem `Conflict` if no money left, or the payments do not explain how much
 */
export async function writeOff(
  tx: Tx,
  {
    exception,
    references,
    partnerId,
    now,
  }: {
    exception: exceptions.Decided
    references: readonly string[] | undefined
    partnerId: string | undefined
    now: Date
  },
): Promise<void> {
  const { id, rail, kind, amount, currency, bookedOn, reference } = exception
  if (amount === null || currency === null || amount >= 0n || bookedOn === null)
    throw problem('Conflict', 'Only money that left the account is written off')
  const costs = new Map<string, bigint>()
  const writtenOff: string[] = []
  if (kind === 'money_out') {
    const whose = partnerId ?? exception.partnerId
    if (whose === null) throw problem('Conflict', 'Name the partner whose float the money left')
    costs.set(whose, -amount)
  } else {
    const { payments } = await lockGivenBack(tx, { exception, references })
    for (const payment of payments) {
      costs.set(payment.partnerId, (costs.get(payment.partnerId) ?? 0n) + payment.amount)
      writtenOff.push(payment.reference)
    }
    const total = payments.reduce((sum, payment) => sum + payment.amount, 0n)
    if (total !== -amount)
      throw problem(
        'Conflict',
        `The bank debited ${inWords({ amount: -amount, currency })}, of which ${inWords({ amount: total, currency })} were given back; recover the payments, so that the others are paid`,
      )
  }
  for (const [whose, units] of [...costs].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const cost = { partnerId: whose, amount: { amount: units, currency }, exceptionId: id, now }
    const { movementId } = await float.bearCost(tx, cost)
    await sql`
      insert into bank_records (rail, message_id, entry_key, reference, movement_id, created_at)
      values (${rail}, 'operator', ${`${id} ${whose}`}, ${reference ?? ''}, ${movementId}, ${now})`.execute(tx)
  }
  await keepWrittenOff(tx, { rail, exceptionId: id, references: writtenOff, now })
}

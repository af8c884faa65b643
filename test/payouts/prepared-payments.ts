import { randomBytes } from 'node:crypto'
import { type Reader, sql } from '../../src/database/database.ts'
import type { Payment } from '../../src/payouts/payments/payment.ts'
import { create } from '../../src/payouts/payouts.ts'
import { locatedId } from '../harness/api-response.ts'
import type { Harness } from '../harness/harness.ts'

/** Creates payouts ready to be submitted, as claiming withdrawals does. */
export async function preparePayments(
  { db, ownerDb, call, addMember, partner, clock }: Harness,
  { rail, count }: { rail: string; count: number },
): Promise<Payment[]> {
  const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
  const memberId = await addMember({ available: 20_000, tier: 'Silver EU', account, currency: 'EUR' })
  const body = { memberId, amount: { amount: 5_050, currency: 'EUR' } }
  const { withdrawalIntentId } = (await call('POST', '/v1/pay/withdrawals/intent', { body })).body
  const template = locatedId(await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } }))
  const ids = Array.from({ length: count }, () => randomBytes(8).toString('hex'))
  await copies(ownerDb, {
    table: 'withdrawal_intents',
    id: withdrawalIntentId,
    changes: ids.map(id => ({ id: `wi_${id}` })),
  })
  await copies(ownerDb, {
    table: 'withdrawals',
    id: template,
    changes: ids.map(id => ({ id: `w_${id}`, withdrawal_intent_id: `wi_${id}` })),
  })
  const netAmount = { amount: 5_000n, currency: 'EUR' } as const
  const payments = ids.map(id => ({ partnerId: partner.id, withdrawalId: `w_${id}`, netAmount }))
  const references = await db.transaction().execute(tx => create(tx, { rail, claimed: payments, now: clock.now() }))
  return payments.map(({ partnerId, withdrawalId }) => ({
    ...{ partnerId, withdrawalId, netAmount, account },
    reference: references.get(withdrawalId) ?? '',
  }))
}

async function copies(
  db: Reader,
  { table, id, changes }: { table: string; id: string; changes: Record<string, string>[] },
): Promise<void> {
  const name = sql.table(table)
  // A new intent must be pending: the database refuses to insert a completed one.
  const born = table === 'withdrawal_intents' ? `{"status": "pending"}` : '{}'
  await sql`
    insert into ${name}
    select (jsonb_populate_record(t, c || ${born}::jsonb)).*
      from ${name} t, jsonb_array_elements(${JSON.stringify(changes)}::jsonb) c where t.id = ${id}`.execute(db)
}

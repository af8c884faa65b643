import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { euroRail, FileBank } from '../../../../test/file-bank.ts'
import { type Harness, locatedId, startHarness } from '../../../../test/harness.ts'
import { type RailUnderTest, railConformance } from '../../../../test/rail-conformance.ts'
import { type Reader, sql } from '../../../database/database.ts'
import { create } from '../../payouts.ts'
import type { Payment } from '../../rail.ts'
import { fileRail } from './file-rail.ts'

type Outcome = Parameters<RailUnderTest['payment']>[0]

railConformance('of files', async (): Promise<RailUnderTest> => {
  const harness = await startHarness()
  const { db, clock, stop } = harness
  const bank = new FileBank()
  const settings = euroRail({ delivery: async () => bank })
  const rail = fileRail({ db, now: clock.now, settings })
  const context = { db, log: pino({ level: 'silent' }), now: clock.now }
  const prepared = await preparePayments(harness, { rail: settings.name, count: rail.paymentsMax + 50 })
  const wanted = new Map<string, Outcome>()
  const answered = new Set<string>()
  return {
    rail,
    restriction: 'account_refused',
    payment(outcome) {
      const payment = prepared.pop()
      if (payment === undefined) throw new Error('More payments are needed')
      wanted.set(payment.reference, outcome)
      return payment
    },
    async letTimeGoBy() {
      // Further than any cut-off, also over Easter.
      clock.advance({ days: 6 })
      await rail.files?.send(context)
      const lines = [...bank.payments().keys()]
        .filter(reference => !answered.has(reference))
        .flatMap(reference => {
          answered.add(reference)
          const outcome = wanted.get(reference)
          if (outcome === 'failed') return [`failed;${reference};;AC04`]
          return [`paid;${reference}`, ...(outcome === 'returned' ? [`returned;${reference};;MS03`] : [])]
        })
      bank.inbox.set('answers.txt', [`head;${clock.now().toISOString()}`, ...lines, 'end'].join('\n'))
      await rail.files?.receive(context)
    },
    async executed(reference) {
      // What the bank refuses is in a file, but it is not executed.
      return wanted.get(reference) === 'failed' ? 0 : (bank.payments().get(reference)?.length ?? 0)
    },
    stop,
  }
})

/** Creates payouts that wait to be submitted, as claiming withdrawals does. */
async function preparePayments(
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
  const amount = { amount: 5_000n, currency: 'EUR' } as const
  const payments = ids.map(id => ({ partnerId: partner.id, withdrawalId: `w_${id}`, netAmount: amount }))
  const references = await db.transaction().execute(tx => create(tx, { rail, claimed: payments, now: clock.now() }))
  return payments.map(({ partnerId, withdrawalId }) => ({
    ...{ partnerId, withdrawalId, amount, account },
    reference: references.get(withdrawalId) ?? '',
  }))
}

async function copies(
  db: Reader,
  { table, id, changes }: { table: string; id: string; changes: Record<string, string>[] },
): Promise<void> {
  const name = sql.table(table)
  // A completed intent cannot be inserted: it is born pending.
  const born = table === 'withdrawal_intents' ? `{"status": "pending"}` : '{}'
  await sql`
    insert into ${name}
    select (jsonb_populate_record(t, c || ${born}::jsonb)).*
      from ${name} t, jsonb_array_elements(${JSON.stringify(changes)}::jsonb) c where t.id = ${id}`.execute(db)
}

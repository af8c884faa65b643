import type pg from 'pg'
import { lastFour } from '../../src/bank-accounts/rules.ts'
import { openAccount, type StoredAccount } from '../../src/bank-accounts/sealed-account.ts'
import { Problem, problem } from '../../src/kernel/errors.ts'
import { newId } from '../../src/kernel/ids.ts'
import { type Currency, toWire } from '../../src/kernel/money.ts'
import { addMinutes } from '../../src/kernel/time.ts'
import { memberNotFound } from '../../src/members/rules.ts'
import { noOpenCycle } from '../../src/pay-cycles/rules.ts'
import { sealerOf } from '../../src/sealing/held.ts'
import { lowestAmount, type Tier } from '../../src/tiers/rules.ts'
import { transfersOnEntering } from '../../src/withdrawals/bookings.ts'
import {
  decideIntent,
  type Facts,
  type Intent,
  type MemberFacts,
  refuseCompletion,
  suspensionReason,
} from '../../src/withdrawals/rules.ts'
import { connectWithKey } from '../machine/installation-key.ts'
import type { Answer } from './idempotency.ts'

type Reader = Pick<pg.PoolClient, 'query'>

/** Opens the accounts. */
const { db, close } = await connectWithKey(process.env.DATABASE_URL ?? '')
const sealer = sealerOf(db)
await close()

/** Quotes a withdrawal: reads the facts, writes the intent and its event. */
export async function createIntent(
  tx: pg.PoolClient,
  {
    partnerId,
    intentMinutes,
    memberId,
    amount,
    now,
  }: {
    partnerId: string
    intentMinutes: number
    memberId: string
    amount: { amount: number; currency: string }
    now: Date
  },
): Promise<Answer> {
  const { facts } = await readFacts(tx, { partnerId, memberId })
  const money = { amount: BigInt(amount.amount), currency: amount.currency as Currency }
  const quote = decideIntent(facts, { memberId, amount: money })
  if (quote instanceof Problem) throw quote
  const { account, ...terms } = quote
  const id = newId('withdrawalIntent', now)
  const expiresAt = addMinutes(now, intentMinutes)
  await tx.query({
    name: 'insert-intent',
    text: `insert into withdrawal_intents
                  (partner_id, id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee, employer_fee, tier,
                   tier_version, account, created_at, expires_at)
           values ($1, $2, $3, $4, 'pending', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    values: [
      ...[partnerId, id, memberId, terms.payCycleId, terms.currency, terms.grossAmount, terms.netAmount, terms.fee],
      ...[terms.employerFee, terms.tier, terms.tierVersion, facts.member?.sealedAccount, now, expiresAt],
    ],
  })
  await appendEvent(tx, {
    partnerId,
    type: 'intent.created',
    resourceId: id,
    data: { withdrawalIntentId: id, ...eventData(quote) },
    now,
  })
  const { currency } = terms
  return {
    status: 201,
    headers: { 'x-intent-expires-at': expiresAt.toISOString() },
    resourceId: id,
    body: {
      withdrawalIntentId: id,
      netAmount: toWire({ amount: terms.netAmount, currency }),
      fee: toWire({ amount: terms.fee, currency }),
      accountDetails: account,
      bankAccount: { lastFour: lastFour(account) },
    },
  }
}

/** Completes an intent: locks it and its member, decides again, posts the transfer and emits the event. */
export async function completeIntent(
  tx: pg.PoolClient,
  { partnerId, holdSeconds, intentId, now }: { partnerId: string; holdSeconds: number; intentId: string; now: Date },
): Promise<Answer> {
  const intent = await lockIntent(tx, { partnerId, intentId })
  const { memberId, payCycleId, currency, grossAmount, netAmount, fee, employerFee } = intent
  // A separate statement, so that the next ones see what the previous lock holder committed.
  await tx.query({
    name: 'lock-member',
    text: 'select from members where partner_id = $1 and id = $2 for no key update',
    values: [partnerId, memberId],
  })
  if (intent.status === 'completed') return completed(await findWithdrawal(tx, { partnerId, intentId }))
  const { facts } = await readFacts(tx, { partnerId, memberId })
  const refusal = refuseCompletion(facts, intent, now)
  if (refusal !== undefined) throw refusal

  const id = newId('withdrawal', now)
  await tx.query({
    name: 'insert-withdrawal',
    text: `insert into withdrawals
                  (partner_id, id, withdrawal_intent_id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee,
                   employer_fee, created_at, due_at, balance_after)
           values ($1, $2, $3, $4, $5, 'held', $6, $7, $8, $9, $10, $11, $12, $13)`,
    values: [
      ...[partnerId, id, intentId, memberId, payCycleId, currency, grossAmount, netAmount, fee, employerFee, now],
      ...[new Date(now.getTime() + holdSeconds * 1_000), (facts.member?.available ?? 0n) - grossAmount],
    ],
  })
  const transfers = transfersOnEntering('held', intent, payCycleId)
  const ids = transfers.map(() => newId('transfer', now)).sort()
  await tx.query({
    name: 'insert-transfers',
    text: `with balance as (
             update ledger_balances
                set available = available - $11, transfer_count = transfer_count + $12
              where partner_id = $1 and member_id = $4 and currency = $3
             returning transfer_count - $12 as counted_before
           )
           insert into ledger_transfers
                  (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at,
                   member_sequence)
           select $1, id, $2, 'withdrawal.held', debit, credit, t.amount, $3, $4, $5, $6, counted_before + place
             from balance, unnest($7::text[], $8::text[], $9::text[], $10::bigint[])
               with ordinality as t (id, debit, credit, amount, place)`,
    values: [
      ...[partnerId, id, currency, memberId, payCycleId, now, ids],
      ...[transfers.map(({ debit }) => debit), transfers.map(({ credit }) => credit)],
      ...[transfers.map(({ amount }) => amount), grossAmount, transfers.length],
    ],
  })
  await tx.query({
    name: 'insert-float-change',
    text: `insert into ledger_float_changes (partner_id, currency, id, float_change, pending_change) values ($1, $2, $3, 0, $4)`,
    values: [partnerId, currency, ids[0], netAmount],
  })
  await tx.query({
    name: 'insert-deduction',
    text: `with deducted as (
             insert into ledger_deductions as d (partner_id, pay_cycle_id, member_id, currency, amount)
             values ($1, $2, $3, $4, $6)
                 on conflict (partner_id, pay_cycle_id, member_id, currency) do update set amount = d.amount + excluded.amount
             returning amount
           )
           insert into ledger_cycle_changes (partner_id, pay_cycle_id, currency, id, available_change, deductions_change)
           select $1, $2, $4, $5, -$6::bigint, (amount <> 0)::integer - (amount <> $6)::integer from deducted`,
    values: [partnerId, payCycleId, memberId, currency, ids[0], grossAmount],
  })
  await tx.query({
    name: 'complete-intent',
    text: `update withdrawal_intents set status = 'completed' where partner_id = $1 and id = $2`,
    values: [partnerId, intentId],
  })
  await appendEvent(tx, {
    partnerId,
    type: 'intent.completed',
    resourceId: intentId,
    data: { withdrawalIntentId: intentId, ...eventData(intent) },
    now,
  })
  await appendEvent(tx, {
    partnerId,
    type: 'withdrawal.held',
    resourceId: id,
    data: { withdrawalId: id, withdrawalIntentId: intentId, ...eventData(intent) },
    now,
  })
  return completed(id)
}

/** Reads the available balance of a member. */
export async function readBalance(db: Reader, { partnerId, memberId }: { partnerId: string; memberId: string }) {
  const { facts, payCycle } = await readFacts(db, { partnerId, memberId })
  if (facts.member === null) throw memberNotFound(memberId)
  if (facts.payCycleId === null) throw noOpenCycle()
  const { rows } = await db.query<{ last: Date | null }>({
    name: 'last-pay-run',
    text: `select max(available_at) as last from pay_runs
            where partner_id = $1 and pay_cycle_id = $2 and status = 'Available'`,
    values: [partnerId, facts.payCycleId],
  })
  const last = rows[0]?.last ?? null
  const { tier, available } = facts.member
  const { currency } = tier
  return {
    available: toWire({ amount: available, currency }),
    lowerLimit: toWire({ amount: lowestAmount(tier), currency }),
    upperLimit: toWire({ amount: tier.upperLimit, currency }),
    payCycle: { id: facts.payCycleId, ...payCycle, lastPayDate: last?.toISOString() ?? null },
    isTemporarilyUnavailable: suspensionReason(facts) !== null,
  }
}

type FactsRow = Omit<Tier, 'name'> &
  StoredAccount & {
    paused: boolean
    payCycleId: string | null
    startDate: string
    endDate: string
    memberId: string | null
    status: MemberFacts['status']
    tier: string
    available: bigint
  }

async function readFacts(
  db: Reader,
  { partnerId, memberId }: { partnerId: string; memberId: string },
): Promise<{ facts: Facts; payCycle: { startDate: string; endDate: string } }> {
  const { rows } = await db.query<FactsRow>({
    name: 'read-facts',
    text: `select p.paused, c.id as "payCycleId", c.start_date as "startDate", c.end_date as "endDate",
                  m.id as "memberId", m.status, m.account, k.payment_key as "paymentKey", t.name as tier, t.version, t.currency,
                  v.fee_fixed as "feeFixed", v.fee_bps as "feeBps", v.fee_min as "feeMin", v.fee_max as "feeMax",
                  v.fee_payer as "feePayer", v.lower_limit as "lowerLimit", v.upper_limit as "upperLimit",
                  v.withdrawals_per_day as "withdrawalsPerDay", v.withdrawals_per_cycle as "withdrawalsPerCycle",
                  coalesce(b.available, 0) as available
             from partners p
             left join pay_cycles c on c.partner_id = p.id and c.status = 'Open'
             left join members m on m.partner_id = p.id and m.id = $2
             left join member_keys k on k.partner_id = p.id and k.member_id = m.id
             left join tiers t on t.partner_id = p.id and t.name = m.tier
             left join tier_versions v on v.partner_id = p.id and v.tier = t.name and v.version = t.version
             left join ledger_balances b on b.partner_id = p.id and b.member_id = m.id and b.currency = t.currency
            where p.id = $1`,
    values: [partnerId, memberId],
  })
  if (rows[0] === undefined) throw new Error(`Partner ${partnerId} is gone`)
  const { paused, payCycleId, startDate, endDate, ...member } = rows[0]
  const { memberId: id, status, available, tier: name, account, paymentKey, ...terms } = member
  const known = id !== null && {
    ...{ id, status, available, tier: { name, ...terms }, withdrawalsToday: 0, withdrawalsThisCycle: 0 },
    account: openAccount(sealer, { account, paymentKey }, { partnerId, memberId }),
    sealedAccount: account,
    ...{ accountRefused: null, reviewReason: null },
  }
  return {
    facts: { hasRail: true, paused, float: null, payCycleId, member: known || null },
    payCycle: { startDate, endDate },
  }
}

async function lockIntent(
  tx: pg.PoolClient,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<Intent> {
  const { rows } = await tx.query<Omit<Intent, 'account'> & StoredAccount>({
    name: 'lock-intent',
    text: `select id, member_id as "memberId", pay_cycle_id as "payCycleId", status, currency, gross_amount as "grossAmount", net_amount as "netAmount", fee,
                  employer_fee as "employerFee", tier, tier_version as "tierVersion", account, payment_key as "paymentKey",
                  created_at as "createdAt", expires_at as "expiresAt"
             from withdrawal_intents join member_keys using (partner_id, member_id)
            where partner_id = $1 and id = $2 for update of withdrawal_intents`,
    values: [partnerId, intentId],
  })
  if (rows[0] === undefined) throw problem('NotFound', 'There is no such withdrawal intent')
  const { account: sealed, paymentKey, ...intent } = rows[0]
  const account = openAccount(sealer, { account: sealed, paymentKey }, { partnerId, memberId: intent.memberId })
  if (account === null) throw new Error(`${intentId} has no account`)
  return { ...intent, account }
}

async function findWithdrawal(
  tx: pg.PoolClient,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<string> {
  const { rows } = await tx.query<{ id: string }>({
    name: 'find-withdrawal',
    text: 'select id from withdrawals where partner_id = $1 and withdrawal_intent_id = $2',
    values: [partnerId, intentId],
  })
  if (rows[0] === undefined) throw new Error(`${intentId} is completed and has no withdrawal`)
  return rows[0].id
}

function completed(withdrawalId: string): Answer {
  return {
    status: 201,
    headers: { location: `/v1/pay/withdrawals/${withdrawalId}` },
    resourceId: withdrawalId,
    body: { message: 'The withdrawal is on its way' },
  }
}

function eventData({
  memberId,
  payCycleId,
  grossAmount,
  fee,
  netAmount,
  currency,
}: Omit<Intent, 'id' | 'status' | 'createdAt' | 'expiresAt'>) {
  const money = (value: bigint) => toWire({ amount: value, currency })
  return { memberId, payCycleId, amount: money(grossAmount), fee: money(fee), netAmount: money(netAmount) }
}

async function appendEvent(
  tx: pg.PoolClient,
  event: { partnerId: string; type: string; resourceId: string; data: Record<string, unknown>; now: Date },
): Promise<void> {
  const { partnerId, type, resourceId, data, now } = event
  await tx.query({
    name: 'append-event',
    text: `insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
           select $1::text, $2, $3, $4::text, coalesce(max(sequence), 0) + 1, $5, $6
             from events where partner_id = $1 and resource_id = $4`,
    values: [partnerId, newId('event', now), type, resourceId, data, now],
  })
}

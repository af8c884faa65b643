import { type Page, type Reader, sql, type Tx } from '../db.ts'
import { problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import * as ledger from '../ledger/ledger.ts'
import type { Currency } from '../money.ts'
import { readFacts } from './facts.ts'
import * as intents from './intents.ts'
import { refuseCompletion, transfersOf } from './rules.ts'

type WithdrawalStatus = 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'

export type Withdrawal = {
  id: string
  memberId: string
  payCycleId: string
  status: WithdrawalStatus
  currency: Currency
  /** What left the member's pay: net plus their fee. */
  amount: bigint
  net: bigint
  fee: bigint
  createdAt: Date
}

// A listing has no status, so it holds only the withdrawals that stand: a failed one gave the money back.
const standing = ['held', 'submitted', 'paid'] as const

/**
 * Completes an intent: moves the money in the books and creates the withdrawal, in the caller's transaction. Completing
 * it again returns the same withdrawal and moves nothing.
 * @throws Problem `NotFound`, `Conflict` for an outdated intent, or any refusal that creating an intent can give
 */
export async function complete(
  tx: Tx,
  { partnerId, intentId, now }: { partnerId: string; intentId: string; now: Date },
): Promise<{ withdrawalId: string }> {
  const { memberId } = await intents.find(tx, { partnerId, intentId })
  // The member first, so that everything that moves this member's money takes turns; then the intent.
  await sql`select from members where partner_id = ${partnerId} and id = ${memberId} for no key update`.execute(tx)
  const intent = await intents.lock(tx, { partnerId, intentId })
  if (intent.status === 'completed') return await findByIntent(tx, { partnerId, intentId })
  const refusal = refuseCompletion(await readFacts(tx, { partnerId, memberId, now }), intent, now)
  if (refusal !== undefined) throw refusal

  const withdrawalId = newId('withdrawal', now)
  const { payCycleId, currency, amount, net, fee, employerFee } = intent
  await tx
    .insertInto('withdrawals')
    .values({
      ...{ partnerId, id: withdrawalId, withdrawalIntentId: intentId, memberId, payCycleId, status: 'held' },
      ...{ currency, amount, net, fee, employerFee, createdAt: now },
    })
    .execute()
  await ledger.post(tx, {
    partnerId,
    movementId: withdrawalId,
    reason: 'withdrawal.held',
    transfers: transfersOf(intent),
    now,
  })
  await intents.complete(tx, { partnerId, intent, now })
  await events.append(tx, {
    partnerId,
    type: 'withdrawal.held',
    resourceId: withdrawalId,
    data: {
      withdrawalId,
      withdrawalIntentId: intentId,
      memberId,
      payCycleId,
      amount: Number(amount),
      fee: Number(fee),
      netAmount: Number(net),
      currency,
    },
    now,
  })
  return { withdrawalId }
}

async function findByIntent(
  tx: Tx,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<{ withdrawalId: string }> {
  const { id } = await tx
    .selectFrom('withdrawals')
    .select('id')
    .where('partnerId', '=', partnerId)
    .where('withdrawalIntentId', '=', intentId)
    .executeTakeFirstOrThrow()
  return { withdrawalId: id }
}

/** @throws Problem `NotFound`, also for another partner's withdrawal */
export async function find(db: Reader, { partnerId, withdrawalId }: { partnerId: string; withdrawalId: string }) {
  const row = await db
    .selectFrom('withdrawals as w')
    .innerJoin('withdrawalIntents as i', join =>
      join.onRef('i.partnerId', '=', 'w.partnerId').onRef('i.id', '=', 'w.withdrawalIntentId'),
    )
    .select([
      'w.id',
      'w.withdrawalIntentId',
      'w.memberId',
      'w.payCycleId',
      'w.status',
      'w.currency',
      'w.amount',
      'w.net',
      'w.fee',
      'w.createdAt',
    ])
    .select(['i.accountHolder', 'i.sortCode', 'i.accountNumber', 'i.iban'])
    .where('w.partnerId', '=', partnerId)
    .where('w.id', '=', withdrawalId)
    .executeTakeFirst()
  if (row === undefined) throw problem('NotFound', 'There is no such withdrawal')
  return row
}

export type Filter = { memberId?: string; payCycleId?: string; from?: Date; before?: Date }

/** The withdrawals that stand, newest first. `from` is inclusive, `before` exclusive. */
export async function list(
  db: Reader,
  { partnerId, filter, page }: { partnerId: string; filter: Filter; page: Page },
): Promise<Withdrawal[]> {
  return await filtered(db, { partnerId, filter })
    .select(['id', 'memberId', 'payCycleId', 'status', 'currency', 'amount', 'net', 'fee', 'createdAt'])
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
}

export async function count(db: Reader, { partnerId, filter }: { partnerId: string; filter: Filter }): Promise<number> {
  const { total } = await filtered(db, { partnerId, filter })
    .select(sql<number>`count(*)::integer`.as('total'))
    .executeTakeFirstOrThrow()
  return total
}

function filtered(
  db: Reader,
  { partnerId, filter: { memberId, payCycleId, from, before } }: { partnerId: string; filter: Filter },
) {
  return db
    .selectFrom('withdrawals')
    .where('partnerId', '=', partnerId)
    .where('status', 'in', standing)
    .$if(memberId !== undefined, query => query.where('memberId', '=', memberId ?? ''))
    .$if(payCycleId !== undefined, query => query.where('payCycleId', '=', payCycleId ?? ''))
    .$if(from !== undefined, query => query.where('createdAt', '>=', from ?? new Date(0)))
    .$if(before !== undefined, query => query.where('createdAt', '<', before ?? new Date(0)))
}

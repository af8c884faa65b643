import { fromColumns, toColumns } from '../bank-accounts/rules.ts'
import { type Reader, sql, type Tx } from '../db.ts'
import { Problem, problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import type { Money } from '../money.ts'
import { addMinutes } from '../time.ts'
import { readFacts } from './facts.ts'
import { decideIntent, type Intent, statusAt } from './rules.ts'

/**
 * Creates an intent: a quote that holds for the partner's `intentMinutes` and reserves no funds, so that several may be open.
 * @throws Problem the first refusal of the table of errors
 */
export async function create(
  tx: Tx,
  {
    partner,
    memberId,
    amount,
    now,
  }: { partner: { id: string; intentMinutes: number }; memberId: string; amount: Money; now: Date },
): Promise<Intent> {
  const quote = decideIntent(await readFacts(tx, { partnerId: partner.id, memberId, now }), { memberId, amount })
  if (quote instanceof Problem) throw quote
  const intent: Intent = {
    ...quote,
    id: newId('withdrawalIntent', now),
    status: 'pending',
    createdAt: now,
    expiresAt: addMinutes(now, partner.intentMinutes),
  }
  const { account, ...columns } = intent
  await tx
    .insertInto('withdrawalIntents')
    .values({ ...columns, partnerId: partner.id, ...toColumns(account), accountHolder: account.accountHolder })
    .execute()
  await appendEvent(tx, 'created', { partnerId: partner.id, intent, now })
  return intent
}

/** Cancels a pending intent; cancelling a cancelled one again is the same answer. */
export async function cancel(
  tx: Tx,
  { partnerId, intentId, now }: { partnerId: string; intentId: string; now: Date },
): Promise<Intent> {
  const intent = await lock(tx, { partnerId, intentId })
  const status = statusAt(intent, now)
  if (status === 'cancelled') return intent
  if (status !== 'pending')
    throw problem('Conflict', `The withdrawal intent is ${status} and cannot be cancelled any more`)
  await setStatus(tx, { partnerId, intentId, status: 'cancelled' })
  await appendEvent(tx, 'cancelled', { partnerId, intent, now })
  return { ...intent, status: 'cancelled' }
}

/** @throws Problem `NotFound`, also for another partner's intent */
export async function find(
  db: Reader,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<Intent> {
  return toIntent(await select(db, { partnerId, intentId }).executeTakeFirst())
}

/** Like `find`, and holds the intent until the transaction ends. */
export async function lock(tx: Tx, { partnerId, intentId }: { partnerId: string; intentId: string }): Promise<Intent> {
  return toIntent(await select(tx, { partnerId, intentId }).forUpdate().executeTakeFirst())
}

/** Records that the intent became a withdrawal. The caller holds the intent. */
export async function complete(
  tx: Tx,
  { partnerId, intent, now }: { partnerId: string; intent: Intent; now: Date },
): Promise<void> {
  await setStatus(tx, { partnerId, intentId: intent.id, status: 'completed' })
  await appendEvent(tx, 'completed', { partnerId, intent, now })
}

/**
 * Notes the intents whose time is up, at most `countMax` of them. Twice is safe: only pending ones are taken.
 * @returns how many there were
 */
export async function expireDue(tx: Tx, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql<{ partnerId: string; id: string; memberId: string }>`
    update withdrawal_intents i set status = 'expired'
      from (select partner_id, id from withdrawal_intents
             where status = 'pending' and expires_at <= ${now}
             order by expires_at limit ${countMax} for update skip locked) due
     where i.partner_id = due.partner_id and i.id = due.id
    returning i.partner_id, i.id, i.member_id`.execute(tx)
  for (const { partnerId, id, memberId } of rows) {
    await events.append(tx, {
      partnerId,
      type: 'intent.expired',
      resourceId: id,
      data: { withdrawalIntentId: id, memberId },
      now,
    })
  }
  return rows.length
}

function select(db: Reader, { partnerId, intentId }: { partnerId: string; intentId: string }) {
  return db
    .selectFrom('withdrawalIntents')
    .select(['id', 'memberId', 'payCycleId', 'status', 'currency', 'amount', 'net', 'fee', 'employerFee'])
    .select(['tier', 'tierVersion', 'accountHolder', 'sortCode', 'accountNumber', 'iban', 'createdAt', 'expiresAt'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', intentId)
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

function toIntent(row: Row | undefined): Intent {
  if (row === undefined) throw problem('NotFound', 'There is no such withdrawal intent')
  const { accountHolder, sortCode, accountNumber, iban, ...intent } = row
  const account = fromColumns({ accountHolder, sortCode, accountNumber, iban })
  if (account === null) throw new Error(`${row.id} has no account`)
  return { ...intent, account }
}

async function setStatus(
  tx: Tx,
  { partnerId, intentId, status }: { partnerId: string; intentId: string; status: Intent['status'] },
): Promise<void> {
  await tx
    .updateTable('withdrawalIntents')
    .set({ status })
    .where('partnerId', '=', partnerId)
    .where('id', '=', intentId)
    .execute()
}

async function appendEvent(
  tx: Tx,
  step: string,
  { partnerId, intent, now }: { partnerId: string; intent: Intent; now: Date },
): Promise<void> {
  const { id, memberId, payCycleId, amount, fee, net, currency } = intent
  await events.append(tx, {
    partnerId,
    type: `intent.${step}`,
    resourceId: id,
    data: {
      withdrawalIntentId: id,
      memberId,
      payCycleId,
      amount: Number(amount),
      fee: Number(fee),
      netAmount: Number(net),
      currency,
    },
    now,
  })
}

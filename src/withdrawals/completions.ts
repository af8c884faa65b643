import assert from 'node:assert/strict'
import { busy, type CommandOutcome } from '../batch/batch.ts'
import { cachedSql } from '../database/cached-sql.ts'
import { sql, type Tx } from '../database/database.ts'
import { keepOnNode, onOnePartner, onPartnersNode } from '../database/one-partner.ts'
import { answeredWithNext } from '../database/prepared.ts'
import * as events from '../events/events.ts'
import * as float from '../float/float.ts'
import * as idempotency from '../idempotency/idempotency.ts'
import { Problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import * as ledger from '../ledger/ledger.ts'
import { findAll as findAllMetadata } from '../metadata/metadata.ts'
import { transfersOnEntering } from './bookings.ts'
import { type Banks, readFacts } from './facts.ts'
import * as intents from './intents.ts'
import { type Accepted, decideCompletions, type Intent } from './rules.ts'
import { type ScheduledSubmission, SubmissionSchedule, scheduleSubmissions } from './submission-schedule.ts'
import { type Details, eventOf, findAll } from './withdrawals.ts'

/**
 * A command to complete an intent. With `claim`, the response is recorded under the request's idempotency key. With
 * `wantsDetails`, the result has the whole withdrawal.
 */
export type Completion = {
  partner: { id: string; holdSeconds: number }
  intentId: string
  now: Date
  /** How far `now` is ahead of real time: 0 except on a sandbox. */
  clockOffsetMs: number
  wantsDetails?: boolean
  claim?: idempotency.BatchClaim<Completed> | undefined
}

export type Completed = { withdrawalId: string; details?: Details }

/**
 * Like `completeAll`, for one intent. A bank must be connected.
 * @throws Problem `NotFound`, `Conflict` for an outdated intent, or any refusal that creating an intent can give
 */
export async function complete(tx: Tx, command: Omit<Completion, 'claim'>): Promise<Completed> {
  const { outcomes } = await completeAll(tx, [command], {
    waits: true,
    banks: { hasRail: () => true },
    schedule: new SubmissionSchedule(),
  })
  const [completed] = outcomes
  if (completed instanceof Problem) throw completed
  assert(completed !== undefined && completed !== busy && !(completed instanceof idempotency.Replay))
  return completed
}

/**
 * Completes intents: moves the money in the books and creates the withdrawals, in the caller's transaction. They are held
 * for the partner's `holdSeconds` and then submitted to the bank. Idempotent: completing an intent again returns the same
 * withdrawal and moves nothing.
 *
 * Commands are decided in order, each on the balance that the previous ones leave. One statement writes all accepted ones, with
 * their transfers, events and idempotency records.
 * @param waits whether to wait for locked members and intents; if not, the outcome of those commands is `busy`
 * @param schedule of the submissions that are scheduled already
 * @returns for each command, in order: the withdrawal, the earlier response for its idempotency key, or the refusal; and the
 * submissions that were scheduled
 */
export async function completeAll(
  tx: Tx,
  commands: Completion[],
  { waits, banks, schedule }: { waits: boolean; banks: Banks; schedule: SubmissionSchedule },
): Promise<{ outcomes: CommandOutcome<Completed | idempotency.Replay>[]; scheduled: ScheduledSubmission[] }> {
  const asked = commands.map(({ partner, intentId }) => ({ partnerId: partner.id, intentId }))
  await keepOnNode(tx, asked)
  const held = await intents.lockAll(tx, asked, { waits })
  // After the locks, so that these statements see what the previous lock holders committed.
  const known = await idempotency.findAll(
    tx,
    commands.map(({ claim }) => claim),
  )
  // Of several commands for one intent only the first one creates the withdrawal.
  const firsts = new Map<intents.LockedIntent, Completion>()
  for (const [index, command] of commands.entries()) {
    const intent = held[index]
    if (typeof intent === 'object' && known[index] === undefined && !firsts.has(intent)) firsts.set(intent, command)
  }
  const earlier = await findCompleted(tx, firsts)
  const decided = await decideAll(tx, firsts, banks)
  const plain = commands.map((_, index) => {
    const intent = held[index]
    if (known[index] !== undefined) return known[index]
    if (typeof intent === 'object') return earlier.get(intent.id) ?? decided.get(intent.id) ?? throwNoWithdrawal(intent)
    return intent === 'missing' ? intents.intentNotFound() : busy
  })
  const outcomes = commands.some(({ wantsDetails }) => wantsDetails) ? await withDetails(tx, commands, plain) : plain
  const created = [...decided.values()].flatMap(each => (each instanceof Problem ? [] : [each]))
  await write(tx, { created, records: idempotency.recordsOf(commands, outcomes) })
  const due = created.map(({ command, dueAt }) => ({
    holdSeconds: command.partner.holdSeconds,
    // By the real clock, like the queue.
    dueAt: new Date(dueAt.getTime() - command.clockOffsetMs),
  }))
  const scheduled = await scheduleSubmissions(tx, due, schedule)
  await alertLowFloats(tx, created, { waits })
  return { outcomes, scheduled }
}

/** Adds the whole withdrawal to the outcomes of the commands that want it. */
async function withDetails(
  tx: Tx,
  commands: Completion[],
  outcomes: CommandOutcome<Completed | NewWithdrawal | idempotency.Replay>[],
): Promise<CommandOutcome<Completed | idempotency.Replay>[]> {
  const earlier = outcomes.flatMap((outcome, index) => {
    const command = commands[index]
    if (!command?.wantsDetails || !isCompleted(outcome) || 'intent' in outcome) return []
    return [{ partnerId: command.partner.id, withdrawalId: outcome.withdrawalId }]
  })
  const found = await findAll(tx, earlier)
  const created = outcomes.flatMap((outcome, index) =>
    commands[index]?.wantsDetails && isCompleted(outcome) && 'intent' in outcome
      ? [{ partnerId: outcome.command.partner.id, resourceId: outcome.intent.id }]
      : [],
  )
  const metadata = await findAllMetadata(tx, created)
  return outcomes.map((outcome, index) => {
    if (!commands[index]?.wantsDetails || !isCompleted(outcome)) return outcome
    const { withdrawalId } = outcome
    const details =
      'intent' in outcome
        ? { ...detailsOf(outcome), metadata: metadata.get(outcome.intent.id) ?? {} }
        : found.get(withdrawalId)
    assert(details !== undefined)
    return { withdrawalId, details }
  })
}

function isCompleted<C extends Completed>(outcome: CommandOutcome<C | idempotency.Replay>): outcome is C {
  return typeof outcome === 'object' && 'withdrawalId' in outcome
}

/** A new withdrawal as `find` will return it. */
function detailsOf({ withdrawalId, command, intent, dueAt, balanceAfter }: NewWithdrawal): Omit<Details, 'metadata'> {
  const { memberId, payCycleId, currency, grossAmount, netAmount, fee, account } = intent
  return {
    ...{ id: withdrawalId, withdrawalIntentId: intent.id, memberId, payCycleId, status: 'held', currency },
    ...{ grossAmount, netAmount, fee, account, balanceAfter, dueAt, createdAt: command.now },
    ...{ reference: null, expectedAt: null },
    timeline: [{ status: 'held', at: command.now, reason: null }],
  }
}

function throwNoWithdrawal({ id }: intents.LockedIntent): never {
  throw new Error(`${id} is completed but has no withdrawal`)
}

/** A withdrawal that is about to be inserted. */
type NewWithdrawal = Completed & Accepted & { command: Completion; intent: Intent; dueAt: Date }

/** By the intents' ids. */
async function decideAll(
  tx: Tx,
  firsts: Map<intents.LockedIntent, Completion>,
  banks: Banks,
): Promise<Map<string, NewWithdrawal | Problem>> {
  const pending = [...firsts]
    .filter(([intent]) => intent.status !== 'completed')
    .map(([intent, command]) => ({ intent, command }))
  if (pending.length === 0) return new Map()
  const found = await readFacts(
    tx,
    pending.map(({ intent, command }) => ({
      ...{ intent, command, partnerId: command.partner.id, memberId: intent.memberId, now: command.now },
    })),
    banks,
  )
  const asked = []
  for (const { intent: locked, ...each } of found) {
    const { sealedAccount, ...intent } = locked
    const { member } = each.facts
    // Nearly always the account that the member still has, which is open already.
    const own = member?.sealedAccount?.equals(sealedAccount) ? member.account : null
    const account = own ?? (await intents.find(tx, { partnerId: each.partnerId, intentId: intent.id })).account
    asked.push({ ...each, intent: { ...intent, account } })
  }
  const decisions = decideCompletions(asked)
  return new Map(
    asked.map(({ intent, command, now }, index) => {
      const decision = decisions[index]
      assert(decision !== undefined)
      return [intent.id, decision instanceof Problem ? decision : newWithdrawal({ intent, command, now }, decision)]
    }),
  )
}

function newWithdrawal(
  { intent, command, now }: { intent: Intent; command: Completion; now: Date },
  accepted: Accepted,
): NewWithdrawal {
  const dueAt = new Date(now.getTime() + command.partner.holdSeconds * 1_000)
  return { withdrawalId: newId('withdrawal', now), command, intent, dueAt, ...accepted }
}

async function write(
  tx: Tx,
  { created, records }: { created: NewWithdrawal[]; records: idempotency.KeyRecord[] },
): Promise<void> {
  if (created.length === 0) {
    if (records.length > 0)
      // The step of the records follows others, so it begins with a comma.
      await cachedSql`${answeredWithNext} with nothing as (select)${idempotency.recordSql(tx, records)} select`.execute(
        tx,
      )
    return
  }
  const of = <T>(value: (withdrawal: NewWithdrawal) => T) => created.map(value)
  const intentsOf = of(({ command, intent }) => ({ partnerId: command.partner.id, intent, now: command.now }))
  const movements = of(({ withdrawalId, command, intent }) => ({
    ...{ partnerId: command.partner.id, movementId: withdrawalId, reason: 'withdrawal.held', now: command.now },
    transfers: transfersOnEntering('held', intent, intent.payCycleId),
  }))
  const emitted = created.flatMap(({ withdrawalId, command, intent }): events.NewEvent[] => {
    const common = { partnerId: command.partner.id, now: command.now }
    const withdrawal = { ...intent, id: withdrawalId, withdrawalIntentId: intent.id }
    return [intents.eventOf('completed', { ...common, intent }), eventOf('held', { ...common, withdrawal })]
  })
  const { partner, home } = onPartnersNode(intentsOf)
  await cachedSql`${answeredWithNext}
    with held as (
      insert into withdrawals (partner_id, status, ${insertedColumns})
      select ${partner}, 'held', ${insertedColumns}
        from unnest(
          ${of(each => each.command.partner.id)}::text[], ${of(each => each.withdrawalId)}::text[], ${of(each => each.intent.id)}::text[],
          ${of(each => each.intent.memberId)}::text[], ${of(each => each.intent.payCycleId)}::text[],
          ${of(each => each.intent.currency)}::text[], ${of(each => each.intent.grossAmount)}::bigint[],
          ${of(each => each.intent.netAmount)}::bigint[], ${of(each => each.intent.fee)}::bigint[],
          ${of(each => each.intent.employerFee)}::bigint[], ${of(each => each.command.now.toISOString())}::timestamptz[],
          ${of(each => each.dueAt.toISOString())}::timestamptz[], ${of(each => each.balanceAfter)}::bigint[])
          as new (partner_id, ${insertedColumns}) ${home}
    ), ${ledger.postSql(movements)},
    completed as (${intents.completeSql(intentsOf)}),
    events as (${events.emitSql(emitted)})${idempotency.recordSql(tx, records)}
    select`.execute(tx)
}

const insertedColumns = sql`
  id, withdrawal_intent_id, member_id, pay_cycle_id, currency, gross_amount, net_amount, fee, employer_fee, created_at, due_at, balance_after`

// Locks the partners' rows in id order, and takes no lock after them.
async function alertLowFloats(tx: Tx, created: NewWithdrawal[], { waits }: { waits: boolean }): Promise<void> {
  const falls = created
    .filter(({ crossesFloor }) => crossesFloor)
    .map(({ command, intent }) => ({ partnerId: command.partner.id, currency: intent.currency, now: command.now }))
    .sort((a, b) => (a.partnerId < b.partnerId ? -1 : 1))
  for (const fall of falls) await float.updateLowAlert(tx, { ...fall, waits })
}

/** Maps the ids of intents that are completed already to their withdrawals. */
async function findCompleted(tx: Tx, firsts: Map<intents.LockedIntent, Completion>): Promise<Map<string, Completed>> {
  const completed = [...firsts].filter(([intent]) => intent.status === 'completed')
  if (completed.length === 0) return new Map()
  const asked = completed.map(([intent, command]) => ({ partnerId: command.partner.id, intentId: intent.id }))
  const { rows } = await cachedSql<{ intentId: string; withdrawalId: string }>`
    select w.withdrawal_intent_id as intent_id, w.id as withdrawal_id
      from unnest(${asked.map(each => each.partnerId)}::text[], ${asked.map(each => each.intentId)}::text[])
             as i (partner_id, id)
      join withdrawals w on w.partner_id = i.partner_id and w.withdrawal_intent_id = i.id ${onOnePartner('w', asked)}`.execute(
    tx,
  )
  return new Map(rows.map(({ intentId, withdrawalId }) => [intentId, { withdrawalId }]))
}

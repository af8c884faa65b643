import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import { isIdOf } from '../../kernel/ids.ts'
import { findPayout } from './decided-payments.ts'
import { closeException, type Decision, lockException } from './decisions.ts'
import type * as exceptions from './exceptions.ts'
import { decideOutcome, type OutcomeByHand } from './outcomes.ts'
import { confirm, proposeOrConfirm, requireProposal } from './proposals.ts'
import { lockRail } from './rail-lock.ts'
import { type Decider, hasDecided } from './two-people.ts'

// Two people give back a batch, book a cost of the operator, and decide about a payment that two people had to approve.

/** @property isKey for an operator key: one person can have two, so keys make no decision that takes two people */
type By = Decider & { isKey?: boolean }

/**
 * Closes an exception, or proposes to, if the decision takes two people and this is the first.
 * @returns the exception, and what was done: `repeated` if the same person had proposed it
 * @throws Problem `Forbidden` if an operator key makes a decision that takes two people
 */
export async function decide(
  tx: Tx,
  { exceptionId, by, note, now, ...decided }: { exceptionId: string; by: By; note: string; now: Date } & Decision,
): Promise<{ exception: exceptions.Decided; done: 'closed' | 'proposed' | 'repeated' }> {
  const exception = await lockException(tx, exceptionId)
  const carryOut = () => closeException(tx, { exceptionId, person: by.person, note, now, ...decided })
  if (exception.closedAt === null && (await takesTwo(tx, { exception, decided }))) {
    const done = await askTwo(tx, { subject: exceptionId, decision: decided, by, note, now, carryOut })
    if (done !== 'confirmed') return { exception, done }
  }
  const closed = await carryOut()
  return { exception: closed, done: 'closed' }
}

/** Records the outcome of a payment, or proposes it, like `decide`. */
export async function decideOutcomeOfTwo(
  tx: Tx,
  { payment, by, note, now, ...decided }: { payment: string; by: By; note: string; now: Date } & OutcomeByHand,
): Promise<{ partnerId: string; withdrawalId: string; reference: string; done: 'decided' | 'proposed' | 'repeated' }> {
  const payout = await findPayout(tx, payment)
  const { rail, reference, partnerId, withdrawalId } = payout
  await lockRail(tx, { rail, for: 'records' })
  const carryOut = () => decideOutcome(tx, { payment, now, ...decided })
  if (hasCost(decided, payout.netAmount) || (await wasApprovedByTwo(tx, [reference]))) {
    const done = await askTwo(tx, { subject: reference, decision: decided, by, note, now, carryOut })
    if (done !== 'confirmed') return { partnerId, withdrawalId, reference, done }
  }
  return { ...(await carryOut()), done: 'decided' }
}

/** The result of a confirmed proposal. */
export type Confirmed = { partnerId: string | null; decision: string } & (
  | { exceptionId: string }
  | { reference: string; withdrawalId: string }
)

/**
 * Confirms the decision about an exception or payment that another person has proposed, exactly as it was proposed.
 * @param subject the exception, or the reference of the payment
 * @throws Problem `NotFound` if nothing is proposed; `Conflict` if the proposal has ended, or the person cannot count as another one
 */
export async function confirmProposal(
  tx: Tx,
  { subject, by, now }: { subject: string; by: By; now: Date },
): Promise<Confirmed> {
  const isException = isIdOf('payoutException', subject)
  // Locks before the proposal is read: whatever ends the proposal holds the same lock.
  if (isException) await lockException(tx, subject)
  else await lockRail(tx, { rail: (await findPayout(tx, subject)).rail, for: 'records' })
  const { decision, note, person } = await requireProposal(tx, subject)
  if (hasDecided([{ person, login: null }], by))
    throw conflict('You have proposed this decision; another person must confirm it')
  const decided = JSON.parse(decision, (name, value) =>
    name === 'amount' && typeof value === 'string' ? BigInt(value) : value,
  )
  if (isException) {
    const { exception } = await decide(tx, { exceptionId: subject, by, note, now, ...(decided as Decision) })
    return { exceptionId: subject, partnerId: exception.partnerId, decision }
  }
  const outcome = decided as OutcomeByHand
  const { done: _, ...payment } = await decideOutcomeOfTwo(tx, { payment: subject, by, note, now, ...outcome })
  return { ...payment, decision }
}

/** Whether the operator bears a charge of a return that is recorded by hand. */
function hasCost(decided: OutcomeByHand, amount: bigint): boolean {
  if (decided.outcome !== 'returned') return false
  return decided.credit.amount.amount < amount && decided.borneBy !== 'partner'
}

/** A decision that cannot be carried out is refused to the first person, so it is tried before it is proposed. */
async function askTwo(
  tx: Tx,
  {
    carryOut,
    ...asked
  }: { subject: string; decision: object; by: By; note: string; now: Date; carryOut: () => Promise<unknown> },
): Promise<'proposed' | 'repeated' | 'confirmed'> {
  if (asked.by.isKey)
    throw problem('Forbidden', 'Two people must decide this, in the console or by command; an operator key cannot')
  const done = await proposeOrConfirm(tx, asked)
  if (done === 'proposed') {
    await sql`savepoint proposed`.execute(tx)
    await confirm(tx, {
      subject: asked.subject,
      by: { ...asked.by, person: `a second person, not ${asked.by.person}` },
    })
    await carryOut()
    await sql`rollback to savepoint proposed`.execute(tx)
  }
  return done
}

async function takesTwo(
  db: Reader,
  { exception: { rail, reference }, decided }: { exception: exceptions.Decided; decided: Decision },
): Promise<boolean> {
  if (decided.decision === 'ignore' || decided.decision === 'book') return false
  if (decided.decision === 'write_off') return true
  if ('charge' in decided && decided.charge?.borneBy === 'operator' && decided.charge.amount.amount > 0n) return true
  if (decided.decision === 'attach')
    return await wasApprovedByTwo(db, 'references' in decided ? decided.references : [decided.reference])
  const batch = await db
    .selectFrom('payoutBatches')
    .select('approvedAutomatically')
    .where('rail', '=', rail)
    .where('messageId', '=', reference ?? '')
    .executeTakeFirst()
  const named = decided.references ?? []
  if (batch === undefined) return await wasApprovedByTwo(db, [reference ?? '', ...named])
  return decided.decision === 'give_back' || !batch.approvedAutomatically
}

/** Whether a payment is in a batch that was above the limits for automatic approval. */
async function wasApprovedByTwo(db: Reader, payments: readonly string[]): Promise<boolean> {
  const { rows } = await sql`
    select from payout_batches b
     where not b.approved_automatically
       and (b.message_id = any(${[...payments]}::text[])
            or b.id = any(array(select batch_id from payouts
                                 where reference = any(${[...payments]}::text[]) or withdrawal_id = any(${[...payments]}::text[]))))
     limit 1`.execute(db)
  return rows.length > 0
}

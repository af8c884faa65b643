import { type Reader, sql, type Tx } from '../database/database.ts'
import { problem } from '../errors.ts'
import { type Decider, hasDecided, refuseUnlessAnother } from './two-people.ts'

/** A decision that takes two people, as the first has made it. */
export type Proposal = {
  subject: string
  /** The decision with its fields, as JSON. */
  decision: string
  note: string
  person: string
  login: string | null
  proposedAt: Date
}

/**
 * Proposes a decision, or confirms the same one that another person has proposed. The caller holds a lock on the subject, and carries
 * a confirmed decision out in the same transaction.
 * @param subject an exception, a payment, or a batch
 * @param decision with all fields that matter; the note may differ
 * @throws Problem `Conflict` if another decision is proposed, or the person cannot count as another one
 */
export async function proposeOrConfirm(
  tx: Tx,
  { subject, decision, note, by, now }: { subject: string; decision: object; note: string; by: Decider; now: Date },
): Promise<'proposed' | 'repeated' | 'confirmed'> {
  const text = JSON.stringify(decision, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
  const [proposed] = await listProposals(tx, [subject])
  if (proposed === undefined) {
    const { person, login = null } = by
    const values = { subject, decision: text, note, person, login, proposedAt: now }
    await tx.insertInto('payoutProposals').values(values).execute()
    return 'proposed'
  }
  if (proposed.decision !== text)
    throw problem('Conflict', `${proposed.person} has proposed another decision; confirm or withdraw that one first`)
  if (hasDecided([proposed], by)) return 'repeated'
  refuseUnlessAnother([proposed], { verb: 'confirm the decision', by })
  await confirm(tx, { subject, by })
  return 'confirmed'
}

/** Records who confirms a proposal. The database refuses the decision unless its transaction does. */
export async function confirm(
  tx: Tx,
  { subject, by: { person, login = null } }: { subject: string; by: Decider },
): Promise<void> {
  await sql`
    update payout_proposals set confirmed_by = ${person}, confirmed_login = ${login}, confirmed_in = pg_current_xact_id()
     where subject = ${subject} and confirmed_in is null`.execute(tx)
}

/** Withdraws a proposed decision. @throws Problem `NotFound` if none is proposed */
export async function withdrawProposal(tx: Tx, subject: string): Promise<Proposal> {
  const withdrawn = await tx
    .deleteFrom('payoutProposals')
    .where('subject', '=', subject)
    .where('confirmedIn', 'is', null)
    .returning(['subject', 'decision', 'note', 'person', 'login', 'proposedAt'])
    .executeTakeFirst()
  if (withdrawn === undefined) throw problem('NotFound', `No decision about ${subject} is proposed`)
  return withdrawn
}

/** Forgets what is proposed about subjects that are decided. */
export async function dropProposals(tx: Tx, subjects: readonly string[]): Promise<void> {
  if (subjects.length === 0) return
  await tx.deleteFrom('payoutProposals').where('subject', 'in', subjects).where('confirmedIn', 'is', null).execute()
}

/** The decisions that are proposed about some subjects, and not confirmed. */
export async function listProposals(db: Reader, subjects: readonly string[]): Promise<Proposal[]> {
  if (subjects.length === 0) return []
  return await db
    .selectFrom('payoutProposals')
    .select(['subject', 'decision', 'note', 'person', 'login', 'proposedAt'])
    .where('subject', 'in', subjects)
    .where('confirmedIn', 'is', null)
    .orderBy('subject')
    .execute()
}

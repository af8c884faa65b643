import { type Columns, type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import { referencedPayouts } from './by-reference.ts'
import { type Decider, hasDecided, refuseUnlessAnother } from './two-people.ts'

const columns = ['subject', 'decision', 'note', 'person', 'login', 'proposedAt'] as const

/** A decision that takes two people, as the first has made it. @property decision with its fields, as JSON */
export type Proposal = Columns<'payoutProposals', (typeof columns)[number]>

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
    throw conflict(`${proposed.person} has proposed another decision; confirm or withdraw that one first`)
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
     where subject = ${subject} and confirmed_in is null and ended_at is null`.execute(tx)
}

/**
 * Withdraws a proposed decision. It is kept as one that has ended.
 * @throws Problem `NotFound` if none is open
 */
export async function withdrawProposal(
  tx: Tx,
  { subject, person, now }: { subject: string; person: string; now: Date },
): Promise<Proposal> {
  const { rows } = await sql<Proposal>`
    update payout_proposals set ended_at = ${now}, ended_because = ${`${person} has withdrawn it`}
     where subject = ${subject} and confirmed_in is null and ended_at is null
    returning subject, decision, note, person, login, proposed_at`.execute(tx)
  const [withdrawn] = rows
  if (withdrawn === undefined) throw problem('NotFound', `No decision about ${subject} is proposed`)
  return withdrawn
}

/** Ends the proposals about subjects that are settled. @param because a sentence that a late confirmation is refused with */
export async function endProposals(
  tx: Tx,
  { subjects, because, now }: { subjects: readonly string[]; because: string; now: Date },
): Promise<void> {
  if (subjects.length === 0) return
  await sql`
    update payout_proposals set ended_at = ${now}, ended_because = ${because}
     where subject = any(${[...subjects]}::text[]) and confirmed_in is null and ended_at is null`.execute(tx)
}

/**
 * The open proposal about a subject, which the caller has locked.
 * @throws Problem `NotFound` if nothing was proposed; `Conflict` if the last proposal has ended or is confirmed
 */
export async function requireProposal(tx: Tx, subject: string): Promise<Proposal> {
  const [proposed] = await listProposals(tx, [subject])
  if (proposed !== undefined) return proposed
  const { rows } = await sql<{ person: string; endedBecause: string | null }>`
    select person, ended_because from payout_proposals
     where subject = ${subject} order by proposed_at desc limit 1`.execute(tx)
  const [last] = rows
  if (last === undefined) throw problem('NotFound', `No decision about ${subject} is proposed`)
  throw conflict(
    last.endedBecause === null
      ? `The decision of ${last.person} is confirmed already`
      : `The proposal of ${last.person} has ended: ${last.endedBecause}`,
  )
}

/** The decisions that are proposed about some subjects, and neither confirmed nor ended. */
export async function listProposals(db: Reader, subjects: readonly string[]): Promise<Proposal[]> {
  if (subjects.length === 0) return []
  return await db
    .selectFrom('payoutProposals')
    .select(columns)
    .where('subject', 'in', subjects)
    .where('confirmedIn', 'is', null)
    .where('endedAt', 'is', null)
    .orderBy('subject')
    .execute()
}

/** A proposal with what it is about. */
export type OpenProposal = Proposal & {
  exceptionId: string | null
  /** Of the payment whose outcome is proposed. */
  reference: string | null
  partnerId: string | null
  withdrawalId: string | null
  rail: string
}

/** The proposals about exceptions and payments that wait for a second person. @param asked.after a subject: only later ones */
export async function listOpenProposals(
  db: Reader,
  { after, take }: { after?: string | undefined; take: number },
): Promise<OpenProposal[]> {
  const { rows } = await sql<OpenProposal>`
    select o.subject, o.decision, o.note, o.person, o.login, o.proposed_at, e.id as exception_id, p.reference,
           coalesce(e.partner_id, p.partner_id) as partner_id, coalesce(e.withdrawal_id, p.withdrawal_id) as withdrawal_id,
           coalesce(e.rail, p.rail) as rail
      from payout_proposals o
      left join payout_exceptions e on e.id = o.subject
      left join (select f.reference, p.partner_id, p.withdrawal_id, p.rail from ${referencedPayouts}
                  where f.reference = any(array(select subject from payout_proposals
                                                 where confirmed_in is null and ended_at is null))) p on p.reference = o.subject
     where o.confirmed_in is null and o.ended_at is null and (e.id is not null or p.reference is not null)
       and ${after === undefined ? sql`true` : sql`o.subject > ${after}`}
     order by o.subject limit ${take}`.execute(db)
  return rows
}

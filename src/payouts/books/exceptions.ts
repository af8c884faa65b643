import type { RawBuilder } from 'kysely'
import { type Columns, type Reader, sql, type Tx } from '../../database/database.ts'
import { newId } from '../../kernel/ids.ts'
import type { Money } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'
import type { Restriction } from '../../members/restrictions.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { inScope, type Scope } from '../../worker/task.ts'
import { referenceLike, type SealedText, sealBankTexts, sealedText, withBankTexts } from './bank-texts.ts'
import { hasReference } from './by-reference.ts'

/** Why an answer of a bank did not fit. */
export type ExceptionKind =
  /** It names no payment of ours. */
  | 'unmatched'
  /** It names another amount or currency than we paid. */
  | 'amount'
  /** It contradicts what the bank said before. */
  | 'contradiction'
  /** The bank accepts or debits a payment or batch whose money was given back: the member may have the money twice. */
  | 'paid_after_give_back'
  /** The bank takes the payment for a duplicate. */
  | 'duplicate'
  /** The bank rejects a whole batch, but may have taken another copy of its file. */
  | 'rejected'
  /** It could not be recorded, for example because no pay cycle was open. */
  | 'refused'
  /** Money arrived on our account that no return explains. */
  | 'money_in'
  /** Money left our account without a payment of ours. */
  | 'money_out'
  /** Our account lacked the money for a payment. */
  | 'float'
  /** A payment or batch waits until something at the bank or in the settings is put right. */
  | 'blocked'
  /** It cannot be read. */
  | 'unreadable'
  /** A bank's statement is missing between two others, by their numbers. */
  | 'statement_gap'
  /** A statement opens with another balance than the one before it closed with. */
  | 'opening_balance'
  /** The bank's balance is not what the books and everything open explain. */
  | 'bank_balance'

/** The exceptions that no answer opens, but a comparison of all statements with each other and the books. */
export const reconciliationKinds = [
  'statement_gap',
  'opening_balance',
  'bank_balance',
] as const satisfies ExceptionKind[]

/** An answer to open an exception for. */
export type NewException = {
  rail: string
  kind: ExceptionKind
  /** Recognises the same answer when it is read again. */
  fingerprint: string
  /** A sentence for the operator, without bank details and names. */
  reason: string
  file?: { id: string; line: number | null } | undefined
  reference?: string | null
  payout?: { partnerId: string; withdrawalId: string } | undefined
  /** Whose money it may be, if it is about no payment. */
  partnerId?: string | undefined
  /** The account that the bank's file is about, as the bank names it. */
  account?: string | null
  outcome?: FinalOutcome | null
  amount?: Money | null
  /** The day on which the bank booked the money, if it moved any. */
  bookedOn?: Day | null
  /** What the bank says in words about the money. It may hold names. */
  bankText?: string | null
  reasonCode?: string | null
  /** For a refused report: what follows from it for the member. */
  restriction?: Restriction | null
  /** For a refused report: the decision that it carries out, if any (`Report.recoveryId`). */
  recoveryId?: string | null
}

/** Opens exceptions. An answer that has one already, open or closed, gets no second one. */
export async function open(tx: Tx, all: NewException[], now: Date): Promise<void> {
  if (all.length === 0) return
  const texts = await sealBankTexts(tx, all)
  const rows = all.map((each, index) => ({
    id: newId('payoutException', now),
    rail: each.rail,
    kind: each.kind,
    fingerprint: each.fingerprint,
    reason: each.reason,
    bank_file_id: each.file?.id,
    line: each.file?.line,
    reference: each.reference,
    partner_id: each.payout?.partnerId ?? each.partnerId,
    withdrawal_id: each.payout?.withdrawalId,
    outcome: each.outcome,
    amount: each.amount?.amount.toString(),
    currency: each.amount?.currency,
    account: each.account,
    booked_on: each.bookedOn,
    bank_text: inHex(texts[index]?.text),
    bank_text_about_member: inHex(texts[index]?.aboutMember),
    words: `${each.reference ?? ''} ${referenceLike(each.bankText ?? '')}`,
    reason_code: each.reasonCode,
    restriction: each.restriction,
    recovery_id: each.recoveryId,
  }))
  // One parameter, since a bank file can open thousands. Citus sends no call of json_to_recordset on to a node, so it is read first.
  await sql`
    with e as materialized (
      select * from json_to_recordset(${JSON.stringify(rows)}::json)
        as e (id text, rail text, kind text, fingerprint text, reason text, bank_file_id text, line integer, reference text,
              partner_id text, withdrawal_id text, outcome text, amount bigint, currency text, account text, booked_on date, bank_text bytea, bank_text_about_member bytea,
              words text, reason_code text, restriction text, recovery_id text))
    insert into payout_exceptions (id, rail, kind, fingerprint, reason, bank_file_id, line, reference, partner_id, withdrawal_id,
                                   outcome, amount, currency, account, booked_on, bank_text, bank_text_about_member, names_ours, reason_code, restriction, recovery_id, opened_at)
    select id, rail, kind, fingerprint, reason, bank_file_id, line, reference, partner_id, withdrawal_id, outcome, amount,
           currency, account, booked_on, bank_text, bank_text_about_member, holds_reference_of_ours(words), reason_code, restriction, recovery_id, ${now}
      from e
        on conflict on constraint each_exception_opens_once do nothing`.execute(tx)
}

/** Bytes as PostgreSQL reads them from JSON. */
function inHex(bytes: Buffer | null | undefined): string | null {
  return bytes == null ? null : `\\x${bytes.toString('hex')}`
}

type StandingExceptions = { rail: string; kinds: readonly ExceptionKind[]; found: readonly NewException[]; now: Date }

/**
 * Opens exceptions of some kinds, restates the open ones that still hold, and closes those that no longer do. The caller holds the
 * lock of the rail's records.
 * @param options.found all that hold now
 */
export async function keepStanding(tx: Tx, { rail, kinds, found, now }: StandingExceptions): Promise<void> {
  const known = found.map(({ fingerprint }) => fingerprint)
  const isOver = sql`e.rail = ${rail} and e.kind = any(${[...kinds]}::text[]) and e.fingerprint <> all(${known}::text[])`
  await closeAutomatically(tx, { which: isOver, now })
  for (const { fingerprint, reason, amount, bookedOn } of found)
    await sql`
      update payout_exceptions set reason = ${reason}, amount = ${amount?.amount ?? null}, booked_on = ${bookedOn ?? null}::date
       where rail = ${rail} and fingerprint = ${fingerprint} and closed_at is null and reason <> ${reason}`.execute(tx)
  await open(tx, [...found], now)
}

/** How many exceptions are open, of one partner or of all. */
export async function countOpen(db: Reader, { partnerId }: { partnerId?: string } = {}): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from payout_exceptions
     where closed_at is null ${partnerId === undefined ? sql`` : sql`and partner_id = ${partnerId}`}`.execute(db)
  return rows[0]?.count ?? 0
}

/** When the bank's oldest answer that waits for a decision arrived; null if none waits. */
export async function findOldestOpen(db: Reader): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`
    select min(opened_at) as at from payout_exceptions where closed_at is null`.execute(db)
  return rows[0]?.at ?? null
}

/** What is open of the comparison of bank accounts, oldest first. */
export type Difference = Pick<Exception, 'id' | 'rail' | 'reason'> & { kind: (typeof reconciliationKinds)[number] }

/** @param options.rails only of these */
export async function listDifferences(
  db: Reader,
  { rails, take }: { rails?: readonly string[]; take: number },
): Promise<Difference[]> {
  const { rows } = await sql<Difference>`
    select id, rail, kind, reason from payout_exceptions
     where closed_at is null and kind = any(${[...reconciliationKinds]}::text[])
           ${rails === undefined ? sql`` : sql`and rail = any(${[...rails]}::text[])`}
     order by id limit ${take}`.execute(db)
  return rows
}

export type Exception = Omit<
  Columns<'payoutExceptions'>,
  | 'bankFileId'
  | 'fingerprint'
  | 'account'
  | 'restriction'
  | 'recoveryId'
  | 'closedByText'
  | 'ruleId'
  | 'bankText'
  | 'bankTextAboutMember'
  | 'namesOurs'
> & {
  /** Null also once it was destroyed. */
  bankText: string | null
  /** The batch that it is about, or that has its payment. */
  batchId: string | null
  fileName: string | null
  /** Who has proposed a decision that takes two people, if one waits. */
  proposedBy: string | null
}

/** What a decision about an exception needs to know of it. */
export type Decided = Omit<
  Exception,
  'batchId' | 'reason' | 'fileName' | 'line' | 'closedBy' | 'decision' | 'note' | 'proposedBy'
>

export const exceptionStates = ['open', 'closed', 'all'] as const
type ExceptionState = (typeof exceptionStates)[number]

type ExceptionQuery = { state?: ExceptionState; id?: string; before?: string | undefined; take: number }

/** Exceptions, newest first. @param before an id: only older ones */
export async function list(db: Reader, { state = 'all', id, before, take }: ExceptionQuery): Promise<Exception[]> {
  const ofState = { open: sql`and e.closed_at is null`, closed: sql`and e.closed_at is not null`, all: sql`` }[state]
  return await select(
    db,
    sql`where true ${ofState} ${id === undefined ? sql`` : sql`and e.id = ${id}`}
              ${before === undefined ? sql`` : sql`and e.id < ${before}`}
     order by e.id desc limit ${take}`,
  )
}

/** The exceptions of a rail about some payments or batches, oldest first. */
export async function listAbout(
  db: Reader,
  { rail, references, take }: { rail: string; references: readonly string[]; take: number },
): Promise<Exception[]> {
  return await select(
    db,
    sql`where e.rail = ${rail} and e.reference = any(${[...references]}::text[]) order by e.id limit ${take}`,
  )
}

async function select(db: Reader, rest: ReturnType<typeof sql>): Promise<Exception[]> {
  const { rows } = await sql<Omit<Exception, 'bankText'> & SealedText>`
    select e.id, e.rail, e.kind, e.reference, e.partner_id, e.withdrawal_id, e.outcome, e.amount, e.currency,
           e.booked_on, ${sealedText}, e.reason_code,
           e.reason, f.name as file_name, e.line, e.opened_at, e.closed_at, e.closed_by, e.decision, e.note,
           (select o.person from payout_proposals o
             where o.subject = e.id and o.confirmed_in is null and o.ended_at is null) as proposed_by,
           (select id from payout_batches where message_id = e.reference and rail = e.rail) as batch_id
      from payout_exceptions e left join bank_files f on f.id = e.bank_file_id ${rest}`.execute(db)
  const batches = await listBatchesOf(
    db,
    rows.flatMap(({ reference, batchId }) => (reference === null || batchId !== null ? [] : [reference])),
  )
  return (await withBankTexts(db, rows)).map(row => ({
    ...row,
    batchId: row.batchId ?? batches.get(`${row.rail} ${row.reference}`) ?? null,
  }))
}

/** The batches of payments, by rail and reference. */
async function listBatchesOf(db: Reader, references: readonly string[]): Promise<Map<string, string | null>> {
  if (references.length === 0) return new Map()
  const { rows } = await sql<Columns<'payouts', 'rail' | 'reference' | 'batchId'>>`
    select rail, reference, batch_id from payouts where ${hasReference(references)}`.execute(db)
  return new Map(rows.map(({ rail, reference, batchId }) => [`${rail} ${reference}`, batchId]))
}

/** How the exception with a fingerprint was closed; null while it is open, undefined if there is none. */
export async function decisionOn(
  db: Reader,
  { rail, fingerprint }: { rail: string; fingerprint: string },
): Promise<string | null | undefined> {
  const { rows } = await sql<{ decision: string | null }>`
    select decision from payout_exceptions where rail = ${rail} and fingerprint = ${fingerprint}`.execute(db)
  return rows[0]?.decision
}

type RefusedReport = Columns<'payoutExceptions', 'id' | 'reasonCode' | 'restriction' | 'recoveryId'> & {
  reference: string
  outcome: FinalOutcome
}

/** The reports of a rail that could not be recorded, oldest first. */
export async function listRefused(
  db: Reader,
  { rail, countMax, scope }: { rail: string; countMax: number; scope: Scope | undefined },
): Promise<RefusedReport[]> {
  const { rows } = await sql<RefusedReport>`
    select id, reference, outcome, reason_code, restriction, recovery_id from payout_exceptions
     where closed_at is null and kind = 'refused' and rail = ${rail} and outcome is not null and reference is not null
           ${inScope(scope)}
     order by id limit ${countMax}`.execute(db)
  return rows
}

/** States an open exception anew, of which more is known now. */
export async function restate(
  tx: Tx,
  { id, kind, reason }: { id: string; kind: ExceptionKind; reason: string },
): Promise<void> {
  await sql`
    update payout_exceptions set kind = ${kind}, reason = ${reason} where id = ${id} and closed_at is null`.execute(tx)
}

/** Closes open exceptions without a decision, because what they were about is explained. @param which SQL about the exception `e` */
export async function closeAutomatically(
  tx: Tx,
  { which, now }: { which: RawBuilder<unknown>; now: Date },
): Promise<void> {
  await sql`
    update payout_exceptions e set closed_at = ${now}, closed_by = 'system', decision = 'applied'
     where e.closed_at is null and ${which}`.execute(tx)
}

/** Closes an exception whose report has been recorded after all. */
export async function closeApplied(tx: Tx, { id, now }: { id: string; now: Date }): Promise<void> {
  await closeAutomatically(tx, { which: sql`e.id = ${id}`, now })
}

/** The reason code of a `blocked` exception that is about listing payments, not about making them. */
export const listingCode = 'listing'

/** Closes what held a payment of a rail back, or all of its payments, because the bank has accepted the payment. */
export async function closeBlocked(
  tx: Tx,
  { rail, reference, now }: { rail: string; reference: string; now: Date },
): Promise<void> {
  const which = sql`
    e.kind = 'blocked' and e.rail = ${rail}
    and (e.reference = ${reference} or (e.reference is null and e.reason_code <> ${listingCode}))`
  await closeAutomatically(tx, { which, now })
}

/** Opens an exception because the paying account lacks money and payments wait for it, unless there is one. */
export async function openShort(
  tx: Tx,
  { rail, reasonCode, now }: { rail: string; reasonCode: string | null; now: Date },
): Promise<void> {
  const { rows } = await sql`
    select from payout_exceptions
     where closed_at is null and kind = 'float' and rail = ${rail} and reference is null`.execute(tx)
  if (rows.length > 0) return
  const reason = 'The paying account lacks money, and payments wait to be made again; top it up'
  await open(tx, [{ rail, kind: 'float', fingerprint: `float ${now.toISOString()}`, reason, reasonCode }], now)
}

/** Closes what `openShort` opened, because a payment was made. */
export async function closeShort(tx: Tx, { rail, now }: { rail: string; now: Date }): Promise<void> {
  await closeAutomatically(tx, { which: sql`e.kind = 'float' and e.rail = ${rail} and e.reference is null`, now })
}

/** Closes what kept the payments of a rail from being listed, because they could be listed again. */
export async function closeListing(tx: Tx, { rail, now }: { rail: string; now: Date }): Promise<void> {
  const which = sql`e.kind = 'blocked' and e.rail = ${rail} and e.reason_code = ${listingCode}`
  await closeAutomatically(tx, { which, now })
}

/** How many open exceptions of a kind a rail has, counted up to a maximum. */
export async function countOpenOf(
  db: Reader,
  { rail, kind, reasonCode, countMax }: { rail: string; kind: ExceptionKind; reasonCode?: string; countMax: number },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from (
      select from payout_exceptions where closed_at is null and rail = ${rail} and kind = ${kind}
             ${reasonCode === undefined ? sql`` : sql`and reason_code = ${reasonCode}`} limit ${countMax}
    ) open_ones`.execute(db)
  return rows[0]?.count ?? 0
}

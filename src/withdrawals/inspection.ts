import { type Reader, sql } from '../database/database.ts'
import { Problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import { lowestAmount, type Tier } from '../tiers/rules.ts'
import { type Banks, readFacts } from './facts.ts'
import type { UnfinishedStatus, WithdrawalStatus } from './lifecycle.ts'
import { decideIntent, type Facts, type MemberFacts, suspensionReason } from './rules.ts'
import { attemptsQuietMax, hasStatus, type Withdrawal } from './withdrawals.ts'

// The operator's view, across all partners.

// A worker claims a due withdrawal within seconds, and after a restart within a minute.
const overdueMs = 5 * 60_000

export const stuckReasons = [
  'no worker submits it',
  'no worker polls the bank',
  'the bank gives no final report',
] as const
type StuckReason = (typeof stuckReasons)[number]

export type Inspected = Withdrawal & {
  partnerId: string
  withdrawalIntentId: string
  employerFee: bigint
  /** When its next step with the bank is due; null when there is none. */
  dueAt: Date | null
  /** Calls to the bank so far. */
  attempts: number
  /** Why it entered its state, in the words of the bank or of the caller. */
  reason: string | null
  /** The cycle that its refund was booked in, if its own had closed by then. */
  adjustedInCycleId: string | null
  stuck: StuckReason | null
}

export type InspectionFilter = {
  partnerId?: string | undefined
  memberId?: string | undefined
  statuses?: WithdrawalStatus[] | undefined
  isStuck?: boolean | undefined
}

/**
 * Withdrawals, newest first.
 * @param before the id of a withdrawal: only older ones, for the next page
 */
export async function list(
  db: Reader,
  { filter, before, take, now }: { filter: InspectionFilter; before?: string | undefined; take: number; now: Date },
): Promise<Inspected[]> {
  const { partnerId, memberId, statuses, isStuck } = filter
  const conditions = [
    ...(partnerId === undefined ? [] : [sql<boolean>`partner_id = ${partnerId}`]),
    ...(memberId === undefined ? [] : [sql<boolean>`member_id = ${memberId}`]),
    ...(statuses === undefined ? [] : [hasStatus(statuses)]),
    ...(isStuck ? [sql<boolean>`${isAwaiting} and ${stuckAt(now)}`] : []),
    ...(before === undefined ? [] : [sql<boolean>`id < ${before}`]),
  ]
  return await select(db, {
    where: sql.join(conditions.length === 0 ? [sql`true`] : conditions, sql` and `),
    take,
    now,
  })
}

/** Finds a withdrawal only by its id; undefined if there is none. */
export async function find(
  db: Reader,
  { withdrawalId, now }: { withdrawalId: string; now: Date },
): Promise<Inspected | undefined> {
  const [found] = await select(db, { where: sql`id = ${withdrawalId}`, take: 1, now })
  return found
}

/** Withdrawals that wait for the bank: how many, since when, and how many of them are stuck. */
export type Unfinished = Record<UnfinishedStatus, { count: number; oldest: Date | null; stuck: number }>

export async function countUnfinished(db: Reader, now: Date): Promise<Unfinished> {
  const { rows } = await sql<{ status: UnfinishedStatus; count: number; oldest: Date; stuck: number }>`
    select status, count(*)::integer as count, min(created_at) as oldest,
           (count(*) filter (where ${stuckAt(now)}))::integer as stuck
      from withdrawals where ${isAwaiting}
     group by status`.execute(db)
  const nothing = { count: 0, oldest: null, stuck: 0 }
  const of = (wanted: string) => {
    const row = rows.find(({ status }) => status === wanted)
    return row === undefined ? nothing : { count: row.count, oldest: row.oldest, stuck: row.stuck }
  }
  return { held: of('held'), submitted: of('submitted') }
}

/** Counts the withdrawals that wait for the bank, by rail and state. @property rail null before the payment is submitted */
export async function countUnpaidByRail(
  db: Reader,
): Promise<{ rail: string | null; status: UnfinishedStatus; count: number }[]> {
  const { rows } = await sql<{ rail: string | null; status: UnfinishedStatus; count: number }>`
    select p.rail, u.status, count(*)::integer as count
      from unpaid_withdrawals u
      left join payouts p on p.partner_id = u.partner_id and p.withdrawal_id = u.withdrawal_id
     where u.due_at is not null
     group by p.rail, u.status order by p.rail, u.status`.execute(db)
  return rows
}

/** A partner's withdrawals that wait for the bank, per currency. */
export async function sumUnfinished(
  db: Reader,
  partnerId: string,
): Promise<{ currency: Currency; count: number; netAmount: bigint }[]> {
  const { rows } = await sql<{ currency: Currency; count: number; netAmount: bigint }>`
    select currency, count(*)::integer as count, sum(net_amount)::bigint as net_amount
      from withdrawals where partner_id = ${partnerId} and ${isAwaiting}
     group by currency`.execute(db)
  return rows
}

/** The amount that a member could withdraw now, and the rule that prevents it. */
export type WithdrawalEligibility = {
  tier: Tier
  available: bigint
  /** Null if the member could withdraw the lowest amount now. */
  refusal: string | null
  /** The condition that must change before the member can withdraw; null if there is none. */
  cause: RefusalCause | null
} & Pick<MemberFacts, 'withdrawalsToday' | 'withdrawalsThisCycle' | 'accountRefused' | 'reviewReason'>

type RefusalCause = 'installation' | 'partner' | 'float' | 'cycle' | 'member' | 'review' | 'limit' | 'account' | 'funds'

/** Decides an intent for the lowest amount. Undefined if there is no such member. */
export async function findEligibility(
  db: Reader,
  { partnerId, memberId, now, ...banks }: { partnerId: string; memberId: string; now: Date } & Banks,
): Promise<WithdrawalEligibility | undefined> {
  const [asked] = await readFacts(db, [{ partnerId, memberId, now }], banks)
  const member = asked?.facts.member
  if (asked === undefined || member == null) return undefined
  const { tier, available, withdrawalsToday, withdrawalsThisCycle, accountRefused, reviewReason } = member
  const amount = { amount: lowestAmount(tier), currency: tier.currency }
  const decided = decideIntent(asked.facts, { memberId, amount })
  const isRefused = decided instanceof Problem
  const refusal = isRefused ? decided.message : null
  const cause = isRefused ? causeOf(decided, asked.facts) : null
  return { tier, available, refusal, cause, withdrawalsToday, withdrawalsThisCycle, accountRefused, reviewReason }
}

function causeOf({ name }: Problem, facts: Facts): RefusalCause {
  if (name === 'BankAccountInvalid') return 'account'
  if (name === 'MemberNotEligible') {
    if (facts.member?.status !== 'active') return 'member'
    return facts.member.reviewReason === null ? 'limit' : 'review'
  }
  if (name !== 'UnprocessableEntity') return 'funds'
  const why = suspensionReason(facts)
  return why === null ? 'cycle' : ({ 'no rail': 'installation', paused: 'partner', 'float low': 'float' } as const)[why]
}

// Found in the table of those that are not paid, so that nothing reads all withdrawals. Only an unfinished withdrawal has a due time.
const isAwaiting = sql<boolean>`(partner_id, id) in (
  select partner_id, withdrawal_id from unpaid_withdrawals where due_at is not null)`

function stuckAt(now: Date) {
  return sql<boolean>`(due_at is not null
    and (due_at < ${new Date(now.getTime() - overdueMs)} or attempts > ${attemptsQuietMax}))`
}

async function select(
  db: Reader,
  { where, take, now }: { where: ReturnType<typeof sql>; take: number; now: Date },
): Promise<Inspected[]> {
  const { rows } = await sql<Omit<Inspected, 'stuck'> & { isStuck: boolean }>`
    select partner_id, id, withdrawal_intent_id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee, employer_fee,
           created_at, due_at, attempts, reason, adjusted_in_cycle_id, ${stuckAt(now)} as is_stuck
      from withdrawals
     where ${where}
     order by id desc limit ${take}`.execute(db)
  return rows.map(({ isStuck, ...row }) => ({ ...row, stuck: isStuck ? stuckReasonOf(row) : null }))
}

function stuckReasonOf({ status, attempts }: { status: WithdrawalStatus; attempts: number }): StuckReason {
  if (status === 'held') return 'no worker submits it'
  return attempts > attemptsQuietMax ? 'the bank gives no final report' : 'no worker polls the bank'
}

import { type Reader, sql } from '../database/database.ts'
import { firstId } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import { type Disagreement, type Rule, rules } from './rules.ts'
import {
  amongKeys,
  type Choice,
  inSpan,
  type Key,
  type Members,
  membersOf,
  type Span,
  sealedSums,
  transfersIn,
  unsealed,
  unsealedSpans,
  withdrawalsOf,
} from './slices.ts'

/** One rule of the books, recomputed from the rows. `disagreement` is the first row that breaks it. */
export type Check = { name: string; rule: string; disagreement: Disagreement | null }

export const checkCount = rules.length

/** All partners, or one. */
type Whose = { partnerId?: string }

/**
 * Checks the seals, and recomputes what is newer; without seals, everything. Run it in a repeatable-read transaction: the
 * rules hold only within one snapshot.
 */
export async function verify(db: Reader, whose: Whose = {}): Promise<Check[]> {
  const results: Check[] = []
  for await (const check of verifyEach(db, whose)) results.push(check)
  return results
}

/** Like `verify`, check by check. */
export async function* verifyEach(db: Reader, whose: Whose = {}): AsyncGenerator<Check> {
  const spans = await unsealedSpans(db, whose)
  const parts = await partsOf(db, spans, whose)
  for (const { name, rule, ...each } of rules) {
    let disagreement = await firstBroken(db, { name, rule, ...each }, parts)
    if (disagreement !== null && spans.some(({ from }) => from !== null)) {
      // A clock that was wrong may have given a newer transfer an older id. Without the times, only the seals decide.
      const all = await partsOf(db, await unsealedSpans(db, { ...whose, ignoresTimes: true }), whose)
      disagreement = await firstBroken(db, { name, rule, ...each }, all)
    }
    yield { name, rule, disagreement }
  }
}

/** What each kind of rule is checked on. */
type Parts = {
  transfers: Span[]
  movements: Choice[]
  fees: Choice[]
  members: Members[]
  cycles: Choice[]
  partners: Parameters<Extract<Rule, { on: 'partners' }>['broken']>[0][]
}

/** Everything that is newer than the seals, or was touched since. */
async function partsOf(db: Reader, spans: Span[], { partnerId }: Whose): Promise<Parts> {
  const parts: Parts = {
    transfers: spans,
    movements: spans.map(inSpan),
    fees: spans.map(inSpan),
    members: spans.map(membersOf),
    cycles: [],
    partners: [
      {
        ofPartner: id => (partnerId === undefined ? sql`true` : sql`${id} = ${partnerId}`),
        unsealed: unsealed(spans),
      },
    ],
  }
  for (const span of spans) {
    const { from } = span
    if (from === null) {
      parts.cycles.push(inSpan(span))
      continue
    }
    const touched = { ...span, from }
    const cycles = await touchedCycles(db, touched)
    const older = [
      ...inChunks(await olderWithdrawals(db, touched)).map(keys => amongKeys('withdrawal', keys)),
      ...inChunks(await olderPayRuns(db, touched)).map(keys => amongKeys('payRun', keys)),
    ]
    parts.movements.push(...older)
    parts.fees.push(...older, ...inChunks(cycles).map(withdrawalsOf))
    parts.cycles.push(...inChunks(cycles).map(keys => amongKeys('payCycle', keys)))
  }
  return parts
}

const keysMax = 10_000

function inChunks(keys: Key[]): Key[][] {
  return Array.from({ length: Math.ceil(keys.length / keysMax) }, (_, i) => keys.slice(i * keysMax, (i + 1) * keysMax))
}

type Since = Span & { from: Date }

/** Older withdrawals with newer transfers. */
async function olderWithdrawals(db: Reader, span: Since): Promise<Key[]> {
  const { rows } = await sql<Key>`
    select distinct t.partner_id, t.movement_id as id from ledger_transfers t
     where ${transfersIn(span)} and t.reason like 'withdrawal.%' and t.movement_id < ${firstId('withdrawal', span.from)}`.execute(
    db,
  )
  return rows
}

/** Older pay runs that became available or were reverted since, or have newer transfers. */
async function olderPayRuns(db: Reader, span: Since): Promise<Key[]> {
  const first = firstId('payRun', span.from)
  const { rows } = await sql<Key>`
    select r.partner_id, r.id from pay_runs r
     where r.partner_id = any(${span.partnerIds}::text[]) and r.id < ${first}
       and (r.available_at >= ${span.from} or r.reverted_at >= ${span.from})
     union
    select t.partner_id, t.movement_id from ledger_transfers t
     where ${transfersIn(span)} and t.reason like 'pay_run.%' and t.movement_id < ${first}`.execute(db)
  return rows
}

/** Cycles that are not sealed or were settled since, and settled cycles with newer transfers of earned pay or of settlements. */
async function touchedCycles(db: Reader, span: Since): Promise<Key[]> {
  const { rows } = await sql<Key>`
    select c.partner_id, c.id from pay_cycles c
      left join ledger_seals s on s.partner_id = c.partner_id and s.pay_cycle_id = c.id
     where c.partner_id = any(${span.partnerIds}::text[]) and (c.settled_at >= ${span.from} or s.sealed_at is null)
     union
    select c.partner_id, c.id
      from (select distinct t.partner_id, t.pay_cycle_id from ledger_transfers t
             where ${transfersIn(span)} and t.reason not like 'withdrawal.%') t
      join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id and c.settled_at is not null`.execute(
    db,
  )
  return rows
}

/** Checks a rule on each of the parts, and returns the first row in the order of partners that breaks it. */
async function firstBroken(db: Reader, rule: Rule, parts: Parts): Promise<Disagreement | null> {
  const found: Disagreement[] = []
  for (const broken of queriesOf(rule, parts)) found.push(...(await broken.execute(db)).rows)
  return found.sort((one, other) => (one.partnerId < other.partnerId ? -1 : 1))[0] ?? null
}

/** The SQL that checks a rule on some parts of the books. */
export function queriesOf(rule: Rule, parts: Partial<Parts>) {
  switch (rule.on) {
    case 'transfers':
      return (parts.transfers ?? []).map(rule.broken)
    case 'movements':
    case 'fees':
    case 'cycles':
      return (parts[rule.on] ?? []).map(rule.broken)
    case 'members':
      return (parts.members ?? []).map(rule.broken)
    case 'partners':
      return (parts.partners ?? []).map(rule.broken)
    default:
      return rule satisfies never
  }
}

export type AccountTotal = { partnerId: string; account: string; currency: Currency; debits: bigint; credits: bigint }

/** The total of each account of each partner; of `member_available` and `earned_pay` over all members and cycles. */
export async function totals(db: Reader): Promise<AccountTotal[]> {
  const { rows } = await sql<AccountTotal>`
    with newer as (
      select partner_id, currency, debit, credit, sum(amount) as amount
        from ${unsealed(await unsealedSpans(db, {}))} t group by partner_id, currency, debit, credit
    )
    select partner_id, account, currency, sum(debits)::bigint as debits, sum(credits)::bigint as credits
      from (select partner_id, debit as account, currency, amount as debits, 0 as credits from newer
             union all
            select partner_id, credit, currency, 0, amount from newer
             union all
            select partner_id, account, currency, debits, credits from ${sealedSums} s) sides
     group by partner_id, account, currency
     order by partner_id, account, currency`.execute(db)
  return rows
}

/** How much of the books is sealed. @property transfers of members, which are nearly all but payments */
export type Seals = { cycles: number; transfers: bigint; latestAt: Date | null }

export async function readSeals(db: Reader): Promise<Seals> {
  const { rows } = await sql<Seals>`
    select count(*)::integer as cycles, max(sealed_at) as latest_at,
           (select coalesce(sum(sequence), 0)::bigint from ledger_member_seals) as transfers
      from ledger_seals where sealed_at is not null`.execute(db)
  return rows[0] ?? { cycles: 0, transfers: 0n, latestAt: null }
}

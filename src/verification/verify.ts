import type { RawBuilder } from 'kysely'
import { type Reader, sql } from '../database/database.ts'
import { firstId, type IdKind } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import { type DetachedMonth, detachedUntil, listDetached } from '../ledger/detached.ts'
import { type Disagreement, type Rule, rules } from './rules.ts'
import { brokenMemberSeal, SealedPayments } from './sealed.ts'
import {
  amongKeys,
  type Choice,
  inSpan,
  type Key,
  type Members,
  membersIn,
  type Span,
  sealedSums,
  transfersIn,
  unsealed,
  unsealedSpans,
  withdrawalsOf,
} from './slices.ts'
import { inSnapshot, inSnapshots, walkKeys, walkMembers, walkTimes } from './walks.ts'

/** One rule of the books, recomputed from the rows. `disagreement` is the first row that breaks it. */
export type Check = { name: string; rule: string; disagreement: Disagreement | null }

export const checkCount = rules.length

/** @property partnerId one partner; by default all @property isWhole whether what is sealed is recomputed too */
type Scope = { partnerId?: string; isWhole?: boolean }

/**
 * Checks the seals, and recomputes what is newer; without seals, everything. Each part is read in a snapshot of some seconds, so that no
 * snapshot keeps dead rows from being vacuumed for long. A part has all rows that a rule compares, and what a seal covers never
 * changes, so the parts fit together whatever is written meanwhile.
 * @param db if it is a transaction, everything is read in that transaction
 */
export async function verify(db: Reader, scope: Scope = {}): Promise<Check[]> {
  const results = new Map<string, Check>()
  for await (const check of verifyEach(db, scope)) results.set(check.name, check)
  return rules.flatMap(({ name }) => results.get(name) ?? [])
}

/** Like `verify`, check by check. */
export async function* verifyEach(db: Reader, { isWhole = false, ...whose }: Scope = {}): AsyncGenerator<Check> {
  const first = await readBounds(db, whose)
  // Together, because each computes more than it reads.
  const walking = phases.map(async phase => {
    const due = rules.filter(rule => phase.on.includes(rule.on))
    for (let bounds = first; ; bounds = await readBounds(db, whose)) {
      const found = await walkPhase(db, phase, { due, isWhole, ...whose, ...bounds })
      // A month that was detached or attached in the middle was read in part.
      if ((await detachedUntil(db))?.getTime() === bounds.detachedUntil?.getTime()) return { due, found }
    }
  })
  for (const each of walking) each.catch(() => undefined)
  const broken = new Broken()
  for (const each of walking) {
    const { due, found } = await each
    for (const [name, disagreement] of found) broken.note(name, disagreement)
    for (const { name, rule } of due) yield { name, rule, disagreement: broken.get(name) ?? null }
  }
}

/** @property ofAllTimes without the times of seals: a clock that was wrong may have given a newer transfer an older id */
type Bounds = { detachedUntil: Date | null; unsealedSince: Span[]; ofAllTimes: Span[] }

async function readBounds(db: Reader, whose: Omit<Scope, 'isWhole'>): Promise<Bounds> {
  const bounds = { ...whose, detachedUntil: await detachedUntil(db) }
  return {
    detachedUntil: bounds.detachedUntil,
    unsealedSince: await inSnapshot(db, reader => unsealedSpans(reader, bounds)),
    ofAllTimes: await inSnapshot(db, reader => unsealedSpans(reader, { ...bounds, ignoresTimes: true })),
  }
}

async function walkPhase(
  db: Reader,
  { walk, readsSums = false }: Phase,
  { unsealedSince, ofAllTimes, ...due }: Omit<Due, 'spans'> & Bounds,
): Promise<Broken> {
  const spans = due.isWhole && !readsSums ? ofAllTimes : unsealedSince
  const found = await walk(db, { ...due, spans })
  if (found.size === 0 || spans.every(({ from }) => from === null)) return found
  return await walk(db, { ...due, due: due.due.filter(({ name }) => found.has(name)), spans: ofAllTimes })
}

/** The first row in the order of partners that breaks each rule, by the rule's name. */
class Broken extends Map<string, Disagreement> {
  note(name: string, disagreement: Disagreement | undefined): void {
    if (disagreement === undefined) return
    const known = this.get(name)
    if (known === undefined || disagreement.partnerId < known.partnerId) this.set(name, disagreement)
  }

  /** Checks each rule on some parts of the books, in its own snapshot. */
  ofRules(due: Rule[], parts: Parts): ((db: Reader) => Promise<void>)[] {
    return due.flatMap(rule =>
      queriesOf(rule, parts).map(
        query => async (db: Reader) => this.note(rule.name, (await query.execute(db)).rows[0]),
      ),
    )
  }
}

type Due = Scope & { due: Rule[]; spans: Span[]; isWhole: boolean; detachedUntil: Date | null }

type Phase = { on: Rule['on'][]; walk: (db: Reader, due: Due) => Promise<Broken>; readsSums?: boolean }

const phases: Phase[] = [
  { on: ['members'], walk: checkMembers },
  { on: ['transfers', 'movements', 'fees', 'cycles'], walk: checkTransfers },
  { on: ['partners'], walk: checkPartners, readsSums: true },
]

async function checkMembers(db: Reader, { due, spans, isWhole, detachedUntil: until }: Due): Promise<Broken> {
  const broken = new Broken()
  const hasDetached = until !== null
  for (const span of spans) {
    await walkMembers(db, span, range => [
      ...broken.ofRules(due, { members: [membersIn(range)] }),
      ...(isWhole
        ? [async (reader: Reader) => broken.note('seals', await brokenMemberSeal(reader, range, { hasDetached }))]
        : []),
    ])
  }
  return broken
}

/** Checks everything that is newer than the seals, or was touched since. */
async function checkTransfers(db: Reader, { due, spans, isWhole, detachedUntil: until }: Due): Promise<Broken> {
  const broken = new Broken()
  for (const span of spans) {
    const payments = new SealedPayments()
    if (isWhole)
      await inSnapshot(db, reader => payments.readSeals(reader, span.partnerIds, { hasDetached: until !== null }))
    const isFromBeginning = span.from?.getTime() === until?.getTime()
    await walkTimes(db, span, step => {
      const chosen = [inSpan(step)]
      const parts = { transfers: [step], movements: chosen, fees: chosen, cycles: isFromBeginning ? chosen : [] }
      return [...broken.ofRules(due, parts), ...(isWhole ? [(reader: Reader) => payments.add(reader, step)] : [])]
    })
    broken.note('seals', payments.findBroken())
    if (span.from === null || isFromBeginning) continue
    const touched = { ...span, from: span.from, attachedFrom: until ?? new Date(0) }
    const ofKind = (kind: IdKind) => (keys: Key[]) =>
      broken.ofRules(due, { movements: [amongKeys(kind, keys)], fees: [amongKeys(kind, keys)] })
    await walkKeys(db, await inSnapshot(db, reader => olderWithdrawals(reader, touched)), ofKind('withdrawal'))
    await walkKeys(db, await inSnapshot(db, reader => olderPayRuns(reader, touched)), ofKind('payRun'))
    await walkKeys(db, await inSnapshot(db, reader => touchedCycles(reader, touched)), keys =>
      broken.ofRules(due, { fees: [withdrawalsOf(keys)], cycles: [amongKeys('payCycle', keys)] }),
    )
  }
  return broken
}

async function checkPartners(db: Reader, { due, spans, partnerId }: Due): Promise<Broken> {
  const broken = new Broken()
  const ofPartner = (id: RawBuilder<unknown>) => (partnerId === undefined ? sql`true` : sql`${id} = ${partnerId}`)
  await inSnapshots(db, broken.ofRules(due, { partners: [{ ofPartner, unsealed: unsealed(spans) }] }))
  return broken
}

/** @property attachedFrom since when there are all transfers of a movement */
type Since = Span & { from: Date; attachedFrom: Date }

/** Older withdrawals with newer transfers. */
async function olderWithdrawals(db: Reader, span: Since): Promise<Key[]> {
  const { rows } = await sql<Key>`
    select distinct t.partner_id, t.movement_id as id from ledger_transfers t
     where ${transfersIn(span)} and t.reason like 'withdrawal.%'
       and t.movement_id >= ${firstId('withdrawal', span.attachedFrom)} and t.movement_id < ${firstId('withdrawal', span.from)}`.execute(
    db,
  )
  return rows
}

/** Older pay runs that became available or were reverted since, or have newer transfers. */
async function olderPayRuns(db: Reader, span: Since): Promise<Key[]> {
  const [first, end] = [firstId('payRun', span.attachedFrom), firstId('payRun', span.from)]
  const { rows } = await sql<Key>`
    select r.partner_id, r.id from pay_runs r
     where r.partner_id = any(${span.partnerIds}::text[]) and r.id >= ${first} and r.id < ${end}
       and (r.available_at >= ${span.from} or r.reverted_at >= ${span.from})
     union
    select t.partner_id, t.movement_id from ledger_transfers t
     where ${transfersIn(span)} and t.reason like 'pay_run.%' and t.movement_id >= ${first} and t.movement_id < ${end}`.execute(
    db,
  )
  return rows
}

/** Cycles that are not sealed or were settled since, and settled cycles with newer transfers of earned pay or of settlements. */
async function touchedCycles(db: Reader, span: Since): Promise<Key[]> {
  const { rows } = await sql<Key>`
    select c.partner_id, c.id from pay_cycles c
      left join ledger_seals s on s.partner_id = c.partner_id and s.pay_cycle_id = c.id
     where c.partner_id = any(${span.partnerIds}::text[]) and (c.settled_at >= ${span.from} or s.sealed_at is null)
       and c.id >= ${firstId('payCycle', span.attachedFrom)}
     union
    select c.partner_id, c.id
      from (select distinct t.partner_id, t.pay_cycle_id from ledger_transfers t
             where ${transfersIn(span)} and t.reason not like 'withdrawal.%') t
      join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id and c.settled_at is not null
       and c.id >= ${firstId('payCycle', span.attachedFrom)}`.execute(db)
  return rows
}

/** What each kind of rule is checked on. */
type Parts = {
  transfers?: Span[]
  movements?: Choice[]
  fees?: Choice[]
  members?: Members[]
  cycles?: Choice[]
  partners?: Parameters<Extract<Rule, { on: 'partners' }>['broken']>[0][]
}

/** The SQL that checks a rule on some parts of the books. */
export function queriesOf(rule: Rule, parts: Parts) {
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
        from ${unsealed(await unsealedSpans(db, { detachedUntil: await detachedUntil(db) }))} t group by partner_id, currency, debit, credit
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

/** How much of the books is sealed, and what of it is detached. @property transfers of members, which are nearly all but payments */
export type Seals = { cycles: number; transfers: bigint; latestAt: Date | null; detached: DetachedMonth[] }

export async function readSeals(db: Reader): Promise<Seals> {
  const { rows } = await sql<Omit<Seals, 'detached'>>`
    select cycles, latest_at, transfers
      from (select count(*)::integer as cycles, max(sealed_at) as latest_at from ledger_seals where sealed_at is not null) seals
     cross join (select coalesce(sum(sequence), 0)::bigint as transfers from ledger_member_seals) members`.execute(db)
  const sealed = rows[0] ?? { cycles: 0, transfers: 0n, latestAt: null }
  return { ...sealed, detached: await listDetached(db) }
}

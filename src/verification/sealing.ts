import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { lockByNameIfFree } from '../database/named-locks.ts'
import { firstId } from '../kernel/ids.ts'
import type { Clock } from '../kernel/time.ts'
import { rules, sealedAccounts } from './rules.ts'
import { inMembers, isSince, type Key, type MemberRange, membersIn } from './slices.ts'
import { type Check, queriesOf, verify } from './verify.ts'
import { allowLongReads, findMember } from './walks.ts'

const limits = {
  // Each of them is read one by one in every verification. Shortly after a cycle has closed, more wait for the bank's answer.
  unfinishedMax: 1_000,
  // A chunk takes some tenths of a second.
  membersMax: 1_000,
  // A longer step is followed by a shorter one.
  stepMsMax: 2_000,
  // A verification that disagrees is not repeated before an operator could have looked at it.
  refusedMs: 24 * 60 * 60_000,
}

/** How much earlier than a cycle an id of its transfers can be, if the clocks of the processes differ. It only narrows what is read. */
const clocksDifferBy = '1 day'

/** Finds, for each partner, the first closed cycle whose books are not sealed. */
export async function findUnsealed(db: Reader, { now }: { now: Date }): Promise<Key[]> {
  const { rows } = await sql<Key>`
    select c.partner_id, c.id
      from (select distinct on (c.partner_id) c.partner_id, c.id, s.refused_at
              from pay_cycles c
              left join ledger_seals s on s.partner_id = c.partner_id and s.pay_cycle_id = c.id
             where c.released_at is not null and s.sealed_at is null
             order by c.partner_id, c.start_date) c
     where c.refused_at is null or c.refused_at < ${new Date(now.getTime() - limits.refusedMs)}
     order by c.partner_id`.execute(db)
  return rows
}

/**
 * Takes the next step of sealing the books of a partner after a cycle has closed. Each step is one transaction with one snapshot: the
 * seals of some members, the payments of some days, and at last the verification of everything that is not sealed yet. Safe to be
 * killed and to run twice: a member's seal only advances, in the transaction that adds what it covers to the sums, and only one
 * run at a time takes a partner's steps.
 * @returns whether more steps are left to take
 * @throws BooksDisagree if the books disagree, in which case the step seals nothing
 */
export async function seal(db: Db, cycle: Key, now: Clock): Promise<boolean> {
  const step = await inStep(db, cycle, async tx => {
    const sealing = await findBegun(tx, cycle)
    if (sealing === undefined) return (await begin(tx, cycle, now())) ? 'taken' : 'none'
    if (sealing.sealedAt !== null) return 'none'
    if (sealing.membersAfter !== null) await sealMembers(tx, { ...sealing, after: sealing.membersAfter })
    else if (sealing.paidUntil !== null) await sealPayments(tx, { ...sealing, from: sealing.paidUntil })
    else return 'last'
    return 'taken'
  })
  if (step !== 'last') return step === 'taken'
  // Not in the last step: its snapshot would be as old as a verification of the whole cycle takes.
  throwIfBroken(await verify(db, { partnerId: cycle.partnerId }))
  await inStep(db, cycle, async tx => {
    const sealing = await findBegun(tx, cycle)
    if (sealing?.sealedAt === null) await finish(tx, sealing, now())
  })
  return false
}

/** Runs a step in one transaction with one snapshot, unless another run takes one. */
async function inStep<T>(db: Db, { partnerId }: Key, work: (tx: Tx) => Promise<T>): Promise<T | 'none'> {
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async tx => {
      if (!(await lockByNameIfFree(tx, 'sealing of the books of', partnerId))) return 'none'
      await allowLongReads(tx)
      return await work(tx)
    })
}

/** What sealing found wrong. Sealing would hide it. */
export class BooksDisagree extends Error {
  readonly checks: Check[]

  constructor(checks: Check[]) {
    super(`The books disagree: ${checks.map(({ name }) => name).join(', ')}`)
    this.checks = checks
  }
}

function throwIfBroken(checks: Check[]): void {
  const broken = checks.filter(({ disagreement }) => disagreement !== null)
  if (broken.length > 0) throw new BooksDisagree(broken)
}

/** Records that the books disagreed, so that sealing them waits for an operator. */
export async function refuse(tx: Tx, { partnerId, id }: Key, now: Date): Promise<void> {
  await sql`
    update ledger_seals set refused_at = ${now}
     where partner_id = ${partnerId} and pay_cycle_id = ${id} and sealed_at is null`.execute(tx)
}

type Sealing = {
  partnerId: string
  payCycleId: string
  unfinishedWithdrawals: string[]
  membersAfter: string | null
  paidUntil: Date | null
  sealedAt: Date | null
}

async function findBegun(tx: Tx, { partnerId, id }: Key): Promise<Sealing | undefined> {
  const { rows } = await sql<Sealing>`
    select partner_id, pay_cycle_id, unfinished_withdrawals, members_after, paid_until, sealed_at
      from ledger_seals where partner_id = ${partnerId} and pay_cycle_id = ${id} for update`.execute(tx)
  return rows[0]
}

/** Fixes which payments are sealed: all of the cycle that are posted, and no other withdrawal of the cycle can still be paid. */
async function begin(tx: Tx, { partnerId, id }: Key, now: Date): Promise<boolean> {
  const { numAffectedRows } = await sql`
    insert into ledger_seals (partner_id, pay_cycle_id, started_at, unfinished_withdrawals, unsealed_from, paid_until)
    select c.partner_id, c.id, ${now}, coalesce(w.unfinished, '{}'), c.closed_at - ${clocksDifferBy}::interval,
           c.created_at - ${clocksDifferBy}::interval
      from pay_cycles c
     cross join (select array_agg(w.id::text order by w.id) as unfinished
                   from unpaid_withdrawals u join withdrawals w on w.partner_id = u.partner_id and w.id = u.withdrawal_id
                  where u.partner_id = ${partnerId} and u.due_at is not null and w.pay_cycle_id = ${id}) w
     where c.partner_id = ${partnerId} and c.id = ${id} and coalesce(cardinality(w.unfinished), 0) <= ${limits.unfinishedMax}`.execute(
    tx,
  )
  return numAffectedRows === 1n
}

/**
 * Verifies the transfers of some members after their seals, and advances the seals. A transfer's number is given under the lock of its
 * balance, so all numbers up to the visible count are visible, and no open transaction can add one of them.
 */
async function sealMembers(tx: Tx, { partnerId, payCycleId, after }: Sealing & { after: string }): Promise<void> {
  const { rows } = await sql<{ from: Date | null }>`
    select max(unsealed_from) as from from ledger_seals where partner_id = ${partnerId} and sealed_at is not null`.execute(
    tx,
  )
  const since = { partnerIds: [partnerId], from: rows[0]?.from ?? null, after: { partnerId, id: after } }
  const to = await findMember(tx, since, limits.membersMax)
  let range: MemberRange = { ...since, to }
  let checks = await checkMembers(tx, range)
  if (checks.length > 0 && range.from !== null) {
    // A clock that was wrong may have given a newer transfer an older id.
    range = { ...range, from: null }
    checks = await checkMembers(tx, range)
  }
  throwIfBroken(checks)
  await advance(tx, range, { partnerId, payCycleId })
  await sql`
    update ledger_seals set members_after = ${to?.id ?? null}
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}`.execute(tx)
}

/** The rules of members that are broken. */
async function checkMembers(tx: Tx, range: MemberRange): Promise<Check[]> {
  const members = [membersIn(range)]
  const checks: Check[] = []
  for (const each of rules) {
    if (each.on !== 'members') continue
    for (const query of queriesOf(each, { members })) {
      const [disagreement] = (await query.execute(tx)).rows
      if (disagreement !== undefined) checks.push({ name: each.name, rule: each.rule, disagreement })
    }
  }
  return checks
}

const columns = sql.join(sealedAccounts.map(account => sql.ref(account)))

async function advance(
  tx: Tx,
  range: MemberRange,
  { partnerId, payCycleId }: { partnerId: string; payCycleId: string },
): Promise<void> {
  const balanceOf = (account: string) => sql`
    sum(case when t.credit = ${sql.lit(account)} then t.amount when t.debit = ${sql.lit(account)} then -t.amount else 0 end)::bigint
      as ${sql.ref(account)}`
  await sql`
    with lines as materialized (
      select b.member_id, b.currency, b.transfer_count, b.pay_cycle_id, t.debit, t.credit, t.amount
        from ledger_balances b
        left join ledger_member_seals s on s.partner_id = b.partner_id and s.member_id = b.member_id and s.currency = b.currency
        join ledger_transfers t on t.partner_id = b.partner_id and t.member_id = b.member_id and t.currency = b.currency
             and t.member_sequence > coalesce(s.sequence, 0)
       where ${inMembers('b', range)} and ${isSince(range.from)}
    ), advanced as (
      insert into ledger_member_seals as s (partner_id, member_id, currency, sequence, pay_cycle_id, ${columns})
      select ${partnerId}, member_id, currency, transfer_count, pay_cycle_id, ${sql.join(sealedAccounts.map(balanceOf))}
        from lines t group by member_id, currency, transfer_count, pay_cycle_id
          on conflict (partner_id, member_id, currency) do update
         set sequence = excluded.sequence, pay_cycle_id = excluded.pay_cycle_id,
             ${sql.join(
               sealedAccounts.map(
                 name => sql`${sql.ref(name)} = ${sql.ref(`s.${name}`)} + ${sql.ref(`excluded.${name}`)}`,
               ),
             )}
    )
    insert into ledger_seal_sums as s (partner_id, pay_cycle_id, part, currency, account, debits, credits)
    select ${partnerId}, ${payCycleId}, 'members', currency, side.account, sum(side.debit), sum(side.credit)
      from lines cross join lateral (values (debit, amount, 0), (credit, 0, amount)) as side (account, debit, credit)
     group by currency, side.account
    ${addingToSums}`.execute(tx)
}

const addingToSums = sql`
  on conflict (partner_id, pay_cycle_id, part, currency, account)
  do update set debits = s.debits + excluded.debits, credits = s.credits + excluded.credits`

/** Adds up the cycle's payments by time, in steps of about a second. */
async function sealPayments(
  tx: Tx,
  { partnerId, payCycleId, unfinishedWithdrawals, from }: Sealing & { from: Date },
): Promise<void> {
  const { rows } = await sql<{ createdAt: Date }>`
    select created_at from ledger_transfers where partner_id = ${partnerId} order by id desc limit 1`.execute(tx)
  const end = rows[0]?.createdAt ?? from
  const untilMs = performance.now() + limits.stepMsMax / 2
  let paidUntil: Date | null = from
  for (let days = 1; paidUntil !== null && performance.now() < untilMs; days *= 2) {
    const start: Date = paidUntil
    paidUntil = new Date(start.getTime() + days * 24 * 60 * 60_000)
    if (paidUntil > end) paidUntil = null
    await sql`
      insert into ledger_seal_sums as s (partner_id, pay_cycle_id, part, currency, account, debits, credits)
      select t.partner_id, t.pay_cycle_id, 'paid', t.currency, side.account, sum(side.debit), sum(side.credit)
        from ledger_transfers t
       cross join lateral (values (t.debit, t.amount, 0), (t.credit, 0, t.amount)) as side (account, debit, credit)
       where t.partner_id = ${partnerId} and t.id >= ${firstId('transfer', start)}
             ${paidUntil === null ? sql`` : sql`and t.id < ${firstId('transfer', paidUntil)}`}
         and t.member_id is null and t.reason = 'withdrawal.paid' and t.pay_cycle_id = ${payCycleId}
         and t.movement_id <> all(${unfinishedWithdrawals}::text[])
       group by t.partner_id, t.pay_cycle_id, t.currency, side.account
      ${addingToSums}`.execute(tx)
  }
  await sql`
    update ledger_seals set paid_until = ${paidUntil}
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}`.execute(tx)
}

/** Ends a seal, and verifies that it changes nothing about what is newer. */
async function finish(tx: Tx, { partnerId, payCycleId }: Sealing, now: Date): Promise<void> {
  await sql`
    update ledger_seals set sealed_at = ${now}
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}`.execute(tx)
  throwIfBroken(await verify(tx, { partnerId }))
}

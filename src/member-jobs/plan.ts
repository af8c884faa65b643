import { type Executor, sql, type Tx } from '../db.ts'
import { Problem } from '../errors.ts'
import { type Decision, decideAll, type Wish } from '../members/bulk.ts'
import type { PartnerRules } from '../members/members.ts'
import type { MemberUpdate } from '../members/schema.ts'
import type { Column } from './columns.ts'
import type { Fault, Read } from './reading.ts'

/** What a job does, in numbers of members. */
export type Plan = { invite: number; update: number; bringBack: number; offboard: number; unchanged: number }

export type Action = 'Invite' | 'Update' | 'BringBack' | 'Offboard'

/** What of a file decides what its rows mean. */
export type FileTerms = { partnerId: string; jobId: string; columns: Column[]; removesAccounts: boolean }

// Rows that change a member are decided together; those that leave one as it is, and new ones, by the statements below.
const decidedAtOnce = 1_000
// An answer holds no more.
const faultsMax = 1_000

/**
 * Compares the rows of a file, which have been copied, with the members, and stores a step for everything that is to be done.
 *
 * A row is the member with its e-mail among active and invited ones, else the one with its `worker_id`, else the inactive one
 * with its e-mail who was removed last, else somebody new. Who is active or invited and in no row is to be offboarded.
 * @param readTo the last row of the file
 * @returns the plan; with faults nothing of it holds
 */
export async function planFile(
  tx: Tx,
  {
    terms,
    partner,
    rowCount,
    perhapsRepeated,
    readTo: rowTo,
    now,
  }: { terms: FileTerms; partner: PartnerRules; now: Date } & Pick<Read, 'rowCount' | 'perhapsRepeated' | 'readTo'>,
): Promise<{ plan: Plan; faults: Fault[]; membersBefore: number }> {
  // A plan that is made for a small table joins a million rows one by one.
  if (rowCount > decidedAtOnce) await sql`analyze member_job_rows`.execute(tx)
  const { membersBefore, offboard } = await match(tx, { terms, rowTo })
  const has = (column: Column) => perhapsRepeated.includes(column)
  const repeated = [
    ...(has('email') ? await findRepeated(tx, terms, { key: sql`lower(email)`, name: 'email' }) : []),
    ...(has('worker_id') ? await findRepeated(tx, terms, { key: sql`worker_id`, name: 'worker_id' }) : []),
  ]
  const isTold = new Set(repeated.map(({ row }) => row))
  const faults = [
    ...repeated,
    ...(await findMetTwice(tx)).filter(({ row }) => !isTold.has(row)),
    ...(await findFaultyNew(tx)),
  ]
  const invite = await planNew(tx, terms)
  const known = await planKnown(tx, { terms, partner, now })
  faults.push(...known.faults)
  const { update, bringBack } = known
  // Whoever reads what is to be done, or was done, joins both.
  if (rowCount > decidedAtOnce) await sql`analyze member_job_steps`.execute(tx)
  const unchanged = rowCount - invite - update - bringBack
  return { plan: { invite, update, bringBack, offboard, unchanged }, faults, membersBefore }
}

/** How many steps a plan has. */
export function stepsOf({ invite, update, bringBack, offboard }: Plan): number {
  return invite + update + bringBack + offboard
}

/** What a decision does to a member, in the words of a plan; undefined when it does nothing. */
export function actionOf({ before, changed, steps }: Decision): Action | undefined {
  if (before === undefined) return 'Invite'
  if (steps.includes('removed')) return 'Offboard'
  if (steps.includes('reinstated')) return 'BringBack'
  return changed.length > 0 ? 'Update' : undefined
}

/** Why a wish cannot be, in a sentence that stands by itself. */
export function faultOf(refusal: Problem): string {
  if (refusal.name !== 'MemberAlreadyInvited') return refusal.message
  return `another member, ${refusal.issues[0]?.memberId}, has the e-mail or the worker_id`
}

/**
 * What rows of a file wish for the members that they are.
 * @param places the rows, and the member that each is
 */
export async function readWishes(
  db: Executor,
  { partnerId, jobId, columns, removesAccounts }: FileTerms,
  places: { row: number; memberId: string }[],
): Promise<Wish[]> {
  const { rows } = await sql<StoredRow>`
    select r.row, r.email, r.first_name, r.last_name, r.phone, r.tier, r.worker_id, r.account_holder, r.sort_code,
           r.account_number, r.iban, r.dob, r.gender, r.enable_payroll, p.member_id, m.iban is not null as has_iban
      from unnest(${places.map(place => place.row)}::integer[], ${places.map(place => place.memberId)}::text[])
             with ordinality as p (row, member_id, place)
      join member_job_rows r on r.partner_id = ${partnerId} and r.job_id = ${jobId} and r.row = p.row
      left join members m on m.partner_id = ${partnerId} and m.id = p.member_id
     order by p.place`.execute(db)
  return rows.map(row => ({
    ...{ type: 'List', memberId: row.memberId },
    update: updateOf(row, { columns, removesAccounts }),
  }))
}

type StoredRow = {
  row: number
  memberId: string
  email: string
  firstName: string
  lastName: string
  phone: string | null
  tier: string
  workerId: string | null
  accountHolder: string | null
  sortCode: string | null
  accountNumber: string | null
  iban: string | null
  dob: string | null
  gender: 'Female' | 'Male' | 'NonBinary' | null
  enablePayroll: boolean | null
  hasIban: boolean
}

// A column that is absent changes nothing, an empty cell removes; but an account only where the file says that it does, and
// only one of the kind that its columns could hold. There is no empty `enable_payroll`.
function updateOf(
  { email, firstName, lastName, tier, accountHolder, sortCode, accountNumber, iban, hasIban, ...row }: StoredRow,
  { columns, removesAccounts }: Pick<FileTerms, 'columns' | 'removesAccounts'>,
): MemberUpdate {
  const has = (column: Column) => columns.includes(column)
  const removes = removesAccounts && has(hasIban ? 'iban' : 'sort_code')
  return {
    ...{ email, firstName, lastName, tier },
    ...(has('phone') ? { phone: row.phone } : {}),
    ...(has('worker_id') ? { workerId: row.workerId } : {}),
    ...(has('dob') ? { dob: row.dob } : {}),
    ...(has('gender') ? { gender: row.gender } : {}),
    ...(row.enablePayroll === null ? {} : { enablePayroll: row.enablePayroll }),
    ...(accountHolder !== null && iban !== null ? { accountDetails: { accountHolder, iban } } : {}),
    ...(accountHolder !== null && sortCode !== null && accountNumber !== null
      ? { accountDetails: { accountHolder, sortCode, accountNumber } }
      : {}),
    ...(accountHolder === null && removes ? { accountDetails: null } : {}),
  }
}

// Finds the member of each row, and in the same statement who is in none: a member who is invited while this runs is never
// taken for missing. What is found is kept with all that the plan needs of a row: to join a million rows again takes longer.
async function match(
  tx: Tx,
  { terms, rowTo }: { terms: FileTerms; rowTo: number },
): Promise<{ membersBefore: number; offboard: number }> {
  const { partnerId, jobId } = terms
  await sql`
    create temporary table member_job_matches (
      row integer not null, member_id text collate "C", is_same boolean not null, new_member_id text not null, faults text
    ) on commit drop`.execute(tx)
  const { rows } = await sql<{ membersBefore: number; offboard: number }>`
    with matched as materialized (
      select r.row, r.new_member_id, r.faults, coalesce(e.id, w.id, f.id) as member_id,
             e.id is not null and coalesce(w.id, e.id) = e.id and ${isSame(terms)} as is_same
        from member_job_rows r
        left join members e on e.partner_id = ${partnerId} and e.status in ('active', 'invited')
                           and lower(e.email) = lower(r.email)
        left join members w on w.partner_id = ${partnerId} and w.worker_id = r.worker_id
        left join (select lower(email) as email, max(id) as id from members
                    where partner_id = ${partnerId} and status = 'inactive' group by lower(email)) f
               on f.email = lower(r.email)
       where r.partner_id = ${partnerId} and r.job_id = ${jobId}
    ), missing as (
      insert into member_job_steps (partner_id, job_id, step, action, member_id)
      select ${partnerId}, ${jobId}, ${rowTo}::integer + row_number() over (order by m.id), 'Offboard', m.id
        from members m
       where m.partner_id = ${partnerId} and m.status in ('active', 'invited')
         and not exists (select from matched where matched.member_id = m.id)
      returning step
    ), noted as (
      insert into member_job_matches select row, member_id, is_same, new_member_id, faults from matched
    )
    select (select count(*) from members
             where partner_id = ${partnerId} and status in ('active', 'invited'))::integer as members_before,
           (select count(*) from missing)::integer as offboard`.execute(tx)
  return rows[0] ?? { membersBefore: 0, offboard: 0 }
}

// Whether the row says nothing that the member, e, is not already: what `updateOf` and the rules would find, for rows by the
// million. Whoever this lets through is decided by them.
function isSame({ columns, removesAccounts }: FileTerms) {
  const same = (column: string) => sql`e.${sql.raw(column)} is not distinct from r.${sql.raw(column)}`
  const has = (column: Column) => columns.includes(column)
  const kept = sql`(e.account_holder is null or not ${removesAccounts}::boolean
                    or not (case when e.iban is null then ${has('sort_code')}::boolean else ${has('iban')}::boolean end))`
  return sql.join(
    [
      // A blank at the end, which the API takes and a file loses, is no change.
      sql`btrim(e.first_name) = r.first_name and btrim(e.last_name) = r.last_name`,
      same('tier'),
      ...(['phone', 'worker_id', 'dob', 'gender'] as const).filter(has).map(same),
      sql`e.enable_payroll = coalesce(r.enable_payroll, e.enable_payroll)`,
      sql`case when r.account_holder is null then ${kept}
          else (e.account_holder, e.sort_code, e.account_number, e.iban)
               is not distinct from (r.account_holder, r.sort_code, r.account_number, r.iban) end`,
    ],
    sql` and `,
  )
}

async function findRepeated(
  tx: Tx,
  { partnerId, jobId }: FileTerms,
  { key, name }: { key: ReturnType<typeof sql>; name: Column },
): Promise<Fault[]> {
  const mine = sql`partner_id = ${partnerId} and job_id = ${jobId}`
  const { rows } = await sql<{ row: number; first: number }>`
    with repeated as (select ${key} as key, min(row) as first from member_job_rows where ${mine}
                       group by ${key} having count(*) > 1 and ${key} is not null)
    select r.row, repeated.first from repeated join member_job_rows r on ${key} = repeated.key
     where ${mine} and r.row <> repeated.first
     order by r.row limit ${faultsMax}`.execute(tx)
  return rows.map(({ row, first }) => ({ row, message: `${name}: is that of row ${first} as well` }))
}

async function findMetTwice(tx: Tx): Promise<Fault[]> {
  const { rows } = await sql<{ row: number; first: number; memberId: string }>`
    with twice as (select member_id, min(row) as first from member_job_matches
                    where member_id is not null group by member_id having count(*) > 1)
    select m.row, twice.first, m.member_id from twice join member_job_matches m on m.member_id = twice.member_id
     where m.row <> twice.first
     order by m.row limit ${faultsMax}`.execute(tx)
  return rows.map(({ row, first, memberId }) => ({
    row,
    message: `this is ${memberId}, by e-mail or worker_id, and so is row ${first}`,
  }))
}

async function findFaultyNew(tx: Tx): Promise<Fault[]> {
  const { rows } = await sql<Fault>`
    select row, faults as message from member_job_matches
     where member_id is null and faults is not null
     order by row limit ${faultsMax}`.execute(tx)
  return rows
}

/** @returns how many new members there are */
async function planNew(tx: Tx, { partnerId, jobId }: FileTerms): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    insert into member_job_steps (partner_id, job_id, step, action, member_id)
    select ${partnerId}, ${jobId}, row, 'Invite', new_member_id
      from member_job_matches where member_id is null and faults is null`.execute(tx)
  return Number(numAffectedRows)
}

async function planKnown(
  tx: Tx,
  { terms, partner, now }: { terms: FileTerms; partner: PartnerRules; now: Date },
): Promise<{ faults: Fault[]; update: number; bringBack: number }> {
  const { partnerId, jobId } = terms
  // Without it every batch below would be looked for among all rows.
  await sql`create index on member_job_matches (row) where member_id is not null and not is_same`.execute(tx)
  const faults: Fault[] = []
  const counts = { update: 0, bringBack: 0 }
  for (let after = 0; ; ) {
    const { rows: places } = await sql<{ row: number; memberId: string }>`
      select row, member_id from member_job_matches
       where member_id is not null and not is_same and row > ${after} order by row limit ${decidedAtOnce}`.execute(tx)
    const last = places.at(-1)
    if (last === undefined) return { faults, ...counts }
    after = last.row
    const wishes = await readWishes(tx, terms, places)
    const decisions = await decideAll(tx, { partner, wishes, now, isFirm: false })
    const steps: { row: number; action: Action; memberId: string }[] = []
    for (const [index, { row, memberId }] of places.entries()) {
      const decision = decisions[index]
      if (decision === undefined) throw new Error('A row was not decided')
      if (decision instanceof Problem) faults.push({ row, message: faultOf(decision) })
      else {
        const action = actionOf(decision)
        if (action === undefined) continue
        counts[action === 'BringBack' ? 'bringBack' : 'update'] += 1
        steps.push({ row, action, memberId })
      }
    }
    await sql`
      insert into member_job_steps (partner_id, job_id, step, action, member_id)
      select ${partnerId}, ${jobId}, * from unnest(
        ${steps.map(step => step.row)}::integer[], ${steps.map(step => step.action)}::text[],
        ${steps.map(step => step.memberId)}::text[])`.execute(tx)
  }
}

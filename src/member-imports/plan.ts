import assert from 'node:assert/strict'
import { openAccount } from '../bank-accounts/sealed-account.ts'
import { lanesOf, type Reader, sql, type Tx } from '../database/database.ts'
import { issuesMax, Problem } from '../kernel/errors.ts'
import { decideAll, type MemberCommand, type PartnerRules } from '../members/changes.ts'
import { type Column, columnSpecs, isSealed } from '../members/fields.ts'
import { plainColumns } from '../members/rows.ts'
import { fingerprintColumn, fingerprintColumns, nextColumn, paymentKeyOf } from '../members/sealing.ts'
import { sealerOf } from '../sealing/held.ts'
import type { Sealer } from '../sealing/sealer.ts'
import type { Read, RowFault } from './read-file.ts'
import { openRows, rowColumns, type SealedRow } from './rows.ts'
import {
  actionOf,
  emptyPlan,
  type FileTerms,
  faultsOf,
  type ImportRow,
  isClash,
  type Plan,
  planOfSteps,
  type RestAction,
  updateOf,
} from './rules.ts'
import { type Action, actions } from './schema.ts'

// Rows that change a member are decided in batches; unchanged and new members are handled by the statements below.
const decidedAtOnce = 1_000

/** The plan of a file: its numbers, and the action of the rows that have no step. */
export type FilePlan = { plan: Plan; restAction: RestAction; membersBefore: number }

type Planning = { terms: FileTerms; partner: PartnerRules } & Pick<Read, 'rowCount' | 'readTo'>

type FaultyRows = { faults: RowFault[]; faultsMore: number }

/**
 * Compares the copied rows of a file with the members. It stores a step for every member that is offboarded, and for every row
 * whose action is not the rest action.
 *
 * A row matches the active or invited member with its e-mail, else the member with its `worker_id`, else the newest inactive
 * member with its e-mail, or else is a new member. Active and invited members without a row are offboarded.
 * @param readTo the last row of the file
 * @param clashes what to do with a row that clashes with another member. An import ahead may resolve it, so a queued file defers
 * it: the row gets a step that is marked as failed, until the file is planned again when its turn comes.
 * @param now when the file was sent
 * @returns the plan, which is void if there are faults; at most `issuesMax` faults, and the number of further faulty rows
 */
export async function planFile(
  tx: Tx,
  {
    mayBeRepeated,
    clashes,
    now,
    ...planning
  }: Planning & Pick<Read, 'mayBeRepeated'> & { clashes: 'refuse' | 'defer'; now: Date },
): Promise<FilePlan & FaultyRows> {
  const { terms, partner, rowCount, readTo } = planning
  const isLarge = rowCount > decidedAtOnce
  // A query plan for a small table would join a million rows one by one. Concurrent analyzes do not wait for each other.
  if (isLarge) await analyze(tx, 'member_import_rows')
  await createWorkTables(tx)
  if (mayBeRepeated.includes('email')) await recordDuplicates(tx, terms, { key: sql`email_fingerprint`, name: 'email' })
  if (mayBeRepeated.includes('worker_id'))
    await recordDuplicates(tx, terms, { key: sql`worker_id_fingerprint`, name: 'worker_id' })
  const repeated = await listFaults(tx, { clashes })
  // With this many faults, comparing the rows with the members would add nothing useful.
  if (repeated.faultsMore > 0) return { plan: emptyPlan, restAction: 'Unchanged', membersBefore: 0, ...repeated }
  const { membersBefore, restAction, invite, offboard } = await match(tx, { terms, readTo, isLarge, now })
  await recordDoubleMatches(tx)
  await planRest(tx, { terms, restAction })
  const { update, reinstate } = await planMatched(tx, { terms, partner, restAction, now })
  // The results join both tables.
  if (isLarge) await analyze(tx, 'member_import_steps')
  const plan = { invite, update, reinstate, offboard, unchanged: rowCount - invite - update - reinstate }
  const found = await listFaults(tx, { clashes })
  if (found.faults.length > 0 || clashes === 'refuse') return { plan, restAction, membersBefore, ...found }
  return { plan: await markFaulty(tx, { terms, plan, rowCount, restAction }), restAction, membersBefore, ...found }
}

// A node of a distributed PostgreSQL does not let the owner's function look at rows that the program wrote in the same transaction.
async function analyze(tx: Tx, table: string): Promise<void> {
  if (lanesOf(tx) === 'shared') await sql`select analyze_tables(${table})`.execute(tx)
}

/**
 * Plans a queued file again when its turn comes, against the members as the imports ahead have left them. A row that has become
 * impossible gets a step that is marked as failed.
 * @param sentAt when the file was sent
 * @returns null if too many rows have become impossible; then only these are marked
 */
export async function planFileAgain(
  tx: Tx,
  { sentAt, ...planning }: Planning & { sentAt: Date },
): Promise<FilePlan | null> {
  const { terms, rowCount } = planning
  await sql`delete from member_import_steps where partner_id = ${terms.partnerId} and import_id = ${terms.importId}`.execute(
    tx,
  )
  const { faults, faultsMore, ...planned } = await planFile(tx, {
    ...{ ...planning, mayBeRepeated: [], clashes: 'refuse', now: sentAt },
  })
  if (faults.length === 0) return planned
  const plan = await markFaulty(tx, { terms, rowCount, ...planned })
  return faultsMore > 0 ? null : { ...planned, plan }
}

/**
 * Reads rows of a file as commands.
 * @param places the rows, each with its member
 * @returns the commands by row, without the rows that an erasure has deleted
 */
export async function readCommands(
  db: Reader,
  { partnerId, importId, columns, removesAccounts }: FileTerms,
  places: { row: number; memberId: string }[],
): Promise<Map<number, MemberCommand>> {
  type MatchedMember = { memberId: string; membersAccount: Buffer | null; membersKey: Buffer | null }
  const { rows } = await sql<SealedRow<ImportRow & MatchedMember>>`
    select r.row, ${rowColumns('r')}, p.member_id, m.account as members_account, ${paymentKeyOf('m', { partnerId })} as members_key
      from unnest(${places.map(place => place.row)}::integer[], ${places.map(place => place.memberId)}::text[])
             with ordinality as p (row, member_id, place)
      join member_import_rows r on r.partner_id = ${partnerId} and r.import_id = ${importId} and r.row = p.row
      left join members m on m.partner_id = ${partnerId} and m.id = p.member_id
     order by p.place`.execute(db)
  const sealer = sealerOf(db)
  const opened = await openRows<ImportRow & MatchedMember>(db, { partnerId, importId }, rows)
  return new Map(
    opened.map(({ memberId, membersAccount: account, membersKey: paymentKey, ...row }) => {
      const hasIban = () => 'iban' in (openAccount(sealer, { account, paymentKey }, { partnerId, memberId }) ?? {})
      return [row.row, { type: 'List', memberId, wanted: updateOf(row, { columns, removesAccounts, hasIban }) }]
    }),
  )
}

// `member_import_matches` holds the rows that need a step or a decision; see `match`.
async function createWorkTables(tx: Tx): Promise<void> {
  await sql`
    create temporary table member_import_matches (row integer not null, member_id text collate "C", is_same boolean not null,
                                               by_worker_id boolean not null, new_member_id text, faults text) on commit drop`.execute(
    tx,
  )
  await sql`
    create temporary table member_import_faults (row integer not null, message text not null, is_clash boolean not null)
      on commit drop`.execute(tx)
}

// Finds the member of each row and, in the same statement, the members without a row. A member that was invited or changed after
// the file was sent is not missing: the upload may have taken minutes, or the file may have been queued for days.
async function match(
  tx: Tx,
  { terms, readTo, isLarge, now }: { terms: FileTerms; readTo: number; isLarge: boolean; now: Date },
): Promise<Matched> {
  const { partnerId, importId } = terms
  const column = (name: string) => sql.raw(memberColumn(name, sealerOf(tx)))
  // Without fresh statistics the planner might look a million rows up one by one.
  if (isLarge) await sql`select set_config('enable_nestloop', 'off', true)`.execute(tx)
  // One pass over the members finds both the rows' members by e-mail and the members without such a row. Only the other rows,
  // few in a later file, are looked up by worker_id. A member counts once, since rows with the same e-mail void the plan.
  const { rows } = await sql<Matched>`
    with joined as materialized (
      select r.row, e.id as member_id, e.id is not null and (${isSame(terms, sealerOf(tx))}) as is_same, e.may_be_missing,
             case when e.id is null then r.worker_id_fingerprint end as worker_id_fingerprint,
             case when e.id is null then r.email_fingerprint end as email_fingerprint,
             case when e.id is null then r.new_member_id end as new_member_id, r.faults
        from (select * from member_import_rows where partner_id = ${partnerId} and import_id = ${importId}) r
        full join (select *, instructed_at <= ${now} as may_be_missing from members
                    where partner_id = ${partnerId} and status in ('active', 'invited')) e
               on e.${column('email_fingerprint')} = r.email_fingerprint
    ), others as materialized (
      select o.row, coalesce(w.id, f.id) as member_id, w.id is not null as by_worker_id, o.new_member_id, o.faults
        from (select * from joined where member_id is null) o
        left join members w on w.partner_id = ${partnerId} and w.${column('worker_id_fingerprint')} = o.worker_id_fingerprint
        left join (select ${column('email_fingerprint')} as email_fingerprint, max(id) as id from members
                    where partner_id = ${partnerId} and status = 'inactive' and erased_at is null group by ${column('email_fingerprint')}) f
               on f.email_fingerprint = o.email_fingerprint
    ), counted as (
      select new_rows, new_rows * 2 > row_count as are_mostly_new, members_before
        from (select count(row) as row_count, count(member_id) as members_before from joined) j,
             (select count(*) filter (where member_id is null) as new_rows from others) o
    ), missing as (
      insert into member_import_steps (partner_id, import_id, step, action, member_id)
      select ${partnerId}, ${importId}, ${readTo}::integer + row_number() over (order by member_id), 'Offboard', member_id
        from joined
       where row is null and may_be_missing
         and not exists (select from others where others.member_id = joined.member_id)
      returning step
    ), stored as (
      -- Skips the more frequent kind of row, new or unchanged, which needs neither a step nor a decision.
      insert into member_import_matches
      select row, member_id, is_same, false, new_member_id, joined.faults
        from joined cross join counted
       where row is not null and member_id is not null
         and (not is_same or are_mostly_new or member_id in (select member_id from others where by_worker_id))
       union all
      select row, member_id, false, by_worker_id, new_member_id, others.faults
        from others cross join counted
       where member_id is not null or others.faults is not null or not are_mostly_new
      returning member_id, faults
    )
    select members_before::integer, case when are_mostly_new then 'Invite' else 'Unchanged' end as rest_action,
           new_rows::integer
             - (select count(*) from stored where member_id is null and faults is not null)::integer as invite,
           (select count(*) from missing)::integer as offboard
      from counted`.execute(tx)
  if (isLarge) await sql`select set_config('enable_nestloop', 'on', true)`.execute(tx)
  assert(rows[0] !== undefined)
  return rows[0]
}

type Matched = { membersBefore: number; restAction: RestAction; invite: number; offboard: number }

// Whether each cell of the row equals the value of member `e`. This is only a shortcut for unchanged rows: any other row is
// decided by the rules, which may still find that nothing changes.
function isSame({ columns, removesAccounts }: FileTerms, sealer: Sealer) {
  const isEqual = (name: string, { keeps }: { keeps: boolean }) => {
    const [has, says] = [sql.raw(`e.${memberColumn(name, sealer)}`), sql.raw(`r.${name}`)]
    return keeps
      ? sql`(${says} is null or ${has} is not distinct from ${says})`
      : sql`${has} is not distinct from ${says}`
  }
  const plain = plainColumns.filter(({ name }) => columns.includes(name))
  const sealed = columnSpecs.flatMap(({ name, field }) =>
    isSealed(field) && field !== 'email' && field !== 'accountDetails' && columns.includes(name) ? [field] : [],
  )
  return sql.join(
    [
      ...plain.map(({ name, emptyCell }) => isEqual(name, { keeps: emptyCell === 'keeps' })),
      ...sealed.map(field => isEqual(fingerprintColumn(field), { keeps: false })),
      // An empty account may be of another kind than the member's, and then removes nothing; such rows, which are few, are decided.
      isEqual(fingerprintColumn('accountDetails'), { keeps: !removesAccounts || !columns.includes('account_holder') }),
    ],
    sql` and `,
  )
}

// The column of the members whose fingerprints are all made with the key of the rows'; see `pinFingerprints`.
function memberColumn(name: string, { usesNextFingerprints }: Sealer): string {
  return usesNextFingerprints && fingerprintColumns.includes(name) ? nextColumn(name) : name
}

async function recordDuplicates(
  tx: Tx,
  { partnerId, importId }: FileTerms,
  { key, name }: { key: ReturnType<typeof sql>; name: Column },
): Promise<void> {
  const mine = sql`partner_id = ${partnerId} and import_id = ${importId}`
  await sql`
    with repeated as (select ${key} as key, min(row) as first from member_import_rows where ${mine}
                       group by ${key} having count(*) > 1 and ${key} is not null)
    insert into member_import_faults
    select r.row, format('%s: duplicate of row %s', ${name}::text, repeated.first), false
      from repeated join member_import_rows r on ${key} = repeated.key
     where ${mine} and r.row <> repeated.first`.execute(tx)
}

async function recordDoubleMatches(tx: Tx): Promise<void> {
  await sql`
    with twice as (select member_id, min(row) as first from member_import_matches
                    where member_id is not null group by member_id having count(*) > 1)
    insert into member_import_faults
    select m.row, format('matches %s by e-mail or worker_id, and so does row %s', m.member_id, twice.first), true
      from twice join member_import_matches m on m.member_id = twice.member_id
     where m.row <> twice.first and m.row not in (select row from member_import_faults)`.execute(tx)
}

// Stores the steps of new and unchanged rows, except those of the rest action.
async function planRest(
  tx: Tx,
  { terms: { partnerId, importId }, restAction }: { terms: FileTerms; restAction: RestAction },
): Promise<void> {
  await sql`
    insert into member_import_faults
    select row, faults, false from member_import_matches where member_id is null and faults is not null`.execute(tx)
  const others =
    restAction === 'Invite'
      ? sql`select row, 'Unchanged', member_id from member_import_matches where is_same`
      : sql`select row, 'Invite', new_member_id from member_import_matches where member_id is null and faults is null`
  await sql`
    insert into member_import_steps (partner_id, import_id, step, action, member_id)
    select ${partnerId}, ${importId}, others.* from (${others}) others`.execute(tx)
}

async function planMatched(
  tx: Tx,
  { terms, partner, restAction, now }: { terms: FileTerms; partner: PartnerRules; restAction: RestAction; now: Date },
): Promise<{ update: number; reinstate: number }> {
  const { partnerId, importId } = terms
  // Without this index, every batch below would scan all rows.
  await sql`create index on member_import_matches (row) where member_id is not null and not is_same`.execute(tx)
  const counts = { update: 0, reinstate: 0 }
  for (let [after, faultyCount] = [0, 0]; ; ) {
    const { rows: places } = await sql<{ row: number; memberId: string; byWorkerId: boolean }>`
      select row, member_id, by_worker_id from member_import_matches
       where member_id is not null and not is_same and row > ${after} order by row limit ${decidedAtOnce}`.execute(tx)
    const last = places.at(-1)
    if (last === undefined || faultyCount > issuesMax) return counts
    after = last.row
    const read = await readCommands(tx, terms, places)
    const commands = places.map(({ row }) => read.get(row) ?? assert.fail('A row that was matched is gone'))
    // A worker_id belongs to the member who held it before the file, whether or not another row reassigns it.
    const decided = await decideAll(tx, { partner, commands, areIndependent: true, now })
    const steps: { row: number; action: Action; memberId: string }[] = []
    const faults: { row: number; message: string; isClash: boolean }[] = []
    for (const [index, { row, memberId, byWorkerId }] of places.entries()) {
      const change = decided[index]
      assert(change !== undefined)
      if (change instanceof Problem) {
        faultyCount += 1
        // A member who is matched only by worker_id may give it up in an import ahead; the row is then about another member.
        for (const message of faultsOf(change)) faults.push({ row, message, isClash: byWorkerId || isClash(change) })
        continue
      }
      const action = actionOf(change)
      if (action === 'Reinstate') counts.reinstate += 1
      else if (action !== 'Unchanged') counts.update += 1
      if (action !== restAction) steps.push({ row, action, memberId })
    }
    await sql`
      insert into member_import_steps (partner_id, import_id, step, action, member_id)
      select ${partnerId}, ${importId}, * from unnest(
        ${steps.map(step => step.row)}::integer[], ${steps.map(step => step.action)}::text[],
        ${steps.map(step => step.memberId)}::text[])`.execute(tx)
    await sql`
      insert into member_import_faults
      select * from unnest(${faults.map(fault => fault.row)}::integer[], ${faults.map(fault => fault.message)}::text[],
                           ${faults.map(fault => fault.isClash)}::boolean[])`.execute(tx)
  }
}

// FaultyRows beyond the limit of a response are only counted.
async function listFaults(tx: Tx, { clashes }: { clashes: 'refuse' | 'defer' }): Promise<FaultyRows> {
  const { rows } = await sql<RowFault & { total: number }>`
    select row, array_agg(distinct message) as messages, (count(*) over ())::integer as total
      from member_import_faults where not is_clash or ${clashes === 'refuse'}::boolean
     group by row order by row limit ${issuesMax}`.execute(tx)
  const faultsMore = (rows[0]?.total ?? 0) - rows.length
  return { faults: rows.map(({ row, messages }) => ({ row, messages })), faultsMore }
}

// A row may have a step already: two rows of one member are planned separately.
async function markFaulty(
  tx: Tx,
  {
    terms: { partnerId, importId },
    plan,
    rowCount,
    restAction,
  }: Pick<Planning, 'terms' | 'rowCount'> & Pick<FilePlan, 'plan' | 'restAction'>,
): Promise<Plan> {
  const { numAffectedRows: marked } = await sql`
    insert into member_import_steps (partner_id, import_id, step, action, member_id, fault)
    select ${partnerId}, ${importId}, m.row, case when m.member_id is null then 'Invite' else 'Update' end,
           coalesce(m.member_id, m.new_member_id), f.message
      from (select row, string_agg(distinct message, '; ') as message from member_import_faults group by row) f
      join member_import_matches m on m.row = f.row
        on conflict (partner_id, import_id, step) do update
           set fault = excluded.fault,
               action = case member_import_steps.action when 'Unchanged' then excluded.action else member_import_steps.action end`.execute(
    tx,
  )
  if (!marked) return plan
  const counts = actions.map(
    action => sql`count(*) filter (where action = ${action})::integer as ${sql.ref(action.toLowerCase())}`,
  )
  const { rows } = await sql<Plan>`
    select ${sql.join(counts)} from member_import_steps
     where partner_id = ${partnerId} and import_id = ${importId}`.execute(tx)
  return planOfSteps(rows[0] ?? emptyPlan, { rowCount, restAction })
}

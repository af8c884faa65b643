import { type Page, type Reader, sql } from '../database/database.ts'
import type { PartialProfile } from '../members/fields.ts'
import { sealerOf } from '../sealing/held.ts'
import { memberColumns, openRows, rowColumns, type SealedRow } from './rows.ts'
import type { Action } from './schema.ts'

/** The outcome for one row, one action, or one member missing from the file, with the profile of the row or the member. */
export type Result = PartialProfile & {
  /** The row of the file or the position of the action; null for members missing from the file. */
  row: number | null
  action: Action
  outcome: 'Pending' | 'Done' | 'Failed' | 'NotDone'
  memberId: string | null
  message: string | null
  /** Strictly ascending. */
  step: number
}

type ResultFilter = { actions?: Result['action'][]; outcomes?: Result['outcome'][] }

type Asked = { partnerId: string; importId: string; filter: ResultFilter }

/**
 * Lists the results of an import in the order of the file or the actions; members missing from the file come last. The rows are
 * deleted some time after the import ends, and the list is empty from then on.
 * @param after step of the last result already read, 0 to start
 */
export async function listResults(
  db: Reader,
  { after = 0, page, ...asked }: Asked & { after?: number | undefined; page: Page },
): Promise<Result[]> {
  const each = (branch: ReturnType<typeof sql>) => sql`
    (select * from (${branch}) branch where step > ${after}::integer and ${matching(asked.filter)}
      order by step limit ${page.skip + page.take})`
  // While the key of fingerprints is rotated, a row and its member may each have the other one as the first.
  const ofNext = sealerOf(db).isRotatingFingerprints
    ? sql`or email_fingerprint_next = results.email_fingerprint`
    : sql``
  // The member of an unchanged row has no step, so it is looked up, for this page only.
  const { rows } = await sql<SealedRow<Result>>`
    select results.*, coalesce(step_member_id, unchanged.id) as member_id
      from (select * from (${each(ofRows(asked))} union all ${each(ofOthers(asked))}) results
             order by step offset ${page.skip} limit ${page.take}) results
      left join lateral (select id from members
                          where step_member_id is null and partner_id = ${asked.partnerId}
                            and (email_fingerprint = results.email_fingerprint ${ofNext}) and status in ('active', 'invited')) unchanged on true
     order by step`.execute(db)
  return await openRows<Result>(db, asked, rows)
}

export async function countResults(db: Reader, asked: Asked): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select count(*)::integer as total from (${ofRows(asked)} union all ${ofOthers(asked)}) results
     where ${matching(asked.filter)}`.execute(db)
  return rows[0]?.total ?? 0
}

function matching({ actions, outcomes }: ResultFilter) {
  return sql.join(
    [
      ...(actions === undefined ? [] : [sql`action = any(${actions}::text[])`]),
      ...(outcomes === undefined ? [] : [sql`outcome = any(${outcomes}::text[])`]),
      sql`true`,
    ],
    sql` and `,
  )
}

const outcomeOf = ({ step, isUnchanged }: Record<'step' | 'isUnchanged', ReturnType<typeof sql>>) => sql`
  case when i.status = 'NotReady' then 'Pending'
       when s.fault is not null then 'Failed'
       when ${isUnchanged} then 'Done'
       when i.status = 'Rejected' then 'NotDone'
       when ${step} <= i.applied_through then 'Done'
       else 'Pending' end as outcome`

function ofRows({ partnerId, importId }: Asked) {
  const action = sql`coalesce(s.action, i.rest_action)`
  return sql`
    select p.row as step, p.row, ${action} as action,
           ${outcomeOf({ step: sql`p.row`, isUnchanged: sql`${action} = 'Unchanged'` })},
           coalesce(s.member_id, case i.rest_action when 'Invite' then p.new_member_id end) as step_member_id,
           s.fault as message, ${rowColumns('p')}
      from member_imports i
      join member_import_rows p on p.partner_id = i.partner_id and p.import_id = i.id
      left join member_import_steps s on s.partner_id = p.partner_id and s.import_id = p.import_id and s.step = p.row
     where i.partner_id = ${partnerId} and i.id = ${importId}`
}

function ofOthers({ partnerId, importId }: Asked) {
  return sql`
    select s.step, case when i.kind = 'actions' then s.step end as row, s.action,
           ${outcomeOf({ step: sql`s.step`, isUnchanged: sql`false` })},
           s.member_id as step_member_id, s.fault as message, ${memberColumns('p', 'k')}
      from member_imports i
      join member_import_steps s on s.partner_id = i.partner_id and s.import_id = i.id
      left join members p on p.partner_id = s.partner_id and p.id = s.member_id and p.erased_at is null
      left join member_keys k on k.partner_id = s.partner_id and k.member_id = p.id
     where i.partner_id = ${partnerId} and i.id = ${importId} and s.step > i.row_to`
}

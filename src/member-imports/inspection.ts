import { type Reader, sql } from '../database/database.ts'
import type { MemberImport } from './member-imports.ts'
import type { Plan } from './rules.ts'

// Member imports across all partners, for operators.

type Inspected = Pick<MemberImport, 'id' | 'status' | 'stepsDone' | 'createdAt' | 'endedAt'> & {
  partnerId: string
  kind: 'actions' | 'file'
  plan: Plan
  reviewedAt: Date | null
}

type ImportFilter = { partnerId?: string | undefined; statuses?: readonly string[] | undefined }

/**
 * Member imports, newest first.
 * @param before the id of an import: only older ones, for the next page
 */
export async function list(
  db: Reader,
  { filter, before, take }: { filter: ImportFilter; before?: string | undefined; take: number },
): Promise<Inspected[]> {
  const { partnerId, statuses } = filter
  const conditions = [
    ...(partnerId === undefined ? [] : [sql<boolean>`partner_id = ${partnerId}`]),
    ...(statuses === undefined ? [] : [sql<boolean>`status = any(${statuses}::text[])`]),
    ...(before === undefined ? [] : [sql<boolean>`id < ${before}`]),
  ]
  const { rows } = await sql<Omit<Inspected, 'plan'> & Plan>`
    select partner_id, id, kind, status, invite, update, reinstate, offboard, unchanged, steps_done, created_at,
           reviewed_at, ended_at
      from member_imports
     where ${sql.join(conditions.length === 0 ? [sql`true`] : conditions, sql` and `)}
     order by id desc limit ${take}`.execute(db)
  return rows.map(({ invite, update, reinstate, offboard, unchanged, ...memberImport }) => ({
    ...memberImport,
    plan: { invite, update, reinstate, offboard, unchanged },
  }))
}

/** The changes of a member in the imports whose results are kept, by import, newest first. No index has the member, so each is read. */
export async function* listStepsOf(
  db: Reader,
  { partnerId, memberId }: { partnerId: string; memberId: string },
): AsyncGenerator<{ jobId: string; createdAt: Date; action: string; fault: string | null }[]> {
  const { rows: imports } = await sql<{ id: string; createdAt: Date }>`
    select id, created_at from member_imports where partner_id = ${partnerId} and forgotten_at is null order by id desc`.execute(
    db,
  )
  for (const { id: jobId, createdAt } of imports) {
    const { rows } = await sql<{ action: string; fault: string | null }>`
      select action, fault from member_import_steps
       where partner_id = ${partnerId} and import_id = ${jobId} and member_id = ${memberId} order by step`.execute(db)
    yield rows.map(row => ({ jobId, createdAt, ...row }))
  }
}

import { type CopyInto, type Db, type Page, type Reader, sql, type Tx } from '../db.ts'
import { issue, issuesMax, Problem, type ProblemName, problem } from '../errors.ts'
import { newId } from '../ids.ts'
import { wake } from '../jobs.ts'
import { type Decision, decideAll, type PartnerRules, type Wish, wavesOf } from '../members/changes.ts'
import { type Column, columns } from '../members/schema.ts'
import type { Partner } from '../partners/partners.ts'
import * as tiers from '../tiers/tiers.ts'
import { dayIn } from '../time.ts'
import { applySome, end, type Job, tell } from './applying.ts'
import { type Action, actionOf, faultOf, type Plan, planFile, stepsOf } from './plan.ts'
import { type Fault, type Read, readInto } from './reading.ts'
import type { MemberAction } from './schema.ts'

/** A batch of changes to members, from its plan to its end. */
export type MemberJob = {
  id: string
  status: 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
  plan: Plan
  /** Of its file, those of the template for a job of actions. */
  columns: readonly Column[]
  stepsDone: number
  createdAt: Date
  endedAt: Date | null
}

/** What has become of an upload: a job, and whether it waits. */
export type Created = { jobId: string; plan: Plan; needsReview: boolean }

/**
 * A file to read, which is the complete list of members.
 * `offboardMax`: as many as somebody has agreed to; with more, the job waits for a review.
 */
export type MemberFile = {
  path: string
  kind: 'csv' | 'xlsx'
  removesAccounts: boolean
  offboardMax?: number | undefined
}

// A preview names as many as a person would read.
const namedMax = 1_000
// Less than that is soon noticed.
const growthMin = 5_000
// Actions that build on each other, such as those of one member, are written one after the other, all in one transaction.
const wavesMax = 100

/**
 * Decides a batch of actions, one after the other, and has the worker apply them: all or none.
 * @throws Problem with an issue for every action that cannot be; `Conflict` while another job is not done
 */
export async function createFromActions(
  tx: Tx,
  { partner, actions, now }: { partner: Partner; actions: MemberAction[]; now: Date },
): Promise<Created> {
  await takeTurn(tx, partner.id)
  const wishes = actions.map(action => wishOf(action, now))
  const decided = await decideAll(tx, { partner, wishes, now })
  const places = new Map(wishes.map(({ memberId }, index) => [memberId, index]))
  const faults = decided.flatMap((each, index) =>
    each instanceof Problem ? issuesOf(each, { actions, index, places }) : [],
  )
  const [first] = faults
  if (first !== undefined) throw new Problem(first.name, faults.map(fault => fault.issue).slice(0, issuesMax))
  const decisions = decided.filter((each): each is Decision => !(each instanceof Problem))
  if (wavesOf(decisions).length > wavesMax) {
    throw problem('BodyValidation', 'Too many of the actions build on each other; send them in several jobs', {
      path: 'actions',
    })
  }
  const jobId = newId('memberJob', now)
  const steps = decided.flatMap((each, index) => {
    const wish = wishes[index]
    const action = each instanceof Problem ? undefined : actionOf(each)
    return wish === undefined || action === undefined ? [] : [{ step: index + 1, action, wish }]
  })
  const count = (action: Action) => steps.filter(step => step.action === action).length
  const plan = {
    ...{ invite: count('Invite'), update: count('Update'), bringBack: count('BringBack'), offboard: count('Offboard') },
    unchanged: wishes.length - steps.length,
  }
  await insert(tx, {
    partner,
    jobId,
    kind: 'actions',
    plan,
    columns: [],
    removesAccounts: false,
    rowTo: 0,
    needsReview: false,
    now,
  })
  await sql`
    insert into member_job_steps (partner_id, job_id, step, action, member_id, wish)
    select ${partner.id}, ${jobId}, * from unnest(
      ${steps.map(({ step }) => step)}::integer[], ${steps.map(({ action }) => action)}::text[],
      ${steps.map(({ wish }) => wish.memberId)}::text[], ${steps.map(({ wish }) => JSON.stringify(wish))}::jsonb[])`.execute(
    tx,
  )
  return { jobId, plan, needsReview: false }
}

/**
 * Reads a file, plans what it means, and has the worker apply it, at once or after a review. All of it happens in this
 * transaction: with a fault, or after a kill, nothing of it is there.
 * @param copyInto of this transaction
 * @param signal of a caller who has hung up, for whom nothing is read any more
 * @throws Problem `FileContent` with an issue for every row that is at fault; `Conflict` while another job is not done
 */
export async function createFromFile(
  tx: Tx,
  {
    partner,
    file,
    copyInto,
    signal,
    now,
  }: { partner: Partner; file: MemberFile; copyInto: CopyInto; signal: AbortSignal; now: Date },
): Promise<Created> {
  const partnerId = partner.id
  await takeTurn(tx, partnerId)
  // Large files take longer than what anybody waits for; and what PostgreSQL then compiles, it uses once.
  await sql`
    select set_config('statement_timeout', '10min', true), set_config('work_mem', '64MB', true),
           set_config('jit', 'off', true)`.execute(tx)
  const jobId = newId('memberJob', now)
  const currencies = await tiers.listCurrencies(tx, partnerId)
  const { path, kind, removesAccounts, offboardMax = Number.POSITIVE_INFINITY } = file
  const read = await readInto(() => copyInto(copyStatement), {
    ...{ file: { path, kind }, partnerId, jobId, country: partner.country, today: dayIn(partner.timeZone, now), now },
    ...{ tiers: [...currencies], signal },
  })
  const { columns } = read
  // Nothing can be compared with a file that has no header.
  if (columns.length === 0 || read.faultsMore > 0) throw faulty(read)
  const terms = { partnerId, jobId, columns, removesAccounts }
  const { plan, membersBefore, ...planned } = await planFile(tx, { ...read, terms, partner, now })
  if (read.faults.length + planned.faults.length > 0) throw faulty(read, planned)
  const isMany = plan.offboard * 100 > membersBefore * partner.offboardReviewPercent
  // An empty list is a mistake more often than it is meant.
  const isEverybody = plan.offboard > 0 && read.rowCount === 0
  const needsReview = isMany || isEverybody || plan.offboard > offboardMax
  await insert(tx, {
    partner,
    jobId,
    kind: 'file',
    plan,
    columns,
    removesAccounts,
    rowTo: read.readTo,
    needsReview,
    now,
  })
  return { jobId, plan, needsReview }
}

/** Who is offboarded by a job: as many of them as a person would read. */
export async function listOffboarded(
  db: Reader,
  { partnerId, jobId }: { partnerId: string; jobId: string },
): Promise<string[]> {
  const { rows } = await sql<{ memberId: string }>`
    select member_id from member_job_steps
     where partner_id = ${partnerId} and job_id = ${jobId} and action = 'Offboard'
     order by step limit ${namedMax}`.execute(db)
  return rows.map(row => row.memberId)
}

/** @throws Problem `NotFound`, also for another partner's job */
export async function find(db: Reader, { partnerId, jobId }: { partnerId: string; jobId: string }): Promise<MemberJob> {
  const row = await select(db, partnerId).where('id', '=', jobId).executeTakeFirst()
  if (row === undefined) throw noSuchJob()
  return toJob(row)
}

/** Newest first. */
export async function list(db: Reader, { partnerId, page }: { partnerId: string; page: Page }): Promise<MemberJob[]> {
  const rows = await select(db, partnerId).orderBy('id', 'desc').offset(page.skip).limit(page.take).execute()
  return rows.map(toJob)
}

export async function count(db: Reader, partnerId: string): Promise<number> {
  const { total } = await db
    .selectFrom('memberJobs')
    .select(sql<number>`count(*)::integer`.as('total'))
    .where('partnerId', '=', partnerId)
    .executeTakeFirstOrThrow()
  return total
}

/**
 * Lets a job that waits go on. One that goes on already, or is done, is the same answer.
 * @throws Problem `NotFound`; `Conflict` for one that was rejected
 */
export async function approve(tx: Tx, decision: Review): Promise<MemberJob> {
  return await review(tx, { ...decision, to: 'Processing' })
}

/**
 * Ends a job that waits, with nothing done. Rejecting one again is the same answer.
 * @throws Problem `NotFound`; `Conflict` for one that has been approved, or never had to be
 */
export async function reject(tx: Tx, decision: Review): Promise<MemberJob> {
  return await review(tx, { ...decision, to: 'Rejected' })
}

type Review = { partnerId: string; jobId: string; now: Date }

async function review(
  tx: Tx,
  { partnerId, jobId, now, to }: Review & { to: 'Processing' | 'Rejected' },
): Promise<MemberJob> {
  const row = await select(tx, partnerId).where('id', '=', jobId).forNoKeyUpdate().executeTakeFirst()
  if (row === undefined) throw noSuchJob()
  if (row.status !== 'AwaitingReview') {
    const isRepeated = (row.status === 'Rejected') === (to === 'Rejected')
    if (isRepeated) return toJob(row)
    throw problem('Conflict', `The job is not waiting for a review; it is ${row.status}`)
  }
  await tx
    .updateTable('memberJobs')
    .set({ reviewedAt: now, ...(to === 'Processing' ? { status: to } : {}) })
    .where('partnerId', '=', partnerId)
    .where('id', '=', jobId)
    .execute()
  if (to === 'Rejected') await end(tx, { partnerId, jobId }, { status: to, now })
  else {
    await tell(tx, { partnerId, jobId, status: to, now })
    await wake(tx, { job: 'apply-member-jobs', at: now })
  }
  return await find(tx, { partnerId, jobId })
}

/**
 * The job to go on with: of the ones that are to be applied the one that is least far, so that a small one does not wait for
 * the end of a large one.
 * @param except jobs that are not wanted now
 */
export async function findNext(db: Reader, { except }: { except: string[] }): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from member_jobs where status = 'Processing' and id <> all(${except}::text[])
     order by steps_done, created_at limit 1`.execute(db)
  return rows[0]?.id
}

/**
 * Takes the next steps of a job.
 * @returns undefined when somebody else is at it, or has ended it; else whether it has ended, and how many steps it has
 */
export async function applyNext(
  tx: Tx,
  { jobId, now }: { jobId: string; now: Date },
): Promise<{ hasEnded: boolean; steps: number } | undefined> {
  const { rows } = await sql<Job & PartnerRules>`
    select j.partner_id, j.id as job_id, j.kind, j.columns, j.removes_accounts, j.applied_through, j.created_at,
           j.invite + j.update + j.bring_back + j.offboard as steps, p.country, p.time_zone, p.auto_activate
      from member_jobs j join partners p on p.id = j.partner_id
     where j.status = 'Processing' and j.id = ${jobId}
       for no key update of j skip locked`.execute(tx)
  const [row] = rows
  if (row === undefined) return undefined
  const { country, timeZone, autoActivate, ...job } = row
  const partner = { id: job.partnerId, country, timeZone, autoActivate }
  return { hasEnded: await applySome(tx, { job, partner, now }), steps: job.steps }
}

/**
 * Has the planner look at the tables that a large job has filled, instead of waiting for PostgreSQL to notice by itself: until
 * then statements would be planned for tables of a tenth of the size.
 */
export async function noteGrowth(db: Db, { steps }: { steps: number }): Promise<void> {
  if (steps > growthMin) await sql`select analyze_tables('members', 'events', 'member_job_steps')`.execute(db)
}

/**
 * Forgets the rows and steps of a job that ended before an instant; what it came to in numbers stays.
 * @param rowsMax deletes at most as many at once
 * @returns whether there may be more to forget
 */
export async function forgetSome(
  tx: Tx,
  { endedBefore, rowsMax, now }: { endedBefore: Date; rowsMax: number; now: Date },
): Promise<boolean> {
  const { rows } = await sql<{ partnerId: string; jobId: string }>`
    select partner_id, id as job_id from member_jobs
     where forgotten_at is null and ended_at < ${endedBefore}
     order by ended_at limit 1 for no key update skip locked`.execute(tx)
  const [job] = rows
  if (job === undefined) return false
  const { partnerId, jobId } = job
  let deleted = 0n
  for (const table of ['member_job_rows', 'member_job_steps'].map(name => sql.table(name))) {
    const { numAffectedRows = 0n } = await sql`
      delete from ${table} where ctid = any(array(
        select ctid from ${table} where partner_id = ${partnerId} and job_id = ${jobId} limit ${rowsMax}))`.execute(tx)
    deleted += numAffectedRows
  }
  if (deleted === 0n) {
    await sql`update member_jobs set forgotten_at = ${now} where partner_id = ${partnerId} and id = ${jobId}`.execute(
      tx,
    )
  }
  return true
}

// One at a time: two lists that are both complete cannot both be true, and each would be compared with members whom the other
// is about to change.
async function takeTurn(tx: Tx, partnerId: string): Promise<void> {
  const { rows } = await sql<{ isMine: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('member job of ' || ${partnerId}::text, 0)) as is_mine`.execute(
    tx,
  )
  if (!rows[0]?.isMine) {
    throw problem(
      'Conflict',
      'Another upload of members is being read right now; try again in a moment',
      {},
      { 'retry-after': '5' },
    )
  }
  const unfinished = await select(tx, partnerId)
    .where('status', 'in', ['AwaitingReview', 'Processing'])
    .executeTakeFirst()
  if (unfinished === undefined) return
  const { id, status } = unfinished
  throw status === 'AwaitingReview'
    ? problem('Conflict', `The job ${id} is waiting for a review: approve or reject it first`)
    : problem('Conflict', `The job ${id} is not done yet; try again when it is`, {}, { 'retry-after': '5' })
}

async function insert(
  tx: Tx,
  {
    partner,
    jobId,
    kind,
    plan,
    columns,
    removesAccounts,
    rowTo,
    needsReview,
    now,
  }: {
    partner: Partner
    jobId: string
    kind: 'actions' | 'file'
    plan: Plan
    columns: Column[]
    removesAccounts: boolean
    rowTo: number
    needsReview: boolean
    now: Date
  },
): Promise<void> {
  const partnerId = partner.id
  const status = needsReview ? 'AwaitingReview' : 'Processing'
  await tx
    .insertInto('memberJobs')
    .values({ partnerId, id: jobId, kind, ...plan, columns, removesAccounts, rowTo, status, createdAt: now })
    .execute()
  await tell(tx, { partnerId, jobId, status, now })
  if (needsReview) return
  if (stepsOf(plan) === 0) await end(tx, { partnerId, jobId }, { status: 'Completed', now })
  else await wake(tx, { job: 'apply-member-jobs', at: now })
}

function wishOf(action: MemberAction, now: Date): Wish {
  switch (action.type) {
    case 'Add': {
      const { type, ...body } = action
      return { type, memberId: newId('member', now), body }
    }
    case 'Replace': {
      const { type, memberId, ...body } = action
      return { type, memberId, body }
    }
    case 'Update': {
      const { type, memberId, ...update } = action
      return { type, memberId, update }
    }
    case 'Offboard':
      return action
    default:
      return action satisfies never
  }
}

// All issues of a batch share one status, whatever each would be alone.
function issuesOf(
  refusal: Problem,
  { actions, index, places }: { actions: MemberAction[]; index: number; places: Map<string, number> },
) {
  const action = actions[index]
  if (action === undefined) return []
  const name = refusalNames[action.type]
  const extra = action.type === 'Add' ? { email: action.email } : { memberId: action.memberId }
  // A new member of the same batch has no id yet that anybody knows.
  const holderId = String(refusal.issues[0]?.memberId)
  const place = refusal.name === 'MemberAlreadyInvited' ? places.get(holderId) : undefined
  const isNew = place !== undefined && actions[place]?.type === 'Add'
  const messages = isNew
    ? [`actions.${place} has the same e-mail or workerId`]
    : refusal.issues.length > 1
      ? refusal.issues.map(each => each.message)
      : [faultOf(refusal)]
  return messages.map(message => ({ name, issue: issue(name, `actions.${index}: ${message}`, extra) }))
}

const refusalNames = {
  Add: 'InvalidAddMemberPayload',
  Replace: 'InvalidUpdateMemberPayload',
  Update: 'InvalidUpdateMemberPayload',
  Offboard: 'InvalidRemoveMemberPayload',
} as const satisfies Record<MemberAction['type'], ProblemName>

// One issue for each row, in the order of the file, and a closing one that counts the rest. A row that could not be read was
// not planned.
function faulty(read: Read, planned: { faults: Fault[]; faultsMore: number } = { faults: [], faultsMore: 0 }): Problem {
  const rows = [...read.faults, ...planned.faults].sort((a, b) => a.row - b.row)
  const issues = rows.slice(0, issuesMax).map(({ row, message }) => issue('FileContent', message, { row: String(row) }))
  const more = rows.length - issues.length + read.faultsMore + planned.faultsMore
  if (more > 0) {
    const message = `and at least ${more} more of the ${read.rowCount} rows that were looked at are at fault`
    issues.push(issue('FileContent', message, { row: String(read.readTo) }))
  }
  return new Problem('FileContent', issues)
}

function noSuchJob(): Problem {
  return problem('NotFound', 'There is no such job')
}

const copyStatement = `copy member_job_rows (
  partner_id, job_id, row, new_member_id, email, first_name, last_name, phone, tier, worker_id, account_holder, sort_code,
  account_number, iban, dob, gender, enable_payroll, faults) from stdin`

function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('memberJobs')
    .select([
      'id',
      'status',
      'invite',
      'update',
      'bringBack',
      'offboard',
      'unchanged',
      'columns',
      'stepsDone',
      'createdAt',
      'endedAt',
    ])
    .where('partnerId', '=', partnerId)
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

function toJob({ invite, update, bringBack, offboard, unchanged, columns: stored, ...job }: Row): MemberJob {
  const plan = { invite, update, bringBack, offboard, unchanged }
  // Written by ourselves, of nothing else.
  return { ...job, plan, columns: stored.length === 0 ? columns : (stored as Column[]) }
}

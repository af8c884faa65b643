import * as auditLog from '../audit-log/audit-log.ts'
import type { CopyInto } from '../database/copy.ts'
import { type Db, type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { issue, issuesMax, Problem, type ProblemName, problem } from '../errors.ts'
import { newId } from '../ids.ts'
import { type Decision, decideAll, type MemberCommand, type PartnerRules, wavesOf } from '../members/changes.ts'
import { type Column, columns } from '../members/fields.ts'
import type { Partner } from '../partners/partners.ts'
import { scheduleTask } from '../tasks.ts'
import * as tiers from '../tiers/tiers.ts'
import { dayIn } from '../time.ts'
import { applySome, emit, emitStatus, end, type Job, wavesMax } from './apply.ts'
import { copyStatement } from './copy.ts'
import {
  type Action,
  actionOf,
  faultOf,
  isClash,
  type Kind,
  type Plan,
  planFile,
  planFileAgain,
  planOfActions,
  stepsOf,
} from './plan.ts'
import { type Fault, type Read, readInto } from './read-file.ts'
import type { MemberAction } from './schema.ts'

/** A batch of changes to members, from its plan to its end. */
export type MemberJob = {
  id: string
  /** `NotReady` while it is queued behind another job. */
  status: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
  /** Of a queued job, as it looked when it was sent. */
  plan: Plan
  /** How many the plan has. */
  steps: number
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
 * `offboardMax`: as many as the caller has agreed to; with more, the job waits for a review.
 */
export type MemberFile = {
  /** Of the open file. */
  fd: number
  kind: 'csv' | 'xlsx'
  removesAccounts: boolean
  offboardMax?: number | undefined
}

// A preview names as many as a person would read.
const namedMax = 1_000
// Less than that is soon noticed.
const growthMin = 5_000
// Per partner. A client that queues more does not look at what becomes of its jobs.
const queuedJobsMax = 100
// Each keeps up to a million rows, and the next complete list makes it pointless.
const queuedFilesMax = 5

/**
 * Decides a batch of actions, one after the other, and has the worker apply them: all or none. Behind another job it is queued,
 * and decided again in its turn; so an action that clashes with another member is accepted, as the job ahead may resolve it.
 * @throws Problem with an issue for every action that cannot be; `Conflict` if the queue is full
 */
export async function createFromActions(
  tx: Tx,
  { partner, actions, now }: { partner: Partner; actions: MemberAction[]; now: Date },
): Promise<Created> {
  const { isQueued } = await requireRoom(tx, { partnerId: partner.id, kind: 'actions' })
  const commands = actions.map(action => commandOf(action, now))
  const decided = await decideAll(tx, { partner, commands, now })
  const places = new Map(commands.map(({ memberId }, index) => [memberId, index]))
  const faults = decided.flatMap((each, index) => {
    if (!(each instanceof Problem) || (isQueued && mayPass(each, { actions, places }))) return []
    return issuesOf(each, { actions, index, places })
  })
  const [first] = faults
  if (first !== undefined) throw new Problem(first.name, faults.map(fault => fault.issue).slice(0, issuesMax))
  const decisions = decided.filter((each): each is Decision => !(each instanceof Problem))
  if (wavesOf(decisions).length > wavesMax) {
    throw problem('BodyValidation', 'Too many of the actions build on each other; send them in several jobs', {
      path: 'actions',
    })
  }
  const jobId = newId('memberJob', now)
  const steps = commands.map((command, index) => ({
    step: index + 1,
    action: actionFor(command, decided[index]),
    command,
  }))
  const plan = planOfActions(steps.map(({ action }) => action))
  await insert(tx, {
    partner,
    jobId,
    kind: 'actions',
    plan,
    columns: [],
    removesAccounts: false,
    offboardMax: null,
    rowTo: 0,
    isQueued,
    needsReview: false,
    now,
  })
  await sql`
    insert into member_job_steps (partner_id, job_id, step, action, member_id, wish)
    select ${partner.id}, ${jobId}, * from unnest(
      ${steps.map(({ step }) => step)}::integer[], ${steps.map(({ action }) => action)}::text[],
      ${steps.map(({ command }) => command.memberId)}::text[], ${steps.map(({ command }) => JSON.stringify(command))}::jsonb[])`.execute(
    tx,
  )
  return { jobId, plan, needsReview: false }
}

/**
 * Reads a file, plans what it means, and has the worker apply it, at once or after a review. All of it happens in this
 * transaction: with a fault, or after a kill, nothing of it is there. Behind another job it is queued, and planned again in its
 * turn.
 * @param copyInto of this transaction
 * @param signal of a caller who has hung up, for whom nothing is read any more
 * @throws Problem `FileContent` with an issue for every row that is at fault; `Conflict` if the queue is full, or while another
 * file of the partner is being read
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
  await holdReading(tx, partnerId)
  const { isQueued } = await requireRoom(tx, { partnerId, kind: 'file' })
  await allowForLargeFile(tx)
  const jobId = newId('memberJob', now)
  const currencies = await tiers.listCurrencies(tx, partnerId)
  const { fd, kind, removesAccounts, offboardMax = null } = file
  const read = await readInto(() => copyInto(copyStatement), {
    ...{ file: { fd, kind }, partnerId, jobId, country: partner.country, today: dayIn(partner.timeZone, now), now },
    ...{ tiers: [...currencies], signal },
  })
  const { columns } = read
  // Nothing can be compared with a file that has no header.
  if (columns.length === 0 || read.faultsMore > 0) throw faulty(read)
  const terms = { partnerId, jobId, columns, removesAccounts }
  const clashes = isQueued ? 'defer' : 'refuse'
  const { plan, membersBefore, ...planned } = await planFile(tx, { ...read, terms, partner, clashes, now })
  if (read.faults.length + planned.faults.length > 0) throw faulty(read, planned)
  const { offboardReviewPercent } = partner
  const needsReview = mustBeReviewed(plan, { membersBefore, offboardReviewPercent, offboardMax })
  await insert(tx, {
    partner,
    jobId,
    kind: 'file',
    plan,
    columns,
    removesAccounts,
    offboardMax,
    rowTo: read.readTo,
    isQueued,
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
export async function approve(tx: Tx, decision: Review): Promise<Reviewed> {
  return await review(tx, { ...decision, to: 'Processing' })
}

/**
 * Ends a job that waits for its review or its turn, with nothing done. Rejecting one again is the same answer.
 * @throws Problem `NotFound`; `Conflict` for one that has been approved, or never had to be
 */
export async function reject(tx: Tx, decision: Review): Promise<Reviewed> {
  return await review(tx, { ...decision, to: 'Rejected' })
}

/**
 * Rejects jobs that have waited for a review for longer than their partner's setting. An expired job is rejected like any
 * other, and has one event more that says why.
 * @returns how many have expired
 */
export async function expireReviews(tx: Tx, { now, countMax }: { now: Date; countMax: number }): Promise<number> {
  const { rows } = await sql<{ partnerId: string; jobId: string; reviewDays: number }>`
    select j.partner_id, j.id as job_id, p.review_days
      from member_jobs j join partners p on p.id = j.partner_id
     where j.ended_at is null and j.status = 'AwaitingReview'
       and coalesce(j.review_since, j.created_at) + make_interval(days => p.review_days) <= ${now}
     order by j.id limit ${countMax} for no key update of j skip locked`.execute(tx)
  for (const { partnerId, jobId, reviewDays } of rows) {
    await emit(tx, { partnerId, jobId, type: 'job.expired', status: 'Rejected', now })
    await end(tx, { partnerId, jobId }, { status: 'Rejected', now })
    const change = { action: 'member_job.expire', resourceId: jobId, details: { reviewDays } } as const
    await auditLog.record(tx, { partnerId, actor: auditLog.worker, change, now })
  }
  // For the next jobs in their queues.
  if (rows.length > 0) await scheduleTask(tx, { task: 'apply-member-jobs', at: now })
  return rows.length
}

type Review = { partnerId: string; jobId: string; now: Date }

/** The job as it is now. `isRepeated`: it had been reviewed so before. */
type Reviewed = { job: MemberJob; isRepeated: boolean }

async function review(
  tx: Tx,
  { partnerId, jobId, now, to }: Review & { to: 'Processing' | 'Rejected' },
): Promise<Reviewed> {
  const row = await select(tx, partnerId).where('id', '=', jobId).forNoKeyUpdate().executeTakeFirst()
  if (row === undefined) throw noSuchJob()
  const isWaiting = row.status === 'AwaitingReview' || (row.status === 'NotReady' && to === 'Rejected')
  if (!isWaiting) {
    const isRepeated = row.status !== 'NotReady' && (row.status === 'Rejected') === (to === 'Rejected')
    if (isRepeated) return { job: toJob(row), isRepeated }
    throw problem('Conflict', `The job is not waiting for a review; it is ${row.status}`)
  }
  await tx
    .updateTable('memberJobs')
    .set({ reviewedAt: now, ...(to === 'Processing' ? { status: to } : {}) })
    .where('partnerId', '=', partnerId)
    .where('id', '=', jobId)
    .execute()
  if (to === 'Rejected') await end(tx, { partnerId, jobId }, { status: to, now })
  else await emitStatus(tx, { partnerId, jobId, status: to, now })
  // For this job, or for the next in the queue.
  await scheduleTask(tx, { task: 'apply-member-jobs', at: now })
  return { job: await find(tx, { partnerId, jobId }), isRepeated: false }
}

/**
 * The job to go on with: of the ones that are to be applied, or are next in their partner's queue, the one that is least far,
 * so that a small one does not wait for the end of a large one. A partner's jobs are applied in the order in which they were
 * sent.
 * @param except jobs that are not wanted now
 */
export async function findNext(db: Reader, { except }: { except: string[] }): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select j.id from member_jobs j
     where j.ended_at is null and j.id <> all(${except}::text[])
       and (j.status = 'Processing' or j.status = 'NotReady' and not exists (
             select from member_jobs ahead
              where ahead.partner_id = j.partner_id and ahead.ended_at is null
                and (ahead.status <> 'NotReady' or (ahead.created_at, ahead.id) < (j.created_at, j.id))))
     order by j.steps_done, j.created_at limit 1`.execute(db)
  return rows[0]?.id
}

/**
 * Takes the next steps of a job; of a queued one the first is to plan it anew.
 * @returns undefined if another worker has locked or ended it; else whether it has ended, and how many steps it has
 */
export async function applyNext(
  tx: Tx,
  { jobId, now }: { jobId: string; now: Date },
): Promise<{ hasEnded: boolean; steps: number } | undefined> {
  const { rows } = await sql<Omit<Job, 'steps'> & Plan & Queued & PartnerRules & { status: 'NotReady' | 'Processing' }>`
    select j.partner_id, j.id as job_id, j.kind, j.status, j.columns, j.removes_accounts, j.applied_through, j.created_at,
           j.invite, j.update, j.bring_back, j.offboard, j.unchanged, j.row_to, j.offboard_max,
           p.offboard_review_percent, p.country, p.time_zone, p.auto_activate
      from member_jobs j join partners p on p.id = j.partner_id
     where j.status in ('NotReady', 'Processing') and j.id = ${jobId}
       for no key update of j skip locked`.execute(tx)
  const [row] = rows
  if (row === undefined) return undefined
  const { country, timeZone, autoActivate, ...rest } = row
  const partner = { id: row.partnerId, country, timeZone, autoActivate }
  const job = { ...rest, steps: stepsOf(row.kind, row) }
  if (row.status === 'NotReady') return await takeTurn(tx, { job, partner, now })
  return { hasEnded: await applySome(tx, { job, partner, now }), steps: job.steps }
}

/** What planning a queued file again needs. */
type Queued = { rowTo: number; offboardMax: number | null; offboardReviewPercent: number }

// Actions are decided again whenever they are applied. A file is planned again, since the jobs ahead have changed who is missing.
async function takeTurn(
  tx: Tx,
  { job, partner, now }: { job: Job & Plan & Queued; partner: PartnerRules; now: Date },
): Promise<{ hasEnded: boolean; steps: number }> {
  if (job.kind === 'actions') {
    await begin(tx, { job, plan: job, needsReview: false, now })
    return { hasEnded: false, steps: job.steps }
  }
  await allowForLargeFile(tx)
  const rowCount = job.invite + job.update + job.bringBack + job.unchanged
  const { rowTo, createdAt: sentAt } = job
  const planned = await planFileAgain(tx, { terms: job, partner, rowCount, rowTo, sentAt })
  if (planned === null) {
    await end(tx, job, { status: 'Rejected', now })
    return { hasEnded: true, steps: 0 }
  }
  const { plan } = planned
  const steps = stepsOf(job.kind, plan)
  const needsReview = mustBeReviewed(plan, { ...job, ...planned })
  await begin(tx, { job, plan, needsReview, now })
  if (needsReview || steps > 0) return { hasEnded: false, steps }
  await end(tx, job, { status: 'Completed', now })
  return { hasEnded: true, steps }
}

async function begin(
  tx: Tx,
  {
    job: { partnerId, jobId },
    plan: { invite, update, bringBack, offboard, unchanged },
    needsReview,
    now,
  }: { job: Job; plan: Plan; needsReview: boolean; now: Date },
): Promise<void> {
  const status = needsReview ? 'AwaitingReview' : 'Processing'
  await tx
    .updateTable('memberJobs')
    .set({ status, invite, update, bringBack, offboard, unchanged, ...(needsReview ? { reviewSince: now } : {}) })
    .where('partnerId', '=', partnerId)
    .where('id', '=', jobId)
    .execute()
  await emitStatus(tx, { partnerId, jobId, status, now })
}

/**
 * Analyzes the tables that a large job has filled, instead of waiting for autovacuum: until
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

function mustBeReviewed(
  { invite, update, bringBack, unchanged, offboard }: Plan,
  {
    membersBefore,
    offboardReviewPercent,
    offboardMax,
  }: { membersBefore: number; offboardReviewPercent: number; offboardMax: number | null },
): boolean {
  const isMany = offboard * 100 > membersBefore * offboardReviewPercent
  // An empty list is a mistake more often than it is meant.
  const isEverybody = offboard > 0 && invite + update + bringBack + unchanged === 0
  return isMany || isEverybody || (offboardMax !== null && offboard > offboardMax)
}

// Large files take minutes; the shared texts of a workbook are read, without a statement, before its first row is copied; and
// what PostgreSQL would compile, it would use once.
async function allowForLargeFile(tx: Tx): Promise<void> {
  await sql`
    select set_config('statement_timeout', '10min', true), set_config('work_mem', '64MB', true),
           set_config('idle_in_transaction_session_timeout', '60s', true),
           set_config('jit', 'off', true)`.execute(tx)
}

// A file that is being read holds a reader thread and a connection; a partner gets one of each.
async function holdReading(tx: Tx, partnerId: string): Promise<void> {
  const { rows } = await sql<{ isMine: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('member job of ' || ${partnerId}::text, 0)) as is_mine`.execute(
    tx,
  )
  if (rows[0]?.isMine) return
  throw problem(
    'Conflict',
    'Another upload of members is being read right now; try again in a moment',
    {},
    { 'retry-after': '5' },
  )
}

/**
 * Whether a new job is queued: another one has not ended. What is queued is applied in the order in which it was sent.
 * @throws Problem `Conflict` if the queue is full
 */
async function requireRoom(
  tx: Tx,
  { partnerId, kind }: { partnerId: string; kind: Kind },
): Promise<{ isQueued: boolean }> {
  const { rows } = await sql<{ unfinished: number; queued: number; queuedFiles: number; inReview: string | null }>`
    select count(*)::integer as unfinished, count(*) filter (where status = 'NotReady')::integer as queued,
           count(*) filter (where status = 'NotReady' and kind = 'file')::integer as queued_files,
           max(id) filter (where status = 'AwaitingReview') as in_review
      from member_jobs where partner_id = ${partnerId} and ended_at is null`.execute(tx)
  const { unfinished = 0, queued = 0, queuedFiles = 0, inReview = null } = rows[0] ?? {}
  const isFull = queued >= queuedJobsMax || (kind === 'file' && queuedFiles >= queuedFilesMax)
  if (!isFull) return { isQueued: unfinished > 0 }
  const what = queued >= queuedJobsMax ? `${queuedJobsMax} jobs are` : `${queuedFilesMax} files are`
  throw inReview === null
    ? problem('Conflict', `${what} queued already; try again when one of them is done`, {}, { 'retry-after': '5' })
    : problem(
        'Conflict',
        `${what} queued behind ${inReview}, which is waiting for a review: approve or reject it first`,
      )
}

// Serialises the inserts of a partner's jobs, so that each sees those before it. Held until the commit, which follows at once.
async function lockQueue(tx: Tx, partnerId: string): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(hashtextextended('queue of member jobs of ' || ${partnerId}::text, 0))`.execute(tx)
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
    offboardMax,
    rowTo,
    isQueued,
    needsReview,
    now,
  }: {
    partner: Partner
    jobId: string
    kind: Kind
    plan: Plan
    columns: Column[]
    removesAccounts: boolean
    offboardMax: number | null
    rowTo: number
    /** Clashes were accepted, so it stays queued and is decided again even if the job ahead has ended meanwhile. */
    isQueued: boolean
    needsReview: boolean
    now: Date
  },
): Promise<void> {
  const partnerId = partner.id
  await lockQueue(tx, partnerId)
  const isBehind = (await requireRoom(tx, { partnerId, kind })).isQueued
  const status = isQueued || isBehind ? 'NotReady' : needsReview ? 'AwaitingReview' : 'Processing'
  await tx
    .insertInto('memberJobs')
    .values({
      ...{ partnerId, id: jobId, kind, ...plan, columns, removesAccounts, offboardMax, rowTo },
      ...{ status, createdAt: now, reviewSince: status === 'AwaitingReview' ? now : null },
    })
    .execute()
  await emitStatus(tx, { partnerId, jobId, status, now })
  if (status === 'AwaitingReview') return
  if (status === 'Processing' && stepsOf(kind, plan) === 0) {
    await end(tx, { partnerId, jobId }, { status: 'Completed', now })
  } else await scheduleTask(tx, { task: 'apply-member-jobs', at: now })
}

// Of an action that is decided later, what it asks for.
function actionFor(command: MemberCommand, decided: Decision | Problem | undefined): Action {
  if (decided !== undefined && !(decided instanceof Problem)) return actionOf(decided)
  return command.type === 'Add' ? 'Invite' : 'Update'
}

function commandOf(action: MemberAction, now: Date): MemberCommand {
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

// Whether a job ahead may resolve it: another member has the e-mail or the worker id, and it is none that this batch adds.
function mayPass(
  refusal: Problem,
  { actions, places }: { actions: MemberAction[]; places: Map<string, number> },
): boolean {
  const place = places.get(String(refusal.issues[0]?.memberId))
  return isClash(refusal) && (place === undefined || actions[place]?.type !== 'Add')
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

function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('memberJobs')
    .select([
      'id',
      'kind',
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

function toJob({ kind, invite, update, bringBack, offboard, unchanged, columns: stored, ...job }: Row): MemberJob {
  const plan = { invite, update, bringBack, offboard, unchanged }
  const steps = stepsOf(kind, plan)
  // Written by ourselves, of nothing else.
  return { ...job, plan, steps, columns: stored.length === 0 ? columns : (stored as Column[]) }
}

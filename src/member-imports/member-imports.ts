import * as auditLog from '../audit-log/audit-log.ts'
import type { CopyInto } from '../database/copy.ts'
import { type Cursor, isBeyond, newestFirst, readingOrder, requireKnown } from '../database/cursor.ts'
import { type Db, type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { lockByName, lockByNameIfFree, shareByName } from '../database/named-locks.ts'
import { issuesMax, Problem, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { dayIn } from '../kernel/time.ts'
import { decideAll, type PartnerRules, wavesOf } from '../members/changes.ts'
import { type Column, columns } from '../members/fields.ts'
import { removeFormerNames } from '../members/former-names.ts'
import type { Partner } from '../partners/partners.ts'
import { pinFingerprints } from '../sealing/fingerprint-stages.ts'
import { sealerOf } from '../sealing/held.ts'
import type { TableKind } from '../tabular/tabular.ts'
import * as tiers from '../tiers/tiers.ts'
import { constantOf, inScope, type Old, partnerOf, type Scope, scheduleTask } from '../worker/task.ts'
import { applySteps, emitStatus, end, type ImportStatus, type LockedImport, type Report, wavesMax } from './apply.ts'
import { copyStatement } from './copy.ts'
import { createImportKey, destroyImportKey, importKey } from './import-key.ts'
import { planFile, planFileAgain } from './plan.ts'
import { readInto } from './read-file.ts'
import { refingerprint } from './refingerprint.ts'
import { sealCommand } from './rows.ts'
import {
  actionFor,
  commandOf,
  countActions,
  countSteps,
  faultyFile,
  issuesOf,
  type Kind,
  mayBeResolved,
  mustBeReviewed,
  type OfImport,
  type Plan,
  planOf,
  type RestAction,
} from './rules.ts'
import type { MemberAction } from './schema.ts'

export type { Report } from './apply.ts'

/** A batch of changes to members, planned when it is sent and applied by the worker. */
export type MemberImport = {
  id: string
  status: ImportStatus
  /** For a queued import, the plan at the time it was sent. */
  plan: Plan
  /** Steps in the plan. */
  steps: number
  /** Columns of the file; the template's columns for an import of actions. */
  columns: readonly Column[]
  stepsDone: number
  createdAt: Date
  endedAt: Date | null
}

/** The import made from an upload or from actions, and whether it waits for review. */
export type Created = { importId: string; plan: Plan; needsReview: boolean }

/**
 * A file with the complete list of members.
 * `offboardMax`: the number of offboarded members that the caller has agreed to; above it, the import waits for review.
 */
export type MemberFile = {
  /** Descriptor of the open file. */
  fd: number
  kind: TableKind
  removesAccounts: boolean
  offboardMax?: number | undefined
}

// Members named in a preview: as many as a person would read.
const namedMax = 1_000
// Autovacuum notices smaller growth soon enough.
const growthMin = 5_000
// Per partner. A client that queues more is not watching its imports.
const queuedImportsMax = 100
// Per partner. Each holds up to a million rows, and the next complete list supersedes it.
const queuedFilesMax = 5

/**
 * Creates an import from actions, which the worker applies atomically and in order. An import behind another one is queued and decided
 * again when its turn comes. It may therefore clash with another member: the import ahead may resolve that.
 * @throws Problem with an issue for every invalid action; `Conflict` if the queue is full
 */
export async function createFromActions(
  tx: Tx,
  { partner, actions, now }: { partner: Partner; actions: MemberAction[]; now: Date },
): Promise<Created> {
  const { isQueued } = await requireRoom(tx, { partnerId: partner.id, kind: 'actions' })
  const commands = actions.map(action => commandOf(action, now))
  const decided = await decideAll(tx, { partner, commands, now })
  const positions = new Map(commands.map(({ memberId }, index) => [memberId, index]))
  const faults = decided.flatMap((each, index) => {
    if (!(each instanceof Problem) || (isQueued && mayBeResolved(each, { actions, positions }))) return []
    return issuesOf(each, { actions, positions, index })
  })
  const [first] = faults
  if (first !== undefined) throw new Problem(first.name, faults.map(fault => fault.issue).slice(0, issuesMax))
  const changes = decided.flatMap(each => (each instanceof Problem ? [] : [each]))
  if (wavesOf(changes).length > wavesMax) {
    throw problem('BodyValidation', 'Too many of the actions depend on each other; send them in several jobs', {
      path: 'actions',
    })
  }
  const importId = newId('memberJob', now)
  const steps = commands.map((command, index) => ({
    step: index + 1,
    action: actionFor(command, decided[index]),
    command,
  }))
  const plan = countActions(steps)
  const nothingOfFile = { columns: [], removesAccounts: false, offboardMax: null, rowTo: 0 }
  await insert(tx, { partnerId: partner.id, id: importId, kind: 'actions', plan, ...nothingOfFile, isQueued, now })
  const ofImport = { partnerId: partner.id, importId }
  const key = importKey(await createImportKey(tx, ofImport), ofImport)
  await sql`
    insert into member_import_steps (partner_id, import_id, step, action, member_id, command)
    select ${partner.id}, ${importId}, * from unnest(
      ${steps.map(({ step }) => step)}::integer[], ${steps.map(({ action }) => action)}::text[],
      ${steps.map(({ command }) => command.memberId)}::text[], ${steps.map(({ command }) => sealCommand(key, command))}::bytea[])`.execute(
    tx,
  )
  return { importId, plan, needsReview: false }
}

/**
 * Reads a file and plans its changes, which the worker applies at once or after a review. Everything happens in this transaction,
 * so a faulty file or a crash leaves nothing behind. A file behind another import is queued and planned again when its turn comes.
 * @param copyInto copies rows within this transaction
 * @param signal aborts reading when the caller disconnects
 * @throws Problem `FileContent` with an issue for every faulty row; `Conflict` if the queue is full or another file of the
 * partner is being read
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
  await lockUpload(tx, partnerId)
  const { isQueued } = await requireRoom(tx, { partnerId, kind: 'file' })
  await allowForLargeFile(tx)
  await pinFingerprints(tx)
  const importId = newId('memberJob', now)
  const currencies = await tiers.listCurrencies(tx, partnerId)
  const { fd, kind, removesAccounts, offboardMax = null } = file
  const read = await readInto(() => copyInto(copyStatement), {
    key: await createImportKey(tx, { partnerId, importId }),
    installationKeys: sealerOf(tx).installationKeys,
    ...{ file: { fd, kind }, partnerId, importId, country: partner.country, today: dayIn(partner.timeZone, now), now },
    ...{ tiers: [...currencies], signal },
  })
  const { columns } = read
  // Without a header there is nothing to compare with the members.
  if (columns.length === 0 || read.faultsMore > 0) throw faultyFile(read)
  const terms = { partnerId, importId, columns, removesAccounts }
  const clashes = isQueued ? 'defer' : 'refuse'
  const { plan, restAction, membersBefore, ...planned } = await planFile(tx, { ...read, terms, partner, clashes, now })
  if (read.faults.length + planned.faults.length > 0) throw faultyFile(read, planned)
  const { offboardReviewPercent } = partner
  const needsReview = mustBeReviewed(plan, { membersBefore, offboardReviewPercent, offboardMax })
  const ofFile = { columns, removesAccounts, offboardMax, rowTo: read.readTo, restAction }
  await insert(tx, { partnerId, id: importId, kind: 'file', plan, ...ofFile, isQueued, needsReview, now })
  return { importId, plan, needsReview }
}

/** The effect of an import: its plan, and the first `namedMax` members that it offboards. */
export type Preview = { plan: Plan; needsReview: boolean; offboard: string[] }

/** Creates an import and rolls it back. The transaction stays usable. */
export async function preview(
  tx: Tx,
  { partnerId, create }: { partnerId: string; create: () => Promise<Created> },
): Promise<Preview> {
  await sql`savepoint dry_run`.execute(tx)
  const { importId, plan, needsReview } = await create()
  const offboard = await listOffboarded(tx, { partnerId, importId })
  await sql`rollback to savepoint dry_run`.execute(tx)
  return { plan, needsReview, offboard }
}

async function listOffboarded(db: Reader, { partnerId, importId }: OfImport): Promise<string[]> {
  const { rows } = await sql<{ memberId: string }>`
    select member_id from member_import_steps
     where partner_id = ${partnerId} and import_id = ${importId} and action = 'Offboard'
     order by step limit ${namedMax}`.execute(db)
  return rows.map(row => row.memberId)
}

/** @throws Problem `NotFound`, also for another partner's import */
export async function find(db: Reader, { partnerId, importId }: OfImport): Promise<MemberImport> {
  const row = await select(db, partnerId).where('id', '=', importId).executeTakeFirst()
  if (row === undefined) throw noSuchImport()
  return toMemberImport(row)
}

/**
 * Newest first.
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(
  db: Reader,
  { partnerId, page, cursor }: { partnerId: string; page: Page; cursor: Cursor | undefined },
): Promise<MemberImport[]> {
  await requireKnown(db, 'member_imports', { partnerId, cursor })
  const all = select(db, partnerId)
  const rows = await (cursor === undefined ? all : all.where(isBeyond(cursor)))
    .orderBy('id', readingOrder(cursor))
    .offset(page.skip)
    .limit(page.take)
    .execute()
  return newestFirst(rows, cursor).map(toMemberImport)
}

export async function count(db: Reader, partnerId: string): Promise<number> {
  const { total } = await db
    .selectFrom('memberImports')
    .select(sql<number>`count(*)::integer`.as('total'))
    .where('partnerId', '=', partnerId)
    .executeTakeFirstOrThrow()
  return total
}

/**
 * Approves an import that is waiting for review, or rejects one that is queued or waiting, without applying it. Idempotent, also once
 * an approved import is running or completed.
 * @returns the import after its review, and whether the same decision had been made before
 * @throws Problem `NotFound`; `Conflict` for an import that was decided otherwise, needed no review, or is queued and approved
 */
export async function review(
  tx: Tx,
  { partnerId, importId, to, now }: OfImport & { to: 'Processing' | 'Rejected'; now: Date },
): Promise<{ memberImport: MemberImport; isRepeated: boolean }> {
  const row = await select(tx, partnerId).where('id', '=', importId).forNoKeyUpdate().executeTakeFirst()
  if (row === undefined) throw noSuchImport()
  const isWaiting = row.status === 'AwaitingReview' || (row.status === 'NotReady' && to === 'Rejected')
  if (!isWaiting) {
    const isRepeated = row.status !== 'NotReady' && (row.status === 'Rejected') === (to === 'Rejected')
    if (isRepeated) return { memberImport: toMemberImport(row), isRepeated }
    throw problem('Conflict', `The job is not waiting for a review; it is ${row.status}`)
  }
  await tx
    .updateTable('memberImports')
    .set({ reviewedAt: now, ...(to === 'Processing' ? { status: to } : {}) })
    .where('partnerId', '=', partnerId)
    .where('id', '=', importId)
    .execute()
  if (to === 'Rejected') await end(tx, { partnerId, importId }, { status: to, now })
  else await emitStatus(tx, { partnerId, importId, status: to, now })
  // This import can start, or the next one in the queue.
  await scheduleTask(tx, { task: 'apply-member-imports', at: now, partnerId })
  return { memberImport: await find(tx, { partnerId, importId }), isRepeated: false }
}

/**
 * Rejects imports that have waited for review longer than their partner allows. An expired import emits `job.expired` in addition to
 * `job.rejected`.
 * @returns the number of expired imports
 */
export async function expireReviews(
  tx: Tx,
  { now, countMax, scope }: { now: Date; countMax: number; scope: Scope | undefined },
): Promise<number> {
  const { rows } = await sql<OfImport & { reviewDays: number }>`
    select i.partner_id, i.id as import_id, p.review_days
      from member_imports i join partners p on p.id = i.partner_id
     where i.ended_at is null and i.status = 'AwaitingReview'
       and coalesce(i.review_since, i.created_at) + make_interval(days => p.review_days) <= ${now}
       ${inScope(scope, sql`i.partner_id`)}
     order by i.id limit ${countMax} for no key update of i skip locked`.execute(tx)
  for (const { partnerId, importId, reviewDays } of rows) {
    await emitStatus(tx, { partnerId, importId, type: 'job.expired', status: 'Rejected', now })
    await end(tx, { partnerId, importId }, { status: 'Rejected', now })
    const change = { action: 'member_job.expire', resourceId: importId, details: { reviewDays } } as const
    await auditLog.record(tx, { partnerId, actor: auditLog.worker, change, now })
  }
  // The next imports in the queues can start.
  if (rows.length > 0) await scheduleTask(tx, { task: 'apply-member-imports', at: now, partnerId: partnerOf(scope) })
  return rows.length
}

/** Counts a partner's imports that wait for a review: at most one, because the others queue behind it. */
export async function countInReview(db: Reader, partnerId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from member_imports
     where partner_id = ${partnerId} and ended_at is null and status = 'AwaitingReview'`.execute(db)
  return rows[0]?.count ?? 0
}

/** The instants since which a partner's imports have work to do, and how many steps are left. */
export const dueWork = ({ partnerId }: { partnerId: string }) => sql<{ at: Date; work: number }>`
  select i.created_at as at, i.invite + i.update + i.reinstate + i.offboard + i.unchanged - i.steps_done + 1 as work
    from member_imports i
   where i.partner_id = ${partnerId} and ${canGoOn(partnerId)}`

/** The instants at which the reviews of a partner's imports expire. */
export const dueReviews = ({ partnerId }: { partnerId: string }) => sql<{ at: Date; work: number }>`
  select coalesce(i.review_since, i.created_at) + make_interval(days => p.review_days) as at, 1 as work
    from member_imports i join partners p on p.id = i.partner_id
   where i.partner_id = ${partnerId} and i.ended_at is null and i.status = 'AwaitingReview'`

/** SQL of the condition that a row `i` of `member_imports` has work to do now: it is being applied, or is the next in its partner's queue. */
const canGoOn = (partnerId: string | undefined) => sql`i.ended_at is null
       and (i.status = 'Processing' or i.status = 'NotReady' and not exists (
             select from member_imports ahead
              where ahead.partner_id = ${partnerId ?? sql`i.partner_id`} and ahead.ended_at is null
                and (ahead.status <> 'NotReady' or (ahead.created_at, ahead.id) < (i.created_at, i.id))))`

/**
 * Finds the next import to work on: the one with the fewest steps done, so that a small import does not wait for a large one to end.
 * Each partner's imports are applied in the order in which they were sent.
 * @param except imports to skip
 */
export async function findNext(
  db: Reader,
  { except, scope }: { except: string[]; scope: Scope | undefined },
): Promise<OfImport | undefined> {
  const { rows } = await sql<OfImport>`
    select i.partner_id, i.id as import_id from member_imports i
     where ${canGoOn(constantOf(scope))} and i.id <> all(${except}::text[]) ${inScope(scope, sql`i.partner_id`)}
     order by i.steps_done, i.created_at limit 1`.execute(db)
  return rows[0]
}

/**
 * Applies the next steps of an import. A queued import is planned again first.
 * @param report called with the progress of a running batch
 * @returns undefined if another worker has locked or ended the import; otherwise whether it has ended, and its number of steps
 */
export async function applyNext(
  tx: Tx,
  { partnerId, importId, now, report = async () => undefined }: OfImport & { now: Date; report?: Report },
): Promise<{ hasEnded: boolean; steps: number } | undefined> {
  const { rows } = await sql<
    Omit<LockedImport, 'steps'> & Plan & Queued & PartnerRules & { status: 'NotReady' | 'Processing' }
  >`
    select i.partner_id, i.id as import_id, i.kind, i.status, i.columns, i.removes_accounts, i.applied_through, i.created_at,
           i.invite, i.update, i.reinstate, i.offboard, i.unchanged, i.row_to, i.rest_action, i.offboard_max,
           p.offboard_review_percent, p.country, p.time_zone, p.auto_activate
      from member_imports i join partners p on p.id = i.partner_id
     where i.status in ('NotReady', 'Processing') and i.partner_id = ${partnerId} and i.id = ${importId}
       for no key update of i skip locked`.execute(tx)
  const [row] = rows
  if (row === undefined) return undefined
  const { country, timeZone, autoActivate, ...rest } = row
  const partner = { id: row.partnerId, country, timeZone, autoActivate }
  const memberImport = { ...rest, steps: countSteps(row.kind, row) }
  if (row.status === 'NotReady') return await startQueued(tx, { memberImport, partner, now })
  return { hasEnded: await applySteps(tx, { memberImport, partner, now, report }), steps: memberImport.steps }
}

/** Records how many actions of a running batch are done, in a separate transaction: the batch commits only at its end. */
export async function recordProgress(
  tx: Tx,
  { partnerId, importId, stepsDone }: OfImport & { stepsDone: number },
): Promise<void> {
  await sql`
    insert into member_import_progress (partner_id, import_id, steps_done) values (${partnerId}, ${importId}, ${stepsDone})
        on conflict (partner_id, import_id) do update set steps_done = excluded.steps_done`.execute(tx)
}

/** The input for planning a queued file again. */
type Queued = { offboardMax: number | null; offboardReviewPercent: number }

// Actions are decided again when they are applied. A file is planned again, since the imports ahead may have changed who is missing.
async function startQueued(
  tx: Tx,
  { memberImport, partner, now }: { memberImport: LockedImport & Plan & Queued; partner: PartnerRules; now: Date },
): Promise<{ hasEnded: boolean; steps: number }> {
  if (memberImport.kind === 'actions') {
    const { restAction } = memberImport
    await begin(tx, memberImport, { plan: memberImport, restAction, needsReview: false, now })
    return { hasEnded: false, steps: memberImport.steps }
  }
  await allowForLargeFile(tx)
  await pinFingerprints(tx)
  await refingerprint(tx, memberImport)
  const rowCount = memberImport.invite + memberImport.update + memberImport.reinstate + memberImport.unchanged
  const { rowTo: readTo, createdAt: sentAt } = memberImport
  const planned = await planFileAgain(tx, { terms: memberImport, partner, rowCount, readTo, sentAt })
  if (planned === null) {
    await end(tx, memberImport, { status: 'Rejected', now })
    return { hasEnded: true, steps: 0 }
  }
  const { plan, restAction } = planned
  const steps = countSteps(memberImport.kind, plan)
  const needsReview = mustBeReviewed(plan, { ...memberImport, ...planned })
  await begin(tx, memberImport, { plan, restAction, needsReview, now })
  if (needsReview || steps > 0) return { hasEnded: false, steps }
  await end(tx, memberImport, { status: 'Completed', now })
  return { hasEnded: true, steps }
}

async function begin(
  tx: Tx,
  { partnerId, importId }: OfImport,
  { plan, restAction, needsReview, now }: { plan: Plan; restAction: RestAction; needsReview: boolean; now: Date },
): Promise<void> {
  const status = needsReview ? 'AwaitingReview' : 'Processing'
  await tx
    .updateTable('memberImports')
    .set({ status, ...planOf(plan), restAction })
    .$if(needsReview, query => query.set({ reviewSince: now }))
    .where('partnerId', '=', partnerId)
    .where('id', '=', importId)
    .execute()
  await emitStatus(tx, { partnerId, importId, status, now })
}

/**
 * Analyzes the tables that a large import has filled. Until autovacuum runs, statements would be planned for tables a tenth of
 * the size.
 */
export async function analyzeFilledTables(db: Db, { steps }: { steps: number }): Promise<void> {
  if (steps > growthMin) await sql`select analyze_tables('members', 'events', 'member_import_steps')`.execute(db)
}

/** SQL that finds imports that ended before an instant and still have their rows and steps. */
export const oldImports = ({ before, countMax, scope }: Old) => sql`
  select partner_id, id as import_id from member_imports
   where forgotten_at is null and ended_at < ${before} ${inScope(scope)}
   order by ended_at limit ${countMax}`

/**
 * Deletes rows and steps of an import that ended before an instant, and their key; its counts are kept.
 * @param old.countMax rows deleted from each table per call
 * @returns how many rows were deleted, and whether there may be more to delete
 */
export async function removeOld(tx: Tx, old: Old & { now: Date }): Promise<{ removed: number; hasMore: boolean }> {
  const { rows } = await sql<OfImport>`
    ${oldImports({ ...old, countMax: 1 })} for no key update skip locked`.execute(tx)
  const [ended] = rows
  if (ended === undefined) {
    await removeFormerNames(tx, old)
    return { removed: 0, hasMore: false }
  }
  const { partnerId, importId } = ended
  let removed = 0
  for (const [table, place] of [
    ['member_import_rows', 'row'],
    ['member_import_steps', 'step'],
  ] as const) {
    const ofImport = sql`partner_id = ${partnerId} and import_id = ${importId}`
    const { numAffectedRows = 0n } = await sql`
      delete from ${sql.table(table)} where ${ofImport} and ${sql.ref(place)} <= (
        select max(place) from (select ${sql.ref(place)} as place from ${sql.table(table)} where ${ofImport}
                                 order by 1 limit ${old.countMax}) next)`.execute(tx)
    removed += Number(numAffectedRows)
  }
  if (removed === 0) {
    await destroyImportKey(tx, ended)
    await sql`
      update member_imports set forgotten_at = ${old.now}
       where partner_id = ${partnerId} and id = ${importId}`.execute(tx)
  }
  return { removed, hasMore: true }
}

// Large files take minutes. The session is idle while the shared strings of a workbook are read, before its first row is copied.
// JIT is off, since compiled queries would be used only once.
async function allowForLargeFile(tx: Tx): Promise<void> {
  await sql`
    select set_config('statement_timeout', '10min', true), set_config('work_mem', '64MB', true),
           set_config('idle_in_transaction_session_timeout', '60s', true),
           set_config('jit', 'off', true)`.execute(tx)
}

// Reading a file takes a reader thread and a connection, so each partner may have one file read at a time.
async function lockUpload(tx: Tx, partnerId: string): Promise<void> {
  if (await lockByNameIfFree(tx, 'member import of', partnerId)) return
  const message = 'Another upload of members is being read right now; try again in a moment'
  throw problem('Conflict', message, {}, { 'retry-after': '5' })
}

/**
 * Whether a new import is queued behind an unfinished one. Queued imports are applied in the order in which they were sent.
 * @throws Problem `Conflict` if the queue is full
 */
async function requireRoom(
  tx: Tx,
  { partnerId, kind }: { partnerId: string; kind: Kind },
): Promise<{ isQueued: boolean }> {
  // An erasure sees this import once it is committed, or comes first.
  await shareByName(tx, 'erasure of members of', partnerId)
  const { rows } = await sql<{ unfinished: number; queued: number; queuedFiles: number; inReview: string | null }>`
    select count(*)::integer as unfinished, count(*) filter (where status = 'NotReady')::integer as queued,
           count(*) filter (where status = 'NotReady' and kind = 'file')::integer as queued_files,
           max(id) filter (where status = 'AwaitingReview') as in_review
      from member_imports where partner_id = ${partnerId} and ended_at is null`.execute(tx)
  const { unfinished = 0, queued = 0, queuedFiles = 0, inReview = null } = rows[0] ?? {}
  const isFull = queued >= queuedImportsMax || (kind === 'file' && queuedFiles >= queuedFilesMax)
  if (!isFull) return { isQueued: unfinished > 0 }
  const what = queued >= queuedImportsMax ? `${queuedImportsMax} jobs are` : `${queuedFilesMax} files are`
  throw inReview === null
    ? problem('Conflict', `${what} already queued; try again when one has ended`, {}, { 'retry-after': '5' })
    : problem(
        'Conflict',
        `${what} queued behind ${inReview}, which is waiting for a review: approve or reject it first`,
      )
}

/** @param isQueued clashes were accepted, so the import is decided again, even if the import ahead has ended by then */
async function insert(
  tx: Tx,
  {
    plan,
    isQueued,
    needsReview = false,
    now,
    ...row
  }: {
    partnerId: string
    id: string
    kind: Kind
    plan: Plan
    columns: Column[]
    removesAccounts: boolean
    offboardMax: number | null
    rowTo: number
    restAction?: RestAction
    isQueued: boolean
    needsReview?: boolean
    now: Date
  },
): Promise<void> {
  const { partnerId, id: importId, kind } = row
  // Serialises the inserts of a partner's imports, so that each sees those before it. Held until the commit, which follows at once.
  await lockByName(tx, 'queue of member imports of', partnerId)
  const isBehind = (await requireRoom(tx, { partnerId, kind })).isQueued
  const status = isQueued || isBehind ? 'NotReady' : needsReview ? 'AwaitingReview' : 'Processing'
  await tx
    .insertInto('memberImports')
    .values({ ...row, ...plan, status, createdAt: now, reviewSince: status === 'AwaitingReview' ? now : null })
    .execute()
  await emitStatus(tx, { partnerId, importId, status, now })
  if (status === 'AwaitingReview') return
  if (status === 'Processing' && countSteps(kind, plan) === 0) {
    await end(tx, { partnerId, importId }, { status: 'Completed', now })
  } else await scheduleTask(tx, { task: 'apply-member-imports', at: now, partnerId })
}

function noSuchImport(): Problem {
  return problem('NotFound', 'There is no such job')
}

function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('memberImports')
    .select(['id', 'kind', 'status', 'columns', 'stepsDone', 'createdAt', 'endedAt'])
    .select(['invite', 'update', 'reinstate', 'offboard', 'unchanged'])
    .select(query =>
      query
        .selectFrom('memberImportProgress as progress')
        .select('progress.stepsDone')
        .where('progress.partnerId', '=', partnerId)
        .whereRef('progress.importId', '=', 'memberImports.id')
        .as('stepsInProgress'),
    )
    .where('partnerId', '=', partnerId)
}

type ImportRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

function toMemberImport({ kind, columns: stored, stepsInProgress, ...row }: ImportRow): MemberImport {
  const { id, status, createdAt, endedAt } = row
  const stepsDone = (status === 'Processing' ? stepsInProgress : null) ?? row.stepsDone
  // Stored by this module, which writes only known columns.
  const given = stored.length === 0 ? columns : (stored as Column[])
  return { id, status, plan: planOf(row), steps: countSteps(kind, row), columns: given, stepsDone, createdAt, endedAt }
}

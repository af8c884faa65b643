import assert from 'node:assert/strict'
import { sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { Problem } from '../kernel/errors.ts'
import { mapInSlices, piecesOf } from '../kernel/pace.ts'
import {
  decideAll,
  inviteAll,
  lockAll,
  type MemberCommand,
  type PartnerRules,
  wavesOf,
  writeAll,
} from '../members/changes.ts'
import { newPlainColumns, sealedRows } from '../members/rows.ts'
import { columnsBesideFingerprints, fingerprintColumns } from '../members/sealing.ts'
import { openImportKey } from './import-key.ts'
import { readCommands } from './plan.ts'
import { openCommand, openRow } from './rows.ts'
import { actionOf, countActions, type FileTerms, faultsOf, type Kind, type OfImport, type RestAction } from './rules.ts'
import type { Action } from './schema.ts'

/** `NotReady` while it is queued behind another import. */
export type ImportStatus = 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'

/** A locked import that is being applied. `createdAt` is when it was sent. */
export type LockedImport = FileTerms & {
  kind: Kind
  steps: number
  appliedThrough: number
  rowTo: number
  restAction: RestAction
  createdAt: Date
}

// A chunk of a file holds its members' locks for a fraction of a second. Actions are applied atomically.
const stepsAtOnce = { file: 2_000, actions: 10_000 }

// Per statement. Sealing them takes about as long as the statement before.
const invitedAtOnce = 500

// Actions that depend on each other, such as those of one member, are written one after the other in one transaction.
export const wavesMax = 100

/** A row that invites a member. */
type StoredRow = { row: number; id: string; sealed: Buffer }

/** One row or action and, once it is applied, what it did: `fault` is the reason why it failed. */
type Step = { step: number; action: Action; memberId: string; command: MemberCommand | null; fault: string | null }

type Applying = { memberImport: LockedImport; partner: PartnerRules; now: Date }

/**
 * Applies the next steps of an import. They are decided again under the members' locks, since a planned step may have become
 * impossible or unnecessary while the import waited. An impossible row of a file is marked as failed and the others are applied;
 * an impossible action rejects the whole import. Steps that were planned as failed are skipped.
 * @returns whether the import has ended
 */
export async function applySteps(tx: Tx, { report, ...applying }: Applying & { report: Report }): Promise<boolean> {
  return applying.memberImport.kind === 'file'
    ? await applyChunk(tx, applying)
    : await applyBatch(tx, { report, ...applying })
}

/** Called with the number of steps of a batch that are done, before its transaction commits. */
export type Report = (stepsDone: number) => Promise<void>

async function applyBatch(tx: Tx, { report, ...applying }: Applying & { report: Report }): Promise<boolean> {
  const { memberImport, now } = applying
  await report(0)
  const steps = await nextSteps(tx, { memberImport, limit: stepsAtOnce.actions })
  const last = steps.at(-1)
  assert(last !== undefined, 'An unfinished import has steps left')
  const applied = await applyChanges(tx, steps, {
    ...applying,
    // Actions that change nothing are done first.
    written: async (count, total) => await report(steps.length - total + count),
  })
  const hasFailed = await recordFaults(tx, memberImport, applied)
  if (!hasFailed) await recordActions(tx, memberImport, { applied, appliedThrough: last.step })
  await end(tx, memberImport, { status: hasFailed ? 'Rejected' : 'Completed', now })
  return true
}

async function applyChunk(tx: Tx, applying: Applying): Promise<boolean> {
  const { memberImport, now } = applying
  const through = await endOfChunk(tx, memberImport)
  const steps = await nextSteps(tx, { memberImport, through, limit: stepsAtOnce.file })
  const appliedThrough = through ?? steps.at(-1)?.step
  assert(appliedThrough !== undefined, 'An unfinished import has steps left')
  const possible = steps.filter(({ action, fault }) => action !== 'Unchanged' && fault === null)
  const isNew = ({ action }: Step) => action === 'Invite'
  // Changes first: they lock members, and an invitation that waits for an e-mail must not hold a member that they need.
  const changes = possible.filter(step => !isNew(step))
  await recordFaults(tx, memberImport, await applyChanges(tx, changes, applying))
  const listed = sql`row = any(${possible.filter(isNew).map(({ step }) => step)}::integer[])`
  const rest = through === undefined ? undefined : restOf(memberImport, through)
  const invited = rest !== undefined || possible.some(isNew) ? await invite(tx, rest ?? listed, applying) : 0
  const stepsDone = steps.filter(({ action }) => action !== 'Unchanged').length + (rest === undefined ? 0 : invited)
  const { rows } = await sql<{ stepsDone: number }>`
    update member_imports
       set steps_done = steps_done + ${stepsDone}, applied_through = ${appliedThrough}
     where partner_id = ${memberImport.partnerId} and id = ${memberImport.importId}
    returning steps_done`.execute(tx)
  const hasEnded = rows[0]?.stepsDone === memberImport.steps
  if (hasEnded) await end(tx, memberImport, { status: 'Completed', now })
  return hasEnded
}

/**
 * The last row of the next chunk of a file whose rows without a step are invitations; undefined if no rows are left, or if all
 * remaining work has a step.
 */
async function endOfChunk(
  tx: Tx,
  { partnerId, importId, appliedThrough, rowTo, restAction }: LockedImport,
): Promise<number | undefined> {
  if (restAction !== 'Invite' || appliedThrough >= rowTo) return undefined
  const { rows } = await sql<{ through: number | null }>`
    select max(row) as through
      from (select row from member_import_rows
             where partner_id = ${partnerId} and import_id = ${importId} and row > ${appliedThrough}
             order by row limit ${stepsAtOnce.file}) chunk`.execute(tx)
  return rows[0]?.through ?? undefined
}

async function nextSteps(
  tx: Tx,
  {
    memberImport: { partnerId, importId, appliedThrough },
    through,
    limit,
  }: { memberImport: LockedImport; through?: number | undefined; limit: number },
): Promise<Step[]> {
  const { rows } = await sql<Omit<Step, 'command'> & { command: Buffer | null }>`
    select step, action, member_id, command, fault from member_import_steps
     where partner_id = ${partnerId} and import_id = ${importId} and step > ${appliedThrough}
           ${through === undefined ? sql`` : sql`and step <= ${through}`}
     order by step limit ${limit}`.execute(tx)
  const key = rows.some(({ command }) => command !== null)
    ? await openImportKey(tx, { partnerId, importId })
    : undefined
  return rows.map(({ command, ...step }) => ({ ...step, command: command && key ? openCommand(key, command) : null }))
}

// The rows of a chunk that have no step.
function restOf({ partnerId, importId, appliedThrough }: LockedImport, through: number) {
  return sql`
    row > ${appliedThrough} and row <= ${through}
    and not exists (select from member_import_steps s
                     where s.partner_id = ${partnerId} and s.import_id = ${importId} and s.step = member_import_rows.row)`
}

const rowFingerprints = sql.raw(fingerprintColumns.map(name => `r.${name}`).join(', '))
const ofSealed = sql.raw(columnsBesideFingerprints.map(name => `s.${name}`).join(', '))

// New members were validated when the file was read. Returns their number.
async function invite(
  tx: Tx,
  chosen: ReturnType<typeof sql>,
  { memberImport: { partnerId, importId, createdAt }, partner, now }: Applying,
): Promise<number> {
  const { rows } = await sql<StoredRow>`
    select row, new_member_id as id, sealed from member_import_rows
     where partner_id = ${partnerId} and import_id = ${importId} and ${chosen} order by row`.execute(tx)
  if (rows.length === 0) return 0
  const key = await openImportKey(tx, { partnerId, importId })
  const seal = async (of: StoredRow[]) => {
    const opened = await mapInSlices(of, row => ({ id: row.id, ...openRow(key, row) }))
    return sql`
      select r.new_member_id as id, ${newPlainColumns}, ${rowFingerprints}, ${ofSealed}
        from ${await sealedRows(tx, { partnerId, rows: opened })}
        join member_import_rows r on r.new_member_id = s.id
       where r.partner_id = ${partnerId} and r.import_id = ${importId} and r.row between ${of[0]?.row} and ${of.at(-1)?.row}
       order by r.row`
  }
  const [first = [], ...others] = piecesOf(rows, invitedAtOnce)
  const refusedIds: string[] = []
  let source = await seal(first)
  for (const next of [...others, []]) {
    const inviting = inviteAll(tx, { partner, source, countMax: invitedAtOnce, instructedAt: createdAt, now })
    // The next members are sealed while PostgreSQL inserts these.
    const [refused, sealed] = await Promise.all([inviting, seal(next)])
    refusedIds.push(...refused)
    source = sealed
  }
  if (refusedIds.length > 0) {
    await sql`
      insert into member_import_steps (partner_id, import_id, step, action, member_id, fault)
      select partner_id, import_id, row, 'Invite', new_member_id, ${takenSince} from member_import_rows
       where partner_id = ${partnerId} and import_id = ${importId} and ${chosen}
         and new_member_id = any(${refusedIds}::text[])
          on conflict (partner_id, import_id, step) do update set fault = excluded.fault`.execute(tx)
  }
  return rows.length
}

const takenSince = 'another member has taken the e-mail or the worker_id since the file was read'

// Returns the steps with what they did.
async function applyChanges(
  tx: Tx,
  steps: Step[],
  { memberImport, partner, written, now }: Applying & { written?: (count: number, total: number) => Promise<void> },
): Promise<Step[]> {
  if (steps.length === 0) return []
  const { partnerId, createdAt: since } = memberImport
  // Locked before the commands are read, since these depend on the kind of account that a member has.
  const changed = await lockAll(tx, { partnerId, memberIds: steps.map(({ memberId }) => memberId), since })
  // A file describes members as of when it was sent. A newer change takes precedence.
  const isStale = ({ memberId }: Step) => memberImport.kind === 'file' && changed.has(memberId)
  const fresh = steps.filter(step => !isStale(step))
  const read = await commandsOf(tx, memberImport, fresh)
  const known = fresh.flatMap((step, index) => (read[index] === undefined ? [] : [step]))
  const erased = fresh.filter((_, index) => read[index] === undefined)
  const commands = read.filter(command => command !== undefined)
  const decided = await decideAll(tx, { partner, commands, now })
  const isRefused =
    memberImport.kind === 'actions' && (erased.length > 0 || decided.some(each => each instanceof Problem))
  const changes = decided.flatMap(each => (each instanceof Problem || actionOf(each) === 'Unchanged' ? [] : [each]))
  // Already checked when the import was sent, except for actions that clashed with another member.
  if (memberImport.kind === 'actions' && !isRefused && wavesOf(changes).length > wavesMax) {
    return steps.slice(-1).map(step => ({ ...step, fault: 'too many of the actions depend on each other' }))
  }
  if (!isRefused) {
    const { length } = changes
    const onWritten = written && (async (count: number) => await written(count, length))
    await writeAll(tx, { partnerId, changes, onWritten, instructedAt: since, now })
  }
  return [
    ...steps.filter(isStale).map(step => ({ ...step, fault: 'the member has been changed since the file was sent' })),
    ...erased.map(step => ({ ...step, fault: 'the member was erased' })),
    ...known.map((step, index) => {
      const change = decided[index]
      assert(change !== undefined)
      return change instanceof Problem
        ? { ...step, fault: faultsOf(change).join('; ') }
        : { ...step, action: actionOf(change) }
    }),
  ]
}

// Undefined if what was to be done was deleted by an erasure.
async function commandsOf(tx: Tx, memberImport: LockedImport, steps: Step[]): Promise<(MemberCommand | undefined)[]> {
  const listed = steps.filter(({ command, action }) => command === null && action !== 'Offboard')
  const places = listed.map(({ step, memberId }) => ({ row: step, memberId }))
  const read = places.length === 0 ? undefined : await readCommands(tx, memberImport, places)
  return steps.map(({ step, action, memberId, command }) => {
    if (command !== null) return command
    return action === 'Offboard' ? { type: 'Offboard', memberId } : read?.get(step)
  })
}

/** @returns whether a step has failed */
async function recordFaults(tx: Tx, { partnerId, importId }: LockedImport, applied: Step[]): Promise<boolean> {
  const failed = applied.filter(({ fault }) => fault !== null)
  if (failed.length === 0) return false
  await sql`
    update member_import_steps s set fault = f.fault
      from unnest(${failed.map(({ step }) => step)}::integer[], ${failed.map(({ fault }) => fault)}::text[]) as f (step, fault)
     where s.partner_id = ${partnerId} and s.import_id = ${importId} and s.step = f.step`.execute(tx)
  return true
}

// Records what the actions did, which may differ from what they would have done when they were sent.
async function recordActions(
  tx: Tx,
  { partnerId, importId, steps }: LockedImport,
  { applied, appliedThrough }: { applied: Step[]; appliedThrough: number },
): Promise<void> {
  await sql`
    update member_import_steps s set action = done.action
      from unnest(${applied.map(({ step }) => step)}::integer[], ${applied.map(({ action }) => action)}::text[])
        as done (step, action)
     where s.partner_id = ${partnerId} and s.import_id = ${importId} and s.step = done.step and s.action <> done.action`.execute(
    tx,
  )
  await tx
    .updateTable('memberImports')
    .set({ ...countActions(applied), stepsDone: steps, appliedThrough })
    .where('partnerId', '=', partnerId)
    .where('id', '=', importId)
    .execute()
}

/** Ends an import and emits its event. */
export async function end(
  tx: Tx,
  { partnerId, importId }: OfImport,
  { status, now }: { status: 'Completed' | 'Rejected'; now: Date },
): Promise<void> {
  await tx
    .updateTable('memberImports')
    .set({ status, endedAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', importId)
    .execute()
  await sql`delete from member_import_progress where partner_id = ${partnerId} and import_id = ${importId}`.execute(tx)
  await emitStatus(tx, { partnerId, importId, status, now })
}

/** Emits an event of a locked import with its status: by default, the one for its new status. */
export async function emitStatus(
  tx: Tx,
  { partnerId, importId, status, type, now }: OfImport & { status: ImportStatus; type?: 'job.expired'; now: Date },
): Promise<void> {
  const data = { jobId: importId, status }
  const { sequence } = await tx
    .updateTable('memberImports')
    .set({ eventCount: sql`event_count + 1` })
    .where('partnerId', '=', partnerId)
    .where('id', '=', importId)
    .returning('eventCount as sequence')
    .executeTakeFirstOrThrow()
  await events.emit(tx, { partnerId, type: type ?? eventTypes[status], resourceId: importId, sequence, data, now })
}

const eventTypes = {
  NotReady: 'job.queued',
  AwaitingReview: 'job.awaiting_review',
  Processing: 'job.processing',
  Completed: 'job.completed',
  Rejected: 'job.rejected',
} as const satisfies Record<ImportStatus, string>

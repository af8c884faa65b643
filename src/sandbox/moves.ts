import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { lockByName } from '../database/named-locks.ts'
import { type Claim, reused } from '../idempotency/idempotency.ts'
import { conflict, type Problem, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Clock } from '../kernel/time.ts'
import { aheadMsMax, createClock, raiseOffset, readOffsetMs } from '../partners/clocks.ts'
import { startFeed } from '../payouts/channels/simulated/simulated-bank.ts'
import { scheduleTask, type TaskContext, type Tasks } from '../worker/task.ts'
import { type Due, type DueKind, dueKinds, type NextKind, readDue, staysDue } from './due.ts'

/** Work that fell due while a clock was moving: the first and the last time, and how often. */
type DueSummary = { due: DueKind; from: Date; to: Date; count: number }

/** A move of a partner's clock. Any process may continue an incomplete move. */
export type Move = { id: string; startsAt: Date; target: Date; ran: DueSummary[]; isComplete: boolean }

const limits = {
  // A step takes milliseconds; closing a large cycle or a call to a silent bank takes seconds. If a step takes longer, another process also
  // begins it, which is harmless, and the first process stops.
  leaseSeconds: 10,
  // Rounds of tasks at one instant without progress. Rows that another worker has locked are free after a moment.
  idleRoundsMax: 10,
  idleRoundMs: 50,
  // Entries of a move; work of one kind in a row is one entry.
  ranMax: 1_000,
}

/** The target of a move: an instant, a duration, or the next event of a kind. */
export type Destination = { to: Date } | { byMs: number } | { next: NextKind }

type NewMove = {
  partnerId: string
  destination: Destination
  claim?: Pick<Claim, 'key' | 'fingerprint'> | undefined
  now: Date
  realNow: Date
}

/**
 * Starts to move a partner's clock.
 * @param now by the partner's clock
 * @param claim of the request's idempotency key: a retry gets the move that a killed process has left
 * @returns the id of the move, and whether it is the partner's first
 * @throws Problem `BodyValidation` for a destination that is not ahead or too far ahead; `Conflict` while the clock is moving, or if
 *   nothing of the kind is ahead; `IdempotencyKeyReused` if the key has started another move
 */
export async function start(
  tx: Tx,
  { partnerId, destination, claim, now, realNow }: NewMove,
): Promise<{ moveId: string; isFirst: boolean }> {
  await lockClock(tx, partnerId)
  const isFirst = await createClock(tx, partnerId)
  const offsetMs = await readLockedOffsetMs(tx, partnerId)
  const earlier = claim === undefined ? undefined : await findByKey(tx, { partnerId, key: claim.key, now })
  if (claim !== undefined && earlier !== undefined) {
    if (!earlier.fingerprint?.equals(claim.fingerprint)) throw reused()
    return { moveId: earlier.id, isFirst: false }
  }
  const { rows: moving } = await sql`
    select from sandbox_clock_moves where partner_id = ${partnerId} and ended_at is null`.execute(tx)
  if (moving.length > 0) throw stillMoving()
  const target = await targetOf(tx, { partnerId, destination, now, realNow })
  const moveId = newId('clockMove', realNow)
  const endsAheadMs = 'byMs' in destination ? offsetMs + destination.byMs : null
  await sql`
    insert into sandbox_clock_moves (partner_id, id, idempotency_key, fingerprint, starts_at, target, offset_ms)
    values (${partnerId}, ${moveId}, ${claim?.key ?? null}, ${claim?.fingerprint ?? null}, ${now}, ${target},
            ${endsAheadMs})`.execute(tx)
  if (offsetMs === 0) await startFeed(tx, { partnerId, now: realNow })
  return { moveId, isFirst }
}

/**
 * Keeps the partner's clock from moving until the transaction ends, so that a reset leaves nothing that was created at a later instant. A
 * move without a process is left to be deleted.
 * @throws Problem `Conflict` while a process is moving the clock
 */
export async function stopMoving(tx: Tx, partnerId: string): Promise<void> {
  await lockClock(tx, partnerId)
  const { rows } = await sql<{ isLeased: boolean }>`
    select coalesce(leased_until >= now(), false) as is_leased from sandbox_clock_moves
     where partner_id = ${partnerId} and ended_at is null for update`.execute(tx)
  if (rows[0]?.isLeased) throw stillMoving()
}

/** Serialises the moves of a partner, and its resets. Always locked before the rows of its clock and its moves. */
async function lockClock(tx: Tx, partnerId: string): Promise<void> {
  // A partner that never moved its clock has no row to lock.
  await lockByName(tx, 'clock of', partnerId)
}

async function readLockedOffsetMs(tx: Tx, partnerId: string): Promise<number> {
  const { rows } = await sql<{ offsetMs: bigint }>`
    select offset_ms from sandbox_clocks where partner_id = ${partnerId} for update`.execute(tx)
  return Number(rows[0]?.offsetMs ?? 0n)
}

function stillMoving(): Problem {
  const message = 'The clock is still moving; GET /v1/sandbox/clock says when it has arrived'
  return problem('Conflict', message, {}, { 'retry-after': '1' })
}

async function findByKey(
  tx: Tx,
  { partnerId, key, now }: { partnerId: string; key: string; now: Date },
): Promise<{ id: string; fingerprint: Buffer | null } | undefined> {
  const { rows } = await sql<{ id: string; fingerprint: Buffer | null }>`
    select id, fingerprint from sandbox_clock_moves
     where partner_id = ${partnerId} and idempotency_key = ${key}
       and target > ${now}::timestamptz - interval '7 days'
     order by id desc limit 1`.execute(tx)
  return rows[0]
}

async function targetOf(
  tx: Tx,
  { partnerId, destination, now, realNow }: { partnerId: string; destination: Destination; now: Date; realNow: Date },
): Promise<Date> {
  const latest = new Date(realNow.getTime() + aheadMsMax)
  const tooFar = `The clock can be at most 400 days ahead of real time, which is ${latest.toISOString()}`
  if ('next' in destination) {
    const due = (await readDue(tx, { partnerId, after: now, now })).find(({ kind }) => kind === destination.next)
    if (due !== undefined && due.count > 0) return now
    if (due?.next == null) throw conflict(`Nothing is ahead that ${destination.next} could wait for`)
    if (due.next > latest) throw problem('BodyValidation', tooFar, { path: 'next' })
    return due.next
  }
  const [path, target] =
    'to' in destination ? ['to', destination.to] : ['by', new Date(now.getTime() + destination.byMs)]
  if (target < now)
    throw problem('BodyValidation', `The clock only moves forward, and it is ${now.toISOString()}`, { path })
  if (target > latest) throw problem('BodyValidation', tooFar, { path })
  return target
}

/** The latest move of the partner's clock; undefined if it was never moved. */
export async function findLatest(db: Reader, partnerId: string): Promise<Move | undefined> {
  const { rows } = await sql<MoveRow>`
    select id, starts_at, target, ran, ended_at from sandbox_clock_moves
     where partner_id = ${partnerId} order by id desc limit 1`.execute(db)
  return rows[0] && toMove(rows[0])
}

/** Undefined if there is none: a reset deletes moves. */
export async function find(db: Reader, { partnerId, moveId }: MoveKey): Promise<Move | undefined> {
  const { rows } = await sql<MoveRow>`
    select id, starts_at, target, ran, ended_at from sandbox_clock_moves
     where partner_id = ${partnerId} and id = ${moveId}`.execute(db)
  return rows[0] && toMove(rows[0])
}

type MoveRow = { id: string; startsAt: Date; target: Date; ran: StoredDueSummary[]; endedAt: Date | null }
type StoredDueSummary = { due: DueKind; from: string; to: string; count: number }

function toMove({ id, startsAt, target, ran, endedAt }: MoveRow): Move {
  const entries = ran.map(each => ({ ...each, from: new Date(each.from), to: new Date(each.to) }))
  return { id, startsAt, target, ran: entries, isComplete: endedAt !== null }
}

type MoveKey = { partnerId: string; moveId: string }

/** The moves that no process is working on. */
export async function findAbandoned(db: Reader): Promise<MoveKey[]> {
  const { rows } = await sql<MoveKey>`
    select partner_id, id as move_id from sandbox_clock_moves
     where ended_at is null and (leased_until is null or leased_until < now())
     order by id`.execute(db)
  return rows
}

/** Schedules the worker's search for abandoned moves at the end of the first lease, in case the process was killed. */
export async function watchLeases(tx: Tx): Promise<void> {
  const { rows } = await sql<{ endsAt: Date | null }>`
    select min(leased_until) as ends_at from sandbox_clock_moves
     where ended_at is null and leased_until >= now()`.execute(tx)
  const endsAt = rows[0]?.endsAt ?? null
  // The queue starts a job no earlier than it is due, and the lease must be over.
  if (endsAt !== null) await scheduleTask(tx, { task: 'move-sandbox-clocks', at: new Date(endsAt.getTime() + 1) })
}

export type MoveContext = { db: Db; log: Logger; now: Clock; tasks: Partial<Tasks> }

/**
 * Moves a clock from one instant with due work to the next, does the work with the tasks that do it everywhere else, and then moves on to
 * the target. Safe to run twice: the due work is read anew, the clock only moves forward, and a process that has lost its lease stops.
 * @param mayGoOn called after each step; if false, the move is left to another process
 * @returns whether the move is complete
 */
export async function advance(
  { db, log, now: realNow, tasks }: MoveContext,
  { partnerId, moveId, mayGoOn = () => true }: MoveKey & { mayGoOn?: () => boolean },
): Promise<boolean> {
  const lease = await db.transaction().execute(async tx => {
    const acquired = await acquire(tx, { partnerId, moveId })
    if (acquired !== undefined) await watchLeases(tx)
    return acquired
  })
  if (lease === undefined) return (await find(db, { partnerId, moveId }))?.isComplete ?? true
  let offsetMs = await readOffsetMs(db, partnerId)
  const now = () => new Date(realNow().getTime() + offsetMs)
  const context: TaskContext = { db, log, now, scope: { only: partnerId } }
  const run = new Run(context, tasks)
  const { target } = lease
  let { ran } = lease
  for (let after = ran.at(-1)?.to ?? lease.startsAt; ; ) {
    const at = now()
    const { found, next } = await run.everythingDue({ partnerId, after })
    ran = added(ran, found, at)
    const isThere = at >= target
    // Deletes what has expired.
    if (isThere) await run.tasks(['remove-old-data', 'watch-floats'])
    after = at
    const isLast = next === undefined || next >= target
    const nextAt = isLast ? target : next
    const aheadMs = (isLast ? lease.offsetMs : null) ?? nextAt.getTime() - realNow().getTime()
    const nextOffsetMs = Math.max(offsetMs, aheadMs)
    const isHeld = await db.transaction().execute(async tx => {
      await lockClock(tx, partnerId)
      if (!(await record(tx, { partnerId, moveId, lease, ran, isThere }))) return false
      if (!isThere) await raiseOffset(tx, { partnerId, offsetMs: nextOffsetMs })
      return true
    })
    if (!isHeld) return false
    if (isThere) return true
    offsetMs = nextOffsetMs
    if (!mayGoOn()) {
      await db.transaction().execute(async tx => {
        await release(tx, { partnerId, moveId, lease })
        await scheduleTask(tx, { task: 'move-sandbox-clocks', at: realNow() })
      })
      return false
    }
  }
}

class Run {
  readonly #context: TaskContext
  readonly #tasks: Partial<Tasks>
  #isFirst = true

  constructor(context: TaskContext, tasks: Partial<Tasks>) {
    this.#context = context
    this.#tasks = tasks
  }

  /** Runs tasks until nothing is due. */
  async everythingDue({
    partnerId,
    after,
  }: {
    partnerId: string
    after: Date
  }): Promise<{ found: Due[]; next: Date | undefined }> {
    const { db, now } = this.#context
    const read = () => readDue(db, { partnerId, after, now: now() })
    const found = (await read()).filter(({ count }) => count > 0)
    let due = found
    // An earlier process may have stopped between setting the clock and doing the work.
    if (this.#isFirst) await this.tasks(['read-rail-reports'])
    this.#isFirst = false
    for (let idle = 0; due.length > 0 && idle < limits.idleRoundsMax; ) {
      await this.tasks(
        Object.keys(dueKinds).flatMap(kind => (due.some(each => each.kind === kind) ? dueKinds[kind as DueKind] : [])),
      )
      const left = (await read()).filter(({ kind, count }) => staysDue(kind) && count > 0)
      const hasProgress = signatureOf(left) !== signatureOf(due.filter(({ kind }) => staysDue(kind)))
      idle = hasProgress ? 0 : idle + 1
      if (!hasProgress) await pause(limits.idleRoundMs)
      due = left
    }
    const ahead = (await read()).flatMap(({ next }) => next ?? [])
    const next = ahead.length === 0 ? undefined : new Date(Math.min(...ahead.map(at => at.getTime())))
    return { found, next }
  }

  async tasks(names: readonly (keyof Tasks)[]): Promise<void> {
    for (const name of new Set(names)) {
      try {
        await this.#tasks[name]?.(this.#context)
      } catch (error) {
        // As in the worker, the work stays due and is retried.
        this.#context.log.warn({ err: error, task: name }, 'a task failed while a clock was moved')
      }
    }
  }
}

function signatureOf(due: Due[]): string {
  return due.map(({ kind, count, workLeft }) => `${kind} ${count} ${workLeft}`).join()
}

function added(ran: DueSummary[], found: Due[], at: Date): DueSummary[] {
  const entries = [...ran]
  for (const { kind, count } of found) {
    const last = entries.at(-1)
    if (last?.due === kind) entries[entries.length - 1] = { ...last, to: at, count: last.count + count }
    else if (entries.length < limits.ranMax) entries.push({ due: kind, from: at, to: at, count })
  }
  return entries
}

type Lease = { holder: string; startsAt: Date; target: Date; ran: DueSummary[]; offsetMs: number | null }

async function acquire(tx: Tx, { partnerId, moveId }: MoveKey): Promise<Lease | undefined> {
  const holder = randomUUID()
  const { rows } = await sql<MoveRow & { offsetMs: bigint | null }>`
    update sandbox_clock_moves
       set leased_by = ${holder}, leased_until = now() + make_interval(secs => ${limits.leaseSeconds})
     where partner_id = ${partnerId} and id = ${moveId} and ended_at is null
       and (leased_until is null or leased_until < now())
    returning id, starts_at, target, ran, ended_at, offset_ms`.execute(tx)
  const [row] = rows
  if (row === undefined) return undefined
  const { startsAt, target, ran } = toMove(row)
  return { holder, startsAt, target, ran, offsetMs: row.offsetMs === null ? null : Number(row.offsetMs) }
}

// Also extends the lease.
async function record(
  tx: Tx,
  { partnerId, moveId, lease, ran, isThere }: MoveKey & { lease: Lease; ran: DueSummary[]; isThere: boolean },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update sandbox_clock_moves
       set ran = ${JSON.stringify(ran)}, leased_until = now() + make_interval(secs => ${limits.leaseSeconds}),
           ended_at = ${isThere ? sql`now()` : sql`null`}
     where partner_id = ${partnerId} and id = ${moveId} and leased_by = ${lease.holder}
       and ended_at is null`.execute(tx)
  return numAffectedRows === 1n
}

async function release(tx: Tx, { partnerId, moveId, lease }: MoveKey & { lease: Lease }): Promise<void> {
  await sql`
    update sandbox_clock_moves set leased_until = null
     where partner_id = ${partnerId} and id = ${moveId} and leased_by = ${lease.holder}`.execute(tx)
}

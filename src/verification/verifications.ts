import { type Columns, type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { lockByNameIfFree } from '../database/named-locks.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Clock } from '../kernel/time.ts'
import { scheduleTask } from '../worker/task.ts'
import { type Check, checkCount, verifyEach } from './verify.ts'

const limits = { listMax: 50 }

/** A verification of the books, in the background or by command. @property problem why it failed */
export type Verification = Omit<Columns<'ledgerVerifications'>, 'checks'> & {
  /** Null until the verification has ended, and if it failed. */
  checks: Check[] | null
}

/**
 * Requests a verification, which the worker starts at once.
 * @throws Problem `Conflict` if one is waiting or running
 */
export async function request(tx: Tx, { requestedBy, now }: { requestedBy: string; now: Date }): Promise<Verification> {
  const id = newId('ledgerVerification', now)
  await sql`
    insert into ledger_verifications (id, requested_by, requested_at, checks_total)
    values (${id}, ${requestedBy}, ${now}, ${checkCount})`
    .execute(tx)
    .catch(error => {
      if (brokenConstraint(error) !== 'one_verification_at_a_time') throw error
      throw conflict('A verification is waiting or running; read its progress')
    })
  await scheduleTask(tx, { task: 'verify-ledger', at: now })
  return await find(tx, id)
}

/** Records a verification that a command has made. @returns its id */
export async function recordEnded(
  tx: Tx,
  { requestedBy, startedAt, endedAt, checks }: { requestedBy: string; startedAt: Date; endedAt: Date; checks: Check[] },
): Promise<string> {
  const id = newId('ledgerVerification', startedAt)
  await sql`
    insert into ledger_verifications
           (id, requested_by, requested_at, started_at, ended_at, checks_done, checks_total, checks)
    values (${id}, ${requestedBy}, ${startedAt}, ${startedAt}, ${endedAt}, ${checks.length}, ${checkCount},
            ${JSON.stringify(checks)}::jsonb)`.execute(tx)
  return id
}

/** @throws Problem `NotFound` */
export async function find(db: Reader, id: string): Promise<Verification> {
  const [found] = await select(db, sql`id = ${id}`)
  if (found === undefined) throw problem('NotFound', `There is no verification ${id}`)
  return found
}

/** The last verifications, newest first. */
export async function list(db: Reader): Promise<Verification[]> {
  return await select(db, sql`true`)
}

/** Finds the last verification that has ended. */
export async function findLastEnded(db: Reader): Promise<Verification | undefined> {
  const [found] = await select(db, sql`ended_at is not null`)
  return found
}

async function select(db: Reader, where: ReturnType<typeof sql>): Promise<Verification[]> {
  const { rows } = await sql<Verification>`
    select id, requested_by, requested_at, started_at, ended_at, checks_done, checks_total, checks, problem
      from ledger_verifications where ${where} order by id desc limit ${limits.listMax}`.execute(db)
  return rows
}

/**
 * Runs the waiting verification, if there is one. A transaction without a snapshot holds the lock, so the lock ends with the process: a
 * verification that has started and is not locked was interrupted. An interrupted verification is not repeated, because its cause
 * might also end this process; an operator can request another.
 */
export async function runRequested(db: Db, now: Clock): Promise<void> {
  if ((await select(db, sql`ended_at is null`)).length === 0) return
  await db
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async tx => {
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
      if (!(await lockByNameIfFree(tx, 'verification of', 'the ledger'))) return
      const [due] = await select(db, sql`ended_at is null`)
      if (due === undefined) return
      if (due.startedAt !== null)
        return await end(db, due, { problem: 'The verifying process ended; request another verification', now })
      await sql`update ledger_verifications set started_at = ${now()} where id = ${due.id}`.execute(db)
      await run(db, { id: due.id, now })
    })
}

async function run(db: Db, { id, now }: { id: string; now: Clock }): Promise<void> {
  const checks: Check[] = []
  try {
    for await (const check of verifyEach(db)) {
      checks.push(check)
      await sql`update ledger_verifications set checks_done = ${checks.length} where id = ${id}`.execute(db)
    }
  } catch (error) {
    await end(db, { id }, { problem: 'It failed; see the worker’s log', now })
    throw error
  }
  await end(db, { id }, { checks, now })
}

async function end(
  db: Db,
  { id }: { id: string },
  { checks, problem: reason, now }: { checks?: Check[]; problem?: string; now: Clock },
): Promise<void> {
  await sql`
    update ledger_verifications
       set ended_at = ${now()}, checks = ${checks === undefined ? null : JSON.stringify(checks)}::jsonb,
           problem = ${reason ?? null}
     where id = ${id} and ended_at is null`.execute(db)
}

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { findPackage } from '@midmonth/embedded-postgres'
import pino from 'pino'
import { expect, test } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { defaultRetention } from '../../src/kernel/retention.ts'
import { simulatedBank } from '../../src/payouts/channels/simulated/simulated-bank.ts'
import { Fence } from '../../src/webhooks/fence.ts'
import { Sender } from '../../src/webhooks/send.ts'
import { scheduleTask } from '../../src/worker/task.ts'
import { startWorker } from '../../src/worker.ts'

const wait = { timeout: 45_000, interval: 50 }

test('the worker survives restarts of PostgreSQL, even in the middle of a step, and resumes automatically', {
  timeout: 120_000,
}, async () => {
  const dataDir = path.join(tmpdir(), `midmonth-test-${randomBytes(6).toString('hex')}`)
  const postgres = await startEmbeddedPostgres({
    dataDir,
    checkoutDir: fileURLToPath(new URL('../..', import.meta.url)),
  })
  const log = pino({ level: 'silent' })
  const owner = connect(postgres.ownerConnection, { log })
  await migrate(owner.db, owner.pool, { name: postgres.connection.user })
  await owner.close()
  const { db, pool } = connect(postgres.connection, { log })

  // The clock is read in the middle of a step, which is the moment to kill PostgreSQL, as in a power failure.
  let victim: number | undefined
  const now = () => {
    if (victim !== undefined) process.kill(victim, 'SIGKILL')
    victim = undefined
    return new Date()
  }
  const worker = await startWorker({ db, log, now }, pool, {
    sender: new Sender(new Fence({ allowsHttp: true, allowsLoopback: true, refusedPorts: [] }), { clockMs: Date.now }),
    realNow: () => new Date(),
    retention: defaultRetention,
    channels: [simulatedBank({ db, now })],
  })
  const ask = async (query: string) => (await pool.query(query).catch(() => ({ rows: [] }))).rows[0]?.answer
  const works = async () => {
    for (const task of ['expire-intents', 'submit-withdrawals'] as const) {
      // The pool may still hold an old connection.
      const schedule = () => db.transaction().execute(tx => scheduleTask(tx, { task, at: new Date(0) }))
      await expect
        .poll(
          () =>
            schedule().then(
              () => true,
              () => false,
            ),
          wait,
        )
        .toBe(true)
    }
    await expect
      .poll(() => ask('select count(*)::integer as answer from graphile_worker.jobs where attempts = 0'), wait)
      .toBe(0)
  }
  await works()
  for (const task of ['expire-intents', 'submit-withdrawals'] as const) {
    const startedAt = await ask('select pg_postmaster_start_time() as answer')
    victim = Number.parseInt(
      readFileSync(path.join(dataDir, `postgres-${findPackage().major}`, 'postmaster.pid'), 'utf8'),
      10,
    )
    expect(victim).toBeGreaterThan(1)
    // A round may run first and kill PostgreSQL at this point.
    const schedule = db.transaction().execute(tx => scheduleTask(tx, { task, at: new Date(0) }))
    await schedule.catch(() => undefined)
    await expect
      .poll(async () => ((await ask('select pg_postmaster_start_time() as answer')) ?? startedAt) > startedAt, wait)
      .toBe(true)
    await works()
  }
  await worker.stop()
  await db.destroy()
  await postgres.stop()
  await rm(dataDir, { recursive: true, force: true })
})

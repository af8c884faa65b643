import pino from 'pino'
import { expect, test } from 'vitest'
import { startHarness } from '../test/harness/harness.ts'
import { sql } from './database/database.ts'
import { defaultRetention } from './kernel/retention.ts'
import { createClock, raiseOffset } from './partners/clocks.ts'
import { Fence } from './webhooks/fence.ts'
import { Sender } from './webhooks/send.ts'
import { scheduleTask } from './worker/task.ts'
import { startWorker } from './worker.ts'

const wait = { timeout: 30_000, interval: 50 }

const outgoing = () => ({
  sender: new Sender(new Fence({ allowsHttp: true, allowsLoopback: true, refusedPorts: [] }), { clockMs: Date.now }),
  realNow: () => new Date(),
  retention: defaultRetention,
})

test('a failing step is logged and retried later, and does not stop the worker', async () => {
  const { db, pool, clock, stop } = await startHarness()
  const lines: { msg: string }[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  let isBroken = true
  const now = () => {
    if (isBroken) throw new Error('The clock is broken')
    return clock.now()
  }
  const worker = await startWorker({ db, log, now }, pool, { ...outgoing(), channels: [] })
  await db.transaction().execute(tx => scheduleTask(tx, { task: 'expire-intents', at: new Date(0) }))
  const failed = async () =>
    (
      await pool.query(`select last_error, locked_at, attempts from graphile_worker._private_jobs jobs
                        join graphile_worker._private_tasks tasks on tasks.id = jobs.task_id
                       where tasks.identifier = 'expire-intents' and run_at > now() and jobs.key is null`)
    ).rows[0]
  await expect
    .poll(failed, wait)
    .toMatchObject({ last_error: 'the task expire-intents failed', locked_at: null, attempts: 1 })
  // The error's message can quote values of rows. Only the serializer of `err` leaves them out, so it stands nowhere else.
  const err = expect.objectContaining({ message: 'The clock is broken' })
  expect(lines).toContainEqual(expect.objectContaining({ task: 'expire-intents', msg: 'a task failed', err }))
  expect(lines.filter(({ msg }) => msg.includes('The clock'))).toEqual([])
  isBroken = false
  await pool.query(`update graphile_worker._private_jobs set run_at = now()`)
  await expect.poll(failed, wait).toBeUndefined()
  expect(lines.map(({ msg }) => msg)).not.toContain('restarting the worker runner')
  await worker.stop()
  await stop()
})

test('a worker that cannot start its first round stops completely, and leaves no connection or runner behind', async () => {
  const { db, ownerDb, pool, clock, stop } = await startHarness()
  const log = pino({ level: 'silent' })
  const context = { db, log, now: clock.now }
  await sql`alter function graphile_worker.add_job rename to add_job_gone`.execute(ownerDb)
  await expect(startWorker(context, pool, { ...outgoing(), channels: [] })).rejects.toThrow('add_job')
  const connected = async () =>
    (
      await pool.query(`select count(*)::integer as count from pg_stat_activity
                         where datname = current_database() and usename = current_user`)
    ).rows[0].count
  // This query itself uses one connection.
  await expect.poll(connected, wait).toBeLessThanOrEqual(pool.totalCount)

  await sql`alter function graphile_worker.add_job_gone rename to add_job`.execute(ownerDb)
  const worker = await startWorker(context, pool, { ...outgoing(), channels: [] })
  expect(worker.isWorking()).toBe(true)
  await worker.stop()
  await stop()
})

test('a partner’s moved clock deletes neither requests nor webhook deliveries of other partners', async () => {
  const { db, pool, clock, partner, other, call, flushRequestLog, stop } = await startHarness()
  const { key } = other
  const { body: webhook } = await call('POST', '/v1/webhooks', {
    key,
    body: { url: 'http://127.0.0.1:60000/hook', types: ['*'] },
  })
  const path = `/v1/webhooks/${webhook.id}`
  await call('POST', `${path}/test`, { key, body: { type: 'withdrawal.paid' } })
  await flushRequestLog()
  const kept = async () => ({
    requests: (await call('GET', '/v1/requests?method=POST', { key })).body.requests.length,
    deliveries: (await call('GET', `${path}/deliveries`, { key })).body.deliveries.length,
  })
  expect(await kept()).toEqual({ requests: 2, deliveries: 1 })
  await db.transaction().execute(async tx => {
    await createClock(tx, partner.id)
    await raiseOffset(tx, { partnerId: partner.id, offsetMs: 40 * 86_400_000 })
  })
  const worker = await startWorker({ db, log: pino({ level: 'silent' }), now: clock.now }, pool, {
    ...outgoing(),
    channels: [],
    isSandbox: true,
  })
  const deletions = ['round:remove-old-data']
  const waiting = async () =>
    (await pool.query('select from graphile_worker.jobs where key = any($1)', [deletions])).rowCount
  await expect.poll(waiting, wait).toBe(0)
  expect(await kept()).toEqual({ requests: 2, deliveries: 1 })
  await worker.stop()
  await stop()
})

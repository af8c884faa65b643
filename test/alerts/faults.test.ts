import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test, vi } from 'vitest'
import { type IdKind, newId } from '../../src/kernel/ids.ts'
import { provokeHeader } from '../../src/sandbox/test-values.ts'
import {
  type Environment,
  get,
  midmonth,
  newDatabase,
  type Served,
  serve,
  start,
  tamper,
  tidyUp,
} from '../program/program.ts'
import { freePort } from '../servers/free-port.ts'
import { startReceiver } from '../servers/receiver.ts'
import { expectAlerts, type Scrape, scrape, token } from './evaluation.ts'
import { alerts, hasPrometheus } from './prometheus-files.ts'
import { findMember, post } from './requests.ts'

// Provokes faults of a running service, scrapes it before and after, and evaluates the rules on that. Where a fault takes days or a second
// machine, SQL stands in for time and the bank. These alerts have only their unit tests:
const notProvoked = [
  // Would take gigabytes, or days.
  ...['MidmonthHeapNearlyFull', 'MidmonthDatabaseGrowing', 'MidmonthFloatRunningOut'],
  // Need a second PostgreSQL, or an archive; the one of the tests has neither.
  ...['MidmonthReplicaMissing', 'MidmonthReplicaLagging', 'MidmonthReplicationAsynchronous', 'MidmonthArchivingFailed'],
  // Takes a decision about a bank file, by two people.
  'MidmonthFloatUncovered',
]

vi.setConfig({ testTimeout: 300_000 })
afterAll(tidyUp)

const provoked = new Set<string>()

async function expectFaults(names: string[], asked: { moments: Scrape[][]; lastingMinutes: number }): Promise<void> {
  const expected = names.map(name => `Midmonth${name}`)
  await expectAlerts(expected, asked)
  for (const alert of expected) provoked.add(alert)
}

/** Scrapes until the metrics match: a process reads the database every five seconds. */
async function scrapeUntil({ address }: Pick<Served, 'address'>, ...patterns: RegExp[]): Promise<Scrape> {
  return await vi.waitFor(
    async () => {
      const found = await scrape('api-1:8080', address)
      for (const pattern of patterns) expect(found.text).toMatch(pattern)
      return found
    },
    { timeout: 90_000, interval: 500 },
  )
}

const settings = { MIDMONTH_METRICS_TOKEN: token }
const isRead = /midmonth_database_up 1/

/** A database without tasks that have been due since its template was made. */
async function newQuietDatabase(options: { hasDemo?: boolean } = {}) {
  const database = await newDatabase(options)
  await tamper(database, "update graphile_worker._private_jobs set run_at = now() + interval '1 day'")
  return database
}

/** Values of a row that SQL inserts for a bank, a worker or time. */
const idOf = (kind: IdKind) => `'${newId(kind, new Date())}'`
/** Runs SQL without the rules that the tables enforce. */
async function imitate(database: Environment & { DATABASE_URL: string }, ...statements: string[]): Promise<void> {
  await tamper(database, ['set session_replication_role = replica', ...statements].join(';\n'))
}

test.runIf(hasPrometheus)('a killed worker, a process that does not respond, and restarts', async () => {
  const database = { ...(await newQuietDatabase()), ...settings }
  const workerPort = await freePort()
  const startWorker = () => start({ ...database, MIDMONTH_HEALTH_PORT: `${workerPort}` }, ['--worker'])
  const api = await serve(database, { roles: { api: true, worker: false } })
  let worker = await startWorker()
  const both = async (...patterns: RegExp[]) => [
    await scrapeUntil(api, ...patterns),
    await scrape('worker-1:8081', `http://127.0.0.1:${workerPort}`),
  ]
  const moments = [await both(/midmonth_workers_alive 1/)]
  for (let restarts = 0; restarts < 3; restarts++) {
    await worker.stop()
    // Start times are whole seconds.
    await pause(1_100)
    worker = await startWorker()
    moments.push(await both(/midmonth_workers_alive [12]/))
  }
  await expectFaults(['Restarting'], { moments, lastingMinutes: 5 })

  worker.child.kill('SIGKILL')
  await worker.ended
  await imitate(database, "update worker_heartbeats set beat_at = beat_at - interval '2 minutes'")
  const dead = await both(/midmonth_workers_alive 0/)
  await expectFaults(['Down', 'NoWorker'], { moments: [moments[0] ?? [], dead], lastingMinutes: 5 })
  await expectFaults(['NotScraped'], { moments: [moments[0] ?? [], []], lastingMinutes: 20 })
})

test.runIf(hasPrometheus)(
  'late tasks, tasks given up, stuck withdrawals, low floats, failing webhooks, failing messages to operators',
  async () => {
    const [failing, gone] = [await startReceiver(), await startReceiver()]
    const notify = {
      MIDMONTH_NOTIFY_WEBHOOK_URL: failing.url,
      MIDMONTH_NOTIFY_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}`,
    }
    const database = { ...(await newQuietDatabase({ hasDemo: true })), ...settings, ...notify }
    const service = await serve(database)
    failing.answerWith(500)
    gone.answerWith(410)
    const before = await scrapeUntil(service, /midmonth_workers_alive 1/)

    for (const { url } of [failing, gone]) await post(service, '/v1/webhooks', { url, types: ['withdrawal.held'] })
    const memberId = await findMember(service)
    const amount = { amount: 1_000, currency: 'GBP' }
    const intent = await post(service, '/v1/pay/withdrawals/intent', { memberId, amount })
    await post(service, '/v1/pay/withdrawals/complete', { withdrawalIntentId: intent.withdrawalIntentId })
    const [partner] = JSON.parse((await midmonth(['partner', 'list', '--json'], database)).stdout)
    await midmonth(['float', 'floor', partner.id, 'GBP', '99999999999'], database)
    await imitate(
      database,
      // The bank was asked nine times.
      "update withdrawals set attempts = 9, due_at = now() + interval '1 hour' where status = 'held'",
      "select graphile_worker.add_job('a-task-of-another-version', run_at => now() - interval '20 minutes')",
      "select graphile_worker.add_job('failing-task', max_attempts => 1)",
      "update graphile_worker._private_jobs set attempts = max_attempts where task_id in (select id from graphile_worker._private_tasks where identifier = 'failing-task')",
    )
    // Between attempts to tell the operator, minutes pass.
    for (let failed = 0; failed < 3; failed++) {
      await imitate(
        database,
        'update operator_notices set next_attempt_at = now()',
        "select graphile_worker.add_job('notify-operators')",
      )
      const more = `select from operator_notices where attempts > ${failed}`
      await vi.waitFor(async () => expect(await tamper(database, more)).not.toEqual([]), { timeout: 30_000 })
    }
    const after = await scrapeUntil(
      service,
      /notices_failing\{channel="webhook"\} 3/,
      /floats_low 1/,
      /stuck\{status="held"\} [1-9]/,
      /given_up\{task="failing-task"\} 1/,
      /endpoints\{state="failing"\} 1/,
      /endpoints\{state="given_up"\} 1/,
    )
    await Promise.all([failing.stop(), gone.stop()])
    const names = [
      ...['TasksLate', 'TaskGivenUp', 'WithdrawalsStuck', 'FloatLow', 'WebhookEndpointsFailing', 'NoticesFailing'],
    ]
    await expectFaults(names, { moments: [[before], [after]], lastingMinutes: 70 })
    // It compares with six hours ago.
    await expectFaults([...names, 'WebhookEndpointGivenUp'], { moments: [[before], [after]], lastingMinutes: 355 })
  },
)

test.runIf(hasPrometheus)('server errors, slow requests, and an event loop that is blocked', async () => {
  const database = { ...(await newQuietDatabase({ hasDemo: true })), ...settings }
  const service = await serve(database)
  const before = await scrapeUntil(service, isRead)
  // The service runs in this process.
  for (let times = 0; times < 6; times++) {
    const blockedUntil = Date.now() + 700
    while (Date.now() < blockedUntil);
    await pause(20)
  }
  const blocked = await scrape('api-1:8080', service.address)
  await expectFaults(['EventLoopBlocked'], { moments: [[before], [blocked]], lastingMinutes: 8 })
  await fetch(`${service.address}/v1/tiers`, {
    headers: { 'x-api-key': service.key, [provokeHeader]: 'InternalServerError' },
  })
  const slow = tamper(database, 'begin; lock table tiers in access exclusive mode; select pg_sleep(2); rollback')
  await pause(500)
  await get(service)
  await slow
  const after = await scrapeUntil(service, /requests_total\{operation="\w+",code="500"\} 1/)
  await expectFaults(['ServerErrors', 'Slow'], { moments: [[before], [after]], lastingMinutes: 25 })
})

test.runIf(hasPrometheus)(
  'a database whose tables are locked: waiting callers, refusals, no metrics of the installation',
  async () => {
    const database = { ...(await newQuietDatabase({ hasDemo: true })), ...settings, MIDMONTH_DATABASE_CONNECTIONS: '2' }
    const service = await serve(database, { roles: { api: true, worker: false } })
    await imitate(database, "insert into worker_heartbeats values ('worker-1', 'worker-1', 1, now(), now())")
    const before = await scrapeUntil(service, /midmonth_workers_alive 1/)
    // Longer than a read is shared.
    await pause(5_500)
    const locked = tamper(
      database,
      'begin; lock table tiers, payout_batches in access exclusive mode; select pg_sleep(9); rollback',
    )
    await pause(500)
    const sendMany = () => Promise.all(Array.from({ length: 40 }, () => get(service)))
    // The first are refused when the scrape gives up. The others still wait then.
    const refused = [sendMany(), pause(1_000).then(sendMany)]
    const after = await scrape('api-1:8080', service.address)
    expect(after.text).toMatch(/midmonth_database_up 0/)
    await Promise.all(refused)
    const later = await scrape('api-1:8080', service.address)
    await locked
    expect(later.text).toMatch(/code="503"\} \d+/)
    // The refusals of the second scrape, with the connections of the first.
    const waiting = after.text?.match(/^midmonth_database_connections.*waiting.*$/gm)?.join('\n')
    const text = after.text
      ?.replace(/^midmonth_http_requests_total.*\n/gm, '')
      .concat(later.text?.match(/^midmonth_http_requests_total.*$/gm)?.join('\n') ?? '', '\n')
    expect(waiting).toMatch(/"waiting"\} [1-9]/)
    await expectFaults(['DatabaseUnreadable', 'Overloaded', 'PoolExhausted'], {
      moments: [[before], [{ ...after, text }]],
      lastingMinutes: 15,
    })
  },
)

test.runIf(hasPrometheus)('a bank and its batches: late, unanswered, given back, exceptions, differences', async () => {
  const database = { ...(await newQuietDatabase({ hasDemo: true })), ...settings }
  const service = await serve(database)
  const before = await scrapeUntil(service, /midmonth_workers_alive 1/)
  const batch = (status: string, cutOff: string, givenBack = 'null') =>
    `insert into payout_batches (id, message_id, rail, currency, debtor, value_date, is_instant, cut_off_at, status, created_at, closed_at, sending_at, given_back_at)
     values (${idOf('payoutBatch')}, 'M${status.toUpperCase()}', 'sepa', 'EUR', 'default', current_date, false, now() - interval '${cutOff}', '${status}', now(), now(), now(), ${givenBack})`
  const exception = (kind: string) =>
    `insert into payout_exceptions (id, rail, kind, fingerprint, reason, opened_at)
     values (${idOf('payoutException')}, 'sepa', '${kind}', '${kind}', 'A test', now() - interval '5 hours')`
  await imitate(
    database,
    ...[batch('building', '2 hours'), batch('approved', '2 hours'), batch('sent', '9 days')],
    ...[batch('rejected', '1 day', 'now()'), exception('unmatched'), exception('bank_balance')],
    `insert into bank_files (id, rail, sha256, name, status, record_count, received_at)
     values (${idOf('bankFile')}, 'sepa', 'x', 'x.xml', 'importing', 2, now())`,
  )
  const after = await scrapeUntil(service, /rail_brakes\{rail="sepa"\} 1/)
  await expectFaults(
    [
      ...['BatchAwaitsApproval', 'BatchNotSent', 'BatchUnanswered', 'RailBraked'],
      ...['ExceptionsOpen', 'BankDifference', 'BankImportUnfinished'],
    ],
    { moments: [[before], [after]], lastingMinutes: 45 },
  )
})

test.runIf(hasPrometheus)(
  'a live installation without backups and verifications, then with old ones and broken books',
  async () => {
    const database = { ...(await newQuietDatabase()), ...settings, MIDMONTH_MODE: 'live' }
    const service = await serve(database, { roles: { api: true, worker: false } })
    await imitate(database, "insert into worker_heartbeats values ('worker-1', 'worker-1', 1, now(), now())")
    const before = await scrapeUntil(service, /midmonth_workers_alive 1/)
    await expectFaults(['BackupNever', 'VerificationNever'], { moments: [[before], [before]], lastingMinutes: 365 })

    const at = new Date(Date.now() - 27 * 3_600_000).toISOString()
    expect((await midmonth(['backup', 'recorded', '--at', at], database)).code).toBe(0)
    await imitate(database, `insert into ledger_float_totals values (${idOf('partner')}, 'GBP', 100, 0)`)
    expect((await midmonth(['ledger', 'verify'], database)).code).toBe(3)
    await imitate(
      database,
      "update ledger_verifications set ended_at = now() - interval '27 hours'",
      "insert into restores (detected_at, how) values (now(), 'The database was restored')",
      `insert into ledger_seals (partner_id, pay_cycle_id, started_at, unfinished_withdrawals, unsealed_from, sealed_at)
     values (${idOf('partner')}, ${idOf('payCycle')}, now(), '{}', now(), now() - interval '41 days')`,
      `insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
     values (${idOf('partner')}, 'x', '', 'x', now() - interval '1 year', now() - interval '1 year')`,
      `insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
     values (${idOf('partner')}, '${newId('event', new Date('2100-01-01'))}', 'x', 'x', 1, '{}', now())`,
    )
    const after = await scrapeUntil(
      service,
      /last_seal/,
      /broken_rules [1-9]/,
      /partitions_used 1/,
      /retention_overdue 1/,
      /payouts_stopped_since/,
    )
    const names = [
      'BackupOverdue',
      'VerificationOverdue',
      'BooksBroken',
      'SealsOverdue',
      'DefaultPartitionUsed',
      'RetentionOverdue',
      'PayoutsStopped',
    ]
    await expectFaults(names, { moments: [[before], [after]], lastingMinutes: 70 })

    await imitate(
      database,
      `insert into ledger_verifications (id, requested_by, requested_at, started_at, ended_at, checks_total, problem)
     values (${idOf('ledgerVerification')}, 'a test', now(), now(), now(), 1, 'It was interrupted')`,
    )
    const failed = await scrapeUntil(service, /broken_rules -1/)
    const others = names.filter(name => !['VerificationOverdue', 'BooksBroken'].includes(name))
    await expectFaults([...others, 'VerificationFailed'], { moments: [[before], [failed]], lastingMinutes: 70 })
  },
)

test.runIf(hasPrometheus)('a process whose clock is an hour ahead', async () => {
  const database = { ...(await newQuietDatabase()), ...settings }
  const ahead = {
    NODE_OPTIONS: `--import ${fileURLToPath(new URL('../crash/later.ts', import.meta.url))}`,
    CRASH_TEST_AHEAD_MS: '3600000',
  }
  const before = await scrapeUntil(await serve(database), /midmonth_workers_alive 1/)
  const after = await scrapeUntil(await start({ ...database, ...ahead }, ['--api']), /midmonth_workers_alive [12]/)
  await expectFaults(['ClockOff'], { moments: [[before], [after]], lastingMinutes: 8 })
})

test.runIf(hasPrometheus)('every alert is provoked, or listed with the reason', () => {
  expect([...provoked, ...notProvoked].sort()).toEqual(alerts.map(({ alert }) => alert).sort())
})

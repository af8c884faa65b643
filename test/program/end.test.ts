import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { extent } from '../runner/extent.ts'
import {
  baseEnvironment,
  get,
  midmonth,
  newDatabase,
  newDataDir,
  processesNaming,
  type Service,
  serve,
  start,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })
afterAll(tidyUp)

// Concurrent, because one of these tests waits for nine seconds.
test.concurrent('a service started by npm exits when npm is killed', async () => {
  const database = await newDatabase({ hasDemo: true })
  const pid = await killedNpm(database)
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 45_000 })
})

test.concurrent('a graceful stop fails /readyz while it still serves, then accepts no new requests, finishes running ones and rejects an unfinished body and an unfinished upload', async () => {
  const database = await newDatabase({ hasDemo: true })
  const folder = await mkdtemp(path.join(tmpdir(), 'end-test-'))
  const service = await start({ ...database, TMPDIR: folder, MIDMONTH_DRAIN_SECONDS: '3' })
  const memberId = (
    await tamper(database, `select id from members where first_name = 'Sam' and last_name = 'Okafor'`)
  )[0]?.id
  const body = JSON.stringify({ memberId, amount: { amount: 1_000, currency: 'GBP' } })
  // A keep-alive connection must not delay the stop either.
  const agent = new Agent({ keepAlive: true })
  const headers = { 'x-api-key': service.key }
  const intent = {
    agent,
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'content-length': body.length },
  }
  const running = request(`${service.address}/v1/pay/withdrawals/intent`, intent)
  running.write(body.slice(0, 10))
  await vi.waitFor(async () => expect(await hasArrived(database)).toBe(true), { timeout: 15_000 })
  const unfinished = request(`${service.address}/v1/pay/withdrawals/intent`, intent)
  const upload = request(`${service.address}/v1/members/jobs/csv`, {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'text/csv' },
  })
  const refused = [unfinished, upload].map(async each => (await once(each, 'response'))[0].statusCode)
  for (const each of [unfinished, upload]) each.on('error', () => undefined)
  unfinished.write('{')
  upload.write('email,first_name\n')
  const endless = setInterval(() => upload.write('sam.okafor@example.com,Sam\n'), 10)
  await vi.waitFor(async () => expect(isReceiving(service.pid, folder)).toBe(true), { timeout: 45_000 })
  const ready = async () => (await fetch(`${service.address}/readyz`)).status
  expect(await ready()).toBe(200)

  service.child.kill('SIGTERM')
  await vi.waitFor(async () => expect(await ready()).toBe(503), { timeout: 15_000 })
  const answer = await get(service)
  expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close'])
  await vi.waitFor(async () => await expect(get(service)).rejects.toThrow('fetch failed'), { timeout: 45_000 })
  running.end(body.slice(10))
  const [response] = await once(running, 'response')
  expect(response.statusCode).toBe(201)
  response.resume()
  const { code, stderr } = await service.ended
  clearInterval(endless)
  expect(await Promise.all(refused)).toEqual([503, 503])
  // The process was not forced to end, which would give code 1.
  expect(code, stderr).toBe(0)
  expect(await readdir(folder)).toEqual([])
  agent.destroy()
  await rm(folder, { recursive: true })
})

test.concurrent('a separate worker serves its own health probes, and the API warns while no worker is running', async () => {
  const database = await newDatabase({ hasDemo: true })
  const worker = await serve(database, { roles: { api: false, worker: true } })
  const health = await healthAddress(worker)
  expect(await (await fetch(`${health}/readyz`)).json()).toMatchObject({
    status: 'ok',
    checks: { worker: { status: 'ok' } },
  })
  const api = await serve(database, { roles: { api: true, worker: false } })
  const status = async () => ((await (await fetch(`${api.address}/readyz`)).json()) as { status: string }).status
  expect(await status()).toBe('ok')
  await worker.stop()
  expect(await status()).toBe('warning')
  await api.stop()
})

test.concurrent('a start whose worker fails exits with code 1 and says why', async () => {
  const database = await newDatabase()
  await tamper(database, 'alter function graphile_worker.add_job rename to add_job_gone')
  const { code, stderr } = await midmonth(['start'], { ...database, PORT: '0' })
  expect(code).toBe(1)
  expect(stderr).toMatch(/^midmonth: .*add_job/m)
})

test('a service killed during an upload leaves no file behind', async () => {
  const database = await newDatabase({ hasDemo: true })
  const folder = await mkdtemp(path.join(tmpdir(), 'end-test-'))
  const service = await start({ ...database, TMPDIR: folder })
  const upload = request(`${service.address}/v1/members/jobs/csv`, {
    method: 'PUT',
    headers: { 'x-api-key': service.key, 'content-type': 'text/csv' },
  })
  upload.on('error', () => undefined)
  upload.write('email,account_number\n')
  await vi.waitFor(async () => expect(isReceiving(service.pid, folder)).toBe(true), {
    timeout: 45_000,
  })
  service.child.kill('SIGKILL')
  await service.ended
  expect(await readdir(folder)).toEqual([])
  await rm(folder, { recursive: true })
})

test.concurrent('a request stuck in PostgreSQL delays the exit by ten seconds at most', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await start(database)
  await tamper(
    database,
    `create function wait() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
     create trigger wait before insert on member_import_rows for each row execute function wait()`,
  )
  const list = 'email,first_name,last_name,phone,tier\nsam.okafor@example.com,Sam,Okafor,,Bronze\n'
  const hanging = fetch(`${service.address}/v1/members/jobs/csv`, {
    method: 'PUT',
    headers: { 'x-api-key': service.key, 'content-type': 'text/csv' },
    body: list,
  })
  const cutOff = expect(hanging).rejects.toThrow()
  await vi.waitFor(async () => expect(await tamper(database, sleeping)).not.toEqual([]), { timeout: 45_000 })
  const { code, stderr } = await service.stop()
  expect(code).toBe(1)
  expect(stderr).toContain('still running after 9 s')
  await cutOff
})

test('a start whose output is closed stops without a stack trace', async () => {
  const { DATABASE_URL } = await newDatabase({ hasDemo: true })
  const script = new URL('../../cli/midmonth.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, 'start'], {
    env: { ...baseEnvironment, DATABASE_URL, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stdout.destroy()
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  await once(child, 'close')
  expect(child.exitCode).toBe(0)
  expect(stderr).toContain('standard output was closed')
  expect(stderr).not.toContain('\n    at ')
})

describe('on the embedded PostgreSQL', () => {
  // The tests share one service and one folder, because creating a database takes longer than the tests.
  const dataDir = newDataDir()
  let service: Service
  beforeAll(async () => {
    service = await start({ MIDMONTH_DATA_DIR: dataDir })
  })

  test('requests and background tasks recover after PostgreSQL is killed', async () => {
    const socketDir = /psql -h (\S+)/.exec(service.stdout)?.[1] ?? ''
    // Killed in the middle of a task: a runner that cannot report the result of its job ends.
    const lock = new pg.Client({ host: socketDir, user: 'midmonth_owner', database: 'midmonth' }).on(
      'error',
      () => undefined,
    )
    await lock.connect()
    await lock.query('begin; lock table withdrawal_intents in access exclusive mode')
    await tamper({ socketDir }, `select graphile_worker.add_job('expire-intents')`)
    await vi.waitFor(async () => expect(await tamper({ socketDir }, waiting)).not.toEqual([]), { timeout: 45_000 })
    killPostmaster(dataDir)

    const statuses = new Set<number>()
    await vi.waitFor(
      async () => {
        const { status } = await get(service)
        statuses.add(status)
        expect(status).toBe(200)
      },
      { timeout: 15_000 },
    )
    expect([...statuses].every(status => status === 200 || status === 503)).toBe(true)

    // A connection from before may have served the request, so the server is not necessarily back.
    const addProbe = () => tamper({ socketDir }, `select graphile_worker.add_job('expire-intents', job_key => 'probe')`)
    await vi.waitFor(addProbe, { timeout: 15_000 })
    await vi.waitFor(
      async () => {
        const [left] = await tamper({ socketDir }, `select key from graphile_worker.jobs where key = 'probe'`)
        expect(left).toBeUndefined()
      },
      { timeout: 15_000 },
    )
    await expect.poll(service.log).toContain('restarting the worker runner')
  })

  test('a Ctrl-C that arrives from both the terminal and npm still stops cleanly and leaves no process', async () => {
    service.child.kill('SIGINT')
    service.child.kill('SIGINT')
    setTimeout(() => service.child.kill('SIGINT'), 5)
    const { code, stderr } = await service.ended
    expect(code).toBe(0)
    expect(stderr.match(/"msg":"stopping"/g)).toHaveLength(1)
    expect(processesNaming(dataDir)).toEqual([])
  })

  test('whenever PostgreSQL is killed during a start, the service comes up or exits with code 1', {
    timeout: 120_000,
  }, async () => {
    const outcomes: string[] = []
    const momentsMs = extent({ short: [0, 12], long: [0, 4, 8, 12, 24] })
    for (const afterMs of momentsMs) {
      const script = new URL('../../cli/midmonth.ts', import.meta.url).pathname
      const child = spawn(process.execPath, [script, 'start'], {
        env: { ...baseEnvironment, MIDMONTH_DATA_DIR: dataDir, PORT: '0', MIDMONTH_DRAIN_SECONDS: '0' },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const ended = once(child, 'close')
      let stderr = ''
      child.stdout.resume()
      child.stderr.setEncoding('utf8').on('data', text => {
        stderr += text
      })
      await vi.waitFor(() => expect(stderr).toContain('Server listening'), { timeout: 45_000, interval: 1 })
      setTimeout(() => killPostmaster(dataDir), afterMs)
      const address = /Server listening at (http:[^"]+)"/.exec(stderr)?.[1]
      const works = async () => {
        const answer = (await (await fetch(`${address}/readyz`)).json()) as { status?: string }
        expect(answer.status).toBe('ok')
      }
      const outcome = await Promise.race([
        ended.then(() => `ended with ${child.exitCode}`),
        // The kill may come before or after the first probe.
        vi
          .waitFor(() => expect(stderr).toMatch(/PostgreSQL is back/), { timeout: 45_000 })
          .then(async () => {
            await vi.waitFor(works, { timeout: 45_000 })
            return 'serves'
          }),
      ])
      expect(outcome, stderr).toMatch(/^(serves|ended with 1)$/)
      if (outcome !== 'serves') expect(stderr).toMatch(/^midmonth: \S/m)
      outcomes.push(outcome)
      child.kill('SIGTERM')
      await ended
    }
    expect(outcomes).toHaveLength(momentsMs.length)
  })
})

// A shell stands in for npm: it starts the service and is killed as soon as the service is up.
async function killedNpm({ DATABASE_URL }: { DATABASE_URL: string }): Promise<number> {
  const script = new URL('../../cli/midmonth.ts', import.meta.url).pathname
  const shell = spawn('sh', ['-c', '"$@" & echo "pid $!"; wait', 'sh', process.execPath, script, 'start'], {
    env: { ...baseEnvironment, DATABASE_URL, PORT: '0', npm_lifecycle_event: 'start' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  shell.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  await vi.waitFor(() => expect(stdout).toContain('Press Ctrl-C to stop.'), { timeout: 45_000 })
  shell.kill('SIGKILL')
  return Number(/pid (\d+)/.exec(stdout)?.[1])
}

function killPostmaster(dataDir: string): void {
  const postmaster = processesNaming(`${dataDir}/postgres`).find(({ args }) => /^ *\d+ \S*\/postgres -D/.test(args))
  if (postmaster !== undefined) process.kill(postmaster.pid, 'SIGKILL')
}

async function healthAddress({ log }: { log(): string }): Promise<string> {
  const pattern = /Server listening at (http:[^"]+)"/
  await vi.waitFor(() => expect(log()).toMatch(pattern), { timeout: 45_000 })
  return pattern.exec(log())?.[1] ?? ''
}

const sleeping = `select 1 from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()`
const waiting = `select 1 from pg_locks where relation = 'withdrawal_intents'::regclass and not granted`

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Whether a process has an unlinked file of this folder open. */
function isReceiving(pid: number, folder: string): boolean {
  return readdirSync(`/proc/${pid}/fd`).some(fd => {
    try {
      const file = readlinkSync(`/proc/${pid}/fd/${fd}`)
      return file.startsWith(folder) && file.endsWith(' (deleted)')
    } catch {
      // The file has been closed in the meantime.
      return false
    }
  })
}

// The API key's last use is recorded once the headers have been read, before the body.
async function hasArrived(database: Awaited<ReturnType<typeof newDatabase>>): Promise<boolean> {
  return (await tamper(database, 'select 1 from api_keys where last_used_at is not null')).length > 0
}

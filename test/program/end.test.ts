import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import { baseEnvironment, get, newDatabase, newDataDir, processesNaming, start, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })
afterAll(tidyUp)

test('a Ctrl-C that arrives twice, from the terminal and from npm, still stops cleanly and leaves nothing', async () => {
  const dataDir = newDataDir()
  const service = await start({ OPENWAGE_DATA_DIR: dataDir })
  service.child.kill('SIGINT')
  service.child.kill('SIGINT')
  setTimeout(() => service.child.kill('SIGINT'), 5)
  const { code, stderr } = await service.ended
  expect(code).toBe(0)
  expect(stderr.match(/"msg":"stopping"/g)).toHaveLength(1)
  expect(processesNaming(dataDir)).toEqual([])
})

// Of these one waits for nine seconds, the others meanwhile.
test.concurrent('a service that npm has started ends when npm is killed', async () => {
  const database = await newDatabase()
  const pid = await killedNpm(database)
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 10_000 })
})

test.concurrent('a request that is running when the service is told to stop is answered, and no new one is taken', async () => {
  const database = await newDatabase()
  const service = await start(database)
  const body = JSON.stringify(JSON.parse(/-d '(.*)'/.exec(service.curl)?.[1] ?? ''))
  // A connection that stays open must not hold up the end either.
  const agent = new Agent({ keepAlive: true })
  const running = request(`${service.address}/v1/pay/withdrawals/intent`, {
    agent,
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json', 'content-length': body.length },
  })
  running.write(body.slice(0, 10))
  await vi.waitFor(async () => expect(await hasArrived(database)).toBe(true))
  service.child.kill('SIGTERM')
  await vi.waitFor(async () => await expect(get(service)).rejects.toThrow('fetch failed'))
  running.end(body.slice(10))
  const [response] = await once(running, 'response')
  expect(response.statusCode).toBe(201)
  response.resume()
  const endedAfterMs = performance.now()
  expect((await service.ended).code).toBe(0)
  // Not by the ten seconds after which the end is forced.
  expect(performance.now() - endedAfterMs).toBeLessThan(9_500)
  agent.destroy()
})

test.concurrent('a request that does not end holds the end up for ten seconds at most', async () => {
  const database = await newDatabase()
  const service = await start(database)
  const hanging = request(`${service.address}/v1/pay/withdrawals/intent`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json', 'content-length': 100 },
  })
  const cutOff = once(hanging, 'error')
  hanging.write('{')
  await vi.waitFor(async () => expect(await hasArrived(database)).toBe(true))
  const { code, stderr } = await service.stop()
  expect(code).toBe(1)
  expect(stderr).toContain('still not stopped after 9 s')
  await cutOff
})

test('a start whose output nobody reads ends by itself, without a stack trace', async () => {
  const { DATABASE_URL } = await newDatabase()
  const script = new URL('../../cli/openwage.ts', import.meta.url).pathname
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
  expect(stderr).toContain('nobody reads standard output')
  expect(stderr).not.toContain('\n    at ')
})

test('PostgreSQL may be killed under the running service: requests and background steps come back', async () => {
  const dataDir = newDataDir()
  const service = await start({ OPENWAGE_DATA_DIR: dataDir })
  const socketDir = /psql -h (\S+)/.exec(service.stdout)?.[1] ?? ''
  // In the middle of a step: a worker that cannot say what became of its job gives up altogether.
  const lock = new pg.Client({ host: socketDir, user: 'openwage_owner', database: 'openwage' }).on(
    'error',
    () => undefined,
  )
  await lock.connect()
  await lock.query('begin; lock table withdrawal_intents in access exclusive mode')
  await tamper({ socketDir }, `select graphile_worker.add_job('expire-intents')`)
  await vi.waitFor(async () => expect(await tamper({ socketDir }, waiting)).not.toEqual([]), { timeout: 10_000 })
  const postmaster = processesNaming(`${dataDir}/postgres`).find(({ args }) => /^ *\d+ \S*\/postgres -D/.test(args))
  process.kill(postmaster?.pid ?? 0, 'SIGKILL')

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

  await tamper({ socketDir }, `select graphile_worker.add_job('expire-intents', job_key => 'probe')`)
  await vi.waitFor(
    async () => {
      const [left] = await tamper({ socketDir }, `select key from graphile_worker.jobs where key = 'probe'`)
      expect(left).toBeUndefined()
    },
    { timeout: 15_000 },
  )
  const { code, stderr } = await service.stop()
  expect(code).toBe(0)
  expect(stderr).toContain('the worker is started again')
})

// A shell in npm's place: it starts the service, and is killed as soon as that runs.
async function killedNpm({ DATABASE_URL }: { DATABASE_URL: string }): Promise<number> {
  const script = new URL('../../cli/openwage.ts', import.meta.url).pathname
  const shell = spawn('sh', ['-c', '"$@" & echo "pid $!"; wait', 'sh', process.execPath, script, 'start'], {
    env: { ...baseEnvironment, DATABASE_URL, PORT: '0', npm_lifecycle_event: 'start' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let stdout = ''
  shell.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  await vi.waitFor(() => expect(stdout).toContain('Ctrl-C stops it.'), { timeout: 15_000 })
  shell.kill('SIGKILL')
  return Number(/pid (\d+)/.exec(stdout)?.[1])
}

const waiting = `select 1 from pg_locks where relation = 'withdrawal_intents'::regclass and not granted`

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

// The use of a key is noted while the head of the request is read, before its body.
async function hasArrived(database: Awaited<ReturnType<typeof newDatabase>>): Promise<boolean> {
  return (await tamper(database, 'select 1 from api_keys where last_used_at is not null')).length > 0
}

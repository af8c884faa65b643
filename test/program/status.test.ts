import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { Readable, Writable } from 'node:stream'
import pg from 'pg'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { run } from '../../cli/run.ts'
import { baseEnvironment, type Environment, launch, newDatabase, tamper, tidyUp } from './program.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(async () => {
  closeTerminals()
  await tidyUp()
})

/** A terminal that keeps what is on it. */
class FakeScreen extends Writable {
  readonly isTTY = true
  columns = 80
  rows = 24
  #written = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#written += chunk.toString('utf8')
    done()
  }

  resize(size: { columns: number; rows: number }): void {
    Object.assign(this, size)
    this.emit('resize')
  }

  /** The lines since the cursor last was at the top. */
  lines(): string[] {
    return (this.#written.split('\x1b[H').at(-1) ?? '').split('\r\n').map(line => line.replace(/\x1b\[[KJ]/g, ''))
  }

  /** What is below the screen after the command has given it back. */
  after(): string {
    return this.#written.split('\x1b[?1049l')[1] ?? ''
  }
}

function watchHere(settings: Environment) {
  const stdout = new FakeScreen()
  const env = { ...baseEnvironment, ...settings }
  const streams = { env, stdin: Readable.from([]), stdout, stderr: new Writable() }
  const ended = run(['status', '--watch', '1'], streams)
  return { stdout, ended, says: (text: RegExp) => expect.poll(() => stdout.lines().join('\n')).toMatch(text) }
}

test('a watched status fits its window, and shows that the database is gone and is back', async () => {
  const database = await newDatabase()
  const [, name = ''] = /\/(program_\w+)/.exec(database.DATABASE_URL) ?? []
  const elsewhere = { DATABASE_URL: database.DATABASE_URL.replace(name, 'postgres') }
  await tamper(database, `insert into worker_heartbeats values ('a', 'node', 1, now(), now() - interval '1 hour')`)
  const { stdout, ended, says } = watchHere(database)
  await says(/^midmonth status every 1 s[\s\S]*^! No worker is running/m)
  expect(stdout.lines().join('\n')).toMatch(/^ {2}.*--worker$/m)
  for (const size of [
    { columns: 80, rows: 24 },
    { columns: 30, rows: 8 },
  ]) {
    stdout.resize(size)
    expect(stdout.lines().length).toBeLessThanOrEqual(size.rows)
    for (const line of stdout.lines()) expect(line.length, line).toBeLessThanOrEqual(size.columns)
  }
  expect(stdout.lines().at(-1)).toMatch(/^… \d+ more lines$/)
  stdout.resize({ columns: 120, rows: 40 })

  const admit = (admitted: boolean) => tamper(elsewhere, `alter database ${name} allow_connections ${admitted}`)
  await admit(false)
  await tamper(elsewhere, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  await says(/^! Cannot use the database .*not currently accepting connections\n\nIt could last be read at 20\S+Z\.$/m)
  await admit(true)
  await says(/^! No worker is running/m)
  stdout.emit('close')
  expect(await ended).toBe(1)
  expect(stdout.after()).toMatch(/^mode +sandbox$[\s\S]*^! No worker is running[^\n]*--worker\n$/m)
})

test('a watched status ends with Ctrl-C and the code of the last status', async () => {
  const terminal = inTerminal(['status', '--watch'], { ...(await newDatabase()), TERM: 'xterm' })
  await terminal.says('No worker is running')
  terminal.pressCtrlC()
  expect(await terminal.ended).toBe(1)
  expect(terminal.screen()).toMatch(/\x1b\[\?1049l[\s\S]*! No worker is running/)
})

test('a watched status ends with a signal while the database hangs', async () => {
  const database = await startFreezable((await newDatabase()).DATABASE_URL)
  const child = launch(['status', '--watch', '1', '--json'], { DATABASE_URL: database.url })
  const ended = once(child, 'exit')
  await once(child.stdout ?? new Readable(), 'data')
  await database.freeze()
  const signalledAt = Date.now()
  child.kill('SIGTERM')
  expect(await ended).toEqual([1, null])
  expect(Date.now() - signalledAt).toBeLessThan(8_000)
})

/** A way to a database on which, once frozen, no byte passes and no connection closes. */
async function startFreezable(url: string): Promise<{ url: string; freeze(): Promise<void> }> {
  const { host, port, user, password, database } = new pg.Client(url)
  let isFrozen = false
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const sockets = new Set<net.Socket>()
  const server = net.createServer({ allowHalfOpen: true }, socket => {
    const onward = host.startsWith('/') ? net.connect(`${host}/.s.PGSQL.${port}`) : net.connect(port, host)
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from)
      from.on('error', () => undefined).on('end', () => isFrozen || to.end())
      from.on('data', bytes => {
        if (!isFrozen) to.write(bytes)
        else if (from === socket) resolve()
      })
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const secret = typeof password === 'string' ? `:${encodeURIComponent(password)}` : ''
  return {
    url: `postgres://${user}${secret}@127.0.0.1:${(server.address() as AddressInfo).port}/${database}`,
    async freeze() {
      isFrozen = true
      // The next reading waits for its reply.
      await asked
    },
  }
}

test('a watched status is one line of JSON each time in a pipe, and ends when its reader does', async () => {
  const child = launch(['status', '--watch', '1', '--json'], await newDatabase())
  const [chunk] = await once(child.stdout ?? new Readable(), 'data')
  expect(JSON.parse(String(chunk))).toMatchObject({ state: 'needsAttention', workers: [] })
  expect(String(chunk)).toMatch(/^\{.*\}\n$/)
  child.stdout?.destroy()
  const [code] = await once(child, 'exit')
  expect(code).toBe(1)
})

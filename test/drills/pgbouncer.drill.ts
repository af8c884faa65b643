import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { asUser, serverUser } from '@midmonth/embedded-postgres'
import type { RequestRecord } from '../crash/clients.ts'
import { keepRunning, runCommand } from '../crash/program.ts'
import { randomOf } from '../crash/random.ts'
import { startReceiver } from '../crash/receiver.ts'
import { findingsInWords, settle, startClients } from '../crash/scene.ts'
import { freePort } from '../servers/free-port.ts'
import { createPostgres } from '../servers/postgres.ts'
import { Skipped } from './drill.ts'

export const title = 'PgBouncer works in session mode, and is refused at start in transaction mode'

const loadMs = 15_000
const program = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)

export async function run(say: (line: string) => void): Promise<void> {
  if (program === undefined) throw new Skipped('the drill needs Debian’s package pgbouncer')
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-pgbouncer-'))
  const logs = path.join(folder, 'logs')
  mkdirSync(logs)
  chmodSync(folder, 0o755)
  const postgres = await createPostgres({ folder, logs })
  const poolers: ChildProcess[] = []
  const pooler = async (mode: string, ignored: string) => {
    const { address, child } = await startPgBouncer(folder, { socket: postgres.url, mode, ignored })
    poolers.push(child)
    return address
  }
  try {
    await postgres.start()
    await runCommand(postgres.url, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
    await workThrough(await pooler('session', ''), { logs, say })
    for (const ignored of ['', 'lock_timeout, statement_timeout, idle_in_transaction_session_timeout']) {
      const address = await pooler('transaction', ignored)
      const said = await runCommand(address, ['ledger', 'verify']).then(
        () => 'it ran',
        error => String(error.stderr).trim(),
      )
      say(`transaction mode, ignoring ${ignored || 'nothing'}: ${said}`)
      if (!said.includes('a pooler shares sessions between connections')) throw new Error('Not refused')
    }
  } finally {
    for (const each of poolers) each.kill('SIGKILL')
    await postgres.stop()
  }
  rmSync(folder, { recursive: true })
}

/** Runs the load of the crash test through a pooler for a while, without kills, and audits it. */
async function workThrough(
  address: string,
  { logs, say }: { logs: string; say: (line: string) => void },
): Promise<void> {
  const processes = (['API', 'worker'] as const).map(role => keepRunning(role, role, { databaseUrl: address, logs }))
  const receiver = await startReceiver(randomOf(1, 'receiver'))
  const log: RequestRecord[] = []
  const scene = { databaseUrl: address, logs, seed: 1, processes, receiver, log }
  try {
    const { end } = await startClients(scene)
    await sleep(loadMs)
    await end()
    const findings = await settle(scene)
    const { counts, first } = findingsInWords(findings)
    const serverErrors = log.reduce((sum, record) => sum + record.serverErrors + record.unavailable, 0)
    const words = counts.map(([kind, count]) => `${kind} ${count}`).join(', ')
    say(`session mode: ${log.length} requests, ${serverErrors} server errors: ${words}`)
    if (first.length + serverErrors > 0) throw new Error(`Session mode does not work: ${first.join('; ')}`)
  } finally {
    await Promise.all(processes.map(each => each.stop()))
    await receiver.stop()
  }
}

async function startPgBouncer(
  folder: string,
  { socket, mode, ignored }: { socket: string; mode: string; ignored: string },
): Promise<{ address: string; child: ChildProcess }> {
  const port = await freePort()
  const user = serverUser(path.join(folder, 'pgbouncer'))
  const [users, config] = ['users.txt', `${port}.ini`].map(name => path.join(folder, name))
  if (program === undefined || users === undefined || config === undefined) throw new Error('unreachable')
  writeFileSync(users, '"midmonth_app" ""\n')
  const lines = [
    '[databases]',
    `midmonth = host=${new URL(socket).searchParams.get('host')}`,
    '[pgbouncer]',
    ...['listen_addr = 127.0.0.1', `listen_port = ${port}`, 'unix_socket_dir =', `pool_mode = ${mode}`],
    ...['auth_type = trust', `auth_file = ${users}`, 'max_client_conn = 200', 'default_pool_size = 60'],
    `ignore_startup_parameters = ${ignored || 'extra_float_digits'}`,
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  for (const file of [users, config]) chownSync(file, user.uid, user.gid)
  const output = openSync(path.join(folder, 'logs', `pgbouncer-${port}.log`), 'a')
  const child = spawn(program, [config], { ...asUser(user), stdio: ['ignore', output, output] })
  const address = `postgres://midmonth_app@127.0.0.1:${port}/midmonth`
  return { address, child }
}

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { keySettings } from '../harness/installation-key.ts'

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const command = path.join(checkout, 'cli/midmonth.ts')
const laterClock = fileURLToPath(new URL('later.ts', import.meta.url))
// A start without PostgreSQL fails; like a service manager, the test retries after a moment.
const restartMs = 250
// Like a service manager, the test kills a process that does not stop in time.
const stopMsMax = 5_000

export type Role = 'API' | 'worker'

/** One Midmonth process under a minimal service manager, which restarts it whenever it exits. */
export type Process = {
  readonly name: string
  readonly role: Role
  /** The address of the API; undefined while it is not listening. */
  address(): string | undefined
  isReady(): boolean
  isAlive(): boolean
  /** Sends SIGKILL. The process is restarted after `downMs`. */
  kill(downMs: number): void
  /** The number of unexpected exits of a ready process. Must stay 0, whatever happens to PostgreSQL. */
  unexpectedExits(): number
  stop(): Promise<void>
}

/** @param aheadMs how far the clock of the process is set ahead */
export function keepRunning(
  name: string,
  role: Role,
  {
    databaseUrl,
    logs,
    settings = {},
    aheadMs = 0,
  }: { databaseUrl: string; logs: string; settings?: Record<string, string>; aheadMs?: number },
): Process {
  const log = createWriteStream(path.join(logs, `${name}.log`), { flags: 'a' })
  const preload = aheadMs === 0 ? [] : ['--import', laterClock]
  const args = [...preload, command, 'start', role === 'API' ? '--api' : '--worker']
  const env = { ...environmentOf(databaseUrl), ...settings, CRASH_TEST_AHEAD_MS: String(aheadMs) }
  let child: ChildProcess | undefined
  let output = ''
  let downMs = restartMs
  let wasKilled = false
  let unexpectedExits = 0
  let isStopping = false
  const isReady = () => output.includes('Press Ctrl-C to stop.')

  const supervision = (async () => {
    while (!isStopping) {
      output = ''
      wasKilled = false
      downMs = restartMs
      const current = spawn(process.execPath, args, { cwd: checkout, env, stdio: ['ignore', 'pipe', 'pipe'] })
      child = current
      current.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
      current.stderr.pipe(log, { end: false })
      const [code, signal] = await once(current, 'exit')
      log.write(`-- ${new Date().toISOString()} ${name} ended: ${signal ?? `exit code ${code}`}\n`)
      if (isReady() && !wasKilled && !isStopping) unexpectedExits++
      output = ''
      if (!isStopping) await sleep(downMs)
    }
  })()

  return {
    name,
    role,
    address: () => /API +(http:\S+)/.exec(output)?.[1],
    isReady,
    isAlive: () => child?.exitCode === null && child.signalCode === null,
    kill(ms) {
      wasKilled = true
      downMs = ms
      child?.kill('SIGKILL')
    },
    unexpectedExits: () => unexpectedExits,
    async stop() {
      isStopping = true
      child?.kill('SIGTERM')
      const killTimer = setTimeout(() => child?.kill('SIGKILL'), stopMsMax)
      await supervision
      clearTimeout(killTimer)
    },
  }
}

/** Runs an operator command. @returns its output */
export async function runCommand(
  databaseUrl: string,
  args: string[],
  settings: Record<string, string> = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [command, ...args], {
    cwd: checkout,
    env: { ...environmentOf(databaseUrl), ...settings },
  })
  return stdout
}

function environmentOf(databaseUrl: string) {
  return {
    PATH: process.env.PATH,
    DATABASE_URL: databaseUrl,
    ...keySettings,
    PORT: '0',
    MIDMONTH_HEALTH_PORT: '0',
    MIDMONTH_MODE: 'sandbox',
    MIDMONTH_DATABASE_CONNECTIONS: '10',
    MIDMONTH_LOG_LEVEL: 'warn',
  }
}

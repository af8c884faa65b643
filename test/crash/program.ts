import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const checkout = fileURLToPath(new URL('../..', import.meta.url))
const command = path.join(checkout, 'cli/openwage.ts')
const laterClock = fileURLToPath(new URL('later.ts', import.meta.url))
// A start that finds no PostgreSQL ends with an error; a service manager would try again after a moment, too.
const startAgainMs = 250
// A service manager kills what does not go when it is told to.
const stopMsMax = 5_000

export type Role = 'API' | 'worker'

/** One process of the program, under a service manager of the simplest kind: when it has gone, it is started again. */
export type Process = {
  readonly name: string
  readonly role: Role
  /** Where the API listens; undefined while it does not. */
  address(): string | undefined
  isReady(): boolean
  isAlive(): boolean
  /** Kill -9; it comes back by itself after `downMs`. */
  kill(downMs: number): void
  /** How often it has gone by itself after it had been ready: never, whatever happens to PostgreSQL. */
  leftByItself(): number
  stop(): Promise<void>
}

/** @param aheadMs how far its clock runs ahead of ours */
export function keepRunning(
  name: string,
  role: Role,
  { databaseUrl, logs, aheadMs = 0 }: { databaseUrl: string; logs: string; aheadMs?: number },
): Process {
  const log = createWriteStream(path.join(logs, `${name}.log`), { flags: 'a' })
  const preload = aheadMs === 0 ? [] : ['--import', laterClock]
  const args = [...preload, command, 'start', role === 'API' ? '--api' : '--worker']
  const env = { ...environmentOf(databaseUrl), CRASH_TEST_AHEAD_MS: String(aheadMs) }
  let child: ChildProcess | undefined
  let said = ''
  let downMs = startAgainMs
  let wasKilled = false
  let left = 0
  let isStopping = false
  const isReady = () => said.includes('Press Ctrl-C to stop.')

  const life = (async () => {
    while (!isStopping) {
      said = ''
      wasKilled = false
      downMs = startAgainMs
      const current = spawn(process.execPath, args, { cwd: checkout, env, stdio: ['ignore', 'pipe', 'pipe'] })
      child = current
      current.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text
      })
      current.stderr.pipe(log, { end: false })
      const [code, signal] = await once(current, 'exit')
      log.write(`-- ${new Date().toISOString()} ${name} ended: ${signal ?? `exit code ${code}`}\n`)
      if (isReady() && !wasKilled && !isStopping) left++
      said = ''
      if (!isStopping) await sleep(downMs)
    }
  })()

  return {
    name,
    role,
    address: () => /API +(http:\S+)/.exec(said)?.[1],
    isReady,
    isAlive: () => child?.exitCode === null && child.signalCode === null,
    kill(ms) {
      wasKilled = true
      downMs = ms
      child?.kill('SIGKILL')
    },
    leftByItself: () => left,
    async stop() {
      isStopping = true
      child?.kill('SIGTERM')
      const patience = setTimeout(() => child?.kill('SIGKILL'), stopMsMax)
      await life
      clearTimeout(patience)
    },
  }
}

/** Runs a command of the operator to its end. @returns what it printed */
export async function operate(
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
    PORT: '0',
    OPENWAGE_HEALTH_PORT: '0',
    OPENWAGE_MODE: 'sandbox',
    OPENWAGE_DATABASE_CONNECTIONS: '10',
    OPENWAGE_LOG_LEVEL: 'warn',
  }
}

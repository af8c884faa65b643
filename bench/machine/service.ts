import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { atEnd } from './cleanup.ts'

export type Side = 'product' | 'typical'

/** A running service, known by its address and its process only. */
export type Service = { side: Side; address: string; pid: number; startMs: number; stop(): Promise<void> }

// A start takes a second; a machine that does something else besides may take ten.
const startMsMax = 30_000
const stopMsMax = 10_000

export type Where = {
  databaseUrl: string
  logs: string
  productDir: string
  typicalConnections: number
  /** Whether the product does its background work too, in the same process, as `npm start` does. */
  hasWorker?: boolean
  /** Settings of the product, besides those of this program's environment. */
  settings?: Record<string, string>
}

/** Starts a service on a migrated database, and waits until it says that it is ready. */
export async function startService(side: Side, where: Where): Promise<Service> {
  const startedAt = performance.now()
  const child = side === 'product' ? spawnProduct(where) : spawnTypical(where)
  const stop = () => stopChild(child)
  atEnd(stop)
  const log = path.join(where.logs, `${side}.log`)
  const address = await Promise.race([
    addressOf(child),
    once(child, 'exit').then(() => undefined),
    sleep(startMsMax, undefined, { ref: false }),
  ])
  if (address === undefined || child.pid === undefined)
    throw new Error(`The ${side} service does not start: see ${log}`)
  while ((await fetch(`${address}/readyz`)).status !== 200) {
    if (performance.now() - startedAt > startMsMax) throw new Error(`The ${side} service is never ready: see ${log}`)
    await sleep(5)
  }
  return { side, address, pid: child.pid, startMs: performance.now() - startedAt, stop }
}

/** Runs a command of the product's to its end. @returns what it printed; @throws when its exit code is not 0 */
export async function operate(args: string[], { databaseUrl, productDir }: Pick<Where, 'databaseUrl' | 'productDir'>) {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(productDir, 'cli/midmonth.ts'), ...args], {
    cwd: productDir,
    env: productEnvironment(databaseUrl),
  })
  return stdout
}

// As an operator starts it, by the words of `npm start`, and logging as in production: to a file.
function spawnProduct({ databaseUrl, logs, productDir, hasWorker = false, settings = {} }: Where): ChildProcess {
  const { scripts } = JSON.parse(readFileSync(path.join(productDir, 'package.json'), 'utf8'))
  return withLog(path.join(logs, 'product.log'), log =>
    spawn('/bin/sh', ['-c', hasWorker ? scripts.start : `${scripts.start} --api`], {
      cwd: productDir,
      env: { ...productEnvironment(databaseUrl), ...settings },
      stdio: ['ignore', 'pipe', log],
    }),
  )
}

function spawnTypical({ databaseUrl, logs, typicalConnections }: Where): ChildProcess {
  return withLog(path.join(logs, 'typical.log'), log =>
    spawn(process.execPath, [fileURLToPath(new URL('../typical/server.ts', import.meta.url))], {
      env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, DATABASE_CONNECTIONS: String(typicalConnections) },
      // It stops when its standard input ends, which it does when we are killed.
      stdio: ['pipe', 'pipe', log],
    }),
  )
}

function productEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const settings = Object.entries(process.env).filter(([name]) => name.startsWith('MIDMONTH_'))
  return {
    ...Object.fromEntries(settings),
    // The project's own Node comes first, as it does for npm.
    PATH: [path.dirname(process.execPath), process.env.PATH].join(path.delimiter),
    DATABASE_URL: databaseUrl,
    // The databases of one run are measured by several checkouts.
    MIDMONTH_INSTALLATION_KEY: Buffer.alloc(32, 'bench').toString('base64'),
    PORT: '0',
    MIDMONTH_MODE: 'sandbox',
    // With it, the product stops when its parent is killed.
    npm_lifecycle_event: 'bench',
  }
}

function withLog(file: string, start: (log: number) => ChildProcess): ChildProcess {
  const log = openSync(file, 'a')
  const child = start(log)
  closeSync(log)
  return child
}

async function addressOf({ stdout }: ChildProcess): Promise<string | undefined> {
  let said = ''
  for await (const text of stdout?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    said += text
    const address = /API +(http:\S+)/.exec(said)?.[1]
    if (address === undefined) continue
    stdout?.resume()
    return address
  }
  return undefined
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const patience = setTimeout(() => child.kill('SIGKILL'), stopMsMax)
  await exited
  clearTimeout(patience)
}

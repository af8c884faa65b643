import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { atEnd } from './cleanup.ts'
import { installationKey } from './installation-key.ts'

export type Side = 'product' | 'typical'

/** A running service, known only by its address and process. */
export type Service = { side: Side; address: string; pid: number; startMs: number; stop(): Promise<void> }

// A start takes a second, on a busy machine ten.
const startMsMax = 30_000
const stopMsMax = 10_000

export type Where = {
  databaseUrl: string
  logs: string
  productDir: string
  typicalConnections: number
  /** Whether the product also runs its worker in the same process, as `npm start` does. */
  hasWorker?: boolean
  /** Settings of the product, in addition to those in the environment. */
  settings?: Record<string, string>
}

/** Starts a service on a migrated database, and waits until it reports ready. */
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
  if (address === undefined || child.pid === undefined) throw new Error(`The ${side} service did not start; see ${log}`)
  while ((await fetch(`${address}/readyz`)).status !== 200) {
    if (performance.now() - startedAt > startMsMax)
      throw new Error(`The ${side} service did not become ready; see ${log}`)
    await sleep(5)
  }
  return { side, address, pid: child.pid, startMs: performance.now() - startedAt, stop }
}

/** Runs a command of the product. @returns its output; @throws when its exit code is not 0 */
export async function operate(args: string[], { databaseUrl, productDir }: Pick<Where, 'databaseUrl' | 'productDir'>) {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(productDir, 'cli/midmonth.ts'), ...args], {
    cwd: productDir,
    env: productEnvironment(databaseUrl),
  })
  return stdout
}

// Starts the product as an operator does, with the command of `npm start`, and logs to a file as in production.
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
      // The typical service stops when its standard input ends, which happens when this process is killed.
      stdio: ['pipe', 'pipe', log],
    }),
  )
}

function productEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const settings = Object.entries(process.env).filter(([name]) => name.startsWith('MIDMONTH_'))
  return {
    ...Object.fromEntries(settings),
    // The project's own Node comes first, as with npm.
    PATH: [path.dirname(process.execPath), process.env.PATH].join(path.delimiter),
    DATABASE_URL: databaseUrl,
    MIDMONTH_INSTALLATION_KEY: installationKey,
    PORT: '0',
    MIDMONTH_MODE: 'sandbox',
    // Makes the product stop when its parent is killed.
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
  let output = ''
  for await (const text of stdout?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
    output += text
    const address = /API +(http:\S+)/.exec(output)?.[1]
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

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, cpSync, openSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { installationKey } from '../../../bench/machine/installation-key.ts'

const checkout = path.join(import.meta.dirname, '../../..')
const startMsMax = 60_000

/** A version of the program, in a folder. */
export type Version = { folder: string; env: Record<string, string>; logs: string }

/** Copies this version of the program. The checkout may change while the drill runs. */
export function copyVersion(folder: string, { env, logs }: Omit<Version, 'folder'>): Version {
  for (const name of ['src', 'cli', 'packages', 'migrations', 'package.json'])
    cpSync(path.join(checkout, name), path.join(folder, name), { recursive: true, verbatimSymlinks: true })
  symlinkSync(path.join(checkout, 'node_modules'), path.join(folder, 'node_modules'))
  return { folder, env, logs }
}

/** Makes the next version of the program: this one, with a migration of each kind. */
export function makeNextVersion(folder: string, of: Omit<Version, 'folder'>): Version {
  const version = copyVersion(folder, of)
  cpSync(path.join(import.meta.dirname, 'migrations'), path.join(folder, 'migrations'), { recursive: true })
  return version
}

function spawnMidmonth({ folder, env }: Version, args: string[], stderr: 'pipe' | number): ChildProcess {
  return spawn(process.execPath, [path.join(folder, 'cli/midmonth.ts'), ...args], {
    cwd: folder,
    env: {
      ...{
        PATH: process.env.PATH,
        PORT: '0',
        MIDMONTH_HEALTH_PORT: '0',
        MIDMONTH_DOCS: 'off',
        MIDMONTH_MODE: 'sandbox',
      },
      ...{ MIDMONTH_INSTALLATION_KEY: installationKey, MIDMONTH_DRAIN_SECONDS: '1' },
      // Makes the program stop when the drill is killed.
      npm_lifecycle_event: 'drill',
      ...env,
    },
    stdio: ['ignore', 'pipe', stderr],
  })
}

export type Running = { address: string; stop(): Promise<void> }

/** Starts the API or the worker, and waits until it runs. */
export async function start(version: Version, role: '--api' | '--worker'): Promise<Running> {
  const log = openSync(path.join(version.logs, `${path.basename(version.folder)}${role}.log`), 'a')
  const child = spawnMidmonth(version, ['start', role], log)
  closeSync(log)
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    output += more
  })
  for (const until = performance.now() + startMsMax; !output.includes('Press Ctrl-C to stop.'); ) {
    if (child.exitCode !== null || performance.now() > until)
      throw new Error(`start ${role} of ${version.folder} failed; see ${version.logs}`)
    await pause(50)
  }
  return { address: /API +(http:\S+)/.exec(output)?.[1] ?? '', stop }
}

export type Outcome = { code: number | null; stdout: string; stderr: string }

/** Runs a command. */
export function midmonth(version: Version, args: string[]): { child: ChildProcess; ended: Promise<Outcome> } {
  const child = spawnMidmonth(version, args, 'pipe')
  const ended = (async () => {
    const [stdout, stderr] = await Promise.all([
      text(child.stdout ?? process.stdin),
      text(child.stderr ?? process.stdin),
      child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined,
    ])
    return { code: child.exitCode, stdout, stderr }
  })()
  return { child, ended }
}

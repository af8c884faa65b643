import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../machine/cleanup.ts'
import { cpuMsOfEndedChildren } from '../machine/processes.ts'

// The other two scripts load load.lua by name, from this folder.
const scripts = fileURLToPath(new URL('.', import.meta.url))
// wrk counts a slower response as an error.
const responseSecondsMax = 10

/** The requests to send; load.lua explains the numbers. */
export type Load = {
  requests: 'intent' | 'intent-key' | 'complete' | 'complete-key' | 'mixed' | 'read' | 'write'
  keysFile: string
  firstMember: number
  membersPerKey: number
  firstIntent: number
}

/** What the load generator measured. */
export type LoadFigures = {
  requests: number
  perSecond: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** Responses with status 400 and above. */
  refused: number
  /** Connections that failed or broke, and requests without a response. */
  broken: number
  /** CPU time of the load generator. */
  cpuMs: number
}

/** The number of responses by status. */
export type Statuses = { ok: number; tooMany: number; busy: number; other: number }

type Size = { connections: number; seconds: number }

let runs = 0

/** Sends a load for some seconds in a closed loop: each connection sends its next request once it has a response. */
export async function sendLoad(address: string, load: Load, size: Size): Promise<LoadFigures> {
  return (await send('load.lua', address, load, size)).loadFigures
}

/** Like `sendLoad`, and counts responses by status. */
export async function sendAndCount(
  address: string,
  load: Load,
  size: Size,
): Promise<LoadFigures & { statuses: Statuses }> {
  const { loadFigures, output } = await send('overload.lua', address, load, size)
  return { ...loadFigures, statuses: JSON.parse(lineOf(output, 'STATUSES')) }
}

/** Starts to send a load of a few hundred requests a second, however fast the service is. */
export function startSteadyLoad(address: string, load: Load, size: Size): { stop(): Promise<LoadFigures> } {
  const stopping = new AbortController()
  const sent = send('steady.lua', address, load, { ...size, signal: stopping.signal })
  // stop() reports the failure; an unhandled rejection would end the run without cleaning up.
  sent.catch(() => undefined)
  return {
    async stop() {
      stopping.abort()
      return (await sent).loadFigures
    },
  }
}

async function send(
  script: string,
  address: string,
  load: Load,
  { connections, seconds, signal }: Size & { signal?: AbortSignal },
): Promise<{ loadFigures: LoadFigures; output: string }> {
  const threads = connections <= 8 ? 1 : 2
  const cpuBefore = cpuMsOfEndedChildren()
  const wrk = spawn(
    'wrk',
    [
      ...['-t', threads, '-c', connections, '-d', `${seconds}s`, '--timeout', `${responseSecondsMax}s`, '-s', script],
      ...[address, '--', load.requests, load.keysFile, load.firstMember, load.membersPerKey, load.firstIntent],
      ...[threads, `bench-${process.pid}-${Date.now()}-${++runs}`],
    ].map(String),
    { cwd: scripts, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  atEnd(() => void wrk.kill('SIGKILL'))
  // On SIGINT wrk ends at once and prints its results.
  signal?.addEventListener('abort', () => wrk.kill('SIGINT'))
  let output = ''
  wrk.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  await once(wrk, 'close')
  return { loadFigures: { ...readResult(output), cpuMs: cpuMsOfEndedChildren() - cpuBefore }, output }
}

function readResult(output: string): Omit<LoadFigures, 'cpuMs'> {
  const loadFigures: Record<string, number> = JSON.parse(lineOf(output, 'RESULT'))
  const of = (name: string) => loadFigures[name] ?? 0
  return {
    requests: of('requests'),
    perSecond: of('requests') / (of('durationUs') / 1e6),
    p50Ms: of('p50Us') / 1_000,
    p99Ms: of('p99Us') / 1_000,
    maxMs: of('maxUs') / 1_000,
    refused: of('status'),
    broken: of('connect') + of('read') + of('write') + of('timeout'),
  }
}

function lineOf(output: string, name: string): string {
  const line = new RegExp(`^${name} (.*)$`, 'm').exec(output)?.[1]
  if (line === undefined) throw new Error(`wrk ended without a result: ${output}`)
  return line
}

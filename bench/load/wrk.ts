import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../machine/cleanup.ts'
import { cpuMsOfEndedChildren } from '../machine/processes.ts'

// One of the two scripts loads the other by its name.
const scripts = fileURLToPath(new URL('.', import.meta.url))
// Longer than anything that is still an answer; what takes longer is counted as an error.
const answerSecondsMax = 10

/** What is to be sent; the numbers are explained in load.lua. */
export type Load = {
  requests: 'intent' | 'intent-key' | 'complete' | 'complete-key' | 'mixed'
  keysFile: string
  firstMember: number
  membersPerKey: number
  firstIntent: number
}

/** What a load generator saw. */
export type LoadFigures = {
  requests: number
  perSecond: number
  p50Ms: number
  p99Ms: number
  maxMs: number
  /** Answers of 400 and above. */
  refused: number
  /** Connections that could not be made or broke, and answers that never came. */
  broken: number
  /** CPU time of the load generator. */
  cpuMs: number
}

/** How many answers had which status. */
export type Statuses = { ok: number; tooMany: number; busy: number; other: number }

type Size = { connections: number; seconds: number }

let runs = 0

/** Sends a load for some seconds in a closed loop: each connection sends its next request when it has its answer. */
export async function sendLoad(address: string, load: Load, size: Size): Promise<LoadFigures> {
  return (await send('load.lua', address, load, size)).seen
}

/** As `sendLoad`, and counts answers by status. */
export async function sendAndCount(
  address: string,
  load: Load,
  size: Size,
): Promise<LoadFigures & { statuses: Statuses }> {
  const { seen, said } = await send('overload.lua', address, load, size)
  return { ...seen, statuses: JSON.parse(lineOf(said, 'STATUSES')) }
}

/** Begins to send a load of some hundred requests a second, whatever the service could do. */
export function startSteadyLoad(address: string, load: Load, size: Size): { stop(): Promise<LoadFigures> } {
  const stopping = new AbortController()
  const sent = send('steady.lua', address, load, { ...size, signal: stopping.signal })
  // stop() reports it; an unhandled rejection would end the run without cleaning up.
  sent.catch(() => undefined)
  return {
    async stop() {
      stopping.abort()
      return (await sent).seen
    },
  }
}

async function send(
  script: string,
  address: string,
  load: Load,
  { connections, seconds, signal }: Size & { signal?: AbortSignal },
): Promise<{ seen: LoadFigures; said: string }> {
  const threads = connections <= 8 ? 1 : 2
  const cpuBefore = cpuMsOfEndedChildren()
  const wrk = spawn(
    'wrk',
    [
      ...['-t', threads, '-c', connections, '-d', `${seconds}s`, '--timeout', `${answerSecondsMax}s`, '-s', script],
      ...[address, '--', load.requests, load.keysFile, load.firstMember, load.membersPerKey, load.firstIntent],
      ...[threads, `bench-${process.pid}-${Date.now()}-${++runs}`],
    ].map(String),
    { cwd: scripts, stdio: ['ignore', 'pipe', 'inherit'] },
  )
  atEnd(() => void wrk.kill('SIGKILL'))
  // It ends at once then, and tells what it has seen.
  signal?.addEventListener('abort', () => wrk.kill('SIGINT'))
  let said = ''
  wrk.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await once(wrk, 'close')
  return { seen: { ...readResult(said), cpuMs: cpuMsOfEndedChildren() - cpuBefore }, said }
}

function readResult(said: string): Omit<LoadFigures, 'cpuMs'> {
  const seen: Record<string, number> = JSON.parse(lineOf(said, 'RESULT'))
  const of = (name: string) => seen[name] ?? 0
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

function lineOf(said: string, name: string): string {
  const line = new RegExp(`^${name} (.*)$`, 'm').exec(said)?.[1]
  if (line === undefined) throw new Error(`wrk ended without a result: ${said}`)
  return line
}

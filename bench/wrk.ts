import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { atEnd } from './ending.ts'
import { cpuMsOfEndedChildren } from './processes.ts'

const script = fileURLToPath(new URL('load.lua', import.meta.url))
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
export type Seen = {
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

let runs = 0

/** Sends a load for some seconds in a closed loop: each connection sends its next request when it has its answer. */
export async function sendLoad(
  address: string,
  load: Load,
  { connections, seconds }: { connections: number; seconds: number },
): Promise<Seen> {
  const threads = connections <= 8 ? 1 : 2
  const cpuBefore = cpuMsOfEndedChildren()
  const wrk = spawn(
    'wrk',
    [
      ...['-t', threads, '-c', connections, '-d', `${seconds}s`, '--timeout', `${answerSecondsMax}s`, '-s', script],
      ...[address, '--', load.requests, load.keysFile, load.firstMember, load.membersPerKey, load.firstIntent],
      ...[threads, `bench-${process.pid}-${Date.now()}-${++runs}`],
    ].map(String),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  atEnd(() => void wrk.kill('SIGKILL'))
  let said = ''
  wrk.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await once(wrk, 'close')
  const result = /^RESULT (.*)$/m.exec(said)?.[1]
  if (result === undefined) throw new Error(`wrk ended without a result: ${said}`)
  const seen: Record<string, number> = JSON.parse(result)
  const of = (name: string) => seen[name] ?? 0
  return {
    requests: of('requests'),
    perSecond: of('requests') / (of('durationUs') / 1e6),
    p50Ms: of('p50Us') / 1_000,
    p99Ms: of('p99Us') / 1_000,
    maxMs: of('maxUs') / 1_000,
    refused: of('status'),
    broken: of('connect') + of('read') + of('write') + of('timeout'),
    cpuMs: cpuMsOfEndedChildren() - cpuBefore,
  }
}

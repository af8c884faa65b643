import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LogDestination } from './log-destination.ts'

let folder: string
let reader: number
let destination: LogDestination
let timesGone: number

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-log-'))
  const pipe = path.join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK)
  timesGone = 0
  destination = new LogDestination(openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK), {
    lossLine: count => `lost ${count}\n`,
    onReaderGone: () => timesGone++,
  })
})
afterEach(() => rmSync(folder, { recursive: true }))

test('lines dropped because of a stalled reader are counted, and the rest arrive whole and in order', () => {
  const count = 40_000
  for (let n = 0; n < count; n++) destination.write(`line ${n} ${'x'.repeat(40)}\n`)
  const lines = readAll()
  const [report] = lines.filter(line => line.startsWith('lost '))
  const arrived = lines.filter(line => line.startsWith('line ')).map(line => /^line (\d+) x{40}$/.exec(line)?.[1])
  expect(arrived).toEqual(arrived.map((_, n) => String(n)))
  expect(arrived.length).toBeGreaterThan(10_000)
  expect(report).toBe(`lost ${count - arrived.length}`)
  expect(lines).toHaveLength(arrived.length + 1)

  destination.write('after\n')
  expect(readAll()).toEqual(['after'])
  closeSync(reader)
})

test('a stalled reader delays the exit by half a second at most', () => {
  for (let n = 0; n < 10_000; n++) destination.write(`line ${n} ${'x'.repeat(40)}\n`)
  const startedAtMs = performance.now()
  destination.flushBeforeExit()
  // Without the limit, the exit would wait forever; the rest of the time is for a busy machine.
  expect(performance.now() - startedAtMs).toBeLessThan(10_000)
  closeSync(reader)
})

test('a closed pipe is reported once, and later lines are dropped without an error', () => {
  closeSync(reader)
  for (let n = 0; n < 3; n++) {
    destination.write(`line ${n}\n`)
    destination.flush()
  }
  destination.flushBeforeExit()
  expect(timesGone).toBe(1)
})

/** Reads and flushes until the pipe is empty. */
function readAll(): string[] {
  const chunks: Buffer[] = []
  for (;;) {
    destination.flush()
    const chunk = Buffer.alloc(65_536)
    try {
      chunks.push(chunk.subarray(0, readSync(reader, chunk)))
    } catch {
      // EAGAIN: the pipe is empty.
      return Buffer.concat(chunks).toString().split('\n').slice(0, -1)
    }
  }
}

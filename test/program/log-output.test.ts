import { execFileSync, spawn } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { baseEnvironment, get, newDatabase, type Service, start, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

// Principle: losing log lines is better than losing the service.

test('a service whose log pipe is closed stops cleanly', async () => {
  const service = await start(await newDatabase({ hasDemo: true }))
  service.child.stderr?.destroy()
  // The log line of this request hits the closed pipe. The response may arrive first, or the connection may be refused.
  await get(service).catch(() => undefined)
  expect((await service.ended).code).toBe(0)
})

test('a service piped into `head -5` stops cleanly at the next line', async () => {
  const { DATABASE_URL } = await newDatabase({ hasDemo: true })
  const script = new URL('../../cli/midmonth.ts', import.meta.url).pathname
  // Reports the service's own exit code, which a pipeline would hide.
  const pipeline = '{ "$@" 2>&1; echo "code $?" >&3; } | head -5'
  const shell = spawn('sh', ['-c', pipeline, 'sh', process.execPath, script, 'start'], {
    env: { ...baseEnvironment, DATABASE_URL, PORT: '0' },
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  })
  let [lines, code] = ['', '']
  shell.stdout?.on('data', text => {
    lines += text
  })
  shell.stdio[3]?.on('data', text => {
    code += text
  })
  await vi.waitFor(() => expect(lines.split('\n')).toHaveLength(6), { timeout: 45_000 })
  const [address] = /http:\/\/[\d.:]+/.exec(lines) ?? []
  // Each request logs a line. Either the response arrives first, or the connection is refused.
  await vi.waitFor(
    async () => {
      await fetch(`${address}/livez`).catch(() => undefined)
      expect(code).toBe('code 0\n')
    },
    { timeout: 45_000 },
  )
})

if (existsSync('/dev/full')) {
  test('a service that cannot write its log still answers requests and stops on SIGTERM', async () => {
    const fd = openSync('/dev/full', 'w')
    const service = await start(await newDatabase({ hasDemo: true }), [], { stderr: fd })
    closeSync(fd)
    await expectAnswers(service)
    expect((await service.stop()).code).toBe(0)
  })
}

// Only root can mount. The /dev/full test covers the essentials without it.
if (process.platform === 'linux' && process.getuid?.() === 0) {
  test('log lines lost to a full disk are counted and reported once there is room', async () => {
    const disk = mkdtempSync(path.join(tmpdir(), 'midmonth-full-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk])
    try {
      const filler = path.join(disk, 'filler')
      const logFile = path.join(disk, 'log')
      const fd = openSync(logFile, 'a')
      // Leaves less than a page free, so that the log breaks off in the middle of a line.
      writeFileSync(filler, Buffer.alloc(56 * 1_024))
      const service = await start(await newDatabase({ hasDemo: true }), [], { stderr: fd })
      closeSync(fd)
      await vi.waitFor(
        async () => {
          await expectAnswers(service)
          expect(linesOf(logFile).some(line => !isJson(line))).toBe(true)
        },
        { timeout: 45_000 },
      )
      await expectAnswers(service)

      rmSync(filler)
      await vi.waitFor(() => expect(linesOf(logFile).some(line => line.includes('log lines were lost'))).toBe(true), {
        timeout: 45_000,
      })
      expect((await service.stop()).code).toBe(0)
      const lines = linesOf(logFile)
      const report = lines.findIndex(line => line.includes('log lines were lost'))
      expect(JSON.parse(lines[report] ?? '')).toMatchObject({ level: 'warn', lines: expect.any(Number) })
      expect(JSON.parse(lines[report] ?? '').lines).toBeGreaterThan(0)
      // Only the line cut off by the full disk is incomplete.
      expect(lines.filter(line => !isJson(line))).toHaveLength(1)
      expect(lines.at(-1)).toContain('"msg":"stopping"')
    } finally {
      await tidyUp()
      // Lazy unmount: a failed start may keep the log open a moment longer.
      execFileSync('umount', ['-l', disk])
      rmSync(disk, { recursive: true })
    }
  })
}

// Logs more than two pages.
async function expectAnswers(service: Service): Promise<void> {
  for (let count = 0; count < 50; count++) expect((await get(service)).status).toBe(200)
}

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter(line => line !== '')
}

function isJson(line: string): boolean {
  try {
    return JSON.parse(line) !== undefined
  } catch {
    return false
  }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { baseEnvironment, newDatabase, processesNaming, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
const copies: string[] = []
afterEach(async () => {
  for (const copy of copies.splice(0)) rmSync(copy, { recursive: true })
  await tidyUp()
})

const launcher = new URL('../../cli/launch.mjs', import.meta.url).pathname

// Before 22.15, Node cannot replace its own process, so the launcher remains as the parent.
const nodes = [
  ['a Node with execve', []],
  ['an older Node', ['--import', 'data:text/javascript,delete process.execve']],
] as const

test('without dependencies, the launcher says to run npm install', async () => {
  const checkout = newCheckout({ isInstalled: false })
  expect(await run([path.join(checkout, 'cli/launch.mjs'), 'start']).outcome).toEqual({
    code: 1,
    stdout: '',
    stderr: `midmonth: Dependencies are not installed: run npm install in ${checkout} first\n`,
  })
})

test('on an old Node, without the bundled Node, the launcher says what to run', async () => {
  const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{node:'20.1.0'}})`
  const checkout = newCheckout({ isInstalled: true })
  const { code, stderr } = await run(['--import', old, path.join(checkout, 'cli/launch.mjs'), 'start']).outcome
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /^midmonth: Node 24 or later is required.*: run npm install --include=optional, which brings one\n$/,
  )
})

test('a link to the launcher starts the program of its checkout', async () => {
  const link = path.join(newCheckout({ isInstalled: false }), 'midmonth')
  symlinkSync(launcher, link)
  expect((await run([link, '--version']).outcome).code).toBe(0)
})

test.each(nodes)('%s forwards arguments, output and exit code', async (_, options) => {
  expect(await run([...options, launcher, '--version']).outcome).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    stderr: '',
  })
  const { code, stderr } = await run([...options, launcher, 'key', 'create', 'a b', '--nonsense']).outcome
  expect(code).toBe(2)
  expect(stderr).toContain("unknown option '--nonsense'")
})

test.each(nodes)('%s forwards a signal and leaves no process', async (_, options) => {
  const { DATABASE_URL } = await newDatabase({ hasDemo: true })
  const { child, said, outcome } = run([...options, launcher, 'start'], { DATABASE_URL, PORT: '0' })
  await vi.waitFor(() => expect(said()).toContain('Press Ctrl-C to stop.'), { timeout: 45_000 })
  child.kill('SIGTERM')
  const { code, stderr } = await outcome
  expect(code).toBe(0)
  expect(stderr).toContain('"signal":"SIGTERM"')
  expect(processesNaming(`${launcher} start`)).toEqual([])
})

test('a program whose launcher is killed also ends, and frees its port', async () => {
  const [, [, options]] = nodes
  const { DATABASE_URL } = await newDatabase({ hasDemo: true })
  const { child, said } = run([...options, launcher, 'start'], { DATABASE_URL, PORT: '0' })
  await vi.waitFor(() => expect(said()).toContain('Press Ctrl-C to stop.'), { timeout: 45_000 })
  const address = /API +(\S+)/.exec(said())?.[1] ?? ''
  expect((await fetch(`${address}/livez`)).status).toBe(200)
  child.kill('SIGKILL')
  await vi.waitFor(async () => await expect(fetch(`${address}/livez`)).rejects.toThrow(), { timeout: 45_000 })
})

/** A folder that contains only the launcher. */
function newCheckout({ isInstalled }: { isInstalled: boolean }): string {
  const checkout = mkdtempSync(path.join(tmpdir(), 'midmonth-launch-'))
  copies.push(checkout)
  mkdirSync(path.join(checkout, 'cli'))
  copyFileSync(launcher, path.join(checkout, 'cli/launch.mjs'))
  if (isInstalled) mkdirSync(path.join(checkout, 'node_modules/commander'), { recursive: true })
  return checkout
}

function run(args: string[], settings = {}) {
  const child = spawn(process.execPath, args, { env: { ...baseEnvironment, ...settings } })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  const outcome = once(child, 'close').then(() => ({ code: child.exitCode, stdout, stderr }))
  return { child, said: () => stdout, outcome }
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { names } from './names.fixture.ts'
import { beginRestore } from './restore.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'midmonth-restore-'))
  chmodSync(dataDir, 0o755)
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const restoresIn = () => readdirSync(dataDir).filter(name => name.startsWith('.restore-'))

test('a restore is made inside the data folder, which may be a mount, and removes what a killed one has left', async () => {
  const [abandoned, running] = [join(dataDir, '.restore-abandoned'), join(dataDir, '.restore-running')]
  for (const path of [abandoned, running]) mkdirSync(path)
  const anHourAgo = new Date(Date.now() - 3_600_000)
  utimesSync(abandoned, anHourAgo, anHourAgo)
  const restoring = await beginRestore({ names, dataDir, checkoutDir: dataDir, fill: async () => undefined })
  expect(dirname(restoring.dataDir)).toBe(restoring.configuredDir)
  expect(existsSync(abandoned)).toBe(false)
  expect(existsSync(running)).toBe(true)
  restoring.place()
  expect(restoresIn()).toEqual(['.restore-running'])
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a restore that is stopped by %s removes what it has decrypted',
  async name => {
    const code = `
    const { beginRestore } = await import(${JSON.stringify(join(import.meta.dirname, 'restore.ts'))})
    const options = ${JSON.stringify({ names, dataDir, checkoutDir: dataDir })}
    setInterval(() => undefined, 1_000)
    await beginRestore({ ...options, fill: async () => { console.log('filling'); await new Promise(() => undefined) } })`
    const child: ChildProcess = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout ?? child, 'data')
    expect(restoresIn()).toHaveLength(1)
    child.kill(name)
    await once(child, 'exit')
    expect(restoresIn()).toEqual([])
  },
)

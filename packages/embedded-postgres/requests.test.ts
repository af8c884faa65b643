import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Cluster } from './cluster.ts'
import { names } from './names.fixture.ts'
import { requestSettings, serveRequests, type WalCommands } from './requests.ts'
import { serverUser } from './server-user.ts'

let cluster: Cluster
let victim: string
beforeEach(() => {
  const dataDir = mkdtempSync(join(tmpdir(), 'midmonth-requests-'))
  chmodSync(dataDir, 0o755)
  const pgdata = join(dataDir, 'postgres-18')
  cluster = {
    ...{
      names,
      dataDir,
      pgdata,
      usersFifo: join(dataDir, 'users'),
      requestsDir: join(dataDir, 'postgres-18.requests'),
    },
    ...{ socketDir: dataDir, logFile: join(dataDir, 'log'), binaries: dataDir, user: serverUser(pgdata) },
  }
  mkdirSync(cluster.requestsDir)
  victim = join(dataDir, 'victim')
  writeFileSync(victim, 'precious', { mode: 0o600 })
})
afterEach(() => rmSync(cluster.dataDir, { recursive: true, force: true }))

/** Requests a segment as PostgreSQL's user would, and waits for the result. */
async function request(kind: 'archive' | 'restore', commands: WalCommands, result: string): Promise<string> {
  const path = join(cluster.requestsDir, `${kind}-000000010000000000000001`)
  symlinkSync(victim, `${path}.file`)
  symlinkSync(victim, `${path}.wanted`)
  const serving = serveRequests(cluster, commands)
  await vi.waitFor(() => expect(existsSync(`${path}.${result}`)).toBe(true), { timeout: 10_000, interval: 10 })
  await serving.stop()
  return path
}

test('a link that PostgreSQL’s user puts in its folder of requests is never followed', async () => {
  const before = statSync(victim)
  symlinkSync(victim, join(cluster.requestsDir, 'request.sh'))
  requestSettings(cluster, { restores: true, archives: true })
  const failing = async () => {
    throw new Error('The folder is full')
  }
  const failed = await request('archive', { archive: failing }, 'failed')
  expect(readFileSync(`${failed}.failed`, 'utf8')).toContain('The folder is full')
  const write: WalCommands['restore'] = async (_, file) => {
    await file.writeFile('a segment')
    return true
  }
  const restored = await request('restore', { restore: write }, 'done')
  expect(readFileSync(`${restored}.file`, 'utf8')).toBe('a segment')
  expect(readFileSync(victim, 'utf8')).toBe('precious')
  expect(statSync(victim)).toMatchObject({ uid: before.uid, gid: before.gid, mode: before.mode })
})

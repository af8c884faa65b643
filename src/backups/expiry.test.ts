import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { expireBackups } from './expiry.ts'

const systemIdentifier = '7000000000000000001'
const dayMs = 86_400_000
const now = new Date()

let dir: string
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'midmonth-expiry-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function addBackup(
  id: string,
  { daysAgo, segment, server = systemIdentifier }: { daysAgo: number; segment: string; server?: string },
): void {
  const folder = path.join(dir, server, 'base', id)
  mkdirSync(folder, { recursive: true })
  const at = new Date(now.getTime() - daysAgo * dayMs).toISOString()
  const description = {
    ...{ format: 'midmonth backup 1', id, startedAt: at, endedAt: at, postgresMajor: 18, systemIdentifier: server },
    ...{ firstSegment: segment, lastSegment: segment, bytes: 1, sha256: '', recipients: [] },
  }
  writeFileSync(path.join(folder, 'backup.json'), JSON.stringify(description))
}

function addSegment(segment: string, { server = systemIdentifier } = {}): void {
  const folder = path.join(dir, server, 'wal', segment.slice(0, 16))
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, `${segment}-${'0'.repeat(64)}.gz.age`), '')
}

function segmentsLeft(): string[] {
  return readdirSync(path.join(dir, systemIdentifier, 'wal'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.age'))
    .map(name => path.basename(name).slice(0, 24))
    .toSorted()
}

const expire = (backupDays: number) => expireBackups({ dir }, { systemIdentifier, backupDays, now })

test('the WAL of a kept backup stays although an older backup that is kept begins further in the WAL', async () => {
  addBackup('a', { daysAgo: 9, segment: '000000010000000000000004' })
  addBackup('b', { daysAgo: 6, segment: '000000010000000000000020' })
  // After a restore to before b.
  addBackup('c', { daysAgo: 1, segment: '000000020000000000000010' })
  const needed = ['000000010000000000000020', '000000020000000000000010', '000000020000000000000011']
  for (const segment of ['000000010000000000000004', ...needed]) addSegment(segment)
  expect(await expire(8)).toMatchObject({ backups: ['a'], segments: 1 })
  expect(segmentsLeft()).toEqual(needed)
})

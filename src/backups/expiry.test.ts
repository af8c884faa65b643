import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readSettings } from '../config.ts'
import { expireBackups } from './expiry.ts'
import { takeBackup } from './take.ts'

const systemIdentifier = '7000000000000000001'
const recipient = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'
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

function segmentsLeft({ server = systemIdentifier } = {}): string[] {
  return readdirSync(path.join(dir, server, 'wal'), { recursive: true, encoding: 'utf8' })
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
  expect(await expire(9)).toMatchObject({ backups: ['a'], segments: 1 })
  expect(segmentsLeft()).toEqual(needed)
})

test('a backup is gone by the day in the receipts, and of another server also the last; the last of this server stays', async () => {
  const other = '7000000000000000002'
  // The next daily run would be at 35.5 days.
  for (const server of [systemIdentifier, other])
    addBackup('old', { daysAgo: 34.5, segment: '000000010000000000000004', server })
  addBackup('young', { daysAgo: 33.5, segment: '000000010000000000000005', server: other })
  for (const segment of ['000000010000000000000004', '000000010000000000000005']) addSegment(segment, { server: other })
  expect(await expire(35)).toMatchObject({ backups: ['old'], segments: 1 })
  expect(segmentsLeft({ server: other })).toEqual(['000000010000000000000005'])
  expect(existsSync(path.join(dir, systemIdentifier, 'base/old'))).toBe(true)
  expect(await expire(30)).toMatchObject({ backups: ['young'] })
})

test('backups expire although the next one cannot be taken, so that a full disk gets space', async () => {
  addBackup('old', { daysAgo: 40, segment: '000000010000000000000004' })
  addBackup('last', { daysAgo: 1, segment: '000000010000000000000005' })
  const pgdata = path.join(dir, 'pgdata')
  mkdirSync(path.join(pgdata, 'global'), { recursive: true })
  const identifier = Buffer.alloc(8)
  identifier.writeBigUInt64LE(BigInt(systemIdentifier))
  writeFileSync(path.join(pgdata, 'global/pg_control'), identifier)
  const settings = readSettings({ MIDMONTH_BACKUP_DIR: dir, MIDMONTH_BACKUP_RECIPIENTS: recipient })
  const superuserConnection = { host: dir, port: 5432, user: '', database: '', ssl: false } as const
  await expect(
    takeBackup(settings, {
      embedded: { superuserConnection, pgdata },
      now: () => now,
      onStep: () => undefined,
      record: async () => undefined,
    }),
  ).rejects.toThrow('ENOENT')
  expect(readdirSync(path.join(dir, systemIdentifier, 'base'))).toEqual(['last'])
})

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { euroRail } from '../../../test/banks/file-bank.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { midmonthHere } from '../../../test/program/program.ts'
import { receiveBankFiles } from '../channels/files/receive.ts'
import { FolderDelivery } from '../delivery/folder.ts'
import { openSealedFile } from '../delivery/sealed-file.ts'
import { findArchiveKey, removeOldArchiveKeys, sealFor } from './archive-keys.ts'

let harness: Harness
let folder: string
beforeAll(async () => {
  harness = await startHarness()
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-archive-'))
})
afterAll(async () => {
  await harness.stop()
  await rm(folder, { recursive: true })
})
let count = 0
let file: string
beforeEach(() => {
  count += 1
  file = path.join(folder, `${count}.sealed`)
})

const of = { rail: 'sepa', day: '2026-03-10' }
const text = 'GB29NWBK60161331926819 Mia Schulz '
const seal = async (chunks: string[], day = of.day) =>
  await writeFile(
    file,
    await buffer(
      Readable.from(sealFor(harness.db, { ...of, day })(Readable.from(chunks.map(each => Buffer.from(each))))),
    ),
  )
const open = async () => (await buffer(openSealedFile(file, day => findArchiveKey(harness.db, day)))).toString()

test('a sealed file has the bytes of the original, and shows none of them', async () => {
  for (const chunks of [[], ['one'], ['one', 'two', text.repeat(10_000)]]) {
    await seal(chunks)
    expect(await open()).toBe(chunks.join(''))
    expect((await readFile(file)).includes('Schulz')).toBe(false)
  }
})

test('a file that was cut, changed or put together from others is refused', async () => {
  await seal(['one', 'two', 'three'])
  const whole = await readFile(file)
  const head = whole.indexOf('\n') + 1
  const length = whole.readUInt32BE(head)
  const next = head + 4 + length
  const tampered = {
    'cut within a chunk': whole.subarray(0, -1),
    'cut between chunks': whole.subarray(0, next),
    'cut within a length': whole.subarray(0, next + 2),
    'without chunks': whole.subarray(0, head),
    'without its first chunk': Buffer.concat([whole.subarray(0, head), whole.subarray(next)]),
    changed: Buffer.concat([whole.subarray(0, -1), Buffer.of((whole.at(-1) ?? 0) ^ 1)]),
    'of another day': Buffer.from(whole.toString('latin1').replace('2026-03-10', '2026-03-11'), 'latin1'),
    'not sealed': Buffer.from('<Document/>'),
  }
  await seal(['other'], '2026-03-11')
  for (const [what, bytes] of Object.entries(tampered)) {
    await writeFile(file, bytes)
    await expect(open(), what).rejects.toThrow(/was cut off|cannot be opened|is not a file that Midmonth has sealed/)
  }
})

test('the worker archives bank files sealed, an operator opens them by a recorded command, and not after their retention', async () => {
  const delivery = await FolderDelivery.open({ folder, quietMs: 0 })
  const rail = euroRail({ delivery: async () => delivery })
  harness.clock.set(new Date('2026-03-10T10:00:00.000Z'))
  for (const [name, bytes] of [
    ['read.txt', `head;M-1\nend\n`],
    ['broken.txt', text],
  ] as const)
    await writeFile(path.join(folder, 'inbox', name), bytes)
  await receiveBankFiles({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now }, rail)
  const archived = path.join(folder, 'archive', '2026-03-10', 'read.txt.sealed')
  const rejected = path.join(folder, 'rejected', 'broken.txt.sealed')
  const openByCommand = (at: string) => midmonthHere(['payouts', 'open-archived', at], harness.settings)
  expect(await openByCommand(archived)).toMatchObject({ code: 0, stdout: 'head;M-1\nend\n' })
  expect(await openByCommand(rejected)).toMatchObject({ code: 0, stdout: text })
  expect((await readFile(rejected)).includes('Schulz')).toBe(false)
  const { rows } = await harness.pool.query(
    `select details from installation_audit_log where action = 'bank_file.read'`,
  )
  expect(rows).toEqual([{ details: { day: '2026-03-10' } }, { details: { day: '2026-03-10' } }])

  const before = new Date('2026-03-11T10:00:00.000Z')
  expect(await removeOldArchiveKeys(harness.db, { before, countMax: 100, scope: undefined })).toBeGreaterThan(0)
  const refused = await openByCommand(archived)
  expect(refused.code).toBe(1)
  expect(refused.stderr).toContain('cannot be opened: the database has no key of euro-files for 2026-03-10')
})

test('a database restored from a backup opens the files that arrived in the 40 days after it', async () => {
  const inbox = await mkdtemp(path.join(folder, 'restored-'))
  const delivery = await FolderDelivery.open({ folder: inbox, quietMs: 0 })
  const rail = euroRail({ delivery: async () => delivery })
  const receive = () =>
    receiveBankFiles({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now }, rail)
  harness.clock.set(new Date('2026-05-01T10:00:00.000Z'))
  await receive()
  const backup = await harness.db.selectFrom('bankArchiveKeys').selectAll().execute()
  harness.clock.set(new Date('2026-06-10T10:00:00.000Z'))
  await writeFile(path.join(inbox, 'inbox', 'late.txt'), `head;M-2\nend\n`)
  await receive()
  await harness.db.deleteFrom('bankArchiveKeys').execute()
  await harness.db.insertInto('bankArchiveKeys').values(backup).execute()
  file = path.join(inbox, 'archive', '2026-06-10', 'late.txt.sealed')
  expect(await open()).toBe('head;M-2\nend\n')
})

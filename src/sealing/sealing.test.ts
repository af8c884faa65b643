import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { readSettings } from '../config.ts'
import { sql } from '../database/database.ts'
import { erasureSettingsOf } from '../erasure/journal.ts'
import { ensureInstallationKey, openSealer } from './installation-keys.ts'
import { keySourceOf } from './key-providers.ts'
import { createKeys, Sealer } from './sealer.ts'

const of = { kind: 'webhook-secret', owner: 'par_1' } as const
/** Keys for all purposes; the one that seals has this number. */
const keysOf = (number: number) => createKeys().map(key => (key.purpose === 'sealing' ? { ...key, number } : key))

test('a sealed value is opened only as the same kind of field and for the same owner', () => {
  const keys = createKeys()
  const sealed = new Sealer(keys).seal('whsec_1', of)
  const sealer = new Sealer(keys)
  expect(sealer.open(sealed, of).toString()).toBe('whsec_1')
  expect(sealed.includes('whsec_1')).toBe(false)
  for (const other of [
    { ...of, owner: 'par_2' },
    { ...of, kind: 'replay' as const },
  ])
    expect(() => sealer.open(sealed, other)).toThrow(`(${other.kind} of ${other.owner}) cannot be opened`)
})

test('a value is refused if any byte was changed or cut off, or if the key is another one', () => {
  const sealer = new Sealer(createKeys())
  const sealed = sealer.seal('whsec_1', of)
  for (let at = 0; at < sealed.length; at++) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => sealer.open(changed, of), `byte ${at} changed`).toThrow('cannot be opened')
    expect(() => sealer.open(sealed.subarray(0, at), of), `${at} bytes left`).toThrow('cannot be opened')
  }
  expect(() => new Sealer(createKeys()).open(sealed, of)).toThrow('cannot be opened')
})

test('a value names its key: the newest key seals, and values of earlier keys are still opened', () => {
  const [first, second] = [keysOf(1), keysOf(5)]
  const before = new Sealer(first).seal('before', of)
  const sealer = new Sealer([...first, ...second])
  const after = sealer.seal('after', of)
  expect([before[1], after[1]]).toEqual([1, 5])
  expect(sealer.open(before, of).toString()).toBe('before')
  expect(() => new Sealer(first).open(after, of)).toThrow('cannot be opened')
})

test('no two values of any process share a nonce under the same key', () => {
  const keys = createKeys()
  const values = Array.from({ length: 4 }, () => new Sealer(keys)).flatMap(sealer =>
    Array.from({ length: 3_000 }, () => sealer.seal('', of).toString('hex', 0, 30)),
  )
  expect(new Set(values).size).toBe(values.length)
})

let harness: Harness
let folder: string
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-key-'))
  await sql`delete from installation_keys; delete from installation_key_uses`.execute(harness.ownerDb)
  return () => rm(folder, { recursive: true })
})
const sourceAt = (name = 'installation.key') => ({ file: path.join(folder, name) })
const ensure = (source = sourceAt()) => ensureInstallationKey(harness.ownerDb, { source, now: harness.clock.now() })
const open = (source = sourceAt()) => openSealer(harness.db, source)

test('when several processes start on an empty database, one creates the keys and all use them', async () => {
  const source = { file: path.join(folder, 'a folder', 'installation.key') }
  await Promise.all(Array.from({ length: 3 }, () => ensure(source)))
  const [one, other] = [await open(source), await open(source)]
  expect(other.open(one.seal('shared', of), of).toString()).toBe('shared')
  expect((await stat(source.file)).mode & 0o777).toBe(0o600)
  expect((await stat(path.dirname(source.file))).mode & 0o777).toBe(0o700)
  const { rows } = await sql<{ wrapped: Buffer }>`select wrapped from installation_keys`.execute(harness.db)
  expect(rows.map(({ wrapped }) => wrapped.length)).toEqual([61, 61, 61, 61])
})

test('an existing key file is kept', async () => {
  const { file } = sourceAt()
  const text = `${randomBytes(32).toString('base64')}\n`
  await writeFile(file, text, { mode: 0o600 })
  await ensure()
  expect(await readFile(file, 'utf8')).toBe(text)
  await open()
})

test('a database whose key is missing refuses to open, names the key, and creates no new one', async () => {
  await ensure()
  const id = (await sql<{ provider: string }>`select provider from installation_keys`.execute(harness.db)).rows[0]
    ?.provider
  const { file } = sourceAt()
  await rm(file)
  await ensure()
  await expect(open()).rejects.toThrow(
    `needs the installation’s key ${id}, but ${file} does not exist; restore that key`,
  )
  await expect(stat(file)).rejects.toThrow('ENOENT')
})

test('the key of another database is refused, in a file and in the environment', async () => {
  await ensure()
  await writeFile(sourceAt('other').file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 })
  await expect(open(sourceAt('other'))).rejects.toThrow(
    /needs the installation’s key [0-9a-f]{16}, but .*other holds the key/,
  )
  const key = randomBytes(32).toString('base64')
  await expect(openSealer(harness.db, { key })).rejects.toThrow('but MIDMONTH_INSTALLATION_KEY holds the key')
})

test('stored keys that were swapped or changed are refused, and nothing is sealed with the wrong key', async () => {
  await ensure()
  await sql`
    update installation_keys k set wrapped = other.wrapped from installation_keys other
     where k.number + other.number = 3`.execute(harness.ownerDb)
  await expect(open()).rejects.toThrow(/^The stored key [12] of the installation was changed/)
  await sql`
    update installation_keys set wrapped = set_byte(wrapped, 20, get_byte(wrapped, 20) # 1)`.execute(harness.ownerDb)
  await expect(open()).rejects.toThrow('A stored key of the installation was changed, and cannot be opened')
})

test('a key file that is readable by others, truncated or empty is refused with a remedy', async () => {
  await ensure()
  const { file } = sourceAt()
  await chmod(file, 0o640)
  await expect(open()).rejects.toThrow(`${file} can be read by other users; run chmod 600 ${file}`)
  await chmod(file, 0o600)
  const whole = await readFile(file, 'utf8')
  await writeFile(file, whole.slice(0, 20))
  await expect(open()).rejects.toThrow(`${file} must hold 32 bytes in base64; restore the installation’s key`)
  await writeFile(file, '')
  await expect(open()).rejects.toThrow(`${file} must hold one line without blanks`)
  await writeFile(file, whole)
  await open()
})

test('a database moves with its key from the file to the environment', async () => {
  await ensure()
  const key = (await readFile(sourceAt().file, 'utf8')).trim()
  const sealed = (await open()).seal('moved', of)
  expect((await openSealer(harness.db, { key })).open(sealed, of).toString()).toBe('moved')
})

test('opening a database without a key names the command that creates one', async () => {
  await expect(open()).rejects.toThrow('run midmonth migrate')
})

test('if the folder of the key file is not writable, the error names the setting for another path', async () => {
  await writeFile(path.join(folder, 'file'), '')
  await expect(ensure({ file: path.join(folder, 'file', 'installation.key') })).rejects.toThrow(
    /cannot be created \(.+\); set MIDMONTH_INSTALLATION_KEY_FILE/,
  )
})

test('the key is in the environment, in the file of the setting, or beside the data folder', () => {
  const read = (environment: Record<string, string>) => keySourceOf(readSettings(environment), { dataDir: '/srv/data' })
  const key = randomBytes(32).toString('base64')
  expect(read({})).toEqual({ file: '/srv/data-key/installation.key' })
  expect(read({ MIDMONTH_STATE_DIR: '/var/lib/midmonth' })).toEqual({ file: '/var/lib/midmonth/installation.key' })
  expect(read({ MIDMONTH_INSTALLATION_KEY_FILE: '/etc/key' })).toEqual({ file: '/etc/key' })
  expect(read({ MIDMONTH_INSTALLATION_KEY: key })).toEqual({ key })
  expect(() => read({ MIDMONTH_INSTALLATION_KEY: key, MIDMONTH_INSTALLATION_KEY_FILE: '/etc/key' })).toThrow(
    'Set MIDMONTH_INSTALLATION_KEY or MIDMONTH_INSTALLATION_KEY_FILE, not both',
  )
  expect(() => read({ MIDMONTH_INSTALLATION_KEY: key.slice(4) })).toThrow(/MIDMONTH_INSTALLATION_KEY must be like/)
})

test('a state folder is the place of the key and the journal by default only, so a service that sets it can use any key', () => {
  const state = { MIDMONTH_STATE_DIR: '/var/lib/midmonth' }
  const read = (environment: Record<string, string>) => {
    const settings = readSettings(environment)
    const keySource = keySourceOf(settings, { dataDir: '/srv/data' })
    return { keySource, journal: erasureSettingsOf(settings, { keySource, dataDir: '/srv/data' }).journal }
  }
  const key = randomBytes(32).toString('base64')
  const arn = 'arn:aws:kms:eu-west-1:111122223333:key/1'
  for (const [given, source] of [
    [{ MIDMONTH_INSTALLATION_KEY: key }, { key }],
    [{ MIDMONTH_INSTALLATION_KEY_FILE: '/etc/key' }, { file: '/etc/key' }],
    [{ MIDMONTH_AWS_KMS_KEY: arn }, { kms: { arn } }],
    [{ MIDMONTH_VAULT_KEY: 'a/b', MIDMONTH_VAULT_ADDRESS: 'https://vault' }, { vault: { key: 'a/b' } }],
  ] as const)
    expect(read({ ...state, ...given })).toMatchObject({
      ...{ keySource: source, journal: '/var/lib/midmonth/erasures.jsonl' },
    })
  expect(read({ ...state, MIDMONTH_ERASURE_JOURNAL: '/mnt/journal' }).journal).toBe('/mnt/journal')
  expect(read({ MIDMONTH_INSTALLATION_KEY_FILE: '/etc/midmonth/key' }).journal).toBe('/etc/midmonth/erasures.jsonl')
  expect(read({ MIDMONTH_INSTALLATION_KEY: key }).journal).toBe('/srv/data-key/erasures.jsonl')
})

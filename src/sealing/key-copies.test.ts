import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { startKeyService } from '../../test/servers/key-service.ts'
import { startVault, vaultToken } from '../../test/servers/vault.ts'
import { sql } from '../database/database.ts'
import { addKey, ensureInstallationKey, openSealer, wrapKey } from './installation-keys.ts'
import { copyKeys, listCopies, removeCopy } from './key-copies.ts'
import type { KeySource } from './key-providers.ts'
import { localKey, readKeyFile } from './providers/local-key.ts'
import { type Rotating, rotateFingerprints, rotateSealing } from './rotation.ts'
import type { KeyStage } from './sealer.ts'

const of = { kind: 'webhook-secret', owner: 'par_1' } as const

let harness: Harness
let folder: string
let file: KeySource
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-copies-'))
  file = { file: path.join(folder, 'installation.key') }
  await sql`delete from installation_keys; delete from installation_key_uses`.execute(harness.ownerDb)
  await ensureInstallationKey(harness.ownerDb, { source: file, now: harness.clock.now() })
  return () => rm(folder, { recursive: true })
})

const nothing = async (): Promise<void> => undefined
const newKey = () => ({ key: randomBytes(32).toString('base64') })
const copy = (to: KeySource, { from = file, record = nothing } = {}) =>
  copyKeys(harness.ownerDb, { from, to, now: harness.clock.now(), record })
const remove = (id: string, source: KeySource) => removeCopy(harness.ownerDb, { id, source, record: nothing })
const open = (source: KeySource) => openSealer(harness.db, source)

test('after a copy either key opens the database, and after a removal only the other does', async () => {
  const running = await open(file)
  const to = newKey()
  const { from: old, to: id, hasChanged } = await copy(to)
  expect(hasChanged).toBe(true)
  const sealed = running.seal('before', of)
  expect((await open(to)).open(sealed, of).toString()).toBe('before')
  expect((await open(file)).open((await open(to)).seal('after', of), of).toString()).toBe('after')
  expect((await listCopies(harness.db)).map(({ provider }) => provider).sort()).toEqual([old, id].sort())

  expect(await remove(old, to)).toEqual({ hasChanged: true })
  expect((await open(to)).open(sealed, of).toString()).toBe('before')
  await expect(open(file)).rejects.toThrow(`needs the installation’s key ${id}, but`)
  expect(running.open(sealed, of).toString()).toBe('before')
})

test('a repeated copy and a repeated removal change nothing, and the change is recorded once', async () => {
  const to = newKey()
  let recorded = 0
  const record = async () => {
    recorded += 1
  }
  expect(await copy(to, { record })).toMatchObject({ hasChanged: true })
  const { from: old } = await copy(to, { record })
  expect(await copy(file, { from: to, record })).toMatchObject({ hasChanged: false })
  expect(recorded).toBe(1)
  expect(await remove(old, to)).toEqual({ hasChanged: true })
  expect(await remove(old, to)).toEqual({ hasChanged: false })
})

test('a copy that fails before its commit leaves the keys as they were', async () => {
  const to = newKey()
  const record = async () => {
    throw new Error('killed')
  }
  await expect(copy(to, { record })).rejects.toThrow('killed')
  expect(await listCopies(harness.db)).toHaveLength(1)
  await open(file)
})

test('the key in use is never removed, and a key of another database removes nothing', async () => {
  const { to: id } = await copy(newKey())
  const [used] = (await listCopies(harness.db)).filter(({ provider }) => provider !== id)
  await expect(remove(used?.provider ?? '', file)).rejects.toThrow('is the one in use; change the settings')
  await expect(remove(used?.provider ?? '', newKey())).rejects.toThrow('This database needs the installation’s key')
  expect(await listCopies(harness.db)).toHaveLength(2)
})

test('a copy from before a rotation is refused with a remedy, and completed by another copy', async () => {
  const to = newKey()
  const { from: id, to: other } = await copy(to)
  // What a rotation leaves: a new key that only the configured provider has wrapped.
  const second = await ensureSecondKey(id)
  await expect(open(to)).rejects.toThrow(`opens only earlier keys of this installation; use the key ${id}`)
  expect((await listCopies(harness.db)).find(({ provider }) => provider === other)).toMatchObject({
    ...{ numbers: [1, 2, 3, 4], isComplete: false },
  })
  await expect(remove(id, to)).rejects.toThrow('opens only earlier keys')
  await copy(to)
  expect((await open(to)).installationKeys).toEqual((await open(file)).installationKeys)
  expect((await open(to)).installationKeys.at(-1)?.key.equals(second)).toBe(true)
})

test('a copy to a key that does not open what it has wrapped is refused before anything relies on it', async () => {
  const service = await startKeyService(({ path: at }) => ({
    status: 200,
    body: { data: at.includes('encrypt') ? { ciphertext: 'vault:v1:AAAA' } : { plaintext: 'AAAA' } },
  }))
  const vault = { address: service.address, key: 'transit/broken', namespace: '', token: '', tokenFile: '' }
  await expect(copy({ vault })).rejects.toThrow(
    'vault:transit/broken does not open what it has wrapped; nothing was changed',
  )
  expect(await listCopies(harness.db)).toHaveLength(1)
  await service.stop()
})

test('a copy to a file that does not exist creates it, and one that is not a key is refused', async () => {
  const escrow = { file: path.join(folder, 'escrow.key') }
  await copy(escrow)
  await open(escrow)
  await writeFile(path.join(folder, 'text'), 'no key\n', { mode: 0o600 })
  await expect(copy({ file: path.join(folder, 'text') })).rejects.toThrow('must hold')
})

const vaultSource = ({ address }: { address: string }) => ({
  vault: { address, key: 'transit/midmonth', namespace: 'payroll', token: vaultToken, tokenFile: '' },
})

test('a copy that another key of the same id cannot open is replaced, and so are the keys themselves when Vault moves', async () => {
  const [first, second] = await Promise.all([startVault({ keys: ['midmonth'] }), startVault({ keys: ['midmonth'] })])
  try {
    await copy(vaultSource(first))
    expect(await copy(vaultSource(second))).toMatchObject({ hasChanged: true })
    await open(vaultSource(second))
    await expect(open(vaultSource(first))).rejects.toThrow('it is another key of this name')
    const moved = await copy(vaultSource(first), { from: vaultSource(second) })
    expect(moved).toEqual({ from: moved.to, to: 'vault:payroll/transit/midmonth', hasChanged: true })
    await open(vaultSource(first))
    await expect(open(vaultSource(second))).rejects.toThrow('it is another key of this name')
    await expect(copy(vaultSource(first), { from: vaultSource(first) })).rejects.toThrow(
      'so nothing needs to be copied',
    )
  } finally {
    await Promise.all([first.stop(), second.stop()])
  }
})

test('after a rotation of any key, earlier versions of the key in Vault are no longer needed', async () => {
  const vault = await startVault({ keys: ['midmonth'] })
  const source = vaultSource(vault)
  const versions = async () => {
    const { rows } = await sql<{ version: string }>`
      select distinct split_part(convert_from(wrapped, 'UTF8'), ':', 2) as version
        from installation_keys where provider = 'vault:payroll/transit/midmonth'`.execute(harness.db)
    return rows.map(({ version }) => version)
  }
  const rotating: Rotating = {
    ...{ source, now: harness.clock.now(), settleMs: 0, record: nothing, onStep: () => undefined },
    othersInEscrow: true,
  }
  try {
    await copy(source)
    const before = await open(source)
    vault.rotate('midmonth')
    await rotateSealing(harness.ownerDb, { ...rotating, tables: [] })
    expect(await versions()).toEqual(['v2'])
    vault.rotate('midmonth')
    await rotateFingerprints(harness.ownerDb, {
      ...{ ...rotating, rehash: { known: nothing, used: nothing, retired: nothing } },
    })
    expect(await versions()).toEqual(['v3'])
    expect((await open(source)).browserKey).toEqual(before.browserKey)
  } finally {
    await vault.stop()
  }
})

test('the key that a rotation has added is copied before the only key that opens it is removed', async () => {
  const to = newKey()
  const { from: id } = await copy(to)
  await ensureSecondKey(id, 'known')
  await open(to)
  await expect(remove(id, to)).rejects.toThrow('does not open the key that a rotation has added')
  await copy(to)
  expect(await remove(id, to)).toEqual({ hasChanged: true })
})

async function ensureSecondKey(provider: string, stage: KeyStage = 'used'): Promise<Buffer> {
  if (!('file' in file)) throw new Error('The key is not in a file')
  const key = randomBytes(32)
  const wrapped = await wrapKey(localKey(await readKeyFile(file.file), 'the file'), { number: 5, key })
  const added = { number: 5, purpose: 'sealing', stage, wrapped, provider, now: harness.clock.now() } as const
  await addKey(harness.ownerDb, added)
  return key
}

import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { ApiResponse } from '../harness/api-response.ts'
import { keySettings } from '../harness/installation-key.ts'
import { arnOf, awsUser, startKms } from '../servers/aws-kms.ts'
import { freePort } from '../servers/free-port.ts'
import type { KeyService } from '../servers/key-service.ts'
import { startVault, vaultFaults, vaultToken } from '../servers/vault.ts'
import { type Environment, get, launch, midmonth, newDatabase, type Served, serve, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })

let folder: string
let vault: Awaited<ReturnType<typeof startVault>>
let kms: KeyService
let onVault: Environment
let onKms: Environment
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-keys-'))
  vault = await startVault({ keys: ['midmonth'] })
  kms = await startKms({ keys: [arnOf('midmonth')] })
  // The tests’ own environment has a key.
  const none = { MIDMONTH_INSTALLATION_KEY: '' }
  onVault = {
    ...none,
    MIDMONTH_VAULT_ADDRESS: vault.address,
    MIDMONTH_VAULT_KEY: 'transit/midmonth',
    MIDMONTH_VAULT_NAMESPACE: 'payroll',
    MIDMONTH_VAULT_TOKEN: vaultToken,
  }
  onKms = {
    ...none,
    MIDMONTH_AWS_KMS_KEY: arnOf('midmonth'),
    MIDMONTH_AWS_KMS_ENDPOINT: kms.address,
    AWS_ACCESS_KEY_ID: awsUser.id,
    AWS_SECRET_ACCESS_KEY: awsUser.secret,
  }
})
afterAll(async () => {
  await tidyUp()
  await vault.stop()
  await kms.stop()
  await rm(folder, { recursive: true })
})

const vaultId = 'vault:payroll/transit/midmonth'

/** Runs a command that must succeed. */
async function done(args: string[], settings: Environment): Promise<string> {
  const { code, stdout, stderr } = await midmonth(args, settings)
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return stdout
}

/** A command of the group, with JSON as its output. */
const keys = async (args: string[], settings: Environment) =>
  JSON.parse(await done(['installation-key', ...args, '--json'], settings))

/** Writes the settings of a key to a file, as for `--settings`. */
function settingsFile(name: string, settings: Environment): string {
  const file = path.join(folder, name)
  const given = Object.entries(settings).filter(([, value]) => value !== '')
  writeFileSync(file, given.map(([setting, value]) => `${setting}='${value}'\n`).join(''), { mode: 0o600 })
  return file
}

test('an installation begins with a key in Vault, and moves to AWS KMS while it serves', async () => {
  const database = await newDatabase({ migrated: false })
  const before = { ...database, ...onVault }
  await done(['migrate'], before)
  expect(await keys(['list'], before)).toMatchObject([{ key: vaultId, 'in use': true, complete: true }])
  await done(['partner', 'create', 'Acme Couriers'], before)
  const service = await serve(before)

  const file = settingsFile('kms.env', onKms)
  const said = await done(['installation-key', 'copy', '--settings', file], before)
  expect(said).toContain(`The key ${arnOf('midmonth')} now opens this database too.`)
  expect(said).toMatch(
    /1\. Set MIDMONTH_AWS_KMS_KEY, MIDMONTH_AWS_KMS_ENDPOINT, remove MIDMONTH_VAULT_KEY, .*, and restart every process\.\n +Set MIDMONTH_ERASURE_JOURNAL=/,
  )
  expect(said).toContain(`midmonth installation-key remove ${vaultId}`)
  expect(await keys(['copy', '--settings', file], before)).toMatchObject({ hasChanged: false })

  const after = { ...database, ...onKms }
  const restarted = await serve(after)
  expect(await keys(['remove', vaultId], after)).toEqual({ key: vaultId, hasChanged: true })
  for (const each of [service, restarted]) expect((await get({ ...each, key: 'none' })).status).toBe(401)
  expect(await midmonth(['key', 'list', 'par_1'], before)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(
      `needs the installation’s key ${arnOf('midmonth')}, but the settings choose Vault’s key transit/midmonth at ${vault.address}`,
    ),
  })
  const audited = JSON.parse(await done(['audit', '--json'], after))
  expect(
    audited.entries
      .map(({ action }: { action: string }) => action)
      .filter((each: string) => /^installation/.test(each)),
  ).toEqual(['installation_key.remove', 'installation_key.copy'])
})

test('a start without its key service says what is wrong and what to do, and shows no credentials', async () => {
  const database = await newDatabase({ migrated: false })
  await done(['migrate'], { ...database, ...onVault })
  const start = async (settings: Environment) => {
    const { code, stdout, stderr } = await midmonth(['partner', 'list'], { ...database, ...settings })
    for (const secret of [vaultToken, awsUser.secret]) expect(stdout + stderr).not.toContain(secret)
    return `${code} ${stderr}`
  }
  // Three attempts for each key of the installation.
  vault.next.push(...Array.from({ length: 12 }, () => vaultFaults.sealed))
  expect(await start(onVault)).toBe(`1 midmonth: Vault at ${vault.address} is sealed; unseal it, then try again\n`)
  vault.next.length = 0
  const MIDMONTH_VAULT_ADDRESS = `http://127.0.0.1:${await freePort()}`
  expect(await start({ ...onVault, MIDMONTH_VAULT_ADDRESS })).toContain(
    `1 midmonth: Vault at ${MIDMONTH_VAULT_ADDRESS} cannot be`,
  )
  const [key] = await keys(['list'], { ...database, ...onVault, MIDMONTH_VAULT_ADDRESS })
  expect(key).toMatchObject({ key: vaultId, 'in use': true, complete: true })
  expect(await start({ ...onVault, MIDMONTH_VAULT_TOKEN: 'hvs.old' })).toContain(
    '2 midmonth: The key transit/midmonth at',
  )
  expect(await start(onKms)).toContain(
    `2 midmonth: This database needs the installation’s key ${vaultId}, but the settings choose the AWS KMS key`,
  )
  expect(await start({ ...onVault, ...onKms })).toBe(
    '2 midmonth: Set MIDMONTH_VAULT_KEY or MIDMONTH_AWS_KMS_KEY, not both: the installation has one key\n',
  )
  expect(await start({ ...onKms, MIDMONTH_VAULT_TOKEN: vaultToken })).toBe(
    '2 midmonth: MIDMONTH_VAULT_TOKEN has no effect without MIDMONTH_VAULT_KEY\n',
  )
  expect(await start({ ...onVault, MIDMONTH_VAULT_ADDRESS: 'http://vault.example.com' })).toContain(
    '2 midmonth: MIDMONTH_VAULT_ADDRESS must be like https://vault.example.com:8200',
  )
})

test('a copy that is killed while it waits for the key service has changed nothing, and is repeated', async () => {
  const database = await newDatabase()
  const args = ['installation-key', 'copy', '--settings', settingsFile('killed.env', onKms)]
  const asked = kms.requests.length
  kms.next.push('hang', 'hang', 'hang', 'hang')
  const child = launch(args, database)
  await vi.waitFor(() => expect(kms.requests.length).toBeGreaterThan(asked), { timeout: 60_000 })
  child.kill('SIGKILL')
  await once(child, 'exit')
  kms.next.length = 0
  expect(await keys(['list'], database)).toHaveLength(1)
  await done(args, database)
  expect(await keys(['list'], database)).toMatchObject([{ 'in use': true }, { key: arnOf('midmonth'), complete: true }])
})

test('a key in escrow is proved to open the database without changing it, and opens it once the first key is lost', async () => {
  const database = await newDatabase({ hasDemo: true })
  const escrow = path.join(folder, 'escrow.key')
  const { to } = await keys(['copy', '--file', escrow], database)
  const before = await keys(['list'], database)
  // The drill needs nothing but the database and the key from escrow.
  const lost = { ...database, MIDMONTH_INSTALLATION_KEY: Buffer.alloc(32, 'wrong').toString('base64') }
  expect(await keys(['check', '--file', escrow], lost)).toEqual({ key: to, place: escrow, keys: 4, members: 25 })
  expect(await keys(['list'], database)).toEqual(before)

  const other = path.join(folder, 'other.key')
  writeFileSync(other, `${Buffer.alloc(32, 'other').toString('base64')}\n`, { mode: 0o600 })
  for (const file of [other, path.join(folder, 'none.key')])
    expect(await midmonth(['installation-key', 'check', '--file', file], database)).toMatchObject({
      ...{
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/This database needs the installation’s key \w+ or \w+, but/),
      },
    })
  const service = await serve({ ...database, MIDMONTH_INSTALLATION_KEY: '', MIDMONTH_INSTALLATION_KEY_FILE: escrow })
  expect((await get(service, { path: '/v1/members?take=1' })).status).toBe(200)
})

const olderThanData = 'The backup of the keys is older than the data: '

/** The keys of members as in a dump: restored, they replace what the database has. */
async function dumpKeys(database: { DATABASE_URL: string }) {
  await tamper(database, 'create table dumped_keys as select * from member_keys')
  return async () =>
    await tamper(database, 'delete from member_keys; insert into member_keys select * from dumped_keys')
}

const headersOf = ({ key }: { key: string }) => ({ 'x-api-key': key, 'content-type': 'application/json' })
const newcomer = { email: 'new@example.com', firstName: 'New', lastName: 'Person', workerId: 'N-1', tier: 'Bronze' }

test('keys from a backup that is older than the members are refused, with the members, until a later one is restored', async () => {
  const database = await newDatabase({ hasDemo: true })
  const restoreOlder = await dumpKeys(database)
  const service = await serve(database)
  const invited = await fetch(`${service.address}/v1/members`, {
    method: 'POST',
    headers: headersOf(service),
    body: JSON.stringify(newcomer),
  })
  const { memberId } = (await invited.json()) as { memberId: string }
  await service.stop()
  await tamper(database, 'create table later_keys as select * from member_keys')
  await restoreOlder()
  const said = (members: string) =>
    `${olderThanData}${members}; restore a later backup of the keys, or if there is none, run midmonth backup keys-lost (docs/operations/backups.md)`
  const one = said(`1 member has no keys in member_keys that open (${memberId})`)
  for (const command of [['migrate'], ['partner', 'list'], ['start']])
    expect(await midmonth(command, database)).toMatchObject({ code: 2, stderr: `midmonth: ${one}\n` })
  await expect(serve(database)).rejects.toThrow(one)
  const { findings } = JSON.parse((await midmonth(['doctor', '--json'], database)).stdout)
  expect(findings).toContainEqual(expect.objectContaining({ check: 'memberKeys', level: 'missing', sentence: one }))

  await tamper(database, 'delete from member_keys; insert into member_keys select * from later_keys')
  await done(['migrate'], database)
  // As from a dump before a rotation: the key with this number is gone.
  await tamper(
    database,
    `update member_keys set profile_key = set_byte(profile_key, 1, 9) where member_id = '${memberId}'`,
  )
  expect((await midmonth(['migrate'], database)).stderr).toContain(one)
})

test('after a restore all members are looked at, also those who are not the latest', async () => {
  const database = await newDatabase({ hasDemo: true })
  const first = '(select min(member_id) from member_keys)'
  const [{ id } = {}] = await tamper(
    database,
    `delete from member_keys where member_id = ${first} returning member_id as id`,
  )
  await done(['partner', 'list'], database)
  expect((await midmonth(['backup', 'restored'], database)).code).toBe(0)
  const said = `${olderThanData}1 member has no keys in member_keys that open (${id})`
  expect((await midmonth(['partner', 'list'], database)).stderr).toContain(said)
  const { findings } = JSON.parse((await midmonth(['doctor', '--json'], database)).stdout)
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'memberKeys', level: 'missing', sentence: expect.stringContaining(said) }),
  )
})

test('keys that no backup has are given up by a command that says what is lost: the service starts, and the partner can invite again', async () => {
  const database = await newDatabase({ hasDemo: true })
  const before = await serve(database)
  const call = async (service: Served, method: string, at: string, body?: object) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await fetch(service.address + at, { method, headers: headersOf(service), ...sent })
    return { status: response.status, body: response.status === 204 ? {} : await response.json() } as Pick<
      ApiResponse,
      'status' | 'body'
    >
  }
  const account = { accountHolder: 'New Person', sortCode: '089999', accountNumber: '66374958' }
  const restoreOlder = await dumpKeys(database)
  const { memberId } = (await call(before, 'POST', '/v1/members', { ...newcomer, accountDetails: account })).body
  const amount = { amount: 5_000, currency: 'GBP' }
  await call(before, 'POST', `/v1/sandbox/members/${memberId}/activate`)
  await call(before, 'POST', '/v1/pay/run', { payDetails: [{ memberId, money: amount }] })
  const quote = async () =>
    (await call(before, 'POST', '/v1/pay/withdrawals/intent', { memberId, amount: { ...amount, amount: 2_000 } })).body
  const { withdrawalIntentId } = await quote()
  expect((await call(before, 'POST', '/v1/pay/withdrawals/complete', { withdrawalIntentId })).status).toBe(201)
  const { withdrawalIntentId: pending } = await quote()
  await before.stop()
  await restoreOlder()

  const asked = await done(['backup', 'keys-lost'], database)
  expect(asked).toContain(`1 member has no keys in member_keys that open (${memberId}).\nNothing was changed.`)
  expect((await midmonth(['partner', 'list'], database)).code).toBe(2)
  expect(await done(['backup', 'keys-lost', '--yes'], database)).toContain('The keys of 1 member are given up')
  expect(await done(['backup', 'keys-lost', '--yes'], database)).toContain('All members have their keys')

  const after = await serve(database)
  const { body } = await call(after, 'GET', `/v1/members/${memberId}`)
  expect(body).toMatchObject({ email: `${memberId}@keys-lost.invalid`, workerId: null, accountDetails: null })
  expect(body).toMatchObject({ firstName: 'New', lastName: 'Person', status: 'active' })
  expect((await call(after, 'GET', '/v1/members?take=100')).body.members).toContainEqual(body)
  const { body: balance } = await call(after, 'GET', `/v1/pay/members/${memberId}/balance`)
  expect(balance.available).toEqual({ amount: 3_000, currency: 'GBP' })
  expect((await call(after, 'GET', `/v1/pay/withdrawals/intent/${pending}`)).status).toBe(200)
  expect((await call(after, 'POST', '/v1/pay/withdrawals/complete', { withdrawalIntentId: pending })).status).toBe(409)
  const changed = await call(after, 'PATCH', `/v1/members/${memberId}`, { accountDetails: account })
  expect([changed.status, changed.body.issues[0].message]).toEqual([
    409,
    `The keys of ${memberId} are lost; offboard the member, and invite the person again`,
  ])
  // Before it is queued, so that it cannot hold up the imports behind it.
  const job = await call(after, 'POST', '/v1/members/jobs', {
    actions: [{ type: 'Update', memberId, firstName: 'Other' }],
  })
  expect([job.status, JSON.stringify(job.body)]).toEqual([400, expect.stringContaining('are lost')])
  expect((await call(after, 'DELETE', `/v1/members/${memberId}`)).status).toBeLessThan(300)
  expect((await call(after, 'POST', '/v1/members', { ...newcomer, accountDetails: account })).status).toBe(201)

  const { entries } = JSON.parse(await done(['audit', '--action', 'member.lose_keys', '--json'], database))
  expect(entries).toMatchObject([{ resourceId: memberId }])
  // A bank may have paid it after the backup.
  const { withdrawals } = (await call(after, 'GET', `/v1/pay/withdrawals?memberId=${memberId}`)).body
  const withdrawal = (await call(after, 'GET', `/v1/pay/withdrawals/${withdrawals[0].id}`)).body
  expect(['held', 'submitted']).toContain(withdrawal.status)
  await done(['ledger', 'verify', '--all'], database)
})

test('a database that was restored without its keys gets no new ones, and opens once they are restored', async () => {
  const database = await newDatabase({ hasDemo: true })
  await tamper(
    database,
    `create table kept_keys as select * from installation_keys; create table kept_uses as select * from installation_key_uses;
     delete from installation_keys; delete from installation_key_uses`,
  )
  const said = 'restore the dump of its keys (docs/operations/backups.md)'
  for (const command of [['migrate'], ['partner', 'list']])
    expect(await midmonth(command, database)).toMatchObject({ code: 2, stderr: expect.stringContaining(said) })
  expect(await tamper(database, 'select from installation_keys')).toEqual([])
  await tamper(
    database,
    `insert into installation_keys select * from kept_keys; insert into installation_key_uses select * from kept_uses;
     drop table kept_keys, kept_uses`,
  )
  await done(['migrate'], database)
  expect(await keys(['check'], database)).toMatchObject({ members: 25 })
})

test('a move to a Vault whose key has the same id says that the earlier one no longer opens the database', async () => {
  const database = { ...(await newDatabase({ migrated: false })), ...onVault }
  await done(['migrate'], database)
  const other = await startVault({ keys: ['midmonth'] })
  try {
    const settings = { ...onVault, MIDMONTH_VAULT_ADDRESS: other.address }
    const said = await done(['installation-key', 'copy', '--settings', settingsFile('other.env', settings)], database)
    expect(said).toContain(
      `The key ${vaultId} is now Vault’s key transit/midmonth at ${other.address}: the earlier key of the same name no longer opens this database.`,
    )
    expect(said).not.toContain('installation-key remove')
    expect(await keys(['list'], { ...database, ...settings })).toMatchObject([{ key: vaultId, complete: true }])
    await done(['partner', 'list'], { ...database, ...settings })
  } finally {
    await other.stop()
  }
})

test('a file with settings is refused if others can read it, or if it chooses no key or more', async () => {
  const database = await newDatabase()
  const file = settingsFile('odd.env', { PORT: '8080', MIDMONTH_VAULT_KEY: 'transit/midmonth' })
  const copy = async () => (await midmonth(['installation-key', 'copy', '--settings', file], database)).stderr
  expect(await copy()).toBe(`midmonth: ${file}: PORT does not choose a key; see docs/operations/keys.md\n`)
  settingsFile('odd.env', { MIDMONTH_VAULT_KEY: 'transit/midmonth' })
  expect(await copy()).toContain('MIDMONTH_VAULT_KEY needs MIDMONTH_VAULT_ADDRESS')
  settingsFile('odd.env', {})
  expect(await copy()).toBe(`midmonth: ${file} chooses no key; see docs/operations/keys.md\n`)
  settingsFile('odd.env', keySettings)
  expect(await copy()).toMatch(/Both settings name the key \w+, so nothing needs to be copied/)
  chmodSync(file, 0o640)
  expect(await copy()).toContain('can be read by other users')
})

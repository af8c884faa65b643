import { randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { arnOf, awsRole, awsUser, kmsFault, startKms } from '../../../test/servers/aws-kms.ts'
import { freePort } from '../../../test/servers/free-port.ts'
import { type KeyService, startKeyService } from '../../../test/servers/key-service.ts'
import { signatureOf } from '../../../test/servers/signature-v4.ts'
import { startVault, vaultFaults, vaultToken } from '../../../test/servers/vault.ts'
import { readSettings, SettingsProblem } from '../../config.ts'
import { kmsKey } from './aws-kms.ts'
import { localKey } from './local-key.ts'
import type { KeyProvider } from './provider.ts'
import { type VaultKey, vaultKey } from './vault.ts'

let vault: Awaited<ReturnType<typeof startVault>>
let kms: KeyService
let folder: string
beforeAll(async () => {
  vault = await startVault({ keys: ['midmonth', 'another'] })
  kms = await startKms({ keys: [arnOf('midmonth'), arnOf('another')] })
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-providers-'))
})
afterAll(async () => {
  await vault.stop()
  await kms.stop()
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  for (const service of [vault, kms]) {
    service.next.length = 0
    service.requests.length = 0
  }
})

const attemptMsMax = 200

function onVault(change: Partial<VaultKey> = {}): KeyProvider {
  const usual = {
    address: vault.address,
    key: 'transit/midmonth',
    namespace: 'payroll',
    token: vaultToken,
    tokenFile: '',
  }
  return vaultKey({ ...usual, ...change }, { attemptMsMax })
}

const signedBy = ({ id, secret, token = '' }: typeof awsUser) => ({
  ...{ AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: token },
})

function onKms({
  arn = arnOf('midmonth'),
  endpoint = kms.address,
  env = signedBy(awsUser) as Record<string, string>,
} = {}) {
  return kmsKey({ arn, endpoint, aws: readSettings(env) }, { attemptMsMax })
}

const keys: Record<string, () => { one: KeyProvider; other: KeyProvider }> = {
  'of a file': () => {
    const [one = '', other = ''] = [randomBytes(32), randomBytes(32)].map(key => key.toString('base64'))
    return { one: localKey(one, 'the file'), other: localKey(other, 'the file') }
  },
  'of Vault': () => ({ one: onVault(), other: onVault({ key: 'transit/another' }) }),
  'of AWS KMS': () => ({ one: onKms(), other: onKms({ arn: arnOf('another') }) }),
}

for (const [name, open] of Object.entries(keys)) {
  test(`a key ${name} opens what it has wrapped, and nothing else`, async () => {
    const { one, other } = open()
    const key = randomBytes(32)
    const wrapped = await one.wrap(key)
    expect((await one.unwrap(wrapped)).equals(key)).toBe(true)
    expect(wrapped.includes(key)).toBe(false)
    expect((await one.wrap(key)).equals(wrapped)).toBe(false)
    expect(one.id).not.toBe(other.id)

    const opens = /does not open what this database has stored|was changed, and cannot be opened/
    await expect(other.unwrap(wrapped)).rejects.toThrow(opens)
    await expect(one.unwrap(await other.wrap(key))).rejects.toThrow(opens)
    await expect(one.unwrap(wrapped.subarray(0, -4))).rejects.toThrow(opens)
    await expect(one.unwrap(Buffer.alloc(0))).rejects.toThrow(opens)
    const changed = Buffer.from(wrapped)
    changed[changed.length - 9] = (changed.at(-9) ?? 0) ^ 1
    await expect(one.unwrap(changed)).rejects.toThrow(opens)
  })
}

test('a key that Vault has rotated still opens what its earlier version has wrapped', async () => {
  const key = randomBytes(32)
  const before = await onVault().wrap(key)
  vault.rotate('midmonth')
  const after = await onVault().wrap(key)
  expect([before, after].map(each => each.toString().slice(0, 9))).toEqual(['vault:v1:', 'vault:v2:'])
  expect((await onVault().unwrap(before)).equals(key)).toBe(true)
})

test('the token for Vault can be in a file that is replaced, which no other user may read', async () => {
  const tokenFile = path.join(folder, 'token')
  await writeFile(tokenFile, 'hvs.expired\n', { mode: 0o600 })
  const provider = onVault({ token: '', tokenFile })
  await expect(provider.wrap(randomBytes(32))).rejects.toThrow('(403)')
  await writeFile(tokenFile, `${vaultToken}\n`)
  await provider.wrap(randomBytes(32))
  await chmod(tokenFile, 0o644)
  await expect(provider.wrap(randomBytes(32))).rejects.toThrow(`${tokenFile} can be read by other users`)
})

test('each refusal of Vault has a sentence that names the remedy, and no token or key', async () => {
  const key = randomBytes(32)
  const said = async (provider: KeyProvider) => await fault(provider.wrap(key))
  expect(await said(onVault({ key: 'transit/unknown' }))).toMatchObject({
    message: `The key transit/unknown at ${vault.address} does not exist; set MIDMONTH_VAULT_KEY to the mount and the name of the key`,
  })
  expect(await said(onVault({ namespace: '' }))).toMatchObject({ message: expect.stringContaining('does not exist') })
  expect(await said(onVault({ token: 'hvs.other' }))).toMatchObject({
    message: expect.stringContaining('may not be used with this token (403); the token needs a policy with update'),
  })
  vault.next.push(vaultFaults.sealed, vaultFaults.sealed, vaultFaults.sealed)
  expect(await said(onVault())).toMatchObject({
    message: `Vault at ${vault.address} is sealed; unseal it, then try again`,
  })
  vault.next.push({ status: 307, body: '', headers: { location: 'http://127.0.0.1:1/' } })
  expect(await said(onVault())).toMatchObject({ message: expect.stringContaining('refuses to encrypt (307)') })
  for (const body of ['<html>', '{}', '{"data":{"ciphertext":7}}', '{"data":{"ciphertext":"AAAA"}}']) {
    vault.next.push({ status: 200, body })
    expect(await said(onVault())).toMatchObject({ message: expect.stringContaining('is not Vault’s') })
  }
})

test('each refusal of AWS KMS has a sentence that names the remedy, and neither secrets nor accounts', async () => {
  const said = async (provider: KeyProvider) => (await fault(provider.wrap(randomBytes(32)))).message
  expect(await said(onKms({ arn: arnOf('unknown') }))).toBe(
    `The key ${arnOf('unknown')} does not exist; set MIDMONTH_AWS_KMS_KEY to the ARN of the key (NotFoundException)`,
  )
  expect(await said(onKms({ env: signedBy({ ...awsUser, secret: 'wrong' }) }))).toMatch(
    /the AWS credentials are wrong or have expired.*\(InvalidSignatureException\)$/,
  )
  expect(await said(onKms({ env: signedBy({ ...awsRole, token: 'old' }) }))).toContain('(UnrecognizedClientException)')
  for (const [type, sentence] of [
    ['AccessDeniedException', 'may not be used with these AWS credentials; they need kms:Encrypt'],
    ['com.amazonaws.kms#DisabledException', 'is disabled or scheduled for deletion'],
    ['KMSInvalidStateException', 'is disabled or scheduled for deletion'],
    ['ExpiredTokenException', 'the AWS credentials are wrong or have expired'],
    ['ValidationException', 'refuses the request (400 ValidationException)'],
  ] as const) {
    kms.next.push(kmsFault(type))
    const message = await said(onKms())
    expect(message).toContain(sentence)
    expect(message).not.toContain('user/ada')
  }
  for (const body of ['<html>', '{}', '{"CiphertextBlob":""}']) {
    kms.next.push({ status: 200, body })
    expect(await said(onKms())).toContain('is not that of AWS KMS')
  }
})

test('a busy or silent service is asked again, three times at most', async () => {
  const key = randomBytes(32)
  vault.next.push('hang', { status: 502, body: 'bad gateway' })
  expect((await onVault().unwrap(await onVault().wrap(key))).equals(key)).toBe(true)
  kms.next.push(kmsFault('ThrottlingException'), 'reset')
  expect((await onKms().unwrap(await onKms().wrap(key))).equals(key)).toBe(true)
  expect([vault.requests.length, kms.requests.length]).toEqual([4, 4])

  vault.next.push('hang', 'hang', 'hang')
  await expect(onVault().wrap(key)).rejects.toThrow(`Vault at ${vault.address} cannot be reached (`)
  kms.next.push(kmsFault('ThrottlingException'), kmsFault('InternalFailure', 500), kmsFault('ThrottlingException'))
  await expect(onKms().wrap(key)).rejects.toThrow('is unavailable (400 ThrottlingException); try again later')
  expect([vault.requests.length, kms.requests.length]).toEqual([7, 7])
  const address = `http://127.0.0.1:${await freePort()}`
  await expect(onVault({ address }).wrap(key)).rejects.toThrow(`Vault at ${address} cannot be reached (`)
  await expect(onKms({ endpoint: address }).wrap(key)).rejects.toThrow(`AWS KMS at ${address} cannot be reached (`)
})

test('every request to AWS KMS is signed, and names the purpose of the key', async () => {
  await onKms().unwrap(await onKms().wrap(randomBytes(32)))
  for (const { body } of kms.requests)
    expect(JSON.parse(body)).toMatchObject({
      KeyId: arnOf('midmonth'),
      EncryptionContext: { midmonth: 'installation key' },
    })
  expect(kms.requests.map(({ headers }) => headers['x-amz-target'])).toEqual([
    'TrentService.Encrypt',
    'TrentService.Decrypt',
  ])
})

test('AWS credentials come from the environment, the container or the instance', async () => {
  const key = randomBytes(32)
  const credentials = { AccessKeyId: awsRole.id, SecretAccessKey: awsRole.secret, Token: awsRole.token }
  const tokenFile = path.join(folder, 'pod-token')
  await writeFile(tokenFile, 'token of the pod\n')
  const issuer = await startKeyService(({ method, path: at, headers }) => {
    const issued = { status: 200, body: { ...credentials, Expiration: '2030-01-01T00:00:00Z' } }
    if (at === '/v1/credentials' && headers.authorization === 'token of the pod') return issued
    if (method === 'PUT' && at === '/latest/api/token') return { status: 200, body: 'session' }
    if (headers['x-aws-ec2-metadata-token'] !== 'session') return { status: 401, body: '' }
    const roles = '/latest/meta-data/iam/security-credentials/'
    if (at === roles) return { status: 200, body: 'midmonth-role\n' }
    return at === `${roles}midmonth-role` ? issued : { status: 404, body: '' }
  })
  const container = {
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${issuer.address}/v1/credentials`,
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
  }
  const instance = { AWS_EC2_METADATA_SERVICE_ENDPOINT: issuer.address }
  for (const env of [signedBy(awsUser), signedBy(awsRole), container, instance])
    expect((await onKms({ env }).unwrap(await onKms({ env }).wrap(key))).equals(key)).toBe(true)
  await writeFile(tokenFile, 'another token\n')
  await expect(onKms({ env: container }).wrap(key)).rejects.toThrow('There are no AWS credentials')
  await issuer.stop()
  await expect(onKms({ env: instance }).wrap(key)).rejects.toThrow('There are no AWS credentials')
})

// The service of the tests must itself be right.
test('the signatures that the tests compute are those that AWS has published', () => {
  const date = '20150830T123600Z'
  const signer = { secret: awsUser.secret, date, region: 'us-east-1', service: 'service' }
  const host = 'example.amazonaws.com'
  // The cases get-vanilla, post-vanilla and post-x-www-form-urlencoded of the AWS Signature Version 4 test suite.
  const plain = { path: '/', headers: { host, 'x-amz-date': date }, body: '' }
  const signed = ['host', 'x-amz-date']
  expect(signatureOf({ ...plain, method: 'GET' }, { ...signer, signed })).toBe(
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  )
  expect(signatureOf({ ...plain, method: 'POST' }, { ...signer, signed })).toBe(
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  )
  const headers = { ...plain.headers, 'content-type': 'application/x-www-form-urlencoded' }
  expect(
    signatureOf(
      { ...plain, method: 'POST', headers, body: 'Param1=value1' },
      { ...signer, signed: ['content-type', ...signed] },
    ),
  ).toBe('ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a')
})

/** The error of a call, which never names a secret. */
async function fault(call: Promise<unknown>): Promise<Error> {
  const error = await call.then(
    () => new Error('It did not fail'),
    (reason: Error) => reason,
  )
  for (const secret of [vaultToken, awsUser.secret, awsRole.secret, 'hvs.other'])
    expect(error.message).not.toContain(secret)
  if (!(error instanceof SettingsProblem)) expect(error.message).toMatch(/sealed|unavailable|cannot be reached/)
  return error
}

import { argon2Sync } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashPassword, isOutdated, isPassword, requireGoodPassword } from './passwords.ts'

const password = 'correct horse battery'

test('a password matches only its own hash, however its letters are composed', async () => {
  const hashed = await hashPassword('Zürich am Übersee')
  expect(hashed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/)
  expect(await isPassword('Zürich am Übersee'.normalize('NFD'), hashed)).toBe(true)
  expect(await isPassword('Zurich am Ubersee', hashed)).toBe(false)
  expect(await hashPassword(password)).not.toBe(await hashPassword(password))
  expect(await isPassword(password, null)).toBe(false)
})

test('a hash with other parameters is still checked with them, and is outdated', async () => {
  const salt = Buffer.alloc(16, 7)
  const parameters = { memory: 1_024, passes: 3, parallelism: 2, tagLength: 32 }
  const tag = argon2Sync('argon2id', { message: password, nonce: salt, ...parameters })
  const text = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  const hashed = `$argon2id$v=19$m=1024,t=3,p=2$${text(salt)}$${text(tag)}`
  expect(await isPassword(password, hashed)).toBe(true)
  expect(isOutdated(hashed)).toBe(true)
  expect(isOutdated(await hashPassword(password))).toBe(false)
})

test('a flood of sign-ins is refused beyond a bounded queue, and the queue drains', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 60 }, () => isPassword(password, null)))
  const refused = outcomes.filter(each => each.status === 'rejected')
  expect(refused).toHaveLength(60 - 34)
  for (const { reason } of refused)
    expect(reason).toMatchObject({ name: 'ServiceUnavailable', headers: { 'retry-after': '1' } })
  expect(await isPassword(password, await hashPassword(password))).toBe(true)
})

test.each([
  ['short', 'abc def ghi'],
  ['of few characters', 'abababababababab'],
  ['with the address', 'x ada.l@example.com x'],
  ['with the name', 'Ada Lovelace 1815'],
  ['too long', 'abcdefgh'.repeat(40)],
])('a password that is %s is refused', (_, bad) => {
  expect(() => requireGoodPassword(bad, { email: 'ada.l@example.com', name: 'Ada Lovelace' })).toThrow(/password/)
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiResponse } from '../../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { generateSecret } from '../../kernel/secrets.ts'
import { createOperatorKey, listOperatorKeys, revokeOperatorKey } from '../../partners/operator-keys.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())

const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const refused = [401, 'HeaderValidation', 'x-api-key']

test('a key of a partner is refused by the operators’ API, and an operator key by the partners’ API', async () => {
  expect(problemOf(await operator.call('GET', '/partners', { key: harness.key }))).toEqual(refused)
  expect(problemOf(await harness.call('GET', '/v1/members', { key: operator.secret }))).toEqual(refused)
  expect((await operator.call('GET', '/partners')).status).toBe(200)
})

test('a missing, mistyped or unknown operator key is refused, even for unknown paths', async () => {
  const mistyped = operator.secret.replace(/.$/, last => (last === 'x' ? 'y' : 'x'))
  for (const key of [null, 'mmoperator_x', mistyped, generateSecret('mmoperator_')])
    for (const path of ['/partners', '/nothing', '/partners/%zz'])
      expect(problemOf(await operator.call('GET', path, { key }))).toEqual(refused)
  expect(problemOf(await operator.call('GET', '/nothing'))[0]).toBe(404)
})

test('a revoked or expired operator key is refused from the next request on', async () => {
  const now = harness.clock.now()
  const expiresAt = new Date(now.getTime() + 60_000)
  const create = (expiry: Date | null) =>
    harness.inTx(tx => createOperatorKey(tx, { name: 'Short', createdBy: 'test@host', expiresAt: expiry, now }))
  const [expiring, revoked] = [await create(expiresAt), await create(null)]
  const statusWith = async (key: string) => (await operator.call('GET', '/partners', { key })).status
  expect([await statusWith(expiring.secret), await statusWith(revoked.secret)]).toEqual([200, 200])
  const revoke = () => harness.inTx(tx => revokeOperatorKey(tx, { keyId: revoked.key.id, revokedBy: 'test@host', now }))
  expect(await revoke()).toMatchObject({ isRepeated: false })
  expect(await revoke()).toMatchObject({ isRepeated: true })
  harness.clock.advance({ minutes: 1 })
  expect([await statusWith(expiring.secret), await statusWith(revoked.secret)]).toEqual([401, 401])
  const found = (await listOperatorKeys(harness.db, { take: 100 })).find(({ id }) => id === revoked.key.id)
  expect(found).toMatchObject({ revokedBy: 'test@host', lastUsedAt: now })
})

test('a revoked operator key stays revoked, and its secret is not stored', async () => {
  const { key } = await harness.inTx(tx =>
    createOperatorKey(tx, { name: 'Old', createdBy: 'test@host', expiresAt: null, now: harness.clock.now() }),
  )
  const change = (columns: string) =>
    harness.pool.query(`update operator_keys set ${columns} where id = '${key.id}'`).then(
      () => 'done',
      ({ code, constraint }) => constraint ?? code,
    )
  expect(await change(`revoked_at = now(), revoked_by = 'test@host'`)).toBe('done')
  expect(await change('revoked_at = null, revoked_by = null')).toBe('keys_are_never_revived')
  for (const columns of [`hash = sha256('mine')`, 'expires_at = null', `name = 'Other'`])
    expect(await change(columns)).toBe('42501')
  const { rows } = await harness.pool.query('select * from operator_keys where id = $1', [operator.id])
  expect(JSON.stringify(rows)).not.toContain(operator.secret.slice(12))
})

test('repeated unknown operator keys from one address are refused without a lookup, and known keys are not', async () => {
  const guess = () => operator.call('GET', '/partners', { key: generateSecret('mmoperator_') })
  let answer = await guess()
  for (let count = 1; count < 20 && answer.status === 401; count += 1) answer = await guess()
  expect(problemOf(answer).slice(0, 2)).toEqual([429, 'RateLimitExceeded'])
  harness.clock.advance({ minutes: 1 })
  expect((await operator.call('GET', '/partners')).status).toBe(200)
})

test('a repeated idempotency key replays the response to the same operator, and to no other', async () => {
  const headers = { 'x-idempotency-key': 'create-1' }
  const create = (call = operator.call, name = 'Repeated') => call('POST', '/partners', { headers, body: { name } })
  const first = await create()
  const second = await create()
  expect(second.headers['idempotency-replayed']).toBe('true')
  expect(second.body).toEqual(first.body)
  expect((await create(operator.call, 'Another')).status).toBe(422)
  const colleague = await harness.addOperator('Colleague')
  const other = await create(colleague.call)
  expect([other.status, other.headers['idempotency-replayed']]).toEqual([201, undefined])
  expect(other.body.id).not.toBe(first.body.id)
})

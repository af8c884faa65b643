import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const newMember = (email = `${randomUUID()}@example.com`) => ({
  email,
  firstName: 'Sam',
  lastName: 'Okafor',
  tier: 'Silver',
})
const invite = (body: object, idempotencyKey: string, options: { key?: string; path?: string } = {}) =>
  harness.call('POST', options.path ?? '/v1/members', {
    body,
    headers: { 'x-idempotency-key': idempotencyKey },
    ...(options.key === undefined ? {} : { key: options.key }),
  })
const countMembers = async () => (await harness.call('GET', '/v1/members')).body.total

test('a repeated request gets the same bytes again, without a second effect', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const first = await invite(body, key)
  const before = await countMembers()
  const second = await invite(body, key)
  expect(first.status).toBe(201)
  expect(first.headers['idempotency-replayed']).toBeUndefined()
  expect([second.status, second.text]).toEqual([first.status, first.text])
  expect(second.headers['idempotency-replayed']).toBe('true')
  expect(await countMembers()).toBe(before)
})

test('a replay has the headers of the first answer', async () => {
  const memberId = await harness.addMember({ available: 12_000 })
  const key = randomUUID()
  const ask = () =>
    harness.call('POST', '/v1/pay/withdrawals/intent', {
      body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
      headers: { 'x-idempotency-key': key },
    })
  const first = await ask()
  harness.clock.advance({ minutes: 5 })
  expect((await ask()).headers['x-intent-expires-at']).toBe(first.headers['x-intent-expires-at'])
})

test('a stored answer that cannot be opened is a 500 to its own repeats, has no second effect, and says what it created', async () => {
  const memberId = await harness.addMember({ available: 12_000 })
  const quote = (key: string) =>
    harness.call('POST', '/v1/pay/withdrawals/intent', {
      body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
      headers: { 'x-idempotency-key': key },
    })
  const countIntents = async () =>
    (await harness.pool.query('select count(*)::integer as count from withdrawal_intents')).rows[0].count
  const [keyOfIntent, keyOfMember, body] = [randomUUID(), randomUUID(), newMember()]
  const intent = await quote(keyOfIntent)
  const member = await invite(body, keyOfMember)
  await harness.pool.query(
    'update idempotency_keys set answer = set_byte(answer, 40, get_byte(answer, 40) # 1) where key = any($1)',
    [[keyOfIntent, keyOfMember]],
  )
  const [members, intents] = [await countMembers(), await countIntents()]
  // Two of a batch: the other one is not affected.
  const [broken, fine, brokenMember] = await Promise.all([
    quote(keyOfIntent),
    quote(randomUUID()),
    invite(body, keyOfMember),
  ])
  expect([broken.status, fine.status, brokenMember.status]).toEqual([500, 201, 500])
  expect([await countMembers(), await countIntents()]).toEqual([members, intents + 1])
  for (const [key, resourceId] of [
    [keyOfIntent, intent.body.withdrawalIntentId],
    [keyOfMember, member.body.memberId],
  ])
    expect((await harness.call('GET', `/v1/idempotency-keys/${key}`)).body).toMatchObject({ status: 201, resourceId })
})

test('the order of fields and white space do not make another request', async () => {
  const key = randomUUID()
  const { email, firstName, lastName, tier } = newMember()
  const first = await invite({ email, firstName, lastName, tier }, key)
  const second = await harness.call('POST', '/v1/members', {
    raw: JSON.stringify({ tier, lastName, firstName, email }, null, 4),
    headers: { 'x-idempotency-key': key },
  })
  expect(second.text).toBe(first.text)
})

test('the same key with another request is refused, and nothing is done', async () => {
  const [key, body] = [randomUUID(), newMember()]
  await invite(body, key)
  const before = await countMembers()
  for (const answer of [
    await invite(newMember(), key),
    await harness.call('PUT', '/v1/members/mem_01kah4pzc5e4r8v2m6t0x9y3bd', {
      body,
      headers: { 'x-idempotency-key': key },
    }),
    await harness.call('GET', '/v1/members', { headers: { 'x-idempotency-key': key } }),
  ]) {
    expect(answer.status).toBe(422)
    expect(answer.body.issues).toEqual([
      { code: 'HeaderValidation', message: expect.any(String), path: 'x-idempotency-key' },
    ])
  }
  expect(await countMembers()).toBe(before)
})

test('a failed request leaves its key unused', async () => {
  const [key, body] = [randomUUID(), newMember()]
  expect((await invite({ ...body, tier: 'Nonesuch' }, key)).status).toBe(400)
  expect((await invite(body, key)).status).toBe(201)
})

test('twenty copies of one request at once have one effect and one answer', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const before = await countMembers()
  const answers = await Promise.all(Array.from({ length: 20 }, () => invite(body, key)))
  expect(new Set(answers.map(answer => `${answer.status} ${answer.text}`)).size).toBe(1)
  expect(answers[0]?.status).toBe(201)
  expect(answers.filter(answer => answer.headers['idempotency-replayed'] === 'true')).toHaveLength(19)
  expect(await countMembers()).toBe(before + 1)
})

test('a key is valid for exactly seven days, whenever the cleaner runs, and can then be reused', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const first = await invite(body, key)
  harness.clock.advance({ days: 7, seconds: -1 })
  expect((await invite(body, key)).text).toBe(first.text)
  harness.clock.advance({ seconds: 1 })
  const late = await invite(body, key)
  expect(late.status).toBe(409)
  expect(late.body.issues[0].code).toBe('MemberAlreadyInvited')
  expect((await invite(newMember(), key)).status).toBe(201)
})

test('keys of different partners are independent', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const mine = await invite(body, key)
  const theirs = await invite(body, key, { key: harness.other.key })
  expect(theirs.status).toBe(201)
  expect(theirs.body.memberId).not.toBe(mine.body.memberId)
})

test('a partner’s second API key replays the requests of the first, so that rotating keys is safe', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const first = await invite(body, key)
  const { secret } = await harness.addKey(['members:write'])
  expect((await invite(body, key, { key: secret })).text).toBe(first.text)
})

test('a GET with a key is replayed too', async () => {
  const memberId = await harness.addMember({ available: 12_000 })
  const headers = { 'x-idempotency-key': randomUUID() }
  const path = `/v1/pay/members/${memberId}/balance`
  const first = await harness.call('GET', path, { headers })
  const paid = await harness.call('POST', '/v1/pay/run', {
    body: { payDetails: [{ memberId, money: { amount: 1, currency: 'GBP' } }] },
  })
  expect(paid.status).toBe(201)
  expect((await harness.call('GET', path, { headers })).text).toBe(first.text)
  expect((await harness.call('GET', path)).body.available.amount).toBe(12_001)
})

test('the lookup returns the outcome of a key, never the answer itself', async () => {
  const key = 'order 1/ä'.replace(/[^a-z0-9]/g, '!')
  const member = await invite(newMember(), key)
  const found = await harness.call('GET', `/v1/idempotency-keys/${encodeURIComponent(key)}`)
  expect(found.body).toEqual({
    key,
    operation: 'inviteMember',
    status: 201,
    resourceId: member.body.memberId,
    createdAt: harness.clock.now().toISOString(),
    expiresAt: new Date(harness.clock.now().getTime() + 7 * 86_400_000).toISOString(),
  })
  expect(
    (await harness.call('GET', `/v1/idempotency-keys/${encodeURIComponent(key)}`, { key: harness.other.key })).status,
  ).toBe(404)
  harness.clock.advance({ days: 7 })
  expect((await harness.call('GET', `/v1/idempotency-keys/${encodeURIComponent(key)}`)).status).toBe(404)
})

test.each(['', ' ', 'x'.repeat(1_025), 'snowman-☃', 'bell\x07'])('refuses %j as a key', async key => {
  const { status, body } = await invite(newMember(), key)
  expect(status).toBe(400)
  expect(body.issues).toEqual([{ code: 'HeaderValidation', message: expect.any(String), path: 'x-idempotency-key' }])
})

test.each([
  'order 7, second try',
  'a\tb',
  'Zählung é',
  'x',
  `${'~'.repeat(1_022)} ~`,
  // The most bytes that a stored key can take.
  '\xff'.repeat(1_024),
])('accepts %j as a key, replays its answer and finds it', async key => {
  const body = newMember()
  const first = await invite(body, key)
  const second = await invite(body, key)
  expect([first.status, second.text, second.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
  const found = await harness.call('GET', `/v1/idempotency-keys/${encodeURIComponent(key)}`)
  expect(found.body).toMatchObject({ key, resourceId: first.body.memberId })
})

test('a batch records a key with spaces like an ordinary operation', async () => {
  const memberId = await harness.addMember({ available: 12_000 })
  const headers = { 'x-idempotency-key': `quote for ${memberId}, once` }
  const body = { memberId, amount: { amount: 5_000, currency: 'GBP' } }
  const [first, second] = [
    await harness.call('POST', '/v1/pay/withdrawals/intent', { body, headers }),
    await harness.call('POST', '/v1/pay/withdrawals/intent', { body, headers }),
  ]
  expect([first.status, second.text, second.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
})

test('a lookup that has its own key does not find itself', async () => {
  const key = randomUUID()
  const { status } = await harness.call('GET', `/v1/idempotency-keys/${key}`, { headers: { 'x-idempotency-key': key } })
  expect(status).toBe(404)
})

test('copies of a slow request do not use up the connections of other requests', async () => {
  const [key, body] = [randomUUID(), newMember()]
  const client = await harness.pool.connect()
  try {
    // Another transaction holds the row of the key, so the first copy waits in the database and the others in the process.
    await client.query('begin')
    await client.query(
      `insert into idempotency_keys (partner_id, key, fingerprint, operation, created_at, expires_at)
       values ($1, $2, '', 'other', now(), now() + interval '1 day')`,
      [harness.partner.id, key],
    )
    const copies = Promise.all(Array.from({ length: 50 }, () => invite(body, key)))
    expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
    expect(harness.pool.waitingCount).toBe(0)
    const answers = await copies
    expect(new Set(answers.map(({ status, headers }) => `${status} ${headers['retry-after']}`))).toEqual(
      new Set(['409 1']),
    )
    await client.query('rollback')
  } finally {
    client.release()
  }
  expect((await invite(body, key)).status).toBe(201)
})

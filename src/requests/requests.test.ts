import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'

let harness: Harness
let partner: TestPartner
let key: string
beforeAll(async () => {
  harness = await startHarness()
})
beforeEach(async () => {
  partner = await harness.addPartner('Logged')
  key = partner.key
})
afterAll(() => harness.stop())

const call = (method: string, path: string, options = {}) => harness.call(method, path, { key, ...options })

/** The log of the partner, newest first, without the requests that read it. */
async function log(query = '', as = key) {
  await harness.flushRequestLog()
  const { status, body, text } = await harness.call('GET', `/v1/requests?take=1000&${query}`, { key: as })
  if (status !== 200) throw new Error(text)
  return body.requests.filter((each: { route: string }) => each.route !== '/v1/requests')
}

const gbp = (amount: number) => ({ amount, currency: 'GBP' })

test('reads by a user of the console are not among the partner’s requests, but changes are', async () => {
  const user = await signIn(harness, { roles: ['developer'], partnerId: partner.partner.id })
  expect((await user.call('GET', '/v1/webhooks')).status).toBe(200)
  expect((await user.call('POST', '/v1/webhooks', { body: { url: 'https://example.com' } })).status).toBe(201)
  expect(await log()).toEqual([expect.objectContaining({ method: 'POST', status: 201, keyId: user.user.id })])
})

describe('a logged request', () => {
  test('names the operation, the response and the created resource', async () => {
    const memberId = await harness.addMember({ available: 10_000, key })
    const headers = { 'x-idempotency-key': 'one \\ two\tthree é', 'x-request-id': 'mine-1' }
    const body = { memberId, amount: gbp(5_000) }
    const intent = await call('POST', '/v1/pay/withdrawals/intent', { body, headers })
    await call('POST', '/v1/pay/withdrawals/intent', { body, headers })
    const [replay, first] = await log()
    expect(first).toEqual({
      id: expect.stringMatching(/^req_[0-9a-z]{26}$/),
      requestId: 'mine-1',
      createdAt: harness.clock.now().toISOString(),
      method: 'POST',
      route: '/v1/pay/withdrawals/intent',
      path: '/v1/pay/withdrawals/intent',
      status: 201,
      durationMs: expect.any(Number),
      keyId: expect.stringMatching(/^key_/),
      idempotencyKey: 'one \\ two\tthree é',
      replayed: false,
      errorCodes: [],
      resourceId: intent.body.withdrawalIntentId,
    })
    expect(replay).toEqual({ ...first, id: expect.any(String), durationMs: expect.any(Number), replayed: true })
    expect(replay.id).not.toBe(first.id)
  })

  test('has each error code of its refusal once, and the resource in its path', async () => {
    const memberId = await harness.addMember({ key })
    await call('GET', `/v1/members/${memberId}`, { headers: { 'x-request-id': 'not fit' } })
    await call('POST', '/v1/members', { body: { email: 1, firstName: 2 } })
    await call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount: gbp(5_000) } })
    const [refused, invalid, found] = await log()
    expect(found).toMatchObject({
      ...{ route: '/v1/members/{memberId}', path: `/v1/members/${memberId}`, status: 200, errorCodes: [] },
      ...{ resourceId: memberId, requestId: found.id, idempotencyKey: null },
    })
    expect(invalid).toMatchObject({ status: 400, errorCodes: ['BodyValidation'], resourceId: null })
    expect(refused).toMatchObject({ status: 422, errorCodes: ['MemberInsufficientFunds'], resourceId: memberId })
  })

  test('can be read by the x-request-id of its response', async () => {
    const answer = await call('GET', '/v1/tiers')
    await harness.flushRequestLog()
    const { status, body } = await call('GET', `/v1/requests/${answer.headers['x-request-id']}`)
    expect([status, body.route, body.id]).toEqual([200, '/v1/tiers', answer.headers['x-request-id']])
  })

  test('may have been refused before its operation: no scope, suspended, 404, 405, a malformed URL or body', async () => {
    const { secret } = await harness.addKey(['members:read'], { partnerId: partner.partner.id })
    await call('GET', '/v1/pay/runs', { key: secret })
    await call('GET', '/v1/nothing')
    await call('PATCH', '/v1/tiers')
    await call('GET', '/v1/%zz')
    await call('POST', '/v1/members', { raw: '{' })
    expect(
      (await log()).map(({ status, route, path, errorCodes }: Record<string, unknown>) => [
        ...[status, route, path],
        ...(errorCodes as string[]),
      ]),
    ).toEqual([
      [400, '/v1/members', '/v1/members', 'BadRequest'],
      [400, null, '/v1/…', 'BadRequest'],
      [405, null, '/v1/tiers', 'BadRequest'],
      [404, null, '/v1/…', 'NotFound'],
      [403, '/v1/pay/runs', '/v1/pay/runs', 'Forbidden'],
    ])
  })

  test('holds no personal data and no secret, wherever the caller puts them', async () => {
    const secret = 'sam.okafor@example.com'
    const paths = [
      `/v1/members?emails=${secret}`,
      `/v1/members/${secret}`,
      `/v1/members/mem_${secret}`,
      `/v1/idempotency-keys/${secret}`,
      `/v1/people/${secret}`,
      `/${secret}`,
      `/v1/tiers/${secret}?${secret}=1`,
      `/v1/${'x'.repeat(5_000)}/${secret}`,
      `/v1/${`${secret}/`.repeat(200)}`,
      `/v1/%zz${secret}`,
    ]
    for (const path of paths) await call('GET', path)
    await call('POST', '/v1/members', { body: { [secret]: secret, email: secret } })
    await call('POST', '/v1/pay/withdrawals/intent', { body: { memberId: `mem_${secret}`, amount: gbp(5_000) } })
    for (const id of ['\0', '\ud800', 'x'.repeat(129), 'a b', 'é', "'; drop table request_log; --"]) {
      await call('GET', '/v1/tiers', { headers: { 'x-request-id': id } }).catch(() => undefined)
    }
    const all = await log()
    expect(all.length).toBeGreaterThanOrEqual(paths.length)
    const text = JSON.stringify(all)
    for (const part of [secret, 'okafor', 'drop table', 'xxxx', key]) expect(text).not.toContain(part)
    for (const { path } of all) expect(path.length).toBeLessThan(100)
  })

  test('with the same x-request-id as another, even another partner’s, is a separate entry', async () => {
    const headers = { 'x-request-id': 'req_01kah4pzc5e4r8v2m6t0x9y3bd' }
    await call('GET', '/v1/tiers', { headers })
    await call('GET', '/v1/members', { headers })
    await harness.call('GET', '/v1/tiers', { headers, key: harness.other.key })
    const found = await log(`requestId=${headers['x-request-id']}`)
    expect(found.map((each: { route: string }) => each.route)).toEqual(['/v1/members', '/v1/tiers'])
    expect(new Set(found.map((each: { id: string }) => each.id)).size).toBe(2)
    // The caller's request id is not the id of an entry, so it cannot be used as one.
    expect((await call('GET', `/v1/requests/${headers['x-request-id']}`)).status).toBe(404)
  })
})

describe('the list', () => {
  test('is filtered by status, class, method, route, key, request id, idempotency key, resource, code and time', async () => {
    const memberId = await harness.addMember({ key })
    const { key: second, secret } = await harness.addKey(['members:read'], { partnerId: partner.partner.id })
    await log()
    harness.clock.advance({ minutes: 1 })
    const from = harness.clock.now().toISOString()
    await call('GET', `/v1/members/${memberId}`, { key: secret })
    await call('GET', '/v1/members/mem_none', { headers: { 'x-idempotency-key': 'k', 'x-request-id': 'r' } })
    harness.clock.advance({ seconds: 1 })
    const to = harness.clock.now().toISOString()
    await call('DELETE', `/v1/members/${memberId}`)
    const shown = async (query: string) =>
      (await log(`fromDate=${from}&${query}`)).map(
        ({ method, status }: { method: string; status: number }) => `${method} ${status}`,
      )
    expect(await shown('')).toEqual(['DELETE 200', 'GET 404', 'GET 200'])
    for (const [query, expected] of [
      ['status=404', ['GET 404']],
      ['status=4xx', ['GET 404']],
      ['status=2xx', ['DELETE 200', 'GET 200']],
      ['status=5xx', []],
      ['method=DELETE', ['DELETE 200']],
      [`route=${encodeURIComponent('/v1/members/{memberId}')}`, ['DELETE 200', 'GET 404', 'GET 200']],
      ['route=/v1/tiers', []],
      [`keyId=${second.id}`, ['GET 200']],
      ['requestId=r', ['GET 404']],
      ['idempotencyKey=k', ['GET 404']],
      [`resourceId=${memberId}`, ['DELETE 200', 'GET 200']],
      ['errorCode=MemberNotFound', ['GET 404']],
      ['errorCode=Conflict', []],
      [`toDate=${to}`, ['GET 404', 'GET 200']],
      [`toDate=${to}&status=2xx&method=GET`, ['GET 200']],
    ] as const) {
      expect(await shown(query), query).toEqual(expected)
    }
  })

  test.each([
    'status=6xx',
    'status=40',
    'errorCode=Nope',
    'method=get',
    'keyId=mem_1',
    'requestId=%00',
    'take=0',
    'skip=1',
    'after=mem_1',
  ])('refuses the query %s', async query => {
    const { status, body } = await call('GET', `/v1/requests?${query}`)
    expect([status, body.issues[0].code, body.issues[0].path]).toEqual([400, 'QueryValidation', query.split('=')[0]])
  })

  test.each(['route', 'idempotencyKey', 'resourceId'])('accepts any text as %s, and finds nothing', async filter => {
    for (const text of ['é', '\u{1f600}', "';--", '\\', 'x'.repeat(255)])
      expect(await log(`${filter}=${encodeURIComponent(text)}`)).toEqual([])
    const { status } = await call('GET', `/v1/requests?${filter}=%00`)
    expect(status).toBe(400)
  })

  test('has each entry once when read by cursor, even while more are added', async () => {
    for (let count = 0; count < 7; count += 1) await call('GET', '/v1/tiers')
    const all = (await log('route=/v1/tiers')).map((each: { id: string }) => each.id)
    expect(all).toHaveLength(7)
    const seen: string[] = []
    for (let page = 0; page < 4; page += 1) {
      const cursor = seen.length === 0 ? '' : `&after=${seen.at(-1)}`
      const { body } = await call('GET', `/v1/requests?take=2&route=/v1/tiers${cursor}`)
      seen.push(...body.requests.map((each: { id: string }) => each.id))
      expect(body.hasMore).toBe(page < 3)
      await call('GET', '/v1/tiers')
      await harness.flushRequestLog()
    }
    expect(seen).toEqual(all)
    const newer = (await call('GET', `/v1/requests?route=/v1/tiers&before=${all[0]}`)).body
    expect([newer.requests.length, newer.hasMore]).toEqual([4, false])
  })

  test('never has another partner’s requests, and responds as if they did not exist', async () => {
    const memberId = await harness.addMember({ key })
    const headers = { 'x-idempotency-key': 'mine', 'x-request-id': 'mine' }
    await call('GET', `/v1/members/${memberId}`, { headers })
    const [mine] = await log()
    const other = harness.other.key
    for (const query of [`keyId=${mine.keyId}`, 'requestId=mine', 'idempotencyKey=mine', `resourceId=${memberId}`])
      expect(await log(query, other), query).toEqual([])
    const missing = 'req_01kah4pzc5e4r8v2m6t0x9y3bd'
    for (const path of ['/v1/requests/', '/v1/requests?after=', '/v1/requests?before=']) {
      const [foreign, none] = [
        await harness.call('GET', `${path}${mine.id}`, { key: other }),
        await harness.call('GET', `${path}${missing}`, { key: other }),
      ]
      expect([foreign.status, foreign.text]).toEqual([404, none.text])
    }
  })

  test('needs the scope pay:read', async () => {
    const { secret } = await harness.addKey(['members:read', 'members:write'], { partnerId: partner.partner.id })
    for (const path of ['/v1/requests', '/v1/requests/req_1']) {
      expect((await call('GET', path, { key: secret })).status).toBe(403)
    }
  })

  test('with an idempotency key is replayed', async () => {
    const headers = { 'x-idempotency-key': 'read the log' }
    const first = await call('GET', '/v1/requests', { headers })
    await harness.flushRequestLog()
    const second = await call('GET', '/v1/requests', { headers })
    expect([second.text, second.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
  })
})

test('the worker deletes requests of every partner after 7 days, in chunks', async () => {
  const asked = await call('GET', '/v1/tiers')
  await harness.call('GET', '/v1/tiers', { key: harness.other.key })
  await harness.flushRequestLog()
  const count = async () => {
    const { rows } = await harness.pool.query(
      'select count(*)::integer as count from request_log where partner_id = any($1)',
      [[partner.partner.id, harness.other.partner.id]],
    )
    return rows[0].count
  }
  const read = () => call('GET', `/v1/requests/${asked.headers['x-request-id']}`)
  const forget = () => harness.runTask('remove-old-data')
  const before = await count()
  expect(before).toBeGreaterThanOrEqual(2)
  harness.clock.advance({ days: 7, seconds: -1 })
  await forget()
  expect([(await read()).status, await count()]).toEqual([200, before])
  await harness.flushRequestLog()
  harness.clock.advance({ minutes: 2 })
  await forget()
  expect((await read()).status).toBe(404)
  // The read of this week is left.
  expect(await count()).toBe(1)
})

import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApiResponse, Call } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'
import { sql } from '../database/database.ts'
import { sessionLimits } from './member-sessions.ts'
import { partnerTasks } from './tasks.ts'

const origin = 'https://app.partner.example'
const gbp = (amount: number) => ({ amount, currency: 'GBP' })

let harness: Harness
let memberId: string
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  memberId = await harness.addMember({ available: 20_000 })
})

const create = (body: object, call: Call = {}) =>
  harness.call('POST', '/v1/member-sessions', { body: { memberId, scope: 'withdraw', origin, ...body }, ...call })

/** Calls the API as the session's page does. */
async function openPage(body: object = {}, call: Call = {}) {
  const created = await create(body, call)
  expect(created.status, created.text).toBe(201)
  const { id, token, url } = created.body
  const send = (method: string, path: string, { headers = {}, ...rest }: Call = {}) =>
    harness.call(method, path, {
      key: null,
      headers: { authorization: `Bearer ${token}`, ...(url === null ? { origin } : {}), ...headers },
      ...rest,
    })
  return { id, token, url, send }
}
type Page = Awaited<ReturnType<typeof openPage>>

const quote = async ({ send }: Page, amount = 5_000) =>
  await send('POST', '/v1/me/withdrawals/intent', { body: { amount: gbp(amount) } })
const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const corsOf = ({ headers }: ApiResponse) =>
  Object.keys(headers).filter(name => name.startsWith('access-control-') && headers[name] !== undefined)

describe('a member’s page', () => {
  test('reads the balance, quotes a withdrawal, completes it and follows it with the token alone', async () => {
    const page = await openPage()
    const me = await page.send('GET', '/v1/me')
    expect(me.body).toEqual({
      scope: 'withdraw',
      expiresInSeconds: 900,
      status: 'active',
      employer: 'Acme Couriers',
      bankAccount: { lastFour: '4958' },
    })
    expect((await page.send('GET', '/v1/me/balance')).body.available).toEqual(gbp(20_000))
    const quoted = await quote(page)
    expect(quoted.body).toMatchObject({ amount: gbp(5_000), fee: gbp(50), netAmount: gbp(4_950) })
    expect(quoted.body.expectedAt).toBe(new Date(harness.clock.now().getTime() + 30_000).toISOString())
    const body = { withdrawalIntentId: quoted.body.withdrawalIntentId }
    const completed = await page.send('POST', '/v1/me/withdrawals/complete', { body })
    expect(completed.status, completed.text).toBe(201)
    expect(completed.body).toMatchObject({ memberId, status: 'held', balanceAfter: gbp(15_000) })
    const followed = await page.send('GET', `/v1/me/withdrawals/${completed.body.id}`)
    expect(followed.body).toEqual(completed.body)
    const asPartner = await harness.call('GET', `/v1/pay/withdrawals/${completed.body.id}`)
    expect(asPartner.body).toEqual({ ...followed.body, metadata: {} })
    for (const { text } of [me, quoted, completed, followed]) expect(text).not.toMatch(/66374958|089999|Okafor/)
  })

  test('with the scope read sees everything and withdraws nothing', async () => {
    const page = await openPage()
    const { withdrawalIntentId } = (await quote(page)).body
    const reading = await openPage({ scope: 'read' })
    for (const path of ['/v1/me', '/v1/me/balance']) expect((await reading.send('GET', path)).status).toBe(200)
    expect(problemOf(await quote(reading))).toEqual([403, 'Forbidden', undefined])
    const body = { withdrawalIntentId }
    const refused = await reading.send('POST', '/v1/me/withdrawals/complete', { body })
    expect(problemOf(refused)).toEqual([403, 'Forbidden', undefined])
    expect(refused.headers['access-control-allow-origin']).toBe(origin)
  })

  test('gets the same 404 for the intents and withdrawals of another member, of another partner, and for unknown ones', async () => {
    const page = await openPage()
    const foreign = await harness.addMember({ available: 9_000, key: harness.other.key })
    const others = [
      await openPage({ memberId: await harness.addMember({ available: 9_000 }) }),
      await openPage({ memberId: foreign }, { key: harness.other.key }),
    ]
    for (const other of others) {
      const intent = (await quote(other)).body
      const body = { withdrawalIntentId: intent.withdrawalIntentId }
      const done = await other.send('POST', '/v1/me/withdrawals/complete', { body })
      expect(done.status).toBe(201)
      const open = { withdrawalIntentId: (await quote(other, 1_000)).body.withdrawalIntentId }
      for (const { withdrawalIntentId } of [body, open]) {
        const answers = [
          await page.send('POST', '/v1/me/withdrawals/complete', { body: { withdrawalIntentId } }),
          await page.send('POST', '/v1/me/withdrawals/complete', { body: { withdrawalIntentId: 'wi_123' } }),
        ]
        expect(answers.map(({ status, text }) => [status, text])).toEqual([
          [404, answers[1]?.text],
          [404, answers[1]?.text],
        ])
      }
      const read = [`/v1/me/withdrawals/${done.body.id}`, '/v1/me/withdrawals/w_123'].map(path =>
        page.send('GET', path),
      )
      const [known, unknown] = await Promise.all(read)
      expect([known?.status, known?.text]).toEqual([404, unknown?.text])
    }
    expect((await page.send('GET', '/v1/me/balance')).body.available).toEqual(gbp(20_000))
  })

  test('cannot name a member, call any other operation, or be called with an API key', async () => {
    const page = await openPage()
    const body = { memberId, amount: gbp(5_000) }
    const named = await page.send('POST', '/v1/me/withdrawals/intent', { body })
    expect(problemOf(named)).toEqual([400, 'BodyValidation', 'memberId'])
    for (const path of [`/v1/members/${memberId}`, '/v1/members', '/v1/pay/withdrawals', '/v1/me/nothing']) {
      const answer = await page.send('GET', path)
      expect([...problemOf(answer), corsOf(answer)]).toEqual([401, 'HeaderValidation', 'x-api-key', []])
    }
    for (const path of ['/v1/me', '/v1/me/balance', '/v1/me/withdrawals/w_123']) {
      expect(problemOf(await harness.call('GET', path))).toEqual([401, 'HeaderValidation', 'authorization'])
      const headers = { authorization: `Bearer ${harness.key}` }
      expect(problemOf(await harness.call('GET', path, { headers }))).toEqual([
        401,
        'HeaderValidation',
        'authorization',
      ])
    }
  })

  test('has its own idempotency keys, separate from those of the partner and of other members', async () => {
    const pages = [await openPage(), await openPage({ memberId: await harness.addMember({ available: 9_000 }) })]
    const headers = { 'x-idempotency-key': 'the same' }
    const body = { memberId, amount: gbp(3_000) }
    const ofPartner = await harness.call('POST', '/v1/pay/withdrawals/intent', { headers, body })
    expect(ofPartner.status).toBe(201)
    const ids = new Set([ofPartner.body.withdrawalIntentId])
    for (const { send } of pages) {
      const ask = () => send('POST', '/v1/me/withdrawals/intent', { headers, body: { amount: gbp(5_000) } })
      const [first, again] = [await ask(), await ask()]
      expect([first.status, again.text, again.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
      ids.add(first.body.withdrawalIntentId)
      const other = await send('POST', '/v1/me/withdrawals/intent', { headers, body: { amount: gbp(5_001) } })
      expect(problemOf(other)).toEqual([422, 'HeaderValidation', 'x-idempotency-key'])
    }
    expect(ids.size).toBe(3)
    expect((await harness.call('GET', '/v1/idempotency-keys/the%20same')).body.operation).toBe('createWithdrawalIntent')
    const { rows } = await sql<{
      key: string
    }>`select key from idempotency_keys where key like ${`%${memberId}%`}`.execute(harness.db)
    for (const { key } of rows) {
      const stolen = { 'x-idempotency-key': key }
      const answer = await harness.call('POST', '/v1/pay/withdrawals/intent', { headers: stolen, body })
      expect(answer.headers['idempotency-replayed']).toBeUndefined()
    }
    expect(rows).toHaveLength(1)
  })

  test('has its own rate limit: one looping session does not slow down other sessions or the partner', async () => {
    const [looping, other] = [await openPage(), await openPage()]
    const statuses: number[] = []
    for (let index = 0; index < 40; index++) statuses.push((await looping.send('GET', '/v1/me')).status)
    expect(statuses.filter(status => status === 200)).toHaveLength(30)
    const refused = await looping.send('GET', '/v1/me')
    expect([refused.status, refused.headers['retry-after'], refused.headers['ratelimit-policy']]).toEqual([
      ...[429, '1', '"session";q=30;w=15'],
    ])
    expect((await other.send('GET', '/v1/me')).status).toBe(200)
    expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
  })

  test('can read that it is slowed down, even if its session has ended or belongs to another page', async () => {
    const [ended, elsewhere] = [await openPage({ expiresInSeconds: 60 }), await openPage()]
    harness.clock.advance({ seconds: 60 })
    const other = 'https://other.partner.example'
    for (const [page, from, status] of [[ended, origin, 401] as const, [elsewhere, other, 403] as const]) {
      const answers: ApiResponse[] = []
      for (let index = 0; index < 31; index++)
        answers.push(await page.send('GET', '/v1/me', { headers: { origin: from } }))
      expect(answers.slice(0, 30).every(answer => answer.status === status)).toBe(true)
      expect(answers[30]?.status).toBe(429)
      expect(answers[30]?.headers['access-control-allow-origin']).toBe(from)
    }
  })
})

describe('browsers', () => {
  const preflight = (path: string, from = origin) =>
    harness.app.inject({
      ...{ method: 'OPTIONS', url: path },
      headers: {
        ...{ origin: from, 'access-control-request-method': 'GET' },
        'access-control-request-headers': 'authorization,x-api-key',
      },
    })

  test.each([
    ['/v1/me', 'GET'],
    ['/v1/me/balance', 'GET'],
    ['/v1/me/withdrawals/intent', 'POST'],
    ['/v1/me/withdrawals/complete', 'POST'],
    ['/v1/me/withdrawals/w_123', 'GET'],
  ])('may send a token to %s, and never an API key', async (path, methods) => {
    const { statusCode, headers, body } = await preflight(path)
    expect([statusCode, body]).toEqual([204, ''])
    expect(headers).toMatchObject({
      'access-control-allow-origin': origin,
      'access-control-allow-methods': methods,
      'access-control-allow-headers': 'authorization, content-type, x-idempotency-key',
      vary: 'Origin',
    })
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })

  test.each(['/v1/members', '/v1/member-sessions', '/v1/pay/withdrawals/complete', '/v1/me/nothing', '/openapi.json'])(
    'get no permission for %s',
    async path => {
      const { statusCode, headers } = await preflight(path)
      expect(statusCode).toBeGreaterThanOrEqual(400)
      expect(Object.keys(headers).filter(name => name.startsWith('access-control-'))).toEqual([])
    },
  )

  test('let only the session’s page read its responses', async () => {
    const { send } = await openPage()
    const answer = await send('GET', '/v1/me')
    expect(answer.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'Origin' })
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined()
    const elsewhere = [
      'https://app.partner.example.evil',
      'https://app.partner.example:444',
      'http://app.partner.example',
    ]
    for (const other of [...elsewhere, 'null', 'https://localhost', '']) {
      const refused = await send('GET', '/v1/me', { headers: { origin: other } })
      expect([...problemOf(refused), corsOf(refused)], other).toEqual([403, 'Forbidden', undefined, []])
    }
  })

  test('use a session for the hosted page only from this server', async () => {
    const { send, url, token } = await openPage({ origin: undefined })
    expect(url).toBe(`http://localhost:80/m#${token}`.replace(':80', ''))
    expect((await send('GET', '/v1/me')).status).toBe(200)
    expect((await send('GET', '/v1/me', { headers: { origin: 'http://localhost' } })).status).toBe(200)
    const refused = await send('GET', '/v1/me', { headers: { origin } })
    expect([...problemOf(refused), corsOf(refused)]).toEqual([403, 'Forbidden', undefined, []])
  })
})

describe('a session', () => {
  test('expires by real time, whatever the clock of the partner says', async () => {
    const { key } = await harness.addPartner('Early')
    const early = await harness.addMember({ key })
    const { send } = await openPage({ memberId: early, expiresInSeconds: 60 }, { key })
    expect((await harness.call('POST', '/v1/sandbox/clock', { key, body: { by: 'P3D' } })).status).toBe(200)
    expect((await send('GET', '/v1/me')).status).toBe(200)
    harness.clock.advance({ seconds: 60 })
    const expired = await send('GET', '/v1/me')
    expect(problemOf(expired)).toEqual([401, 'HeaderValidation', 'authorization'])
    expect(expired.headers['access-control-allow-origin']).toBe(origin)
  })

  test('lasts at most 15 minutes', async () => {
    for (const expiresInSeconds of [0, 901, 1.5]) {
      const answer = await create({ expiresInSeconds })
      expect(problemOf(answer)).toEqual([400, 'BodyValidation', 'expiresInSeconds'])
    }
    const asked = harness.clock.now().getTime()
    expect((await create({})).body.expiresAt).toBe(new Date(asked + 900_000).toISOString())
  })

  test('ends with its key, which expires by the partner’s clock', async () => {
    const { key, partner } = await harness.addPartner('Expiring')
    const member = await harness.addMember({ key })
    const expiresAt = new Date(harness.clock.now().getTime() + 86_400_000)
    const { secret } = await harness.addKey(['pay:write'], { expiresAt, partnerId: partner.id })
    const page = await openPage({ memberId: member }, { key: secret })
    expect((await page.send('GET', '/v1/me')).status).toBe(200)
    expect((await harness.call('POST', '/v1/sandbox/clock', { key, body: { by: 'P1D' } })).status).toBe(200)
    expect(problemOf(await page.send('GET', '/v1/me'))).toEqual([401, 'HeaderValidation', 'authorization'])
  })

  test('ends at once when its key is revoked or its member is offboarded', async () => {
    const { key, secret } = await harness.addKey(['pay:write'])
    const [byKey, byMember] = [await openPage({}, { key: secret }), await openPage()]
    await harness.pool.query('update api_keys set revoked_at = now() where id = $1', [key.id])
    expect(problemOf(await byKey.send('GET', '/v1/me'))).toEqual([401, 'HeaderValidation', 'authorization'])
    expect((await byMember.send('GET', '/v1/me')).status).toBe(200)
    expect((await harness.call('DELETE', `/v1/members/${memberId}`)).status).toBe(200)
    expect(problemOf(await byMember.send('GET', '/v1/me'))).toEqual([401, 'HeaderValidation', 'authorization'])
    expect(problemOf(await create({}))).toEqual([409, 'Conflict', undefined])
  })

  test('is one of at most ten per member: a new one ends the oldest', async () => {
    const pages: Page[] = []
    for (let index = 0; index < sessionLimits.perMemberMax + 2; index++) pages.push(await openPage())
    const statuses = await Promise.all(pages.map(async ({ send }) => (await send('GET', '/v1/me')).status))
    expect(statuses).toEqual([401, 401, ...Array(sessionLimits.perMemberMax).fill(200)])
  })

  test('is created only for a member of the partner, and only with the scope pay:write', async () => {
    for (const id of ['mem_123', await harness.addMember({ key: harness.other.key })]) {
      const answer = await create({ memberId: id })
      expect(answer.body.issues).toEqual([{ code: 'MemberNotFound', memberId: id, message: expect.any(String) }])
    }
    const { secret } = await harness.addKey(['members:read', 'members:write', 'pay:read'])
    expect(problemOf(await create({}, { key: secret }))).toEqual([403, 'Forbidden', undefined])
  })

  test.each([
    'https://app.partner.example/',
    'https://app.partner.example/path',
    'https://App.partner.example',
    'https://user@app.partner.example',
    'https://app.partner.example:443',
    'https://*.partner.example',
    'ftp://app.partner.example',
    'null',
    '*',
  ])('cannot be bound to %s, which is not an origin', async given => {
    expect(problemOf(await create({ origin: given }))).toEqual([400, 'BodyValidation', 'origin'])
  })

  test('leaves the hash of its token, an audit entry without the token, and its requests in the log of its key', async () => {
    const { key, secret } = await harness.addKey(['pay:write'])
    const { id, token, send } = await openPage({}, { key: secret })
    await send('GET', '/v1/me', { headers: { 'x-request-id': 'from-the-page' } })
    const [entry] = await list(harness.db, { filter: { resourceId: id }, take: 1 })
    expect(entry).toMatchObject({ action: 'member_session.create', actor: key.id, details: { memberId, origin } })
    await harness.flushRequestLog()
    const logged = await harness.call('GET', '/v1/requests?requestId=from-the-page')
    expect(logged.body.requests).toMatchObject([{ path: '/v1/me', keyId: key.id }])
    const { rows } = await sql`
      select s.*::text as row from (select member_sessions from member_sessions) s
      union all select a::text from audit_log a
      union all select r::text from request_log r`.execute(harness.db)
    expect(rows.length).toBeGreaterThan(2)
    expect(JSON.stringify(rows)).not.toContain(token)
  })

  test('is deleted an hour after it has expired', async () => {
    const { id } = await openPage()
    const count = async () => (await harness.pool.query('select from member_sessions where id = $1', [id])).rowCount
    const clean = () =>
      partnerTasks['forget-member-sessions']({
        ...{ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now },
      })
    harness.clock.advance({ minutes: 74 })
    await clean()
    expect(await count()).toBe(1)
    harness.clock.advance({ minutes: 1 })
    await clean()
    expect(await count()).toBe(0)
  })
})

test('a token that is missing, malformed, unknown or of the other mode is refused', async () => {
  const { token } = await openPage()
  const wrong = ['', 'Bearer', `Bearer ${token}x`, `Bearer ${token.replace('test', 'live')}`, `Basic ${token}`, token]
  for (const authorization of [...wrong, `Bearer ${token},${token}`]) {
    const answer = await harness.call('GET', '/v1/me', { key: null, headers: { authorization, origin } })
    expect([...problemOf(answer), corsOf(answer)], authorization).toEqual([
      401,
      'HeaderValidation',
      'authorization',
      [],
    ])
  }
})

test('an address that guesses tokens is slowed down; other addresses are not', async () => {
  const page = await openPage()
  const from = (remoteAddress: string, token: string) =>
    harness.app.inject({ url: '/v1/me', remoteAddress, headers: { authorization: `Bearer ${token}`, origin } })
  const statuses: number[] = []
  for (let index = 0; index < 21; index++) statuses.push((await from('192.0.2.7', `mms_test_${index}`)).statusCode)
  expect(statuses.at(-2)).toBe(401)
  expect(statuses.at(-1)).toBe(429)
  expect((await from('192.0.2.8', page.token)).statusCode).toBe(200)
})

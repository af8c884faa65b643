import { afterAll, beforeAll, expect, test } from 'vitest'
import { ownOrigin, pageHeaders, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'
import { createDemoLink } from './demo-operator.ts'
import { sessionLimits } from './sessions.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

/** Uses a link as a browser at this address does. */
const open = async (token: string, { headers = pageHeaders(), from = '127.0.0.1' } = {}) => {
  const response = await harness.app.inject({
    method: 'POST',
    url: '/console/v1/sign-in/link',
    remoteAddress: from,
    headers: { 'content-type': 'application/json', ...headers },
    payload: JSON.stringify({ token }),
  })
  const cookie = [response.headers['set-cookie'] ?? []].flat()[0] ?? ''
  return { status: response.statusCode, body: response.json(), cookie, token: /=([^;]*)/.exec(cookie)?.[1] ?? '' }
}
const session = (token: string, headers: Record<string, string> = {}) =>
  harness.call('GET', '/console/v1/session', { key: null, headers: { ...pageHeaders(token), ...headers } })

test('the link of a sandbox signs in once, as an operator who sees every partner, and both are in the audit log', async () => {
  const link = await createDemoLink(harness.db, harness.clock.now())
  const first = await open(link)
  expect([first.status, first.body]).toEqual([
    200,
    {
      user: expect.objectContaining({ name: 'Demo operator', hasTotp: false }),
      mode: 'sandbox',
      isOperator: true,
      partners: [harness.other.partner, harness.partner].map(({ id, name }) => ({
        ...{ id, name, roles: [] },
        timeZone: 'Europe/London',
      })),
      idleExpiresAt: '2026-03-10T09:30:00.000Z',
      expiresAt: '2026-03-10T21:00:00.000Z',
    },
  ])
  expect(first.cookie).toMatch(/^midmonth-console=mmc_test_[0-9A-Za-z]{49}; Path=\/; HttpOnly; SameSite=Strict$/)
  expect((await session(first.token)).body).toEqual(first.body)

  const again = await open(link)
  expect([again.status, again.cookie]).toEqual([401, ''])
  const [entry] = await list(harness.db, { filter: { actions: ['user.sign_in'] }, take: 10 })
  expect(entry).toMatchObject({
    ...{ partnerId: null, actorKind: 'user', actor: first.body.user.id, resourceId: first.body.user.id },
    ...{ address: '127.0.0.1', details: { method: 'link' } },
  })

  await harness.call('POST', '/console/v1/sign-out', { key: null, headers: pageHeaders(first.token) })
  expect((await session(first.token)).status).toBe(401)
})

test('a link works only on this machine, from a page of this server, until it expires', async () => {
  const now = harness.clock.now()
  const link = await createDemoLink(harness.db, now)
  expect((await open(link, { from: '192.0.2.7' })).status).toBe(403)
  expect((await open(link, { headers: { ...pageHeaders(), host: 'pay.example' } })).status).toBe(403)
  expect((await open(link, { headers: { ...pageHeaders(), origin: 'http://evil.example' } })).status).toBe(403)
  expect((await open(link, { headers: { ...pageHeaders(), 'sec-fetch-site': 'same-site' } })).status).toBe(403)
  expect((await open(`${link}x`)).status).toBe(401)
  expect((await open(link)).status).toBe(200)

  const late = await createDemoLink(harness.db, new Date(now.getTime() - 24 * 3_600_000))
  expect((await open(late)).status).toBe(401)
})

test('a session ends after half an hour without use, and after twelve hours in any case', async () => {
  const started = harness.clock.now()
  const { call } = await signIn(harness)
  const at = async (ms: number) => {
    harness.clock.set(new Date(started.getTime() + ms))
    return (await call('GET', '/console/v1/session')).status
  }
  const { idleMs, absoluteMs } = sessionLimits
  let ms = 0
  for (; ms < absoluteMs; ms += idleMs - 60_000) expect(await at(ms), `${ms} ms`).toBe(200)
  expect(await at(absoluteMs)).toBe(401)

  const idle = await signIn(harness)
  harness.clock.advance({ minutes: 30 })
  expect((await idle.call('GET', '/console/v1/session')).status).toBe(401)
  harness.clock.set(started)
})

test('the session calls the partner API for a partner with which the user has a role, and for no other', async () => {
  const memberId = await harness.addMember({ available: 5_000 })
  const payroll = await signIn(harness, { roles: ['payroll'] })
  expect((await payroll.call('GET', `/v1/members/${memberId}`)).body).toMatchObject({ memberId })
  const changed = await payroll.call('PATCH', `/v1/members/${memberId}`, { body: { firstName: 'Samira' } })
  expect(changed.status).toBe(200)
  const filter = { partnerId: harness.partner.id, actor: payroll.user.id }
  expect(await list(harness.db, { filter, take: 10 })).toEqual([
    expect.objectContaining({ actorKind: 'user', action: 'member.update', resourceId: memberId }),
  ])
  expect((await payroll.call('GET', '/v1/webhooks')).status).toBe(403)
  for (const partner of [harness.other.partner.id, 'par_01kah4pzc5e4r8v2m6t0x9y3bd'])
    expect(await payroll.call('GET', '/v1/members', { partner })).toMatchObject({
      status: 404,
      body: { issues: [{ code: 'NotFound', message: 'There is no such partner, or you have no role with it' }] },
    })
  expect((await payroll.call('GET', '/v1/members', { partner: null })).status).toBe(400)

  const operator = await signIn(harness, { isOperator: true })
  expect((await operator.call('GET', '/v1/webhooks', { partner: harness.other.partner.id })).status).toBe(200)
})

test('a request that is not from a page of this server is refused, whatever its cookie', async () => {
  const { call } = await signIn(harness, { roles: ['admin'] })
  const refused: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://localhost:81' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
  ]
  for (const headers of refused) {
    expect((await call('GET', '/v1/tiers', { headers })).status, JSON.stringify(headers)).toBe(403)
    expect((await call('POST', '/v1/webhooks', { headers, body: {} })).status, JSON.stringify(headers)).toBe(403)
  }
  expect((await call('GET', '/v1/tiers', { headers: { origin: ownOrigin } })).status).toBe(200)
})

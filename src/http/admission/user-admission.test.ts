import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, type ConsoleUser, ownOrigin, pageHeaders, signIn } from '../../../test/harness/console.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { generateSecret } from '../../kernel/secrets.ts'

let harness: Harness
let admin: ConsoleUser
let operator: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  admin = await signIn(harness, { roles: ['admin'] })
  operator = await signIn(harness, { isOperator: true })
})
afterAll(() => harness.stop())

const session = '/console/v1/session'

test('a flood of unknown tokens from a network is refused without a lookup, and locks out no signed-in user there', async () => {
  const inOffice = new Browser(harness, { address: '127.5.0.1' })
  inOffice.cookies.set('midmonth-console', admin.token)
  expect((await inOffice.call('GET', session)).status).toBe(200)
  const guess = async () => {
    const browser = new Browser(harness, { address: '127.5.0.1' })
    browser.cookies.set('midmonth-console', generateSecret('mmc_test_'))
    return (await browser.call('GET', session)).status
  }
  let status = await guess()
  for (let guesses = 1; guesses < 100 && status === 401; guesses++) status = await guess()
  expect(status).toBe(429)
  // A page sends its requests concurrently.
  const page = await Promise.all(Array.from({ length: 12 }, () => inOffice.call('GET', session)))
  expect(page.map(({ status }) => status)).toEqual(Array(12).fill(200))
  // A session that has ended is like any other unknown token.
  await admin.call('POST', '/console/v1/sign-out', { partner: null })
  expect((await inOffice.call('GET', session)).status).toBe(401)
  expect((await inOffice.call('GET', session)).status).toBe(429)
  admin = await signIn(harness, { roles: ['admin'] })
})

test('users of a suspended partner cannot manage keys or users, or read the audit log; operators can', async () => {
  const { partner } = await harness.addPartner('Suspended')
  const { id } = partner
  const user = await signIn(harness, { roles: ['admin'], partnerId: id })
  const paths = [`/operator/v1/partners/${id}/keys`, `/operator/v1/partners/${id}/audit-log`, '/console/v1/users']
  const statuses = async (by: ConsoleUser) => {
    const found: number[] = []
    for (const path of paths) found.push((await by.call('GET', path, { partner: id })).status)
    return found
  }
  expect(await statuses(user)).toEqual([200, 200, 200])
  await operator.call('POST', `/operator/v1/partners/${id}/suspend`, { partner: null, body: {} })
  expect(await statuses(user)).toEqual([403, 403, 403])
  expect((await user.call('POST', `/operator/v1/partners/${id}/keys`, { partner: null, body: {} })).status).toBe(403)
  expect(await statuses(operator)).toEqual([200, 200, 200])
})

const writing = [
  ['POST', '/console/v1/sign-in'],
  ['POST', '/console/v1/sign-in/link'],
  ['POST', '/console/v1/set-up'],
  ['POST', '/console/v1/sign-out'],
  ['DELETE', '/console/v1/sessions/uss_123'],
  ['POST', '/console/v1/password'],
  ['POST', '/console/v1/password/reset'],
  ['POST', '/console/v1/totp'],
  ['POST', '/console/v1/totp/confirm'],
  ['DELETE', '/console/v1/totp'],
  ['PATCH', '/console/v1/users/usr_123'],
  ['DELETE', '/console/v1/users/usr_123'],
  ['DELETE', '/console/v1/users/usr_123/totp'],
  ['DELETE', '/console/v1/users/usr_123/identity'],
  ['POST', '/console/v1/users/usr_123/password-link'],
  ['POST', '/console/v1/invitations'],
  ['DELETE', '/console/v1/invitations/inv_123'],
  ['POST', '/console/v1/invitations/find'],
  ['POST', '/console/v1/invitations/accept'],
  ['POST', '/console/v1/errors'],
  ['POST', '/console/v1/members/mem_123/account'],
  ['POST', '/operator/v1/members/mem_123/release'],
  ['PUT', '/console/v1/logo'],
  ['DELETE', '/console/v1/logo'],
  ['POST', '/operator/v1/partners'],
  ['POST', '/operator/v1/ledger-verifications'],
  ['POST', '/v1/members'],
  ['DELETE', '/v1/members/mem_123'],
] as const

test.each(writing)('%s %s is refused for pages of other servers, whatever they send', async (method, url) => {
  const cookie = `midmonth-console=${operator.token}`
  const own = { host: 'localhost', cookie, 'midmonth-partner': harness.partner.id }
  const attempts: Record<string, string>[] = [
    // A form, or a script without CORS, from another site, port, scheme or subdomain, or from a hidden origin.
    { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'content-type': 'text/plain' },
    { origin: 'http://localhost:9999', 'sec-fetch-site': 'same-site' },
    { origin: 'https://localhost', 'sec-fetch-site': 'same-site' },
    { origin: 'http://console.localhost', 'sec-fetch-site': 'same-site' },
    { origin: 'http://localhost.evil.example', 'sec-fetch-site': 'cross-site' },
    { origin: 'null', 'sec-fetch-site': 'cross-site', 'content-type': 'application/x-www-form-urlencoded' },
    { origin: ownOrigin, 'sec-fetch-site': 'cross-site' },
    { origin: ownOrigin, 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'same-origin' },
    { 'content-type': 'text/plain' },
    {},
  ]
  for (const headers of attempts) {
    const type = headers['content-type'] ?? 'application/json'
    const { statusCode } = await harness.app.inject({
      ...{ method, url, payload: '{}' },
      headers: { ...own, 'content-type': type, ...headers },
    })
    expect(statusCode, JSON.stringify(headers)).toBe(403)
  }
  // A page of this server may send only JSON.
  const { statusCode } = await harness.app.inject({
    ...{ method, url, payload: 'a=b' },
    headers: { ...pageHeaders(operator.token), ...own, 'content-type': 'application/x-www-form-urlencoded' },
  })
  expect(statusCode).toBe(415)
})

test('the first of several cookies counts, and none with another name; a cookie opens no member page’s and no webhook’s route', async () => {
  const call = async (cookie: string, url = session, more: Record<string, string> = {}) =>
    (await harness.app.inject({ url, headers: { ...pageHeaders(), cookie, ...more } })).statusCode
  const { token } = admin
  expect(await call(`a=b; midmonth-console=${token}; midmonth-console=mmc_test_other`)).toBe(200)
  expect(await call(`midmonth-console=mmc_test_other; midmonth-console=${token}`)).toBe(401)
  // Over plain http this server does not set the prefixed name.
  expect(await call(`__Host-midmonth=${token}`)).toBe(401)
  expect(await call(`Midmonth-Console=${token}`)).toBe(401)
  expect(await call(`midmonth-console="${token}"`)).toBe(401)
  expect(await call(`midmonth-console=${token}`, '/v1/me')).toBe(401)
  expect(await call(`midmonth-console=${token}`, '/v1/tiers', { 'x-api-key': '' })).toBe(401)
})

test('the header of the partner names exactly one', async () => {
  const { id } = harness.partner
  for (const partner of [
    '',
    ' ',
    `${id},${id}`,
    `${id}, ${harness.other.partner.id}`,
    id.toUpperCase(),
    'par_%00',
    `${id}'`,
  ])
    expect((await operator.call('GET', '/v1/tiers', { partner })).status, partner).toBe(400)
})

test('moving a sandbox clock neither prolongs nor ends a session', async () => {
  const { partner } = await harness.addPartner('Ahead')
  const user = await signIn(harness, { roles: ['developer'], partnerId: partner.id })
  const moved = await user.call('POST', '/v1/sandbox/clock', { body: { by: 'P2D' } })
  expect(moved.status, moved.text).toBe(200)
  const { expiresAt } = (await user.call('GET', session)).body
  expect(Date.parse(expiresAt) - harness.clock.now().getTime()).toBe(12 * 3_600_000)
  expect((await user.call('GET', '/v1/tiers')).status).toBe(200)
  harness.clock.advance({ minutes: 30 })
  expect((await user.call('GET', '/v1/tiers')).status).toBe(401)
  admin = await signIn(harness, { roles: ['admin'] })
  operator = await signIn(harness, { isOperator: true })
})

test('a body that is too large, too deeply nested or not JSON is refused before it costs a password hash', async () => {
  const send = async (payload: string, type = 'application/json') =>
    (
      await harness.app.inject({
        ...{ method: 'POST', url: '/console/v1/sign-in', payload },
        headers: { ...pageHeaders(), 'content-type': type },
      })
    ).statusCode
  const password = 'x'.repeat(1_025)
  expect(await send(JSON.stringify({ email: 'a@b.example', password }))).toBe(400)
  expect(await send(JSON.stringify({ email: 'a@b.example', password: 'x'.repeat(3_000_000) }))).toBe(413)
  expect(await send(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)).toBe(400)
  expect(await send('{"email":"a@b.example","email":"c@d.example","password":"x"}')).toBe(400)
  expect(await send('{"__proto__":{"isOperator":true},"email":"a@b.example","password":"x"}')).toBe(400)
})

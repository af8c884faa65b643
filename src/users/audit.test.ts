import { readdirSync, readFileSync } from 'node:fs'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, type ConsoleUser, pageHeaders, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { type Action, list } from '../audit-log/audit-log.ts'
import { operations } from '../operations.ts'
import { createLink, type LinkPurpose } from './links.ts'

/** The recorded actions of each writing operation of the console, or why there is none. */
const recorded: Record<string, Action[] | { because: string }> = {
  'POST /console/v1/sign-in': ['user.sign_in'],
  'POST /console/v1/sign-in/link': ['user.sign_in'],
  'POST /console/v1/set-up': ['user.create', 'user.sign_in'],
  'POST /console/v1/sign-out': ['user.sign_out'],
  'DELETE /console/v1/sessions/:sessionId': ['user.end_session'],
  'POST /console/v1/password': ['user.set_password'],
  'POST /console/v1/password/reset': ['user.set_password'],
  'POST /console/v1/totp': { because: 'the second factor counts once it is confirmed' },
  'POST /console/v1/totp/confirm': ['user.add_totp'],
  'DELETE /console/v1/totp': ['user.remove_totp'],
  'PATCH /console/v1/users/:userId': ['user.set_roles'],
  'DELETE /console/v1/users/:userId': ['user.disable'],
  'DELETE /console/v1/users/:userId/totp': ['user.remove_totp'],
  'DELETE /console/v1/users/:userId/identity': ['user.remove_identity'],
  'POST /console/v1/users/:userId/password-link': ['user.link'],
  'POST /console/v1/invitations': ['invitation.create'],
  'DELETE /console/v1/invitations/:invitationId': ['invitation.delete'],
  'POST /console/v1/invitations/find': { because: 'it only reads' },
  'POST /console/v1/invitations/accept': ['user.create', 'invitation.accept', 'user.sign_in'],
  'POST /console/v1/errors': { because: 'it writes to the log of the service' },
  'POST /console/v1/members/:memberId/account': ['member.reveal'],
  'POST /console/v1/members/:memberId/data-export': ['member.data_export'],
  'PUT /console/v1/logo': ['partner.set_logo'],
  'DELETE /console/v1/logo': ['partner.remove_logo'],
  'POST /console/v1/members/:memberId/reinstate': ['member.reinstate'],
}

const password = 'correct horse battery'
const another = 'another good password'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

let count = 0
const everything = async (of = harness) => (await list(of.db, { filter: {}, take: 1_000 })).toReversed()
const link = (purpose: LinkPurpose, userId: string | null, of = harness) =>
  of.db.transaction().execute(tx => createLink(tx, { purpose, userId, lifeMs: 3_600_000, now: of.clock.now() }))

test('every operation of the console that writes is recorded or has a reason not to be', () => {
  const source = new URL('../', import.meta.url)
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(name => /(?<!\.test)\.ts$/.test(name))
  const routes = files.flatMap(name =>
    [
      ...readFileSync(new URL(name, source), 'utf8').matchAll(
        /app\.(post|put|patch|delete)\(\s*'(\/console\/v1[^']*)'/g,
      ),
    ].map(([, method = '', url]) => `${method.toUpperCase()} ${url}`),
  )
  const declared = operations
    .filter(({ method, path }) => method !== 'GET' && path.startsWith('/console/v1/'))
    // They check a file and keep nothing of it.
    .filter(({ fileBody, csvBody }) => fileBody === undefined && csvBody === undefined)
    .map(({ method, path }) => `${method} ${path}`)
  expect([...routes, ...declared].sort()).toEqual(Object.keys(recorded).sort())
})

test('each change in the console leaves its rows once, with the user and the request, and no address, name, token or password', async () => {
  const seen = new Set<string>()
  const secrets = [password, another, '@console.example', 'Founder', 'Ada', goodAccount.accountNumber]
  /** Sends a request as a page of the console does, and checks the rows that it leaves. @param who undefined for a stranger */
  const does = async (
    route: string,
    who: ConsoleUser | undefined,
    {
      params = [],
      body,
      partner = harness.partner.id as string | null,
      of = harness,
    }: { params?: string[]; body?: object; partner?: string | null; of?: Harness } = {},
  ) => {
    count += 1
    seen.add(route)
    const [method = '', path = ''] = route.split(' ')
    const values = [...params]
    const headers = {
      ...pageHeaders(who?.token),
      'x-request-id': `console-${count}`,
      ...(partner === null ? {} : { 'midmonth-partner': partner }),
    }
    const url = path.replace(/:\w+/g, () => values.shift() ?? '')
    const answer = await of.call(method, url, { key: null, headers, ...(body === undefined ? {} : { body }) })
    expect(answer.status, `${route}: ${answer.text}`).toBeLessThan(300)
    const found = (await everything(of)).filter(({ requestId }) => requestId === `console-${count}`)
    const expected = recorded[route]
    expect(
      found.map(({ action }) => action),
      route,
    ).toEqual(Array.isArray(expected) ? expected : [])
    for (const entry of found) {
      expect(entry, route).toMatchObject({ actorKind: 'user', address: '127.0.0.1' })
      if (who !== undefined) expect(entry.actor, route).toBe(who.user.id)
    }
    const cookies = [answer.headers['set-cookie'] ?? []].flat().map(cookie => /=([^;]{20,})/.exec(cookie)?.[1])
    secrets.push(...cookies.filter(value => value !== undefined))
    return { body: answer.body, found }
  }
  const tokenOf = ({ body }: { body: { url: string } }) => {
    const token = body.url.split('#')[1] ?? ''
    secrets.push(token)
    return token
  }
  const operator = await signIn(harness, { isOperator: true })
  const admin = await signIn(harness, { roles: ['admin'], password })
  const target = await signIn(harness, { roles: ['viewer'] })
  const { email, id: adminId } = admin.user

  await does('POST /console/v1/errors', admin, { body: { message: 'x', stack: 'y', page: '/console' } })
  await does('POST /console/v1/sign-in', undefined, { body: { email, password } })
  await does('POST /console/v1/sign-in/link', undefined, { body: { token: await link('sign_in', adminId) } })
  const { sessions } = (await admin.call('GET', '/console/v1/sessions')).body
  await does('DELETE /console/v1/sessions/:sessionId', admin, { params: [sessions[0].id] })
  await does('POST /console/v1/password', admin, { body: { password, newPassword: another } })
  const { body: secret } = await does('POST /console/v1/totp', admin, { body: { password: another } })
  const code = new TOTP({ secret: Secret.fromBase32(secret.secret) }).generate({
    timestamp: harness.clock.now().getTime(),
  })
  const { body: confirmed } = await does('POST /console/v1/totp/confirm', admin, { body: { code } })
  secrets.push(secret.secret, ...confirmed.recoveryCodes)
  await does('DELETE /console/v1/totp', admin, { body: { password: another } })
  const roles = await does('PATCH /console/v1/users/:userId', admin, {
    params: [target.user.id],
    body: { roles: ['support'] },
  })
  expect(roles.found).toMatchObject([
    { partnerId: harness.partner.id, details: { before: { roles: ['viewer'] }, after: { roles: ['support'] } } },
  ])
  const invite = () =>
    does('POST /console/v1/invitations', admin, { body: { email: `i${count}@console.example`, roles: ['viewer'] } })
  const deleted = await invite()
  await does('DELETE /console/v1/invitations/:invitationId', admin, { params: [deleted.body.id] })
  const token = tokenOf(await invite())
  await does('POST /console/v1/invitations/find', undefined, { body: { token } })
  await does('POST /console/v1/invitations/accept', undefined, { body: { token, name: 'Ada', password } })
  const memberId = await harness.addMember()
  const reveal = { params: [memberId], body: { reason: 'the bank asked' } }
  expect((await does('POST /console/v1/members/:memberId/account', admin, reveal)).found).toMatchObject([
    { partnerId: harness.partner.id, resourceId: memberId, details: { lastFour: goodAccount.accountNumber.slice(-4) } },
  ])
  await does('POST /console/v1/members/:memberId/data-export', admin, reveal)
  await harness.call('DELETE', `/v1/members/${memberId}`)
  const picture = Buffer.from('RIFF\x1e\0\0\0WEBPVP8L\x0a\0\0\0\x2f\x1f\0\0\0', 'latin1').toString('base64')
  await does('PUT /console/v1/logo', admin, { body: { data: picture } })
  await does('DELETE /console/v1/logo', admin)
  await does('POST /console/v1/members/:memberId/reinstate', admin, { params: [memberId] })
  const asOperator = { params: [adminId], partner: null }
  const made = await does('POST /console/v1/users/:userId/password-link', operator, asOperator)
  await does('POST /console/v1/password/reset', undefined, { body: { token: tokenOf(made), newPassword: password } })
  const again = await signIn(harness, { password })
  const { body: begun } = await again.call('POST', '/console/v1/totp', { body: { password } })
  const first = new TOTP({ secret: Secret.fromBase32(begun.secret) }).generate({
    timestamp: harness.clock.now().getTime(),
  })
  await again.call('POST', '/console/v1/totp/confirm', { body: { code: first } })
  await does('DELETE /console/v1/users/:userId/totp', operator, { params: [again.user.id], partner: null })
  const identity = {
    issuer: 'https://login.example.com',
    subject: 'one',
    userId: again.user.id,
    linkedAt: harness.clock.now(),
  }
  await harness.db.insertInto('userIdentities').values(identity).execute()
  await does('DELETE /console/v1/users/:userId/identity', operator, { params: [again.user.id], partner: null })
  const disabled = await does('DELETE /console/v1/users/:userId', operator, { ...asOperator, params: [again.user.id] })
  expect(disabled.found).toMatchObject([
    { partnerId: null, details: { before: { isDisabled: false }, after: { isDisabled: true } } },
  ])
  await does('POST /console/v1/sign-out', operator, { partner: null })

  const live = await startHarness({ mode: 'live' })
  try {
    const body = { token: await link('set_up', null, live), email: 'f@console.example', name: 'Founder', password }
    await does('POST /console/v1/set-up', undefined, { body, partner: null, of: live })
    const text = JSON.stringify([...(await everything()), ...(await everything(live))])
    for (const secret of [...secrets, operator.token, admin.token]) expect(text).not.toContain(secret)
  } finally {
    await live.stop()
  }
  expect([...seen].sort(), 'every operation was called').toEqual(Object.keys(recorded).sort())
})

test('a request that is refused or changes nothing leaves no row, except a failed sign-in', async () => {
  const operator = await signIn(harness, { isOperator: true })
  const viewer = await signIn(harness, { roles: ['viewer'], password })
  const admin = await signIn(harness, { roles: ['admin'] })
  const memberId = await harness.addMember()
  const before = await everything()
  const refused = async (who: ConsoleUser, method: string, path: string, body?: object, partner?: null) => {
    const options = { ...(body === undefined ? {} : { body }), ...(partner === null ? { partner } : {}) }
    expect((await who.call(method, `/console/v1${path}`, options)).status, path).toBeGreaterThanOrEqual(400)
  }
  const user = `/users/${viewer.user.id}`
  await refused(viewer, 'POST', `/members/${memberId}/account`, { reason: 'curiosity' })
  await refused(viewer, 'PATCH', user, { roles: ['admin'] })
  await refused(viewer, 'POST', '/invitations', { email: 'x@console.example', roles: ['admin'] })
  await refused(admin, 'PATCH', `/users/${admin.user.id}`, { roles: ['viewer'] })
  await refused(admin, 'DELETE', '/invitations/inv_123')
  await refused(admin, 'POST', '/members/mem_123/account', { reason: 'none such' })
  await refused(operator, 'DELETE', `/users/${operator.user.id}`, undefined, null)
  await refused(operator, 'POST', `/users/${operator.user.id}/password-link`, undefined, null)
  await refused(operator, 'POST', '/users/usr_123/password-link', undefined, null)
  await refused(operator, 'DELETE', `/users/${operator.user.id}/identity`, undefined, null)
  await refused(admin, 'DELETE', `${user}/identity`, undefined, null)
  await refused(viewer, 'DELETE', '/sessions/uss_123')
  await refused(viewer, 'POST', '/password', { password, newPassword: 'short' })
  for (const token of [await link('password', viewer.user.id), 'mml_x'])
    await refused(viewer, 'POST', '/password/reset', { token, newPassword: 'short' })
  expect((await admin.call('PATCH', `/console/v1${user}`, { body: { roles: ['viewer'] } })).status).toBe(200)
  const unchanged = { partner: null, body: { isOperator: false } }
  expect((await operator.call('PATCH', `/console/v1${user}`, unchanged)).status).toBe(200)
  expect((await operator.call('DELETE', `/console/v1${user}/totp`, { partner: null })).status).toBe(200)
  expect((await operator.call('DELETE', `/console/v1${user}/identity`, { partner: null })).status).toBe(200)
  expect(await everything()).toEqual(before)

  const body = { email: 'unknown@console.example', password: `${password}!` }
  expect((await new Browser(harness).call('POST', '/console/v1/sign-in', { body })).status).toBe(401)
  const [failed, ...others] = (await everything()).slice(before.length)
  expect(others).toEqual([])
  expect(failed).toMatchObject({
    ...{ action: 'user.sign_in_failed', actorKind: 'worker', actor: 'sign-in', resourceId: 'unknown' },
    details: { reason: 'password' },
  })
})

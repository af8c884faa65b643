import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'
import { roles } from './roles.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const password = 'correct horse battery'
const codesOf = (answer: { body: { issues?: { code: string }[] } }) => answer.body.issues?.map(({ code }) => code)
const signInAs = (browser: Browser, { user }: ConsoleUser, body: object = {}) =>
  browser.call('POST', '/console/v1/sign-in', { body: { email: user.email, password, ...body } })
const isSignedIn = async ({ call }: ConsoleUser) => (await call('GET', '/console/v1/session')).status === 200
const actionsOn = async (resourceId: string) =>
  (await list(harness.db, { filter: { resourceId }, take: 100 })).map(({ action }) => action)

test('a user lists their sessions and ends one; another user’s cannot be ended', async () => {
  const first = await signIn(harness, { password, roles: ['viewer'] })
  const second = new Browser(harness)
  expect((await signInAs(second, first)).status).toBe(200)
  const { sessions } = (await second.call('GET', '/console/v1/sessions')).body
  expect(sessions).toEqual([
    expect.objectContaining({ isCurrent: true, method: 'password', address: '127.0.0.1' }),
    expect.objectContaining({ isCurrent: false, userAgent: 'a test' }),
  ])
  expect(JSON.stringify(sessions)).not.toMatch(/hash|mmc_/)
  const stranger = await signIn(harness)
  const path = `/console/v1/sessions/${sessions[1].id}`
  expect((await stranger.call('DELETE', path)).status).toBe(404)
  expect((await second.call('DELETE', path)).status).toBe(200)
  expect(await isSignedIn(first)).toBe(false)
  expect((await second.call('GET', '/console/v1/session')).status).toBe(200)
})

test('a new password needs the old one, and ends the other sessions', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const here = new Browser(harness)
  await signInAs(here, mine)
  const change = (body: object) => here.call('POST', '/console/v1/password', { body })
  expect(codesOf(await change({ password: 'a wrong one', newPassword: 'another good one' }))).toEqual(['SignInRefused'])
  expect((await change({ password, newPassword: 'short' })).status).toBe(400)
  expect(await isSignedIn(mine)).toBe(true)
  expect((await change({ password, newPassword: 'another good one' })).status).toBe(200)
  expect(await isSignedIn(mine)).toBe(false)
  expect((await here.call('GET', '/console/v1/session')).status).toBe(200)
  expect((await signInAs(new Browser(harness), mine)).status).toBe(401)
  expect(await actionsOn(mine.user.id)).toContain('user.set_password')
})

test('a stolen session cannot guess the password', async () => {
  const mine = await signIn(harness, { password })
  const guess = () =>
    mine.call('POST', '/console/v1/password', {
      partner: null,
      body: { password: 'a guess', newPassword: 'another good one' },
    })
  for (let index = 0; index < 5; index++) expect((await guess()).status).toBe(401)
  expect((await guess()).status).toBe(429)
})

test('an operator sends a link for a lost password; it works once, keeps the second factor, and ends all sessions', async () => {
  const operator = await signIn(harness, { isOperator: true })
  const lost = await signIn(harness, { password, roles: ['admin'] })
  const path = `/console/v1/users/${lost.user.id}/password-link`
  expect((await lost.call('POST', path)).status).toBe(403)
  expect((await operator.call('POST', `/console/v1/users/${operator.user.id}/password-link`)).status).toBe(403)
  const { url } = (await operator.call('POST', path)).body
  const [, token] = /^http:\/\/localhost\/console\/password#(mml_\w+)$/.exec(url) ?? []
  const reset = (newPassword: string) =>
    new Browser(harness).call('POST', '/console/v1/password/reset', { body: { token, newPassword } })
  expect((await reset('short')).status).toBe(400)
  expect((await reset('a brand new password')).status).toBe(200)
  expect((await reset('a brand new password')).status).toBe(401)
  expect(await isSignedIn(lost)).toBe(false)
  expect((await signInAs(new Browser(harness), lost, { password: 'a brand new password' })).status).toBe(200)
  // A link for a password does not sign in.
  const link = (await operator.call('POST', path)).body.url.split('#')[1]
  expect((await new Browser(harness).call('POST', '/console/v1/sign-in/link', { body: { token: link } })).status).toBe(
    401,
  )
})

/** Sets up a second factor, and returns the app that shows its codes. */
async function addTotp(browser: Browser) {
  const begun = await browser.call('POST', '/console/v1/totp', { body: { password } })
  expect(begun.status).toBe(200)
  expect(begun.body.uri).toMatch(/^otpauth:\/\/totp\/Midmonth:user-.*secret=/)
  const totp = new TOTP({ secret: Secret.fromBase32(begun.body.secret) })
  const code = (seconds = 0) => totp.generate({ timestamp: harness.clock.now().getTime() + seconds * 1_000 })
  const confirmed = await browser.call('POST', '/console/v1/totp/confirm', { body: { code: code() } })
  expect(confirmed.status).toBe(200)
  return { code, recoveryCodes: confirmed.body.recoveryCodes as string[] }
}

test('with a second factor a sign-in needs a code or a recovery code, each of which counts once', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const here = new Browser(harness)
  await signInAs(here, mine)
  const { code, recoveryCodes } = await addTotp(here)
  expect(await isSignedIn(mine), 'sessions that were opened without it end').toBe(false)
  expect((await here.call('GET', '/console/v1/session')).body.user.hasTotp).toBe(true)

  const next = new Browser(harness)
  const withCode = (totp?: string) => signInAs(next, mine, totp === undefined ? {} : { totp })
  expect(codesOf(await withCode())).toEqual(['TotpRequired'])
  expect(codesOf(await withCode(code())), 'the code that confirmed it').toEqual(['TotpRequired'])
  harness.clock.advance({ seconds: 30 })
  const fresh = code()
  expect((await withCode(fresh)).status).toBe(200)
  expect(codesOf(await withCode(fresh))).toEqual(['TotpRequired'])
  expect(codesOf(await withCode(code(-30)))).toEqual(['TotpRequired'])
  expect((await withCode(code(30))).status, 'a device that is half a minute ahead').toBe(200)

  expect(recoveryCodes).toHaveLength(10)
  expect((await withCode(recoveryCodes[0]?.toUpperCase())).status).toBe(200)
  expect(codesOf(await withCode(recoveryCodes[0]))).toEqual(['TotpRequired'])
  expect((await withCode(recoveryCodes[1])).status).toBe(200)
})

test('one code signs in once, however many requests send it at the same time', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const here = new Browser(harness)
  await signInAs(here, mine)
  const { code } = await addTotp(here)
  harness.clock.advance({ seconds: 30 })
  const totp = code()
  const answers = await Promise.all(
    [1, 2, 3, 4].map(host => signInAs(new Browser(harness, { address: `127.2.0.${host}` }), mine, { totp })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('guessing codes is delayed like guessing passwords', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const here = new Browser(harness)
  await signInAs(here, mine)
  await addTotp(here)
  const guesser = new Browser(harness, { address: '127.3.0.1' })
  for (let index = 0; index < 5; index++) {
    // The right password alone must not clear the count.
    if (index === 3) expect(codesOf(await signInAs(guesser, mine))).toEqual(['TotpRequired'])
    expect((await signInAs(guesser, mine, { totp: '000000' })).status).toBe(401)
  }
  expect((await signInAs(guesser, mine, { totp: '000000' })).status).toBe(429)
})

test('the second factor is removed by its user with the password, or by an operator, and never by another user', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const here = new Browser(harness)
  await signInAs(here, mine)
  await addTotp(here)
  const remove = (given: string) => here.call('DELETE', '/console/v1/totp', { body: { password: given } })
  expect((await remove('a wrong one')).status).toBe(401)
  expect((await remove(password)).status).toBe(200)
  expect((await signInAs(new Browser(harness), mine)).status).toBe(200)

  await addTotp(here)
  const operator = await signIn(harness, { isOperator: true })
  const admin = await signIn(harness, { roles: ['admin'] })
  const path = `/console/v1/users/${mine.user.id}/totp`
  expect((await admin.call('DELETE', path)).status).toBe(403)
  expect((await operator.call('DELETE', `/console/v1/users/${operator.user.id}/totp`)).status).toBe(403)
  expect((await operator.call('DELETE', path)).status).toBe(200)
  expect((await signInAs(new Browser(harness), mine)).status).toBe(200)
})

/** Invites, and opens the link in a browser. */
async function invited(by: ConsoleUser, body: object, partner: string | null = harness.partner.id) {
  const answer = await by.call('POST', '/console/v1/invitations', { partner, body })
  expect(answer.status, answer.text).toBe(201)
  return { id: answer.body.id as string, token: answer.body.url.split('#')[1] as string }
}
let count = 0
const newEmail = () => {
  count += 1
  return `invited-${count}@example.com`
}
const accept = (browser: Browser, token: string, body: object = { name: 'Ada', password }) =>
  browser.call('POST', '/console/v1/invitations/accept', { body: { token, ...body } })

test('an admin invites a person, who chooses a password and has these roles with this partner and no other', async () => {
  const admin = await signIn(harness, { roles: ['admin'] })
  const email = newEmail()
  const { id, token } = await invited(admin, { email, roles: ['payroll', 'support'] })
  expect((await admin.call('GET', '/console/v1/invitations')).body.invitations).toEqual([
    expect.objectContaining({ id, email, roles: ['payroll', 'support'], invitedBy: admin.user.id }),
  ])
  const found = await new Browser(harness).call('POST', '/console/v1/invitations/find', { body: { token } })
  expect(found.body).toMatchObject({ email, partner: { id: harness.partner.id }, hasUser: false })

  const browser = new Browser(harness)
  expect((await accept(browser, token, { name: 'Ada', password: 'short' })).status).toBe(400)
  const accepted = await accept(browser, token)
  expect(accepted.body).toMatchObject({
    isOperator: false,
    partners: [{ id: harness.partner.id, roles: ['payroll', 'support'] }],
  })
  expect((await accept(new Browser(harness), token)).status).toBe(401)
  const userId = accepted.body.user.id
  expect(await actionsOn(id)).toEqual(['invitation.accept', 'invitation.create'])
  const { users } = (await admin.call('GET', '/console/v1/users')).body
  expect(users).toContainEqual(expect.objectContaining({ id: userId, email, roles: ['payroll', 'support'] }))
  expect((await admin.call('GET', '/console/v1/users', { partner: harness.other.partner.id })).status).toBe(404)
})

test('an invitation of an existing user needs their session, adds the roles, and changes the token', async () => {
  const admin = await signIn(harness, { roles: ['admin'], partnerId: harness.other.partner.id })
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const { token } = await invited(admin, { email: mine.user.email, roles: ['support'] }, harness.other.partner.id)
  expect((await accept(new Browser(harness), token)).status).toBe(409)
  const stranger = new Browser(harness)
  stranger.cookies.set('midmonth-console', (await signIn(harness)).token)
  expect((await accept(stranger, token)).status).toBe(409)
  const own = new Browser(harness)
  await signInAs(own, mine)
  const before = own.cookies.get('midmonth-console')
  expect((await accept(own, token, {})).body.partners).toHaveLength(2)
  expect(own.cookies.get('midmonth-console')).not.toBe(before)
  expect(await isSignedIn(mine)).toBe(false)
})

test('an invitation expires, can be deleted, and ends with the rights of the admin who made it', async () => {
  const admin = await signIn(harness, { roles: ['admin'] })
  const operator = await signIn(harness, { isOperator: true })
  const deleted = await invited(admin, { email: newEmail(), roles: ['viewer'] })
  expect((await admin.call('DELETE', `/console/v1/invitations/${deleted.id}`)).status).toBe(200)
  expect((await accept(new Browser(harness), deleted.token)).status).toBe(401)

  const wayBack = await invited(admin, { email: newEmail(), roles: ['admin'] })
  const path = `/console/v1/users/${admin.user.id}`
  expect((await operator.call('PATCH', path, { body: { roles: ['viewer'] } })).status).toBe(200)
  expect((await accept(new Browser(harness), wayBack.token)).status).toBe(401)

  const late = await invited(operator, { email: newEmail(), roles: ['viewer'] })
  harness.clock.advance({ days: 7 })
  expect((await accept(new Browser(harness), late.token)).status).toBe(401)
})

test('no role but admin manages users, an admin grants no more than admin, and no user changes their own roles', async () => {
  const target = await signIn(harness, { roles: ['viewer'] })
  for (const role of roles) {
    const user = await signIn(harness, { roles: [role] })
    const status = role === 'admin' ? 200 : 403
    const body = { roles: ['viewer', 'support'] }
    expect((await user.call('GET', '/console/v1/users')).status, role).toBe(status)
    expect((await user.call('PATCH', `/console/v1/users/${target.user.id}`, { body })).status, role).toBe(status)
    const invitation = { body: { email: newEmail(), roles: ['viewer'] } }
    expect((await user.call('POST', '/console/v1/invitations', invitation)).status, role).toBe(
      status === 200 ? 201 : 403,
    )
    // Users of the installation are managed only by operators.
    const own = { partner: null, body: { isOperator: true } }
    expect((await user.call('PATCH', `/console/v1/users/${user.user.id}`, own)).status, role).toBe(403)
    expect((await user.call('PATCH', `/console/v1/users/${target.user.id}`, own)).status, role).toBe(403)
    expect(
      (await user.call('POST', '/console/v1/invitations', { partner: null, body: { email: newEmail() } })).status,
    ).toBe(403)
    expect((await user.call('GET', '/console/v1/users', { partner: null })).status, role).toBe(403)
    const other = { partner: harness.other.partner.id, body: { roles: ['admin'] } }
    expect((await user.call('PATCH', `/console/v1/users/${user.user.id}`, other)).status, role).toBe(404)
  }
  const admin = await signIn(harness, { roles: ['admin'] })
  const patch = (id: string, body: object) => admin.call('PATCH', `/console/v1/users/${id}`, { body })
  expect((await patch(admin.user.id, { roles: ['admin', 'viewer'] })).status).toBe(403)
  expect((await patch(target.user.id, { roles: ['operator'] })).status).toBe(400)
  expect((await patch(target.user.id, { isOperator: true })).status).toBe(400)
  const stranger = await signIn(harness, { roles: ['viewer'], partnerId: harness.other.partner.id })
  expect((await patch(stranger.user.id, { roles: ['viewer'] })).status).toBe(404)
})

test('a change of roles is recorded with before and after, and ends the sessions of the user', async () => {
  const admin = await signIn(harness, { roles: ['admin'] })
  const target = await signIn(harness, { roles: ['viewer'] })
  const path = `/console/v1/users/${target.user.id}`
  await admin.call('PATCH', path, { body: { roles: ['support', 'payroll'] } })
  expect(await isSignedIn(target)).toBe(false)
  const [entry] = await list(harness.db, {
    filter: { partnerId: harness.partner.id, resourceId: target.user.id },
    take: 1,
  })
  expect(entry).toMatchObject({
    ...{ action: 'user.set_roles', actorKind: 'user', actor: admin.user.id, address: '127.0.0.1' },
    details: { before: { roles: ['viewer'] }, after: { roles: ['payroll', 'support'] } },
  })
  expect((await admin.call('DELETE', path)).status).toBe(200)
  expect((await admin.call('DELETE', path)).status).toBe(404)
})

test('two operators who remove each other at the same time leave one, and the last cannot be removed', async () => {
  await harness.ownerDb
    .updateTable('users')
    .set({ disabledAt: harness.clock.now() })
    .where('isOperator', '=', false)
    .execute()
  const all = await harness.db.selectFrom('users').select('id').where('isOperator', '=', true).execute()
  const [one, two] = [await signIn(harness, { isOperator: true }), await signIn(harness, { isOperator: true })]
  for (const { id } of all) {
    const { status } = await one.call('PATCH', `/console/v1/users/${id}`, { partner: null, body: { isDisabled: true } })
    expect(status).toBe(200)
  }
  const demote = (by: ConsoleUser, whom: ConsoleUser) =>
    by.call('PATCH', `/console/v1/users/${whom.user.id}`, { partner: null, body: { isOperator: false } })
  const answers = await Promise.all([demote(one, two), demote(two, one)])
  expect(answers.map(({ status }) => status).sort()).not.toEqual([200, 200])
  const left = await harness.db
    .selectFrom('users')
    .select('id')
    .where('isOperator', '=', true)
    .where('disabledAt', 'is', null)
    .execute()
  expect(left.length).toBeGreaterThan(0)
  const last = left.length === 1 ? [one, two].find(({ user }) => user.id === left[0]?.id) : undefined
  expect(last).toBeDefined()
  const change = harness.db
    .updateTable('users')
    .set({ isOperator: false })
    .where('id', '=', last?.user.id ?? '')
    .execute()
  await expect(change).rejects.toMatchObject({ constraint: 'an_operator_remains' })
})

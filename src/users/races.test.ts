import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { Browser, type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { generateSecret } from '../kernel/secrets.ts'
import { setRoles, setUser } from './accounts.ts'
import { createLink } from './links.ts'
import { sessionLimits } from './sessions.ts'

let harness: Harness
let operator: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  operator = await signIn(harness, { isOperator: true })
})
afterAll(() => harness.stop())

const password = 'correct horse battery'
const another = 'another good password'
const statusesOf = (answers: { status: number }[]) => answers.map(({ status }) => status).sort()
const twice = <T>(work: (index: number) => Promise<T>) => Promise.all([work(0), work(1)])
const from = { kind: 'user', address: null, requestId: null } as const
let count = 0
const newEmail = () => {
  count += 1
  return `race-${count}@console.example`
}
const tokenIn = (url: string) => url.split('#')[1] ?? ''
const accept = (token: string) =>
  new Browser(harness).call('POST', '/console/v1/invitations/accept', { body: { token, name: 'Ada', password } })

/** Starts a request while a change waits to be committed, and commits it once the request waits for it. */
async function during<T>(
  change: (tx: Parameters<typeof setUser>[0]) => Promise<void>,
  request: () => Promise<T>,
): Promise<T> {
  const { promise } = await harness.inTx(async tx => {
    await change(tx)
    let isDone = false
    const promise = request().finally(() => {
      isDone = true
    })
    await vi.waitFor(
      async () => {
        const { rows } = await harness.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
        if (!isDone && rows.length === 0) throw new Error('The request does not wait')
      },
      { timeout: 15_000 },
    )
    return { promise }
  })
  return await promise
}

test('an admin whose role is being taken away makes no invitation, and changes no role', async () => {
  const admin = await signIn(harness, { roles: ['admin'] })
  const accomplice = await signIn(harness, { roles: ['viewer'] })
  const demote = (tx: Parameters<typeof setRoles>[0]) =>
    setRoles(tx, {
      ...{ userId: admin.user.id, partnerId: harness.partner.id, roles: ['viewer'] },
      ...{ actor: { ...from, name: operator.user.id }, now: harness.clock.now() },
    })
  const email = newEmail()
  const invite = () => admin.call('POST', '/console/v1/invitations', { body: { email, roles: ['admin'] } })
  expect((await during(demote, invite)).status).toBe(403)
  const { invitations } = (await operator.call('GET', '/console/v1/invitations')).body
  expect(invitations.filter((each: { email: string }) => each.email === email)).toEqual([])

  const second = await signIn(harness, { roles: ['admin'] })
  const remove = (tx: Parameters<typeof setRoles>[0]) =>
    setRoles(tx, {
      ...{ userId: second.user.id, partnerId: harness.partner.id, roles: [] },
      ...{ actor: { ...from, name: operator.user.id }, now: harness.clock.now() },
    })
  const path = `/console/v1/users/${accomplice.user.id}`
  const promote = () => second.call('PATCH', path, { body: { roles: ['admin'] } })
  expect((await during(remove, promote)).status).toBe(403)
})

test('an operator whose rights are being taken away makes no operator, and no link for a new password', async () => {
  const victim = await signIn(harness, { isOperator: true })
  for (const request of [
    (by: ConsoleUser) => by.call('POST', `/console/v1/users/${victim.user.id}/password-link`, { partner: null }),
    (by: ConsoleUser) => by.call('DELETE', `/console/v1/users/${victim.user.id}/totp`, { partner: null }),
    (by: ConsoleUser) => by.call('DELETE', `/console/v1/users/${victim.user.id}/identity`, { partner: null }),
    (by: ConsoleUser) => by.call('POST', '/console/v1/invitations', { partner: null, body: { email: newEmail() } }),
  ]) {
    const leaving = await signIn(harness, { isOperator: true })
    const demote = (tx: Parameters<typeof setUser>[0]) =>
      setUser(tx, {
        ...{ userId: leaving.user.id, isOperator: false },
        ...{ actor: { ...from, name: operator.user.id }, now: harness.clock.now() },
      })
    expect((await during(demote, () => request(leaving))).status).toBe(403)
  }
})

test('of two changes of a password at once, only one counts', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const browsers = [new Browser(harness), new Browser(harness)]
  for (const browser of browsers)
    await browser.call('POST', '/console/v1/sign-in', { body: { email: mine.user.email, password } })
  const chosen = [another, `${another} 2`]
  const answers = await twice(async index => {
    const body = { password, newPassword: chosen[index] }
    const { status } = (await browsers[index]?.call('POST', '/console/v1/password', { body })) ?? { status: 0 }
    return { status, chosen: chosen[index] }
  })
  expect(statusesOf(answers)).toEqual([200, 401])
  for (const { status, chosen } of answers) {
    const body = { email: mine.user.email, password: chosen }
    const signedIn = await new Browser(harness).call('POST', '/console/v1/sign-in', { body })
    expect(signedIn.status === 200).toBe(status === 200)
  }
})

test('an invitation that is accepted twice at once makes one user', async () => {
  const admin = await signIn(harness, { roles: ['admin'] })
  const email = newEmail()
  const invited = await admin.call('POST', '/console/v1/invitations', { body: { email, roles: ['viewer'] } })
  const answers = await twice(() => accept(tokenIn(invited.body.url)))
  const [first, second] = statusesOf(answers)
  expect(first).toBe(200)
  expect([401, 409]).toContain(second)
  const { users } = (await admin.call('GET', '/console/v1/users')).body
  expect(users.filter((each: { email: string }) => each.email === email)).toHaveLength(1)
})

test('a link for a new password that is used twice at once sets one', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const made = await operator.call('POST', `/console/v1/users/${mine.user.id}/password-link`, { partner: null })
  const token = tokenIn(made.body.url)
  const answers = await twice(index =>
    new Browser(harness).call('POST', '/console/v1/password/reset', { body: { token, newPassword: another + index } }),
  )
  expect(statusesOf(answers)).toEqual([200, 401])
})

test('a recovery code that is used twice at once signs in once', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const { secret } = (await mine.call('POST', '/console/v1/totp', { body: { password } })).body
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: harness.clock.now().getTime() })
  const { recoveryCodes } = (await mine.call('POST', '/console/v1/totp/confirm', { body: { code } })).body
  const body = { email: mine.user.email, password, totp: recoveryCodes[0] }
  const answers = await twice(() => new Browser(harness).call('POST', '/console/v1/sign-in', { body }))
  expect(statusesOf(answers)).toEqual([200, 401])
})

test('of many sign-ins at once a user keeps as many sessions as are allowed', async () => {
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const body = { email: mine.user.email, password }
  for (let round = 0; round < 5; round++) {
    const some = Array.from({ length: 6 }, () => new Browser(harness).call('POST', '/console/v1/sign-in', { body }))
    for (const { status } of await Promise.all(some)) expect([200, 429]).toContain(status)
    harness.clock.advance({ minutes: 1 })
  }
  const { rows } = await harness.pool.query('select id from user_sessions where user_id = $1', [mine.user.id])
  expect(rows).toHaveLength(sessionLimits.perUserMax)
  operator = await signIn(harness, { isOperator: true })
})

test('a flood of links that do not exist costs no hash of a password, so people can still sign in', async () => {
  const link = (path: string, more: object) =>
    new Browser(harness, { address: '127.9.9.9' }).call('POST', path, {
      body: { token: generateSecret('mml_'), ...more },
    })
  const user = { email: newEmail(), name: 'Ada', password }
  const floods = Array.from({ length: 45 }, () => [
    link('/console/v1/password/reset', { newPassword: another }),
    link('/console/v1/set-up', user),
  ])
  const mine = await signIn(harness, { password, roles: ['viewer'] })
  const body = { email: mine.user.email, password }
  const signedIn = new Browser(harness).call('POST', '/console/v1/sign-in', { body })
  for (const { status } of await Promise.all(floods.flat())) expect(status).toBe(401)
  expect((await signedIn).status).toBe(200)
})

test('a link that has expired or is for another purpose also costs no hash', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'] })
  const make = (purpose: 'password' | 'sign_in', lifeMs: number) =>
    harness.inTx(tx => createLink(tx, { purpose, userId: user.id, lifeMs, now: harness.clock.now() }))
  const [late, other] = [await make('password', 60_000), await make('sign_in', 3_600_000)]
  harness.clock.advance({ minutes: 1 })
  for (const token of [late, other]) {
    // The link is refused before its password is checked.
    const body = { token, newPassword: 'short' }
    expect((await new Browser(harness).call('POST', '/console/v1/password/reset', { body })).status).toBe(401)
  }
})

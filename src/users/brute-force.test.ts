import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Browser, ownOrigin, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { buildApp } from '../app.ts'
import { list, record, worker } from '../audit-log/audit-log.ts'
import { newId } from '../kernel/ids.ts'
import { userTasks } from './tasks.ts'
import { admitAttempt, counterOf } from './throttle.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
// Each test counts its own failures.
beforeEach(async () => {
  harness.clock.advance({ days: 2 })
  await harness.db.deleteFrom('signInFailures').execute()
})

const password = 'correct horse battery'
const wrong = 'incorrect horse battery'
let count = 0
/** A browser at a new address, of this machine, so that plain http will do. */
const elsewhere = () => {
  count += 1
  return new Browser(harness, { address: `127.1.${count >> 8}.${count & 255}` })
}
const attempt = (browser: Browser, email: string, given: string) =>
  browser.call('POST', '/console/v1/sign-in', { body: { email, password: given } })
const statuses = async (times: number, next: () => Promise<{ status: number }>) => {
  const found: number[] = []
  for (let index = 0; index < times; index++) found.push((await next()).status)
  return found
}

test('the right password signs in with a new token, whatever cookie the browser had', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const browser = elsewhere()
  browser.cookies.set('midmonth-console', 'mmc_test_planted')
  const answer = await attempt(browser, user.email.toUpperCase(), password)
  expect([answer.status, answer.body.user?.email]).toEqual([200, user.email])
  expect(answer.setCookies).toEqual([
    expect.stringMatching(/^midmonth-console=mmc_test_[0-9A-Za-z]{49}; Path=\/; HttpOnly; SameSite=Strict$/),
    expect.stringMatching(/^midmonth-browser=[\w-]{65}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=7776000$/),
  ])
  expect((await browser.call('GET', '/console/v1/session')).status).toBe(200)
})

test('over https only cookies that are bound to the host count; over plain http a sign-in from another machine is refused', async () => {
  const { user, token } = await signIn(harness, { roles: ['viewer'], password })
  const log = pino({ level: 'silent' })
  const { clock, mode } = harness
  const context = { ...harness, log, now: clock.now, mode, bankOf: () => null }
  const app = await buildApp({ ...context, publicUrl: 'https://pay.example' })
  try {
    const headers = { origin: 'https://pay.example', 'sec-fetch-site': 'same-origin' }
    const payload = { email: user.email, password }
    const signedIn = await app.inject({
      method: 'POST',
      url: '/console/v1/sign-in',
      remoteAddress: '192.0.2.4',
      headers,
      payload,
    })
    expect(signedIn.statusCode).toBe(200)
    const cookies = [signedIn.headers['set-cookie'] ?? []].flat()
    expect(cookies[0]).toMatch(/^__Host-midmonth=mmc_test_\w{49}; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    expect(cookies[1]).toMatch(/^__Host-midmonth-browser=.*; Secure; Max-Age=/)
    const get = async (cookie: string) =>
      (await app.inject({ url: '/console/v1/session', headers: { ...headers, cookie } })).statusCode
    expect(await get(`__Host-midmonth=${token}`)).toBe(200)
    expect(await get(`midmonth-console=${token}`)).toBe(401)
  } finally {
    await app.close()
  }
  const far = new Browser(harness, { address: '192.0.2.9' })
  expect((await attempt(far, user.email, password)).status).toBe(403)
})

test('a wrong password, an unknown address and a disabled user get the same response', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const disabled = await signIn(harness, { roles: ['viewer'], password })
  const without = await signIn(harness, { roles: ['viewer'] })
  await harness.db
    .updateTable('users')
    .set({ disabledAt: harness.clock.now() })
    .where('id', '=', disabled.user.id)
    .execute()
  const bodies: unknown[] = []
  for (const [email, given] of [
    [user.email, wrong],
    ['stranger@example.com', wrong],
    [disabled.user.email, password],
    [without.user.email, password],
  ] as const) {
    const answer = await attempt(elsewhere(), email, given)
    expect([answer.status, answer.setCookies]).toEqual([401, []])
    bodies.push(answer.body)
  }
  expect(new Set(bodies.map(body => JSON.stringify(body))).size).toBe(1)
  const failed = await list(harness.db, { filter: { actions: ['user.sign_in_failed'] }, take: 4 })
  expect(failed.map(({ resourceId }) => resourceId)).toEqual([without.user.id, 'unknown', 'unknown', user.id])
})

test('guessing from one network is delayed more and more, even with the right password, and the delay ends', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const guesser = elsewhere()
  expect(await statuses(5, () => attempt(guesser, user.email, wrong))).toEqual([401, 401, 401, 401, 401])
  const first = await attempt(guesser, user.email, password)
  expect([first.status, first.headers['retry-after']]).toEqual([429, '1'])
  harness.clock.advance({ seconds: 1 })
  expect((await attempt(guesser, user.email, wrong)).status).toBe(401)
  expect((await attempt(guesser, user.email, wrong)).headers['retry-after']).toBe('2')
  for (let round = 0; round < 12; round++) {
    harness.clock.advance({ minutes: 15 })
    expect((await attempt(guesser, user.email, wrong)).status).toBe(401)
  }
  expect((await attempt(guesser, user.email, wrong)).headers['retry-after']).toBe('900')
  harness.clock.advance({ minutes: 15 })
  expect((await attempt(guesser, user.email, password)).status).toBe(200)
  expect((await attempt(guesser, user.email, wrong)).status).toBe(401)
})

test('concurrent guesses cannot outrun the count', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const guesser = elsewhere()
  const answers = await Promise.all(Array.from({ length: 12 }, () => attempt(guesser, user.email, wrong)))
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(5)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(7)
})

test('an attacker who fails on purpose does not lock a person out of a known browser', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const own = elsewhere()
  expect((await attempt(own, user.email, password)).status).toBe(200)
  // Writes the failures of a hundred guessers directly, because their hashes would take half a minute.
  const { db, clock } = harness
  for (let guess = 0; guess < 106; guess++) {
    await admitAttempt(db, [counterOf('account', user.email)], clock.now())
    if (guess >= 99) clock.advance({ minutes: 1 })
  }
  clock.advance({ seconds: -60 })
  const stranger = await attempt(elsewhere(), user.email, password)
  expect([stranger.status, stranger.headers['retry-after']]).toEqual([429, '60'])
  expect((await attempt(own, user.email, password)).status).toBe(200)

  // A token of another person's browser, or an invented one, is worth nothing.
  const thief = elsewhere()
  const other = await signIn(harness, { roles: ['viewer'], password })
  expect((await attempt(thief, other.user.email, password)).status).toBe(200)
  expect((await attempt(thief, user.email, password)).status).toBe(429)
  harness.clock.advance({ minutes: 1 })
  expect((await attempt(elsewhere(), user.email, password)).status).toBe(200)
})

describe('a flood of sign-ins from a network', () => {
  const address = '127.9.0.1'
  const here = () => new Browser(harness, { address })
  const cookie = 'midmonth-browser'
  /** A browser elsewhere in which the user signs in, moved to the network of the flood. */
  const known = async (user: { email: string }) => {
    const own = elsewhere()
    expect((await attempt(own, user.email, password)).status).toBe(200)
    const moved = here()
    moved.cookies.set(cookie, own.cookies.get(cookie) ?? '')
    return moved
  }
  /** Unknown links, because they cost no hash. */
  const knock = (browser: Browser) =>
    browser.call('POST', '/console/v1/sign-in/link', { body: { token: `mml_test_${'0'.repeat(49)}` } })
  const flood = async (browserOf: () => Browser = here) => {
    const found = await statuses(101, () => knock(browserOf()))
    expect([found.slice(0, 100).includes(429), found[100]]).toEqual([false, 429])
  }

  test('is refused with retry-after, and a person in a known browser there signs in at once and keeps working', async () => {
    const { user } = await signIn(harness, { roles: ['viewer'], password })
    const own = await known(user)
    await flood()
    const stranger = await attempt(here(), user.email, password)
    expect([stranger.status, stranger.headers['retry-after']]).toEqual([429, '1'])
    // Unknown sessions also use up the limit of lookups.
    for (let guess = 0; guess < 50; guess++) {
      const guesser = here()
      guesser.cookies.set('midmonth-console', `mmc_test_${guess}`)
      await guesser.call('GET', '/console/v1/session')
    }
    expect((await attempt(own, user.email, password)).status).toBe(200)
    expect((await own.call('GET', '/console/v1/session')).status).toBe(200)
    harness.clock.advance({ seconds: 1 })
    expect((await attempt(here(), user.email, password)).status).toBe(200)
  })

  test('gains nothing from forged tokens of browsers', async () => {
    const { user } = await signIn(harness, { roles: ['viewer'], password })
    const own = await known(user)
    const genuine = own.cookies.get(cookie) ?? ''
    let count = 0
    const forged = () => {
      const browser = here()
      count += 1
      browser.cookies.set(cookie, `${String(count).padStart(43, 'A')}${genuine.slice(43)}`)
      return browser
    }
    await flood(forged)
    for (const token of [
      '',
      'A',
      genuine.slice(0, -1),
      `${genuine}A`,
      `${genuine.slice(0, -2)}${genuine.endsWith('AA') ? 'BB' : 'AA'}`,
    ]) {
      const browser = here()
      browser.cookies.set(cookie, token)
      expect((await knock(browser)).status, token).toBe(429)
    }
    expect((await attempt(own, user.email, password)).status).toBe(200)
  })

  test('from a stolen browser token is also limited, without limiting the owner in another network', async () => {
    const { user } = await signIn(harness, { roles: ['viewer'], password })
    const own = await known(user)
    await flood()
    const stolen = await statuses(31, () => knock(own))
    expect([stolen.slice(0, 30).includes(429), stolen[30]]).toEqual([false, 429])
    const owner = elsewhere()
    owner.cookies.set(cookie, own.cookies.get(cookie) ?? '')
    expect((await statuses(30, () => knock(owner))).includes(429)).toBe(false)
    expect((await attempt(owner, user.email, password)).status).toBe(200)
  })

  test('also limits a browser that was not used for 90 days or whose user is disabled', async () => {
    const { user } = await signIn(harness, { roles: ['viewer'], password })
    const disabled = await signIn(harness, { roles: ['viewer'], password })
    const own = await known(user)
    const dismissed = await known(disabled.user)
    harness.clock.advance({ days: 89 })
    await flood()
    expect((await knock(own)).status).toBe(401)
    expect((await knock(dismissed)).status).toBe(401)
    const set = { disabledAt: harness.clock.now() }
    await harness.db.updateTable('users').set(set).where('id', '=', disabled.user.id).execute()
    expect((await knock(dismissed)).status).toBe(429)
    harness.clock.advance({ days: 1 })
    await flood()
    expect((await knock(own)).status).toBe(429)
  })

  test('makes no browser known, whatever token its requests send', async () => {
    const { user } = await signIn(harness, { roles: ['viewer'], password })
    const browsers = () =>
      harness.db.selectFrom('userBrowsers').select('userId').where('userId', '=', user.id).execute()
    for (const token of ['A'.repeat(65), 'A'.repeat(43)]) {
      const browser = elsewhere()
      browser.cookies.set(cookie, token)
      const refused = await attempt(browser, user.email, wrong)
      expect([refused.status, refused.setCookies, (await browsers()).length]).toEqual([401, [], 0])
    }
    // Nor does a sign-in keep a token that this service has not signed.
    const planted = elsewhere()
    planted.cookies.set(cookie, 'A'.repeat(65))
    expect((await attempt(planted, user.email, password)).status).toBe(200)
    expect(planted.cookies.get(cookie)).not.toBe('A'.repeat(65))
    expect(await browsers()).toHaveLength(1)
  })
})

test('one network that tries many accounts is delayed, and its successes do not clear the others’ failures', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  const sprayer = elsewhere()
  let victim = 0
  const spray = () => {
    victim += 1
    return attempt(sprayer, `victim-${victim}@example.com`, wrong)
  }
  expect(await statuses(19, spray)).toEqual(Array(19).fill(401))
  expect((await attempt(sprayer, user.email, password)).status).toBe(200)
  sprayer.cookies.clear()
  expect((await attempt(sprayer, 'another@example.com', wrong)).status).toBe(401)
  expect((await attempt(sprayer, 'one-more@example.com', wrong)).status).toBe(429)
})

test('failures, expired sessions, links and invitations are deleted by the worker once they no longer count', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  await attempt(elsewhere(), user.email, wrong)
  const rows = async () => ({
    failures: (await harness.db.selectFrom('signInFailures').select('failures').execute()).length,
    sessions: (await harness.db.selectFrom('userSessions').select('id').where('userId', '=', user.id).execute()).length,
    links: (await harness.db.selectFrom('userLinks').select('userId').execute()).length,
    invitations: (await harness.db.selectFrom('userInvitations').select('id').execute()).length,
  })
  const createdAt = harness.clock.now()
  const expiresAt = new Date(createdAt.getTime() + 3_600_000)
  await harness.db
    .insertInto('userLinks')
    .values({ purpose: 'password', hash: randomBytes(32), userId: user.id, createdAt, expiresAt })
    .execute()
  const invitation = { id: newId('invitation', createdAt), email: 'new@example.com', roles: [], invitedBy: 'ada@host' }
  await harness.db
    .insertInto('userInvitations')
    .values({ ...invitation, hash: randomBytes(32), createdAt, expiresAt })
    .execute()
  const forget = () =>
    userTasks['forget-user-sessions']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
  await forget()
  expect(await rows()).toEqual({ failures: 3, sessions: 1, links: 1, invitations: 1 })
  harness.clock.advance({ days: 1 })
  await forget()
  expect(await rows()).toEqual({ failures: 0, sessions: 0, links: 0, invitations: 0 })
})

test('a flood of failures leaves a bounded number of rows in the audit log', async () => {
  const failed = async () =>
    (await list(harness.db, { filter: { actions: ['user.sign_in_failed'] }, take: 1_000 })).length
  const before = await failed()
  // The rows of the other attempts of a minute.
  const change = { action: 'user.sign_in_failed', resourceId: 'unknown', details: {} } as const
  for (let index = 0; index < 57; index++)
    await harness.inTx(tx => record(tx, { partnerId: null, actor: worker, change, now: harness.clock.now() }))
  for (let index = 0; index < 5; index++) await attempt(elsewhere(), `flood-${index}@example.com`, wrong)
  expect((await failed()) - before).toBe(60)
  harness.clock.advance({ seconds: 61 })
  await attempt(elsewhere(), 'flood@example.com', wrong)
  expect((await failed()) - before).toBe(61)
})

test('signing in from another site is refused', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'], password })
  for (const headers of [
    { origin: 'https://evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: ownOrigin, 'sec-fetch-site': 'same-site' },
  ])
    expect(
      (await elsewhere().call('POST', '/console/v1/sign-in', { body: { email: user.email, password }, headers }))
        .status,
    ).toBe(403)
})

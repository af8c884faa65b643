import { afterAll, beforeAll, expect, test } from 'vitest'
import { signInFaults } from '../../packages/console/src/sign-in-faults.ts'
import { Browser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { type Person, startOpenIdProvider } from '../../test/servers/openid-provider.ts'
import { list } from '../audit-log/audit-log.ts'
import { unlink } from './identities.ts'
import { type Grant, type OidcSettings, oidcFaults } from './oidc.ts'
import { createUser } from './users.ts'

const client = { clientId: 'midmonth', clientSecret: 'asecret' }
let provider: Awaited<ReturnType<typeof startOpenIdProvider>>
let byInvitation: Harness
let byGroup: Harness
beforeAll(async () => {
  provider = await startOpenIdProvider(client)
  const oidc = { ...client, issuer: provider.issuer, groupsClaim: 'teams' }
  const start = (rolesOfGroups: OidcSettings['rolesOfGroups']) =>
    startHarness({ console: { oidc: { ...oidc, rolesOfGroups } } })
  byInvitation = await start(null)
  const groups = new Map<string, Grant[]>()
  byGroup = await start(groups)
  groups.set('operations', ['operator'])
  groups.set('payroll', [{ partnerId: byGroup.partner.id, role: 'payroll' }])
  groups.set('support', [{ partnerId: byGroup.partner.id, role: 'support' }])
  groups.set('elsewhere', [{ partnerId: 'par_01kah4pzc5e4r8v2m6t0x9y3bd', role: 'admin' }])
})
afterAll(async () => {
  await Promise.all([byInvitation.stop(), byGroup.stop(), provider.stop()])
})

let count = 0
const someone = (claims: object = {}): Person => {
  count += 1
  const email = `person-${count}@staff.example`
  return { subject: `subject-${count}`, claims: { email, email_verified: true, name: `Person ${count}`, ...claims } }
}

/** Signs a person in, as a browser does: to the provider and back. */
async function through(browser: Browser, person: Person, change: (back: URL) => void = () => undefined) {
  // A link of the console leads there, or a page of the provider, which adds parameters. The provider sends the browser back.
  const started = await browser.call('GET', '/console/v1/oidc/start?iss=https%3A%2F%2Fprovider.example')
  expect(started.status).toBe(303)
  const back = provider.authorize(String(started.headers.location), person)
  change(back)
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  const { status, headers: answered } = await browser.call('GET', `${back.pathname}${back.search}`, { headers })
  expect(status).toBe(303)
  return String(answered.location)
}
const sessionOf = async (browser: Browser) => (await browser.call('GET', '/console/v1/session')).body

test('the groups decide the roles at every sign-in, and a change ends the other sessions', async () => {
  const person = someone({ teams: ['payroll', 'unknown', 'elsewhere'] })
  const first = new Browser(byGroup)
  expect(await through(first, person)).toBe('/console')
  expect(await sessionOf(first)).toMatchObject({
    user: { name: `Person ${count}`, email: person.claims?.email },
    isOperator: false,
    partners: [{ id: byGroup.partner.id, roles: ['payroll'] }],
  })
  const again = new Browser(byGroup)
  expect(await through(again, person)).toBe('/console')
  expect((await sessionOf(first)).user, 'nothing has changed').toBeDefined()

  const promoted = { ...person, claims: { ...person.claims, teams: ['operations', 'support'] } }
  expect(await through(again, promoted)).toBe('/console')
  expect(await sessionOf(again)).toMatchObject({ isOperator: true })
  expect((await first.call('GET', '/console/v1/session')).status).toBe(401)
  const entries = await list(byGroup.db, { filter: { actions: ['user.set_roles'] }, take: 1 })
  expect(entries[0]?.details).toMatchObject({ by: 'oidc', before: { isOperator: false }, after: { isOperator: true } })

  // The last operator stays, and the sign-in is refused.
  expect(await through(again, person)).toBe('/console/sign-in?fault=last_operator')
  await signIn(byGroup, { isOperator: true })
  expect(await through(again, person)).toBe('/console')
  expect(await sessionOf(again)).toMatchObject({ isOperator: false })
})

test('a person without a listed group is refused, and loses the roles of earlier groups', async () => {
  expect(await through(new Browser(byGroup), someone({ teams: ['unknown'] }))).toBe('/console/sign-in?fault=no_account')
  expect(await through(new Browser(byGroup), someone())).toBe('/console/sign-in?fault=no_account')
  const person = someone({ teams: ['support'] })
  const browser = new Browser(byGroup)
  expect(await through(browser, person)).toBe('/console')
  const left = { ...person, claims: { ...person.claims, teams: [] } }
  expect(await through(new Browser(byGroup), left)).toBe('/console/sign-in?fault=no_role')
})

test('without groups a person is invited, and the first sign-in accepts the invitation', async () => {
  const admin = await signIn(byInvitation, { roles: ['admin'] })
  const person = someone({ teams: ['operations'] })
  expect(await through(new Browser(byInvitation), person)).toBe('/console/sign-in?fault=no_account')
  await admin.call('POST', '/console/v1/invitations', { body: { email: person.claims?.email, roles: ['viewer'] } })
  const unverified = { ...person, claims: { ...person.claims, email_verified: false } }
  expect(await through(new Browser(byInvitation), unverified)).toBe('/console/sign-in?fault=no_account')
  const browser = new Browser(byInvitation)
  expect(await through(browser, person)).toBe('/console')
  expect(await sessionOf(browser)).toMatchObject({ isOperator: false, partners: [{ roles: ['viewer'] }] })
  // From then on the subject counts, not the address.
  const moved = { ...person, claims: { ...person.claims, email: 'new-name@staff.example' } }
  expect(await through(new Browser(byInvitation), moved)).toBe('/console')
})

test('the first sign-in takes over a user whose password another person may have chosen', async () => {
  const password = 'chosen by another person'
  const planted = await signIn(byInvitation, { roles: ['viewer'], password })
  const person = someone({ email: planted.user.email })
  const browser = new Browser(byInvitation)
  expect(await through(browser, person)).toBe('/console')
  expect((await sessionOf(browser)).user.id).toBe(planted.user.id)
  expect((await planted.call('GET', '/console/v1/session')).status).toBe(401)
  const body = { email: planted.user.email, password }
  expect((await new Browser(byInvitation).call('POST', '/console/v1/sign-in', { body })).status).toBe(401)
})

test('the first sign-in also ends the other person’s ways back: links, invitations and known browsers', async () => {
  const password = 'chosen by another person'
  const planted = await signIn(byInvitation, { roles: ['admin'], password })
  const body = { email: planted.user.email, password }
  await new Browser(byInvitation).call('POST', '/console/v1/sign-in', { body })
  const invitation = { body: { email: `way-back-${count}@console.example`, roles: ['admin'] } }
  expect((await planted.call('POST', '/console/v1/invitations', invitation)).status).toBe(201)
  const operator = await signIn(byInvitation, { isOperator: true })
  const path = `/console/v1/users/${planted.user.id}/password-link`
  expect((await operator.call('POST', path, { partner: null })).status).toBe(200)

  expect(await through(new Browser(byInvitation), someone({ email: planted.user.email }))).toBe('/console')
  const left = async (table: string, column = 'user_id') =>
    (await byInvitation.pool.query(`select from ${table} where ${column} = $1`, [planted.user.id])).rowCount
  expect([await left('user_links'), await left('user_invitations', 'invited_by')]).toEqual([0, 0])
  // Only the person’s own browser is known now.
  expect(await left('user_browsers')).toBe(1)
})

test('an address that the employer gives to another person opens no user until an operator unlinks the person who had it', async () => {
  const left = someone({ teams: ['operations'] })
  const old = new Browser(byGroup)
  expect(await through(old, left)).toBe('/console')
  const { user } = await sessionOf(old)
  const operator = await signIn(byGroup, { isOperator: true })
  const person = { ...left, subject: 'another person' }
  const refused = '/console/sign-in?fault=other_identity'
  const browser = new Browser(byGroup)
  expect(await through(browser, person)).toBe(refused)
  expect((await browser.call('GET', '/console/v1/session')).status).toBe(401)
  const recorded = async () =>
    (await list(byGroup.db, { filter: { resourceId: user.id }, take: 3 })).map(({ action, details }) => ({
      action,
      details,
    }))
  expect((await recorded())[0]).toEqual({ action: 'user.sign_in_failed', details: { reason: 'identity' } })
  expect(await through(old, left), 'the person who is linked still signs in').toBe('/console')

  const unlink = () => operator.call('DELETE', `/console/v1/users/${user.id}/identity`, { partner: null })
  const isLinked = async () => {
    const { users } = (await operator.call('GET', '/console/v1/users?take=100', { partner: null })).body
    const { hasIdentity, isEmailVerified } = users.find(({ id }: { id: string }) => id === user.id)
    expect(isEmailVerified, 'only the provider vouches for an address').toBe(hasIdentity)
    return hasIdentity
  }
  expect(await isLinked()).toBe(true)
  expect((await unlink()).status).toBe(200)
  expect((await recorded())[0]).toEqual({ action: 'user.remove_identity', details: { issuers: [provider.issuer] } })
  expect(await isLinked()).toBe(false)
  expect((await old.call('GET', '/console/v1/session')).status).toBe(401)
  expect(await through(browser, person)).toBe('/console')
  expect((await sessionOf(browser)).user.id).toBe(user.id)
  expect(await through(old, left), 'the user has one identity').toBe(refused)
})

test('of two people with one new address who sign in at once, one gets the user', async () => {
  const person = someone({ teams: ['support'] })
  const people = [person, { ...person, subject: `${person.subject} too` }]
  const answers = await Promise.all(people.map(each => through(new Browser(byGroup), each)))
  expect(answers.sort()).toEqual(['/console', '/console/sign-in?fault=other_identity'])
})

test('a person whose address changes between two first sign-ins at once is one user', async () => {
  const person = someone({ teams: ['support'] })
  const renamed = { ...person, claims: { ...person.claims, email: `renamed-${count}@staff.example` } }
  const browsers = [new Browser(byGroup), new Browser(byGroup)]
  const answers = await Promise.all([person, renamed].map((each, index) => through(browsers[index] as Browser, each)))
  expect(answers).toEqual(['/console', '/console'])
  const [first, second] = await Promise.all(browsers.map(sessionOf))
  expect(first.user.id).toBe(second.user.id)
})

test('a sign-in that waits for the user to be unlinked opens no session by the old identity', async () => {
  const left = someone({ teams: ['support'] })
  const browser = new Browser(byGroup)
  await through(browser, left)
  const { id: userId } = (await sessionOf(browser)).user
  const withoutAddress = { ...left, claims: { ...left.claims, email_verified: false } }
  const { signingIn } = await byGroup.db.transaction().execute(async tx => {
    const actor = { kind: 'cli', name: 'ops', address: null, requestId: null } as const
    await unlink(tx, { userId, actor, now: byGroup.clock.now() })
    const signingIn = through(browser, withoutAddress)
    await whenWaiting(byGroup.db)
    return { signingIn }
  })
  expect(await signingIn).toBe('/console/sign-in?fault=no_account')
  expect((await browser.call('GET', '/console/v1/session')).status).toBe(401)
})

test('a command unlinks a user from the provider and ends the sessions, and says so once', async () => {
  const person = someone({ teams: ['support'] })
  const browser = new Browser(byGroup)
  await through(browser, person)
  const { id: userId, email } = (await sessionOf(browser)).user
  const second = { issuer: provider.issuer, subject: `${person.subject} too`, userId, linkedAt: byGroup.clock.now() }
  await expect(byGroup.db.insertInto('userIdentities').values(second).execute()).rejects.toMatchObject({
    constraint: 'one_identity_per_user',
  })

  const unlink = async () => (await midmonthHere(['operator', 'unlink', email], byGroup.settings)).stdout
  expect(await unlink()).toBe(`Unlinked ${email} from the OpenID provider.\n`)
  expect(await unlink()).toBe(`${email} is not linked to the OpenID provider.\n`)
  const entries = await list(byGroup.db, { filter: { actions: ['user.remove_identity'], resourceId: userId }, take: 9 })
  expect(entries).toMatchObject([{ actorKind: 'cli', details: { issuers: [provider.issuer] } }])
  expect((await browser.call('GET', '/console/v1/session')).status).toBe(401)
  const signOut = await midmonthHere(['operator', 'sign-out', email], byGroup.settings)
  expect(signOut.stdout, 'there is none left to end').toBe(`Ended 0 sessions of ${email}.\n`)
  const [last] = await list(byGroup.db, { filter: { resourceId: userId }, take: 1 })
  expect(last).toEqual(entries[0])
})

test('groups that take an operator’s rights away also end the invitations and links that the operator has made', async () => {
  const person = someone({ teams: ['operations'] })
  const operator = new Browser(byGroup)
  await through(operator, person)
  const colleague = await signIn(byGroup, { isOperator: true })
  const invited = await operator.call('POST', '/console/v1/invitations', { body: { email: 'way@back.example' } })
  const link = await operator.call('POST', `/console/v1/users/${colleague.user.id}/password-link`)
  expect([invited.status, link.status]).toEqual([201, 200])
  expect(await through(new Browser(byGroup), { ...person, claims: { ...person.claims, teams: ['support'] } })).toBe(
    '/console',
  )
  const post = (path: string, body: object) => new Browser(byGroup).call('POST', path, { body })
  const tokenIn = ({ body }: { body: { url: string } }) => body.url.split('#')[1]
  const accepted = { token: tokenIn(invited), name: 'Back', password: 'correct horse battery' }
  expect((await post('/console/v1/invitations/accept', accepted)).status).toBe(401)
  const reset = { token: tokenIn(link), newPassword: 'correct horse battery' }
  expect((await post('/console/v1/password/reset', reset)).status).toBe(401)
})

test('an address whose letter only Unicode folds to that of a user is not that user', async () => {
  const now = byGroup.clock.now()
  await byGroup.db
    .transaction()
    .execute(tx => createUser(tx, { email: 'kim@staff.example', name: 'Kim', isOperator: true, now }))
  const person = someone({ email: '\u212aim@staff.example', teams: ['support'] })
  const browser = new Browser(byGroup)
  expect(await through(browser, person)).toBe('/console')
  expect(await sessionOf(browser)).toMatchObject({ isOperator: false, user: { email: '\u212aim@staff.example' } })
})

test('an ID token with texts that cannot be stored is a fault of the provider, or of the account, and never an error', async () => {
  const unstored = async (change: Partial<Person>) => {
    const person = someone({ teams: ['support'] })
    const claims = { ...person.claims, ...change.claims }
    return await through(new Browser(byGroup), { ...person, ...change, claims })
  }
  for (const subject of ['', 'x'.repeat(256), 'a\0b', 'ä'])
    expect(await unstored({ subject }), JSON.stringify(subject)).toBe('/console/sign-in?fault=provider')
  for (const email of ['a\0@staff.example', `${'x'.repeat(250)}@staff.example`, 'none', '\u202ea@staff.example'])
    expect(await unstored({ claims: { email } }), JSON.stringify(email)).toBe('/console/sign-in?fault=no_account')
  for (const name of ['a\0b\u001b[2J', '\u202enimda', ' ', 'x'.repeat(300), 'x'.repeat(199).concat('😀😀'), '\ud800'])
    expect(await unstored({ claims: { name } }), JSON.stringify(name)).toBe('/console')
  const { rows } = await byGroup.pool.query(
    `select name from users where name ~ '[[:cntrl:]]' or name like '%' || chr(8238) || '%'`,
  )
  expect(rows).toEqual([])
})

test('one network cannot make the service ask the provider without end', async () => {
  const [attacker, other] = [
    new Browser(byGroup, { address: '127.7.7.7' }),
    new Browser(byGroup, { address: '127.7.7.8' }),
  ]
  const start = async (browser: Browser) => (await browser.call('GET', '/console/v1/oidc/start')).status
  let status = await start(attacker)
  for (let count = 1; count < 150 && status === 303; count++) status = await start(attacker)
  expect(status).toBe(429)
  expect((await attacker.call('GET', '/console/v1/oidc/callback?code=x&state=y')).status).toBe(429)
  expect(await start(other)).toBe(303)
})

test.each(['nonce', 'issuer', 'audience', 'key', 'expired'] as const)(
  'an ID token with a wrong %s is refused',
  async wrong => {
    const browser = new Browser(byGroup)
    const person = { ...someone({ teams: ['operations'] }), wrong }
    expect(await through(browser, person)).toBe('/console/sign-in?fault=provider')
    expect((await browser.call('GET', '/console/v1/session')).status).toBe(401)
  },
)

test('a response that the browser did not request is refused: its state is wrong, missing, another browser’s, or used twice', async () => {
  const person = someone({ teams: ['payroll'] })
  const fault = '/console/sign-in?fault=provider'
  expect(await through(new Browser(byGroup), person, back => back.searchParams.set('state', 'x'))).toBe(fault)
  expect(await through(new Browser(byGroup), person, back => back.searchParams.delete('state'))).toBe(fault)
  expect(await through(new Browser(byGroup), person, back => back.searchParams.set('code', 'x'))).toBe(fault)

  const attacker = new Browser(byGroup)
  const started = await attacker.call('GET', '/console/v1/oidc/start')
  expect(String(started.setCookies)).toMatch(/^midmonth-oidc=[\w-]+; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/)
  const back = provider.authorize(String(started.headers.location), person)
  const victim = new Browser(byGroup)
  const open = async (browser: Browser) => (await browser.call('GET', back.pathname + back.search)).headers.location
  expect(await open(victim)).toBe(fault)
  expect(victim.cookies.size).toBe(0)
  expect(await open(attacker)).toBe('/console')
  expect(await open(attacker)).toBe(fault)
})

test('the sign-in page explains every fault that the browser is sent back with', () => {
  expect([...signInFaults.keys()]).toEqual(oidcFaults)
})

test('the page to sign in learns whether there is a provider', async () => {
  const asked = await new Browser(byGroup).call('GET', '/console/v1/sign-in')
  expect(asked.body).toEqual({ hasPassword: true, hasOidc: true, needsSetUp: false })
})

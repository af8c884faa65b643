import { afterAll, beforeAll, expect, test } from 'vitest'
import { Browser, type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { createLink } from './links.ts'
import { canonicalEmail, createUser } from './users.ts'

let harness: Harness
let operator: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  operator = await signIn(harness, { isOperator: true })
})
afterAll(() => harness.stop())

const password = 'correct horse battery'
const tokenIn = (url: string) => url.split('#')[1] ?? ''
const ofInstallation = { partner: null }
const linkFor = async (by: ConsoleUser, { user }: ConsoleUser) => {
  const made = await by.call('POST', `/console/v1/users/${user.id}/password-link`, ofInstallation)
  return tokenIn(made.body.url)
}
const reset = async (token: string) => {
  const body = { token, newPassword: 'another good password' }
  return (await new Browser(harness).call('POST', '/console/v1/password/reset', { body })).status
}

test.each([{ isOperator: false }, { isDisabled: true }])(
  'a former operator (%j) has no link left that opens another operator’s account',
  async change => {
    const leaving = await signIn(harness, { isOperator: true })
    const colleague = await signIn(harness, { isOperator: true, password })
    const [wayBack, kept] = [await linkFor(leaving, colleague), await linkFor(operator, leaving)]
    const path = `/console/v1/users/${leaving.user.id}`
    expect((await operator.call('PATCH', path, { ...ofInstallation, body: change })).status).toBe(200)
    expect(await reset(wayBack)).toBe(401)
    expect(await reset(kept)).toBe(401)
    const body = { email: colleague.user.email, password }
    expect((await new Browser(harness).call('POST', '/console/v1/sign-in', { body })).status).toBe(200)
  },
)

test('a change of a user who is not an operator leaves the links of others', async () => {
  const colleague = await signIn(harness, { roles: ['viewer'] })
  const other = await signIn(harness, { roles: ['viewer'] })
  const token = await linkFor(operator, colleague)
  const path = `/console/v1/users/${other.user.id}`
  await operator.call('PATCH', path, { ...ofInstallation, body: { isDisabled: true } })
  expect(await reset(token)).toBe(200)
})

test('an address with a letter that Unicode folds to an ASCII letter is another address', async () => {
  // The Kelvin sign and the dotted capital I have lower-case forms of ASCII letters.
  expect(canonicalEmail(' Kim@Example.COM ')).toBe('kim@example.com')
  expect(canonicalEmail('\u212aim@example.com')).toBe('\u212aim@example.com')
  expect(canonicalEmail('\u0130@example.com')).toHaveLength('\u0130@example.com'.length)
})

test('an address of the greatest length is invited whatever its letters, and one with invisible ones is refused', async () => {
  const invite = (email: string) =>
    operator.call('POST', '/console/v1/invitations', { ...ofInstallation, body: { email } })
  const longest = `${'\u0130'.repeat(242)}@example.com`
  expect((await invite(longest)).status).toBe(201)
  for (const email of [
    'admin\u200b@example.com',
    '\u202emoc.elpmaxe@nimda',
    'admin@exa\u00admple.com',
    'a\u0000@example.com',
    'a\u009b@example.com',
  ])
    expect((await invite(email)).status, JSON.stringify(email)).toBe(400)
})

test('a name cannot hold control characters or reverse the line it is in', async () => {
  const invited = await operator.call('POST', '/console/v1/invitations', {
    body: { email: 'named@console.example', roles: ['viewer'] },
  })
  const accept = (name: string) =>
    new Browser(harness).call('POST', '/console/v1/invitations/accept', {
      body: { token: tokenIn(invited.body.url), name, password },
    })
  for (const name of ['a\u0000', 'a\u009b2J', '\u202enimda', 'a\u2028b', 'a\nb'])
    expect((await accept(name)).status, JSON.stringify(name)).toBe(400)
  // With a joiner, as Persian names have.
  expect((await accept('علی\u200cرضا')).body.user.name).toBe('علی\u200cرضا')
})

test('the first operator takes an address that has no user yet', async () => {
  const live = await startHarness({ mode: 'live' })
  try {
    const now = live.clock.now()
    const taken = { email: 'ada@console.example', name: 'Ada', isOperator: false, now }
    const token = await live.db.transaction().execute(async tx => {
      await createUser(tx, taken)
      return await createLink(tx, { purpose: 'set_up', userId: null, lifeMs: 3_600_000, now })
    })
    const setUp = (email: string) =>
      new Browser(live).call('POST', '/console/v1/set-up', { body: { token, email, name: 'Founder', password } })
    expect((await setUp(taken.email)).status).toBe(409)
    // Of two requests at once, one makes the first operator.
    const answers = await Promise.all([setUp('one@console.example'), setUp('two@console.example')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
  } finally {
    await live.stop()
  }
})

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { OperatorOperations } from '../../packages/console/src/generated/operator.ts'
import type { Resources } from '../../packages/sdk/src/generated/operations.ts'
import type { Member } from '../../packages/sdk/src/generated/schemas.ts'
import { signIn } from '../harness/console.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { type Browser, openBrowser } from './browser.ts'

type Entered = Record<string, string>
type Signal<T> = { value: T; peek(): T }
type Console = {
  api: Resources
  operators: OperatorOperations
  partnerId: Signal<string | undefined>
  sessionEnded: Signal<boolean>
  showPartner(id: string | undefined): void
  send(method: string, path: string, options?: { body?: unknown }): Promise<unknown>
  toasts: Signal<{ text: string; undo?: () => void }[]>
  actUnlessUndone(text: string, doing: () => PromiseLike<unknown>, options: { changes: string[] }): void
  loadSession(): Promise<void>
  signOut(): Promise<void>
  flushDeferred(): Promise<void>
  session: Signal<{ user: { id: string } } | null>
  explain(error: unknown): { title: string }
  changesOf(member: Member, entered: Entered): unknown
  dayIn(timeZone: string, instant: Date): string
  daysBetween(from: string, to: string): number
}

let harness: Harness
let browser: Browser
let front: Console

const newMember = (firstName: string) => {
  const email = `${firstName}@example.com`.toLowerCase()
  return { email, firstName, lastName: 'Stone', tier: 'Silver' }
}
const problemOf = (call: PromiseLike<unknown>) =>
  call.then(
    () => 'none',
    error => front.explain(error).title,
  )
const says = () => front.toasts.peek().map(({ text }) => text)
const countOf = async (email: string) => (await harness.call('GET', `/v1/members?emails=${email}`)).body.total

beforeAll(async () => {
  harness = await startHarness()
  browser = openBrowser(harness, await harness.app.listen({ host: '127.0.0.1', port: 0 }))
  // Imported after the browser's globals are set, and by address, because the console’s own tsconfig checks these files.
  const files = [
    'api.ts',
    'operators.ts',
    'act.ts',
    'session.ts',
    'toasts.ts',
    'problems.ts',
    'member-fields.ts',
    'days.ts',
  ]
  const modules = await Promise.all(
    files.map(file => import(String(new URL(`../../packages/console/src/${file}`, import.meta.url)))),
  )
  front = Object.assign({}, ...modules)
})
beforeEach(async () => {
  front.toasts.value = []
  await browser.signIn({ roles: ['admin'] })
  front.sessionEnded.value = false
  front.showPartner(harness.partner.id)
})
afterAll(async () => {
  browser?.close()
  await harness?.stop()
})

describe('a change that the reader makes', () => {
  test('takes effect once when the reader presses again after a lost response', async () => {
    browser.loseAnswers()
    expect(await problemOf(front.api.members.invite(newMember('Ada')))).toBe('No connection')
    expect(await countOf('ada@example.com')).toBe(1)
    await front.api.members.invite(newMember('Ada'))
    expect(await countOf('ada@example.com')).toBe(1)
    expect(says()).toEqual(['An earlier attempt already succeeded; nothing was done twice'])
    // The response is final, so the next press is a new change.
    expect(await problemOf(front.api.members.invite(newMember('Ada')))).toBe('Request rejected')
  })

  test('is rejected with other values after a lost response, and accepted after the reader has been told', async () => {
    browser.loseAnswers()
    expect(await problemOf(front.api.members.invite(newMember('Bob')))).toBe('No connection')
    expect(await problemOf(front.api.members.invite(newMember('Cleo')))).toBe('An earlier attempt took effect')
    await front.api.members.invite(newMember('Cleo'))
    expect([await countOf('bob@example.com'), await countOf('cleo@example.com')]).toEqual([1, 1])
  })

  test('is not affected by a lost response about another record or a dry run', async () => {
    const [one, other] = [await memberId(), await memberId()]
    browser.loseAnswers()
    expect(await problemOf(front.api.sandbox.members.fund(one, pay(5_000)))).toBe('No connection')
    await front.api.sandbox.members.fund(other, pay(5_000))
    await front.api.sandbox.members.fund(one, pay(5_000))
    expect([await availableOf(one), await availableOf(other)]).toEqual([5_000, 5_000])

    const list = (tier: string) => `email,first_name,last_name,phone,tier\ndora@example.com,Dora,Stone,,${tier}\n`
    browser.loseAnswers()
    const check = (text: string) => front.api.memberJobs.createFromFileV2(text, { dryRun: true })
    expect(await problemOf(check(list('Silver')))).toBe('No connection')
    expect((await check(list('Gold'))).plan.invite).toBe(1)
  })

  test('that has since been reversed is made again, even if its first response was lost', async () => {
    await browser.signIn({ isOperator: true })
    const partnerId = harness.partner.id as `par_${string}`
    const isPaused = async () => (await front.operators.getPartner(partnerId)).paused !== null
    browser.loseAnswers()
    expect(await problemOf(front.operators.pausePartner(partnerId, { reason: 'fraud' }))).toBe('No connection')
    expect(await isPaused()).toBe(true)
    await front.operators.resumePartner(partnerId, {})
    await front.operators.pausePartner(partnerId, { reason: 'fraud' })
    expect(await isPaused()).toBe(true)
    await front.operators.resumePartner(partnerId, {})

    const id = await memberId()
    browser.loseAnswers()
    expect(await problemOf(front.api.members.offboard(id))).toBe('No connection')
    const { email, firstName, lastName, tier } = await front.api.members.get(id)
    await front.api.members.replace(id, { email, firstName, lastName, tier })
    expect(await statusOf(id)).not.toBe('inactive')
    await front.api.members.offboard(id)
    expect(await statusOf(id)).toBe('inactive')
  })

  test('applies to the partner shown when it was requested, even in a second attempt', async () => {
    const other = await harness.addPartner('Another Partner')
    await browser.signIn({ isOperator: true })
    browser.loseAnswers(1)
    const invited = front.api.members.invite(newMember('Eve'))
    front.showPartner(other.partner.id)
    await invited
    expect(browser.sent.slice(-2).map(({ partner }) => partner)).toEqual([harness.partner.id, harness.partner.id])
    expect(await countOf('eve@example.com')).toBe(1)
  })

  test('that can still be undone is made for its own partner when the reader switches to another', async () => {
    const id = await memberId()
    front.actUnlessUndone('Offboarded', () => front.api.members.offboard(id), { changes: [] })
    expect(await statusOf(id)).toBe('active')
    front.showPartner(harness.other.partner.id)
    await expect.poll(() => statusOf(id)).toBe('inactive')
    expect(says()).toEqual([])
  })

  test('that can still be undone is made before the reader is signed out', async () => {
    await front.loadSession()
    const id = await memberId()
    front.actUnlessUndone('Offboarded', () => front.api.members.offboard(id), { changes: [] })
    await front.signOut()
    expect(await statusOf(id)).toBe('inactive')
    expect(front.session.value).toBeNull()
  })
})

test('a change is sent even if the reader closes the page at once, including changes to users', async () => {
  const { user } = await signIn(harness, { roles: ['viewer'] })
  front.actUnlessUndone('Removed', () => front.send('DELETE', `/console/v1/users/${user.id}`), { changes: [] })
  // Simulates closing the page.
  await front.flushDeferred()
  await front.send('GET', '/console/v1/users?take=1000')
  await front.api.members.invite(newMember('Finn'))
  const isKeptAlive = new Map(browser.sent.map(({ request, isKeptAlive }) => [request, isKeptAlive]))
  expect(isKeptAlive.get(`DELETE /console/v1/users/${user.id}`)).toBe(true)
  expect(isKeptAlive.get('POST /v1/members')).toBe(true)
  expect(isKeptAlive.get('GET /console/v1/users')).toBe(false)
})

describe('a reader', () => {
  test('who mistypes the current password sees an error and stays signed in', async () => {
    const body = { password: 'not this one', newPassword: 'a horse that counts wages' }
    const changed = front.send('POST', '/console/v1/password', { body })
    await expect(changed).rejects.toMatchObject({ code: 'SignInRefused' })
    expect(front.sessionEnded.value).toBe(false)
  })

  test('stays signed in when the response to loading the session or to signing out is lost', async () => {
    await front.loadSession()
    const reader = front.session.value
    expect(reader).not.toBeNull()
    browser.loseAnswers(1)
    expect(await problemOf(front.loadSession())).toBe('No connection')
    expect(front.session.value).toBe(reader)
    browser.loseAnswers(1)
    await front.signOut()
    expect(front.session.value).toBe(reader)
    expect(says()).toEqual([expect.stringMatching(/^No connection/)])
    await front.signOut()
    expect(front.session.value).toBeNull()
  })

  test('whose session has ended is asked to sign in', async () => {
    browser.signOut()
    expect(await problemOf(front.api.tiers.list())).toBe('Request rejected')
    expect(front.sessionEnded.value).toBe(true)
  })
})

describe('a form', () => {
  const shown = {
    email: 'sam@example.com',
    firstName: 'Sam',
    lastName: 'Okafor',
    tier: 'Silver',
    phone: '+447700900123',
  }
  const member = { ...shown, workerId: null } as Member
  const untouched = { ...shown, workerId: '', accountHolder: '', sortCode: '', accountNumber: '', iban: '' }

  test('for a member sends only the fields that the reader has changed', () => {
    expect(front.changesOf(member, untouched)).toEqual({})
    expect(front.changesOf(member, { ...untouched, lastName: 'Stone' })).toEqual({ lastName: 'Stone' })
    expect(front.changesOf(member, { ...untouched, phone: '', workerId: 'W7' })).toEqual({
      phone: null,
      workerId: 'W7',
    })
    const account = { accountHolder: 'Sam Okafor', iban: 'DE89370400440532013000' }
    expect(front.changesOf(member, { ...untouched, ...account })).toEqual({ accountDetails: account })
  })

  test('for a member keeps the tier until the tiers have loaded', () => {
    expect(front.changesOf(member, { ...untouched, tier: '' })).toEqual({})
  })
})

describe('a calendar day', () => {
  test('is the day in the partner’s time zone, whatever the reader’s time zone', () => {
    const instant = new Date('2026-03-31T23:30:00Z')
    expect(['Europe/London', 'America/New_York', 'Pacific/Auckland'].map(zone => front.dayIn(zone, instant))).toEqual([
      '2026-04-01',
      '2026-03-31',
      '2026-04-01',
    ])
  })

  test('is counted correctly across a daylight saving change', () => {
    expect(front.daysBetween('2026-03-28', '2026-03-30')).toBe(2)
  })
})

const memberId = async () => (await harness.addMember()) as `mem_${string}`
const pay = (amount: number) => ({ amount: { amount, currency: 'GBP' as const } })
const availableOf = async (id: string) =>
  (await harness.call('GET', `/v1/pay/members/${id}/balance`)).body.available.amount
const statusOf = async (id: string) => (await harness.call('GET', `/v1/members/${id}`)).body.status

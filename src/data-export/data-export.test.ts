import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { list } from '../audit-log/audit-log.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const pathOf = (memberId: string) => `/v1/members/${memberId}/data-export`
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const profile = {
  ...{ email: 'ada.quux@example.com', firstName: 'Ada <b>', lastName: 'Quux', phone: '+447700900117', tier: 'Silver' },
  ...{ workerId: 'W-117', dob: '1971-01-17', gender: 'Female', enablePayroll: true, accountDetails: goodAccount },
}

/** A member to whom everything has happened. */
async function live({ key, partner }: TestPartner) {
  const call = (method: string, path: string, body?: object) =>
    harness.call(method, path, { key, ...(body === undefined ? {} : { body }) })
  const { memberId } = (await call('POST', '/v1/members', profile)).body
  await call('PUT', `/v1/members/${memberId}/metadata`, { metadata: { depot: 'North' } })
  await call('POST', '/v1/pay/run', { payDetails: [{ memberId, money: gbp(50_000) }] })
  const [paid, cancelled] = [await harness.withdraw({ memberId, key }), await harness.withdraw({ memberId, key })]
  expect((await call('POST', `/v1/pay/withdrawals/${cancelled}/cancel`)).status).toBe(200)
  const unused = await harness.createIntent({ memberId, key })
  await call('DELETE', `/v1/pay/withdrawals/intent/${unused}`)
  const pending = await harness.createIntent({ memberId, key })
  harness.clock.advance({ minutes: 5 })
  await harness.runTask('submit-withdrawals')
  await harness.runTask('read-rail-reports')
  const account = { ...goodAccount, accountHolder: 'A Quux' }
  await call('PATCH', `/v1/members/${memberId}`, { accountDetails: account })
  const actions = [{ type: 'Update', memberId, lastName: 'Quux-Ito' }]
  const { jobId } = (await call('POST', '/v1/members/jobs', { actions })).body
  await harness.runTask('apply-member-imports')
  await call('POST', '/v1/pay/run', { payDetails: [{ memberId, money: gbp(-1_000) }] })
  const session = (await call('POST', '/v1/member-sessions', { memberId, scope: 'read' })).body
  await call('GET', `/v1/members/${memberId}`)
  return { memberId, paid, cancelled, unused, pending, jobId, account, session, partner }
}

test('an export has everything about one person, and nothing about others', async () => {
  const mine = await harness.addPartner('Complete')
  const lived = await live(mine)
  const other = await harness.addMember({ key: mine.key, available: 9_000 })
  await harness.withdraw({ memberId: other, key: mine.key })
  const { status, body, text } = await harness.call('GET', pathOf(lived.memberId), { key: mine.key })
  expect(status).toBe(200)
  expect(text).not.toContain(other)
  expect(body).toMatchObject({ employer: 'Complete', generatedAt: harness.clock.now().toISOString() })
  expect(body.profile).toMatchObject({
    ...{ ...profile, lastName: 'Quux-Ito', accountDetails: lived.account, memberId: lived.memberId, status: 'active' },
    ...{ lastFour: '4958', metadata: { depot: 'North' }, accountRefused: null, reviewReason: null },
  })
  expect(body.payCycles).toContainEqual(
    expect.objectContaining({ payCycleId: mine.payCycle.id, reason: 'pay_run.available', available: gbp(49_000) }),
  )
  const { lines } = (await harness.call('GET', `/v1/pay/members/${lived.memberId}/statement`, { key: mine.key })).body
  expect(body.statement).toEqual(lines)
  expect(body.intents.map((each: { withdrawalIntentId: string }) => each.withdrawalIntentId)).toEqual([
    lived.unused,
    lived.pending,
  ])
  expect(body.intents[0]).toMatchObject({ status: 'cancelled', amount: gbp(5_000), accountDetails: goodAccount })
  const [cancelled, paid] = body.withdrawals
  expect([cancelled.withdrawal.id, paid.withdrawal.id]).toEqual([lived.cancelled, lived.paid])
  expect(paid.accountDetails).toEqual(goodAccount)
  expect(paid.withdrawal.paymentReference).toMatch(/^MM/)
  expect(paid.withdrawal.timeline.map((each: { status: string }) => each.status).slice(0, 2)).toEqual([
    'held',
    'submitted',
  ])
  expect(body.imports).toEqual([expect.objectContaining({ jobId: lived.jobId, action: 'Update', fault: null })])
  expect(body.auditEntries.map((each: { action: string }) => each.action).toSorted()).toEqual([
    ...['member.data_export', 'member.invite', 'member.read', 'member.update', 'metadata.set', 'withdrawal.cancel'],
  ])
  expect(body.sessions).toEqual([expect.objectContaining({ id: lived.session.id, scope: 'read', origin: null })])
})

test('as a page it has the same, and shows names as text', async () => {
  const mine = await harness.addPartner('Readable')
  const lived = await live(mine)
  const asked = { key: mine.key, headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }
  const { text, headers } = await harness.call('GET', pathOf(lived.memberId), asked)
  expect(headers['content-type']).toBe('text/html; charset=utf-8')
  expect(headers.vary).toMatch(/accept/i)
  expect(headers['content-security-policy']).toMatch(/default-src 'none'/)
  for (const each of [
    ...[
      'Ada &lt;b&gt;',
      'Quux-Ito',
      'ada.quux@example.com',
      '1971-01-17',
      '+447700900117',
      'W-117',
      'North',
      '66374958',
    ],
    ...[lived.paid, lived.cancelled, lived.unused, lived.pending, lived.jobId, lived.session.id, '490.00 GBP'],
    ...['member.data_export', 'withdrawal.cancel', '2026-03-10T'],
  ])
    expect(text, each).toContain(each)
  expect(text).not.toContain('<b>')
  expect(text).not.toMatch(/undefined|\[object/)
})

test('a member reads the own export with a session, without whole accounts', async () => {
  const mine = await harness.addPartner('Own')
  const lived = await live(mine)
  const other = await harness.addMember({ key: mine.key })
  const read = (accept: string) =>
    harness.call('GET', '/v1/me/data-export', {
      key: null,
      headers: { authorization: `Bearer ${lived.session.token}`, accept },
    })
  const { status, body, text } = await read('application/json')
  expect([status, body.profile.memberId, body.profile.lastFour]).toEqual([200, lived.memberId, '4958'])
  expect([body.profile.accountDetails, body.withdrawals[0].accountDetails]).toEqual([null, null])
  for (const each of [text, (await read('text/html')).text]) {
    expect(each).toContain(lived.paid)
    expect(each).not.toContain(goodAccount.accountNumber)
    expect(each).not.toContain(other)
  }
})

test('a member’s own export does not show that they are or were held for review', async () => {
  const mine = await harness.addPartner('Suspicious')
  const { memberId, session } = await live(mine)
  const review = (reviewReason: string | null) =>
    harness.ownerDb.updateTable('members').set({ reviewReason }).where('id', '=', memberId).execute()
  const own = () =>
    harness.call('GET', '/v1/me/data-export', { key: null, headers: { authorization: `Bearer ${session.token}` } })
  await review('MD07 The payee has died')
  expect((await harness.call('GET', pathOf(memberId), { key: mine.key })).body.profile.reviewReason).toMatch(/^MD07/)
  const held = await own()
  expect([held.status, held.body.profile.reviewReason]).toEqual([200, null])
  const operator = await harness.addOperator()
  expect((await operator.call('POST', `/members/${memberId}/release`, { body: {} })).body.released).toBe(true)
  const released = await own()
  for (const { text } of [held, released]) expect(text).not.toMatch(/MD07|member\.release/)
  expect(released.body.auditEntries.length).toBeGreaterThan(3)
})

test('an export is in the audit log, and another partner’s or unknown member is not found', async () => {
  const mine = await harness.addPartner('Audited')
  const memberId = await harness.addMember({ key: mine.key })
  await harness.call('GET', pathOf(memberId), { key: mine.key })
  const operator = await harness.addOperator()
  const found = await operator.call('GET', `/audit-log?actions=member.data_export&partnerId=${mine.partner.id}`)
  expect(found.body.entries).toEqual([
    expect.objectContaining({ resourceId: memberId, actorKind: 'api_key', details: { count: 1, isOwn: false } }),
  ])
  for (const [id, key] of [
    [memberId, harness.key],
    ['mem_01kah4pzc5e4r8v2m6t0x9y3bd', mine.key],
  ] as const) {
    const { status, body } = await harness.call('GET', pathOf(id), { key, headers: { accept: 'text/html' } })
    expect([status, body.issues[0].code]).toEqual([404, 'MemberNotFound'])
  }
  const narrow = await harness.addKey(['pay:read'], { partnerId: mine.partner.id })
  expect((await harness.call('GET', pathOf(memberId), { key: narrow.secret })).status).toBe(403)
})

test('a payroll clerk saves the page for a reason, which is recorded; others may not', async () => {
  const mine = await harness.addPartner('Console')
  const { memberId } = await live(mine)
  const path = `/console/v1/members/${memberId}/data-export`
  const as = (role: 'payroll' | 'support') => signIn(harness, { partnerId: mine.partner.id, roles: [role] })
  const clerk = await as('payroll')
  const { status, text } = await clerk.call('POST', path, { body: { reason: 'She asked for it' } })
  expect([status, text.includes(goodAccount.accountNumber), text.includes('1971-01-17')]).toEqual([200, true, true])
  expect((await clerk.call('POST', path, { body: {} })).status).toBe(400)
  expect((await (await as('support')).call('POST', path, { body: { reason: 'Curious' } })).status).toBe(403)
  const entries = await list(harness.db, { filter: { resourceId: memberId, actions: ['member.data_export'] }, take: 9 })
  expect(entries).toEqual([
    expect.objectContaining({
      ...{ actorKind: 'user', actor: clerk.user.id },
      details: { count: 1, isOwn: false, reason: 'She asked for it' },
    }),
  ])
})

test('hundreds of withdrawals are read page by page, each once', async () => {
  const mine = await harness.addPartner('Many')
  const memberId = await harness.addMember({ key: mine.key, available: 500_000 })
  const made: string[] = []
  for (let count = 0; count < 205; count++)
    made.push(await harness.withdraw({ memberId, amount: 1_000, key: mine.key }))
  const { body } = await harness.call('GET', pathOf(memberId), { key: mine.key })
  expect(body.withdrawals.map(({ withdrawal }: { withdrawal: { id: string } }) => withdrawal.id)).toEqual(
    made.toReversed(),
  )
  // The pay, and two lines of each withdrawal: the net amount and the fee.
  expect(new Set(body.statement.map(({ id }: { id: string }) => id)).size).toBe(411)
})

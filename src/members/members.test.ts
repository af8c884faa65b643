import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { badAccount, euAccount, goodAccount } from '../../test/harness/samples.ts'
import { newId } from '../kernel/ids.ts'

let harness: Harness
/** A partner whose members stay invited until they are activated; the harness's own activates at once. */
let careful: TestPartner

beforeAll(async () => {
  harness = await startHarness()
  careful = await harness.addPartner('Careful Partner', { autoActivate: false })
})
afterAll(() => harness.stop())

const unique = () => randomBytes(6).toString('hex')
const newMember = (fields: object = {}) => ({
  ...{ email: `${unique()}@example.com`, firstName: 'Sam', lastName: 'Okafor', tier: 'Bronze' },
  ...fields,
})
const whole = () =>
  newMember({
    ...{ phone: '+447700900123', workerId: `E-${unique()}`, accountDetails: goodAccount },
    ...{ enablePayroll: false, dob: '1990-06-24', gender: 'NonBinary' },
  })

async function invite(fields: object = {}, { key = harness.key } = {}) {
  const { status, body, text } = await harness.call('POST', '/v1/members', { key, body: newMember(fields) })
  if (status !== 201) throw new Error(`Setting up a member failed: ${text}`)
  return body as { memberId: string; email: string; workerId: string | null; status: string }
}

const patch = (memberId: string, body: unknown, { key = harness.key } = {}) =>
  harness.call('PATCH', `/v1/members/${memberId}`, { key, body })
const put = (memberId: string, body: unknown, { key = harness.key } = {}) =>
  harness.call('PUT', `/v1/members/${memberId}`, { key, body })
const remove = (memberId: string, { key = harness.key } = {}) =>
  harness.call('DELETE', `/v1/members/${memberId}`, { key })
const activate = (memberId: string, { key = harness.key } = {}) =>
  harness.call('POST', `/v1/members/${memberId}/activate`, { key })

async function eventsOf(memberId: string) {
  const rows = await harness.db
    .selectFrom('events')
    .select(['type', 'data'])
    .where('resourceId', '=', memberId)
    .orderBy('sequence')
    .execute()
  return rows.map(({ type, data }) => ({ type, ...(data as { status: string; changed?: string[] }) }))
}

describe('inviting a member', () => {
  test('returns the whole member as stored', async () => {
    const body = { ...whole(), phone: '07700 900123', accountDetails: { ...goodAccount, sortCode: '08-99-99' } }
    const invited = await harness.call('POST', '/v1/members', { body })
    expect(invited.status).toBe(201)
    expect(invited.body).toEqual({
      ...{ ...body, memberId: invited.body.memberId, status: 'active' },
      ...{ phone: '+447700900123', accountDetails: goodAccount },
    })
    const read = await harness.call('GET', `/v1/members/${invited.body.memberId}`)
    expect(read.text).toBe(invited.text)
  })

  test('sets omitted fields to null, and enables payroll', async () => {
    const body = newMember()
    const invited = await harness.call('POST', '/v1/members', { body })
    expect(invited.body).toEqual({
      ...{ ...body, memberId: invited.body.memberId, status: 'active', enablePayroll: true },
      ...{ phone: null, workerId: null, accountDetails: null, dob: null, gender: null },
    })
  })

  test('accepts null wherever a response has null', async () => {
    const nulls = { phone: null, workerId: null, accountDetails: null, dob: null, gender: null }
    expect((await harness.call('POST', '/v1/members', { body: newMember(nulls) })).status).toBe(201)
  })

  test('accepts an IBAN, and an account whose sort code has no published rules', async () => {
    expect(await invite({ accountDetails: euAccount })).toMatchObject({ accountDetails: euAccount })
    const unknown = { ...goodAccount, sortCode: '000001' }
    expect(await invite({ accountDetails: unknown })).toMatchObject({ accountDetails: unknown })
  })

  test('is invited first, and active at once only with autoActivate; both transitions emit an event', async () => {
    const quick = await invite()
    expect(quick.status).toBe('active')
    expect(await eventsOf(quick.memberId)).toEqual([
      { type: 'member.invited', memberId: quick.memberId, status: 'invited' },
      { type: 'member.activated', memberId: quick.memberId, status: 'active' },
    ])
    const slow = await invite({}, careful)
    expect(slow.status).toBe('invited')
    expect((await eventsOf(slow.memberId)).map(event => event.type)).toEqual(['member.invited'])
  })

  test.each([
    ['email', { email: 'sam' }],
    ['email', { email: `${'x'.repeat(250)}@example.com` }],
    ['email', { email: null }],
    ['email', { email: 'x@b.c' }],
    ['email', { email: 'x@example.com1' }],
    ['email', { email: 'x@пример.xn--p1ai' }],
    ['email', { email: 'x@example.xn--p1ai' }],
    ['email', { email: '.x@example.com' }],
    ['email', { email: 'x.@example.com' }],
    ['email', { email: 'x..y@example.com' }],
    ['email', { email: 'x!y@example.com' }],
    ['email', { email: "x'@example.com" }],
    ['email', { email: 'x@[127.0.0.1]' }],
    ['firstName', { firstName: '  ' }],
    ['firstName', { firstName: 'x'.repeat(101) }],
    ['firstName', { firstName: '\u200b\u2060' }],
    ['lastName', { lastName: '\u3164' }],
    ['workerId', { workerId: '\u200b' }],
    ['accountDetails.accountHolder', { accountDetails: { ...goodAccount, accountHolder: '\u2800' } }],
    ['accountDetails.accountHolder', { accountDetails: { ...euAccount, accountHolder: '\u0301' } }],
    ['lastName', { lastName: 'Oka\nfor' }],
    ['lastName', { lastName: 7 }],
    ['tier', { tier: '' }],
    ['phone', { phone: 447700900123 }],
    ['phone', { phone: '1'.repeat(33) }],
    ['workerId', { workerId: '' }],
    ['workerId', { workerId: ' 7' }],
    ['workerId', { workerId: 'x'.repeat(101) }],
    ['dob', { dob: '2026-02-30' }],
    ['dob', { dob: '24.06.1990' }],
    ['gender', { gender: 'female' }],
    ['enablePayroll', { enablePayroll: null }],
    ['enablePayroll', { enablePayroll: 'true' }],
    ['accountDetails.sortCode', { accountDetails: { ...goodAccount, sortCode: '0899' } }],
    ['accountDetails.iban', { accountDetails: { ...euAccount, iban: 'DE89' } }],
    ['accountDetails.bic', { accountDetails: { ...euAccount, bic: 'COBADEFF' } }],
    ['accountDetails', { accountDetails: 'none' }],
    ['status', { status: 'active' }],
  ])('with a malformed %s is a BodyValidation of that field: %j', async (path, fields) => {
    const refused = await harness.call('POST', '/v1/members', { body: newMember(fields) })
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'BodyValidation', path }])
  })

  test.each(["o'neil+x@mail.example.co.uk", '_@a.bc', 'a-b@x-y.travel'])('accepts the e-mail %s', async email => {
    expect(await invite({ email })).toMatchObject({ email })
  })

  test('without its required fields names all four at once', async () => {
    const refused = await harness.call('POST', '/v1/members', { body: {} })
    expect(refused.status).toBe(400)
    expect(refused.body.issues.map((issue: { path: string }) => issue.path)).toEqual([
      'email',
      'firstName',
      'lastName',
      'tier',
    ])
  })

  test.each([
    ['a tier that does not exist', { tier: 'Platinum' }, 'Bronze, Gold, Silver, Silver EU'],
    ['an account that fails its check', { accountDetails: badAccount }, 'bank account'],
    [
      'an IBAN that fails its check',
      { accountDetails: { ...euAccount, iban: 'DE89370400440532013001' } },
      'bank account',
    ],
    ['a phone number that cannot be one', { phone: '12' }, 'phone'],
    ['a day of birth in the future', { dob: '2026-03-11' }, 'dob'],
  ])('with %s is an InvalidAddMemberPayload that says so', async (_what, fields, says) => {
    const body = newMember(fields)
    const refused = await harness.call('POST', '/v1/members', { body })
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidAddMemberPayload', email: body.email }])
    expect(refused.body.issues[0].message).toContain(says)
  })

  test('with the e-mail of a member, in any case, names that member', async () => {
    const { memberId, email } = await invite()
    const refused = await harness.call('POST', '/v1/members', { body: newMember({ email: email.toUpperCase() }) })
    expect(refused.status).toBe(409)
    expect(refused.body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId }])
  })

  test('with the e-mail of an offboarded member creates a new one', async () => {
    const { memberId, email } = await invite()
    await remove(memberId)
    expect((await invite({ email })).memberId).not.toBe(memberId)
  })

  test('with the workerId of a member names that member, even an offboarded one', async () => {
    const { memberId, workerId } = await invite({ workerId: `E-${unique()}` })
    await remove(memberId)
    const refused = await harness.call('POST', '/v1/members', { body: newMember({ workerId }) })
    expect(refused.status).toBe(409)
    expect(refused.body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId }])
  })

  test('with the e-mail and workerId of another partner’s member succeeds', async () => {
    const { email, workerId } = await invite({ workerId: `E-${unique()}` }, harness.other)
    expect((await harness.call('POST', '/v1/members', { body: newMember({ email, workerId }) })).status).toBe(201)
  })

  test('twenty times at once creates one member, whom the other nineteen responses name', async () => {
    const email = `${unique()}@example.com`
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        harness.call('POST', '/v1/members', {
          body: newMember({ email: n % 2 === 0 ? email : email.toUpperCase(), workerId: `E-${unique()}` }),
        }),
      ),
    )
    const made = answers.filter(answer => answer.status === 201)
    const refused = answers.filter(answer => answer.status === 409)
    expect([made.length, refused.length]).toEqual([1, 19])
    for (const { body } of refused) {
      expect(body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: made[0]?.body.memberId }])
    }
  })

  test('twenty times at once with one workerId creates one member too', async () => {
    const workerId = `E-${unique()}`
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => harness.call('POST', '/v1/members', { body: newMember({ workerId }) })),
    )
    const made = answers.filter(answer => answer.status === 201)
    expect(made.length).toBe(1)
    for (const { status, body } of answers.filter(answer => answer !== made[0])) {
      expect(status).toBe(409)
      expect(body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: made[0]?.body.memberId }])
    }
  })
})

describe('reading members', () => {
  test('gives the newest first, a page at a time', async () => {
    const { key } = await harness.addPartner('Lister')
    const made: string[] = []
    for (let n = 0; n < 5; n++) {
      harness.clock.advance({ seconds: 1 })
      made.push((await invite({}, { key })).memberId)
    }
    const page = await harness.call('GET', '/v1/members?skip=1&take=2', { key })
    expect(page.status).toBe(200)
    expect(page.body).toMatchObject({ total: 5, skip: 1, take: 2 })
    expect(page.body.members.map((member: { memberId: string }) => member.memberId)).toEqual([made[3], made[2]])
    expect((await harness.call('GET', '/v1/members', { key })).body).toMatchObject({ total: 5, skip: 0, take: 50 })
  })

  test('filters by ids, statuses, e-mails in any case and workerIds, and by all of them together', async () => {
    const { key } = await harness.addPartner('Filterer')
    const a = await invite({ workerId: 'A 1' }, { key })
    const b = await invite({ workerId: 'B 1' }, { key })
    const c = await invite({}, { key })
    await remove(c.memberId, { key })
    const found = async (query: Record<string, string[]>) => {
      const text = Object.entries(query).flatMap(([name, values]) =>
        values.map(value => [name, value] as [string, string]),
      )
      const { body } = await harness.call('GET', `/v1/members?${new URLSearchParams(text)}`, { key })
      const ids = body.members.map((member: { memberId: string }) => member.memberId)
      expect(body.total).toBe(ids.length)
      return ids.toSorted()
    }
    const ids = (...members: { memberId: string }[]) => members.map(member => member.memberId).toSorted()
    expect(await found({ memberIds: [a.memberId, c.memberId] })).toEqual(ids(a, c))
    expect(await found({ statuses: ['inactive'] })).toEqual(ids(c))
    expect(await found({ statuses: ['inactive', 'active'] })).toEqual(ids(a, b, c))
    expect(await found({ emails: [a.email.toUpperCase(), c.email] })).toEqual(ids(a, c))
    expect(await found({ workerIds: ['B 1', 'unknown'] })).toEqual(ids(b))
    expect(await found({ emails: [a.email, c.email], statuses: ['active'] })).toEqual(ids(a))
    expect(await found({ memberIds: [newId('member', harness.clock.now())] })).toEqual([])
  })

  test.each([
    ['memberIds.0', 'memberIds=wi_01kah4pzc5e4r8v2m6t0x9y3bd'],
    ['statuses.0', 'statuses=gone'],
    ['emails.0', 'emails=sam'],
    ['workerIds.1', 'workerIds=E-1&workerIds='],
    ['workerIds', Array.from({ length: 101 }, (_, n) => `workerIds=${n}`).join('&')],
    ['take', 'take=1001'],
    ['skip', 'skip=-1'],
    ['name', 'name=Sam'],
  ])('with a malformed %s is a QueryValidation', async (path, query) => {
    const refused = await harness.call('GET', `/v1/members?${query}`)
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'QueryValidation', path }])
  })

  test('accepts a hundred values of a filter', async () => {
    const query = Array.from({ length: 100 }, (_, n) => `workerIds=none-${n}`).join('&')
    expect((await harness.call('GET', `/v1/members?${query}`)).body.members).toEqual([])
  })

  test('never shows another partner’s members', async () => {
    const { memberId } = await invite({}, harness.other)
    const { body } = await harness.call('GET', `/v1/members?memberIds=${memberId}`)
    expect(body).toMatchObject({ members: [], total: 0 })
  })
})

describe('updating a member', () => {
  test('changes the given fields, keeps the rest, and emits the names of the fields but never their values', async () => {
    const before = await invite(whole())
    const after = await patch(before.memberId, { lastName: 'Ade', phone: null, accountDetails: euAccount })
    expect(after.status).toBe(200)
    expect(after.body).toEqual({ ...before, lastName: 'Ade', phone: null, accountDetails: euAccount })
    expect((await harness.call('GET', `/v1/members/${before.memberId}`)).text).toBe(after.text)
    const emitted = (await eventsOf(before.memberId)).at(-1)
    expect(emitted).toMatchObject({ type: 'member.updated', memberId: before.memberId, status: 'active' })
    expect(emitted?.changed?.toSorted()).toEqual(['accountDetails', 'lastName', 'phone'])
    expect(Object.keys(emitted ?? {}).toSorted()).toEqual(['changed', 'memberId', 'status', 'type'])
  })

  test('removes optional fields with null', async () => {
    const { memberId } = await invite(whole())
    const nulls = { phone: null, workerId: null, accountDetails: null, dob: null, gender: null }
    expect((await patch(memberId, nulls)).body).toMatchObject(nulls)
  })

  test('with no fields, or with equal values, changes nothing and emits nothing', async () => {
    const before = await invite(whole())
    const emitted = await eventsOf(before.memberId)
    const { memberId: _memberId, status: _status, ...same } = before
    for (const body of [{}, same, { email: before.email.toUpperCase(), phone: '07700 900123' }]) {
      const after = await patch(before.memberId, body)
      expect(after.status).toBe(200)
      expect(after.body).toEqual(before)
    }
    expect(await eventsOf(before.memberId)).toEqual(emitted)
  })

  test('changes the e-mail of an invited member, and of no other', async () => {
    const { memberId } = await invite({}, careful)
    const email = `${unique()}@example.com`
    expect((await patch(memberId, { email }, careful)).body.email).toBe(email)
    await activate(memberId, careful)
    const refused = await patch(memberId, { email: `${unique()}@example.com` }, careful)
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidUpdateMemberPayload', memberId }])
  })

  test('does not reinstate an inactive member, but changes the profile', async () => {
    const { memberId } = await invite()
    await remove(memberId)
    expect((await patch(memberId, { lastName: 'Ade' })).body).toMatchObject({ status: 'inactive', lastName: 'Ade' })
  })

  test.each([
    ['a tier that does not exist', { tier: 'Platinum' }],
    ['an account that fails its check', { accountDetails: badAccount }],
    ['a phone number that cannot be one', { phone: '12' }],
    ['a day of birth in the future', { dob: '2099-01-01' }],
  ])('with %s is an InvalidUpdateMemberPayload and changes nothing', async (_what, fields) => {
    const before = await invite(whole())
    const refused = await patch(before.memberId, { lastName: 'Ade', ...fields })
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidUpdateMemberPayload', memberId: before.memberId }])
    expect((await harness.call('GET', `/v1/members/${before.memberId}`)).body).toEqual(before)
  })

  test.each([
    ['firstName', { firstName: null }],
    ['tier', { tier: null }],
    ['email', { email: 'sam' }],
    ['enablePayroll', { enablePayroll: null }],
    ['memberId', { memberId: 'mem_01kah4pzc5e4r8v2m6t0x9y3bd' }],
  ])('with a malformed %s is a BodyValidation', async (path, body) => {
    const { memberId } = await invite()
    const refused = await patch(memberId, body)
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'BodyValidation', path }])
  })

  test('to another member’s e-mail or workerId names that member', async () => {
    const holder = await invite({ workerId: `E-${unique()}` }, careful)
    const { memberId } = await invite({}, careful)
    for (const body of [{ email: holder.email.toUpperCase() }, { workerId: holder.workerId }]) {
      const refused = await patch(memberId, body, careful)
      expect(refused.status).toBe(409)
      expect(refused.body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: holder.memberId }])
    }
  })

  test('of ten members to one e-mail at once succeeds for one, whom the other responses name', async () => {
    const invited = await Promise.all(Array.from({ length: 10 }, () => invite({}, careful)))
    const email = `${unique()}@example.com`
    const answers = await Promise.all(invited.map(({ memberId }) => patch(memberId, { email }, careful)))
    const made = answers.filter(answer => answer.status === 200)
    expect(made.length).toBe(1)
    for (const { status, body } of answers.filter(answer => answer !== made[0])) {
      expect(status).toBe(409)
      expect(body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: made[0]?.body.memberId }])
    }
  })

  test('to a tier of another currency is refused while there is money in the old one', async () => {
    const memberId = await harness.addMember({ available: 5_000 })
    const refused = await patch(memberId, { tier: 'Silver EU' })
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidUpdateMemberPayload', memberId }])
    expect((await patch(memberId, { tier: 'Gold' })).body.tier).toBe('Gold')
    const poor = await invite()
    expect((await patch(poor.memberId, { tier: 'Silver EU' })).body.tier).toBe('Silver EU')
  })
})

describe('replacing a member', () => {
  test('replaces the whole profile', async () => {
    const before = await invite(whole())
    const body = newMember({ email: before.email, tier: 'Silver' })
    const after = await put(before.memberId, body)
    expect(after.status).toBe(200)
    expect(after.body).toEqual({
      ...{ ...body, memberId: before.memberId, status: 'active', enablePayroll: true },
      ...{ phone: null, workerId: null, accountDetails: null, dob: null, gender: null },
    })
  })

  test('with the values that were read changes nothing', async () => {
    const before = await invite(whole())
    const { memberId, status: _status, ...same } = before
    const emitted = await eventsOf(memberId)
    expect((await put(memberId, same)).body).toEqual(before)
    expect(await eventsOf(memberId)).toEqual(emitted)
  })

  test('reinstates an inactive member as invited, with another e-mail if necessary', async () => {
    const { memberId } = await invite({}, careful)
    await remove(memberId, careful)
    const body = newMember()
    const back = await put(memberId, body, careful)
    expect(back.body).toMatchObject({ memberId, status: 'invited', email: body.email })
    expect(await eventsOf(memberId)).toEqual([
      { type: 'member.invited', memberId, status: 'invited' },
      { type: 'member.removed', memberId, status: 'inactive' },
      { type: 'member.updated', memberId, status: 'inactive', changed: ['email'] },
      { type: 'member.reinstated', memberId, status: 'invited' },
    ])
  })

  test('reinstates an inactive member as active with autoActivate; both transitions emit an event', async () => {
    const { memberId, email } = await invite()
    await remove(memberId)
    expect((await put(memberId, newMember({ email }))).body.status).toBe('active')
    expect((await eventsOf(memberId)).map(event => event.type).slice(-2)).toEqual([
      'member.reinstated',
      'member.activated',
    ])
  })

  test('does not activate a member who is still invited', async () => {
    const { memberId, email } = await invite({}, careful)
    expect((await put(memberId, newMember({ email }), careful)).body.status).toBe('invited')
  })

  test('changes the e-mail of an invited member, but not of an active one', async () => {
    const invited = await invite({}, careful)
    expect((await put(invited.memberId, newMember(), careful)).status).toBe(200)
    const { memberId } = await invite()
    const refused = await put(memberId, newMember())
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidUpdateMemberPayload', memberId }])
  })

  test('cannot reinstate a member whose e-mail another member has taken', async () => {
    const { memberId, email } = await invite()
    await remove(memberId)
    const holder = await invite({ email })
    const refused = await put(memberId, newMember({ email }))
    expect(refused.status).toBe(409)
    expect(refused.body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: holder.memberId }])
    expect((await harness.call('GET', `/v1/members/${memberId}`)).body.status).toBe('inactive')
  })

  test('of ten inactive members with one e-mail at once reinstates one, whom the other responses name', async () => {
    const removed = await Promise.all(Array.from({ length: 10 }, () => invite()))
    for (const { memberId } of removed) await remove(memberId)
    const email = `${unique()}@example.com`
    const answers = await Promise.all(removed.map(({ memberId }) => put(memberId, newMember({ email }))))
    const made = answers.filter(answer => answer.status === 200)
    expect(made.length).toBe(1)
    for (const { status, body } of answers.filter(answer => answer !== made[0])) {
      expect(status).toBe(409)
      expect(body.issues).toMatchObject([{ code: 'MemberAlreadyInvited', memberId: made[0]?.body.memberId }])
    }
  })

  test('without the required fields is a BodyValidation, and with a bad tier an InvalidUpdateMemberPayload', async () => {
    const { memberId, email } = await invite()
    expect((await put(memberId, { email })).body.issues).toMatchObject([
      { code: 'BodyValidation', path: 'firstName' },
      { code: 'BodyValidation', path: 'lastName' },
      { code: 'BodyValidation', path: 'tier' },
    ])
    const refused = await put(memberId, newMember({ email, tier: 'Platinum' }))
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'InvalidUpdateMemberPayload', memberId }])
  })
})

describe('offboarding a member', () => {
  test('makes them inactive; repeating it gives the same response and emits nothing new', async () => {
    const { memberId } = await invite()
    const first = await remove(memberId)
    expect([first.status, first.body]).toEqual([200, { message: 'OK' }])
    expect((await harness.call('GET', `/v1/members/${memberId}`)).body.status).toBe('inactive')
    const again = await remove(memberId)
    expect([again.status, again.text]).toEqual([200, first.text])
    expect((await eventsOf(memberId)).filter(event => event.type === 'member.removed').length).toBe(1)
  })

  test('keeps the books', async () => {
    const memberId = await harness.addMember({ available: 5_000 })
    await remove(memberId)
    const { available } = await harness.db
      .selectFrom('ledgerBalances')
      .select('available')
      .where('memberId', '=', memberId)
      .executeTakeFirstOrThrow()
    expect(available).toBe(5_000n)
  })
})

describe('activating a member', () => {
  test('lets an invited one withdraw; repeating it gives the same response and emits nothing new', async () => {
    const { memberId } = await invite({}, careful)
    const first = await activate(memberId, careful)
    expect([first.status, first.body.status]).toEqual([200, 'active'])
    expect((await activate(memberId, careful)).text).toBe(first.text)
    expect((await eventsOf(memberId)).map(event => event.type)).toEqual(['member.invited', 'member.activated'])
  })

  test('who was offboarded is a Conflict', async () => {
    const { memberId } = await invite()
    await remove(memberId)
    const refused = await activate(memberId)
    expect(refused.status).toBe(409)
    expect(refused.body.issues).toMatchObject([{ code: 'Conflict' }])
  })
})

const operations: [method: string, path: (memberId: string) => string, body?: () => object][] = [
  ['GET', () => '/v1/members'],
  ['POST', () => '/v1/members', () => newMember()],
  ['GET', memberId => `/v1/members/${memberId}`],
  ['PATCH', memberId => `/v1/members/${memberId}`, () => ({ lastName: 'Ade' })],
  ['PUT', memberId => `/v1/members/${memberId}`, () => newMember()],
  ['DELETE', memberId => `/v1/members/${memberId}`],
  ['POST', memberId => `/v1/members/${memberId}/activate`],
]
const ofOneMember = operations.filter(([, path]) => path('x').includes('x'))

describe('every operation on members', () => {
  test.each(operations)('%s %s refuses a missing, a wrong and a too narrow key', async (method, path, body) => {
    const { memberId } = await invite()
    const request = body === undefined ? {} : { body: body() }
    const to = path(memberId)
    for (const key of [null, 'mm_test_wrong']) {
      const refused = await harness.call(method, to, { ...request, key })
      expect(refused.status).toBe(401)
      expect(refused.body.issues).toMatchObject([{ code: 'HeaderValidation', path: 'x-api-key' }])
    }
    const { secret } = await harness.addKey([method === 'GET' ? 'members:write' : 'members:read'])
    const refused = await harness.call(method, to, { ...request, key: secret })
    expect(refused.status).toBe(403)
    expect(refused.body.issues).toMatchObject([{ code: 'Forbidden' }])
  })

  test.each(ofOneMember)(
    '%s %s of another partner’s member is the same 404 as of an unknown one',
    async (method, path, body) => {
      const theirs = await invite({}, harness.other)
      const unknownId = newId('member', harness.clock.now())
      const request = body === undefined ? {} : { body: body() }
      const refused = await harness.call(method, path(theirs.memberId), request)
      const missing = await harness.call(method, path(unknownId), request)
      expect([refused.status, missing.status]).toEqual([404, 404])
      expect(refused.body.issues).toMatchObject([{ code: 'MemberNotFound', memberId: theirs.memberId }])
      expect(refused.text.replace(theirs.memberId, unknownId)).toBe(missing.text)
      expect((await harness.call('GET', `/v1/members/${theirs.memberId}`, harness.other)).body).toEqual(theirs)
    },
  )

  test.each(ofOneMember)('%s %s with another kind of id is a PathValidation', async (method, path, body) => {
    const request = body === undefined ? {} : { body: body() }
    const refused = await harness.call(method, path('wi_01kah4pzc5e4r8v2m6t0x9y3bd'), request)
    expect(refused.status).toBe(400)
    expect(refused.body.issues).toMatchObject([{ code: 'PathValidation', path: 'memberId' }])
  })

  test.each(operations)('%s %s repeated with its idempotency key gives the same bytes', async (method, path, body) => {
    const { memberId, email } = await invite()
    const given = body?.()
    const sent = given === undefined ? {} : { body: method === 'PUT' ? { ...given, email } : given }
    const request = { ...sent, headers: { 'x-idempotency-key': unique() } }
    const first = await harness.call(method, path(memberId), request)
    expect(first.status).toBeLessThan(300)
    const made = await countMembers()
    const emitted = await eventsOf(memberId)
    const again = await harness.call(method, path(memberId), request)
    expect([again.status, again.text]).toEqual([first.status, first.text])
    expect(again.headers['idempotency-replayed']).toBe('true')
    expect(await countMembers()).toBe(made)
    expect(await eventsOf(memberId)).toEqual(emitted)
  })

  test.each(operations.filter(([, , body]) => body !== undefined))(
    '%s %s refuses an unknown field and a missing body',
    async (method, path, body) => {
      const { memberId } = await invite()
      const unknown = await harness.call(method, path(memberId), { body: { ...body?.(), nickname: 'Sammy' } })
      expect(unknown.body.issues).toMatchObject([{ code: 'BodyValidation', path: 'nickname' }])
      const missing = await harness.call(method, path(memberId))
      expect(missing.status).toBe(400)
      expect(missing.body.issues).toMatchObject([{ code: 'BodyValidation', path: 'body' }])
    },
  )
})

async function countMembers(): Promise<number> {
  return (await harness.call('GET', '/v1/members?take=1')).body.total
}

import { readFileSync } from 'node:fs'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { breaking } from '../../test/harness/refusal.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql } from '../database/database.ts'
import { defaultRetention } from '../kernel/retention.ts'
import { memberImportTasks } from '../member-imports/tasks.ts'
import { type Action, differences, list, record } from './audit-log.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

/** The recorded action of each writing operation of the API, or why there is none. */
const recorded: Record<string, Action | { because: string }> = {
  inviteMember: 'member.invite',
  updateMember: 'member.update',
  replaceMember: 'member.replace',
  removeMember: 'member.offboard',
  activateMember: 'member.activate',
  eraseMember: 'member.erase',
  createJob: 'member_job.create',
  createJobFromCsv: 'member_job.create',
  createJobFromCsvV2: 'member_job.create',
  approveJob: 'member_job.approve',
  rejectJob: 'member_job.reject',
  uploadPayRun: 'pay_run.create',
  revertPayRun: 'pay_run.revert',
  createSettlement: 'pay_cycle.settle',
  cancelWithdrawal: 'withdrawal.cancel',
  createWebhook: 'webhook.create',
  updateWebhook: 'webhook.update',
  deleteWebhook: 'webhook.delete',
  rotateWebhookSecret: 'webhook.rotate',
  testWebhook: { because: 'it changes nothing, and its delivery is recorded' },
  replayWebhook: { because: 'it changes nothing, and its deliveries are recorded with their attempts' },
  setMemberMetadata: 'metadata.set',
  setWithdrawalIntentMetadata: 'metadata.set',
  setPayRunMetadata: 'metadata.set',
  setWebhookMetadata: 'metadata.set',
  createMemberSession: 'member_session.create',
  createOwnWithdrawalIntent: { because: 'a quote holds no funds, and has its event' },
  completeOwnWithdrawal: { because: 'the withdrawal has its event, its transfers and its own row' },
  createWithdrawalIntent: { because: 'a quote holds no funds, and has its event' },
  cancelWithdrawalIntent: { because: 'a quote holds no funds, and has its event' },
  completeWithdrawal: { because: 'the withdrawal has its event, its transfers and its own row' },
}

/** The same for the operations of a sandbox. */
const recordedOnSandbox: Record<string, Action | { because: string }> = {
  moveSandboxClock: { because: 'the move is recorded with its effects' },
  submitSandboxWithdrawal: { because: 'the bank is instructed, and what it does has its events' },
  paySandboxWithdrawal: { because: 'the bank is instructed, and what it does has its events' },
  failSandboxWithdrawal: { because: 'the bank is instructed, and what it does has its events' },
  returnSandboxWithdrawal: { because: 'the bank is instructed, and what it does has its events' },
  holdSandboxWithdrawal: { because: 'the bank is instructed, and what it does has its events' },
  addSandboxBankFault: { because: 'the bank is instructed, and what it does has its events' },
  answerSandboxBankFile: { because: 'it writes a file and changes nothing' },
  fundSandboxMember: 'pay_run.create',
  activateSandboxMember: 'member.activate',
  provokeSandboxJob: 'member_job.create',
  fundSandboxFloat: 'float.fund',
  pauseSandbox: 'partner.pause',
  resumeSandbox: 'partner.resume',
  seedSandbox: 'partner.reset',
  resetSandbox: 'partner.reset',
}

const account = { accountHolder: 'Wilhelmina Secretive', sortCode: '089999', accountNumber: '66374958' }
const otherAccount = { accountHolder: 'Wilhelmina Secretive', sortCode: '107999', accountNumber: '88837491' }
const newMember = {
  email: 'wilhelmina.secretive@example.com',
  firstName: 'Wilhelmina',
  lastName: 'Secretive',
  phone: '+447700900999',
  workerId: 'W-424242',
  tier: 'Silver',
  accountDetails: account,
  dob: '1971-12-03',
}
const personal = ['Wilhelmina', 'Secretive', 'wilhelmina', '447700900999', 'W-424242', '66374958', '88837491', '1971']
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const entries = async ({ partner }: TestPartner) =>
  (await list(harness.db, { filter: { partnerId: partner.id }, take: 1_000 })).toReversed()

test('every writing operation of the API is recorded or has a reason not to be', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const writing = Object.values(paths).flatMap(methods =>
    Object.entries(methods).flatMap(([method, { operationId }]) => (method === 'get' ? [] : [operationId])),
  )
  expect(writing.sort()).toEqual([...Object.keys(recorded), ...Object.keys(recordedOnSandbox)].sort())
})

test('each change through the API leaves one row with actor, action, before and after, and no personal data', async () => {
  harness.clock.set(new Date('2026-03-10T09:00:00.000Z'))
  const mine = await harness.addPartner('Audited', { autoActivate: false, offboardReviewPercent: 0 })
  const { key, payCycle } = mine
  const seen: string[] = []
  /** Calls an operation twice with one idempotency key; only the first call may leave a row. */
  const call = async (
    operationId: string,
    method: string,
    path: string,
    { raw, token, ...rest }: { body?: unknown; raw?: string; token?: string } = {},
  ) => {
    seen.push(operationId)
    const headers = {
      'x-idempotency-key': `${operationId}-${seen.length}`,
      'x-request-id': `request-${seen.length}`,
      ...(raw === undefined ? {} : { 'content-type': 'text/csv' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    }
    const options = { key, headers, ...rest, ...(raw === undefined ? {} : { raw }) }
    const first = await harness.call(method, path, options)
    expect(first.status, first.text).toBeLessThan(300)
    expect((await harness.call(method, path, options)).headers['idempotency-replayed']).toBe('true')
    return first
  }
  const work = () =>
    memberImportTasks['apply-member-imports']({
      db: harness.db,
      log: pino({ level: 'silent' }),
      now: harness.clock.now,
    })
  const header = 'email,first_name,last_name,phone,tier'

  const { memberId } = (await call('inviteMember', 'POST', '/v1/members', { body: newMember })).body
  await call('activateMember', 'POST', `/v1/members/${memberId}/activate`)
  await call('updateMember', 'PATCH', `/v1/members/${memberId}`, {
    body: { tier: 'Gold', accountDetails: otherAccount, phone: null },
  })
  const uploaded = await call('uploadPayRun', 'POST', '/v1/pay/run', {
    body: { payDetails: [{ memberId, money: gbp(9_000) }] },
  })
  const payRunId = uploaded.headers.location?.split('/').at(-1)
  let quotedId = ''
  const pay = async (amount: number) => {
    const body = { memberId, amount: gbp(amount) }
    const { withdrawalIntentId } = (
      await call('createWithdrawalIntent', 'POST', '/v1/pay/withdrawals/intent', { body })
    ).body
    quotedId = withdrawalIntentId
    return (await call('completeWithdrawal', 'POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } }))
      .headers.location
  }
  await call('cancelWithdrawal', 'POST', `${await pay(2_000)}/cancel`)
  await pay(3_000)
  const sessionOf = { memberId, scope: 'withdraw' }
  const { token } = (await call('createMemberSession', 'POST', '/v1/member-sessions', { body: sessionOf })).body
  const own = (
    await call('createOwnWithdrawalIntent', 'POST', '/v1/me/withdrawals/intent', {
      token,
      body: { amount: gbp(1_000) },
    })
  ).body
  await call('completeOwnWithdrawal', 'POST', '/v1/me/withdrawals/complete', {
    token,
    body: { withdrawalIntentId: own.withdrawalIntentId },
  })
  const intent = (
    await call('createWithdrawalIntent', 'POST', '/v1/pay/withdrawals/intent', {
      body: { memberId, amount: gbp(1_000) },
    })
  ).body
  await call('cancelWithdrawalIntent', 'DELETE', `/v1/pay/withdrawals/intent/${intent.withdrawalIntentId}`)
  await call('revertPayRun', 'POST', `/v1/pay/runs/${payRunId}/revert`)
  const job = (
    await call('createJob', 'POST', '/v1/members/jobs', {
      body: { actions: [{ type: 'Update', memberId, gender: 'Female' }] },
    })
  ).body
  await work()
  const url = 'https://example.com/hook?token=Secretive'
  const endpoint = (
    await call('createWebhook', 'POST', '/v1/webhooks', { body: { url, headers: { authorization: 'Secretive' } } })
  ).body
  const webhook = `/v1/webhooks/${endpoint.id}`
  await call('updateWebhook', 'PATCH', webhook, { body: { types: ['member.*'] } })
  const rotated = (await call('rotateWebhookSecret', 'POST', `${webhook}/rotate`, { body: {} })).body
  const keys = { body: { metadata: { site: 'Wilhelmina' } } }
  await call('setWebhookMetadata', 'PUT', `${webhook}/metadata`, keys)
  await call('setMemberMetadata', 'PUT', `/v1/members/${memberId}/metadata`, keys)
  await call('setPayRunMetadata', 'PUT', `/v1/pay/runs/${payRunId}/metadata`, keys)
  await call('setWithdrawalIntentMetadata', 'PUT', `/v1/pay/withdrawals/intent/${quotedId}/metadata`, keys)
  await call('testWebhook', 'POST', `${webhook}/test`, { body: { type: 'member.invited' } })
  await call('replayWebhook', 'POST', `${webhook}/replay`, { body: { failedSince: '2026-03-10T00:00:00Z' } })
  await call('deleteWebhook', 'DELETE', webhook)
  await call('removeMember', 'DELETE', `/v1/members/${memberId}`)
  await call('replaceMember', 'PUT', `/v1/members/${memberId}`, { body: newMember })
  const full = `${header}\r\nnew@example.com,Wilhelmina,Secretive,,Silver\r\n`
  const rejected = (await call('createJobFromCsv', 'PUT', '/v1/members/jobs/csv', { raw: full })).body
  await call('rejectJob', 'POST', `/v1/members/jobs/${rejected.jobId}/reject`)
  const approved = (await call('createJobFromCsvV2', 'PUT', '/v2/members/jobs/csv', { raw: full })).body
  await call('approveJob', 'POST', `/v1/members/jobs/${approved.jobId}/approve`)
  await work()
  harness.clock.set(new Date('2026-04-02T10:00:00.000Z'))
  await harness.db
    .transaction()
    .execute(tx => closeIfOver(tx, { partnerId: mine.partner.id, now: harness.clock.now() }))
  await call('createSettlement', 'POST', `/v1/pay/cycles/${payCycle.id}/settlement`, {
    body: { deductions: [{ memberId, taken: gbp(4_000) }] },
  })
  const leaving = { body: { ...newMember, email: 'leaving@example.com', workerId: null } }
  const left = `/v1/members/${(await call('inviteMember', 'POST', '/v1/members', leaving)).body.memberId}`
  await call('removeMember', 'DELETE', left)
  await call('eraseMember', 'POST', `${left}/erase`)

  expect([...new Set(seen)].sort(), 'every writing operation was called').toEqual(Object.keys(recorded).sort())
  const found = await entries(mine)
  const expected = seen.map(each => recorded[each]).filter(each => typeof each === 'string')
  expect(found.map(({ action }) => action)).toEqual(expected)

  const { rows } = await sql<{ id: string }>`select id from api_keys where partner_id = ${mine.partner.id}`.execute(
    harness.db,
  )
  for (const entry of found) {
    expect(entry).toMatchObject({ actorKind: 'api_key', actor: rows[0]?.id, address: '127.0.0.1' })
    expect(entry.requestId).toMatch(/^request-\d+$/)
  }
  expect(found.map(({ action, resourceId, details }) => [action, resourceId, details]).slice(0, 5)).toEqual([
    [
      'member.invite',
      memberId,
      {
        before: null,
        after: { status: 'invited', tier: 'Silver', enablePayroll: true, account: { lastFour: '4958' } },
      },
    ],
    ['member.activate', memberId, { changed: ['status'], before: { status: 'invited' }, after: { status: 'active' } }],
    [
      'member.update',
      memberId,
      {
        changed: ['phone', 'tier', 'accountDetails'],
        before: { tier: 'Silver', account: { lastFour: '4958' } },
        after: { tier: 'Gold', account: { lastFour: '7491' } },
      },
    ],
    ['pay_run.create', payRunId, { status: 'Available', payCycleId: payCycle.id, lineCount: 1, totals: [gbp(9_000)] }],
    ['withdrawal.cancel', expect.stringMatching(/^w_/), { memberId, amount: gbp(2_000) }],
  ])
  expect(found.find(({ resourceId }) => resourceId === job.jobId)?.details).toEqual({
    kind: 'actions',
    plan: { invite: 0, update: 1, reinstate: 0, offboard: 0, unchanged: 0 },
    needsReview: false,
  })
  expect(found.at(-4)).toMatchObject({
    action: 'pay_cycle.settle',
    resourceKind: 'pay_cycle',
    resourceId: payCycle.id,
    details: { totals: [{ taken: gbp(4_000) }] },
  })
  const everything = JSON.stringify(found)
  for (const text of [...personal, key, token, endpoint.secret, rotated.secret]) expect(everything).not.toContain(text)
})

test('operations of a sandbox leave one row for each change that they make', async () => {
  const mine = await harness.addPartner('Sandbox', { autoActivate: false })
  const { key } = mine
  const post = async (path: string, body?: object) => {
    const answer = await harness.call('POST', path, { key, ...(body === undefined ? {} : { body }) })
    expect(answer.status, answer.text).toBeLessThan(300)
    return answer.body
  }
  const { memberId } = await post('/v1/members', newMember)
  await post(`/v1/sandbox/members/${memberId}/activate`)
  await post(`/v1/sandbox/members/${memberId}/activate`)
  await post(`/v1/sandbox/members/${memberId}/fund`, { amount: gbp(9_000) })
  await post('/v1/sandbox/members/jobs', { from: 'new', to: 'NotReady' })
  await post('/v1/sandbox/float', { amount: gbp(50_000) })
  await post('/v1/sandbox/pause')
  await post('/v1/sandbox/pause')
  await post('/v1/sandbox/resume')
  await post('/v1/sandbox/seed', { scenario: 'fresh' })
  await post('/v1/sandbox/reset')
  const expected = Object.values(recordedOnSandbox).filter(each => typeof each === 'string')
  const found = await entries(mine)
  expect(
    found
      .slice(1)
      .map(({ action }) => action)
      .toSorted(),
  ).toEqual(expected.toSorted())
  for (const entry of found) expect(entry.actorKind).toBe('api_key')
})

test('a request that changes nothing leaves no row: a refusal, a repetition, a dry run', async () => {
  const mine = await harness.addPartner('Unchanged')
  const { key } = mine
  const call = async (method: string, path: string, body?: unknown) =>
    (await harness.call(method, path, { key, ...(body === undefined ? {} : { body }) })).status
  const memberId = await harness.addMember({ key })
  expect(await call('DELETE', `/v1/members/${memberId}`)).toBe(200)
  const before = await entries(mine)
  expect(before.map(({ action }) => action)).toEqual(['member.invite', 'member.offboard'])

  expect(await call('DELETE', `/v1/members/${memberId}`)).toBe(200)
  expect(await call('PATCH', `/v1/members/${memberId}`, { tier: 'Silver' })).toBe(200)
  expect(await call('PATCH', `/v1/members/${memberId}`, { tier: 'None such' })).toBe(400)
  expect(await call('POST', `/v1/members/${memberId}/activate`)).toBe(409)
  const actions = [{ type: 'Add', email: 'a@example.com', firstName: 'A', lastName: 'B', tier: 'Silver' }]
  expect(await call('POST', '/v1/members/jobs?dryRun=true', { actions })).toBe(200)
  expect(await entries(mine)).toEqual(before)
})

test('repeating a review, a pay run revert or a withdrawal cancellation leaves no second row', async () => {
  const mine = await harness.addPartner('Repeated', { offboardReviewPercent: 0 })
  const { key } = mine
  const post = async (path: string, body?: unknown) =>
    await harness.call('POST', path, { key, ...(body === undefined ? {} : { body }) })
  const memberId = await harness.addMember({ key })
  const payRunAt = (await post('/v1/pay/run', { payDetails: [{ memberId, money: gbp(9_000) }] })).headers.location
  const intent = (await post('/v1/pay/withdrawals/intent', { memberId, amount: gbp(2_000) })).body
  const withdrawal = (await post('/v1/pay/withdrawals/complete', { withdrawalIntentId: intent.withdrawalIntentId }))
    .headers.location
  const raw = 'email,first_name,last_name,phone,tier\r\n'
  const job = (await harness.call('PUT', '/v1/members/jobs/csv', { key, raw, headers: { 'content-type': 'text/csv' } }))
    .body
  for (const path of [`${withdrawal}/cancel`, `${payRunAt}/revert`, `/v1/members/jobs/${job.jobId}/reject`]) {
    expect((await post(path)).status).toBe(200)
    expect((await post(path)).status).toBe(200)
  }
  expect((await entries(mine)).map(({ action }) => action).slice(-3)).toEqual([
    'withdrawal.cancel',
    'pay_run.revert',
    'member_job.reject',
  ])
  expect(await entries(mine)).toHaveLength(6)
})

test('a row can be neither updated nor deleted', async () => {
  await harness.addMember()
  for (const statement of [
    sql`update audit_log set actor = 'intruder'`,
    sql`delete from audit_log`,
    sql`truncate audit_log`,
    sql`update float_references set amount = 1`,
    sql`truncate float_references`,
  ]) {
    // A row-level trigger does not fire on an empty table.
    const outcome = await statement.execute(harness.ownerDb).catch((error: Error) => error.message)
    if (outcome instanceof Object) expect(outcome.numAffectedRows).toBe(0n)
    else expect(outcome).toMatch(/is append-only/)
  }
  const { rows } = await sql<{ count: bigint }>`select count(*) from audit_log where actor <> 'intruder'`.execute(
    harness.db,
  )
  expect(rows[0]?.count).toBeGreaterThan(0n)
})

test('addresses are removed after the configured number of days, and no other column of a row can change', async () => {
  // The database compares with its own clock.
  const place = await startHarness({ startAt: new Date(Date.now() - 100 * 86_400_000) })
  const { db, ownerDb, clock } = place
  const forget = (auditAddresses: number) =>
    place.runTask('remove-old-data', { retention: { ...defaultRetention, auditAddresses } })
  const write = (partnerId: string | null) => {
    const actor = { kind: 'cli', name: 'ada@host', address: '192.0.2.1', requestId: 'request-1' } as const
    const change = { action: 'user.sign_in', resourceId: 'usr_1', details: { method: 'password' } } as const
    return db.transaction().execute(tx => record(tx, { partnerId, actor, change, now: clock.now() }))
  }
  const rows = () => list(db, { filter: { actor: 'ada@host' }, take: 10 })
  try {
    for (const partnerId of [place.partner.id, null]) await write(partnerId)
    clock.advance({ days: 89 })
    for (const partnerId of [place.partner.id, null]) await write(partnerId)
    const before = await rows()
    await forget(90)
    expect(await rows()).toEqual(before)
    clock.advance({ days: 2 })
    await forget(90)
    await forget(90)
    const after = before.map((row, index) => (index < 2 ? row : { ...row, address: null }))
    expect(await rows()).toEqual(after)
    // The last seven days stay, even if the program's role is stolen.
    clock.set(new Date())
    await write(null)
    const recent = (await rows())[0]
    await sql`select forget_audit_addresses('infinity', 1000)`.execute(db)
    expect((await rows()).map(({ address }) => address)).toEqual(['192.0.2.1', null, null, null, null])
    expect((await rows())[0]).toEqual(recent)

    for (const table of ['audit_log', 'installation_audit_log']) {
      for (const change of [
        `actor = 'intruder', address = null`,
        `address = '192.0.2.2'`,
        `details = '{}'`,
        `at = now()`,
      ]) {
        const statement = sql.raw(`update ${table} set ${change}`)
        await expect(sql`${statement}`.execute(ownerDb), change).rejects.toMatchObject(breaking('append_only'))
        await expect(sql`${statement}`.execute(db), change).rejects.toMatchObject({ code: '42501' })
      }
      await expect(sql.raw(`update ${table} set address = null`).execute(db)).rejects.toMatchObject({ code: '42501' })
    }
  } finally {
    await place.stop()
  }
})

test('the difference of two states contains only the fields that differ, with null for a missing one', () => {
  expect(differences({ a: 1, b: { c: 2 } }, { a: 1, b: { c: 3 } })).toEqual({
    before: { b: { c: 2 } },
    after: { b: { c: 3 } },
  })
  expect(differences<{ a?: number }>({}, { a: 1 })).toEqual({ before: { a: null }, after: { a: 1 } })
  expect(differences({ a: 1 }, { a: 1 })).toBeNull()
})

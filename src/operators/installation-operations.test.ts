import { parse } from 'csv-parse/sync'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { Browser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { record } from '../audit-log/audit-log.ts'
import { sql } from '../database/database.ts'
import { lockByNameIfFree } from '../database/named-locks.ts'
import { readStatus } from '../diagnosis/status.ts'
import { defaultRetention } from '../kernel/retention.ts'
import { auditTasks } from '../verification/tasks.ts'
import { Status, statusOnWire } from './installation-schema.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())
beforeEach(() => harness.clock.advance({ minutes: 1 }))

const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code]
const work = () => {
  const { db, clock } = harness
  return auditTasks['verify-ledger']({ db, log: pino({ level: 'silent' }), now: clock.now })
}
const request = () => operator.call('POST', '/ledger-verifications')
const get = async (id: string) => (await operator.call('GET', `/ledger-verifications/${id}`)).body

test('the status has no field that is not listed, whatever is read with the others', async () => {
  const { db, clock, mode } = harness
  const now = clock.now()
  const secret = 'planted'
  const found = await readStatus(db, { mode, rails: [], retention: defaultRetention, now })
  const stop = { since: now, by: 'Ada', reason: null, secret }
  const importing = {
    fileId: 'bf_1',
    rail: 'sepa',
    name: 'camt053.xml',
    status: 'importing',
    records: 2,
    applied: 1,
  } as const
  const planted = {
    ...found,
    secret,
    rails: [{ name: 'sepa', currency: 'EUR' as const, secret }],
    workers: [{ workerId: 'w', host: 'pay-1', processId: 1, startedAt: now, beatAt: now, isAlive: true, secret }],
    queue: { ...found.queue, givenUp: [{ task: 'a-task', count: 1, secret }], secret },
    removals: [{ kind: 'requests' as const, at: now, count: 1, secret }],
    importing: [{ ...importing, receivedAt: now, secret }],
    differences: [{ id: 'pex_1', rail: 'sepa', kind: 'bank_balance' as const, reason: 'A test', secret }],
    payouts: { held: { ...found.payouts.held, secret }, submitted: { ...found.payouts.submitted, secret } },
    stopped: [{ id: 'par_1', name: 'Acme', paused: stop, suspended: stop, secret }],
  }
  expect(Object.keys(statusOnWire(planted)).toSorted()).toEqual(Object.keys(Status.properties).toSorted())
  expect(JSON.stringify(statusOnWire(planted))).not.toContain(secret)
})

test('the status lists everything that needs attention', async () => {
  const { partner } = await harness.addPartner('Stopped')
  await operator.call('POST', `/partners/${partner.id}/pause`, { body: { reason: 'bank outage' } })
  const { body } = await operator.call('GET', '/status')
  expect(body).toMatchObject({ state: 'needsAttention', mode: 'sandbox', bank: 'simulated', workers: [] })
  expect(body.attention.join()).toMatch(/No worker is running.*Stopped.*bank outage/)
  expect(body.stopped).toEqual([
    { id: partner.id, name: 'Stopped', paused: expect.objectContaining({ reason: 'bank outage' }), suspended: null },
  ])
})

test('the findings say what is missing before live mode can pay', async () => {
  const { body } = await operator.call('GET', '/findings')
  expect(body.state).toBe('notReady')
  expect(body.findings[0]).toMatchObject({ check: 'mode', level: 'missing' })
})

test('a verification waits, runs in the background and ends with the result of every check', async () => {
  const requested = await request()
  expect([requested.status, requested.body.state, requested.body.checksDone]).toEqual([202, 'waiting', 0])
  expect(problemOf(await request())).toEqual([409, 'Conflict'])
  await Promise.all([work(), work()])
  const ended = await get(requested.body.id)
  expect(ended).toMatchObject({ state: 'agrees', requestedBy: operator.id, problem: null })
  expect([ended.checksDone, ended.checks.length]).toEqual([ended.checksTotal, ended.checksTotal])
  await work()
  expect(await get(requested.body.id)).toEqual(ended)
  expect((await operator.call('GET', '/ledger-verifications')).body.verifications[0]).toEqual(ended)
})

test('a verification of books that were tampered with names the first row that disagrees', async () => {
  const memberId = await harness.addMember({ available: 9_000 })
  await sql`update ledger_balances set available = available + 1 where member_id = ${memberId}`.execute(harness.ownerDb)
  const { id } = (await request()).body
  await work()
  const { state, checks } = await get(id)
  expect(state).toBe('disagrees')
  const broken = checks.filter(({ disagreement }: { disagreement: unknown }) => disagreement !== null)
  expect(broken[0]).toMatchObject({ name: 'member balances', disagreement: { subject: `${memberId} GBP` } })
  await sql`update ledger_balances set available = available - 1 where member_id = ${memberId}`.execute(harness.ownerDb)
})

test('a verification whose process has died is interrupted, and another can be requested', async () => {
  const { id } = (await request()).body
  await sql`update ledger_verifications set started_at = now() where id = ${id}`.execute(harness.db)
  // Held: another process is verifying.
  await harness.inTx(async tx => {
    await lockByNameIfFree(tx, 'verification of', 'the ledger')
    await work()
    expect(await get(id)).toMatchObject({ state: 'running' })
  })
  await work()
  expect(await get(id)).toMatchObject({
    state: 'interrupted',
    problem: 'The verifying process ended; request another verification',
  })
  const next = (await request()).body
  await work()
  expect((await get(next.id)).state).toBe('agrees')
  expect(problemOf(await operator.call('GET', '/ledger-verifications/lv_123'))).toEqual([404, 'NotFound'])
})

test('the audit log is searched by partner, actor, action, resource and time, in pages and as a file', async () => {
  const { partner, key } = await harness.addPartner('Audited')
  const from = harness.clock.now().toISOString()
  const memberId = await harness.addMember({ key })
  await operator.call('PATCH', `/partners/${partner.id}`, { body: { graceMinutes: 5 } })
  harness.clock.advance({ minutes: 1 })
  const to = harness.clock.now().toISOString()
  await operator.call('PATCH', `/partners/${partner.id}`, { body: { graceMinutes: 6 } })
  const search = async (query: string) =>
    (await operator.call('GET', `/audit-log?partnerId=${partner.id}&${query}`)).body.entries.map(
      ({ action }: { action: string }) => action,
    )
  expect(await search('')).toEqual(['partner.set', 'partner.set', 'member.invite'])
  expect(await search(`actor=${operator.id}`)).toEqual(['partner.set', 'partner.set'])
  expect(await search('actions=member.invite&actions=member.update')).toEqual(['member.invite'])
  expect(await search(`resourceId=${memberId}`)).toEqual(['member.invite'])
  expect(await search(`fromDate=${from}&toDate=${to}`)).toEqual(['partner.set', 'member.invite'])
  const { entries, hasMore } = (await operator.call('GET', `/audit-log?partnerId=${partner.id}&take=1`)).body
  expect(hasMore).toBe(true)
  expect(await search(`after=${entries[0].id}`)).toEqual(['partner.set', 'member.invite'])
  const headers = { accept: 'text/csv' }
  const file = await operator.call('GET', `/audit-log?partnerId=${partner.id}&actions=partner.set`, { headers })
  const lines = file.text.trimEnd().split('\r\n')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toBe('at,partnerId,actorKind,actor,action,resourceId,details,address,requestId,id')
  expect(lines[1]).toContain(`operator_key,${operator.id},partner.set,${partner.id}`)
  const all = (await operator.call('GET', '/audit-log?actions=ledger.verify')).body.entries
  expect(all[0]).toMatchObject({ partnerId: null, actor: operator.id })
})

test('an admin of a partner reads its audit log, without the names and addresses of operators', async () => {
  const { partner, key } = await harness.addPartner('Own log')
  await harness.addMember({ key })
  await operator.call('POST', `/partners/${partner.id}/pause`, { body: {} })
  const admin = await signIn(harness, { roles: ['admin'], partnerId: partner.id })
  const { body } = await admin.call('GET', `/operator/v1/partners/${partner.id}/audit-log`)
  expect(body.entries).toMatchObject([
    { action: 'partner.pause', actorKind: 'operator', actor: 'operator', address: null },
    { action: 'member.invite', actorKind: 'api_key', address: '127.0.0.1' },
  ])
  const file = await admin.call('GET', `/operator/v1/partners/${partner.id}/audit-log`, {
    headers: { accept: 'text/csv' },
  })
  expect(file.text).not.toContain(operator.id)
  const viewer = await signIn(harness, { roles: ['viewer'], partnerId: partner.id })
  expect(problemOf(await viewer.call('GET', `/operator/v1/partners/${partner.id}/audit-log`))).toEqual([
    403,
    'Forbidden',
  ])
  const { id } = harness.partner
  expect(problemOf(await admin.call('GET', `/operator/v1/partners/${id}/audit-log`))).toEqual([404, 'NotFound'])
})

test('a partner’s view of its audit log names no operator in the details, and cannot be searched for one', async () => {
  const { partner } = await harness.addPartner('No names')
  const { id } = partner
  const by = await signIn(harness, { isOperator: true })
  const admin = await signIn(harness, { roles: ['admin'], partnerId: id })
  const accept = async (who: typeof by, email: string) => {
    const body = { email, roles: ['viewer'] }
    const { url } = (await who.call('POST', '/console/v1/invitations', { partner: id, body })).body
    const [, token] = url.split('#')
    const given = { token, name: 'Ada', password: 'correct horse battery' }
    return (await new Browser(harness).call('POST', '/console/v1/invitations/accept', { body: given })).body.user.id
  }
  const invited = [await accept(by, 'first@console.example'), await accept(admin, 'second@console.example')]
  const actor = { kind: 'cli', name: 'alice@pay-1', address: '10.0.0.1', requestId: null } as const
  const change = { action: 'payout_batch.hold', resourceId: 'bat_1', details: { person: 'alice@pay-1' } } as const
  await harness.inTx(tx => record(tx, { partnerId: id, actor, change, now: harness.clock.now() }))

  const at = `/operator/v1/partners/${id}/audit-log`
  const { body, text } = await admin.call('GET', at)
  expect(body.entries[0]).toMatchObject({ action: 'payout_batch.hold', details: { person: 'operator' } })
  const accepted = body.entries.filter(({ action }: { action: string }) => action === 'invitation.accept')
  expect(accepted.map(({ details }: { details: object }) => details)).toMatchObject([
    { user: invited[1], invitedBy: admin.user.id },
    { user: invited[0], invitedBy: 'operator' },
  ])
  const file = (await admin.call('GET', at, { headers: { accept: 'text/csv' } })).text
  for (const secret of [by.user.id, 'alice', '10.0.0.1']) expect(text + file).not.toContain(secret)
  for (const name of [by.user.id, 'alice@pay-1'])
    expect((await admin.call('GET', `${at}?actor=${name}`)).body.entries, name).toEqual([])
  expect((await admin.call('GET', `${at}?actor=${admin.user.id}`)).body.entries).not.toEqual([])
  expect((await by.call('GET', `${at}?actor=alice@pay-1`)).body.entries).toMatchObject([{ actor: 'alice@pay-1' }])
})

test('no cell of the audit log’s file is a formula, whatever a client sends', async () => {
  const { partner } = await harness.addPartner('Formulas')
  const headers = { 'x-request-id': '-2-3' }
  await operator.call('POST', `/partners/${partner.id}/pause`, { body: { reason: '=cmd()' }, headers })
  const file = await operator.call('GET', `/partners/${partner.id}/audit-log`, { headers: { accept: 'text/csv' } })
  const [, ...rows] = parse(file.text) as string[][]
  expect(rows).toHaveLength(1)
  for (const cell of rows.flat()) expect(cell).not.toMatch(/^[=+\-@\t\r]/)
  expect(rows[0]?.[8]).toBe("'-2-3")
})

// Last: commands use the real clock, so their records are newer than those of any request.
test('a verification by command is recorded like one in the background, if the role may write', async () => {
  const verify = () => midmonthHere(['ledger', 'verify', '--json'], harness.settings)
  const newest = async () => (await operator.call('GET', '/ledger-verifications')).body.verifications[0]
  const found = await verify()
  const { checks } = JSON.parse(found.stdout)
  const recorded = await newest()
  expect(recorded).toMatchObject({ state: 'agrees', checksDone: checks.length, checksTotal: checks.length })
  const [entry] = (await operator.call('GET', `/audit-log?actions=ledger.verify&resourceId=${recorded.id}`)).body
    .entries
  expect(entry).toMatchObject({ actorKind: 'cli', actor: recorded.requestedBy })

  const grant = (change: string) => sql.raw(`${change} ${harness.user}`).execute(harness.ownerDb)
  await grant('revoke insert on ledger_verifications from')
  try {
    const unrecorded = await verify()
    expect(unrecorded).toMatchObject({ code: found.code, stdout: found.stdout })
    expect(unrecorded.stderr).toMatch(/^The result is not recorded: permission denied/)
    expect(await newest()).toEqual(recorded)
  } finally {
    await grant('grant insert on ledger_verifications to')
  }
})

test('a backup is recorded with the instant at which it began', async () => {
  const before = (await operator.call('GET', '/status')).body
  expect(before.attention.join()).not.toContain('backup')
  const recorded = await operator.call('POST', '/backups', { body: { at: '2026-03-01T02:00Z' } })
  expect(recorded).toMatchObject({ status: 201, body: { at: '2026-03-01T02:00:00.000Z' } })
  const now = harness.clock.now().toISOString()
  expect((await operator.call('POST', '/backups', { body: {} })).body).toEqual({ at: now })
  expect((await operator.call('GET', '/status')).body.lastBackupAt).toBe(now)
  const early = await operator.call('POST', '/backups', { body: { at: '2999-01-01T00:00:00Z' } })
  expect(problemOf(early)).toEqual([400, 'BodyValidation'])
})

test('member jobs are listed across partners, newest first and page by page', async () => {
  const partners = [await harness.addPartner('First'), await harness.addPartner('Second')]
  const jobs: string[] = []
  for (const { key } of partners) {
    const member = { firstName: 'Mia', lastName: 'Job', email: 'mia.job@example.com', tier: 'Bronze' }
    const { body } = await harness.call('POST', '/v1/members/jobs', {
      key,
      body: { actions: [{ type: 'Add', ...member }] },
    })
    jobs.push(body.jobId)
  }
  const list = async (query: string) => (await operator.call('GET', `/member-jobs?${query}`)).body
  const first = await list('take=1')
  expect(first).toMatchObject({ hasMore: true, jobs: [{ id: jobs[1], kind: 'actions', plan: { invite: 1 } }] })
  const next = await list(`take=1&after=${jobs[1]}`)
  expect(next).toMatchObject({ jobs: [{ id: jobs[0], partnerId: partners[0]?.partner.id }] })
  const ofSecond = await list(`partnerId=${partners[1]?.partner.id}&statuses=Processing&statuses=Completed`)
  expect(ofSecond).toMatchObject({ hasMore: false, jobs: [{ id: jobs[1] }] })
  expect(problemOf(await operator.call('GET', '/member-jobs?partnerId=mem_1'))).toEqual([400, 'QueryValidation'])
})

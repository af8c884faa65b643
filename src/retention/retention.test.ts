import { Readable } from 'node:stream'
import pino from 'pino'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { sql } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import { defaultRetention, retentionKinds } from '../kernel/retention.ts'
import { sealFor } from '../payouts/books/archive-keys.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { findOverdue, listLastRemovals, type RemovedKind, removedKinds } from './retention.ts'

let harness: Harness
beforeEach(async () => {
  await harness?.stop()
  // The database keeps the addresses of the last 7 days by its own clock.
  harness = await startHarness({ startAt: new Date('2025-01-07T09:00:00.000Z') })
})
afterAll(() => harness.stop())

const tables: Record<RemovedKind, string> = {
  unusedIntents: `withdrawal_intents where status <> 'completed'`,
  memberImports: 'member_import_steps',
  replays: 'idempotency_keys',
  requests: 'request_log',
  webhookDeliveries: 'webhook_deliveries',
  auditAddresses: 'audit_log where address is not null',
  disclosures: 'disclosures',
  archivedBankFiles: 'bank_archive_keys',
  bankTexts: 'payout_exceptions where bank_text is not null or bank_text_about_member is not null',
  paymentEvidence: 'member_erasures where payment_key_destroyed_at is null',
}

/** How many rows of each kind are left. */
async function left(): Promise<Record<RemovedKind, number>> {
  const counts = removedKinds.map(async kind => {
    const { rows } = await harness.pool.query(`select count(*)::integer as count from ${tables[kind]}`)
    return [kind, rows[0].count]
  })
  return Object.fromEntries(await Promise.all(counts))
}

/** Makes something of each kind at the harness's time. */
async function fill(): Promise<{ withdrawalId: string }> {
  const { db, call, partner } = harness
  const memberId = await harness.addMember({ available: 50_000 })
  const withdrawalId = await harness.withdraw({ memberId })
  const now = harness.clock.now()
  const erased = { partnerId: partner.id, memberId: await harness.addMember(), erasedAt: now, receipt: 'signed' }
  await db
    .insertInto('memberErasures')
    .values({ ...erased, lastPaidAt: now })
    .execute()
  await harness.inTx(async tx => {
    const told = {
      rail: 'sepa',
      kind: 'money_in',
      fingerprint: 'told',
      reason: 'Money arrived',
      bankText: 'MIA SCHULZ',
    } as const
    await exceptions.open(tx, [told], now)
    await exceptions.closeAutomatically(tx, { which: sql`true`, now })
  })
  const archive = { rail: 'sepa', day: now.toISOString().slice(0, 10) }
  for await (const _ of sealFor(db, archive)(Readable.from([Buffer.from('camt.053')])));
  const unused = await harness.createIntent({ memberId })
  await call('PUT', `/v1/pay/withdrawals/intent/${unused}/metadata`, { body: { metadata: { shift: '7' } } })
  await call('DELETE', `/v1/pay/withdrawals/intent/${unused}`)
  const action = { type: 'Add', email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' }
  const headers = { 'x-idempotency-key': 'list' }
  expect((await call('POST', '/v1/members/jobs', { body: { actions: [action] }, headers })).status).toBe(202)
  await harness.runTask('apply-member-imports')
  const webhook = await call('POST', '/v1/webhooks', { body: { url: 'https://example.com/hook' } })
  const eventId = newId('event', harness.clock.now())
  await sql`
    insert into webhook_deliveries (partner_id, endpoint_id, event_id, type, state, created_at)
    values (${partner.id}, ${webhook.body.id}, ${eventId}, 'withdrawal.paid', 'delivered', ${harness.clock.now()})`.execute(
    db,
  )
  await call('GET', `/v1/members/${memberId}`)
  await harness.flushRequestLog()
  return { withdrawalId }
}

const none = Object.fromEntries(removedKinds.map(kind => [kind, 0]))

test('the worker removes each kind of data when its retention ends, and not a day before', async () => {
  const { withdrawalId } = await fill()
  const made = await left()
  for (const kind of removedKinds) expect(made[kind], kind).toBeGreaterThan(0)
  let passed = 0
  const inOrder = removedKinds.toSorted((a, b) => defaultRetention[a] - defaultRetention[b])
  for (const kind of inOrder) {
    const days = defaultRetention[kind]
    if (days - 1 > passed) harness.clock.advance({ days: days - 1 - passed })
    await harness.runTask('remove-old-data')
    if (days - 1 > passed) expect((await left())[kind], kind).toBe(made[kind])
    if (days > passed) harness.clock.advance({ days: days - Math.max(passed, days - 1), minutes: 2 })
    passed = Math.max(passed, days)
    await harness.runTask('remove-old-data')
    expect((await left())[kind], kind).toBe(0)
  }
  expect(await left()).toEqual(none)
  // What was paid stays, with the account that it was paid to.
  expect((await harness.call('GET', `/v1/pay/withdrawals/${withdrawalId}`)).body.bankAccount).toEqual({
    lastFour: '4958',
  })
})

test('a worker id that was changed is known to erasures as long as an import may name the member by it', async () => {
  const memberId = await harness.addMember()
  const replaced = async () => {
    const { rows } = await sql`select from member_former_names`.execute(harness.db)
    return rows.length
  }
  const setWorkerId = async (workerId: string) =>
    expect((await harness.call('PATCH', `/v1/members/${memberId}`, { body: { workerId } })).status).toBe(200)
  await setWorkerId('one')
  const actions = [{ type: 'Update', memberId, firstName: 'Sam' }]
  expect((await harness.call('POST', '/v1/members/jobs', { body: { actions } })).status).toBe(202)
  await setWorkerId('two')
  harness.clock.advance({ days: 31 })
  // The import has not ended until now.
  await harness.runTask('apply-member-imports')
  await harness.runTask('remove-old-data')
  expect(await replaced()).toBe(1)
  harness.clock.advance({ days: 31 })
  await harness.runTask('remove-old-data')
  expect(await replaced()).toBe(0)
})

test('settings decide how long data is kept', async () => {
  await fill()
  const made = await left()
  harness.clock.advance({ days: 2 })
  await harness.runTask('remove-old-data', { retention: { ...defaultRetention, requests: 1, memberImports: 1 } })
  expect(await left()).toEqual({ ...made, requests: 0, memberImports: 0 })
})

test('removals are counted by day, and the status and the log name them', async () => {
  const operator = await harness.addOperator()
  await fill()
  const made = await left()
  harness.clock.advance({ days: 31, minutes: 2 })
  const lines: { msg: string; kind?: string; count?: number }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line)) })
  await harness.runTask('remove-old-data', { log })
  await harness.runTask('remove-old-data', { log })
  const expected = (['memberImports', 'replays', 'requests', 'webhookDeliveries'] as const).map(kind => ({
    kind,
    count: made[kind],
  }))
  const named = lines.filter(({ msg }) => msg === 'old data removed').map(({ kind = '', count }) => ({ kind, count }))
  expect(named.toSorted(byKind)).toEqual(expected.toSorted(byKind))
  const { body } = await operator.call('GET', '/status')
  const at = harness.clock.now().toISOString()
  expect(body.removals.toSorted(byKind)).toEqual(expected.map(each => ({ ...each, at })).toSorted(byKind))
  expect(await listLastRemovals(harness.db)).toHaveLength(4)
  const { stdout } = await midmonthHere(['status'], harness.settings)
  expect(stdout).toMatch(/^removed webhook deliveries +1, \d+ .* ago$/m)
})

test('a day after its retention, data that is still there is overdue, and a removal ends that', async () => {
  const operator = await harness.addOperator()
  await fill()
  const overdue = () => findOverdue(harness.db, { retention: defaultRetention, now: harness.clock.now() })
  harness.clock.advance({ days: 8, minutes: -1 })
  expect(await overdue()).toEqual([])
  harness.clock.advance({ minutes: 10 })
  expect(await overdue()).toEqual(['replays', 'requests'])
  harness.clock.advance({ days: 2_192 })
  expect((await overdue()).toSorted()).toEqual(removedKinds.toSorted())
  const { body: status } = await operator.call('GET', '/status')
  expect(status.attention.join()).toMatch(/Data is past its retention: .*the request log \(kept for 7 days\)/)
  const { body } = await operator.call('GET', '/findings')
  const finding = body.findings.find(({ check }: { check: string }) => check === 'retention')
  expect([finding.level, finding.command]).toEqual(['warning', 'midmonth start --worker'])
  for (const kind of removedKinds) expect(finding.sentence).toContain(retentionKinds[kind].what)
  await harness.runTask('remove-old-data')
  expect(await overdue()).toEqual([])
})

test('a kind that cannot be removed does not keep the others, and the task fails', async () => {
  await fill()
  const made = await left()
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no disk'; end $$`.execute(
    harness.ownerDb,
  )
  await sql`
    create trigger refuse before delete on withdrawal_intents for each row execute function refuse()`.execute(
    harness.ownerDb,
  )
  harness.clock.advance({ days: 2_192, minutes: 2 })
  await expect(harness.runTask('remove-old-data')).rejects.toThrow('no disk')
  expect(await left()).toEqual({ ...none, unusedIntents: made.unusedIntents })
})

test('the program can delete no intent that became a withdrawal', async () => {
  const { withdrawalId } = await fill()
  const remove = sql`
    delete from withdrawal_intents i using withdrawals w
     where w.partner_id = i.partner_id and w.withdrawal_intent_id = i.id and w.id = ${withdrawalId}`
  await expect(remove.execute(harness.db)).rejects.toMatchObject({ code: '23503' })
})

const byKind = (a: { kind: string }, b: { kind: string }) => a.kind.localeCompare(b.kind)

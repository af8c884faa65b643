import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { sql } from '../database/database.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { list } from './audit-log.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

let mine: TestPartner
let memberId: string
beforeEach(async () => {
  mine = await harness.addPartner(`Partner ${Math.random()}`)
  memberId = await addMember('sam')
  await call('POST', '/v1/pay/run', {
    body: { payDetails: [{ memberId, money: { amount: 50_000, currency: 'GBP' } }] },
  })
})

const call = (method: string, path: string, options: { body?: object; headers?: Record<string, string> } = {}) =>
  harness.call(method, path, { key: mine.key, ...options })

async function addMember(name: string): Promise<string> {
  const body = { email: `${name}@example.com`, firstName: name, lastName: 'Okafor', tier: 'Silver', dob: '1990-06-24' }
  return (await call('POST', '/v1/members', { body: { ...body, accountDetails: goodAccount } })).body.memberId
}

async function disclosures() {
  const { rows } = await sql<{ actor: string; action: string; resourceId: string; details: object }>`
    select actor, action, resource_id, details from disclosures where partner_id = ${mine.partner.id} order by id`.execute(
    harness.db,
  )
  return rows.map(({ action, resourceId, details }) => ({ action, resourceId, details }))
}

/** How to read each operation that shows accounts or dates of birth without changing anything, and the entry that it leaves. */
const reads: Record<string, () => Promise<{ path: string; accept?: string; leaves: object }[]>> = {
  getMember: async () => [
    { path: `/v1/members/${memberId}`, leaves: { action: 'member.read', resourceId: memberId, details: { count: 1 } } },
  ],
  exportMemberData: async () => [
    {
      path: `/v1/members/${memberId}/data-export`,
      leaves: { action: 'member.data_export', resourceId: memberId, details: { count: 1, isOwn: false } },
    },
  ],
  getMembers: async () => {
    const resourceId = mine.partner.id
    const ofMine = `emails=sam@example.com&statuses=active`
    return [
      { path: '/v1/members', leaves: { action: 'member.read', resourceId, details: { count: 2, filter: {} } } },
      {
        path: `/v1/members?${ofMine}`,
        leaves: {
          action: 'member.read',
          resourceId,
          details: { count: 1, filter: { statuses: ['active'], emails: 1 } },
        },
      },
      {
        path: '/v1/members?search=okaf',
        accept: 'text/csv',
        leaves: { action: 'member.export', resourceId, details: { count: 2, filter: { search: 1 } } },
      },
    ]
  },
  getWithdrawalIntent: async () => {
    const id = await harness.createIntent({ memberId, key: mine.key })
    return [
      {
        path: `/v1/pay/withdrawals/intent/${id}`,
        leaves: { action: 'withdrawal_intent.read', resourceId: id, details: { count: 1 } },
      },
    ]
  },
  getJobResults: async () => {
    const actions = [{ type: 'Update', memberId, accountDetails: goodAccount, dob: '1990-06-25' }]
    const { jobId } = (await call('POST', '/v1/members/jobs', { body: { actions } })).body
    return [
      {
        path: `/v1/members/jobs/${jobId}/results?outcomes=Pending`,
        accept: 'text/csv',
        leaves: {
          action: 'member_job.export',
          resourceId: jobId,
          details: { count: 1, filter: { outcomes: ['Pending'] } },
        },
      },
    ]
  },
}

test('each read of accounts or dates of birth leaves one entry, with the filter and the count, and no personal data', async () => {
  await addMember('ada')
  for (const [operation, of] of Object.entries(reads))
    for (const { path, accept = 'application/json', leaves } of await of()) {
      const before = await disclosures()
      const { status } = await call('GET', path, { headers: { accept } })
      expect(status, path).toBe(200)
      expect((await disclosures()).slice(before.length), operation).toEqual([leaves])
    }
})

test('every operation that reads accounts or dates of birth is among those', () => {
  // Accounts that are made up, and the member’s own data, which is shown to the member.
  const invented = ['getSandboxTestValues', 'exportOwnData']
  // A file with the cells that the caller has sent, which no schema describes.
  const files = ['getJobResults']
  const names = operationsShowing(/"(accountNumber|iban|dob)":/).filter(name => !invented.includes(name))
  expect([...names, ...files].toSorted()).toEqual(Object.keys(reads).toSorted())
})

/** The operations of partners that read and respond with a property. */
function operationsShowing(property: RegExp): string[] {
  const document = harness.app.documents.representation() as {
    paths: Record<string, Record<string, { operationId: string; responses: object }>>
    components: object
  }
  const resolved = (value: object, depth = 0): string =>
    JSON.stringify(value).replace(/\{"\$ref":"#\/components\/(\w+)\/([\w-]+)"\}/g, (_, kind, name) => {
      if (depth > 8) return '{}'
      return resolved((document.components as Record<string, Record<string, object>>)[kind]?.[name] ?? {}, depth + 1)
    })
  return Object.values(document.paths).flatMap(({ get }) => {
    if (get === undefined) return []
    const succeeding = Object.entries(get.responses).filter(([status]) => status.startsWith('2'))
    return property.test(resolved(Object.fromEntries(succeeding))) ? [get.operationId] : []
  })
}

test('a replay, an intent’s own response, a change, and a list without members leave none', async () => {
  const headers = { 'x-idempotency-key': 'once' }
  await call('GET', `/v1/members/${memberId}`, { headers })
  expect((await call('GET', `/v1/members/${memberId}`, { headers })).headers['idempotency-replayed']).toBe('true')
  expect(await disclosures()).toHaveLength(1)
  await harness.createIntent({ memberId, key: mine.key })
  await call('PATCH', `/v1/members/${memberId}`, { body: { dob: '1991-01-01' } })
  await call('GET', '/v1/members?statuses=invited')
  expect(await disclosures()).toHaveLength(1)
})

test('concurrent reads leave one entry each, with its own request and key', async () => {
  const ids = Array.from({ length: 40 }, (_, number) => `read-${number}`)
  await Promise.all(ids.map(id => call('GET', `/v1/members/${memberId}`, { headers: { 'x-request-id': id } })))
  const entries = await list(harness.db, { filter: { resourceId: memberId, actions: ['member.read'] }, take: 100 })
  expect(entries.map(({ requestId }) => requestId).toSorted()).toEqual(ids.toSorted())
  expect(new Set(entries.map(({ actorKind, address }) => `${actorKind} ${address}`))).toEqual(
    new Set(['api_key 127.0.0.1']),
  )
})

test('users of the console see members masked, and leave an entry only when they reveal one', async () => {
  const admin = await signIn(harness, { partnerId: mine.partner.id, roles: ['admin'] })
  expect((await admin.call('GET', `/v1/members/${memberId}`)).body).toMatchObject({
    accountDetails: { accountNumber: '••••4958' },
    dob: '••••-••-••',
  })
  expect((await admin.call('GET', '/v1/members', { headers: { accept: 'text/csv' } })).text).toContain('••••-••-••')
  expect(await disclosures()).toEqual([])
  const path = `/console/v1/members/${memberId}/account`
  const { body } = await admin.call('POST', path, { body: { reason: 'She asks' } })
  expect(body).toEqual({ accountDetails: goodAccount, dob: '1990-06-24' })
  const [entry] = await list(harness.db, { filter: { resourceId: memberId, actions: ['member.reveal'] }, take: 2 })
  expect(entry?.details).toEqual({ reason: 'She asks', lastFour: '4958' })
})

test('operators who read what a bank says about money leave an entry', async () => {
  const operator = await harness.addOperator()
  const told = { rail: 'simulated', kind: 'unmatched', fingerprint: 'f', reason: 'r', bankText: 'MIA SCHULZ' } as const
  await harness.inTx(tx => exceptions.open(tx, [told], new Date()))
  const [opened] = await exceptions.list(harness.db, { take: 1 })
  const id = String(opened?.id)
  for (const path of ['/payout-exceptions', '/payout-exceptions?state=closed', `/payout-exceptions/${id}`])
    await operator.call('GET', path)
  const { body } = await operator.call('GET', '/audit-log?actions=payout_exception.read')
  expect(
    body.entries.map(({ resourceId, actor }: { resourceId: string; actor: string }) => [resourceId, actor]),
  ).toEqual([
    [id, operator.id],
    ['payout_exceptions', operator.id],
  ])
})

test('the program can neither change an entry nor delete one of the last 30 days', async () => {
  await call('GET', `/v1/members/${memberId}`)
  await sql`update disclosures set at = now()`.execute(harness.db).catch(() => undefined)
  for (const statement of [sql`update disclosures set actor = 'eve'`, sql`delete from disclosures`])
    await expect(statement.execute(harness.db)).rejects.toMatchObject({ code: '42501' })
  const old = await sql`select from disclosures where at < now() - interval '30 days'`.execute(harness.db)
  const all = await sql`select from disclosures`.execute(harness.db)
  expect(all.rows.length).toBeGreaterThan(0)
  await sql`select forget_disclosures('infinity', 1000)`.execute(harness.db)
  const left = await sql`select from disclosures`.execute(harness.db)
  expect(left.rows.length).toBe(all.rows.length - old.rows.length)
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { updatePartner } from '../partners/partners.ts'

let harness: Harness
let memberId: string
beforeAll(async () => {
  harness = await startHarness()
  memberId = await harness.addMember({ available: 100_000 })
})
afterAll(() => harness.stop())

const prefer = { headers: { prefer: 'return=representation' } }
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const set = (path: string, metadata: unknown, options: object = {}) =>
  harness.call('PUT', `${path}/metadata`, { body: { metadata }, ...options })
const get = (path: string, options: object = {}) => harness.call('GET', path, options)
const issuesOf = ({ status, body }: { status: number; body: { issues?: { code: string; path?: string }[] } }) => [
  status,
  ...(body.issues ?? []).map(({ code, path }) => `${code} ${path ?? ''}`.trim()),
]

const createIntent = () => harness.createIntent({ memberId, amount: 2_000 })

async function createWebhook() {
  const created = await harness.call('POST', '/v1/webhooks', { body: { url: 'https://example.com/hook' } })
  return created.body.id as string
}

async function someObjects() {
  const [payRun] = (await get('/v1/pay/runs')).body.payRuns
  return {
    member: `/v1/members/${memberId}`,
    intent: `/v1/pay/withdrawals/intent/${await createIntent()}`,
    payRun: `/v1/pay/runs/${payRun.id}`,
    webhook: `/v1/webhooks/${await createWebhook()}`,
  }
}

test('a member, an intent, a pay run and a webhook endpoint keep their metadata until it is replaced as a whole', async () => {
  for (const path of Object.values(await someObjects())) {
    expect((await get(`${path}/metadata`)).body).toEqual({ metadata: {} })
    const given = await set(path, { site: 'Leeds', 'cost centre': '4711' })
    expect([given.status, given.body]).toEqual([200, { metadata: { site: 'Leeds', 'cost centre': '4711' } }])
    expect((await get(`${path}/metadata`)).text).toBe('{"metadata":{"site":"Leeds","cost centre":"4711"}}')
    expect((await get(path, prefer)).body.metadata).toEqual({ site: 'Leeds', 'cost centre': '4711' })
    expect((await set(path, { shift: 'night' })).body).toEqual({ metadata: { shift: 'night' } })
    expect((await get(path, prefer)).body.metadata).toEqual({ shift: 'night' })
    expect((await set(path, {})).body).toEqual({ metadata: {} })
    expect((await get(`${path}/metadata`)).body).toEqual({ metadata: {} })
  }
})

test('the published shapes stay closed, and the fuller ones have metadata', async () => {
  const path = `/v1/members/${memberId}`
  await set(path, { site: 'York' })
  const published = await get(path)
  expect(published.body).not.toHaveProperty('metadata')
  expect(published.headers['preference-applied']).toBeUndefined()
  const fuller = await get(path, prefer)
  expect(fuller.body).toEqual({ ...published.body, metadata: { site: 'York' } })
  const listed = await get(`/v1/members?memberIds=${memberId}`, prefer)
  expect(listed.body.members).toEqual([fuller.body])
  const changed = await harness.call('PATCH', path, { body: { firstName: 'Ann' }, ...prefer })
  expect(changed.body).toMatchObject({ firstName: 'Ann', metadata: { site: 'York' } })
  const { memberId: _, status: _status, metadata: _metadata, ...profile } = changed.body
  expect((await harness.call('PUT', path, { body: profile, ...prefer })).body.metadata).toEqual({ site: 'York' })
  const activated = await harness.call('POST', `${path}/activate`, prefer)
  expect(activated.body.metadata).toEqual({ site: 'York' })
  const refused = await harness.call('PATCH', path, { body: { metadata: { site: 'Hull' } } })
  expect(issuesOf(refused)).toEqual([400, 'BodyValidation metadata'])
})

test('a withdrawal has the metadata of its intent, also in lists, and a member’s page never sees it', async () => {
  const intentId = await createIntent()
  await set(`/v1/pay/withdrawals/intent/${intentId}`, { reason: 'rent' })
  const completed = await harness.requestCompletion(intentId, prefer)
  expect(completed.body.metadata).toEqual({ reason: 'rent' })
  const repeated = await harness.requestCompletion(intentId, prefer)
  expect(repeated.body).toEqual(completed.body)
  const withdrawalId = locatedId(completed)
  await set(`/v1/pay/withdrawals/intent/${intentId}`, { reason: 'food' })
  expect((await get(`/v1/pay/withdrawals/${withdrawalId}`)).body.metadata).toEqual({ reason: 'food' })
  const { withdrawals } = (await get('/v1/pay/withdrawals', prefer)).body
  expect(withdrawals.find(({ id }: { id: string }) => id === withdrawalId).metadata).toEqual({ reason: 'food' })
  const created = await harness.call('POST', '/v1/member-sessions', { body: { memberId, scope: 'withdraw' } })
  expect(created.status, created.text).toBe(201)
  const headers = { authorization: `Bearer ${created.body.token}` }
  const own = await harness.call('GET', `/v1/me/withdrawals/${withdrawalId}`, { key: null, headers })
  expect([own.status, own.body.id]).toEqual([200, withdrawalId])
  expect(own.body).not.toHaveProperty('metadata')
  const cancelled = await harness.call('POST', `/v1/pay/withdrawals/${withdrawalId}/cancel`)
  expect(cancelled.body.metadata).toEqual({ reason: 'food' })
})

describe('limits', () => {
  const path = () => `/v1/members/${memberId}`

  test('the limit is 20 keys of 40 characters with values of 500, counted in characters', async () => {
    const most = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`${'😀'.repeat(38)}${10 + index}`, '😀'.repeat(500)]),
    )
    const answer = await set(path(), most)
    expect([answer.status, answer.body]).toEqual([200, { metadata: most }])
    expect((await get(path(), prefer)).body.metadata).toEqual(most)
    const found = await get(
      `/v1/members?metadata[${encodeURIComponent(`${'😀'.repeat(38)}10`)}]=${encodeURIComponent('😀'.repeat(500))}`,
    )
    expect(found.body.total).toBe(1)
    expect(issuesOf(await set(path(), { ...most, x: 'y' }))).toEqual([400, 'BodyValidation metadata'])
  })

  test.each([
    [
      { ['k'.repeat(41)]: 'v', site: 'x'.repeat(501) },
      [`BodyValidation metadata.${'k'.repeat(41)}`, 'BodyValidation metadata.site'],
    ],
    [{ '': 'v' }, ['BodyValidation metadata']],
    [{ site: null, shift: '' }, ['BodyValidation metadata.site', 'BodyValidation metadata.shift']],
    [{ site: { name: 'Leeds' }, shift: 7 }, ['BodyValidation metadata.site', 'BodyValidation metadata.shift']],
    [['site'], ['BodyValidation metadata']],
    [null, ['BodyValidation metadata']],
    ['site', ['BodyValidation metadata']],
  ])('%j is refused with the path of each fault', async (metadata, issues) => {
    await set(path(), { kept: 'yes' })
    const [status, ...found] = issuesOf(await set(path(), metadata))
    expect(status).toBe(400)
    for (const each of issues)
      expect(
        found.some(issue => String(issue).startsWith(each)),
        `${each} in ${found}`,
      ).toBe(true)
    expect((await get(`${path()}/metadata`)).body.metadata).toEqual({ kept: 'yes' })
  })

  test('names of prototype properties are ordinary keys', async () => {
    const raw = '{"metadata":{"__proto__":"a","constructor":"b","toString":"c","hasOwnProperty":"d"}}'
    const headers = { 'content-type': 'application/json' }
    const answer = await harness.call('PUT', `${path()}/metadata`, { raw, headers })
    expect([answer.status, answer.text]).toEqual([200, raw])
    expect((await get(`${path()}/metadata`)).text).toBe(raw)
    expect((await get(path(), prefer)).text).toContain(raw.slice(1, -1))
    expect((await get('/v1/members?metadata[__proto__]=a&metadata[constructor]=b')).body.total).toBe(1)
    expect((await get('/v1/members?metadata[__proto__]=b')).body.total).toBe(0)
    expect(Object.getPrototypeOf({})).toBe(Object.prototype)
  })

  test.each(['"\\u0000"', '"\\ud800"'])('the text %s is refused as a key, as a value and as a filter', async text => {
    for (const raw of [`{"metadata":{${text}:"x"}}`, `{"metadata":{"x":${text}}}`]) {
      const answer = await harness.call('PUT', `${path()}/metadata`, {
        raw,
        headers: { 'content-type': 'application/json' },
      })
      expect([answer.status, answer.body.issues[0].code]).toEqual([400, 'BodyValidation'])
    }
  })

  test.each([
    'metadata[x]=%00',
    'metadata[%00]=x',
    'metadata[]=x',
    'metadata[x]=',
    'metadata[x]=a&metadata[x]=b',
    'metadata=x',
    'metadata=x&metadata[a]=b',
    'metadata[x=a',
  ])('the filter %s is refused', async query => {
    for (const list of ['/v1/members', '/v1/pay/runs', '/v1/pay/withdrawals', '/v1/webhooks']) {
      const answer = await get(`${list}?${query}`)
      expect([answer.status, answer.body.issues[0].code], `${list} ${answer.text}`).toEqual([400, 'QueryValidation'])
    }
  })

  test('the database refuses metadata beyond the limits, and metadata of unknown objects', async () => {
    const insert = async ({ kind = 'member', id = memberId, key = 'a', value = 'b', position = 1 }) =>
      await sql`
        insert into metadata (partner_id, kind, resource_id, key, value, position)
        values (${harness.partner.id}, ${kind}, ${id}, ${key}, ${value}, ${position})`
        .execute(harness.db)
        .then(() => undefined, brokenConstraint)
    await set(path(), {})
    expect(await insert({ key: 'k'.repeat(41) })).toBe('keys_of_40_characters')
    expect(await insert({ value: 'v'.repeat(501) })).toBe('values_of_500_characters')
    expect(await insert({ position: 21 })).toBe('at_most_20_keys')
    for (const kind of ['member', 'withdrawal_intent', 'pay_run', 'webhook'])
      expect(await insert({ kind, id: 'mem_123' })).toMatch(/^metadata_.*_fkey$/)
    expect(await insert({})).toBeUndefined()
    expect(await insert({ key: 'c' })).toMatch(/position/)
    await set(path(), {})
  })
})

test('the response for another partner’s object is the same as for an unknown one', async () => {
  const objects = Object.values(await someObjects())
  for (const path of objects) {
    const unknown = path.replace(/_[0-9a-z]+$/, '_123')
    const { key } = harness.other
    for (const send of [(at: string) => set(at, { a: 'b' }, { key }), (at: string) => get(`${at}/metadata`, { key })]) {
      const [foreign, missing] = [await send(path), await send(unknown)]
      expect(foreign.status).toBe(404)
      const idOf = (at: string) => at.split('/').at(-1) ?? ''
      expect(foreign.text.replaceAll(idOf(path), 'ID')).toBe(missing.text.replaceAll(idOf(unknown), 'ID'))
    }
  }
  await set(`/v1/members/${memberId}`, { ours: 'yes' })
  expect((await get('/v1/members?metadata[ours]=yes', { key: harness.other.key })).body.total).toBe(0)
})

test('an API key needs the scope of the object, and a repeated idempotency key replays the response', async () => {
  const { secret: reading } = await harness.addKey(['members:read', 'pay:read'])
  for (const path of Object.values(await someObjects())) {
    expect((await set(path, { a: 'b' }, { key: reading })).status).toBe(403)
    expect((await get(`${path}/metadata`, { key: reading })).status).toBe(200)
    const headers = { 'x-idempotency-key': `metadata ${path}` }
    expect((await set(path, { a: '1' }, { headers })).headers['idempotency-replayed']).toBeUndefined()
    await set(path, { a: '2' })
    const replayed = await set(path, { a: '1' }, { headers })
    expect([replayed.headers['idempotency-replayed'], replayed.body]).toEqual(['true', { metadata: { a: '1' } }])
    expect((await get(`${path}/metadata`)).body).toEqual({ metadata: { a: '2' } })
  }
})

test('of concurrent replacements one wins as a whole', async () => {
  const path = `/v1/members/${memberId}`
  const sets = Array.from({ length: 12 }, (_, index) =>
    Object.fromEntries(
      Array.from({ length: 1 + (index % 5) * 4 }, (_, key) => [`key${(key + index) % 20}`, `${index}`]),
    ),
  )
  const answers = await Promise.all(sets.map(each => set(path, each)))
  expect(answers.map(({ status }) => status)).toEqual(sets.map(() => 200))
  const { metadata } = (await get(`${path}/metadata`)).body
  expect(sets).toContainEqual(metadata)
})

test('each list is filtered by exact pairs, all of which must match, in pages and counts', async () => {
  const { call } = harness
  const ids = []
  for (const site of ['Leeds', 'Leeds', 'York', 'Leeds']) {
    const id = await harness.addMember()
    await set(`/v1/members/${id}`, { site, batch: 'filter' })
    ids.push(id)
  }
  const filtered = await get('/v1/members?metadata[batch]=filter&metadata[site]=Leeds&take=2')
  const [first, second, , fourth] = ids
  expect(filtered.body.members.map((member: { memberId: string }) => member.memberId)).toEqual([fourth, second])
  expect(filtered.body.total).toBe(3)
  const next = await get(`/v1/members?metadata[batch]=filter&metadata[site]=Leeds&take=2&after=${second}`)
  expect(next.body.members.map((member: { memberId: string }) => member.memberId)).toEqual([first])
  for (const pair of ['metadata[site]=leeds', 'metadata[site]=Leed', 'metadata[SITE]=Leeds', 'metadata[site]=%25'])
    expect((await get(`/v1/members?${pair}`)).body.total).toBe(0)
  const file = await call('GET', '/v1/members?metadata[batch]=filter', { headers: { accept: 'text/csv' } })
  expect(file.text.trim().split('\r\n')).toHaveLength(5)

  const intentId = await createIntent()
  await set(`/v1/pay/withdrawals/intent/${intentId}`, { batch: 'filter' })
  const withdrawalId = locatedId(await harness.requestCompletion(intentId))
  const { withdrawals } = (await get('/v1/pay/withdrawals?metadata[batch]=filter')).body
  expect(withdrawals.map(({ id }: { id: string }) => id)).toEqual([withdrawalId])

  const [payRun] = (await get('/v1/pay/runs')).body.payRuns
  await set(`/v1/pay/runs/${payRun.id}`, { batch: 'filter' })
  const runs = (await get('/v1/pay/runs?metadata[batch]=filter')).body
  expect([
    runs.total,
    runs.payRuns.map(({ id, metadata }: { id: string; metadata: object }) => [id, metadata]),
  ]).toEqual([1, [[payRun.id, { batch: 'filter' }]]])

  const webhookId = await createWebhook()
  await set(`/v1/webhooks/${webhookId}`, { batch: 'filter' })
  const hooks = (await get('/v1/webhooks?metadata[batch]=filter')).body
  expect([hooks.total, hooks.webhooks.map(({ id }: { id: string }) => id)]).toEqual([1, [webhookId]])
})

test('the audit log has a change with its keys but without its values; repeating the change adds no entry', async () => {
  const webhookId = await createWebhook()
  for (const metadata of [{ a: 'secret' }, { a: 'secret' }, { b: 'secret' }])
    await set(`/v1/webhooks/${webhookId}`, metadata)
  const { rows } = await sql<{ details: object }>`
    select details from audit_log where resource_id = ${webhookId} and action = 'metadata.set' order by id`.execute(
    harness.db,
  )
  expect(rows.map(({ details }) => details)).toEqual([
    { before: [], after: ['a'] },
    { before: ['a'], after: ['b'] },
  ])
})

test('events have the metadata only if the partner enables it, as of the time when the event entered the feed', async () => {
  const { partner, other, db } = harness
  const id = await harness.addMember({ available: 10_000 })
  const path = `/v1/members/${id}`
  const eventsOf = async (resourceId: string, key = harness.key) =>
    (await get(`/v1/events?resourceId=${resourceId}`, { key })).body.events as {
      type: string
      data: { metadata?: object }
    }[]
  const metadataIn = async (resourceId: string) => (await eventsOf(resourceId)).map(({ data }) => data.metadata)
  await set(path, { site: 'Leeds' })
  await harness.call('PATCH', path, { body: { firstName: 'Ann' } })
  expect(new Set(await metadataIn(id))).toEqual(new Set([undefined]))

  const want = async (metadataInEvents: boolean) =>
    await db.transaction().execute(tx => updatePartner(tx, { partnerId: partner.id, settings: { metadataInEvents } }))
  await want(true)
  await harness.call('PATCH', path, { body: { firstName: 'Bob' } })
  expect((await metadataIn(id)).at(-1)).toEqual({ site: 'Leeds' })
  await set(path, { site: 'York' })
  expect((await metadataIn(id)).at(-1)).toEqual({ site: 'Leeds' })
  const body = { memberId: id, amount: gbp(2_000) }
  const intentId = (await harness.call('POST', '/v1/pay/withdrawals/intent', { body })).body.withdrawalIntentId
  expect(await metadataIn(intentId)).toEqual([undefined])
  await set(`/v1/pay/withdrawals/intent/${intentId}`, { reason: 'rent' })
  const withdrawalId = locatedId(await harness.requestCompletion(intentId))
  expect(await metadataIn(withdrawalId)).toEqual([{ reason: 'rent' }])
  expect((await metadataIn(intentId)).at(-1)).toEqual({ reason: 'rent' })
  await want(false)
  await harness.call('PATCH', path, { body: { firstName: 'Cem' } })
  expect((await metadataIn(id)).at(-1)).toBeUndefined()
  expect(await metadataIn(withdrawalId)).toEqual([{ reason: 'rent' }])
  expect((await get('/v1/events', { key: other.key })).status).toBe(200)
})

test('a reset of the sandbox deletes metadata with its objects, but keeps the metadata of webhook endpoints', async () => {
  const { partner, key } = await startedPartner()
  const webhookId = (await harness.call('POST', '/v1/webhooks', { key, body: { url: 'https://example.com' } })).body.id
  const id = await harness.addMember({ key })
  await set(`/v1/webhooks/${webhookId}`, { a: 'kept' }, { key })
  await set(`/v1/members/${id}`, { a: 'deleted' }, { key })
  expect((await harness.call('POST', '/v1/sandbox/reset', { key })).status).toBe(200)
  expect((await get(`/v1/webhooks/${webhookId}`, { key })).body.metadata).toEqual({ a: 'kept' })
  const { rows } = await sql`select from metadata where partner_id = ${partner.id}`.execute(harness.db)
  expect(rows).toHaveLength(1)
})

async function startedPartner() {
  return await harness.addPartner('Reset')
}

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'
import { sql } from '../database/database.ts'
import { roles } from '../users/roles.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())

const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code]
const statusWith = async (key: string) => (await harness.call('GET', '/v1/members', { key })).status

test('a key works until it is revoked, shows its last use, and its secret is only in the first response', async () => {
  const { partner } = await harness.addPartner('Keys')
  const at = `/partners/${partner.id}/keys`
  const headers = { 'x-idempotency-key': 'first key' }
  const body = { scopes: ['members:read'], expiresInDays: 30 }
  const created = await operator.call('POST', at, { body, headers })
  expect(created.status, created.text).toBe(201)
  const { secret, id } = created.body
  const replayed = await operator.call('POST', at, { body, headers })
  expect([replayed.headers['idempotency-replayed'], replayed.body]).toEqual(['true', { ...created.body, secret: null }])
  const { rows } = await sql`select * from idempotency_keys where partner_id = ${operator.id}`.execute(harness.db)
  expect(JSON.stringify(rows)).not.toContain(secret)

  expect(await statusWith(secret)).toBe(200)
  expect((await harness.call('GET', '/v1/pay/withdrawals', { key: secret })).status).toBe(403)
  const [listed] = (await operator.call('GET', at)).body.keys
  const expiresAt = new Date(harness.clock.now().getTime() + 30 * 86_400_000).toISOString()
  expect(listed).toMatchObject({ id, state: 'valid', expiresAt, lastUsedAt: harness.clock.now().toISOString() })
  expect(listed).not.toHaveProperty('secret')

  expect((await operator.call('GET', `/keys/${id}`)).body).toEqual({ ...listed, partnerId: partner.id })
  const revoked = await operator.call('POST', `${at}/${id}/revoke`)
  expect(revoked.body).toMatchObject({ id, state: 'revoked' })
  expect((await operator.call('POST', `${at}/${id}/revoke`)).body).toEqual(revoked.body)
  harness.clock.advance({ seconds: 2 })
  expect(await statusWith(secret)).toBe(401)
  const entries = (await list(harness.db, { filter: { resourceId: id }, take: 10 })).toReversed()
  expect(entries.map(({ action, actor }) => [action, actor])).toEqual([
    ['key.create', operator.id],
    ['key.revoke', operator.id],
  ])
  expect(JSON.stringify(entries)).not.toContain(secret)
})

test('rotating creates a key with the same scopes and lifetime beside the old key', async () => {
  const { partner } = await harness.addPartner('Rotated')
  const at = `/partners/${partner.id}/keys`
  const old = (await operator.call('POST', at, { body: { scopes: ['members:read'], expiresInDays: 10 } })).body
  harness.clock.advance({ days: 5 })
  const rotated = await operator.call('POST', `${at}/${old.id}/rotate`)
  const expiresAt = new Date(harness.clock.now().getTime() + 10 * 86_400_000).toISOString()
  expect(rotated.body).toMatchObject({ scopes: ['members:read'], expiresAt, state: 'valid' })
  expect([await statusWith(old.secret), await statusWith(rotated.body.secret)]).toEqual([200, 200])
  await operator.call('POST', `${at}/${old.id}/revoke`)
  expect(problemOf(await operator.call('POST', `${at}/${old.id}/rotate`))).toEqual([409, 'Conflict'])
  const [entry] = await list(harness.db, { filter: { resourceId: rotated.body.id }, take: 1 })
  expect(entry?.details).toMatchObject({ rotates: old.id })
})

test('a rotation may let the old key expire after an overlap, never later than it would have expired', async () => {
  const { partner } = await harness.addPartner('Overlapping')
  const at = `/partners/${partner.id}/keys`
  const old = (await operator.call('POST', at, { body: {} })).body
  const body = { overlapSeconds: 3_600 }
  const rotated = (await operator.call('POST', `${at}/${old.id}/rotate`, { body })).body
  const oldExpiresAt = new Date(harness.clock.now().getTime() + 3_600_000).toISOString()
  const expiryOf = async (id: string) =>
    (await operator.call('GET', at)).body.keys.find((key: { id: string }) => key.id === id).expiresAt
  expect([await expiryOf(old.id), await expiryOf(rotated.id)]).toEqual([oldExpiresAt, null])
  const [entry] = await list(harness.db, { filter: { resourceId: rotated.id }, take: 1 })
  expect(entry?.details).toMatchObject({ rotates: old.id, oldExpiresAt })
  expect([await statusWith(old.secret), await statusWith(rotated.secret)]).toEqual([200, 200])
  await operator.call('POST', `${at}/${old.id}/rotate`, { body: { overlapSeconds: 7_200 } })
  expect(await expiryOf(old.id)).toBe(oldExpiresAt)
  harness.clock.advance({ seconds: 3_601 })
  expect([await statusWith(old.secret), await statusWith(rotated.secret)]).toEqual([401, 200])
  for (const overlapSeconds of [-1, 0.5, 2_592_001, '60'])
    expect((await operator.call('POST', `${at}/${rotated.id}/rotate`, { body: { overlapSeconds } })).status).toBe(400)
})

test('a partner has a bounded number of valid keys', async () => {
  const { partner } = await harness.addPartner('Many keys')
  const at = `/partners/${partner.id}/keys`
  // The partner already has one key.
  for (let count = 1; count < 100; count++) await harness.addKey(['members:read'], { partnerId: partner.id })
  const refused = await operator.call('POST', at, { body: {} })
  expect([refused.status, refused.body.issues[0].code]).toEqual([409, 'Conflict'])
  const [newest] = (await operator.call('GET', at)).body.keys
  expect((await operator.call('POST', `${at}/${newest.id}/rotate`)).status).toBe(409)
  await operator.call('POST', `${at}/${newest.id}/revoke`)
  expect((await operator.call('POST', at, { body: {} })).status).toBe(201)
})

test('the list of keys has pages, because revoked keys stay, and a key on a later page is revoked like any other', async () => {
  const { partner } = await harness.addPartner('Rotating often')
  const at = `/partners/${partner.id}/keys`
  const ids: string[] = [(await operator.call('GET', at)).body.keys[0].id]
  for (let count = 0; count < 3; count++) ids.unshift((await operator.call('POST', at, { body: {} })).body.id)
  const pageOf = async (query: string) => {
    const { keys, hasMore } = (await operator.call('GET', `${at}?${query}`)).body
    return { ids: keys.map(({ id }: { id: string }) => id), hasMore }
  }
  expect(await pageOf('take=3')).toEqual({ ids: ids.slice(0, 3), hasMore: true })
  expect(await pageOf(`take=3&after=${ids[2]}`)).toEqual({ ids: ids.slice(3), hasMore: false })
  expect((await operator.call('POST', `${at}/${ids[3]}/revoke`)).body).toMatchObject({ state: 'revoked' })
  expect((await operator.call('POST', `${at}/${ids[2]}/rotate`, { body: { overlapSeconds: 0 } })).status).toBe(201)
  harness.clock.advance({ seconds: 1 })
  const { keys } = (await operator.call('GET', `/partners/${partner.id}`)).body
  expect(keys).toEqual({ valid: 3, expired: 1, revoked: 1 })
})

test('the keys of another partner are not found', async () => {
  const { partner } = await harness.addPartner('Another')
  const created = (await operator.call('POST', `/partners/${partner.id}/keys`, { body: {} })).body
  for (const verb of ['rotate', 'revoke']) {
    const path = `/partners/${harness.partner.id}/keys/${created.id}/${verb}`
    expect(problemOf(await operator.call('POST', path))).toEqual([404, 'NotFound'])
  }
  for (const method of ['GET', 'POST'])
    expect(
      problemOf(await operator.call(method, '/partners/par_123/keys', method === 'GET' ? {} : { body: {} }))[0],
    ).toBe(404)
})

test('users manage the keys of their partner with the roles admin and developer, and reach nothing else for operators', async () => {
  const { partner } = harness
  const allowed: string[] = []
  const path = `/partners/${harness.other.partner.id}/keys`
  const theirs = (await operator.call('POST', path, { body: {} })).body
  for (const role of roles) {
    const user = await signIn(harness, { roles: [role] })
    const call = (method: string, path: string, body?: object) =>
      user.call(method, `/operator/v1${path}`, body === undefined ? {} : { body })
    const listed = await call('GET', `/partners/${partner.id}/keys`)
    if (listed.status === 200) allowed.push(role)
    else expect(problemOf(listed)).toEqual([403, 'Forbidden'])
    const created = await call('POST', `/partners/${partner.id}/keys`, { scopes: ['pay:read'] })
    expect(created.status).toBe(listed.status === 200 ? 201 : 403)
    if (created.status === 201) {
      const [entry] = await list(harness.db, { filter: { resourceId: created.body.id }, take: 1 })
      expect(entry).toMatchObject({ actorKind: 'user', actor: user.user.id })
    }
    const id = created.body.id ?? theirs.id
    for (const verb of ['rotate', 'revoke'])
      expect((await call('POST', `/partners/${partner.id}/keys/${id}/${verb}`)).status, `${role}: ${verb}`).toBe(
        listed.status !== 200 ? 403 : verb === 'rotate' ? 201 : 200,
      )
    const another = `/partners/${harness.other.partner.id}/keys`
    for (const [method, path] of [
      ['GET', another],
      ['POST', another],
      ['POST', `${another}/${theirs.id}/rotate`],
      ['POST', `${another}/${theirs.id}/revoke`],
      ['POST', `/partners/${partner.id}/keys/${theirs.id}/revoke`],
    ] as const) {
      const refused = problemOf(await call(method, path, method === 'POST' && path === another ? {} : undefined))
      expect(refused[0], `${role}: ${path}`).toBe(path.startsWith(another) || listed.status === 200 ? 404 : 403)
    }
    for (const path of [
      '/partners',
      `/partners/${partner.id}`,
      `/partners/${partner.id}/float`,
      '/status',
      '/audit-log',
    ])
      expect(problemOf(await call('GET', path)), path).toEqual([403, 'Forbidden'])
  }
  expect(allowed).toEqual(['admin', 'developer'])
})

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { keySource } from '../../test/harness/installation-key.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { connect, type Databases } from '../database/connect.ts'
import { type Db, sql, type Tx } from '../database/database.ts'
import { isUniqueViolation } from '../database/errors.ts'
import { Problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { decideAll, writeAll } from '../members/changes.ts'
import * as members from '../members/members.ts'
import { countLeftOut } from '../members/rehash.ts'
import type { NewMember } from '../members/schema.ts'
import { fingerprintColumns, nextColumn } from '../members/sealing.ts'
import { openKeys, openSealer } from '../sealing/installation-keys.ts'
import { KeyLease } from '../sealing/key-lease.ts'
import { rotateFingerprints, unfinishedRotations } from '../sealing/rotation.ts'
import { rehash } from './rehash.ts'

let harness: Harness
let mine: TestPartner
const opened: Databases[] = []
beforeAll(async () => {
  harness = await startHarness()
  mine = await harness.addPartner('Rotating')
  await openSealer(harness.db, keySource, { lease: new KeyLease({ readEveryMs: 5 }) })
})
afterEach(async () => {
  await rotate()
  await Promise.all(opened.splice(0).map(each => each.close()))
})
afterAll(() => harness.stop())

const steps = [
  'Waiting until every process makes fingerprints with both keys',
  'Adding the new fingerprints',
  'Waiting until every process uses the new fingerprints',
  'Replacing the old fingerprints',
  'Waiting until every process has forgotten the old fingerprints',
  'Removing what is stored twice',
]

/** @param last ends the rotation at this step, as if the process were killed */
const rotate = (last?: string) =>
  rotateFingerprints(harness.ownerDb, {
    ...{ source: keySource, now: harness.clock.now(), settleMs: 60, rehash, record: async () => undefined },
    onStep(step) {
      if (step === last) throw new Error('ended')
    },
  })
const rotateUntil = async (step: string) => await expect(rotate(step)).rejects.toThrow('ended')

const call = (method: string, path: string, body?: object) =>
  harness.call(method, path, { key: mine.key, ...(body === undefined ? {} : { body }) })
const named = (name: string, more = {}) => ({
  ...{ email: `${name}@example.com`, firstName: name, lastName: 'Okafor', tier: 'Silver', workerId: name, ...more },
})
const invite = (name: string, more = {}) => call('POST', '/v1/members', named(name, more))
const found = async (query: string) => (await call('GET', `/v1/members?${query}`)).body.members.length
const newName = () => `p${randomBytes(5).toString('hex')}`
const stored = async () => {
  const { rows } = await sql<{ row: Record<string, string | null> }>`
    select to_jsonb(m) as row from members m where erased_at is null order by id`.execute(harness.db)
  return rows.map(({ row }) => row)
}

/** A second process, which reads the keys only once. */
async function lagging(): Promise<Db> {
  const databases = connect(harness.settings.DATABASE_URL, { log: pino({ level: 'silent' }), connectionsMax: 4 })
  opened.push(databases)
  await openSealer(databases.db, keySource, { lease: new KeyLease({ readEveryMs: 3_600_000 }) })
  return databases.db
}

test('after a rotation every fingerprint is made with the new key, and members are found as before', async () => {
  const name = newName()
  const made = await invite(name, { phone: '+447400123456', dob: '1990-02-03', gender: 'Female' })
  expect(made.status, made.text).toBe(201)
  const before = await stored()
  await rotate()
  const after = await stored()
  expect(after).toHaveLength(before.length)
  for (const [index, row] of after.entries()) {
    for (const column of fingerprintColumns) {
      const earlier = before[index]?.[column] ?? null
      expect(row[column] === null).toBe(earlier === null)
      if (earlier !== null) expect(row[column]).not.toEqual(earlier)
      expect(row[nextColumn(column)]).toBeNull()
    }
  }
  expect([await found(`emails=${name}@example.com`), await found(`workerIds=${name}`)]).toEqual([1, 1])
  expect((await invite(name)).status).toBe(409)
  expect(await unfinishedRotations(harness.db)).toEqual([])
})

test('at each step of a rotation members are found, stay unique, and files compare equal', async () => {
  const name = newName()
  const [refusedName, lines] = [newName(), 'email,first_name,last_name,phone,tier,worker_id']
  await invite(name)
  const { memberId } = (await invite(refusedName, { accountDetails: account })).body
  await sql`update members set account_refused = 'AC04' where id = ${memberId}`.execute(harness.db)
  for (const step of steps) {
    await rotateUntil(step)
    expect(await unfinishedRotations(harness.db)).toEqual(['fingerprints'])
    const during = newName()
    expect((await invite(during)).status, step).toBe(201)
    for (const each of [name, during]) {
      expect([await found(`emails=${each}@example.com`), await found(`workerIds=${each}`)], step).toEqual([1, 1])
      expect([await found(`search=${each}@example.com`), await found(`search=${each}`)], step).toEqual([1, 1])
      expect((await invite(newName(), { email: `${each}@example.com` })).status, step).toBe(409)
      expect((await invite(newName(), { workerId: each })).status, step).toBe(409)
    }
    // The account stays refused, and keeps its ciphertext, until it is really changed.
    const kept = await accountOf(memberId)
    expect(
      (await call('PATCH', `/v1/members/${memberId}`, { firstName: during, accountDetails: account })).status,
    ).toBe(200)
    expect(await accountOf(memberId), step).toEqual(kept)
    expect(kept.accountRefused).toBe('AC04')
    const members = (await call('GET', '/v1/members?take=100')).body.members
    const rows = members.map((each: Record<string, string>) =>
      [each.email, each.firstName, each.lastName, each.phone, each.tier, each.workerId].join(),
    )
    const file = await harness.call('PUT', '/v2/members/jobs/csv?dryRun=true', {
      ...{ key: mine.key, raw: [lines, ...rows].join('\n'), headers: { 'content-type': 'text/csv' } },
    })
    expect(file.body.plan, `${step} ${file.text}`).toEqual({
      ...{ invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: members.length },
    })
  }
  await rotate()
  expect((await accountOf(memberId)).accountRefused).toBe('AC04')
  await call('PATCH', `/v1/members/${memberId}`, { accountDetails: { ...account, accountHolder: 'Other' } })
  expect((await accountOf(memberId)).accountRefused).toBeNull()
})

const account = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }

async function accountOf(memberId: string) {
  return await harness.db
    .selectFrom('members')
    .select(['account', 'accountRefused'])
    .where('id', '=', memberId)
    .executeTakeFirstOrThrow()
}

test.for(steps.filter(step => step.startsWith('Waiting')))(
  'of two processes at different steps, one creates the member and the other is refused: %s',
  async step => {
    // What the process that lags knows: the step before.
    const previous = steps[steps.indexOf(step) - 1]
    if (previous !== undefined) await rotateUntil(previous)
    const behind = await lagging()
    await rotateUntil(step)
    const ahead = await lagging()
    for (const field of ['email', 'workerId'] as const) {
      for (const order of [
        [behind, ahead],
        [ahead, behind],
      ]) {
        const name = newName()
        const same = field === 'email' ? { workerId: null } : {}
        const bodies = [named(name, same), named(name, field === 'email' ? same : { email: `${name}@example.org` })]
        const bothDecided = barrier(2)
        const outcomes = await Promise.allSettled(
          order.map((db, index) => db.transaction().execute(tx => add(tx, bodies[index] ?? {}, bothDecided))),
        )
        expect(outcomes.map(({ status }) => status).sort(), `${step} ${field}`).toEqual(['fulfilled', 'rejected'])
        const failure = outcomes.find(outcome => outcome.status === 'rejected')
        expect(isUniqueViolation(failure?.reason), String(failure?.reason)).toBe(true)
      }
    }
    await rotate()
    const { rows } = await sql`
      select from members where status in ('active', 'invited')
       group by partner_id, email_fingerprint having count(*) > 1`.execute(harness.db)
    expect(rows).toEqual([])
  },
)

/** Creates a member in two steps, as two requests do that both find the e-mail free. */
async function add(tx: Tx, body: object, bothDecided: () => Promise<void>): Promise<void> {
  const now = harness.clock.now()
  const command = { type: 'Add', memberId: newId('member', now), wanted: body } as Parameters<
    typeof decideAll
  >[1]['commands'][number]
  const [decided] = await decideAll(tx, { partner: mine.partner, commands: [command], now })
  await bothDecided()
  if (decided === undefined || decided instanceof Problem) throw new Error(`refused too early: ${decided?.message}`)
  await writeAll(tx, { partnerId: mine.partner.id, changes: [decided], instructedAt: now, now })
}

function barrier(count: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let left = count
  return async () => {
    left -= 1
    if (left === 0) resolve()
    await promise
  }
}

test('members that were dumped before a rotation are not opened with keys that were dumped after it', async () => {
  const keyOfMembers = async () =>
    (await sql<{ number: number }>`select number from member_fingerprint_key`.execute(harness.db)).rows[0]?.number
  const restore = (number: number | undefined) =>
    sql`update member_fingerprint_key set number = ${number}`.execute(harness.ownerDb)
  const before = await keyOfMembers()
  await rotateUntil('Replacing the old fingerprints')
  expect(await keyOfMembers()).toBe(before)
  await openKeys(harness.db, keySource)
  await rotate()
  const after = await keyOfMembers()
  expect(after).toBeGreaterThan(before ?? 0)
  await restore(before)
  await expect(openKeys(harness.db, keySource)).rejects.toThrow('before a rotation of the key of fingerprints')
  await restore(after)
  await openKeys(harness.db, keySource)
})

test('requests during a rotation give no error', async () => {
  const names = [newName()]
  await invite(names[0] ?? '')
  let isOver = false
  const statuses = new Set<number>()
  const load = async () => {
    while (!isOver) {
      const name = newName()
      const made = await invite(name)
      names.push(name)
      const changed = await call('PATCH', `/v1/members/${made.body.memberId}`, { phone: '+447400123456' })
      for (const { status } of [made, changed]) statuses.add(status)
      expect(await found(`emails=${names[Math.floor(Math.random() * names.length)]}@example.com`)).toBe(1)
    }
  }
  const loads = [load(), load()]
  await rotate()
  isOver = true
  await Promise.all(loads)
  expect([...statuses].sort()).toEqual([200, 201])
  for (const name of names) expect(await found(`emails=${name}@example.com`)).toBe(1)
})

test('an import that was queued before a rotation is planned as if there had been none', async () => {
  const own = await harness.addPartner('Queued')
  const put = (rows: string[]) =>
    harness.call('PUT', '/v2/members/jobs/csv', {
      ...{ key: own.key, headers: { 'content-type': 'text/csv' } },
      raw: ['email,first_name,last_name,phone,tier', ...rows].join('\n'),
    })
  const row = (name: string) => `${name}@example.com,${name},Okafor,,Silver`
  const [ann, ben] = [newName(), newName()]
  const first = await put([row(ann)])
  const second = await put([row(ann), row(ben)])
  expect([first.status, second.status], first.text).toEqual([202, 202])
  await rotateUntil('Replacing the old fingerprints')
  await harness.runTask('apply-member-imports')
  await harness.runTask('apply-member-imports')
  const results = await harness.call('GET', `/v1/members/jobs/${second.body.jobId}/results`, { key: own.key })
  expect(results.body.plan).toMatchObject({ invite: 1, unchanged: 1, offboard: 0 })
  await rotate()
  const { rows } = await sql<{ count: number }>`
    select count(distinct r.email_fingerprint)::integer as count
      from member_import_rows r join members m on m.partner_id = r.partner_id and m.email_fingerprint = r.email_fingerprint
     where r.partner_id = ${own.partner.id}`.execute(harness.db)
  expect(rows[0]?.count).toBe(2)
})

test('an erasure finds rows by an e-mail and a worker id that were changed before a rotation', async () => {
  const own = await harness.addPartner('Changed before')
  const ofOwn = (method: string, path: string, body?: object) =>
    harness.call(method, path, { key: own.key, ...(body === undefined ? {} : { body }) })
  const name = newName()
  const { memberId } = (await ofOwn('POST', '/v1/members', named(name))).body
  const raw = `email,first_name,last_name,phone,tier,worker_id\n${name}@example.com,${name},Okafor,,Silver,${name}`
  const options = { key: own.key, raw, headers: { 'content-type': 'text/csv' } }
  const { jobId } = (await harness.call('PUT', '/v2/members/jobs/csv', options)).body
  // Reinstating a member may change the e-mail.
  await ofOwn('DELETE', `/v1/members/${memberId}`)
  const other = newName()
  expect((await ofOwn('PUT', `/v1/members/${memberId}`, named(other))).status).toBe(200)
  await rotate()
  const results = async () => (await ofOwn('GET', `/v1/members/jobs/${jobId}/results`)).text
  expect(await results()).toContain(name)
  await ofOwn('DELETE', `/v1/members/${memberId}`)
  expect((await ofOwn('POST', `/v1/members/${memberId}/erase`)).status).toBe(200)
  expect(await results()).not.toContain(name)
})

test('a rotation ends although keys of a member are missing, and leaves that member out', async () => {
  const { memberId } = (await invite(newName())).body
  const keys = await harness.ownerDb.deleteFrom('memberKeys').where('memberId', '=', memberId).returningAll().execute()
  const before = (await stored()).find(({ id }) => id === memberId)
  await rotate()
  expect(await countLeftOut(harness.ownerDb)).toBe(1)
  expect((await stored()).find(({ id }) => id === memberId)).toEqual(before)
  await harness.ownerDb.insertInto('memberKeys').values(keys).execute()
  expect(await countLeftOut(harness.ownerDb)).toBe(0)
})

test('of two creations at once by processes at neighbouring steps, the later is refused as a duplicate', async () => {
  await rotateUntil('Adding the new fingerprints')
  const behind = await lagging()
  await rotateUntil('Waiting until every process uses the new fingerprints')
  const ahead = await lagging()
  for (const field of ['email', 'workerId'] as const) {
    const [name, now] = [newName(), harness.clock.now()]
    const other = field === 'email' ? { workerId: null } : { email: `${name}@example.org` }
    const create = (tx: Tx, body: NewMember) => members.invite(tx, { partner: mine.partner, body, now })
    const later = await ahead.transaction().execute(async tx => {
      await create(tx, named(name))
      const waiting = behind.transaction().execute(async tx2 => await create(tx2, named(name, other)))
      const outcome = waiting.catch(error => error)
      await whenWaiting(harness.db)
      return { outcome }
    })
    expect(await later.outcome).toMatchObject({ issues: [{ code: 'MemberAlreadyInvited' }] })
  }
})

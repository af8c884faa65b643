import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { eventTasks } from '../events/tasks.ts'
import { firstId } from '../kernel/ids.ts'
import { overviewTasks } from '../overview/tasks.ts'
import { sql } from './database.ts'
import { defaultPartitionsInUse } from './partitions.ts'

let harness: Harness
beforeAll(async () => {
  // The functions of the database read the real clock.
  harness = await startHarness({ startAt: new Date() })
})
afterAll(() => harness.stop())

let mine: TestPartner
beforeEach(async () => {
  mine = await harness.addPartner('Partitioned')
})

const log = pino({ level: 'silent' })
const run = (task: 'maintain-partitions' | 'number-event-feeds') =>
  eventTasks[task]({ db: harness.db, log, now: harness.clock.now })
const addUp = () => overviewTasks['add-up-withdrawals']({ db: harness.db, log, now: harness.clock.now })

async function partitionsOf(table: 'events' | 'ledger_transfers'): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${table}::regclass order by 1`.execute(
    harness.db,
  )
  return rows.map(({ name }) => name)
}

/** The first instant of a month, counted from the present one. */
function monthStart(months: number): Date {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months))
}

function nameOf(table: 'events' | 'ledger_transfers', months: number): string {
  return `${table}_${monthStart(months).toISOString().slice(0, 7).replace('-', '_')}`
}

async function makePartition(table: 'events' | 'ledger_transfers', months: number): Promise<string> {
  const day = monthStart(months).toISOString().slice(0, 10)
  await sql`select make_partition(${table}, ${day}::date)`.execute(harness.ownerDb)
  return nameOf(table, months)
}

/** Inserts an event of another month. @returns its id */
async function insertEvent(months: number): Promise<string> {
  const at = new Date(monthStart(months).getTime() + 86_400_000)
  const id = `${firstId('event', at).slice(0, -6)}${mine.partner.id.slice(-6)}`
  await sql`
    insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
    values (${mine.partner.id}, ${id}, 'job.completed', ${id}, 1, '{}', ${at})`.execute(harness.db)
  return id
}

describe('the worker', () => {
  test.for(['events', 'ledger_transfers'] as const)('makes the next month of %s ahead', async table => {
    const next = nameOf(table, 1)
    expect(await partitionsOf(table)).toEqual([nameOf(table, 0), next, `${table}_default`])
    await sql`drop table ${sql.table(next)}`.execute(harness.ownerDb)
    await run('maintain-partitions')
    await run('maintain-partitions')
    expect(await partitionsOf(table)).toEqual([nameOf(table, 0), next, `${table}_default`])
    const { rows } = await sql<object>`
      select has_table_privilege(${next}, 'select, insert, update, delete, truncate') as is_granted, reloptions as storage,
             (select count(*)::integer from pg_index where indrelid = ${next}::regclass and indisunique) as unique_indexes
        from pg_class where oid = ${next}::regclass`.execute(harness.db)
    expect(rows).toEqual([
      {
        isGranted: false,
        storage: expect.arrayContaining(['autovacuum_vacuum_insert_scale_factor=0.02']),
        uniqueIndexes: table === 'events' ? 3 : 2,
      },
    ])
    await expect(sql`truncate ${sql.table(next)}`.execute(harness.ownerDb)).rejects.toMatchObject({
      constraint: 'append_only',
    })
  })

  test('leaves a partition for later while its table is in use', async () => {
    const next = nameOf('events', 1)
    await sql`drop table ${sql.table(next)}`.execute(harness.ownerDb)
    await harness.inTx(async tx => {
      await sql`lock table events in row exclusive mode`.execute(tx)
      await run('maintain-partitions')
      expect(await partitionsOf('events')).not.toContain(next)
    })
    await run('maintain-partitions')
    expect(await partitionsOf('events')).toContain(next)
  })

  test('drops a month of events 30 days after its end, and never one of transfers', async () => {
    const [old, recent] = [await makePartition('events', -3), await makePartition('events', -1)]
    const transfers = await makePartition('ledger_transfers', -3)
    await insertEvent(-3)
    await run('number-event-feeds')
    await addUp()
    await run('maintain-partitions')
    expect(await partitionsOf('events')).not.toContain(old)
    expect(await partitionsOf('events')).toContain(recent)
    expect(await partitionsOf('ledger_transfers')).toContain(transfers)
    await sql`drop table ${sql.table(recent)}, ${sql.table(transfers)}`.execute(harness.ownerDb)
  })

  test('keeps an old month of events until they are numbered, added up, fanned out and delivered', async () => {
    const endpoint = await harness.call('POST', '/v1/webhooks', {
      key: mine.key,
      body: { url: 'https://example.com/' },
    })
    const old = await makePartition('events', -3)
    const id = await insertEvent(-3)
    const isKept = async () => {
      await run('maintain-partitions')
      return (await partitionsOf('events')).includes(old)
    }
    const { ownerDb, db } = harness
    const partnerId = mine.partner.id
    const position = sql`(select last_position from event_feeds where partner_id = ${partnerId})`
    expect(await isKept()).toBe(true)
    await run('number-event-feeds')
    await sql`update webhook_feeds set position = ${position} where partner_id = ${partnerId}`.execute(db)
    expect(await isKept()).toBe(true)
    await addUp()
    await sql`update webhook_feeds set position = ${position} - 1 where partner_id = ${partnerId}`.execute(db)
    expect(await isKept()).toBe(true)
    await sql`update webhook_feeds set position = ${position} where partner_id = ${partnerId}`.execute(db)
    await sql`
      insert into webhook_deliveries (partner_id, endpoint_id, event_id, type, state, created_at, due_at)
      values (${partnerId}, ${endpoint.body.id}, ${id}, 'job.completed', 'pending', now(), now())`.execute(db)
    expect(await isKept()).toBe(true)
    await sql`update webhook_deliveries set due_at = null, state = 'delivered' where event_id = ${id}`.execute(ownerDb)
    expect(await isKept()).toBe(false)
  })
})

test('a month that began without its partition is in the default one, is reported, and becomes a partition without moving a row', async () => {
  expect(await defaultPartitionsInUse(harness.db)).toEqual([])
  const next = nameOf('events', 1)
  await sql`drop table ${sql.table(next)}`.execute(harness.ownerDb)
  await insertEvent(1)
  expect(await defaultPartitionsInUse(harness.db)).toEqual(['events_default'])
  await run('maintain-partitions')
  expect(await partitionsOf('events')).not.toContain(next)
  const suffix = next.slice('events_'.length)
  const [from, to] = [firstId('event', monthStart(1)), firstId('event', monthStart(2))]
  // As in docs/operations/running.md.
  await sql`alter table events detach partition events_default`.execute(harness.ownerDb)
  await sql`alter table events_default rename to ${sql.table(next)}`.execute(harness.ownerDb)
  await sql`alter index one_event_per_step_default rename to ${sql.table(`one_event_per_step_${suffix}`)}`.execute(
    harness.ownerDb,
  )
  await sql`alter index events_feed_default rename to ${sql.table(`events_feed_${suffix}`)}`.execute(harness.ownerDb)
  await sql`
    alter table events attach partition ${sql.table(next)}
      for values from (${sql.lit(from)}) to (${sql.lit(to)})`.execute(harness.ownerDb)
  await sql`select make_partition('events', null)`.execute(harness.ownerDb)
  expect(await defaultPartitionsInUse(harness.db)).toEqual([])
  expect(await partitionsOf('events')).toEqual([nameOf('events', 0), next, 'events_default'])
})

test('an old default partition is replaced by an empty one', async () => {
  await insertEvent(-5)
  await run('number-event-feeds')
  await addUp()
  expect(await defaultPartitionsInUse(harness.db)).toEqual(['events_default'])
  await run('maintain-partitions')
  expect(await defaultPartitionsInUse(harness.db)).toEqual([])
})

test.for([
  `select make_partition('events', '2020-01-01')`,
  `create table events_2020_01 partition of events for values from ('a') to ('b')`,
  `drop table ${nameOf('events', 0)}`,
  `alter table events detach partition ${nameOf('events', 0)}`,
  `select from ${nameOf('ledger_transfers', 0)}`,
])('the app role cannot %s', async statement => {
  await expect(harness.pool.query(statement)).rejects.toMatchObject({ code: '42501' })
})

test('the app role can drop neither transfers nor events of the last 30 days through the functions', async () => {
  const before = [await partitionsOf('events'), await partitionsOf('ledger_transfers')]
  await run('number-event-feeds')
  await addUp()
  await sql`select drop_old_events('infinity')`.execute(harness.db)
  await expect(sql`select make_partitions('members')`.execute(harness.db)).rejects.toThrow('members has no partitions')
  expect([await partitionsOf('events'), await partitionsOf('ledger_transfers')]).toEqual(before)
})

test('two writers of one member at once count its events on, also across a border of partitions', async () => {
  const { clock } = harness
  const startedAt = clock.now()
  const memberId = await harness.addMember({ key: mine.key })
  const rename = (lastName: string) =>
    harness.call('PATCH', `/v1/members/${memberId}`, { key: mine.key, body: { lastName } })
  const renamed = await harness.inTx(async tx => {
    await sql`select from members where partner_id = ${mine.partner.id} and id = ${memberId} for update`.execute(tx)
    clock.set(new Date(monthStart(1).getTime() - 1))
    const first = rename('Ade')
    await whenWaiting(harness.db)
    clock.set(monthStart(1))
    const second = rename('Bello')
    await whenWaiting(harness.db, { count: 2 })
    return [first, second]
  })
  clock.set(startedAt)
  expect((await Promise.all(renamed)).map(({ status }) => status)).toEqual([200, 200])
  const { rows } = await sql<object>`
    select sequence, tableoid::regclass::text as partition from events
     where partner_id = ${mine.partner.id} and resource_id = ${memberId} order by sequence`.execute(harness.ownerDb)
  const [last, next] = [nameOf('events', 0), nameOf('events', 1)]
  expect(rows.toSorted()).toEqual([
    { sequence: 1, partition: last },
    { sequence: 2, partition: last },
    { sequence: 3, partition: last },
    { sequence: 4, partition: next },
  ])
})

test('a resource whose first events are gone counts on from them', async () => {
  const memberId = await harness.addMember({ key: mine.key })
  await sql`delete from events where resource_id = ${memberId}`.execute(harness.ownerDb)
  await harness.call('PATCH', `/v1/members/${memberId}`, { key: mine.key, body: { lastName: 'Ade' } })
  const { body } = await harness.call('GET', '/v1/events?types=member.updated', { key: mine.key })
  expect(body.events.map(({ sequence }: { sequence: number }) => sequence)).toEqual([3])
})

test('a page of the feed reads no month that left it, with a plan for any partner and any page', async () => {
  const old = [await makePartition('events', -6), await makePartition('events', -7)]
  const sent: { text: string; values: unknown[] }[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [text, values] = args as [unknown, unknown[]]
    if (typeof text === 'string' && /order by position limit/.test(text)) sent.push({ text, values })
    return query.apply(this, args)
  } as never)
  try {
    expect((await harness.call('GET', '/v1/events?types=member.invited', { key: mine.key })).status).toBe(200)
    expect((await harness.call('GET', '/v1/events', { key: mine.key })).status).toBe(200)
  } finally {
    spy.mockRestore()
  }
  const reads = sent.filter(({ text }) => !text.includes('next as'))
  expect(reads).toHaveLength(2)
  const client = await harness.pool.connect()
  try {
    await client.query('set plan_cache_mode = force_generic_plan')
    for (const [index, { text, values }] of reads.entries()) {
      await client.query(`prepare page_${index} as ${text}`)
      const given = values.map(value =>
        pg.escapeLiteral(
          value instanceof Date ? value.toISOString() : Array.isArray(value) ? `{${value}}` : String(value),
        ),
      )
      const { rows } = await client.query(`explain (costs off) execute page_${index} (${given})`)
      const plan = rows.map(row => row['QUERY PLAN']).join('\n')
      expect(plan).toMatch(/partner_id\)::text = \$\d/)
      expect(plan).toMatch(/Subplans Removed: [2-9]/)
      expect(old.filter(name => plan.includes(name))).toEqual([])
    }
  } finally {
    client.release(true)
    await sql`drop table ${sql.join(old.map(name => sql.table(name)))}`.execute(harness.ownerDb)
  }
})

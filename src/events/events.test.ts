import pino from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { sql, type Tx } from '../database/database.ts'
import { newId } from '../kernel/ids.ts'
import * as events from './events.ts'
import { eventTasks } from './tasks.ts'

let harness: Harness
let mine: TestPartner
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  mine = await harness.addPartner('Reader')
})

type Listed = { id: string; type: string; sequence: number; createdAt: string; data: Record<string, unknown> }

const get = (query = '', options = {}) => harness.call('GET', `/v1/events${query}`, { key: mine.key, ...options })
// Any two types of the catalogue with the same data: these tests are about who emits, and when.
const append = async (tx: Tx, name: string, type: 'job.processing' | 'job.rejected' = 'job.processing') => {
  const [partnerId, resourceId] = [mine.partner.id, `maj_${name}`]
  const { rows } = await sql<{ sequence: number }>`
    select count(*)::integer + 1 as sequence from events
     where partner_id = ${partnerId} and resource_id = ${resourceId}`.execute(tx)
  const sequence = rows[0]?.sequence ?? 1
  const data = { jobId: resourceId, status: 'Processing' as const }
  await events.emit(tx, { partnerId, type, resourceId, sequence, data, now: harness.clock.now() })
}
const appendNow = (name: string, type?: 'job.processing' | 'job.rejected') => harness.inTx(tx => append(tx, name, type))
const numberAll = async () =>
  await eventTasks['number-event-feeds']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
const resourcesOf = (listed: Listed[]) => listed.map(({ data }) => String(data.jobId ?? 'maj_cycle').slice(4))

/** Reads as a partner would: always after the last event that it has. */
function reader(query = 'take=2') {
  const seen: Listed[] = []
  return {
    seen,
    async readOn() {
      for (;;) {
        const last = seen.at(-1)
        const { body, status } = await get(`?${query}${last === undefined ? '' : `&after=${last.id}`}`)
        expect(status).toBe(200)
        seen.push(...body.events)
        if (!body.hasMore) return seen
      }
    },
  }
}

/** An open transaction that emits an event on demand. */
async function openTransaction() {
  const begun = Promise.withResolvers<void>()
  const resources = Promise.withResolvers<string[]>()
  const done = harness.inTx(async tx => {
    await sql`select 1`.execute(tx)
    begun.resolve()
    for (const resource of await resources.promise) await append(tx, resource)
  })
  await begun.promise
  return {
    async commit(...appended: string[]) {
      resources.resolve(appended)
      await done
    },
  }
}

test('an event that the catalogue does not declare, or with other data than declared, does not compile', () => {
  const common = { partnerId: 'par_x', resourceId: 'maj_x', sequence: 1, now: new Date() }
  const declared: events.NewEvent = { ...common, type: 'job.completed', data: { jobId: 'maj_x', status: 'Completed' } }
  // @ts-expect-error: no such type
  const undeclared: events.NewEvent = { ...common, type: 'job.exploded', data: declared.data }
  // @ts-expect-error: a status that the event cannot have
  const odd: events.NewEvent = { ...common, type: 'job.completed', data: { jobId: 'maj_x', status: 'Odd' } }
  // @ts-expect-error: a field is missing
  const less: events.NewEvent = { ...common, type: 'job.completed', data: { jobId: 'maj_x' } }
  const more: events.NewEvent = {
    ...{ ...common, type: 'job.completed' },
    // @ts-expect-error: an extra field
    data: { jobId: 'maj_x', status: 'Completed', name: 'Sam' },
  }
  const money: events.NewEvent = {
    ...{ ...common, type: 'float.low' },
    // @ts-expect-error: a bare number is not Money
    data: { free: 1, floor: { amount: 1, currency: 'GBP' } },
  }
  expect([declared, undeclared, odd, less, more, money]).toHaveLength(6)
})

describe('the feed', () => {
  test('returns every event, oldest first, and says whether there are more', async () => {
    const first = await get()
    expect(first.body).toEqual({
      events: [
        {
          ...{ id: expect.stringMatching(/^evt_/), type: 'pay_cycle.opened', sequence: 1 },
          ...{ timestamp: harness.clock.now().toISOString(), createdAt: harness.clock.now().toISOString() },
          data: { payCycleId: mine.payCycle.id, startDate: '2026-03-01', endDate: '2026-03-31' },
        },
      ],
      lastEventId: first.body.events[0].id,
      hasMore: false,
      take: 50,
    })
    await appendNow('one')
    await appendNow('two')
    const page = await get('?take=2')
    expect(page.body).toMatchObject({ hasMore: true, take: 2 })
    expect(resourcesOf(page.body.events)).toEqual(['cycle', 'one'])
    const rest = await get(`?after=${page.body.events[1].id}`)
    expect(resourcesOf(rest.body.events)).toEqual(['two'])
    expect(rest.body.hasMore).toBe(false)
    const [last] = rest.body.events
    expect((await get(`?after=${last.id}`)).body).toEqual({
      ...{ events: [], lastEventId: last.id, hasMore: false, take: 50 },
    })
  })

  test('is not blocked by an open transaction; the events of that transaction come later', async () => {
    const { seen, readOn } = reader()
    await appendNow('before')
    const open = await openTransaction()
    await appendNow('meanwhile')
    await readOn()
    expect(resourcesOf(seen)).toEqual(['cycle', 'before', 'meanwhile'])
    await open.commit('late')
    await readOn()
    expect(resourcesOf(seen)).toEqual(['cycle', 'before', 'meanwhile', 'late'])
  })

  test('of one partner is complete while another partner’s transaction is open, even one that numbers its feed', async () => {
    const slow = mine
    await appendNow('slow')
    await numberAll()
    const numbering = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    // The transaction has emitted an event and holds the lock of its feed.
    const open = harness.inTx(async tx => {
      await append(tx, 'uncommitted')
      await events.numberFeed(tx, { partnerId: slow.partner.id, countMax: 1, waits: true })
      numbering.resolve()
      await end.promise
    })
    await numbering.promise
    // Partners are numbered in id order: these come after the slow one.
    const others = [await harness.addPartner('Next'), await harness.addPartner('Last')]
    for (const other of others) {
      mine = other
      await appendNow('quick')
    }
    const read = await get()
    expect(resourcesOf(read.body.events)).toEqual(['cycle', 'quick'])
    await numberAll()
    expect(await Promise.all(others.map(({ partner }) => events.hasUnnumbered(harness.db, partner.id)))).toEqual([
      ...[false, false],
    ])
    end.resolve()
    await open
    mine = slow
    expect(resourcesOf((await get()).body.events).sort()).toEqual(['cycle', 'slow', 'uncommitted'])
  })

  test('has one permanent order, however many readers number it concurrently', async () => {
    const readers = Array.from({ length: 4 }, () => reader('take=3'))
    const names = Array.from({ length: 40 }, (_, index) => `r${index}`)
    await Promise.all([...names.map(name => appendNow(name)), ...readers.map(({ readOn }) => readOn())])
    await Promise.all(readers.map(({ readOn }) => readOn()))
    const [first = [], ...others] = readers.map(({ seen }) => seen.map(({ id }) => id))
    expect(first).toHaveLength(41)
    for (const other of others) expect(other).toEqual(first)
  })

  test('says that there are more while a backlog is being numbered, and the worker numbers all of it', async () => {
    // The ids descend while the sequence ascends: the sequence decides.
    const ids = Array.from({ length: 7_000 }, () => newId('event', harness.clock.now())).reverse()
    await sql`
      insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
      select ${mine.partner.id}, id, 'job.rejected', 'backlog', place, '{"jobId": "maj_backlog", "status": "Rejected"}', ${harness.clock.now()}
        from unnest(${ids}::text[]) with ordinality as e (id, place)`.execute(harness.db)
    const first = await get('?take=1')
    expect(first.body.hasMore).toBe(true)
    const { seen, readOn } = reader('take=100&types=job.rejected')
    await numberAll()
    await readOn()
    expect(seen.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 7_000 }, (_, index) => index + 1))
  })

  test('neither misses nor repeats an event under concurrent writes', async () => {
    const { seen, readOn } = reader('take=7')
    const writers = Array.from({ length: 12 }, async (_, writer) => {
      for (let round = 0; round < 8; round++) {
        await harness.inTx(async tx => {
          await append(tx, `r${writer}`)
          await append(tx, `r${writer}-${round}`)
        })
      }
    })
    let writing = true
    const all = Promise.all(writers).finally(() => {
      writing = false
    })
    while (writing) await readOn()
    await all
    await readOn()
    expect(seen).toHaveLength(1 + 12 * 8 * 2)
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length)
  })

  test('keeps the events of a resource in sequence, even if a later transaction emits first', async () => {
    const early = await openTransaction()
    await appendNow('shared')
    await appendNow('shared')
    await early.commit('shared', 'shared', 'own')
    const { seen, readOn } = reader()
    await readOn()
    const shared = seen.filter(({ data }) => data.jobId === 'maj_shared')
    expect(shared.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4])
    expect(resourcesOf(seen)).toContain('own')
  })

  test('returns only the requested types', async () => {
    await appendNow('one', 'job.rejected')
    for (const name of ['two', 'three', 'four']) await appendNow(name)
    await appendNow('five', 'job.rejected')
    expect(resourcesOf((await get('?types=job.rejected')).body.events)).toEqual(['one', 'five'])
    const { seen, readOn } = reader('take=1&types=job.rejected&types=job.processing&types=job.rejected')
    await readOn()
    expect(resourcesOf(seen)).toEqual(['one', 'two', 'three', 'four', 'five'])
    expect((await get('?types=float.low')).body.events).toEqual([])
  })

  test('returns only the events of the requested resource, of all types or some', async () => {
    await appendNow('a')
    await appendNow('b')
    await appendNow('a', 'job.rejected')
    const typesOf = async (query: string) => (await get(query)).body.events.map(({ type }: Listed) => type)
    expect(await typesOf('?resourceId=maj_a')).toEqual(['job.processing', 'job.rejected'])
    expect(await typesOf('?resourceId=maj_a&types=job.rejected')).toEqual(['job.rejected'])
    expect(await typesOf('?resourceId=maj_none')).toEqual([])
    const others = await get('?resourceId=maj_a', { key: harness.other.key })
    expect(others.body.events).toEqual([])
    expect((await get('?resourceId=A%20job')).body.issues[0]).toMatchObject({ code: 'QueryValidation' })
  })

  test('finds a rare type by its index, without reading the others', async () => {
    await sql`
      insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
      select ${mine.partner.id}, 'evt_' || n, 'job.processing', 'common', n, '{}', ${harness.clock.now()} from generate_series(1, 20000) n`.execute(
      harness.db,
    )
    await appendNow('one', 'job.rejected')
    await numberAll()
    await sql`analyze events`.execute(harness.ownerDb)
    const client = await harness.pool.connect()
    try {
      // The plan of the feed's own statement.
      await client.query('begin')
      const read = await client.query(
        `explain (analyze, timing off, summary off) select e.id from unnest($3::text[]) wanted (type) cross join lateral (
           select position, id from events where partner_id = $1 and events.type = wanted.type and position > $2::bigint
            order by position limit 51) e`,
        [mine.partner.id, '0', ['job.rejected']],
      )
      const plan = read.rows.map(row => row['QUERY PLAN']).join('\n')
      expect(plan).toMatch(
        /using events_default_partner_id_type_position_idx on events_default .*actual rows=1(\.00)? /,
      )
      await client.query('rollback')
    } finally {
      client.release()
    }
  })

  test('reaches back 30 days: older events are gone and are no longer valid cursors', async () => {
    await appendNow('old')
    const old = (await get()).body.events.at(-1).id
    harness.clock.advance({ days: 29 })
    await appendNow('new')
    expect(resourcesOf((await get()).body.events)).toEqual(['cycle', 'old', 'new'])
    expect(resourcesOf((await get(`?after=${old}`)).body.events)).toEqual(['new'])
    harness.clock.advance({ days: 2 })
    const listed = (await get()).body.events
    expect(resourcesOf(listed)).toEqual(['new'])
    expect((await get(`?after=${old}`)).status).toBe(404)
    harness.clock.advance({ days: 40 })
    expect((await get()).body.events).toEqual([])
  })

  test('responds to another partner’s event exactly as to an unknown one', async () => {
    const { key } = await harness.addPartner('Foreign')
    const foreign = (await get('', { key })).body.events[0].id
    const answer = await get(`?after=${foreign}`)
    const missing = await get(`?after=${newId('event', harness.clock.now())}`)
    expect(answer.status).toBe(404)
    expect(answer.body.issues[0].code).toBe('NotFound')
    expect(answer.text).toBe(missing.text)
    expect((await get()).body.events).toHaveLength(1)
  })

  test('from=now returns no events, but a cursor for all later events', async () => {
    for (const name of ['one', 'two', 'three']) await appendNow(name)
    const newest = (await get()).body.events.at(-1).id
    const end = { events: [], lastEventId: newest, hasMore: false, take: 50 }
    expect((await get('?from=now')).body).toEqual(end)
    // The cursor is a position in the whole feed, regardless of the requested types.
    expect((await get('?from=now&types=withdrawal.paid')).body).toEqual(end)
    await appendNow('four')
    expect(resourcesOf((await get(`?after=${newest}`)).body.events)).toEqual(['four'])
    const both = await get(`?from=now&after=${newest}`)
    expect([both.status, both.body.issues[0]]).toMatchObject([400, { code: 'QueryValidation', path: 'from' }])
  })

  test('from=now starts after everything committed, and misses no event of an open transaction', async () => {
    await appendNow('before')
    const open = await openTransaction()
    await appendNow('meanwhile')
    const { lastEventId } = (await get('?from=now')).body
    await open.commit('late')
    expect(resourcesOf((await get(`?after=${lastEventId}`)).body.events)).toEqual(['late'])
  })

  test('from=now on an empty feed continues from the beginning', async () => {
    // All events of the partner are older than the feed.
    harness.clock.advance({ days: 31 })
    expect((await get('?from=now')).body).toEqual({ events: [], lastEventId: null, hasMore: false, take: 50 })
    await appendNow('first')
    const { events: listed, lastEventId } = (await get()).body
    expect(resourcesOf(listed)).toEqual(['first'])
    expect(lastEventId).toBe(listed[0].id)
  })

  test('needs a key with permission to read pay', async () => {
    const { secret } = await harness.addKey(['members:read'], { partnerId: mine.partner.id })
    expect((await get('', { key: secret })).status).toBe(403)
    expect((await get('', { key: null })).status).toBe(401)
  })

  test('with an idempotency key replays the first response, even after later events', async () => {
    const headers = { 'x-idempotency-key': 'read-once' }
    const first = await get('', { headers })
    await appendNow('later')
    const second = await get('', { headers })
    expect([second.text, second.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
  })

  test.each([
    'take=0',
    'take=1001',
    'from=then',
    'types=test.happened',
    'types=withdrawal',
    'after=x',
    'after=mem_01kah4pzc5e4r8v2m6t0x9y3bd',
    'types=Nothing',
    'skip=1',
  ])('refuses the query %s', async query => {
    const { status, body } = await get(`?${query}`)
    expect(status).toBe(400)
    expect(body.issues[0]).toMatchObject({ code: 'QueryValidation' })
  })
})

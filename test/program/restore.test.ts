import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildApp } from '../../src/app.ts'
import { connect } from '../../src/database/connect.ts'
import type { Db, Tx } from '../../src/database/database.ts'
import * as float from '../../src/float/float.ts'
import { foldFloatChanges } from '../../src/ledger/ledger.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import { verify } from '../../src/verification/verify.ts'
import type { ApiResponse, Call } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { keySource } from '../harness/installation-key.ts'
import { startTestPostgres } from '../runner/postgres.ts'

// Restores a dump on another server by COPY between two clusters, because PostgreSQL from npm has no pg_dump.

const log = pino({ level: 'silent' })
const restoredName = 'restored'

let old: Harness
let cluster: Awaited<ReturnType<typeof startTestPostgres>>
beforeAll(async () => {
  old = await startHarness({ log })
  cluster = await startTestPostgres()
}, 60_000)
afterAll(async () => {
  await old.stop()
  await cluster.stop()
})

type CallApi = (method: string, path: string, call?: Call) => Promise<ApiResponse>
type Listed = { id: string; type: string; sequence: number; data: Record<string, string> }
type Line = { id: string; change: { available: { amount: number } }; balanceAfter: { available: { amount: number } } }

const gbp = (amount: number) => ({ amount, currency: 'GBP' })

/** Withdraws some money for each member, several members at a time. */
async function withdraw(call: CallApi, members: string[], amounts: number[]): Promise<void> {
  const completed = await Promise.all(
    members.flatMap(memberId =>
      amounts.map(async amount => {
        const intent = await call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount: gbp(amount) } })
        const { withdrawalIntentId } = intent.body
        return await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
      }),
    ),
  )
  expect(completed.map(({ status }) => status)).toEqual(completed.map(() => 201))
}

/** Reads the feed from a cursor to the end, like a partner. */
async function readFeed(call: CallApi, after?: string): Promise<Listed[]> {
  const seen: Listed[] = []
  for (;;) {
    const cursor = seen.at(-1)?.id ?? after
    const { status, body } = await call('GET', `/v1/events?take=7${cursor === undefined ? '' : `&after=${cursor}`}`)
    expect(status).toBe(200)
    seen.push(...body.events)
    if (!body.hasMore) return seen
  }
}

async function readStatement(call: CallApi, memberId: string): Promise<Line[]> {
  const { status, body } = await call('GET', `/v1/pay/members/${memberId}/statement?take=100`)
  expect(status).toBe(200)
  return body.lines
}

const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id)

/** Uses up transaction ids, so that the new server's ids are lower than those in the dump. */
async function consumeTransactionIds(client: pg.Client, count: number): Promise<void> {
  await client.query(`do $$ begin for i in 1..${count} loop perform pg_current_xact_id(); commit; end loop; end $$`)
}

async function currentTransactionId(client: pg.Client): Promise<bigint> {
  const { rows } = await client.query<{ id: string }>('select pg_current_xact_id()::text as id')
  return BigInt(rows[0]?.id ?? 0)
}

/** Copies every table and sequence into a migrated database, with triggers and foreign keys off. */
async function copyDatabase(from: pg.Client, to: pg.Client): Promise<void> {
  const { rows: tables } = await from.query<{ name: string; columns: string }>(
    `select c.oid::regclass::text as name, string_agg(quote_ident(attname), ', ' order by attnum) as columns
       from pg_class c join pg_attribute a on a.attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
      where c.relkind = 'r' and c.relnamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace)
      group by c.oid`,
  )
  expect(tables.length).toBeGreaterThan(30)
  await to.query('set session_replication_role = replica')
  // A partition can be emptied only together with the tables to which it refers.
  await to.query(`truncate ${tables.map(({ name }) => name).join(', ')}, events, ledger_transfers`)
  // One snapshot of all tables, like pg_dump.
  await from.query('begin isolation level repeatable read')
  for (const { name, columns } of tables) {
    await pipeline(
      from.query(copyTo(`copy ${name} (${columns}) to stdout`)),
      to.query(copyFrom(`copy ${name} (${columns}) from stdin`)),
    )
  }
  const { rows: sequences } = await from.query<{ name: string; last: string | null }>(
    `select format('%I.%I', schemaname, sequencename) as name, last_value::text as last from pg_sequences`,
  )
  for (const { name, last } of sequences) if (last !== null) await to.query('select setval($1, $2)', [name, last])
  await from.query('commit')
}

async function connectAs(connection: { host: string; user: string; database: string }): Promise<pg.Client> {
  const client = new pg.Client(connection)
  await client.connect()
  return client
}

/** The API on a copy of the old database in the new cluster. */
async function restore(): Promise<{ db: Db; call: CallApi; stop(): Promise<void> }> {
  const { host, user, owner, superuser } = cluster
  const admin = await connectAs({ host, user: superuser, database: 'postgres' })
  await admin.query(`create database ${restoredName} template template_midmonth owner ${owner}`)
  await admin.end()
  const from = await connectAs({ host: old.host, user: old.superuser, database: old.database })
  const to = await connectAs({ host, user: superuser, database: restoredName })
  await consumeTransactionIds(from, 20_000)
  await copyDatabase(from, to)
  // The premise of the test: new rows have lower transaction ids than the restored ones.
  expect(await currentTransactionId(to)).toBeLessThan((await currentTransactionId(from)) - 10_000n)
  await from.end()
  await to.end()
  const databases = connect({ host, user, database: restoredName }, { log, connectionsMax: 30 })
  const sealer = await openSealer(databases.db, keySource)
  const app = await buildApp({
    ...databases,
    log,
    sealer,
    now: old.clock.now,
    mode: old.mode,
    bankOf: () => 'simulated',
  })
  return {
    db: databases.db,
    async call(method, path, { body } = {}) {
      const payload = body === undefined ? {} : { payload: JSON.stringify(body) }
      const headers = { 'x-api-key': old.key, 'content-type': 'application/json' }
      const answer = await app.inject({ method: method as 'GET', url: path, headers, ...payload })
      const { statusCode: status, body: text } = answer
      return { status, text, body: JSON.parse(text), headers: answer.headers as ApiResponse['headers'] }
    },
    async stop() {
      await app.close()
      await databases.close()
    },
  }
}

test('after a restore on another server the feed gives every event once, statements add up and the books agree', async () => {
  const partnerId = old.partner.id
  const fold = (db: Db, countMax: number) =>
    db.transaction().execute((tx: Tx) => foldFloatChanges(tx, { partnerId, currency: 'GBP', countMax }))
  await old.db
    .transaction()
    .execute(tx => float.fund(tx, { partnerId, amount: { amount: 1_000_000n, currency: 'GBP' }, now: old.clock.now() }))
  const members = await Promise.all(Array.from({ length: 4 }, () => old.addMember({ available: 50_000 })))
  await withdraw(old.call, members, [1_000, 2_000, 1_500])
  const readBefore = await readFeed(old.call)
  // These events are in the dump but not yet in the feed, and the float is partly folded.
  await withdraw(old.call, members, [1_100, 1_200])
  await fold(old.db, 5)
  const statementsBefore = await Promise.all(members.map(memberId => readStatement(old.call, memberId)))
  const floatsBefore = await float.read(old.db, partnerId)

  const { db, call, stop } = await restore()
  const restoredFeed = await readFeed(call)
  expect(idsOf(restoredFeed.slice(0, readBefore.length))).toEqual(idsOf(readBefore))
  expect(await float.read(db, partnerId)).toEqual(floatsBefore)
  expect(await Promise.all(members.map(memberId => readStatement(call, memberId)))).toEqual(statementsBefore)

  await withdraw(call, members, [1_300, 1_400])
  await withdraw(call, [await newMember(call)], [1_000])
  await fold(db, 1_000)

  const feed = await readFeed(call)
  const { rows } = await db.executeQuery<{ id: string }>(
    db.selectFrom('events').select('id').where('partnerId', '=', partnerId).compile(),
  )
  // Every event once; events from before the restore come first, and each resource's events are in sequence.
  expect(idsOf(feed).toSorted()).toEqual(idsOf(rows).toSorted())
  expect(feed.length).toBeGreaterThan(restoredFeed.length + 8 * 3)
  expect(idsOf(feed.slice(0, restoredFeed.length))).toEqual(idsOf(restoredFeed))
  for (const [resource, events] of Map.groupBy(feed, resourceOf)) {
    expect([resource, events.map(({ sequence }) => sequence)]).toEqual([resource, events.map((_, index) => index + 1)])
  }
  // From any cursor: the first event, the last one read before the dump, the last restored one, the newest.
  for (const place of [0, 10, readBefore.length - 1, restoredFeed.length - 1, feed.length - 2, feed.length - 1]) {
    expect(idsOf(await readFeed(call, feed[place]?.id))).toEqual(idsOf(feed.slice(place + 1)))
  }

  for (const [index, memberId] of members.entries()) {
    const lines = await readStatement(call, memberId)
    const earlier = statementsBefore[index] ?? []
    expect(lines.slice(-earlier.length)).toEqual(earlier)
    // Newest first: each line follows from the one below it, and no balance was ever below zero.
    const balances = lines.map(({ balanceAfter }) => balanceAfter.available.amount)
    expect(balances).toEqual(lines.map(({ change }, line) => (balances[line + 1] ?? 0) + change.available.amount))
    expect(Math.min(...balances)).toBeGreaterThanOrEqual(0)
    const balance = await call('GET', `/v1/pay/members/${memberId}/balance`)
    expect(balances[0]).toBe(balance.body.available.amount)
  }
  expect((await verify(db)).filter(({ disagreement }) => disagreement !== null)).toEqual([])
  await stop()
}, 60_000)

async function newMember(call: CallApi): Promise<string> {
  const names = { email: 'new@example.com', firstName: 'Kim', lastName: 'Okafor' }
  const accountDetails = { accountHolder: 'Kim Okafor', sortCode: '089999', accountNumber: '66374958' }
  const { body } = await call('POST', '/v1/members', { body: { ...names, tier: 'Silver', accountDetails } })
  const payDetails = [{ memberId: body.memberId, money: gbp(20_000) }]
  expect((await call('POST', '/v1/pay/run', { body: { payDetails } })).status).toBe(201)
  return body.memberId
}

function resourceOf({ type, data }: Listed): string {
  const [kind] = type.split('.')
  const id = {
    intent: 'withdrawalIntentId',
    withdrawal: 'withdrawalId',
    member: 'memberId',
    pay_run: 'payRunId',
    pay_cycle: 'payCycleId',
  }[kind ?? '']
  return `${kind} ${data[id ?? ''] ?? ''}`
}

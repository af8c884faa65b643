import { randomBytes } from 'node:crypto'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { distribute } from '../../src/database/distribute.ts'
import { migrate } from '../../src/database/migrate.ts'
import { planDistribution } from '../../src/database/placing.ts'
import { misplacedIn, readPlaces } from '../../src/database/spread.ts'
import { createOnNodes, dropDistributed } from '../harness/citus.ts'

// Runs on the Citus of MIDMONTH_TEST_CITUS_URL only.

const database = `test_${randomBytes(6).toString('hex')}`
const { host, owner, user } = inject('postgres')
const app = { name: user }
let databases: ReturnType<typeof connect>

beforeAll(async () => {
  await createOnNodes(database)
  databases = connect({ host, user: owner, database }, { log: pino({ level: 'silent' }) })
  await migrate(databases.db, databases.pool, app)
})
afterAll(async () => {
  await databases.close()
  await dropDistributed(database)
})

test('a setting that is missing is named with the servers that lack it, and nothing is changed', async () => {
  const set = (name: string, value: string) => databases.pool.query(`alter database ${database} set ${name} = ${value}`)
  await set('citus.enable_unsafe_triggers', 'off')
  await set('citus.propagate_set_commands', 'none')
  await expect(plan()).rejects.toThrow(
    new RegExp(
      `^citus.enable_unsafe_triggers must be on, since .*: run alter database ${database} set citus.enable_unsafe_triggers = on on \\S+:[0-9]+.*\n` +
        'citus.propagate_set_commands must be local, .* set citus.propagate_set_commands = local on ',
    ),
  )
  expect((await readPlaces(databases.db)).size).toBe(0)
  await set('citus.enable_unsafe_triggers', 'on')
  await set('citus.propagate_set_commands', 'local')
})

test('distributing that is interrupted after any step goes on with the next, and then has nothing left to do', async () => {
  const wanted = await plan()
  const interrupted = new Error('interrupted')
  let done = 0
  for (const stopAt of [1, 12, 40]) {
    const stopped = distribute(databases.db, databases.pool, app, {
      shards: 2,
      onStep() {
        done += 1
        if (done === stopAt) throw interrupted
      },
    })
    await expect(stopped).rejects.toBe(interrupted)
    expect(misplacedIn(await readPlaces(databases.db))).not.toEqual([])
    expect((await plan()).length).toBe(wanted.length - stopAt)
  }
  await distribute(databases.db, databases.pool, app, { shards: 2 })
  expect(await plan()).toEqual([])
  expect(misplacedIn(await readPlaces(databases.db))).toEqual([])
})

test('all rows of a partner are on one node', async () => {
  const { rows } = await databases.pool.query(
    `select count(distinct colocation_id)::integer as groups from citus_tables where citus_table_type = 'distributed'`,
  )
  expect(rows).toEqual([{ groups: 1 }])
})

test('a migration takes a new table to its place, and changed functions get the form of nodes again', async () => {
  await databases.pool.query('drop table partner_logos; create table partner_logos (partner_id id primary key)')
  await databases.pool.query(`create or replace function forget_audit_addresses(written_before timestamptz, count_max integer)
    returns integer language sql as 'select 0'`)
  expect(misplacedIn(await readPlaces(databases.db))).toEqual(['partner_logos'])
  await migrate(databases.db, databases.pool, app)
  expect(misplacedIn(await readPlaces(databases.db))).toEqual([])
  expect(await plan()).toEqual([])
})

test('the program deletes references of payouts only on a sandbox', async () => {
  const program = new pg.Client({ host, user, database })
  await program.connect()
  try {
    await databases.pool.query(`insert into installation (mode, created_at) values ('live', now())`)
    await databases.pool.query(`insert into payout_references (reference, partner_id) values ('MM1', 'par_1')`)
    const remove = `delete from payout_references where partner_id = 'par_1'`
    await expect(program.query(remove)).rejects.toThrow('payout_references is append-only')
    await databases.pool.query(`update installation set mode = 'sandbox'`)
    expect((await program.query(remove)).rowCount).toBe(1)
  } finally {
    await program.end()
  }
})

test('a function whose text for one PostgreSQL has changed is named, instead of being left without its form for nodes', async () => {
  await databases.pool.query(`create or replace function make_partition(parent text, month date)
    returns void language sql as ''`)
  await expect(plan()).rejects.toThrow('make_partition does not contain "    execute format(')
})

/** On a new connection, which has the settings of the database. */
async function plan() {
  const client = await databases.pool.connect()
  try {
    return await planDistribution(client, databases.db)
  } finally {
    client.release(true)
  }
}

import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { distribute, planDistribution } from '../../src/database/distribute.ts'
import { migrate } from '../../src/database/migrate.ts'
import { isSpread } from '../../src/database/spread.ts'
import { citusUrl, createOnNodes, dropDistributed } from '../harness/citus.ts'

// Runs on the Citus of MIDMONTH_TEST_CITUS_URL only.

const url = citusUrl ?? ''
const database = `test_${randomBytes(6).toString('hex')}`
const { host, owner, user } = inject('postgres')
const app = { name: user }
let databases: ReturnType<typeof connect>

beforeAll(async () => {
  await createOnNodes(url, database)
  databases = connect({ host, user: owner, database }, { log: pino({ level: 'silent' }) })
  await migrate(databases.db, databases.pool, app)
})
afterAll(async () => {
  await databases.close()
  await dropDistributed(url, database)
})

test('a setting that is missing is named, and nothing is changed', async () => {
  await withClient(async client => {
    await client.query('set citus.enable_unsafe_triggers = off; set citus.propagate_set_commands = none')
    await expect(planDistribution(client)).rejects.toThrow(
      new RegExp(
        `citus.enable_unsafe_triggers must be on, since .*: run on every node alter database ${database} set citus.enable_unsafe_triggers = on\n` +
          `citus.propagate_set_commands must be local, .*alter database ${database} set citus.propagate_set_commands = local`,
      ),
    )
  })
  expect(await isSpread(databases.pool)).toBe(false)
})

test('distributing that is interrupted after any step goes on with the next, and then has nothing left to do', async () => {
  const wanted = await withClient(planDistribution)
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
    expect((await withClient(planDistribution)).length).toBe(wanted.length - stopAt)
  }
  await distribute(databases.db, databases.pool, app, { shards: 2 })
  expect(await withClient(planDistribution)).toEqual([])
  expect(await isSpread(databases.pool)).toBe(true)
})

test('all rows of a partner are on one node', async () => {
  const { rows } = await databases.pool.query(
    `select count(distinct colocation_id)::integer as groups from citus_tables where citus_table_type = 'distributed'`,
  )
  expect(rows).toEqual([{ groups: 1 }])
})

async function withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await databases.pool.connect()
  try {
    return await work(client)
  } finally {
    client.release(true)
  }
}

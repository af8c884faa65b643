import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { connect } from '../src/database/connect.ts'
import type { Db } from '../src/database/database.ts'
import * as memberImports from '../src/member-imports/member-imports.ts'

const folder = new URL('../migrations/', import.meta.url)
const name = '0007_queue_of_member_jobs.sql'
const apply = async (db: pg.Client, file: string) =>
  await db.query(`begin; ${readFileSync(new URL(file, folder), 'utf8')}; commit`)
const at = `'2026-03-10T09:00:00Z'`
const now = new Date('2026-03-10T09:01:00Z')

let client: pg.Client
let db: Db
let close: () => Promise<void>
beforeAll(async () => {
  const { host, superuser: user } = inject('postgres')
  const database = `test_${randomBytes(6).toString('hex')}`
  const server = new pg.Client({ host, user, database: 'postgres' })
  await server.connect()
  await server.query(`create database ${database}`)
  await server.end()
  client = new pg.Client({ host, user, database })
  await client.connect()
  const all = readdirSync(folder).sort()
  for (const file of all.filter(each => each < name)) await apply(client, file)
  const job = (id: string, status: string, done: number, ended: string) => `
    insert into member_jobs (partner_id, id, kind, columns, removes_accounts, row_to, status, invite, update, bring_back,
                             offboard, unchanged, steps_done, created_at, ended_at)
      values ('par', '${id}', 'actions', '{}', false, 0, 'Processing', 0, 0, 0, 1, 2, 0, ${at}, null);
    update member_jobs set status = '${status}', steps_done = ${done}, ended_at = ${ended} where id = '${id}'`
  await client.query(`
    insert into partners (id, name, country, time_zone, created_at) values ('par', 'Acme', 'GB', 'Europe/London', ${at});
    insert into tiers values ('par', 'Silver', 'GBP', 1, ${at});
    insert into members (partner_id, id, status, email, first_name, last_name, tier, enable_payroll, created_at, updated_at)
      values ('par', 'mem', 'invited', 'sam@example.com', 'Sam', 'Okafor', 'Silver', false, ${at}, ${at});
    ${job('maj_1', 'Completed', 1, at)}; ${job('maj_2', 'Processing', 0, 'null')};
    insert into member_job_steps (partner_id, job_id, step, action, member_id, wish)
      values ('par', 'maj_2', 2, 'Offboard', 'mem', '{"type":"Offboard","memberId":"mem"}')`)
  for (const file of all.filter(each => each >= name)) await apply(client, file)
  ;({ db, close } = connect({ host, user, database }, { log: pino({ level: 'silent' }) }))
})
afterAll(async () => {
  await close()
  await client.end()
})

test('migration 0007 makes jobs of actions count every action, including the one being applied', async () => {
  const find = (jobId: string) => memberImports.find(db, { partnerId: 'par', jobId })
  expect(await find('maj_1')).toMatchObject({ status: 'Completed', steps: 3, stepsDone: 3 })
  const jobId = await memberImports.findNext(db, { except: [], scope: 'all' })
  expect(jobId).toBe('maj_2')
  await db.transaction().execute(tx => memberImports.applyNext(tx, { jobId: 'maj_2', now }))
  expect(await find('maj_2')).toMatchObject({ status: 'Completed', steps: 3, stepsDone: 3, plan: { unchanged: 2 } })
})

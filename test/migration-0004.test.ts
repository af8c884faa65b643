import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, inject, test } from 'vitest'

const migration = (name: string) => readFileSync(new URL(`../migrations/${name}.sql`, import.meta.url), 'utf8')
const earlier = ['0001_foundation', '0002_whole_life_of_the_money', '0003_what_every_withdrawal_pays']
const at = `'2026-03-10T09:00:00Z'`

test('migration 0004 keeps existing members, makes their emails unique, and analyzes the table unless it is empty', async () => {
  const { host, superuser: user } = inject('postgres')
  const server = new pg.Client({ host, user, database: 'postgres' })
  await server.connect()
  const tuples = []
  for (const count of [0, 1_000]) {
    const database = `test_${randomBytes(6).toString('hex')}`
    await server.query(`create database ${database}`)
    const db = new pg.Client({ host, user, database })
    await db.connect()
    for (const name of earlier) await db.query(`begin; ${migration(name)}; commit`)
    await db.query(`
      insert into partners (id, name, country, time_zone, created_at) values ('par', 'Acme', 'GB', 'Europe/London', ${at});
      insert into tiers values ('par', 'Silver', 'GBP', 1, ${at});
      insert into members (partner_id, id, status, email, first_name, last_name, tier, enable_payroll, created_at, updated_at)
        select 'par', 'mem_' || n, 'invited', 'Sam' || n || '@example.com', 'Sam', 'Okafor', 'Silver', false, ${at}, ${at}
          from generate_series(1, ${count}) n;
      update members set status = 'inactive' where id = 'mem_2'`)
    await db.query(`begin; ${migration('0004_members_in_bulk')}; commit`)
    const { rows } = await db.query('select count(*)::integer from members')
    expect(rows).toEqual([{ count }])
    // Below 0, PostgreSQL has no statistics and guesses. Of an empty table that was analyzed it assumes that it stays empty.
    tuples.push((await db.query(`select reltuples::integer as n from pg_class where relname = 'members'`)).rows[0]?.n)
    if (count > 0) {
      await expect(
        db.query(`insert into members select partner_id, 'mem_new', status, upper(email), first_name, last_name, phone, tier,
                    worker_id, account_holder, sort_code, account_number, iban, enable_payroll, dob, gender, created_at,
                    updated_at from members where id = 'mem_1'`),
      ).rejects.toMatchObject({ constraint: 'one_member_per_email' })
      // An inactive member does not reserve an email.
      await db.query(`insert into members select partner_id, 'mem_new', 'invited', email, first_name, last_name, phone, tier,
                        worker_id, account_holder, sort_code, account_number, iban, enable_payroll, dob, gender, created_at,
                        updated_at from members where id = 'mem_2'`)
      await expect(db.query(`update members set status = 'active' where id = 'mem_2'`)).rejects.toMatchObject({
        constraint: 'only_listed_edges',
      })
    }
    await db.end()
  }
  await server.end()
  expect(tuples).toEqual([-1, 1_000])
})

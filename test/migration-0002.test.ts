import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, inject, test } from 'vitest'

const migration = (name: string) => readFileSync(new URL(`../migrations/${name}.sql`, import.meta.url), 'utf8')

test('migration 0002 makes held withdrawals due for payout and gives them the balance of their time', async () => {
  const { host, superuser: user } = inject('postgres')
  const database = `test_${randomBytes(6).toString('hex')}`
  const server = new pg.Client({ host, user, database: 'postgres' })
  await server.connect()
  await server.query(`create database ${database}`)
  await server.end()
  const db = new pg.Client({ host, user, database })
  await db.connect()
  await db.query(`begin; ${migration('0001_foundation')}; commit`)
  const at = `'2026-03-10T09:00:00Z'`
  await db.query(`
    insert into partners (id, name, country, time_zone, created_at) values ('par', 'Acme', 'GB', 'Europe/London', ${at});
    insert into tiers values ('par', 'Silver', 'GBP', 1, ${at});
    insert into tier_versions values ('par', 'Silver', 1, 50, 0, null, null, 'member', 1000, 20000, null, null, ${at});
    insert into members (partner_id, id, status, email, first_name, last_name, tier, enable_payroll, created_at, updated_at)
      values ('par', 'mem', 'invited', 'sam@example.com', 'Sam', 'Okafor', 'Silver', false, ${at}, ${at});
    insert into pay_cycles values ('par', 'pc', '2026-03-01', '2026-03-31', 'Open', ${at});
    insert into ledger_transfers values
      ('par', 'tr_1', 'pr', 'pay_run.available', 'earned_pay', 'member_available', 12000, 'GBP', 'mem', 'pc', ${at});`)
  for (const [index, amount] of [5000, 2000].entries()) {
    await db.query(`
      insert into withdrawal_intents values ('par', 'wi_${index}', 'mem', 'pc', 'pending', 'GBP', ${amount}, ${amount - 50}, 50, 0,
        'Silver', 1, 'Sam Okafor', '089999', '66374958', null, ${at}, ${at});
      update withdrawal_intents set status = 'completed' where id = 'wi_${index}';
      insert into withdrawals values ('par', 'w_${index}', 'wi_${index}', 'mem', 'pc', 'held', 'GBP', ${amount}, ${amount - 50}, 50, 0, ${at});
      insert into ledger_transfers values
        ('par', 'tr_2${index}1', 'w_${index}', 'withdrawal.held', 'member_available', 'payouts_pending', ${amount - 50}, 'GBP', 'mem', 'pc', ${at}),
        ('par', 'tr_2${index}2', 'w_${index}', 'withdrawal.held', 'member_available', 'fees', 50, 'GBP', 'mem', 'pc', ${at});`)
  }
  await db.query(`begin; ${migration('0002_whole_life_of_the_money')}; commit`)
  const { rows } = await db.query(
    'select id, status, due_at = created_at as is_due, balance_after::integer from withdrawals order by id',
  )
  expect(rows).toEqual([
    { id: 'w_0', status: 'held', is_due: true, balance_after: 7000 },
    { id: 'w_1', status: 'held', is_due: true, balance_after: 5000 },
  ])
  await expect(db.query(`update withdrawals set due_at = null`)).rejects.toMatchObject({
    constraint: 'unfinished_is_due',
  })
  await db.end()
})

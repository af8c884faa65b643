import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import pg from 'pg'
import { expect, inject, test } from 'vitest'

const folder = new URL('../migrations/', import.meta.url)
const names = readdirSync(folder).sort()
const migration = (name: string) => readFileSync(new URL(name, folder), 'utf8')
const at = `'2026-03-10T09:00:00Z'`

test('migration 0008 turns amounts in events into Money objects and keeps events append-only', async () => {
  const { host, superuser: user } = inject('postgres')
  const database = `test_${randomBytes(6).toString('hex')}`
  const server = new pg.Client({ host, user, database: 'postgres' })
  await server.connect()
  await server.query(`create database ${database}`)
  const db = new pg.Client({ host, user, database })
  await db.connect()
  for (const name of names.filter(each => each < '0005')) await db.query(`begin; ${migration(name)}; commit`)
  const amounts = { memberId: 'mem', payCycleId: 'pc', amount: 5_000, fee: 100, netAmount: 4_900, currency: 'GBP' }
  const before: [string, string, object][] = [
    ['intent.created', 'wi_1', { withdrawalIntentId: 'wi_1', ...amounts }],
    ['intent.expired', 'wi_1', { withdrawalIntentId: 'wi_1', memberId: 'mem' }],
    ['withdrawal.failed', 'w_1', { withdrawalId: 'w_1', withdrawalIntentId: 'wi_1', ...amounts, reason: 'AC04' }],
    ['float.low', 'par', { currency: 'GBP', free: -200, floor: 1_000 }],
    ['member.invited', 'mem', { memberId: 'mem', status: 'invited' }],
  ]
  await db.query(`
    insert into partners (id, name, country, time_zone, created_at) values ('par', 'Acme', 'GB', 'Europe/London', ${at});
    insert into tiers values ('par', 'Silver', 'GBP', 1, ${at});
    insert into tier_versions (partner_id, tier, version, fee_fixed, fee_bps, fee_payer, lower_limit, upper_limit, created_at)
      values ('par', 'Silver', 1, 100, 0, 'member', 1000, 20000, ${at});
    insert into members (partner_id, id, status, email, first_name, last_name, tier, enable_payroll, created_at, updated_at)
      values ('par', 'mem', 'invited', 'sam@example.com', 'Sam', 'Okafor', 'Silver', false, ${at}, ${at});
    insert into pay_cycles (partner_id, id, start_date, end_date, status, created_at)
      values ('par', 'pc', '2026-03-01', '2026-03-31', 'Open', ${at});
    insert into withdrawal_intents (partner_id, id, member_id, pay_cycle_id, status, currency, amount, net, fee, employer_fee,
                                    tier, tier_version, account_holder, iban, created_at, expires_at)
      values ('par', 'wi_1', 'mem', 'pc', 'pending', 'GBP', 5000, 4900, 100, 0, 'Silver', 1, 'Sam', 'DE89370400440532013000',
              ${at}, ${at});`)
  for (const [index, [type, resource, data]] of before.entries()) {
    await db.query(
      `insert into events (partner_id, id, type, resource_id, sequence, data, created_at) values ('par', $1, $2, $3, $4, $5, ${at})`,
      [`evt_${index}`, type, resource, index + 1, JSON.stringify(data)],
    )
  }
  const name = names.find(each => each.startsWith('0008')) ?? 'no migration 8'
  await db.query(`begin; ${migration(name)}; commit`)

  const { rows } = await db.query('select type, data from events order by id')
  const gbp = (amount: number) => ({ amount, currency: 'GBP' })
  const money = { amount: gbp(5_000), fee: gbp(100), netAmount: gbp(4_900) }
  const quoted = { memberId: 'mem', payCycleId: 'pc', ...money }
  expect(rows).toEqual([
    { type: 'intent.created', data: { withdrawalIntentId: 'wi_1', ...quoted } },
    { type: 'intent.expired', data: { withdrawalIntentId: 'wi_1', ...quoted } },
    { type: 'withdrawal.failed', data: { withdrawalId: 'w_1', withdrawalIntentId: 'wi_1', ...quoted, reason: 'AC04' } },
    { type: 'float.low', data: { free: gbp(-200), floor: gbp(1_000) } },
    { type: 'member.invited', data: { memberId: 'mem', status: 'invited' } },
  ])
  await expect(db.query(`update events set data = '{}'`)).rejects.toMatchObject({ constraint: 'append_only' })
  await db.end()
  await server.end()
})

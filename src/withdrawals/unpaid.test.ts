import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { goodAccount as account } from '../../test/harness/samples.ts'
import { sql } from '../database/database.ts'
import { tableRules } from '../database/table-rules.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const unpaid = async (id: string) => {
  const { rows } = await sql<{ status: string; isSame: boolean; isDue: boolean }>`
    select u.status, (u.status, u.due_at) is not distinct from (w.status, w.due_at) as is_same, u.due_at is not null as is_due
      from unpaid_withdrawals u join withdrawals w on w.partner_id = u.partner_id and w.id = u.withdrawal_id
     where w.id = ${id}`.execute(harness.db)
  return rows
}

test('a withdrawal is listed until it is paid, and again once the bank returns it', async () => {
  // To the account that the simulated bank returns payments from.
  const { id } = await harness.addWithdrawal({ account: { ...account, sortCode: '000002' } })
  expect(await unpaid(id)).toEqual([{ status: 'held', isSame: true, isDue: true }])
  harness.clock.advance({ seconds: 30 })
  await harness.runTask('submit-withdrawals')
  expect((await harness.getWithdrawal(id)).status).toBe('paid')
  expect(await unpaid(id)).toEqual([])
  harness.clock.advance({ minutes: 3 })
  await harness.runTask('read-rail-reports')
  expect(await unpaid(id)).toEqual([{ status: 'returned', isSame: true, isDue: false }])
})

test('a withdrawal that waits for the bank, or was given back, is listed with its status and due time', async () => {
  const slow = await harness.addWithdrawal({ account: { ...account, sortCode: '000003' } })
  const failed = await harness.addWithdrawal({ account: { ...account, sortCode: '000001' } })
  const cancelled = await harness.addWithdrawal()
  await harness.call('POST', `/v1/pay/withdrawals/${cancelled.id}/cancel`)
  harness.clock.advance({ seconds: 30 })
  await harness.runTask('submit-withdrawals')
  expect(await unpaid(slow.id)).toEqual([{ status: 'submitted', isSame: true, isDue: true }])
  expect(await unpaid(failed.id)).toEqual([{ status: 'failed', isSame: true, isDue: false }])
  expect(await unpaid(cancelled.id)).toEqual([{ status: 'cancelled', isSame: true, isDue: false }])
})

test('a withdrawal that is missing in the list cannot change unnoticed', async () => {
  const { id } = await harness.addWithdrawal()
  await harness.ownerDb.deleteFrom('unpaidWithdrawals').where('withdrawalId', '=', id).execute()
  const refused = await harness.call('POST', `/v1/pay/withdrawals/${id}/cancel`)
  expect(refused.status).toBe(500)
  expect((await harness.getWithdrawal(id)).status).toBe('held')
})

test('a change finds its row by an index, although the plan was made while the table was nearly empty', async () => {
  const { id } = await harness.addWithdrawal()
  await sql`vacuum analyze unpaid_withdrawals`.execute(harness.ownerDb)
  await harness.inTx(async tx => {
    const scans = async () => {
      const { rows } = await sql<{ count: bigint }>`
        select seq_scan as count from pg_stat_xact_user_tables where relname = 'unpaid_withdrawals'`.execute(tx)
      return rows[0]?.count
    }
    const before = await scans()
    await tx.updateTable('withdrawals').set({ dueAt: harness.clock.now() }).where('id', '=', id).execute()
    expect(await scans()).toBe(before)
  })
})

// Otherwise every change of a row would add an entry to each of the table's indexes.
test.each(['withdrawals', 'withdrawalIntents'] as const)('no index on %s names a column that changes', async table => {
  const rule = tableRules[table]
  if (typeof rule === 'string' || !('changes' in rule)) throw new Error(`${table} has no list of columns that change`)
  const { rows } = await sql<{ index: string; column: string }>`
    select distinct d.objid::regclass::text as index, a.attname as column
      from pg_index x
      join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = x.indexrelid and d.refobjid = x.indrelid
      join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
     where x.indrelid = to_regclass(${table.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)})`.execute(
    harness.db,
  )
  const named = rows.map(({ column }) => column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()))
  expect(named).toContain(table === 'withdrawals' ? 'employerFee' : 'expiresAt')
  expect(named.filter(column => rule.changes.some(changed => changed === column))).toEqual([])
})

import pg from 'pg'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import * as float from '../float/float.ts'

// A distributed PostgreSQL routes a statement to the node of its partner only if every table in it is restricted to that partner
// by a constant. The plan of an ordinary PostgreSQL shows whether this is so.

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ lanes: 'partner' })
})
afterAll(() => harness.stop())

type Statement = { text: string; values: unknown[] }
type Plan = { 'Relation Name'?: string; Plans?: Plan[]; [detail: string]: unknown }

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
// Copied to every node, so that they are found whichever node a statement is routed to.
const copiedToAll = ['partners', 'api_keys']

/** Creates and completes intents of two partners at once, with and without idempotency keys, and repeats a completion. */
async function useHotPath(): Promise<void> {
  const limited = { feeFixed: 0n, feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' as const }
  const terms = {
    ...limited,
    lowerLimit: 1n,
    upperLimit: 20_000n,
    withdrawalsPerDay: 9,
    withdrawalsPerCycle: 9,
    payoutSpeed: null,
  }
  for (const partner of [harness, harness.other]) {
    await harness.addTier('Limited', terms, { partnerId: partner.partner.id })
  }
  const members = await Promise.all(
    [harness.key, harness.other.key].flatMap(key =>
      Array.from({ length: 3 }, async () => ({
        key,
        memberId: await harness.addMember({ key, tier: 'Limited', available: 9_000 }),
      })),
    ),
  )
  for (const { partner } of [harness, harness.other]) {
    await harness.inTx(async tx => {
      const [about, now] = [{ partnerId: partner.id, currency: 'GBP' } as const, harness.clock.now()]
      await float.fund(tx, { ...about, amount: { amount: 100_000n, currency: 'GBP' }, now })
      await float.setFloor(tx, { ...about, floor: 0n, now })
    })
  }
  const all = await Promise.all(
    members.map(async ({ key, memberId }, index) => {
      const headers: Record<string, string> = index % 2 === 0 ? {} : { 'x-idempotency-key': `intent-${index}` }
      const body = { memberId, amount: gbp(1_000) }
      const intent = await harness.call('POST', '/v1/pay/withdrawals/intent', { key, headers, body })
      return { key, body: { withdrawalIntentId: intent.body.withdrawalIntentId }, index }
    }),
  )
  const complete = ({ key, body, index }: (typeof all)[number]) =>
    harness.call('POST', '/v1/pay/withdrawals/complete', {
      key,
      body,
      headers: {
        ...(index % 2 === 0 ? {} : { 'x-idempotency-key': `complete-${index}` }),
        ...(index % 3 === 0 ? { prefer: 'return=representation' } : {}),
      },
    })
  for (const answers of [await Promise.all(all.map(complete)), await Promise.all(all.map(complete))]) {
    expect(answers.map(({ status }) => status)).toEqual(all.map(() => 201))
  }
}

/** The statements that were sent over the connections of batches: only these are prepared. */
async function statementsOf(work: () => Promise<void>): Promise<Statement[]> {
  const sent: Statement[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [config] = args as [{ name?: string; text: string; values: unknown[] } | string]
    if (typeof config === 'object' && config.name?.startsWith('batch_')) sent.push(config)
    return query.apply(this, args)
  } as never)
  try {
    await work()
  } finally {
    spy.mockRestore()
  }
  return sent
}

/** The plan as a distributed PostgreSQL would see it: with the values of the parameters. */
async function plan(client: pg.PoolClient, { text, values }: Statement): Promise<Plan> {
  const { rows } = await client.query(`explain (format json, costs off) ${text}`, values)
  return rows[0]['QUERY PLAN'][0].Plan
}

function scansOf(plan: Plan): Plan[] {
  const below = (plan.Plans ?? []).flatMap(scansOf)
  return plan['Relation Name'] === undefined || plan['Node Type'] === 'ModifyTable' ? below : [plan, ...below]
}

/** The tables into which a statement inserts rows without reading one of the partner: they would be made on the coordinator. */
function madeElsewhere(plan: Plan): string[] {
  const below = (plan.Plans ?? []).flatMap(madeElsewhere)
  const isMade = plan.Operation === 'Insert' && (plan.Plans ?? []).flatMap(scansOf).length === 0
  return isMade ? [String(plan['Relation Name']), ...below] : below
}

test('with a lane per partner every statement of the hot path restricts every table to one partner by a constant', async () => {
  const statements = await statementsOf(useHotPath)
  const partners = [harness.partner.id, harness.other.partner.id]
  const client = await harness.pool.connect()
  const unrouted: string[] = []
  const scanned = new Set<string>()
  try {
    // The job queue is not distributed.
    for (const statement of statements.filter(({ text }) => !text.includes('graphile_worker'))) {
      const named = partners.filter(id => JSON.stringify(statement.values).includes(id))
      expect([statement.text, named.length]).toEqual([statement.text, 1])
      const planned = await plan(client, statement)
      unrouted.push(...madeElsewhere(planned).map(table => `${table} in ${statement.text.slice(0, 80)}`))
      for (const scan of scansOf(planned)) {
        const table = String(scan['Relation Name']).replace(/_(default|\d{4}_\d{2})$/, '')
        if (copiedToAll.includes(table)) continue
        scanned.add(table)
        const conditions = JSON.stringify([scan['Index Cond'], scan['Recheck Cond'], scan.Filter])
        // The column is of a domain, and an expression around the constant may name a collation.
        if (!new RegExp(`partner_id\\)?(::text)? = '${named[0]}'`).test(conditions)) {
          unrouted.push(`${table}: ${conditions} in ${statement.text.slice(0, 80)}`)
        }
      }
    }
  } finally {
    client.release()
  }
  expect(unrouted).toEqual([])
  expect([...scanned].sort()).toEqual([
    ...['float_limits', 'idempotency_keys', 'ledger_balances', 'ledger_float_changes', 'ledger_float_totals'],
    ...[
      'ledger_transfers',
      'member_keys',
      'members',
      'metadata',
      'pay_cycles',
      'payouts',
      'tier_versions',
      'tiers',
      'withdrawal_intents',
      'withdrawals',
    ],
  ])
})

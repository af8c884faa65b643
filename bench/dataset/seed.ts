import type pg from 'pg'
import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import type { Db } from '../../src/database/database.ts'
import { absentValues } from '../../src/members/fields.ts'
import { sealedColumns, sealedColumnsWithKeys, sealNew } from '../../src/members/sealing.ts'
import { createKey, scopes } from '../../src/partners/api-keys.ts'
import { claimMode, createPartner } from '../../src/partners/partners.ts'
import * as payCycles from '../../src/pay-cycles/pay-cycles.ts'
import { sealerOf } from '../../src/sealing/held.ts'
import type { Sealer } from '../../src/sealing/sealer.ts'
import type { TierTerms } from '../../src/tiers/terms.ts'
import { setTier } from '../../src/tiers/tiers.ts'
import { connectWithKey } from '../machine/installation-key.ts'
import { withClient } from '../machine/postgres.ts'

/** A partner with a key, an open pay cycle and members, whose ids are the numbers from `firstMember` on. */
export type Employer = { partnerId: string; payCycleId: string; key: string; firstMember: number; members: number }

const bronze: TierTerms = {
  ...{ feeFixed: 50n, feeBps: 100, feeMin: 50n, feeMax: 300n, feePayer: 'member' },
  ...{ lowerLimit: 1000n, upperLimit: 20000n, withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null },
}
// The quote for a withdrawal of 50.00 under these terms, in minor units.
const quote = { grossAmount: 5_000, netAmount: 4_900, fee: 100 }

// Enough for one member to make every withdrawal of a run.
const pay = 100_000_000_000

type WantedEmployer = {
  name: string
  firstMember: number
  members: number
  /** One in five earlier intents was completed and paid; the others expired. They are numbered from 0; `pending` intents follow. */
  past?: { intents: number; pending: number }
}

/**
 * Seeds employers whose members have plenty to withdraw, booked by a pay run. Indexes are rebuilt once, after all employers:
 * rebuilding them for each of a hundred employers would take minutes.
 * @returns the employers, in order
 */
export async function seedEmployers(url: string, all: WantedEmployer[]): Promise<Employer[]> {
  const { db, close } = await connectWithKey(url)
  try {
    const employers = await createEmployers(db, all)
    await seeding(url, async client => await insertAll(client, sealerOf(db), { employers, all }))
    return employers
  } finally {
    await close()
  }
}

async function insertAll(
  client: pg.Client,
  sealer: Sealer,
  { employers, all }: { employers: Employer[]; all: WantedEmployer[] },
): Promise<void> {
  for (const [index, employer] of employers.entries()) {
    await insertMembers(client, sealer, employer)
    const past = all[index]?.past
    if (past === undefined) continue
    await insertPast(client, employer, past.intents)
    await insertPending(client, employer, { firstIntent: past.intents, count: past.pending })
  }
}

/** Seeds one employer. */
export async function seedEmployer(url: string, wanted: WantedEmployer): Promise<Employer> {
  const [employer] = await seedEmployers(url, [wanted])
  if (employer === undefined) throw new Error('No employer was seeded')
  return employer
}

async function createEmployers(db: Db, all: WantedEmployer[]): Promise<Employer[]> {
  const mode = 'sandbox'
  const now = new Date()
  const settings = {
    // The rate limiter is consulted for every request and never refuses one.
    ...{ requestsPerSecond: 1_000_000, requestsBurst: 1_000_000 },
    // Submission to the bank is not measured.
    holdSeconds: 86_400,
  }
  return await db.transaction().execute(async tx => {
    await claimMode(tx, { mode, now })
    const employers: Employer[] = []
    for (const { name, firstMember, members } of all) {
      const partner = await createPartner(tx, { name, settings, now })
      const payCycle = await payCycles.openFirst(tx, { partner, now })
      await setTier(tx, { partnerId: partner.id, name: 'Bronze', currency: 'GBP', terms: bronze, now })
      const { secret } = await createKey(tx, { partnerId: partner.id, mode, scopes, expiresAt: null, now })
      employers.push({ partnerId: partner.id, payCycleId: payCycle.id, key: secret, firstMember, members })
    }
    return employers
  })
}

/** Adds a tier with the terms of the first one. */
export async function addTier(url: string, { partnerId }: Employer, name: string): Promise<void> {
  const { db } = connect(url, { log: pino({ level: 'silent' }), connectionsMax: 1 })
  await db
    .transaction()
    .execute(tx => setTier(tx, { partnerId, name, currency: 'GBP', terms: bronze, now: new Date() }))
    .finally(() => db.destroy())
}

/**
 * Creates pending intents, each to be completed once, spread over all members or over the first `ofMembers`. Their
 * created events exist too, as in production.
 */
export async function seedPending(
  url: string,
  employer: Employer,
  wanted: { firstIntent: number; count: number; ofMembers?: number },
): Promise<void> {
  await withClient(url, async client => {
    await client.query('set session_replication_role = replica')
    await insertPending(client, employer, wanted)
  })
}

/** Updates statistics and writes out dirty pages, so that the next measurement does not pay for earlier work. */
export async function settle(url: string): Promise<void> {
  await withClient(url, async client => {
    await client.query('vacuum analyze')
    await client.query('checkpoint')
  })
}

/**
 * Fills tables quickly: foreign keys and triggers are off, and indexes without a constraint are rebuilt afterwards.
 * `midmonth ledger verify` confirms at the end that the rows are correct all the same.
 */
async function seeding(url: string, fill: (client: pg.Client) => Promise<void>): Promise<void> {
  await withClient(url, async client => {
    await client.query(`set session_replication_role = replica; set synchronous_commit = off;
                        set maintenance_work_mem = '512MB'; set max_parallel_maintenance_workers = 2`)
    const { rows: indexes } = await client.query<{ name: string; definition: string }>(
      // An index of a partitioned table is made of all partitions, and goes with it.
      `select c.oid::regclass::text as name, replace(pg_get_indexdef(c.oid), ' ON ONLY ', ' ON ') as definition
         from pg_index x join pg_class c on c.oid = x.indexrelid and not c.relispartition
        where x.indrelid = any('{members, ledger_balances, ledger_transfers, ledger_transfers_default, pay_run_lines,
                                 withdrawal_intents, withdrawals, events, events_default}'::regclass[])
          and not exists (select from pg_constraint where conindid = c.oid)`,
    )
    for (const { name } of indexes) await client.query(`drop index ${name}`)
    await fill(client)
    for (const { definition } of indexes) await client.query(definition)
  })
}

const someone = {
  ...{ ...absentValues, firstName: 'Sam', lastName: 'Okafor', tier: 'Bronze', enablePayroll: false },
  accountDetails: { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' },
}
const sealedAtOnce = 10_000

async function insertMembers(
  client: pg.Client,
  sealer: Sealer,
  { partnerId, payCycleId, firstMember, members }: Employer,
): Promise<void> {
  const last = firstMember + members - 1
  const numbers = `generate_series(${firstMember}, ${last}) as n`
  for (let first = firstMember; first <= last; first += sealedAtOnce) {
    const numbers = Array.from({ length: Math.min(sealedAtOnce, last - first + 1) }, (_, index) => first + index)
    const sealed = numbers.map(number => {
      const profile = { ...someone, email: `member-${number}@example.com`, workerId: String(number) }
      return sealNew(sealer, profile, { partnerId, memberId: `mem_${String(number).padStart(26, '0')}` })
    })
    const columns = sealedColumns.join(', ')
    await client.query(
      `with source as materialized (
         select * from unnest($2::integer[], ${sealedColumnsWithKeys.map((_, index) => `$${index + 3}::bytea[]`).join(', ')})
                    as s (n, ${sealedColumnsWithKeys.join(', ')})
       ), keys as (
         insert into member_keys (partner_id, member_id, profile_key, payment_key)
         select $1::text, ${id('mem', 'n')}, profile_key, payment_key from source
       )
       insert into members (partner_id, id, status, first_name, last_name, tier, ${columns}, enable_payroll,
                            created_at, updated_at, instructed_at)
       select $1::text, ${id('mem', 'n')}, 'active', 'Sam', 'Okafor', 'Bronze', ${columns}, false, now(), now(), now()
         from source`,
      [partnerId, numbers, ...sealedColumnsWithKeys.map(name => sealed.map(each => each[name] ?? null))],
    )
  }
  await client.query(
    `insert into member_counts (partner_id, tier, status, count) values ($1, 'Bronze', 'active', ${members})`,
    [partnerId],
  )
  await client.query(
    `insert into pay_runs (partner_id, id, pay_cycle_id, status, scheduled_for, available_at, created_at,
                           line_count, member_count, totals)
     values ($1, ${id('pr', '0')}, $2, 'Available', now(), now(), now(), 0, 0, '{}')`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into pay_run_lines (partner_id, pay_run_id, line, member_id, amount, currency)
     select $1, ${id('pr', '0')}, n - ${firstMember} + 1, ${id('mem', 'n')}, ${pay}, 'GBP' from ${numbers}`,
    [partnerId],
  )
  // Earlier than everything that \`insertPast\` writes: transfers are numbered in the order of their times.
  await client.query(
    `insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id,
                                   pay_cycle_id, created_at, member_sequence)
     select $1, ${id('tr', 'n')}, ${id('pr', '0')}, 'pay_run.available', 'earned_pay', 'member_available', ${pay}, 'GBP',
            ${id('mem', 'n')}, $2, now() - interval '91 days', 1
       from ${numbers}`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into ledger_balances (partner_id, member_id, currency, available, pay_cycle_id, transfer_count)
     select $1, ${id('mem', 'n')}, 'GBP', ${pay}, $2, 1 from ${numbers}`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into ledger_cycle_totals (partner_id, pay_cycle_id, currency, available, deductions)
     values ($1, $2, 'GBP', ${pay}::bigint * ${members}, 0)`,
    [partnerId, payCycleId],
  )
}

async function insertPast(client: pg.Client, employer: Employer, intents: number): Promise<void> {
  const { partnerId, payCycleId, firstMember, members } = employer
  const all = `generate_series(0, ${intents - 1}) as n`
  const completed = `generate_series(0, ${intents - 1}, 5) as n`
  const member = id('mem', `${firstMember} + (n / 5) % ${members}`)
  // The whole history lies in the quarter before today. One instant for all statements: otherwise a withdrawal near midnight and its
  // transfers would be of different days.
  const at = `'${new Date().toISOString()}'::timestamptz - interval '90 days' * (1 - n::float8 / ${intents})`
  await client.query(
    `insert into withdrawal_intents (partner_id, id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee,
                                     employer_fee, tier, tier_version, account, created_at, expires_at)
     select $1::text, ${id('wi', 'n')}, ${member}, $2, case when n % 5 = 0 then 'completed' else 'expired' end, 'GBP',
            ${quote.grossAmount}, ${quote.netAmount}, ${quote.fee}, 0, 'Bronze', 1, ${accountOf(member)},
            ${at}, ${at} + interval '15 minutes'
       from ${all}`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into withdrawals (partner_id, id, withdrawal_intent_id, member_id, pay_cycle_id, status, currency, gross_amount,
                              net_amount, fee, employer_fee, created_at, balance_after)
     select $1, ${id('w', 'n')}, ${id('wi', 'n')}, ${member}, $2, 'paid', 'GBP', ${quote.grossAmount}, ${quote.netAmount},
            ${quote.fee}, 0, ${at}, ${pay}
       from ${completed}`,
    [partnerId, payCycleId],
  )
  // These transfers are numbered above those of the pay run.
  await client.query(
    `insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id,
                                   pay_cycle_id, created_at, member_sequence)
     select $1, ${id('tr', `1000000000 + n + line`)}, ${id('w', 'n')}, reason, debit, credit, amount, 'GBP',
            case when is_of_member then ${member} end, $2, ${at},
            -- The pay run came first; a member's withdrawals are \`members\` completed intents apart.
            case when is_of_member then 2 + (n / 5 / ${members}) * 2 + line end
       from ${completed} cross join (values
            (0, 'withdrawal.held', 'member_available', 'payouts_pending', ${quote.netAmount}, true),
            (1, 'withdrawal.held', 'member_available', 'fees', ${quote.fee}, true),
            (2, 'withdrawal.paid', 'payouts_pending', 'float', ${quote.netAmount}, false)
          ) as t (line, reason, debit, credit, amount, is_of_member)`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into ledger_float_totals (partner_id, currency, float_balance, pending_balance)
     select $1, 'GBP', -count(*) * ${quote.netAmount}, 0 from ${completed}`,
    [partnerId],
  )
  await client.query(
    `update ledger_balances b set available = available - spent.gross_amount, transfer_count = transfer_count + 2 * spent.withdrawals
       from (select ${member} as member_id, count(*) * ${quote.grossAmount} as gross_amount, count(*) as withdrawals from ${completed} group by 1) spent
      where b.partner_id = $1 and b.member_id = spent.member_id`,
    [partnerId],
  )
  await client.query(
    `with deducted as (
       insert into ledger_deductions (partner_id, pay_cycle_id, member_id, currency, amount)
       select $1, $2, ${member}, 'GBP', count(*) * ${quote.grossAmount} from ${completed} group by 3
       returning amount
     )
     update ledger_cycle_totals
        set available = available - (select sum(amount) from deducted), deductions = (select count(*) from deducted)
      where partner_id = $1 and pay_cycle_id = $2`,
    [partnerId, payCycleId],
  )
  // The benchmark never reads the payload of these events.
  const event = (type: string, resource: 'wi' | 'w', sequence: number, of: string) => {
    const place = `n * 8 + ${sequence + (resource === 'w' ? 2 : 0)}`
    return client.query(
      `insert into events (partner_id, id, type, resource_id, sequence, data, created_at, position)
       select $1, ${id('evt', place)}, '${type}', ${id(resource, 'n')}, ${sequence}, '{}', ${at}, ${place} from ${of}`,
      [partnerId],
    )
  }
  await event('intent.created', 'wi', 1, all)
  await event('intent.completed', 'wi', 2, completed)
  await event('intent.expired', 'wi', 2, `${all} where n % 5 <> 0`)
  await event('withdrawal.held', 'w', 1, completed)
  await event('withdrawal.submitted', 'w', 2, completed)
  await event('withdrawal.paid', 'w', 3, completed)
}

async function insertPending(
  client: pg.Client,
  { partnerId, payCycleId, firstMember, members }: Employer,
  { firstIntent, count, ofMembers = members }: { firstIntent: number; count: number; ofMembers?: number },
): Promise<void> {
  const numbers = `generate_series(${firstIntent}::bigint, ${firstIntent + count - 1}) as n`
  // 7919 is a prime that does not divide any number of members, so consecutive intents belong to members far apart.
  const member = id('mem', `${firstMember} + n * 7919 % ${ofMembers}`)
  await client.query(
    `insert into withdrawal_intents (partner_id, id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee,
                                     employer_fee, tier, tier_version, account, created_at, expires_at)
     select $1::text, ${id('wi', 'n')}, ${member}, $2, 'pending', 'GBP', ${quote.grossAmount}, ${quote.netAmount}, ${quote.fee}, 0,
            'Bronze', 1, ${accountOf(member)}, now(), now() + interval '1 day'
       from ${numbers}`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into events (partner_id, id, type, resource_id, sequence, data, created_at, position)
     select $1, ${id('evt', 'n * 8 + 1')}, 'intent.created', ${id('wi', 'n')}, 1,
            jsonb_build_object('withdrawalIntentId', ${id('wi', 'n')}, 'memberId', ${member}, 'payCycleId', $2::text,
                               'amount', ${money(quote.grossAmount)}, 'fee', ${money(quote.fee)}, 'netAmount', ${money(quote.netAmount)}),
            now(), n * 8 + 1
       from ${numbers}`,
    [partnerId, payCycleId],
  )
  await client.query(
    `insert into event_feeds as feed (partner_id, last_position) values ($1, $2)
         on conflict (partner_id) do update set last_position = greatest(feed.last_position, excluded.last_position)`,
    [partnerId, (firstIntent + count) * 8],
  )
}

/** SQL for the sealed account of a member of partner $1. */
function accountOf(member: string): string {
  return `(select account from members where partner_id = $1::text and id = ${member})`
}

/** SQL for an amount in the shape that events use. */
function money(amount: number): string {
  return `jsonb_build_object('amount', ${amount}, 'currency', 'GBP')`
}

/** SQL for the id of a number: the prefix and 26 digits, which is a valid id. */
function id(prefix: string, number: string): string {
  return `'${prefix}_' || lpad((${number})::text, 26, '0')`
}

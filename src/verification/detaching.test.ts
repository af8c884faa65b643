import type { QueryId } from 'kysely'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { closeIfOver } from '../closing/closing.ts'
import { type Db, sql, type Tx } from '../database/database.ts'
import { describeNewerSchema, readSchemaState } from '../database/migrations.ts'
import * as invoices from '../fees/invoices.ts'
import { firstId } from '../kernel/ids.ts'
import { describeDetached, listDetached } from '../ledger/detached.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { attach, detachMonth, planDetaching } from './detaching.ts'
import { auditTasks } from './tasks.ts'
import { totals, verify } from './verify.ts'

// Two months of 2024 and two of 2025, with a withdrawal that is paid in the year after it was made.

let harness: Harness
let ann: string
let bob: string
let late: string
beforeAll(async () => {
  harness = await startHarness({ mode: 'live', hasRail: true, startAt: new Date('2024-11-05T09:00:00Z') })
  for (const month of ['2024-11-01', '2024-12-01', '2025-01-01', '2025-02-01'])
    await sql`select make_partition('ledger_transfers', ${month}::date)`.execute(harness.ownerDb)
  ann = await harness.addMember()
  bob = await harness.addMember({ tier: 'Gold' })
  await live()
  await close('2024-12-02')
  late = await live()
  await close('2025-01-02')
  await live()
  await close('2025-02-02')
  await live()
})
afterAll(() => harness.stop())

const inTx = <T>(work: (tx: Tx) => Promise<T>) => harness.db.transaction().execute(work)
const partnerId = () => harness.partner.id

async function report(withdrawalId: string, outcome: 'paid' | 'returned'): Promise<void> {
  const now = harness.clock.now()
  await inTx(tx =>
    withdrawals.applyBankReport(tx, { partnerId: partnerId(), withdrawalId, outcome, reason: 'AC04', now }),
  )
}

/** Pays and withdraws. The last withdrawal is not paid yet. */
async function live(): Promise<string> {
  const payDetails = [ann, bob].map(memberId => ({ memberId, money: { amount: 50_000, currency: 'GBP' } }))
  locatedId(await harness.call('POST', '/v1/pay/run', { body: { payDetails } }))
  const paid = await harness.withdraw({ memberId: ann, amount: 10_000 })
  const unpaid = await harness.withdraw({ memberId: bob, amount: 8_000 })
  harness.clock.advance({ minutes: 2 })
  await inTx(tx => withdrawals.submitDue(tx, claimingAt(harness.clock.now(), partnerId())))
  await report(paid, 'paid')
  return unpaid
}

async function close(day: string): Promise<void> {
  harness.clock.set(new Date(`${day}T09:00:00Z`))
  const now = harness.clock.now()
  await inTx(tx => closeIfOver(tx, { partnerId: partnerId(), now }))
  await auditTasks['seal-ledger']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
}

async function settleAll(): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from pay_cycles where status = 'Closed' and settled_at is null order by id`.execute(harness.db)
  for (const { id } of rows) {
    const { rows: deductions } = await sql<{ memberId: string; amount: bigint; currency: string }>`
      select member_id, amount, currency from ledger_deductions where pay_cycle_id = ${id}`.execute(harness.db)
    const taken = deductions.map(({ memberId, amount, currency }) => ({
      memberId,
      taken: { amount: Number(amount), currency },
    }))
    expect(
      (await harness.call('POST', `/v1/pay/cycles/${id}/settlement`, { body: { deductions: taken } })).status,
    ).toBe(201)
  }
}

const invoice = (month: string) =>
  inTx(tx => invoices.issue(tx, { partnerId: partnerId(), currency: 'GBP', month, now: harness.clock.now() }))

/** Lets the owner change something for as long as the work runs. */
async function whileChanged(
  change: ReturnType<typeof sql>,
  work: (tx: Tx) => Promise<void>,
  table = 'public.ledger_transfers',
): Promise<void> {
  const undone = new Error('undone')
  await harness.ownerDb
    .transaction()
    .execute(async tx => {
      await sql`alter table ${sql.table(table)} disable trigger user`.execute(tx)
      expect((await change.execute(tx)).numAffectedRows).toBeGreaterThan(0n)
      await work(tx)
      throw undone
    })
    .catch(error => {
      if (error !== undone) throw error
    })
}

/** The schema as v0.1.0 sees it. */
const stateOfRelease = async () => {
  const state = await readSchemaState(harness.db)
  return {
    ...state,
    newest: '0001_schema',
    unknown: await harness.pool
      .query(`select name, compatible_with as "compatibleWith" from migrations where name like '0002%'`)
      .then(({ rows }) => rows),
  }
}

const plan = (year: number) => planDetaching(harness.ownerDb, { year, now: harness.clock.now() })
const record = async () => undefined

/** Ends the session in the middle of the transaction. */
async function kill(tx: Tx): Promise<void> {
  await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx)
}

async function detach(month: string, db: Db = harness.ownerDb): Promise<void> {
  await detachMonth(db, { month, now: harness.clock.now(), record })
}

/** The names of the rules that are broken, by a verification of what is newer, and by one of everything. */
async function brokenIn(db: Db | Tx) {
  const names = (checks: Awaited<ReturnType<typeof verify>>) =>
    checks.flatMap(({ name, disagreement }) => (disagreement === null ? [] : [name]))
  return { byDefault: names(await verify(db)), byAll: names(await verify(db, { isWhole: true })) }
}
const agreed = { byDefault: [], byAll: [] }

const isAttached = async (month: string) => {
  const { rows } = await sql<object>`
    select from ledger_transfers where member_id is not null and created_at::date between ${`${month}-01`} and ${`${month}-28`} limit 1`.execute(
    harness.db,
  )
  return rows.length > 0
}

test('a year is refused while it is not over, not settled and sealed, or something of it is open, by partner', async () => {
  await expect(plan(2025)).rejects.toThrow('2025 is not over: only whole past years are detached')
  await expect(plan(2019)).rejects.toThrow('There are no transfers of 2019')
  const inWay = await plan(2024).catch((error: Error) => error.message.split('\n'))
  const ofPartner = `from before the end of 2024: Acme Couriers (${partnerId()})`
  expect(inWay).toEqual([
    `Fees of employers that are not invoiced ${ofPartner} (1)`,
    `Pay cycles that are not settled and sealed ${ofPartner} (2)`,
    `Withdrawals that are not finished ${ofPartner} (2)`,
  ])
  await settleAll()
  const { rows } = await sql<{ id: string }>`
    select withdrawal_id as id from unpaid_withdrawals where withdrawal_id < 'w_01jggg'`.execute(harness.db)
  for (const { id } of rows) await report(id, 'paid')
  await harness.pool.query(
    `insert into payout_exceptions (id, rail, kind, fingerprint, reason, opened_at) values ('px_1', 'bank', 'unmatched', 'f', 'Unknown', '2024-12-30')`,
  )
  await expect(plan(2024)).rejects.toThrow(
    `Fees of employers that are not invoiced ${ofPartner} (1)\nOpen payout exceptions from before the end of 2024: no partner (1)`,
  )
  await invoice('2024-12')
  await harness.ownerDb.transaction().execute(async tx => {
    await sql`alter table payout_exceptions disable trigger user`.execute(tx)
    await sql`delete from payout_exceptions`.execute(tx)
    await sql`alter table payout_exceptions enable trigger user`.execute(tx)
  })
  expect(await plan(2024)).toEqual(['2024-11-01', '2024-12-01'])
})

test('a year is refused in a sandbox, and while a transfer of its time is in the default partition', async () => {
  const now = harness.clock.now()
  await whileChanged(
    sql`update installation set mode = 'sandbox'`,
    async tx => {
      await expect(planDetaching(tx, { year: 2024, now })).rejects.toThrow(
        'The transfers of a sandbox are not detached',
      )
    },
    'public.installation',
  )
  await whileChanged(
    sql`delete from installation`,
    async tx => {
      await expect(planDetaching(tx, { year: 2024, now })).rejects.toThrow(
        'The database was never started, so it is not known to be live; start it once with MIDMONTH_MODE=live',
      )
    },
    'public.installation',
  )
  const early = firstId('transfer', new Date('2024-10-10T00:00:00Z'))
  const misplaced = sql`
    insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, created_at)
    select partner_id, ${early} || substr(id, ${early.length + 1}), movement_id, reason, debit, credit, amount, currency, created_at
      from ledger_transfers where member_id is null limit 1`
  await whileChanged(misplaced, async tx => {
    await expect(planDetaching(tx, { year: 2024, now })).rejects.toThrow(
      `Transfers in the default partition from before the end of 2024: Acme Couriers (${partnerId()}) (1)`,
    )
  })
})

test('a year is refused while a program runs that does not know detached years', async () => {
  const older = await harness.pool.connect()
  await older.query(`set application_name = 'midmonth 0001'`)
  await expect(plan(2024)).rejects.toThrow(
    'Programs are running that do not know detached years (1 connections): replace or stop them, then run this command again',
  )
  older.release(true)
})

test('fees that were given back beyond those charged keep a year attached, and are said to need a later invoice', async () => {
  const moreGivenBack = sql`
    insert into invoice_lines (partner_id, invoice_id, day, tier, withdrawals, fees, given_back, fees_given_back)
    select partner_id, invoice_id, '2024-12-30', tier, 1, 50, 0, 0 from invoice_lines limit 1`
  await whileChanged(
    moreGivenBack,
    async tx => {
      await expect(planDetaching(tx, { year: 2024, now: harness.clock.now() })).rejects.toThrow(
        `More fees refunded than charged before the end of 2024; a later invoice must offset them: Acme Couriers (${partnerId()}) (1)`,
      )
    },
    'public.invoice_lines',
  )
})

test('a transfer that is not sealed keeps its month attached', async () => {
  await expect(detach('2025-02-01')).rejects.toThrow(/^The transfer tr_\S+ of par_\S+ is not sealed/)
  expect([await isAttached('2025-02'), await listDetached(harness.db)]).toEqual([true, []])
})

test('detaching that is killed in the middle goes on with the next month, and the books agree after each', async () => {
  const before = await totals(harness.db)
  expect(await brokenIn(harness.db)).toEqual(agreed)
  const released = describeNewerSchema(await stateOfRelease())
  await detach('2024-11-01')
  expect([released, describeNewerSchema(await stateOfRelease())]).toEqual([
    undefined,
    expect.stringContaining('migrated by a newer version of Midmonth (0002_detached_years)'),
  ])
  expect(await brokenIn(harness.db)).toEqual(agreed)
  await expect(
    detachMonth(harness.ownerDb, {
      month: '2024-12-01',
      now: harness.clock.now(),
      record: kill,
    }),
  ).rejects.toThrow(/^(Connection terminated|terminating connection)/)
  expect(await brokenIn(harness.db)).toEqual(agreed)
  expect(await plan(2024)).toEqual(['2024-12-01'])
  await Promise.all([detach('2024-12-01'), detach('2024-12-01')])
  expect(await brokenIn(harness.db)).toEqual(agreed)
  expect([await isAttached('2024-11'), await isAttached('2024-12')]).toEqual([false, false])
  expect(await totals(harness.db)).toEqual(before)
  await expect(plan(2024)).rejects.toThrow('The transfers of 2024 are detached already')
})

test('a payment of a detached time that comes back is booked, and the books agree', async () => {
  const { rows } = await sql<{ id: string }>`
    select id from withdrawals where member_id = ${ann} and created_at between '2024-12-01' and '2024-12-31'`.execute(
    harness.db,
  )
  for (const { id } of rows) await report(id, 'returned')
  expect(rows).toHaveLength(1)
  expect(await brokenIn(harness.db)).toEqual(agreed)
})

test('what is attached is still verified whole, and a change of a detached transfer or of its sums is found', async () => {
  const sealed = sql`created_at < '2025-02-01' and member_id = ${ann}`
  const changes: [ReturnType<typeof sql>, string[]][] = [
    [
      sql`update ledger_transfers set amount = amount + 1 where ${sealed} and reason = 'withdrawal.held'`,
      ['withdrawals', 'fee statements', 'seals'],
    ],
    [
      sql`delete from ledger_transfers where id = (select max(id) from ledger_transfers where ${sealed})`,
      ['withdrawals', 'fees of members', 'fee statements', 'seals'],
    ],
    [
      sql`update ledger_transfers set member_sequence = member_sequence + 1000 where ${sealed}`,
      ['closed cycles', 'member order', 'seals'],
    ],
    [
      sql`update ledger_transfers set amount = amount + 1 where reason = 'withdrawal.paid' and created_at < '2025-02-01'`,
      ['withdrawals', 'seals'],
    ],
    [sql`update detached_member_sums set transfers = transfers + 1 where member_id = ${ann}`, ['seals']],
    [
      sql`update detached_member_sums set fees = fees + 1, earned_pay = earned_pay - 1 where member_id = ${ann}`,
      ['seals'],
    ],
    [sql`delete from detached_member_sums where member_id = ${bob}`, ['seals']],
    [sql`update detached_payment_sums set amount = amount + 1`, ['seals']],
  ]
  const found: string[][] = []
  for (const [change] of changes) await whileChanged(change, async tx => void found.push((await brokenIn(tx)).byAll))
  expect(found).toEqual(changes.map(([, rules]) => rules))
  await expect(
    sql`update detached.ledger_transfers_2024_11 set amount = 1`.execute(harness.ownerDb),
  ).rejects.toMatchObject({ constraint: 'append_only' })
  await expect(sql`truncate detached.ledger_transfers_2024_11`.execute(harness.ownerDb)).rejects.toMatchObject({
    constraint: 'append_only',
  })
})

test('the app role reads sums of what is detached, and changes nothing of it', async () => {
  const refused = { code: '42501' }
  expect((await harness.pool.query('select from detached_member_sums')).rowCount).toBe(2)
  for (const statement of [
    'select from detached.ledger_transfers_2024_11',
    'delete from detached_months',
    'update detached_member_sums set transfers = 0',
    'insert into detached_payment_sums select * from detached_payment_sums',
    'create table detached.mine ()',
    'alter table ledger_transfers detach partition ledger_transfers_2025_01',
    'drop schema detached cascade',
  ])
    await expect(harness.pool.query(statement)).rejects.toMatchObject(refused)
})

test('reads of detached transfers work without them, or say that they are detached', async () => {
  const statementOf = (memberId: string, query = '') =>
    harness.call('GET', `/v1/pay/members/${memberId}/statement${query}`)
  const whole = await statementOf(ann)
  const oldest = whole.body.lines.at(-1)
  expect(oldest.createdAt).toMatch(/^2025-01/)
  const { rows: sums } = await sql<{ available: bigint }>`
    select sum(member_available)::bigint as available from detached_member_sums where member_id = ${ann}`.execute(
    harness.db,
  )
  expect(whole.body.opening.available.amount).toBe(Number(sums[0]?.available))
  expect((await statementOf(ann, '?asOf=2025-01-01T12:00:00Z')).body).toMatchObject({
    ...{ lines: [], opening: whole.body.opening, closing: whole.body.opening },
  })
  const detached =
    'The transfers before 2025-01-01 are detached; the operator can attach them again, with midmonth ledger attach 2024'
  const refused = await statementOf(ann, '?asOf=2024-12-31T12:00:00Z')
  expect([refused.status, refused.body.issues[0].message]).toEqual([400, detached])

  const { body } = await harness.call('GET', `/v1/pay/withdrawals/${late}`)
  expect(body).toMatchObject({
    status: 'paid',
    timeline: [{ status: 'held' }, { status: 'submitted' }, { status: 'paid' }],
  })
  const { body: list } = await harness.call('GET', '/v1/pay/withdrawals?take=100', {
    headers: { prefer: 'return=representation' },
  })
  const first = list.withdrawals.at(-1)
  const { body: old } = await harness.call('GET', `/v1/pay/withdrawals/${first.id}`)
  expect(old).toMatchObject({ status: 'paid', timeline: [{ status: 'held' }, { status: 'submitted' }] })
  expect(first.changedAt).toBe(old.timeline[1].at)

  const exported = await harness.call('GET', `/v1/members/${ann}/data-export`)
  expect(exported.body).toMatchObject({ statementSince: '2025-01-01T00:00:00.000Z', profile: { memberId: ann } })

  const operator = await harness.addOperator()
  for (const path of [`/partners/${partnerId()}/fee-statement?month=2024-12`, '/journal?from=2024-12-01&to=2024-12-31'])
    expect((await operator.call('GET', path)).body.issues[0].message).toBe(detached)
  expect((await operator.call('GET', '/journal?from=2025-01-01&to=2025-01-31')).status).toBe(200)
  expect(exported.body.payCycles.map(({ startDate }: { startDate: string }) => startDate.slice(0, 4))).not.toContain(
    '2024',
  )
})

test('a day and a month that begin before the end of the detached time, in a zone east of UTC, are refused with that reason', async () => {
  const operator = await harness.addOperator()
  const setZone = (zone: string) => sql`update partners set time_zone = ${zone}`.execute(harness.ownerDb)
  const { rows } = await sql<{ timeZone: string }>`select time_zone from partners`.execute(harness.db)
  await setZone('Asia/Tokyo')
  const messages = []
  for (const path of [`/partners/${partnerId()}/fee-statement?month=2025-01`, '/journal?from=2025-01-01&to=2025-01-31'])
    messages.push((await operator.call('GET', path)).body.issues[0].message)
  const { status } = await operator.call('GET', '/journal?from=2025-01-02&to=2025-01-31')
  await setZone(rows[0]?.timeZone ?? '')
  expect(messages).toEqual(
    Array(2).fill(
      'The transfers before 2025-01-01 are detached, with a part of 2025-01-01 in Asia/Tokyo; the operator can attach them again, with midmonth ledger attach 2024',
    ),
  )
  expect(status).toBe(200)
})

test('the years to attach are named from the latest, which is attached first', async () => {
  const second = sql`insert into detached_months values ('2025-01-01', 1, now()), ('2025-02-01', 1, now())`
  await whileChanged(second, async tx => {
    const found = await describeDetached(tx, new Date('2024-12-01T00:00:00Z'), 'UTC')
    expect(found).toMatch(/ledger attach 2025, then 2024$/)
  })
})

test('fees after a detached year are invoiced, and an invoice of that year stays as it is', async () => {
  const { rows } = await sql<{ id: string }>`select id from invoices`.execute(harness.db)
  const [issued] = rows
  const invoiceId = issued?.id ?? ''
  await expect(
    inTx(tx => invoices.makeVoid(tx, { partnerId: partnerId(), invoiceId, now: harness.clock.now() })),
  ).rejects.toThrow('The transfers before 2025-01-01 are detached')
  expect(await invoice('2025-01')).toMatchObject({ number: 2, firstDay: '2025-01-02', sum: 50n })
})

test('a year that was changed while it was detached is not attached, and one that is whole brings its transfers back', async () => {
  const { ownerDb } = harness
  await expect(attach(ownerDb, { year: 2023, record })).rejects.toThrow('The transfers of 2023 are not detached')
  await sql`alter table detached.ledger_transfers_2024_12 rename to moved`.execute(ownerDb)
  await expect(attach(ownerDb, { year: 2024, record })).rejects.toThrow(
    'detached.ledger_transfers_2024_12 does not exist: restore it from your dump first',
  )
  await sql`alter table detached.moved rename to ledger_transfers_2024_12`.execute(ownerDb)
  await sql`insert into detached_months values ('2025-01-01', 1, now())`.execute(ownerDb)
  await expect(attach(ownerDb, { year: 2024, record })).rejects.toThrow(
    'Transfers of 2025 are detached: attach that year first',
  )
  await sql`delete from detached_months where month = '2025-01-01'`.execute(ownerDb)
  const recount = (change: number) =>
    sql`update detached_months set transfers = transfers + ${change}::integer where month = '2024-11-01'`.execute(
      ownerDb,
    )
  await recount(1)
  await expect(attach(ownerDb, { year: 2024, record })).rejects.toThrow(
    /^detached.ledger_transfers_2024_11 has \d+ transfers of the \d+ that were detached$/,
  )
  await recount(-1)
  await expect(attach(ownerDb, { year: 2024, record: kill })).rejects.toThrow(
    /^(Connection terminated|terminating connection)/,
  )
  expect(await brokenIn(harness.db)).toEqual(agreed)
  expect(await attach(ownerDb, { year: 2024, record })).toEqual(['2024-11-01', '2024-12-01'])
  expect(await brokenIn(harness.db)).toEqual(agreed)
  expect([await isAttached('2024-11'), await isAttached('2024-12'), await listDetached(harness.db)]).toEqual([
    ...[true, true],
    [],
  ])
  await expect(
    sql`update ledger_transfers set amount = 1 where created_at < '2024-12-01'`.execute(ownerDb),
  ).rejects.toMatchObject({ constraint: 'append_only' })
  expect((await harness.call('GET', `/v1/pay/withdrawals/${late}`)).body.timeline).toHaveLength(3)
})

test('the command says what is in the way and what it would do, and does it with --yes; a verification names what is detached', async () => {
  const ledger = (...args: string[]) => midmonthHere(['ledger', ...args], harness.settings)
  const early = await ledger('detach', '2025')
  expect(early.code).not.toBe(0)
  expect(early.stderr).toMatch(
    /^midmonth: Transfers of 2024 are not detached: detach that year first\nFees of employers that are not invoiced from before the end of 2025: Acme Couriers \(par_/,
  )
  expect((await ledger('detach', '2024')).stdout).toContain(
    '2 months of 2024 can be detached: 2024-11, 2024-12.\nNothing was changed.',
  )
  expect(await listDetached(harness.db)).toEqual([])
  expect(await ledger('detach', '2024', '--yes')).toEqual({
    code: 0,
    stdout: 'The transfers of 2024 are in the schema "detached". midmonth ledger attach 2024 brings them back.\n',
    stderr: '2024-11 is detached\n2024-12 is detached\n',
  })
  for (const all of [[], ['--all']]) {
    const { code, stdout } = await ledger('verify', ...all)
    expect(code).toBe(0)
    const read = all.length === 0 ? 'it was not read' : 'only its sums were read'
    expect(stdout).toMatch(
      new RegExp(
        `^2024 is detached \\(2 months, \\d+ transfers\\): ${read} \\(ledger attach 2024 brings it back\\)$`,
        'm',
      ),
    )
  }
  expect((await ledger('attach', '2024')).stdout).toContain('The transfers of 2024 are attached.')
  const { rows } = await sql<{ action: string; details: object }>`
    select action, details from installation_audit_log where action in ('ledger.detach', 'ledger.attach') order by id`.execute(
    harness.db,
  )
  expect(rows).toEqual([
    { action: 'ledger.detach', details: { month: '2024-11-01' } },
    { action: 'ledger.detach', details: { month: '2024-12-01' } },
    { action: 'ledger.attach', details: {} },
  ])
})

test('detaching gives way to a transaction that holds the transfers, and writers do not wait behind it', async () => {
  let detaching: Promise<void> | undefined
  await inTx(async tx => {
    await sql`lock table only ledger_transfers in row exclusive mode`.execute(tx)
    detaching = detach('2024-11-01')
    await whenWaiting(harness.ownerDb)
    await harness.withdraw({ memberId: ann, amount: 1_000 })
    expect((await listDetached(harness.db)).length).toBe(0)
  })
  await detaching
  expect(await brokenIn(harness.db)).toEqual(agreed)
  await attach(harness.ownerDb, { year: 2024, record })
})

/** The database, which changes once, after the verification has read the seals of payments and before it reads the payments. */
function changingInTheMiddle(change: () => Promise<void>): Db {
  let seals: QueryId | undefined
  return harness.db.withPlugin({
    transformQuery({ node, queryId }) {
      if (seals === undefined && JSON.stringify(node).includes("m.part = 'paid'")) seals = queryId
      return node
    },
    async transformResult({ result, queryId }) {
      if (queryId === seals) await change()
      return result
    },
  }) as Db
}

test('a verification in whose middle months are detached or attached reads again, and reports no false fault', async () => {
  const { ownerDb } = harness
  const detaching = changingInTheMiddle(async () => {
    for (const month of await plan(2024)) await detach(month)
  })
  expect((await brokenIn(detaching)).byAll).toEqual([])
  expect(await listDetached(ownerDb)).not.toEqual([])
  const attaching = changingInTheMiddle(async () => void (await attach(ownerDb, { year: 2024, record })))
  expect((await brokenIn(attaching)).byAll).toEqual([])
  expect(await listDetached(ownerDb)).toEqual([])
})

test('a transfer that was changed while its year was detached is found after it is attached', async () => {
  const { ownerDb } = harness
  for (const month of await plan(2024)) await detach(month)
  await ownerDb.transaction().execute(async tx => {
    const table = sql.table('detached.ledger_transfers_2024_12')
    await sql`alter table ${table} disable trigger user`.execute(tx)
    await sql`update ${table} set amount = amount + 1 where reason = 'pay_run.available' and member_id = ${ann}`.execute(
      tx,
    )
    await sql`alter table ${table} enable trigger user`.execute(tx)
  })
  expect(await brokenIn(harness.db)).toEqual(agreed)
  await attach(ownerDb, { year: 2024, record })
  expect((await brokenIn(harness.db)).byAll).toContain('pay runs')
})

import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { goodAccount } from '../../test/harness/samples.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql, type Tx } from '../database/database.ts'
import * as invoices from '../fees/invoices.ts'
import * as float from '../float/float.ts'
import { foldFloatChanges } from '../ledger/ledger.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { auditTasks } from './tasks.ts'
import { verify } from './verify.ts'

// Without seals, everything is verified by default. With seals, `--all` finds the same in what they cover.
describe.each(['not sealed', 'sealed'])('books that are %s', state => {
  const isSealed = state === 'sealed'
  let harness: Harness
  /** One of everything: withdrawals by outcome, pay runs, cycles and members. */
  let life: Record<string, string>
  beforeAll(async () => {
    harness = await startHarness()
    life = await liveThroughTwoCycles()
    if (!isSealed) return
    const { db, clock } = harness
    for (const _ of ['the first cycle', 'the second cycle']) {
      await auditTasks['seal-ledger']({ db, log: pino({ level: 'silent' }), now: clock.now })
    }
    const { rows } = await sql`select from ledger_seals where sealed_at is not null`.execute(db)
    expect(rows).toHaveLength(2)
  })
  afterAll(() => harness.stop())

  const gbp = (amount: number) => ({ amount, currency: 'GBP' })

  async function liveThroughTwoCycles(): Promise<Record<string, string>> {
    const { call, clock, db, partner } = harness
    const partnerId = partner.id
    const inTx = <T>(work: (tx: Tx) => Promise<T>) => db.transaction().execute(work)
    const ok = async (answer: Promise<{ status: number; text: string; body: Record<string, string> }>) => {
      const { status, text, body } = await answer
      if (status >= 300) throw new Error(text)
      return body
    }
    const pay = async (lines: [string, number][]) => {
      const payDetails = lines.map(([memberId, amount]) => ({ memberId, money: gbp(amount) }))
      return { id: locatedId(await call('POST', '/v1/pay/run', { body: { payDetails } })) }
    }
    const submit = async () => {
      clock.advance({ minutes: 2 })
      await inTx(tx => withdrawals.submitDue(tx, claimingAt(clock.now(), harness.partner.id)))
    }
    const report = (withdrawalId: string, outcome: 'paid' | 'failed' | 'returned') =>
      inTx(tx =>
        withdrawals.applyBankReport(tx, { partnerId, withdrawalId, outcome, reason: 'AC04', now: clock.now() }),
      )

    await inTx(tx => float.fund(tx, { partnerId, amount: { amount: 1_000_000n, currency: 'GBP' }, now: clock.now() }))
    await inTx(tx => float.withdraw(tx, { partnerId, amount: { amount: 1_000n, currency: 'GBP' }, now: clock.now() }))
    const [sam, ann, bob] = [
      await harness.addMember(),
      await harness.addMember({ tier: 'Gold' }),
      await harness.addMember(),
    ]
    const [dan, eve] = [await harness.addMember(), await harness.addMember()]
    const payRun = await pay([sam, ann, bob, dan].map(memberId => [memberId, 50_000]))
    const paid = await harness.withdraw({ memberId: sam, amount: 10_000 })
    const failed = await harness.withdraw({ memberId: ann, amount: 9_000 })
    const cancelled = await harness.withdraw({ memberId: bob, amount: 8_000 })
    const returned = await harness.withdraw({ memberId: bob, amount: 7_000 })
    const lateReturn = await harness.withdraw({ memberId: dan, amount: 6_000 })
    await harness.withdraw({ memberId: dan, amount: 5_000 })
    await ok(call('POST', `/v1/pay/withdrawals/${cancelled}/cancel`))
    await submit()
    for (const id of [paid, returned, lateReturn]) await report(id, 'paid')
    await report(returned, 'returned')
    await report(failed, 'failed')
    const reverted = await pay([[eve, 4_000]])
    await harness.withdraw({ memberId: eve, amount: 1_500 })
    await ok(call('POST', `/v1/pay/runs/${reverted.id}/revert`))
    const closedCycle = harness.payCycle.id
    clock.set(new Date('2026-04-02T09:00:00Z'))
    await inTx(tx => closeIfOver(tx, { partnerId, now: clock.now() }))
    await report(lateReturn, 'returned')
    // Payroll took too little from Sam, and something from Bob, who owes nothing.
    const deductions = [
      { memberId: sam, taken: gbp(9_000) },
      { memberId: bob, taken: gbp(100) },
      { memberId: dan, taken: gbp(11_000) },
    ]
    await ok(call('POST', `/v1/pay/cycles/${closedCycle}/settlement`, { body: { deductions } }))
    await pay([
      [sam, 30_000],
      [eve, 5_000],
      [ann, 5_000],
    ])
    const held = await harness.withdraw({ memberId: sam, amount: 2_000 })
    await harness.withdraw({ memberId: ann, amount: 1_500 })
    const now = clock.now()
    const taken = { partnerId, amount: { amount: 50n, currency: 'GBP' as const }, reference: 'fees', now }
    await inTx(tx => float.withdrawRevenue(tx, taken))
    const invoice = await inTx(tx => invoices.issue(tx, { partnerId, currency: 'GBP', now }))
    const payment = { reference: 'transfer', paidOn: '2026-04-02' }
    await inTx(tx => invoices.pay(tx, { partnerId, invoiceId: invoice.id, ...payment, now }))
    const intent = await ok(call('POST', '/v1/pay/withdrawals/intent', { body: { memberId: sam, amount: gbp(2_000) } }))
    const second = await db
      .selectFrom('payCycles')
      .select('id')
      .where('partnerId', '=', partnerId)
      .where('status', '=', 'Open')
      .executeTakeFirstOrThrow()
    clock.set(new Date('2026-05-02T09:00:00Z'))
    await inTx(tx => closeIfOver(tx, { partnerId, now: clock.now() }))
    const settled = await ok(
      call('POST', `/v1/pay/cycles/${second.id}/settlement`, {
        body: { deductions: [{ memberId: sam, taken: gbp(3_000) }] },
      }),
    )
    expect(settled).toMatchObject({ matched: 1 })
    await inTx(tx => foldFloatChanges(tx, { partnerId, currency: 'GBP', countMax: 3 }))
    return {
      ...{ partnerId, paid, failed, cancelled, returned, lateReturn, held, sam, ann, bob, dan, eve },
      ...{ payRun: payRun.id, reverted: reverted.id, closedCycle, secondCycle: second.id },
      pending: intent.withdrawalIntentId ?? '',
      invoice: invoice.id,
    }
  }

  /** Returns what verify reports after tampering with rows; the change is rolled back. */
  async function afterTampering(change: ReturnType<typeof sql>): Promise<Record<string, string>> {
    const disagreements: Record<string, string> = {}
    await harness.ownerDb
      .transaction()
      .execute(async tx => {
        const tables = [
          'ledger_transfers',
          'withdrawals',
          'withdrawal_intents',
          'pay_runs',
          'pay_cycles',
          'settlement_fees',
        ]
        for (const table of [...tables, 'invoices', 'invoice_lines', 'float_references']) {
          await sql`alter table ${sql.table(table)} disable trigger user`.execute(tx)
        }
        const { numAffectedRows } = await change.execute(tx)
        expect(numAffectedRows).toBeGreaterThan(0n)
        for (const { name, disagreement } of await verify(tx, { isWhole: isSealed })) {
          if (disagreement !== null) {
            const { partnerId, subject, expected, found } = disagreement
            expect(partnerId).toBe(life.partnerId)
            disagreements[name] = `${subject}: ${expected}, not ${found}`
          }
        }
        throw new Error('undone')
      })
      .catch(error => {
        if (error.message !== 'undone') throw error
      })
    return disagreements
  }

  const copyOf = (where: ReturnType<typeof sql>) => sql`
  insert into ledger_transfers (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, member_sequence)
  select partner_id, 'tr_copy' || id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, 1000 + member_sequence
    from ledger_transfers where ${where}`

  test('after two whole cycles, every rule of the books holds', async () => {
    const checks = await verify(harness.db, { isWhole: isSealed })
    expect(checks.filter(check => check.disagreement !== null)).toEqual([])
    expect(checks.length).toBeGreaterThanOrEqual(10)
  })

  test('no event contains a name, an address or a bank account', async () => {
    const { rows } = await sql<{ text: string }>`select data::text as text from events`.execute(harness.db)
    expect(rows.length).toBeGreaterThan(40)
    const all = rows.map(({ text }) => text).join('\n')
    for (const secret of [...Object.values(goodAccount), 'Sam', 'Okafor', '@', 'accountHolder', 'sortCode', 'iban']) {
      expect(all).not.toContain(secret)
    }
  })

  test('a balance that is not the sum of its transfers is reported', async () => {
    const found = await afterTampering(sql`update ledger_balances set owed = owed + 1 where member_id = ${life.sam}`)
    expect(found['member balances']).toMatch(
      new RegExp(`${life.sam} GBP: available 0, owed 0, not available 0, owed 1`),
    )
  })

  test('a transfer that follows no posting rule is reported', async () => {
    const found = await afterTampering(
      sql`update ledger_transfers set debit = 'fees' where reason = 'withdrawal.paid' and movement_id = ${life.paid}`,
    )
    expect(found['posting rules']).toMatch(/^tr_.*not withdrawal.paid: fees to float$/)
  })

  test.each([
    ['paid', 'withdrawal.held'],
    ['paid', 'withdrawal.paid'],
    ['failed', 'withdrawal.failed'],
    ['cancelled', 'withdrawal.cancelled'],
    ['returned', 'withdrawal.returned'],
    ['lateReturn', 'withdrawal.returned'],
  ])('a withdrawal that was %s but booked %s twice or never is reported', async (which, reason) => {
    const id = life[which]
    const missing = await afterTampering(
      sql`delete from ledger_transfers where movement_id = ${id} and reason = ${reason}`,
    )
    expect(missing.withdrawals).toMatch(new RegExp(`^${id}: ${reason}: .*, not nothing more$`))
    const twice = await afterTampering(copyOf(sql`movement_id = ${id} and reason = ${reason}`))
    expect(twice.withdrawals).toMatch(new RegExp(`^${id}: nothing more, not ${reason}: `))
  })

  test.each([
    ['paid', 'submitted'],
    ['paid', 'returned'],
    ['failed', 'submitted'],
    ['cancelled', 'held'],
    ['held', 'cancelled'],
  ])('a withdrawal that was %s but has the status %s is reported', async (which, status) => {
    const found = await afterTampering(
      sql`update withdrawals set status = ${status}, due_at = case when ${status} in ('held', 'submitted') then created_at end where id = ${life[which]}`,
    )
    expect(found.withdrawals).toMatch(new RegExp(`^${life[which]}: `))
  })

  test.each([
    ['amount', 'amount + 1'],
    ['currency', `'EUR'`],
    ['member_id', `(select id from members m where m.partner_id = t.partner_id and m.id <> t.member_id limit 1)`],
    [
      'pay_cycle_id',
      `(select id from pay_cycles c where c.partner_id = t.partner_id and c.id <> t.pay_cycle_id limit 1)`,
    ],
  ])('a transfer of a withdrawal with another %s than the withdrawal is reported', async (column, other) => {
    for (const which of ['paid', 'returned', 'lateReturn']) {
      const found = await afterTampering(sql`
        update ledger_transfers t set ${sql.ref(column)} = ${sql.raw(other)}, member_sequence = 1000 + member_sequence
         where movement_id = ${life[which]} and debit in ('member_available', 'float') and credit in ('payouts_pending', 'member_available')
           and id = (select max(o.id) from ledger_transfers o where o.partner_id = t.partner_id and o.movement_id = t.movement_id
                        and o.debit in ('member_available', 'float') and o.credit in ('payouts_pending', 'member_available'))`)
      expect(found.withdrawals).toMatch(new RegExp(`^${life[which]}: `))
    }
  })

  test('a withdrawal refunded in another cycle than its row says is reported', async () => {
    const found = await afterTampering(
      sql`update withdrawals set adjusted_in_cycle_id = null where id = ${life.lateReturn}`,
    )
    expect(found.withdrawals).toMatch(
      new RegExp(`^${life.lateReturn}: .*${life.closedCycle}.*not .*${life.secondCycle}`),
    )
  })

  test('an intent whose withdrawal is missing or has other amounts is reported', async () => {
    const intentId = sql`(select withdrawal_intent_id from withdrawals where id = ${life.held})`
    const other = await afterTampering(
      sql`update withdrawal_intents set gross_amount = gross_amount + 1, net_amount = net_amount + 1 where id = ${intentId}`,
    )
    expect(other.intents).toMatch(/^wi_.*: a withdrawal of 2001 GBP, not a withdrawal of 2000 GBP$/)
    const none = await afterTampering(
      sql`update withdrawal_intents set status = 'completed' where id = ${life.pending}`,
    )
    expect(none.intents).toBe(`${life.pending}: a withdrawal of 2000 GBP, not no withdrawal`)
  })

  test('a pay run with transfers other than its lines, or reverted without reversing transfers, is reported', async () => {
    const line = await afterTampering(
      sql`update pay_run_lines set amount = amount + 1 where pay_run_id = ${life.payRun} and member_id = ${life.ann}`,
    )
    expect(line['pay runs']).toBe(
      `pay_run.available of ${life.payRun} for ${life.ann} in ${life.closedCycle}: 50001 GBP, not 50000 GBP`,
    )
    const kept = await afterTampering(
      sql`update pay_runs set status = 'Available', reverted_at = null where id = ${life.reverted}`,
    )
    expect(kept['pay runs']).toBe(
      `pay_run.reverted of ${life.reverted} for ${life.eve} in ${life.closedCycle}: 0 GBP, not -4000 GBP`,
    )
    const scheduled = await afterTampering(
      sql`update pay_runs set status = 'Scheduled', available_at = null where id = ${life.payRun}`,
    )
    expect(scheduled['pay runs']).toMatch(/: 0 GBP, not 50000 GBP$/)
  })

  test('a closed cycle with a balance left for a member is reported', async () => {
    const found = await afterTampering(
      sql`delete from ledger_transfers where reason = 'pay_cycle.closed' and movement_id = ${life.closedCycle} and member_id = ${life.ann}`,
    )
    if (isSealed)
      expect(found.seals).toMatch(
        new RegExp(`^${life.ann} GBP: 11 transfers.* in its order and cycle, not 12 transfers`),
      )
    else expect(found['closed cycles']).toBe(`available to ${life.ann} in ${life.closedCycle}: 0 GBP, not 50000 GBP`)
  })

  test('a settled cycle whose earned pay is not zero for a member is reported', async () => {
    const found = await afterTampering(
      copyOf(sql`reason = 'pay_cycle.settled' and debit = 'float' and member_id = ${life.dan}`),
    )
    expect(found['settled cycles']).toBe(`${life.closedCycle} for ${life.dan}: 0 GBP, not -11000 GBP`)
  })

  test.each([
    ['deducted', /^deducted from/],
    ['taken', /^taken from/],
    ['carried', /^carried (on )?for/],
    ['written_off', /^written off for/],
  ])('a settlement whose line has another %s than the books is reported', async (column, named) => {
    const found = await afterTampering(
      sql`update settlement_lines set ${sql.ref(column)} = ${sql.ref(column)} + 1 where pay_cycle_id = ${life.closedCycle} and member_id = ${life.sam}`,
    )
    expect(found.settlements).toMatch(named)
    expect(found.settlements).toContain(life.closedCycle)
  })

  test('a deduction, or a sum of a cycle, that is kept otherwise than booked is reported', async () => {
    const changed = await afterTampering(sql`
      update ledger_deductions set amount = amount + 1
       where pay_cycle_id = ${life.closedCycle} and member_id = ${life.sam}`)
    expect(changed.deductions).toBe(`from ${life.sam} in ${life.closedCycle}: 10000 GBP, not 10001 GBP`)
    const missing = await afterTampering(sql`
      delete from ledger_deductions where pay_cycle_id = ${life.closedCycle} and member_id = ${life.sam}`)
    expect(missing.deductions).toMatch(/: 10000 GBP, not 0 GBP$/)
    expect(missing['sums of cycles']).toMatch(/^number of deductions in /)
    const available = await afterTampering(sql`
      insert into ledger_cycle_changes (partner_id, pay_cycle_id, currency, id, available_change, deductions_change)
      values (${life.partnerId}, ${life.secondCycle}, 'GBP', 'tr_1', 5, 0)`)
    expect(available['sums of cycles']).toBe(`available in ${life.secondCycle}: 0 GBP, not 5 GBP`)
  })

  test('a settlement of which more is due than is posted as receivable is reported', async () => {
    const found = await afterTampering(sql`
    insert into settlement_dues (partner_id, pay_cycle_id, currency, amount, settled_at)
    select partner_id, id, 'GBP', 700, now() from pay_cycles where id = ${life.closedCycle}`)
    expect(found['settlement dues']).toBe(`due in ${life.closedCycle}: 700 GBP, not 0 GBP`)
  })

  test('a fee that is covered, collected or given back otherwise than booked is reported', async () => {
    const covered = await afterTampering(
      sql`update settlement_fees set fee = fee - 1, covered = covered - 1, due = due - 1 where withdrawal_id = ${life.paid}`,
    )
    expect(covered['fees of members']).toBe(`the fee of ${life.paid} in ${life.closedCycle}: 50 GBP, not 49 GBP`)
    const released = await afterTampering(
      sql`update settlement_fees set released_at = now() where withdrawal_id = ${life.paid}`,
    )
    expect(released['fees of members']).toBe(`the fee of ${life.paid} in ${life.closedCycle}: 50 GBP, not 0 GBP`)
    expect(released['collected fees']).toMatch(/^fees covered in /)
    const collected = await afterTampering(
      sql`update fee_collections set collected = collected - 1 where pay_cycle_id = ${life.closedCycle}`,
    )
    expect(collected['collected fees']).toMatch(/^fees (that can be )?collected in /)
    expect(collected['ownership of money']).toMatch(/^(fees|revenue) in all cycles: /)
    const twice = await afterTampering(copyOf(sql`reason = 'fees.collected' and pay_cycle_id = ${life.closedCycle}`))
    expect(twice['collected fees']).toMatch(/^fees collected in /)
    expect(twice['ownership of money']).toMatch(/^(fees|revenue) in all cycles: /)
  })

  test('an invoice, taken revenue or a statement that differs from the books is reported', async () => {
    const summed = await afterTampering(sql`update invoices set sum = sum + 1 where id = ${life.invoice}`)
    expect(summed.invoices).toMatch(/^billed by ivc_.* in its postings: 51 GBP, not 50 GBP$/)
    const unpaid = await afterTampering(
      sql`update invoices set status = 'open', paid_on = null, paid_reference = null where id = ${life.invoice}`,
    )
    expect(unpaid.invoices).toBe(`paid for ${life.invoice} in its postings: 0 GBP, not 50 GBP`)
    const billed = await afterTampering(
      sql`update invoice_lines set fees = fees - 1 where invoice_id = ${life.invoice}`,
    )
    expect(billed.invoices).toBe(`lines of ${life.invoice} in its postings: 50 GBP, not 48 GBP`)
    const taken = await afterTampering(sql`update float_references set amount = amount - 1 where direction = 'revenue'`)
    expect(taken['ownership of money']).toMatch(/^operator_account in all cycles: /)
    const { createdAt } = await harness.db
      .selectFrom('withdrawals')
      .select('createdAt')
      .where('id', '=', life.paid ?? '')
      .executeTakeFirstOrThrow()
    const daysLater = (days: number) => new Date(createdAt.getTime() + days * 86_400_000)
    const moved = await afterTampering(
      sql`update withdrawals set created_at = ${daysLater(-1)} where id = ${life.paid}`,
    )
    expect(moved['fee statements']).toMatch(/^fees of 2026-03-\d\d in the statement: /)
    const late = await afterTampering(
      sql`update ledger_transfers set created_at = ${daysLater(1)} where movement_id = ${life.paid}`,
    )
    expect(late.journal).toMatch(/^tr_.*: not before /)
  })

  test('an amount carried out of one cycle but into none is reported', async () => {
    const found = await afterTampering(
      sql`delete from ledger_transfers where debit = 'earned_pay' and credit = 'carried' and member_id = ${life.sam}`,
    )
    if (isSealed) expect(found.seals).toMatch(new RegExp(`^${life.sam} GBP: .* carried -1000, .* not .* carried 0, `))
    else expect(found.carried).toBe(`${life.sam} GBP: 0, not 1000`)
  })

  test.each([
    'ledger_float_totals set float_balance = float_balance + 1',
    'ledger_float_changes set pending_change = pending_change + 1',
  ])('a float that is not the sum of its transfers is reported: %s', async change => {
    const found = await afterTampering(sql`update ${sql.raw(change)} where currency = 'GBP'`)
    expect(found['float totals']).toMatch(/^GBP: float -?\d+, pending -?\d+, not float -?\d+, pending -?\d+$/)
  })

  test('transfers of a member numbered in another order than their balances are reported', async () => {
    const swapped = await afterTampering(sql`
    update ledger_transfers t set member_sequence = 100 - t.member_sequence where member_id = ${life.sam}`)
    const { seals, 'member order': order } = swapped
    if (isSealed)
      expect([seals, order]).toEqual([
        expect.any(String),
        expect.stringMatching(/GBP: 24 transfers, not 12 transfers$/),
      ])
    else expect(order).toMatch(/: number \d+, nothing below zero, not number \d+, available -?\d+, owed -?\d+$/)
    const miscounted = await afterTampering(
      sql`update ledger_balances set transfer_count = transfer_count + 1 where member_id = ${life.sam}`,
    )
    expect(miscounted['member order']).toMatch(/GBP: \d+ transfers, not \d+ transfers$/)
  })
})

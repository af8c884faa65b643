import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Payment, type Rail, type Report, within } from '../src/payouts/rail.ts'

/** A rail as the suite needs it: with ways to make it do what a real one does by itself. */
export type RailUnderTest = {
  rail: Rail
  /** A new payment, with a reference of its own, that the rail will treat so. */
  payment(destiny: 'paid' | 'failed' | 'returned'): Payment
  /** Lets so much time go by that the rail has told everything about every payment. */
  letTimeGoBy(): Promise<void>
  /** How many payments the rail has really executed for a reference, told from outside the rail. */
  executed(reference: string): Promise<number>
  stop(): Promise<void>
}

/** What every rail promises, whatever it is made of. */
export function railConformance(name: string, make: () => Promise<RailUnderTest>): void {
  describe(`the rail ${name}`, () => {
    let it: RailUnderTest
    beforeAll(async () => {
      it = await make()
    })
    afterAll(() => it.stop())

    const submit = (payments: Payment[]) => within(it.rail.callMsMax, signal => it.rail.submit(payments, signal))
    const ask = (references: string[]) => within(it.rail.callMsMax, signal => it.rail.ask(references, signal))
    const read = (after: string | null, countMax = 100) =>
      within(it.rail.callMsMax, signal => it.rail.reports(after, countMax, signal))
    const outcomeOf = async ({ reference }: Payment) => (await ask([reference]))[0]?.outcome

    async function readAll(after: string | null, countMax: number): Promise<{ all: Report[]; cursor: string | null }> {
      const all: Report[] = []
      for (let cursor = after; ; ) {
        const page = await read(cursor, countMax)
        expect(page.reports.length).toBeLessThanOrEqual(countMax)
        all.push(...page.reports)
        if (page.cursor === cursor) return { all, cursor }
        cursor = page.cursor
      }
    }

    test('names itself and its limits', () => {
      expect(it.rail.name).toMatch(/^[a-z0-9-]{1,60}$/)
      expect(it.rail.paymentsMax).toBeGreaterThanOrEqual(1)
      expect(it.rail.callMsMax).toBeGreaterThanOrEqual(1)
      expect(it.rail.callMsMax).toBeLessThanOrEqual(25_000)
    })

    test('pays what it is given, and says so in the end', async () => {
      const payment = it.payment('paid')
      const [report] = await submit([payment])
      expect(report?.reference).toBe(payment.reference)
      expect(['pending', 'paid']).toContain(report?.outcome)
      await it.letTimeGoBy()
      expect(await outcomeOf(payment)).toBe('paid')
      expect(await it.executed(payment.reference)).toBe(1)
    })

    test('takes as many payments at once as it says, and tells them apart', async () => {
      const many = Array.from({ length: it.rail.paymentsMax }, (_, n) => it.payment(n % 2 === 0 ? 'paid' : 'failed'))
      const references = many.map(({ reference }) => reference)
      const answered = (await submit(many)).map(({ reference }) => reference)
      expect(references).toEqual(expect.arrayContaining(answered))
      await it.letTimeGoBy()
      const reports = new Map((await ask(references)).map(({ reference, outcome }) => [reference, outcome]))
      expect(references.map(reference => reports.get(reference))).toEqual(
        many.map((_, n) => (n % 2 === 0 ? 'paid' : 'failed')),
      )
    })

    test('a payment that is submitted again, and again at once, stays one payment', async () => {
      const payment = it.payment('paid')
      await submit([payment])
      await submit([payment])
      await Promise.all(Array.from({ length: 20 }, () => submit([payment])))
      await it.letTimeGoBy()
      await submit([payment])
      expect(await outcomeOf(payment)).toBe('paid')
      expect(await it.executed(payment.reference)).toBe(1)
    })

    test('refuses a reference that comes back with another amount', async () => {
      const payment = it.payment('paid')
      await submit([payment])
      const { amount, currency } = payment.amount
      await expect(submit([{ ...payment, amount: { amount: amount + 1n, currency } }])).rejects.toThrow()
      expect(await it.executed(payment.reference)).toBe(1)
    })

    test('says of what it was never given that it is unknown', async () => {
      const { reference } = it.payment('paid')
      expect(await ask([reference])).toEqual([{ reference, outcome: 'unknown', reason: null }])
      expect(await it.executed(reference)).toBe(0)
    })

    test('says why a payment failed, and never executes it', async () => {
      const payment = it.payment('failed')
      await submit([payment])
      await it.letTimeGoBy()
      const [report] = await ask([payment.reference])
      expect(report).toEqual({ reference: payment.reference, outcome: 'failed', reason: expect.stringMatching(/./) })
      expect(report?.reason?.length).toBeLessThanOrEqual(140)
      expect(await it.executed(payment.reference)).toBe(0)
    })

    test('reports that a payment was paid and then returned, in this order, and why', async () => {
      const { cursor: before } = await readAll(null, 100)
      const payment = it.payment('returned')
      await submit([payment])
      await it.letTimeGoBy()
      const { all } = await readAll(before, 100)
      const own = all.filter(({ reference }) => reference === payment.reference)
      expect(own.map(({ outcome }) => outcome)).toEqual(['paid', 'returned'])
      expect(own[1]?.reason).toMatch(/./)
      expect(await outcomeOf(payment)).toBe('returned')
    })

    test('its reports can be read in pages of any size, and again from any place', async () => {
      const payments = Array.from({ length: 5 }, () => it.payment('paid'))
      for (const payment of payments) await submit([payment])
      await it.letTimeGoBy()
      const whole = await readAll(null, 1_000)
      expect(whole.all.map(({ reference }) => reference)).toEqual(
        expect.arrayContaining(payments.map(({ reference }) => reference)),
      )
      expect((await readAll(null, 2)).all).toEqual(whole.all)
      const { cursor } = await read(null, 3)
      expect((await readAll(cursor, 1_000)).all).toEqual(whole.all.slice(3))
      expect(await read(whole.cursor)).toEqual({ reports: [], cursor: whole.cursor })
    })
  })
}

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Restriction } from '../../src/members/restrictions.ts'
import { type Channel, within } from '../../src/payouts/channels/channel.ts'
import type { Payment, Report } from '../../src/payouts/payments/payment.ts'

/** A rail with the controls that the suite needs to trigger what a real rail does on its own. */
export type ChannelUnderTest = {
  /** The restriction that the failure reason places on the member; none by default. */
  restriction?: Restriction
  rail: Channel
  /** Creates a payment with a unique reference that the rail will end with this outcome. */
  payment(outcome: 'paid' | 'failed' | 'returned'): Payment
  /** Advances time until the rail has reported the final outcome of every payment. */
  letTimeGoBy(): Promise<void>
  /** Counts the payments actually executed for a reference, observed from outside the rail. */
  executed(reference: string): Promise<number>
  stop(): Promise<void>
}

/** The contract that every rail implementation must meet. */
export function channelConformance(name: string, make: () => Promise<ChannelUnderTest>): void {
  describe(`the rail ${name}`, () => {
    let subject: ChannelUnderTest
    beforeAll(async () => {
      subject = await make()
    })
    afterAll(() => subject.stop())

    const submit = (payments: Payment[]) =>
      within(subject.rail.callMsMax, signal => subject.rail.submit(payments, signal))
    const ask = (references: string[]) => within(subject.rail.callMsMax, signal => subject.rail.ask(references, signal))
    const read = (after: string | null, countMax = 100) =>
      within(subject.rail.callMsMax, signal => subject.rail.collect(after, countMax, signal))
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

    test('declares its name and limits', () => {
      expect(subject.rail.name).toMatch(/^[a-z0-9-]{1,60}$/)
      expect(subject.rail.paymentsMax).toBeGreaterThanOrEqual(1)
      expect(subject.rail.callMsMax).toBeGreaterThanOrEqual(1)
      expect(subject.rail.callMsMax).toBeLessThanOrEqual(25_000)
    })

    test('executes a payment and eventually reports it as paid', async () => {
      const payment = subject.payment('paid')
      const [report] = await submit([payment])
      expect(report?.reference).toBe(payment.reference)
      expect(['pending', 'paid']).toContain(report?.outcome)
      await subject.letTimeGoBy()
      expect(await outcomeOf(payment)).toBe('paid')
      expect(await subject.executed(payment.reference)).toBe(1)
    })

    test('accepts its declared maximum of payments at once and keeps them apart', async () => {
      const many = Array.from({ length: subject.rail.paymentsMax }, (_, n) =>
        subject.payment(n % 2 === 0 ? 'paid' : 'failed'),
      )
      const references = many.map(({ reference }) => reference)
      const answered = (await submit(many)).map(({ reference }) => reference)
      expect(references).toEqual(expect.arrayContaining(answered))
      await subject.letTimeGoBy()
      const reports = new Map((await ask(references)).map(({ reference, outcome }) => [reference, outcome]))
      expect(references.map(reference => reports.get(reference))).toEqual(
        many.map((_, n) => (n % 2 === 0 ? 'paid' : 'failed')),
      )
    })

    test('executes a payment once, even if it is resubmitted or submitted concurrently', async () => {
      const payment = subject.payment('paid')
      await submit([payment])
      await submit([payment])
      await Promise.all(Array.from({ length: 20 }, () => submit([payment])))
      await subject.letTimeGoBy()
      await submit([payment])
      expect(await outcomeOf(payment)).toBe('paid')
      expect(await subject.executed(payment.reference)).toBe(1)
    })

    test('refuses a known reference with a different amount', async () => {
      const payment = subject.payment('paid')
      await submit([payment])
      const { amount, currency } = payment.netAmount
      await expect(submit([{ ...payment, netAmount: { amount: amount + 1n, currency } }])).rejects.toThrow()
      await subject.letTimeGoBy()
      expect(await subject.executed(payment.reference)).toBe(1)
    })

    test('reports a payment that it never received as unknown', async () => {
      const { reference } = subject.payment('paid')
      expect(await ask([reference])).toEqual([{ reference, outcome: 'unknown', reason: null }])
      expect(await subject.executed(reference)).toBe(0)
    })

    test('reports why a payment failed and never executes it', async () => {
      const payment = subject.payment('failed')
      await submit([payment])
      await subject.letTimeGoBy()
      const [report] = await ask([payment.reference])
      expect(report).toEqual({
        reference: payment.reference,
        outcome: 'failed',
        reason: expect.stringMatching(/./),
        restriction: subject.restriction,
      })
      expect(report?.reason?.length).toBeLessThanOrEqual(140)
      expect(await subject.executed(payment.reference)).toBe(0)
    })

    test('reports a returned payment as paid, then as returned with a reason', async () => {
      const { cursor: before } = await readAll(null, 100)
      const payment = subject.payment('returned')
      await submit([payment])
      await subject.letTimeGoBy()
      const { all } = await readAll(before, 100)
      const own = all.filter(({ reference }) => reference === payment.reference)
      expect(own.map(({ outcome }) => outcome)).toEqual(['paid', 'returned'])
      expect(own[1]?.reason).toMatch(/./)
      expect(await outcomeOf(payment)).toBe('returned')
    })

    test('reports can be read in pages of any size, and again from any cursor', async () => {
      const payments = Array.from({ length: 5 }, () => subject.payment('paid'))
      for (const payment of payments) await submit([payment])
      await subject.letTimeGoBy()
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

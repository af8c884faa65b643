import pino from 'pino'
import { setUpAdyen } from '../../../../test/adyen/set-up.ts'
import { type ChannelUnderTest, channelConformance } from '../../../../test/payouts/channel-conformance.ts'
import { preparePayments } from '../../../../test/payouts/prepared-payments.ts'
import { payoutTasks } from '../../tasks.ts'

type Outcome = Parameters<ChannelUnderTest['payment']>[0]

const ends = {
  paid: [{ status: 'authorised' }, { status: 'booked' }],
  failed: [{ status: 'authorised' }, { status: 'failed', reason: 'counterpartyAccountClosed' }],
  returned: [
    { status: 'authorised' },
    { status: 'booked' },
    { status: 'returned', reason: 'refusedByCounterpartyBank' },
  ],
}

// With notifications, and without any, when polling alone must find everything.
for (const hasNotifications of [true, false]) {
  channelConformance(
    `of Adyen ${hasNotifications ? 'with' : 'without'} notifications`,
    async (): Promise<ChannelUnderTest> => {
      const { harness, service, rail, stop } = await setUpAdyen({ hasNotifications })
      const prepared = await preparePayments(harness, { rail: rail.name, count: rail.paymentsMax + 50 })
      const wanted = new Map<string, Outcome>()
      service.decide(({ reference }) => [...ends[wanted.get(reference) ?? 'paid']])
      return {
        rail,
        restriction: 'account_refused',
        payment(outcome) {
          const payment = prepared.pop()
          if (payment === undefined) throw new Error('More payments are needed')
          wanted.set(payment.reference, outcome)
          return payment
        },
        async letTimeGoBy() {
          await service.settle()
          harness.clock.advance({ days: 1 })
          if (hasNotifications) return
          const context = { db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now }
          await payoutTasks([rail])['read-bank-files'](context)
        },
        executed: async reference => service.paid(reference),
        stop,
      }
    },
  )
}

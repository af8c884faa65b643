import pino from 'pino'
import { euroRail, FileBank } from '../../../test/banks/file-bank.ts'
import { startHarness } from '../../../test/harness/harness.ts'
import { type ChannelUnderTest, channelConformance } from '../../../test/payouts/channel-conformance.ts'
import { preparePayments } from '../../../test/payouts/prepared-payments.ts'
import { fileChannel } from '../channels/files/channel.ts'
import { payoutTasks } from '../tasks.ts'

type Outcome = Parameters<ChannelUnderTest['payment']>[0]

channelConformance('of files', async (): Promise<ChannelUnderTest> => {
  const harness = await startHarness()
  const { db, clock, stop } = harness
  const bank = new FileBank()
  const settings = euroRail({ delivery: async () => bank })
  const rail = fileChannel({ db, now: clock.now, settings })
  const tasks = payoutTasks([rail])
  const context = { db, log: pino({ level: 'silent' }), now: clock.now }
  const prepared = await preparePayments(harness, { rail: settings.name, count: rail.paymentsMax + 50 })
  const wanted = new Map<string, Outcome>()
  const answered = new Set<string>()
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
      // Beyond any cut-off, even over Easter.
      clock.advance({ days: 6 })
      await tasks['send-payout-batches'](context)
      const lines = [...bank.payments().keys()]
        .filter(reference => !answered.has(reference))
        .flatMap(reference => {
          answered.add(reference)
          const outcome = wanted.get(reference)
          if (outcome === 'failed') return [`failed;${reference};;AC04`]
          return [`paid;${reference}`, ...(outcome === 'returned' ? [`returned;${reference};;MS03`] : [])]
        })
      bank.inbox.set('answers.txt', [`head;${clock.now().toISOString()}`, ...lines, 'end'].join('\n'))
      await tasks['read-bank-files'](context)
    },
    async executed(reference) {
      // A refused payment is in a file, but is not executed.
      return wanted.get(reference) === 'failed' ? 0 : (bank.payments().get(reference)?.length ?? 0)
    },
    stop,
  }
})

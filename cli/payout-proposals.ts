import { Command } from 'commander'
import { isIdOf } from '../src/kernel/ids.ts'
import { systemClock } from '../src/main.ts'
import { findPayout } from '../src/payouts/books/decided-payments.ts'
import { confirmProposal } from '../src/payouts/books/decisions-of-two.ts'
import * as exceptions from '../src/payouts/books/exceptions.ts'
import { listOpenProposals, withdrawProposal } from '../src/payouts/books/proposals.ts'
import { asOption, loginOf, personOf, recordChange } from './actor.ts'
import { examples } from './help.ts'
import { printResult, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const payoutProposalsCommand = new Command('proposals').description(
  'Decisions about exceptions and payments that wait for a second person: list, confirm and withdraw them.',
)

// More proposals wait only if decisions stay unconfirmed.
const shownMax = 1_000

payoutProposalsCommand
  .command('list')
  .description('List decisions that wait for a second person: the proposal, its author, time and reason.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts proposals list'))
  .action(async (options: { json?: boolean }) => {
    const found = await withDatabase(async db => await listOpenProposals(db, { take: shownMax }))
    printResult(options, {
      value: { proposals: found },
      text: () =>
        table(
          found.map(({ subject, rail, decision, note, person, proposedAt }) => ({
            subject,
            rail,
            decision,
            'proposed by': person,
            at: proposedAt.toISOString(),
            why: note,
          })),
        ),
    })
  })

type Given = { as?: string; json?: boolean }

payoutProposalsCommand
  .command('confirm')
  .description('Carry out exactly what another person has proposed by command.')
  .argument('<subject>', 'the exception’s id pex_…, or the payment reference MM…')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts proposals confirm pex_…', 'payouts proposals confirm MMK7Q2MZ4TB5XJ3A'))
  .action(async (subject: string, { as, json }: Given) => {
    const now = systemClock()
    await withTransaction(async (tx, { MIDMONTH_APPROVAL_LOGINS }) => {
      const person = personOf(as)
      const by = { person, login: loginOf(), mayShareLogin: MIDMONTH_APPROVAL_LOGINS === 'any' }
      const { partnerId, decision, ...about } = await confirmProposal(tx, { subject, by, now })
      const details = { person, decision, isConfirmed: true }
      const change =
        'exceptionId' in about
          ? ({ action: 'payout_exception.close', resourceId: subject, details } as const)
          : ({ action: 'payout.outcome', resourceId: about.withdrawalId, details } as const)
      await recordChange(tx, { partnerId, change, now })
    })
    printResult({ json }, { value: { subject }, text: () => `The decision about ${subject} is carried out.` })
  })

payoutProposalsCommand
  .command('withdraw')
  .description('Withdraw a proposed decision or outcome.')
  .argument('<subject>', 'the exception’s id pex_…, or the payment reference MM…')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts proposals withdraw MMK7Q2MZ4TB5XJ3A'))
  .action(async (subject: string, { as, json }: Given) => {
    const now = systemClock()
    await withTransaction(async tx => {
      const person = personOf(as)
      const { decision, person: proposedBy } = await withdrawProposal(tx, { subject, person, now })
      const details = { person, decision, proposedBy }
      if (isIdOf('payoutException', subject)) {
        const [exception] = await exceptions.list(tx, { id: subject, take: 1 })
        const change = { action: 'payout_exception.withdraw', resourceId: subject, details } as const
        await recordChange(tx, { partnerId: exception?.partnerId ?? null, change, now })
        return
      }
      const { partnerId, withdrawalId } = await findPayout(tx, subject)
      const change = { action: 'payout.withdraw_outcome', resourceId: withdrawalId, details } as const
      await recordChange(tx, { partnerId, change, now })
    })
    printResult({ json }, { value: { subject }, text: () => `The decision about ${subject} is withdrawn.` })
  })

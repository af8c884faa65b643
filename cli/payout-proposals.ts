import { Command } from 'commander'
import { asOption } from './actor.ts'
import { examples } from './help.ts'
import { withOperators } from './operator-client.ts'
import { takeMax } from './paging.ts'
import { printResult, table } from './print.ts'

const operations = () => import('../src/operators/proposal-operations.ts')

export const payoutProposalsCommand = new Command('proposals').description(
  'Decisions about exceptions and payments that wait for a second person: list, confirm and withdraw them.',
)

payoutProposalsCommand
  .command('list')
  .description('List decisions that wait for a second person: the proposal, its author, time and reason.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts proposals list'))
  .action(async options => {
    // More proposals wait only if decisions stay unconfirmed.
    const page = await withOperators(options, operations, async api => api.listPayoutProposals({ take: takeMax }))
    printResult(options, {
      value: page,
      text: () =>
        table(
          page.proposals.map(({ subject, rail, decision, note, person, proposedAt }) => ({
            subject,
            rail,
            decision,
            'proposed by': person,
            at: proposedAt,
            why: note,
          })),
        ),
    })
  })

for (const { verb, description, example, done } of [
  {
    verb: 'confirm',
    description: 'Carry out exactly what another person has proposed by command.',
    example: ['payouts proposals confirm pex_…', 'payouts proposals confirm MMK7Q2MZ4TB5XJ3A'],
    done: 'carried out',
  },
  {
    verb: 'withdraw',
    description: 'Withdraw a proposed decision or outcome.',
    example: ['payouts proposals withdraw MMK7Q2MZ4TB5XJ3A'],
    done: 'withdrawn',
  },
] as const)
  payoutProposalsCommand
    .command(verb)
    .description(description)
    .argument('<subject>', 'the exception’s id pex_…, or the payment reference MM…')
    .addOption(asOption())
    .option('--json', 'print JSON')
    .addHelpText('after', examples(...example))
    .action(async (subject: string, options) => {
      const settled = await withOperators(options, operations, api => api[`${verb}PayoutProposal`](subject))
      printResult(options, { value: settled, text: () => `The decision about ${subject} is ${done}.` })
    })

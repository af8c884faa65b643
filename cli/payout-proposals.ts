import { asOption } from './actor.ts'
import { OperatorCommand } from './operator-client.ts'
import { takeMax } from './paging.ts'
import { table } from './print.ts'

const operations = () => import('../src/operators/proposal-operations.ts')

export const payoutProposalsCommand = new OperatorCommand('proposals', operations).description(
  'Decisions about exceptions and payments that wait for a second person: list, confirm and withdraw them.',
)

payoutProposalsCommand
  .command('list')
  .description('List decisions that wait for a second person: the proposal, its author, time and reason.')
  .examples('payouts proposals list')
  .prints(
    api => api.listPayoutProposals({ take: takeMax }),
    page =>
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
  )

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
    .examples(...example)
    .prints(
      (api, subject: string) => api[`${verb}PayoutProposal`](subject),
      (_, subject) => `The decision about ${subject} is ${done}.`,
    )

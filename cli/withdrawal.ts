import { Option } from 'commander'
import type {
  InspectedWithdrawal,
  InspectedWithdrawalDetails,
  MemberId,
  PartnerId,
  WithdrawalId,
  WithdrawalStatus,
} from '../packages/console/src/generated/operator.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, OperatorCommand, type OperatorOptions } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { sheet, table } from './print.ts'

const operations = () => import('../src/operators/withdrawal-operations.ts')

export const withdrawalCommand = new OperatorCommand('withdrawal', operations).description(
  'Inspect withdrawals across all partners.',
)

withdrawalCommand
  .command('show')
  .description('Show a withdrawal: its status history, its amounts and when the bank is contacted next.')
  .argument('<withdrawal>', 'the withdrawal’s id, w_…')
  .examples('withdrawal show w_…')
  .prints(
    (api, withdrawalId: WithdrawalId) => api.inspectWithdrawal(withdrawalId),
    found => `${inWords(found)}\n\n${table(found.timeline)}`,
  )

const statuses = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled'] as const

addPaging(
  withdrawalCommand
    .command('list')
    .description('List withdrawals, newest first.')
    .option(
      '--stuck',
      'only withdrawals that need attention, with the reason; by real time without --partner or --member, by the partner’s clock with them',
    )
    .addOption(new Option('--status <status...>', 'only withdrawals with these statuses').choices(statuses))
    .option('--partner <partner>', 'only withdrawals of this partner')
    .option('--member <member>', 'only withdrawals of this member'),
  'withdrawal',
)
  .examples('withdrawal list --stuck', 'withdrawal list --status held submitted --partner par_… --json')
  .prints(
    (api, { stuck: isStuck, status, partner, member, before: after, take }: ListOptions) =>
      api.listWithdrawals({ isStuck, statuses: status, partnerId: partner, memberId: member, after, take }),
    found => inTable(found.withdrawals) + nextPage(found.withdrawals, found),
  )

type ListOptions = OperatorOptions & {
  json?: boolean
  stuck?: boolean
  status?: WithdrawalStatus[]
  partner?: PartnerId
  member?: MemberId
  take: number
  before?: WithdrawalId
}

addServerOptions(withdrawalCommand)

function inWords({ stuck, amount, fee, employerFee, netAmount, ...rest }: InspectedWithdrawalDetails): string {
  return sheet({
    id: rest.id,
    partner: rest.partnerId,
    member: rest.memberId,
    status: rest.status,
    stuck: stuck ?? 'no',
    amount: moneyInWords(amount),
    fee: moneyInWords(fee),
    'employer fee': moneyInWords(employerFee),
    net: moneyInWords(netAmount),
    'balance after': moneyInWords(rest.balanceAfter),
    account: `…${rest.bankAccount.lastFour}`,
    intent: rest.withdrawalIntentId,
    'pay cycle': rest.payCycleId,
    'adjusted in': rest.adjustedInCycleId,
    created: rest.createdAt,
    'next step due': rest.dueAt,
    'bank attempts': rest.attempts,
    'payment reference': rest.paymentReference,
    'expected by': rest.expectedAt,
  })
}

export function inTable(found: InspectedWithdrawal[]): string {
  return table(
    found.map(({ id, partnerId, memberId, status, netAmount, createdAt, attempts, stuck }) => ({
      id,
      partner: partnerId,
      member: memberId,
      status,
      net: moneyInWords(netAmount),
      created: createdAt,
      'bank attempts': attempts,
      stuck,
    })),
  )
}

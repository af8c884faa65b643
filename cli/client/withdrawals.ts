import { Command, Option } from 'commander'
import type {
  LoggedRequest,
  MemberId,
  WithdrawalDelivery,
  WithdrawalDetails,
  WithdrawalId,
  WithdrawalIntentExplanation,
  WithdrawalStatus,
  WithdrawalTimeline,
  WithdrawalWithStatus,
} from '../../packages/sdk/src/generated/schemas.ts'
import { enumOf } from '../contract.ts'
import { examples } from '../help.ts'
import { type SheetRow, sheet, table } from '../print.ts'
import { writeLine } from '../terminal.ts'
import { whole } from '../whole.ts'
import { idOf, inWords, memberArgument, memberOf } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { printJson, printList } from './output.ts'

type Options = Address & { json?: boolean }

export const withdrawalsCommand = new Command('withdrawals')

addConnectionOptions(withdrawalsCommand.command('list'))
  .description('List withdrawals, newest first.')
  .option('--member <member>', 'only withdrawals of a member: the id, mem_…, or the e-mail', memberArgument)
  .addOption(
    new Option('--status <statuses...>', 'only withdrawals with these statuses').choices(enumOf('WithdrawalStatus')),
  )
  .option('--from <day>', 'only withdrawals made on this day or later, such as 2026-03-31')
  .option('--to <day>', 'only withdrawals made before this day')
  .option('--take <n>', 'how many to show, up to 1,000', whole({ min: 1, max: 1_000 }), 50)
  .option('--before <withdrawal>', 'only withdrawals made before this one; for the next page', idOf('w'))
  .option('--all', 'show every page')
  .option('--json', 'print the response of the API; with --all, a line of JSON per withdrawal')
  .addHelpText('after', examples('withdrawals list', 'withdrawals list --status failed returned --all --json'))
  .action(async (options: Options & ListFilter) => {
    const { member, status, from: fromDate, to: toDate, take, before } = options
    const midmonth = await connect(options)
    const memberId: MemberId | undefined = member === undefined ? undefined : await memberOf(midmonth, member)
    const query = { memberId, statuses: status, fromDate, toDate, take, ...(before === undefined ? {} : { before }) }
    const list = midmonth.withdrawals.list(query)
    await printList(list, options, withdrawalRow)
  })

type ListFilter = {
  member?: string
  status?: WithdrawalStatus[]
  from?: string
  to?: string
  take: number
  before?: WithdrawalId
  all?: boolean
}

addConnectionOptions(withdrawalsCommand.command('show'))
  .description('Show the history of a withdrawal: the requests, the decision, the bank’s answers, and the webhooks.')
  .argument('<withdrawal>', 'the id, w_…', idOf('w'))
  .option('--json', 'print the responses of the API')
  .addHelpText('after', examples('withdrawals show w_…', 'withdrawals show w_… --json'))
  .action(async (withdrawalId: WithdrawalId, options: Options) => {
    const midmonth = await connect(options)
    const [withdrawal, timeline] = await Promise.all([
      midmonth.withdrawals.get(withdrawalId),
      midmonth.withdrawals.getTimeline(withdrawalId),
    ])
    if (options.json) printJson({ withdrawal, timeline })
    else printTimeline(withdrawal, timeline)
  })

function printTimeline(
  withdrawal: WithdrawalDetails,
  { steps, explanation, requests, deliveries }: WithdrawalTimeline,
) {
  writeLine(sheet(withdrawalSheet(withdrawal)))
  section('Requests', requests?.map(requestRow))
  section('Decision', explanation.rules.map(ruleRow))
  section('Bank', steps.map(stepRow))
  section('Webhooks', deliveries?.map(deliveryRow))
}

function section(title: string, rows: SheetRow[] = []): void {
  writeLine(`\n${title}`)
  writeLine(table(rows))
}

function withdrawalRow({ id, memberId, status, amount, netAmount, createdAt, reason }: WithdrawalWithStatus): SheetRow {
  return {
    withdrawal: id,
    member: memberId,
    status,
    amount: inWords(amount),
    arrives: inWords(netAmount),
    created: createdAt,
    reason,
  }
}

function withdrawalSheet(withdrawal: WithdrawalDetails): SheetRow {
  const { id, memberId, payCycleId, status, amount, fee, netAmount, balanceAfter } = withdrawal
  const { bankAccount, createdAt, expectedAt, paymentReference, withdrawalIntentId } = withdrawal
  return {
    id,
    member: memberId,
    status,
    amount: inWords(amount),
    fee: inWords(fee),
    arrives: `${inWords(netAmount)} to …${bankAccount.lastFour}`,
    'balance after': inWords(balanceAfter),
    intent: withdrawalIntentId,
    'pay cycle': payCycleId,
    created: createdAt,
    'expected by': expectedAt,
    'payment reference': paymentReference,
  }
}

function requestRow({ createdAt, method, path, status, replayed, requestId }: LoggedRequest): SheetRow {
  return {
    at: createdAt,
    request: `${method} ${path}`,
    status,
    replayed: replayed ? 'yes' : null,
    'request id': requestId,
  }
}

function ruleRow({ rule, amount, because }: WithdrawalIntentExplanation['rules'][number]): SheetRow {
  return { rule, amount: inWords(amount), because }
}

function stepRow({ at, status, reason }: WithdrawalTimeline['steps'][number]): SheetRow {
  return { at, status, reason }
}

function deliveryRow({ createdAt, type, url, state, attemptCount, nextAttemptAt }: WithdrawalDelivery): SheetRow {
  return { event: createdAt, type, url, state, attempts: attemptCount, 'next attempt': nextAttemptAt }
}

import { Command, Option } from 'commander'
import { ApiError } from '../../packages/sdk/src/errors.ts'
import type {
  Event,
  LoggedRequest,
  MemberId,
  WebhookDelivery,
  WithdrawalDetails,
  WithdrawalId,
  WithdrawalIntentExplanation,
  WithdrawalStatus,
  WithdrawalWithStatus,
} from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
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
    const life = await readLife(await connect(options), withdrawalId)
    if (options.json) printJson(life)
    else printLife(life)
  })

type Delivery = WebhookDelivery & { webhookId: string; url: string }

/** The API's responses about a withdrawal. Null for responses that the key may not see, or that are no longer kept. */
type Life = {
  withdrawal: WithdrawalDetails
  explanation: WithdrawalIntentExplanation | null
  requests: LoggedRequest[] | null
  deliveries: Delivery[] | null
}

async function readLife(midmonth: Midmonth, withdrawalId: WithdrawalId): Promise<Life> {
  const withdrawal = await midmonth.withdrawals.get(withdrawalId)
  const [explanation, requests, deliveries] = await Promise.all([
    visible(midmonth.withdrawals.explainIntent(withdrawal.withdrawalIntentId)),
    visible(readRequests(midmonth, withdrawal)),
    visible(readDeliveries(midmonth, withdrawal)),
  ])
  return { withdrawal, explanation, requests, deliveries }
}

/** The response, or null if the key lacks the scope or the service no longer has it. */
async function visible<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return null
    throw error
  }
}

// More than one run of a client makes of one withdrawal.
const requestsMax = 100

async function readRequests(
  midmonth: Midmonth,
  { id, withdrawalIntentId }: WithdrawalDetails,
): Promise<LoggedRequest[]> {
  const pages = await Promise.all(
    [withdrawalIntentId, id].map(resourceId => midmonth.requests.list({ resourceId, take: requestsMax })),
  )
  return pages.flatMap(({ requests }) => requests.toReversed())
}

// The feed has no filter by resource, so it is searched: 30 days of a partner with 10,000 changes of withdrawals in them.
const eventsSearchedMax = 10_000
const endpointsMax = 20

/** The deliveries of the events of a withdrawal. Null if the feed is too long to search. */
async function readDeliveries(midmonth: Midmonth, withdrawal: WithdrawalDetails): Promise<Delivery[] | null> {
  const { webhooks } = await midmonth.webhooks.list({ take: endpointsMax })
  if (webhooks.length === 0) return []
  const events = await findEvents(midmonth, withdrawal)
  if (events === null) return null
  const found = webhooks.map(async ({ id: webhookId, url }) => {
    const pages = await Promise.all(
      events.map(({ id: eventId }) => midmonth.webhooks.listDeliveries(webhookId, { eventId })),
    )
    return pages.flatMap(({ deliveries }) => deliveries.map(delivery => ({ ...delivery, webhookId, url })))
  })
  return (await Promise.all(found)).flat()
}

async function findEvents(midmonth: Midmonth, { id, timeline }: WithdrawalDetails): Promise<Event[] | null> {
  const types = timeline.map(({ status }) => `withdrawal.${status}` as const)
  const found: Event[] = []
  let searched = 0
  for await (const event of midmonth.events.list({ types, take: 1_000 })) {
    if ('withdrawalId' in event.data && event.data.withdrawalId === id) found.push(event)
    // Each status is entered once.
    if (found.length === timeline.length) return found
    searched += 1
    if (searched >= eventsSearchedMax) return null
  }
  return found
}

function printLife({ withdrawal, explanation, requests, deliveries }: Life): void {
  writeLine(sheet(withdrawalSheet(withdrawal)))
  section('Requests', requests?.map(requestRow), 'not kept, or not visible with this key')
  section('Decision', explanation?.rules.map(ruleRow), 'not kept, or not visible with this key')
  section('Bank', withdrawal.timeline.map(timelineRow))
  section('Webhooks', deliveries?.map(deliveryRow), 'not visible with this key, or the feed is too long to search')
}

function section(title: string, rows: SheetRow[] | undefined, otherwise = ''): void {
  writeLine(`\n${title}`)
  writeLine(rows === undefined ? `(${otherwise})` : table(rows))
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

function timelineRow({ at, status, reason }: WithdrawalDetails['timeline'][number]): SheetRow {
  return { at, status, reason }
}

function deliveryRow({ createdAt, type, url, state, attemptCount, nextAttemptAt }: Delivery): SheetRow {
  return { event: createdAt, type, url, state, attempts: attemptCount, 'next attempt': nextAttemptAt }
}

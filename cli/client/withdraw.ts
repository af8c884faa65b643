import { randomUUID } from 'node:crypto'
import { Command, InvalidArgumentError } from 'commander'
import { ApiError, ConnectionError } from '../../packages/sdk/src/errors.ts'
import type {
  MemberId,
  Money,
  WithdrawalDetails,
  WithdrawalIntent,
  WithdrawalIntentId,
} from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { asSentence } from '../../src/kernel/text.ts'
import { ask, isInteractive } from '../ask.ts'
import { examples } from '../help.ts'
import { sheet } from '../print.ts'
import { writeErrorLine, writeLine } from '../terminal.ts'
import { accountOf, amountArgument, amountOf, inWords, memberArgument, memberOf } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { ForeignAnswer, Unavailable, UnknownOutcome, WrongUsage } from './failure.ts'
import { printJson } from './output.ts'

type Options = Address & { yes?: boolean; idempotencyKey?: string; json?: boolean }

export const withdrawCommand = addConnectionOptions(new Command('withdraw'))
  .argument('<member>', 'the id, mem_…, or the e-mail', memberArgument)
  .argument(
    '<amount>',
    'the amount that leaves the member’s pay, with all decimals of their currency, such as 50.00',
    amountArgument,
  )
  .option('--yes', 'skip the confirmation')
  .option('--idempotency-key <key>', 'repeat an interrupted run with the key that it printed', idempotencyKey)
  .option('--json', 'print the response of the API')
  .addHelpText(
    'after',
    `${examples('withdraw sam.okafor@example.com 50.00', 'withdraw mem_… 50.00 --yes --json')}

Each run has one idempotency key, which is printed first. If the run is interrupted, repeat it with the same member, amount and
key, for up to seven days: the run shows what happened, or continues, and never pays twice. A run without a key is a new withdrawal.`,
  )
  .action(async (given: string, amount: string, options: Options) => {
    if (!options.yes && !isInteractive())
      throw new WrongUsage('Confirmation needs a terminal; nothing was withdrawn. Add --yes to withdraw without it')
    const midmonth = await connect(options)
    const { withdrawal, isReplayed } = await withdraw(midmonth, { given, amount, options })
    if (options.json) return printJson(withdrawal)
    if (isReplayed) writeErrorLine('The withdrawal was made by an earlier run with this key; nothing was paid again.')
    writeLine(sheet(resultOf(withdrawal)))
  })

async function withdraw(
  midmonth: Midmonth,
  { given, amount: text, options }: { given: string; amount: string; options: Options },
): Promise<{ withdrawal: WithdrawalDetails; isReplayed: boolean }> {
  const memberId = await memberOf(midmonth, given)
  const { available } = await midmonth.members.getBalance(memberId)
  const amount = amountOf(text, available.currency)
  const key = options.idempotencyKey ?? `midmonth-withdraw-${randomUUID()}`
  writeErrorLine(`Idempotency key: ${key}`)
  const quoted = await quote(midmonth, { memberId, amount, key })
  // The stored response shows the intent as it was.
  const intent = quoted.isReplayed ? await midmonth.withdrawals.getIntent(quoted.body.withdrawalIntentId) : quoted.body
  const { withdrawalIntentId } = intent
  if (intent.status !== 'completed') await confirm(intent, options)
  return await complete(midmonth, { withdrawalIntentId, key })
}

/** @throws Unavailable if the response is lost: a quote moves no money, so nothing is in doubt */
async function quote(
  midmonth: Midmonth,
  { memberId, amount, key }: { memberId: MemberId; amount: Money; key: string },
) {
  try {
    return await midmonth.withdrawals
      .createIntent({ memberId, amount }, { idempotencyKey: `${key} quote` })
      .withResponse()
  } catch (error) {
    if (!isLost(error)) throw error
    throw new Unavailable(
      `${asSentence(error.message)} This run withdrew nothing: run the same command with --idempotency-key '${key}'`,
      { cause: error },
    )
  }
}

/** @throws Error if the quote cannot be completed, or is declined */
async function confirm(intent: WithdrawalIntent, { yes }: Options): Promise<void> {
  if (intent.status !== 'pending')
    throw new Error(`The quote of this key is ${intent.status}; nothing was withdrawn. Run the command without the key`)
  writeErrorLine(sheet(quoteOf(intent)))
  if (!yes && !(await ask('Withdraw it?'))) throw new Error('Nothing was withdrawn')
}

async function complete(
  midmonth: Midmonth,
  { withdrawalIntentId, key }: { withdrawalIntentId: WithdrawalIntentId; key: string },
): Promise<{ withdrawal: WithdrawalDetails; isReplayed: boolean }> {
  try {
    const { body, isReplayed } = await midmonth.withdrawals
      .complete({ withdrawalIntentId }, { idempotencyKey: `${key} complete` })
      .withResponse()
    return { withdrawal: body, isReplayed }
  } catch (error) {
    if (!isLost(error)) throw error
    throw new UnknownOutcome(
      `${asSentence(error.message)} The withdrawal may or may not have been made: run the same command with --idempotency-key '${key}', which never pays twice`,
      { cause: error },
    )
  }
}

function isLost(error: unknown): error is Error {
  return (
    error instanceof ConnectionError ||
    error instanceof ForeignAnswer ||
    (error instanceof ApiError && error.status >= 500)
  )
}

function quoteOf(intent: WithdrawalIntent) {
  const { memberId, amount, fee, netAmount, accountDetails, payeeName, tier, expiresAt } = intent
  return {
    member: memberId,
    amount: inWords(amount),
    fee: `${inWords(fee)} (tier ${tier})`,
    arrives: inWords(netAmount),
    'to account': `${accountOf(accountDetails)} of ${accountDetails.accountHolder}`,
    'name at the bank': payeeName,
    'valid until': expiresAt,
  }
}

function resultOf({ id, status, amount, fee, netAmount, balanceAfter, bankAccount, expectedAt }: WithdrawalDetails) {
  return {
    withdrawal: id,
    status,
    amount: inWords(amount),
    fee: inWords(fee),
    arrives: `${inWords(netAmount)} to …${bankAccount.lastFour}`,
    'expected by': expectedAt,
    'still available': inWords(balanceAfter),
  }
}

// The API takes 1,024 characters, of which the command needs a few to tell the quote from its completion.
function idempotencyKey(text: string): string {
  if (!/^[\x21-\x7e]{1,1000}$/.test(text))
    throw new InvalidArgumentError('Use up to 1,000 printable characters without spaces.')
  return text
}

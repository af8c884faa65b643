import { setTimeout as pause } from 'node:timers/promises'
import { Command, Option } from 'commander'
import type {
  BankReason,
  Currency,
  SandboxBankFault,
  SandboxClock,
  SandboxScenario,
  WithdrawalId,
} from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { enumOf } from '../contract.ts'
import { examples } from '../help.ts'
import { table } from '../print.ts'
import { writeErrorLine, writeLine } from '../terminal.ts'
import { whole } from '../whole.ts'
import { amountArgument, amountOf, idOf, inWords, memberArgument, memberOf } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { WrongUsage } from './failure.ts'
import { printJson } from './output.ts'

type Options = Address & { json?: boolean }
type Move = Parameters<Midmonth['sandbox']['clock']['move']>[0]

export const sandboxCommand = new Command('sandbox').addHelpText(
  'after',
  '\nA live installation has none of these. Everything else that a sandbox can do is in midmonth api sandbox.…',
)

subcommand('clock', 'Show the clock, or move it forward and wait until everything that falls due is done.')
  .option('--by <duration>', 'move by a duration such as P3D or PT15M')
  .option('--to <instant>', 'move to an instant, such as 2026-03-31T09:00:00Z')
  .addOption(
    new Option('--next <event>', 'move to the next time that this falls due').choices([
      'pay_run_available',
      'intent_expiry',
      'withdrawal_submission',
      'cycle_close',
      'bank_report',
    ]),
  )
  .addHelpText('after', examples('sandbox clock', 'sandbox clock --by P3D', 'sandbox clock --next cycle_close'))
  .action(async ({ by, to, next, ...options }: Options & { by?: string; to?: string; next?: string }) => {
    const moves = Object.entries({ by, to, next }).filter(([, value]) => value !== undefined)
    if (moves.length > 1) throw new WrongUsage('Give only one of --by, --to and --next')
    const midmonth = await connect(options)
    // The service checks the value.
    if (moves.length === 1) await midmonth.sandbox.clock.move(Object.fromEntries(moves) as Move)
    const clock = await awaitStill(midmonth)
    if (options.json) printJson(clock)
    else printClock(clock, { hasMoved: moves.length === 1 })
  })

subcommand('seed', 'Start again with a scenario. Deletes everything that the partner has.')
  .addArgument(new Command().createArgument('<scenario>').choices(enumOf('SandboxScenario')))
  .addHelpText('after', examples('sandbox seed mid_cycle'))
  .action(async (scenario: SandboxScenario, options: Options) => {
    const seeded = await (await connect(options)).sandbox.seed({ scenario })
    report(options, seeded, `The sandbox has the scenario ${seeded.scenario}, with ${seeded.members} members.`)
  })

subcommand('reset', 'Delete everything that the partner has, and set the clock back. Settings, tiers and keys stay.')
  .addHelpText('after', examples('sandbox reset'))
  .action(async (options: Options) => {
    report(
      options,
      await (await connect(options)).sandbox.reset(),
      'The sandbox is empty. Fill it again with midmonth sandbox seed mid_cycle.',
    )
  })

for (const [verb, description] of [
  ['submit', 'Let the bank accept the payment of a withdrawal and report nothing.'],
  ['pay', 'Let the bank report a withdrawal as paid.'],
  ['fail', 'Let the bank refuse a withdrawal.'],
  ['return', 'Let the bank send a payment back.'],
  ['hold', 'Let the bank report nothing about a withdrawal until another instruction.'],
] as const) {
  const command = subcommand(verb, description).argument('<withdrawal>', 'the id, w_…', idOf('w'))
  if (verb === 'fail' || verb === 'return')
    command.addOption(new Option('--reason <code>', 'an ISO 20022 reason').choices(enumOf('BankReason')))
  command
    .addHelpText('after', examples(`sandbox ${verb} w_…${verb === 'return' ? ' --reason AC04' : ''}`))
    .action(async (withdrawalId: WithdrawalId, { reason, ...options }: Options & { reason?: BankReason }) => {
      const midmonth = await connect(options)
      const withdrawal = await midmonth.sandbox.withdrawals[verb](withdrawalId, reason === undefined ? {} : { reason })
      report(options, withdrawal, `The withdrawal is ${withdrawal.status}.`)
    })
}

subcommand('fault', 'Make something go wrong with the next payments at the bank.')
  .addArgument(new Command().createArgument('<fault>').choices(enumOf('SandboxBankFault')))
  .option('--count <n>', 'how many times', whole({ min: 1, max: 1_000 }), 1)
  .addHelpText('after', examples('sandbox fault timeout --count 2'))
  .action(async (next: SandboxBankFault, { count, ...options }: Options & { count: number }) => {
    const faults = await (await connect(options)).sandbox.bank.addFault({ next, count })
    report(options, faults, `The bank will have the fault ${next} ${count === 1 ? 'once' : `${count} times`}.`)
  })

subcommand('fund', 'Give a member pay that is available immediately.')
  .argument('<member>', 'the id, mem_…, or the e-mail', memberArgument)
  .argument('<amount>', 'with all decimals of the member’s currency, such as 500.00', amountArgument)
  .addHelpText('after', examples('sandbox fund sam.okafor@example.com 500.00'))
  .action(async (given: string, text: string, options: Options) => {
    const midmonth = await connect(options)
    const memberId = await memberOf(midmonth, given)
    const { available } = await midmonth.members.getBalance(memberId)
    const funded = await midmonth.sandbox.members.fund(memberId, { amount: amountOf(text, available.currency) })
    report(options, funded, `${inWords(funded.available)} available.`)
  })

subcommand('float', 'Add money to the float.')
  .argument('<amount>', 'with all decimals of the currency, such as 10000.00', amountArgument)
  .argument('<currency>', 'such as GBP')
  .addHelpText('after', examples('sandbox float 10000.00 GBP'))
  .action(async (text: string, currency: Currency, options: Options) => {
    const { sandbox } = await connect(options)
    const { free, ...rest } = await sandbox.fundFloat({ amount: amountOf(text, currency) })
    report(options, { ...rest, free }, `${inWords(free)} free in the float.`)
  })

subcommand('pause', 'Refuse withdrawals.')
  .addHelpText('after', examples('sandbox pause'))
  .action(async (options: Options) => {
    report(options, await (await connect(options)).sandbox.pause(), 'Withdrawals are refused.')
  })

subcommand('resume', 'Accept withdrawals again.')
  .addHelpText('after', examples('sandbox resume'))
  .action(async (options: Options) => {
    report(options, await (await connect(options)).sandbox.resume(), 'Withdrawals are accepted.')
  })

function subcommand(name: string, description: string): Command {
  const command = addConnectionOptions(sandboxCommand.command(name)).description(description)
  return command.option('--json', 'print the response of the API')
}

function report({ json }: Options, answer: object, sentence: string): void {
  if (json) printJson(answer)
  else writeLine(sentence)
}

// The interval of polling a moving clock. A long move takes minutes.
const pollMs = 500

async function awaitStill(midmonth: Midmonth): Promise<SandboxClock> {
  let clock = await midmonth.sandbox.clock.get()
  if (clock.status === 'Moving') writeErrorLine('The clock is moving.')
  while (clock.status === 'Moving') {
    await pause(pollMs)
    clock = await midmonth.sandbox.clock.get()
  }
  return clock
}

function printClock({ now, aheadSeconds, lastMove }: SandboxClock, { hasMoved }: { hasMoved: boolean }): void {
  writeLine(aheadSeconds === 0 ? `${now}, the real time` : `${now}, ${aheadSeconds} seconds ahead of real time`)
  if (!hasMoved || lastMove === null || lastMove.ran.length === 0) return
  writeLine()
  writeLine(table(lastMove.ran.map(work => ({ ...work }))))
}

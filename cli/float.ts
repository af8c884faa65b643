import type { PartnerId, PayCycleId, SettlementDue } from '../packages/console/src/generated/operator.ts'
import { type Currency, toWire } from '../src/kernel/money.ts'
import { currency, minorUnits, name } from './arguments.ts'
import * as balancesInWords from './bank-balances.ts'
import { inTable } from './float-table.ts'
import { moneyInWords, repeatedInWords } from './money.ts'
import { addServerOptions, OperatorCommand } from './operator-client.ts'
import { table } from './print.ts'

const operations = () => import('../src/operators/float-operations.ts')

export const floatCommand = new OperatorCommand('float', operations).description(
  'Manage the float, the money that funds withdrawals. Amounts are in minor units (pence, cents).',
)

floatCommand
  .command('show')
  .description(
    'Show a partner’s float in each currency: the balance, the pending and the free amount; the settlements whose money has not arrived; and the balance of the account that holds the float, as the bank states it.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('float show par_…')
  .prints(
    (api, partnerId: PartnerId) => api.getFloat(partnerId, { days: balancesInWords.daysDefault }),
    ({ floats, settlements, accountDays }) =>
      [
        inTable(floats),
        ...(settlements.length > 0 ? [duesInTable(settlements)] : []),
        ...(accountDays.length > 0 ? [balancesInWords.inTable(accountDays)] : []),
      ].join('\n\n'),
  )

for (const { verb, description, example } of [
  {
    verb: 'fund',
    description: 'Record money paid into the float.',
    example: 'float fund par_… GBP 5000000 --reference "bank transfer 2026-03-31"',
  },
  {
    verb: 'withdraw',
    description: 'Record money taken out of the float. Cannot exceed the free amount.',
    example: 'float withdraw par_… GBP 250000 --reference "sweep 2026-03-31"',
  },
  {
    verb: 'cover',
    description:
      'Record money that you have paid into the float to cover your costs (write-offs, charges). Cannot exceed the uncovered amount.',
    example: 'float cover par_… EUR 9950 --reference "cover of pex_…"',
  },
] as const) {
  floatCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .argument('<currency>', 'for example GBP', currency)
    .argument('<amount>', 'in minor units', minorUnits)
    .option(
      '--reference <text>',
      'your reference, for example the bank’s; running the command again with it does nothing',
      name({ lengthMax: 140 }),
    )
    .examples(example)
    .prints(
      (api, partnerId: PartnerId, code: Currency, units: bigint, { reference }) => {
        const amount = toWire({ amount: units, currency: code })
        return api[`${verb}Float`](partnerId, { amount, reference })
      },
      moved => [...repeatedInWords(moved.movement), inTable(moved.floats)].join('\n'),
    )
}

floatCommand
  .command('receive')
  .description(
    'Record money that has arrived for a settlement if no bank file reports it. If the employer is owed money, record that the employer was paid.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<payCycle>', 'the pay cycle’s id, pc_…; float show lists what is due')
  .argument('<currency>', 'for example EUR', currency)
  .argument('[amount]', 'in minor units; by default the whole amount due', minorUnits)
  .examples('float receive par_… pc_… EUR', 'float receive par_… pc_… EUR 250000')
  .prints(
    async (api, partnerId: PartnerId, payCycleId: PayCycleId, code: Currency, units: bigint | undefined) => {
      const { settlements } = await api.getFloat(partnerId)
      const due = settlements.find(each => each.payCycleId === payCycleId && each.due.currency === code)?.due
      // On the command line an amount has no sign: it was paid to the employer if the employer is owed money.
      const sign = due !== undefined && due.amount < 0 ? -1n : 1n
      const amount = units === undefined ? undefined : toWire({ amount: sign * units, currency: code })
      return await api.receiveFloat(partnerId, { payCycleId, currency: code, amount })
    },
    received => inTable(received.floats),
  )

floatCommand
  .command('floor')
  .description('Set the floor: withdrawals stop while the free amount is below it. "off" removes it.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units, or off', (text: string) => (text === 'off' ? null : minorUnits(text)))
  .examples('float floor par_… GBP 500000', 'float floor par_… GBP off')
  .prints(
    (api, partnerId: PartnerId, code: Currency, units: bigint | null) => {
      const floor = units === null ? null : toWire({ amount: units, currency: code })
      return api.setFloatFloor(partnerId, { currency: code, floor })
    },
    found => inTable(found.floats),
  )

addServerOptions(floatCommand)

function duesInTable(settlements: SettlementDue[]): string {
  return table(
    settlements.map(({ payCycleId, reference, amount, due, settledAt }) => ({
      'settled, not arrived': payCycleId,
      reference,
      amount: moneyInWords(amount),
      due: moneyInWords(due),
      'settled at': settledAt,
    })),
  )
}

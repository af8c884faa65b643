import { Command } from 'commander'
import type { Action } from '../src/audit-log/audit-log.ts'
import type { Reader } from '../src/database/database.ts'
import * as float from '../src/float/float.ts'
import { type Currency, inWords, toWire } from '../src/kernel/money.ts'
import { readRails } from '../src/main.ts'
import { accountDayOnWire, dueOnWire, floatOnWire } from '../src/operators/float-schema.ts'
import { findState } from '../src/partners/partners.ts'
import { listBalances } from '../src/payouts/books/balances.ts'
import { fileRailsOf } from '../src/payouts/channels/rail.ts'
import * as dues from '../src/settlements/dues.ts'
import { recordChange } from './actor.ts'
import { currency, minorUnits, name } from './arguments.ts'
import * as balancesInWords from './bank-balances.ts'
import { inTable } from './float-table.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const floatCommand = new Command('float')

floatCommand
  .command('show')
  .description(
    'Show a partner’s float in each currency: the balance, the pending and the free amount; the settlements whose money has not arrived; and the balance of the account that holds the float, as the bank states it.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('float show par_…'))
  .action(async (partnerId: string, options) => {
    const { floats, open, balances } = await withDatabase(async (db, settings) => {
      const found = await read(db, partnerId)
      const rails = fileRailsOf(await readRails(settings)).filter(rail =>
        found.some(each => each.currency === rail.currency),
      )
      const listed = rails.map(rail => listBalances(db, rail, { partnerId, daysMax: balancesInWords.daysDefault }))
      const open = await dues.listOpen(db, partnerId)
      return { floats: found, open, balances: (await Promise.all(listed)).flat() }
    })
    const dueOf = ({ currency: code }: float.Float) => open.filter(each => each.currency === code)
    const bankOf = ({ currency: code }: float.Float) => balances.filter(each => each.currency === code)
    printResult(options, {
      value: floats.map(each => ({
        ...floatOnWire(each),
        settlements: dueOf(each).map(dueOnWire),
        bank: bankOf(each).map(accountDayOnWire),
      })),
      text: () =>
        [
          inTable(floats.map(floatOnWire)),
          ...(open.length > 0 ? [duesInTable(open)] : []),
          ...(balances.length > 0 ? [balancesInWords.inTable(balances)] : []),
        ].join('\n\n'),
    })
  })

for (const { verb, action, description, example, move } of [
  {
    verb: 'fund',
    action: 'float.fund',
    description: 'Record money paid into the float.',
    example: 'float fund par_… GBP 5000000 --reference "bank transfer 2026-03-31"',
    move: float.fund,
  },
  {
    verb: 'withdraw',
    action: 'float.withdraw',
    description: 'Record money taken out of the float. Cannot exceed the free amount.',
    example: 'float withdraw par_… GBP 250000 --reference "sweep 2026-03-31"',
    move: float.withdraw,
  },
  {
    verb: 'cover',
    action: 'float.cover',
    description:
      'Record money that you have paid into the float to cover your costs (write-offs, charges). Cannot exceed the uncovered amount.',
    example: 'float cover par_… EUR 9950 --reference "cover of pex_…"',
    move: float.cover,
  },
] as const satisfies { action: Action; [name: string]: unknown }[]) {
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
    .option('--json', 'print JSON')
    .addHelpText('after', examples(example))
    .action(async (partnerId: string, code: Currency, units: bigint, { reference, json }) => {
      const amount = { amount: units, currency: code }
      const { moved, floats } = await withTransaction(async tx => {
        const now = await partnerNow(tx, partnerId)
        const done = await move(tx, { partnerId, amount, reference, now })
        const details = { amount: toWire(amount), reference: reference ?? null, movementId: done.movementId }
        const change = { action, resourceId: code, details }
        if (!done.isRepeated) await recordChange(tx, { partnerId, change, now })
        return { moved: done, floats: await read(tx, partnerId) }
      })
      const { movementId, at, isRepeated } = moved
      printResult(
        { json },
        {
          value: {
            movement: {
              id: movementId,
              amount: toWire(amount),
              reference: reference ?? null,
              at,
              hasMoved: !isRepeated,
            },
            floats: floats.map(floatOnWire),
          },
          text: () =>
            [
              ...(isRepeated
                ? [`"${reference}" was already recorded on ${at.toISOString()}; nothing changed.`, '']
                : []),
              inTable(floats.map(floatOnWire)),
            ].join('\n'),
        },
      )
    })
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
  .option('--json', 'print JSON')
  .addHelpText('after', examples('float receive par_… pc_… EUR', 'float receive par_… pc_… EUR 250000'))
  .action(
    async (
      partnerId: string,
      payCycleId: string,
      code: Currency,
      given: bigint | undefined,
      options: { json?: boolean },
    ) => {
      const { amount, movementId, floats } = await withTransaction(async tx => {
        const now = await partnerNow(tx, partnerId)
        const ofCycle = await dues.listOfCycle(tx, { partnerId, payCycleId })
        const due = ofCycle.find(each => each.currency === code)
        const left = due === undefined ? 0n : due.amount - due.received
        const received = { amount: left < 0n && given !== undefined ? -given : (given ?? left), currency: code }
        const movement = await dues.receive(tx, { partnerId, payCycleId, amount: received, isByHand: true, now })
        const details = { amount: toWire(received), payCycleId, movementId: movement.movementId }
        await recordChange(tx, { partnerId, change: { action: 'float.receive', resourceId: code, details }, now })
        return { amount: received, movementId: movement.movementId, floats: await read(tx, partnerId) }
      })
      printResult(options, {
        value: { movement: { id: movementId, amount: toWire(amount), payCycleId }, floats: floats.map(floatOnWire) },
        text: () => inTable(floats.map(floatOnWire)),
      })
    },
  )

floatCommand
  .command('floor')
  .description('Set the floor: withdrawals stop while the free amount is below it. "off" removes it.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units, or off', (text: string) => (text === 'off' ? null : minorUnits(text)))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('float floor par_… GBP 500000', 'float floor par_… GBP off'))
  .action(async (partnerId: string, code: Currency, floor: bigint | null, options) => {
    const moneyOrNull = (amount: bigint | null) => (amount === null ? null : toWire({ amount, currency: code }))
    const floats = await withTransaction(async tx => {
      const now = await partnerNow(tx, partnerId)
      const before = await float.setFloor(tx, { partnerId, currency: code, floor, now })
      const details = { before: { floor: moneyOrNull(before) }, after: { floor: moneyOrNull(floor) } }
      const change = { action: 'float.floor', resourceId: code, details } as const
      if (before !== floor) await recordChange(tx, { partnerId, change, now })
      return await read(tx, partnerId)
    })
    printResult(options, { value: floats.map(floatOnWire), text: () => inTable(floats.map(floatOnWire)) })
  })

async function read(db: Reader, partnerId: string): Promise<float.Float[]> {
  await findState(db, partnerId)
  return await float.read(db, partnerId)
}

function duesInTable(open: dues.Due[]): string {
  return table(
    open.map(({ payCycleId, currency: code, amount, received, settledAt }) => ({
      'settled, not arrived': payCycleId,
      reference: dues.referenceOf(payCycleId),
      amount: inWords({ amount, currency: code }),
      due: inWords({ amount: amount - received, currency: code }),
      'settled at': settledAt.toISOString(),
    })),
  )
}

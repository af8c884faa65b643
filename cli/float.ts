import { Command } from 'commander'
import type { Reader, Tx } from '../src/db.ts'
import * as float from '../src/float/float.ts'
import { systemClock } from '../src/main.ts'
import { inWords } from '../src/money.ts'
import { findPartner } from '../src/partners/partners.ts'
import { currency, minorUnits } from './arguments.ts'
import { print } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const floatCommand = new Command('float').description(
  'The money that pays withdrawals: what is there, what is on its way, what is free. Amounts are in minor units (pence, cents).',
)

floatCommand
  .command('show')
  .description('Show a partner’s floats, one per currency.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .action(async (partnerId: string, options) => await withDatabase(db => show(db, partnerId, options)))

floatCommand
  .command('fund')
  .description('Note that money was put in.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units', minorUnits)
  .option('--json', 'print JSON')
  .action(async (partnerId: string, code, amount, options) => {
    await change(partnerId, options, tx =>
      float.fund(tx, { partnerId, amount: { amount, currency: code }, now: systemClock() }),
    )
  })

floatCommand
  .command('withdraw')
  .description('Note that money was taken out; never more than is free.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units', minorUnits)
  .option('--json', 'print JSON')
  .action(async (partnerId: string, code, amount, options) => {
    await change(partnerId, options, tx =>
      float.withdraw(tx, { partnerId, amount: { amount, currency: code }, now: systemClock() }),
    )
  })

floatCommand
  .command('floor')
  .description('Let nobody withdraw while less than this is free. With "off" nobody watches any more.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units, or off', (text: string) => (text === 'off' ? null : minorUnits(text)))
  .option('--json', 'print JSON')
  .action(async (partnerId: string, code, floor, options) => {
    await change(partnerId, options, tx => float.setFloor(tx, { partnerId, currency: code, floor, now: systemClock() }))
  })

async function change(partnerId: string, options: { json?: boolean }, work: (tx: Tx) => Promise<void>): Promise<void> {
  await withTransaction(async tx => {
    await work(tx)
    await show(tx, partnerId, options)
  })
}

async function show(db: Reader, partnerId: string, options: { json?: boolean }): Promise<void> {
  if ((await findPartner(db, partnerId)) === undefined)
    throw new Error(`There is no partner ${partnerId}; partner list shows their ids`)
  const floats = await float.read(db, partnerId)
  print(
    floats.map(({ currency: code, float: there, pending, free, floor, lowSince }) => {
      const words = (amount: bigint) => (options.json ? String(amount) : inWords({ amount, currency: code }))
      return {
        currency: code,
        float: words(there),
        pending: words(pending),
        free: words(free),
        floor: floor === null ? null : words(floor),
        lowSince: lowSince?.toISOString() ?? null,
      }
    }),
    options,
  )
}

import { Command } from 'commander'
import type { Reader } from '../src/database/database.ts'
import { type Revenue, readRevenue } from '../src/fees/revenue.ts'
import { readStatement } from '../src/fees/statement.ts'
import * as float from '../src/float/float.ts'
import { type Currency, inWords, toWire } from '../src/kernel/money.ts'
import { revenueOnWire, statementFile, statementOnWire } from '../src/operators/finance-schema.ts'
import { findState } from '../src/partners/partners.ts'
import { recordChange } from './actor.ts'
import { currency, minorUnits, month, name } from './arguments.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, table } from './print.ts'
import { writeLine } from './terminal.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const revenueCommand = new Command('revenue')

revenueCommand
  .command('show')
  .description('Show the fees of a partner that are the operator’s income, by currency, and where the money is.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('revenue show par_…'))
  .action(async (partnerId: string, options) => {
    const revenue = await withDatabase(async db => await read(db, partnerId))
    printResult(options, { value: revenue.map(revenueOnWire), text: () => inTable(revenue) })
  })

revenueCommand
  .command('withdraw')
  .description(
    'Record collected fees withdrawn from the float: at most the amount collected, and the amount that is free above the floor.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<currency>', 'for example GBP', currency)
  .argument('<amount>', 'in minor units', minorUnits)
  .requiredOption(
    '--reference <text>',
    'your reference, for example the bank’s; running the command again with it does nothing',
    name({ lengthMax: 140 }),
  )
  .option('--json', 'print JSON')
  .addHelpText('after', examples('revenue withdraw par_… GBP 25000 --reference "fees 2026-03"'))
  .action(async (partnerId: string, code: Currency, units: bigint, { reference, json }) => {
    const amount = { amount: units, currency: code }
    const { moved, revenue } = await withTransaction(async tx => {
      const now = await partnerNow(tx, partnerId)
      const done = await float.withdrawRevenue(tx, { partnerId, amount, reference, now })
      const details = { amount: toWire(amount), reference, movementId: done.movementId }
      const change = { action: 'revenue.withdraw', resourceId: code, details } as const
      if (!done.isRepeated) await recordChange(tx, { partnerId, change, now })
      return { moved: done, revenue: await read(tx, partnerId) }
    })
    const { movementId, at, isRepeated } = moved
    const movement = { id: movementId, amount: toWire(amount), reference, at, hasMoved: !isRepeated }
    printResult(
      { json },
      {
        value: { movement, revenue: revenue.map(revenueOnWire) },
        text: () =>
          [
            ...(isRepeated ? [`"${reference}" was already recorded on ${at.toISOString()}; nothing changed.`, ''] : []),
            inTable(revenue),
          ].join('\n'),
      },
    )
  })

revenueCommand
  .command('statement')
  .description('Print the fees of a month as CSV, by day and tier. With --json, also their sums.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<month>', 'for example 2026-03', month)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('revenue statement par_… 2026-03 > fees.csv'))
  .action(async (partnerId: string, asked: string, options) => {
    const statement = await withDatabase(async db => {
      const { timeZone } = await findState(db, partnerId)
      return await readStatement(db, { partnerId, timeZone, month: asked })
    })
    if (options.json) printResult(options, { value: statementOnWire(statement), text: () => '' })
    else writeLine(statementFile(statement).trimEnd())
  })

async function read(db: Reader, partnerId: string): Promise<Revenue[]> {
  await findState(db, partnerId)
  return await readRevenue(db, partnerId)
}

function inTable(revenue: Revenue[]): string {
  return table(
    revenue.map(({ currency: code, ...amounts }) => {
      const words = (amount: bigint) => inWords({ amount, currency: code })
      return {
        currency: code,
        'in the float': words(amounts.inFloat),
        collected: words(amounts.collected),
        withdrawn: words(amounts.withdrawn),
        arriving: words(amounts.arriving),
        invoiced: words(amounts.invoiced),
        'invoices paid': words(amounts.paid),
      }
    }),
  )
}

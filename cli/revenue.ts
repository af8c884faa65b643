import type { PartnerId, Revenue } from '../packages/console/src/generated/operator.ts'
import { type Currency, toWire } from '../src/kernel/money.ts'
import { currency, minorUnits, month, name } from './arguments.ts'
import { bodyOf } from './client/files.ts'
import { printStream } from './client/output.ts'
import { moneyInWords, repeatedInWords } from './money.ts'
import { addServerOptions, OperatorCommand, withOperators } from './operator-client.ts'
import { printResult, table } from './print.ts'

const operations = () => import('../src/operators/revenue-operations.ts')

export const revenueCommand = new OperatorCommand('revenue', operations).description(
  'Show fees and the operator’s income from them, and withdraw that income from the float.',
)

revenueCommand
  .command('show')
  .description('Show the fees of a partner that are the operator’s income, by currency, and where the money is.')
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('revenue show par_…')
  .prints(
    (api, partnerId: PartnerId) => api.getRevenue(partnerId),
    found => inTable(found.revenue),
  )

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
  .examples('revenue withdraw par_… GBP 25000 --reference "fees 2026-03"')
  .prints(
    (api, partnerId: PartnerId, code: Currency, units: bigint, { reference }) =>
      api.withdrawRevenue(partnerId, { amount: toWire({ amount: units, currency: code }), reference }),
    withdrawn => [...repeatedInWords(withdrawn.movement), inTable(withdrawn.revenue)].join('\n'),
  )

revenueCommand
  .command('statement')
  .description('Print the fees of a month as CSV, by day and tier. With --json, also their sums.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<month>', 'for example 2026-03', month)
  .examples('revenue statement par_… 2026-03 > fees.csv')
  .action(async (partnerId: PartnerId, asked: string, options) => {
    await withOperators(options, operations, async api => {
      const query = { month: asked }
      if (options.json) printResult(options, { value: await api.getFeeStatement(partnerId, query), text: () => '' })
      else await printStream(bodyOf(await api.getFeeStatementFile(partnerId, query)))
    })
  })

addServerOptions(revenueCommand)

function inTable(revenue: Revenue[]): string {
  return table(
    revenue.map(({ currency: code, inFloat, collected, withdrawn, arriving, invoiced, paid }) => ({
      currency: code,
      'in the float': moneyInWords(inFloat),
      collected: moneyInWords(collected),
      withdrawn: moneyInWords(withdrawn),
      arriving: moneyInWords(arriving),
      invoiced: moneyInWords(invoiced),
      'invoices paid': moneyInWords(paid),
    })),
  )
}

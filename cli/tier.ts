import { Command, Option } from 'commander'
import { systemClock } from '../src/main.ts'
import { type Currency, inWords } from '../src/money.ts'
import { findPartner } from '../src/partners/partners.ts'
import type { TierTerms } from '../src/tiers/rules.ts'
import { setTier } from '../src/tiers/tiers.ts'
import { minorUnits, name, currency as readCurrency, whole } from './arguments.ts'
import { print } from './print.ts'
import { withTransaction } from './with-database.ts'

export const tierCommand = new Command('tier').description('Tiers: what a withdrawal costs, and within which limits.')

tierCommand
  .command('set')
  .description(
    'Make a tier, or give one new terms, which hold at once for new intents. Amounts are in minor units (pence, cents).',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"', name({ lengthMax: 60 }))
  .requiredOption('--currency <code>', 'of the tier and its members’ pay (required)', readCurrency)
  .requiredOption('--lower-limit <amount>', 'least per withdrawal (required)', minorUnits)
  .requiredOption('--upper-limit <amount>', 'most per withdrawal (required)', minorUnits)
  .addOption(new Option('--fee <amount>', 'fixed part of the fee').argParser(minorUnits).default(0n, '0'))
  .option('--fee-bps <n>', 'basis points of the amount, on top', whole({ min: 0, max: 9_999 }), 0)
  .option('--fee-min <amount>', 'least fee', minorUnits)
  .option('--fee-max <amount>', 'most fee', minorUnits)
  .addOption(new Option('--fee-payer <who>', 'who bears the fee').choices(['member', 'employer']).default('member'))
  .option('--per-day <n>', 'withdrawals a day', whole({ min: 1, max: 1_000 }))
  .option('--per-cycle <n>', 'withdrawals in a pay cycle', whole({ min: 1, max: 10_000 }))
  .option('--json', 'print JSON')
  .action(async (partnerId: string, tierName: string, options) => {
    const terms: TierTerms = {
      feeFixed: options.fee,
      feeBps: options.feeBps,
      feeMin: options.feeMin ?? null,
      feeMax: options.feeMax ?? null,
      feePayer: options.feePayer,
      lowerLimit: options.lowerLimit,
      upperLimit: options.upperLimit,
      withdrawalsPerDay: options.perDay ?? null,
      withdrawalsPerCycle: options.perCycle ?? null,
    }
    const currency: Currency = options.currency
    const tier = await withTransaction(async tx => {
      if ((await findPartner(tx, partnerId)) === undefined)
        throw new Error(`There is no partner ${partnerId}; partner list shows their ids`)
      return await setTier(tx, { partnerId, name: tierName, currency, terms, now: systemClock() })
    })
    const words = (amount: bigint) => inWords({ amount, currency })
    print(
      { name: tier.name, version: tier.version, limits: `${words(tier.lowerLimit)} – ${words(tier.upperLimit)}` },
      options,
    )
  })

import { Command, Option } from 'commander'
import type {
  Money,
  NewTierTerms,
  OperatorTier,
  PartnerId,
  TierHistory,
  TierPreview,
} from '../packages/console/src/generated/operator.ts'
import type { Currency } from '../src/kernel/money.ts'
import { payoutSpeeds } from '../src/tiers/rules.ts'
import { minorUnits, name, currency as readCurrency, whole } from './arguments.ts'
import { ask, isInteractive } from './ask.ts'
import { examples } from './help.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, type OperatorOptions, withOperators } from './operator-client.ts'
import { countOf, printResult, table } from './print.ts'
import { writeErrorLine, writeLine } from './terminal.ts'

const operations = () => import('../src/operators/tier-operations.ts')

export const tierCommand = new Command('tier')

const setCommand = tierCommand
  .command('set')
  .description(
    'Create a tier or change its terms. Options that you leave out keep their value. Shows the changes and the members affected, then asks for confirmation. Amounts are in minor units (pence, cents).',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"', name({ lengthMax: 60 }))
  .option(
    '--currency <code>',
    'currency of the tier and its members’ pay; cannot be changed (required for a new tier)',
    readCurrency,
  )
  .option('--lower-limit <amount>', 'smallest withdrawal (required for a new tier)', minorUnits)
  .option('--upper-limit <amount>', 'largest withdrawal (required for a new tier)', minorUnits)
  .option('--fee <amount>', 'fixed part of the fee', minorUnits)
  .option('--fee-bps <n>', 'variable part of the fee, in basis points of the amount', whole({ min: 0, max: 9_999 }))
  .option('--fee-min <amount>', 'minimum fee', minorUnits)
  .option('--no-fee-min', 'remove the minimum fee')
  .option('--fee-max <amount>', 'maximum fee', minorUnits)
  .option('--no-fee-max', 'remove the maximum fee')
  .option('--no-fee', 'remove every part of the fee')
  .addOption(new Option('--fee-payer <who>', 'who pays the fee').choices(['member', 'employer']))
  .option('--per-day <n>', 'maximum withdrawals per day', whole({ min: 1, max: 1_000 }))
  .option('--no-per-day', 'remove the daily maximum')
  .option('--per-cycle <n>', 'maximum withdrawals per pay cycle', whole({ min: 1, max: 10_000 }))
  .addOption(
    new Option(
      '--payout-speed <speed>',
      'how payouts are sent, if the bank can; by default, the rail’s setting',
    ).choices(payoutSpeeds),
  )
  .option('--no-payout-speed', 'use the rail’s speed')
  .option('--no-per-cycle', 'remove the maximum per pay cycle')
  .option('--yes', 'skip the confirmation')
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples(
      'tier set par_… Silver --currency GBP --lower-limit 1000 --upper-limit 20000 --fee 50',
      'tier set par_… Silver --upper-limit 25000 --no-fee-max',
    ),
  )
  .action(async (partnerId: PartnerId, tierName: string, { json, yes, currency, ...options }: SetOptions) => {
    const { url: _, key: __, ...terms } = options
    // Commander sets an option with a --no variant to `true` when neither is given.
    if (currency === undefined && Object.values(terms).every(value => value === true))
      setCommand.error('error: specify at least one term to change')
    requireConsistent(terms)
    const { before, after } = await withOperators(options, operations, async api => {
      const { tiers } = await api.listTiers(partnerId)
      const current = tiers.find(tier => tier.name === tierName)
      const wanted = termsOf(tierName, { current, currency, options: terms })
      const preview = await api.previewTier(partnerId, tierName, wanted)
      if (current !== undefined && preview.hasChanged) await confirmChange({ current, wanted, preview }, { json, yes })
      return { before: current, after: await api.saveTier(partnerId, tierName, wanted) }
    })
    printResult({ json }, { value: after, text: () => outcomeOf(before, after) })
  })

tierCommand
  .command('list')
  .description('List a partner’s tiers with their current terms.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('tier list par_…'))
  .action(async (partnerId: PartnerId, options) => {
    const found = await withOperators(options, operations, api => api.listTiers(partnerId))
    printResult(options, {
      value: found,
      text: () =>
        table(
          found.tiers.map(({ members: { active, invited }, ...tier }) => ({
            name: tier.name,
            version: tier.version,
            since: tier.since,
            ...termsInWords(tier),
            members: active + invited,
          })),
        ),
    })
  })

tierCommand
  .command('show')
  .description('Show a tier with all of its versions and when each was in force.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('tier show par_… Bronze'))
  .action(async (partnerId: PartnerId, tierName: string, options) => {
    const tier = await withOperators(options, operations, api => api.getTier(partnerId, tierName))
    const versions = () =>
      tier.versions.map(each => ({
        version: each.version,
        since: each.since,
        until: each.until,
        ...termsInWords(each),
      }))
    printResult(options, {
      value: tier,
      text: () =>
        [
          `${tierName} (${tier.currency}): ${membersInWords(tier)}, ${countOf(tier.openIntents, 'open intent')}`,
          '',
          table(versions()),
        ].join('\n'),
    })
  })

addServerOptions(tierCommand)

type Terms = Omit<NewTierTerms, 'currency' | 'version'>

type SetOptions = OperatorOptions & {
  currency?: Currency
  lowerLimit?: bigint
  upperLimit?: bigint
  fee?: bigint | boolean
  feeBps?: number
  feeMin?: bigint | boolean
  feeMax?: bigint | boolean
  feePayer?: Terms['feePayer']
  perDay?: number | boolean
  perCycle?: number | boolean
  payoutSpeed?: NonNullable<Terms['payoutSpeed']> | boolean
  yes?: boolean
  json?: boolean
}

/** The terms of the tier after the change; a removed term is null or 0. */
function termsOf(
  tierName: string,
  {
    current,
    currency = current?.currency,
    options,
  }: { current: OperatorTier | undefined; currency: Currency | undefined; options: SetOptions },
): NewTierTerms {
  if (current !== undefined && currency !== current.currency)
    throw new Error(
      `The currency of the tier ${tierName} is ${current.currency} and cannot change; create another tier for ${currency}`,
    )
  const { fee, feeBps, feeMin, feeMax, feePayer, lowerLimit, upperLimit, perDay, perCycle, payoutSpeed } = options
  const lower = lowerLimit ?? current?.lowerLimit.amount
  const upper = upperLimit ?? current?.upperLimit.amount
  if (currency === undefined || lower === undefined || upper === undefined)
    throw new Error(
      `There is no tier ${tierName}; to create it, add --currency, --lower-limit and --upper-limit (tier list shows existing tiers)`,
    )
  const money = (amount: bigint | number) => ({ amount: Number(amount), currency })
  const isFree = fee === false
  const bound = (given: bigint | boolean | undefined, before: Money | null = null) =>
    isFree || given === false ? null : isGiven(given) ? money(given) : before
  const orNone = <T>(given: T | boolean | undefined, before: T | null = null) =>
    given === false ? null : isGiven(given) ? given : before
  return {
    currency,
    version: current?.version ?? null,
    feeFixed: isFree ? money(0) : isGiven(fee) ? money(fee) : (current?.feeFixed ?? money(0)),
    feeBps: isFree ? 0 : (feeBps ?? current?.feeBps ?? 0),
    feeMin: bound(feeMin, current?.feeMin),
    feeMax: bound(feeMax, current?.feeMax),
    feePayer: feePayer ?? current?.feePayer ?? 'member',
    lowerLimit: money(lower),
    upperLimit: money(upper),
    withdrawalsPerDay: orNone(perDay, current?.withdrawalsPerDay),
    withdrawalsPerCycle: orNone(perCycle, current?.withdrawalsPerCycle),
    payoutSpeed: orNone(payoutSpeed, current?.payoutSpeed),
  }
}

function requireConsistent({ fee, feeBps, feeMin, feeMax }: SetOptions): void {
  if (fee === false && (feeBps || isGiven(feeMin) || isGiven(feeMax)))
    setCommand.error(
      'error: --no-fee removes every part of the fee and cannot be combined with --fee-bps, --fee-min or --fee-max',
    )
}

function isGiven<T>(value: T | boolean | undefined): value is T {
  return value !== undefined && typeof value !== 'boolean'
}

type Plan = { current: OperatorTier; wanted: NewTierTerms; preview: TierPreview }

/** Shows what a change does and asks for confirmation. @throws Error if it is not confirmed */
async function confirmChange(
  plan: Plan,
  { json, yes }: { json?: boolean | undefined; yes?: boolean | undefined },
): Promise<void> {
  // With --json, standard output holds nothing but the result.
  const print = json ? writeErrorLine : writeLine
  if (!yes || !json) print(planInWords(plan))
  if (yes) return
  if (!isInteractive()) {
    throw new Error('Nothing was changed: confirmation needs a terminal; check the change, then add --yes')
  }
  if (!(await ask('The new terms apply to new intents immediately.'))) throw new Error('Nothing was changed')
}

function planInWords({ current, wanted, preview }: Plan): string {
  const then = termRows(wanted)
  const rows = termRows(current).map(({ label, words }, index) => {
    const next = then[index]?.words ?? ''
    return {
      [current.name]: label,
      [`version ${current.version}`]: words,
      new: next,
      ' ': words === next ? '' : 'changes',
    }
  })
  const { openIntents } = preview
  return [
    table(rows),
    '',
    `Affects ${membersInWords(preview)}.`,
    ...(openIntents === 0
      ? []
      : [
          `${countOf(openIntents, 'open intent')}: the quoted fee stays the same, but the new limits apply on completion.`,
        ]),
  ].join('\n')
}

function membersInWords({ members: { active, invited } }: Pick<TierPreview, 'members'>): string {
  return `${countOf(active + invited, 'member')} (${active} active, ${invited} invited)`
}

function outcomeOf(before: OperatorTier | undefined, { name: tierName, versions: [after] }: TierHistory): string {
  if (after === undefined || after.version === before?.version) return `No change: ${tierName} already has these terms.`
  const { fee, limits } = termsInWords(after)
  return `${tierName}, version ${after.version}: ${fee}; ${limits}`
}

/** The terms, condensed to a few columns. */
function termsInWords(terms: Terms) {
  return {
    fee: feeInWords(terms),
    limits: `${moneyInWords(terms.lowerLimit)} – ${moneyInWords(terms.upperLimit)}`,
    'per day': terms.withdrawalsPerDay,
    'per cycle': terms.withdrawalsPerCycle,
    payouts: terms.payoutSpeed,
  }
}

/** Each term as text, in the same order for every tier. */
function termRows(terms: Terms): { label: string; words: string }[] {
  const words = (money: Money | null) => (money === null ? '–' : moneyInWords(money))
  return [
    { label: 'fixed fee', words: words(terms.feeFixed) },
    { label: 'basis points', words: String(terms.feeBps) },
    { label: 'minimum fee', words: words(terms.feeMin) },
    { label: 'maximum fee', words: words(terms.feeMax) },
    { label: 'fee paid by', words: terms.feePayer },
    { label: 'lower limit', words: words(terms.lowerLimit) },
    { label: 'upper limit', words: words(terms.upperLimit) },
    { label: 'withdrawals per day', words: String(terms.withdrawalsPerDay ?? '–') },
    { label: 'withdrawals per cycle', words: String(terms.withdrawalsPerCycle ?? '–') },
    { label: 'payout speed', words: terms.payoutSpeed ?? '–' },
  ]
}

function feeInWords({ feeFixed, feeBps, feeMin, feeMax, feePayer }: Terms): string {
  const parts = [...(feeFixed.amount > 0 ? [moneyInWords(feeFixed)] : []), ...(feeBps > 0 ? [`${feeBps} bps`] : [])]
  const bounds = [
    ...(feeMin === null ? [] : [`at least ${moneyInWords(feeMin)}`]),
    ...(feeMax === null ? [] : [`at most ${moneyInWords(feeMax)}`]),
  ]
  if (parts.length + bounds.length === 0) return 'no fee'
  const sum = parts.join(' + ') || moneyInWords({ ...feeFixed, amount: 0 })
  return `${[sum, ...bounds].join(', ')}, paid by the ${feePayer}`
}

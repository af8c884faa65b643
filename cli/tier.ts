import { Option } from 'commander'
import type {
  NewTierTerms,
  OperatorTier,
  PartnerId,
  TierHistory,
  TierPreview,
} from '../packages/console/src/generated/operator.ts'
import type { Currency } from '../src/kernel/money.ts'
import { type Term, tierTerms, type WireTerms } from '../src/tiers/terms.ts'
import { minorUnits, name, currency as readCurrency, whole } from './arguments.ts'
import { ask, isInteractive } from './ask.ts'
import { examples } from './help.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, OperatorCommand, withOperators } from './operator-client.ts'
import { countOf, printResult, table } from './print.ts'
import { writeErrorLine, writeLine } from './terminal.ts'

const namedTerms = Object.entries(tierTerms) as [keyof WireTerms, Term][]
const partsOfFee: (keyof WireTerms)[] = ['feeFixed', 'feeBps', 'feeMin', 'feeMax']

const operations = () => import('../src/operators/tier-operations.ts')

export const tierCommand = new OperatorCommand('tier', operations).description(
  'Manage tiers: the fees and limits of withdrawals.',
)

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
  .addHelpText(
    'after',
    examples(
      'tier set par_… Silver --currency GBP --lower-limit 1000 --upper-limit 20000 --fee 50',
      'tier set par_… Silver --upper-limit 25000 --no-fee-max',
    ),
  )
  .action(async (partnerId: PartnerId, tierName: string, { url, key, json, yes, currency, ...given }) => {
    if (currency === undefined && Object.keys(given).length === 0)
      setCommand.error('error: specify at least one term to change')
    requireConsistent(given)
    const { before, after } = await withOperators({ url, key }, operations, async api => {
      const { tiers } = await api.listTiers(partnerId)
      const current = tiers.find(tier => tier.name === tierName)
      const wanted = termsOf(tierName, { current, currency, given })
      const preview = await api.previewTier(partnerId, tierName, wanted)
      if (current !== undefined && preview.hasChanged) await confirmChange({ current, wanted, preview }, { json, yes })
      return { before: current, after: await api.saveTier(partnerId, tierName, wanted) }
    })
    printResult({ json }, { value: after, text: () => outcomeOf(before, after) })
  })

for (const [, term] of namedTerms) {
  setCommand.addOption(optionOf(term))
  const { flags, removal } = term
  if (removal !== undefined) setCommand.option(flags.replace(/^--(\S+) .*/, '--no-$1'), removal)
}
setCommand.option('--yes', 'skip the confirmation').option('--json', 'print JSON')

tierCommand
  .command('list')
  .description('List a partner’s tiers with their current terms.')
  .argument('<partner>', 'the partner’s id, par_…')
  .examples('tier list par_…')
  .prints(
    (api, partnerId: PartnerId) => api.listTiers(partnerId),
    found =>
      table(
        found.tiers.map(({ members: { active, invited }, ...tier }) => ({
          name: tier.name,
          version: tier.version,
          since: tier.since,
          ...termsInWords(tier),
          members: active + invited,
        })),
      ),
  )

tierCommand
  .command('show')
  .description('Show a tier with all of its versions and when each was in force.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"')
  .examples('tier show par_… Bronze')
  .prints(
    (api, partnerId: PartnerId, tierName: string) => api.getTier(partnerId, tierName),
    (tier, _partnerId, tierName) => {
      const versions = () =>
        tier.versions.map(each => ({
          version: each.version,
          since: each.since,
          until: each.until,
          ...termsInWords(each),
        }))
      return [
        `${tierName} (${tier.currency}): ${membersInWords(tier)}, ${countOf(tier.openIntents, 'open intent')}`,
        '',
        table(versions()),
      ].join('\n')
    },
  )

addServerOptions(tierCommand)

/** The terms given as options, by the names of the options. False removes a term. */
type GivenTerms = Record<string, bigint | number | string | false>

function optionOf({ kind, flags, help, choices = {}, bounds }: Term): Option {
  const option = new Option(flags, help)
  if (bounds !== undefined) return option.argParser(whole(bounds))
  return kind === 'amount' ? option.argParser(minorUnits) : option.choices(Object.keys(choices))
}

type TermsAsked = { current: OperatorTier | undefined; currency: Currency | undefined; given: GivenTerms }

/** The terms of the tier after the change. */
function termsOf(tierName: string, { current, currency = current?.currency, given }: TermsAsked): NewTierTerms {
  if (current !== undefined && currency !== current.currency)
    throw new Error(
      `The currency of the tier ${tierName} is ${current.currency} and cannot change; create another tier for ${currency}`,
    )
  const { fee, lowerLimit, upperLimit } = given
  if (currency === undefined || (current === undefined && (lowerLimit === undefined || upperLimit === undefined)))
    throw new Error(
      `There is no tier ${tierName}; to create it, add --currency, --lower-limit and --upper-limit (tier list shows existing tiers)`,
    )
  const terms = namedTerms.map(([name, { kind, flags, byDefault = null }]) => {
    const onWire = (value: bigint | number | string | null) =>
      kind === 'amount' && value !== null ? { amount: Number(value), currency } : value
    const value = fee === false && partsOfFee.includes(name) ? fee : given[new Option(flags).attributeName()]
    if (value === undefined) return [name, current?.[name] ?? onWire(byDefault)]
    return [name, onWire(value === false ? byDefault : value)]
  })
  return { currency, version: current?.version ?? null, ...Object.fromEntries(terms) }
}

function requireConsistent({ fee, feeBps, feeMin = false, feeMax = false }: GivenTerms): void {
  if (fee === false && (feeBps || feeMin !== false || feeMax !== false))
    setCommand.error(
      'error: --no-fee removes every part of the fee and cannot be combined with --fee-bps, --fee-min or --fee-max',
    )
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
  const rows = namedTerms.map(([name, { label, row = label.toLowerCase() }]) => {
    const [words, next] = [inWords(current[name]), inWords(wanted[name])]
    return {
      [current.name]: row,
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
function termsInWords(terms: WireTerms) {
  return {
    fee: feeInWords(terms),
    limits: `${moneyInWords(terms.lowerLimit)} – ${moneyInWords(terms.upperLimit)}`,
    'per day': terms.withdrawalsPerDay,
    'per cycle': terms.withdrawalsPerCycle,
    payouts: terms.payoutSpeed,
  }
}

function inWords(value: WireTerms[keyof WireTerms]): string {
  return typeof value === 'object' && value !== null ? moneyInWords(value) : String(value ?? '–')
}

function feeInWords({ feeFixed, feeBps, feeMin, feeMax, feePayer }: WireTerms): string {
  const parts = [...(feeFixed.amount > 0 ? [moneyInWords(feeFixed)] : []), ...(feeBps > 0 ? [`${feeBps} bps`] : [])]
  const bounds = [
    ...(feeMin === null ? [] : [`at least ${moneyInWords(feeMin)}`]),
    ...(feeMax === null ? [] : [`at most ${moneyInWords(feeMax)}`]),
  ]
  if (parts.length + bounds.length === 0) return 'no fee'
  const sum = parts.join(' + ') || moneyInWords({ ...feeFixed, amount: 0 })
  return `${[sum, ...bounds].join(', ')}, paid by the ${feePayer}`
}

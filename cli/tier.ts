import { Command, Option } from 'commander'
import type { Db } from '../src/database/database.ts'
import { type Currency, inWords } from '../src/kernel/money.ts'
import * as members from '../src/members/members.ts'
import { findState } from '../src/partners/partners.ts'
import { changesOf } from '../src/tiers/audit.ts'
import {
  type PayoutSpeed,
  payoutSpeeds,
  type Tier,
  type TierTerms,
  termsFault,
  termsToWire,
  versionToWire,
} from '../src/tiers/rules.ts'
import { changeTier, findTier, listTerms, listVersions, setTier } from '../src/tiers/tiers.ts'
import * as intents from '../src/withdrawals/intents.ts'
import { recordChange } from './actor.ts'
import { minorUnits, name, currency as readCurrency, whole } from './arguments.ts'
import { ask, isInteractive } from './ask.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { countOf, printResult, table } from './print.ts'
import { writeErrorLine, writeLine } from './terminal.ts'
import { inTransaction, withDatabase } from './with-database.ts'

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
  .action(async (partnerId: string, tierName: string, { json, yes, currency, ...options }: SetOptions) => {
    const change = readChange(options)
    if (currency === undefined && Object.keys(change).length === 0)
      setCommand.error('error: specify at least one term to change')
    await withDatabase(async (db, settings) => {
      await findState(db, partnerId)
      const now = await partnerNow(db, partnerId)
      const before = await findTier(db, { partnerId, name: tierName })
      const after = before === undefined ? newTier(tierName, { currency, change }) : { ...before, ...change }
      if (before !== undefined && currency !== undefined && currency !== before.currency) {
        throw new Error(
          `The currency of the tier ${tierName} is ${before.currency} and cannot change; create another tier for ${currency}`,
        )
      }
      const fault = termsFault(after)
      if (fault !== undefined) throw new Error(fault)
      const affected = await countAffected(db, { partnerId, tier: tierName, now })
      if (before !== undefined && changesOf(before, after) !== null) {
        await confirmChange({ before, after, affected }, { json, yes })
      }
      const made = await inTransaction(db, settings, async tx => {
        const { name: _, version: __, currency: code, ...terms } = after
        const result =
          before === undefined
            ? await setTier(tx, { partnerId, name: tierName, currency: code, terms, now })
            : (await changeTier(tx, { partnerId, name: tierName, change, version: before.version, now })).after
        if (result.version === before?.version) return result
        if (before === undefined && result.version !== 1)
          throw new Error(`The tier ${tierName} has just been created by another command; run this command again`)
        const details = changesOf(before, result) ?? {}
        await recordChange(tx, { partnerId, change: { action: 'tier.set', resourceId: tierName, details }, now })
        return result
      })
      const hasChanged = made.version !== before?.version
      printResult(
        { json },
        {
          value: {
            partnerId,
            name: tierName,
            hasChanged,
            before: before === undefined ? null : onWire(before),
            after: onWire(made),
            affected,
          },
          text: () => outcomeOf(before, made),
        },
      )
    })
  })

tierCommand
  .command('list')
  .description('List a partner’s tiers with their current terms.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('tier list par_…'))
  .action(async (partnerId: string, options) => {
    const tiers = await withDatabase(async db => {
      await findState(db, partnerId)
      const found: (Tier & { since: Date; members: Awaited<ReturnType<typeof members.countByStatus>> })[] = []
      for (const tier of await listTerms(db, partnerId)) {
        found.push({ ...tier, members: await members.countByStatus(db, { partnerId, tier: tier.name }) })
      }
      return found
    })
    printResult(options, {
      value: tiers.map(({ since, members: counts, ...tier }) => ({ ...onWire(tier), since, members: counts })),
      text: () =>
        table(
          tiers.map(({ since, members: { active, invited }, ...tier }) => ({
            name: tier.name,
            version: tier.version,
            since: since.toISOString(),
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
  .action(async (partnerId: string, tierName: string, options) => {
    const { versions, affected } = await withDatabase(async db => {
      await findState(db, partnerId)
      const found = await listVersions(db, { partnerId, name: tierName })
      const now = await partnerNow(db, partnerId)
      return { versions: found, affected: await countAffected(db, { partnerId, tier: tierName, now }) }
    })
    const [current] = versions
    if (current === undefined) throw new Error(`There is no tier ${tierName}; tier list shows their names`)
    // Newest first: each version was in force until the one listed before it.
    const held = versions.map((tier, index) => ({ ...tier, until: versions[index - 1]?.since ?? null }))
    printResult(options, {
      value: {
        partnerId,
        name: tierName,
        currency: current.currency,
        affected,
        versions: held.map(({ version, since, until, currency, ...terms }) => ({
          version,
          since,
          until,
          ...termsToWire(terms, currency),
        })),
      },
      text: () =>
        [
          `${tierName} (${current.currency}): ${membersInWords(affected)}, ${countOf(affected.openIntents, 'open intent')}`,
          '',
          table(
            held.map(({ since, until, ...tier }) => ({
              version: tier.version,
              since: since.toISOString(),
              until: until?.toISOString() ?? null,
              ...termsInWords(tier),
            })),
          ),
        ].join('\n'),
    })
  })

type SetOptions = {
  currency?: Currency
  lowerLimit?: bigint
  upperLimit?: bigint
  fee?: bigint | boolean
  feeBps?: number
  feeMin?: bigint | boolean
  feeMax?: bigint | boolean
  feePayer?: TierTerms['feePayer']
  perDay?: number | boolean
  perCycle?: number | boolean
  payoutSpeed?: PayoutSpeed | boolean
  yes?: boolean
  json?: boolean
}

/** The terms given as options; a removed term is null or 0. */
function readChange(options: SetOptions) {
  const { fee, feeBps, feeMin, feeMax, feePayer, lowerLimit, upperLimit, perDay, perCycle, payoutSpeed } = options
  if (fee === false && (feeBps || isGiven(feeMin) || isGiven(feeMax))) {
    setCommand.error(
      'error: --no-fee removes every part of the fee and cannot be combined with --fee-bps, --fee-min or --fee-max',
    )
  }
  const change: Partial<TierTerms> = {
    ...(fee === false ? { feeFixed: 0n, feeBps: 0, feeMin: null, feeMax: null } : {}),
    ...(isGiven(fee) ? { feeFixed: fee } : {}),
    ...(feeBps === undefined ? {} : { feeBps }),
    ...bound('feeMin', feeMin),
    ...bound('feeMax', feeMax),
    ...(feePayer === undefined ? {} : { feePayer }),
    ...(lowerLimit === undefined ? {} : { lowerLimit }),
    ...(upperLimit === undefined ? {} : { upperLimit }),
    ...bound('withdrawalsPerDay', perDay),
    ...bound('withdrawalsPerCycle', perCycle),
    ...bound('payoutSpeed', payoutSpeed),
  }
  return change
}

// Commander sets an option with a --no variant to `true` when neither is given.
function isGiven<T>(value: T | boolean | undefined): value is T {
  return value !== undefined && typeof value !== 'boolean'
}

function bound<K extends keyof TierTerms, T extends TierTerms[K]>(term: K, value: T | boolean | undefined) {
  if (value === false) return { [term]: null }
  return isGiven(value) ? { [term]: value } : {}
}

function newTier(
  tierName: string,
  { currency, change }: { currency: Currency | undefined; change: Partial<TierTerms> },
): Tier {
  const { lowerLimit, upperLimit } = change
  if (currency === undefined || lowerLimit === undefined || upperLimit === undefined) {
    throw new Error(
      `There is no tier ${tierName}; to create it, add --currency, --lower-limit and --upper-limit (tier list shows existing tiers)`,
    )
  }
  const free = { feeFixed: 0n, feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' } as const
  const unlimited = { withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null }
  return { name: tierName, version: 1, currency, ...free, ...unlimited, lowerLimit, upperLimit, ...change }
}

type Affected = { members: { active: number; invited: number }; openIntents: number }

async function countAffected(
  db: Db,
  { partnerId, tier, now }: { partnerId: string; tier: string; now: Date },
): Promise<Affected> {
  const { active, invited } = await members.countByStatus(db, { partnerId, tier })
  return { members: { active, invited }, openIntents: await intents.countOpen(db, { partnerId, tier, now }) }
}

type Plan = { before: Tier; after: Tier; affected: Affected }

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

function planInWords({ before, after, affected }: Plan): string {
  const then = termRows(after)
  const rows = termRows(before).map(({ label, words }, index) => {
    const next = then[index]?.words ?? ''
    return {
      [before.name]: label,
      [`version ${before.version}`]: words,
      new: next,
      ' ': words === next ? '' : 'changes',
    }
  })
  const { openIntents } = affected
  return [
    table(rows),
    '',
    `Affects ${membersInWords(affected)}.`,
    ...(openIntents === 0
      ? []
      : [
          `${countOf(openIntents, 'open intent')}: the quoted fee stays the same, but the new limits apply on completion.`,
        ]),
  ].join('\n')
}

function membersInWords({ members: { active, invited } }: Affected): string {
  return `${countOf(active + invited, 'member')} (${active} active, ${invited} invited)`
}

function outcomeOf(before: Tier | undefined, after: Tier): string {
  if (after.version === before?.version) return `No change: ${after.name} already has these terms.`
  const { fee, limits } = termsInWords(after)
  return `${after.name}, version ${after.version}: ${fee}; ${limits}`
}

/** The terms, condensed to a few columns. */
function termsInWords(tier: Tier) {
  return {
    fee: feeInWords(tier),
    limits: `${inWords(money(tier, tier.lowerLimit))} – ${inWords(money(tier, tier.upperLimit))}`,
    'per day': tier.withdrawalsPerDay,
    'per cycle': tier.withdrawalsPerCycle,
    payouts: tier.payoutSpeed,
  }
}

/** Each term as text, in the same order for every tier. */
function termRows(tier: Tier): { label: string; words: string }[] {
  const words = (amount: bigint | null) => (amount === null ? '–' : inWords(money(tier, amount)))
  return [
    { label: 'fixed fee', words: words(tier.feeFixed) },
    { label: 'basis points', words: String(tier.feeBps) },
    { label: 'minimum fee', words: words(tier.feeMin) },
    { label: 'maximum fee', words: words(tier.feeMax) },
    { label: 'fee paid by', words: tier.feePayer },
    { label: 'lower limit', words: words(tier.lowerLimit) },
    { label: 'upper limit', words: words(tier.upperLimit) },
    { label: 'withdrawals per day', words: String(tier.withdrawalsPerDay ?? '–') },
    { label: 'withdrawals per cycle', words: String(tier.withdrawalsPerCycle ?? '–') },
    { label: 'payout speed', words: tier.payoutSpeed ?? '–' },
  ]
}

function feeInWords(tier: Tier): string {
  const { feeFixed, feeBps, feeMin, feeMax, feePayer } = tier
  const words = (amount: bigint) => inWords(money(tier, amount))
  const parts = [...(feeFixed > 0n ? [words(feeFixed)] : []), ...(feeBps > 0 ? [`${feeBps} bps`] : [])]
  const bounds = [
    ...(feeMin === null ? [] : [`at least ${words(feeMin)}`]),
    ...(feeMax === null ? [] : [`at most ${words(feeMax)}`]),
  ]
  if (parts.length + bounds.length === 0) return 'no fee'
  return `${[parts.join(' + ') || words(0n), ...bounds].join(', ')}, paid by the ${feePayer}`
}

function onWire(tier: Tier) {
  return { name: tier.name, ...versionToWire(tier) }
}

function money({ currency }: Tier, amount: bigint) {
  return { amount, currency }
}

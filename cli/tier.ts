import { Command, Option } from 'commander'
import { differences } from '../src/audit-log/audit-log.ts'
import type { Db } from '../src/database/database.ts'
import { systemClock } from '../src/main.ts'
import * as members from '../src/members/members.ts'
import { type Currency, inWords } from '../src/money.ts'
import { findState } from '../src/partners/partners.ts'
import { type Tier, type TierTerms, termsFault, termsToWire } from '../src/tiers/rules.ts'
import { changeTier, findTier, listTerms, listVersions, setTier } from '../src/tiers/tiers.ts'
import * as intents from '../src/withdrawals/intents.ts'
import { minorUnits, name, currency as readCurrency, whole } from './arguments.ts'
import { ask, isAnybodyThere } from './ask.ts'
import { examples } from './help.ts'
import { recordChange } from './operator.ts'
import { answer, table } from './print.ts'
import { inTransaction, withDatabase } from './with-database.ts'

export const tierCommand = new Command('tier').description('Tiers: what a withdrawal costs, and within which limits.')

const setCommand = tierCommand
  .command('set')
  .description(
    'Change terms of a tier; what is not named stays. Shows what changes and whom it affects, and asks first. A name that is new makes a tier. Amounts are in minor units (pence, cents).',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"', name({ lengthMax: 60 }))
  .option('--currency <code>', 'of the tier and its members’ pay; never changes (needed for a new tier)', readCurrency)
  .option('--lower-limit <amount>', 'least per withdrawal (needed for a new tier)', minorUnits)
  .option('--upper-limit <amount>', 'most per withdrawal (needed for a new tier)', minorUnits)
  .option('--fee <amount>', 'fixed part of the fee', minorUnits)
  .option('--fee-bps <n>', 'basis points of the amount, on top', whole({ min: 0, max: 9_999 }))
  .option('--fee-min <amount>', 'least fee', minorUnits)
  .option('--no-fee-min', 'remove the least fee')
  .option('--fee-max <amount>', 'most fee', minorUnits)
  .option('--no-fee-max', 'remove the most fee')
  .option('--no-fee', 'make withdrawals free: removes every part of the fee')
  .addOption(new Option('--fee-payer <who>', 'who bears the fee').choices(['member', 'employer']))
  .option('--per-day <n>', 'withdrawals a day', whole({ min: 1, max: 1_000 }))
  .option('--no-per-day', 'remove the number of withdrawals a day')
  .option('--per-cycle <n>', 'withdrawals in a pay cycle', whole({ min: 1, max: 10_000 }))
  .option('--no-per-cycle', 'remove the number of withdrawals in a pay cycle')
  .option('--yes', 'do not ask')
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
    if (currency === undefined && Object.keys(change).length === 0) setCommand.error('error: name at least one term')
    await withDatabase(async (db, settings) => {
      const now = systemClock()
      await findState(db, partnerId)
      const before = await findTier(db, { partnerId, name: tierName })
      const after = before === undefined ? newTier(tierName, { currency, change }) : { ...before, ...change }
      if (before !== undefined && currency !== undefined && currency !== before.currency) {
        throw new Error(
          `The tier ${tierName} is in ${before.currency}, and money is owed in it: make another tier for ${currency}`,
        )
      }
      const fault = termsFault(after)
      if (fault !== undefined) throw new Error(fault)
      const affected = await countAffected(db, { partnerId, tier: tierName, now })
      if (before !== undefined && isDifferent(before, after)) {
        await agree({ before, after, affected }, { json, yes })
      }
      const made = await inTransaction(db, settings, async tx => {
        const { name: _, version: __, currency: code, ...terms } = after
        const result =
          before === undefined
            ? await setTier(tx, { partnerId, name: tierName, currency: code, terms, now })
            : (await changeTier(tx, { partnerId, name: tierName, change, version: before.version, now })).after
        if (result.version === before?.version) return result
        if (before === undefined && result.version !== 1)
          throw new Error(`The tier ${tierName} was made meanwhile; nothing was done, run the command again`)
        const wire = (tier: Tier) => ({
          version: tier.version,
          currency: tier.currency,
          ...termsToWire(tier, tier.currency),
        })
        const details =
          before === undefined ? { before: null, after: wire(result) } : (differences(wire(before), wire(result)) ?? {})
        await recordChange(tx, { partnerId, change: { action: 'tier.set', resourceId: tierName, details }, now })
        return result
      })
      const hasChanged = made.version !== before?.version
      answer(
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
  .description('List a partner’s tiers with the terms that hold now.')
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
    answer(options, {
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
  .description('Show a tier with all of its versions, and when each of them held.')
  .argument('<partner>', 'the partner’s id, par_…')
  .argument('<name>', 'for example "Bronze"')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('tier show par_… Bronze'))
  .action(async (partnerId: string, tierName: string, options) => {
    const { versions, affected } = await withDatabase(async db => {
      await findState(db, partnerId)
      const found = await listVersions(db, { partnerId, name: tierName })
      return { versions: found, affected: await countAffected(db, { partnerId, tier: tierName, now: systemClock() }) }
    })
    const [current] = versions
    if (current === undefined) throw new Error(`There is no tier ${tierName}; tier list shows their names`)
    // A version holds until the one after it, which comes before it here.
    const held = versions.map((tier, index) => ({ ...tier, until: versions[index - 1]?.since ?? null }))
    answer(options, {
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
          `${tierName}, in ${current.currency}: ${membersInWords(affected)}, ${affected.openIntents} open intents`,
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
  yes?: boolean
  json?: boolean
}

/** The terms that were named; one that is removed is null or 0. */
function readChange({ fee, feeBps, feeMin, feeMax, feePayer, lowerLimit, upperLimit, perDay, perCycle }: SetOptions) {
  if (fee === false && (feeBps || isGiven(feeMin) || isGiven(feeMax))) {
    setCommand.error('error: --no-fee removes every part of the fee; name the parts instead')
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
  }
  return change
}

// An option that can be removed is `true` when it is not named, since there is one with `no` beside it.
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
      `There is no tier ${tierName} yet (tier list shows their names); a new one needs --currency, --lower-limit and --upper-limit`,
    )
  }
  const free = { feeFixed: 0n, feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' } as const
  const unlimited = { withdrawalsPerDay: null, withdrawalsPerCycle: null }
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

/** Shows what a change does, and asks. @throws with a sentence unless it is agreed to */
async function agree(
  plan: Plan,
  { json, yes }: { json?: boolean | undefined; yes?: boolean | undefined },
): Promise<void> {
  // With --json standard output is the result alone.
  const tell = json ? console.error : console.log
  if (!yes || !json) tell(planInWords(plan))
  if (yes) return
  if (!isAnybodyThere()) {
    throw new Error('Nothing was done: the change needs a yes, and this is not a terminal; look at it, then add --yes')
  }
  if (!(await ask('The new terms hold at once for new intents.'))) throw new Error('Nothing was done')
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
    `It affects ${membersInWords(affected)}.`,
    ...(openIntents === 0
      ? []
      : [`${openIntents} open intents keep the fee that they quoted; the new limits apply to them.`]),
  ].join('\n')
}

function membersInWords({ members: { active, invited } }: Affected): string {
  return `${active + invited} members (${active} active, ${invited} invited)`
}

function outcomeOf(before: Tier | undefined, after: Tier): string {
  if (after.version === before?.version) return `Nothing changes: ${after.name} has these terms already.`
  const { fee, limits } = termsInWords(after)
  return `${after.name}, version ${after.version}: ${fee}; ${limits}`
}

/** The terms in a few columns. */
function termsInWords(tier: Tier) {
  return {
    fee: feeInWords(tier),
    limits: `${inWords(money(tier, tier.lowerLimit))} – ${inWords(money(tier, tier.upperLimit))}`,
    'a day': tier.withdrawalsPerDay,
    'a cycle': tier.withdrawalsPerCycle,
  }
}

/** Each term in words, in one order for every tier. */
function termRows(tier: Tier): { label: string; words: string }[] {
  const words = (amount: bigint | null) => (amount === null ? '–' : inWords(money(tier, amount)))
  return [
    { label: 'fee, fixed', words: words(tier.feeFixed) },
    { label: 'fee, basis points', words: String(tier.feeBps) },
    { label: 'least fee', words: words(tier.feeMin) },
    { label: 'most fee', words: words(tier.feeMax) },
    { label: 'fee paid by', words: tier.feePayer },
    { label: 'lower limit', words: words(tier.lowerLimit) },
    { label: 'upper limit', words: words(tier.upperLimit) },
    { label: 'withdrawals a day', words: String(tier.withdrawalsPerDay ?? '–') },
    { label: 'withdrawals a cycle', words: String(tier.withdrawalsPerCycle ?? '–') },
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

function isDifferent(before: Tier, after: Tier): boolean {
  return differences(onWire(before), onWire(after)) !== null
}

function onWire({ name: tierName, version, currency, ...terms }: Tier) {
  return { name: tierName, version, currency, ...termsToWire(terms, currency) }
}

function money({ currency }: Tier, amount: bigint) {
  return { amount, currency }
}

import { type Static, Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import { named, operationWith } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { type Currency, CurrencyCode, fromWire, toWire, WireMoney } from '../kernel/money.ts'
import { Count, described, namedObject, nullable } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'
import * as members from '../members/members.ts'
import { partnerNow } from '../partners/clocks.ts'
import { findState } from '../partners/partners.ts'
import { changesOf } from '../tiers/audit.ts'
import { type Tier, termsFault } from '../tiers/rules.ts'
import { type TierTerms, termFields, termNames, termsToWire } from '../tiers/terms.ts'
import { findTier, listTerms, listVersions, setTier, type TierVersion } from '../tiers/tiers.ts'
import * as intents from '../withdrawals/intents.ts'
import { line } from './partner-schema.ts'
import { effectOf, type TierEffect } from './tier-effect.ts'

const operation = operationWith({ tag: 'Tiers', isForOperators: true })
const params = Type.Object({ partnerId: Id('partner'), tier: line(60, { examples: ['Bronze'] }) })

const Version = {
  version: Type.Integer({ minimum: 1 }),
  since: described(Instant, 'When this version took effect.'),
  ...termFields,
}
const Members = namedObject('TierMembers', { active: Count, invited: Count })

const OperatorTier = namedObject('OperatorTier', {
  name: Type.String({ examples: ['Bronze'] }),
  currency: CurrencyCode,
  members: Members,
  ...Version,
})

const TierHistory = namedObject('TierHistory', {
  name: Type.String(),
  currency: CurrencyCode,
  members: Members,
  openIntents: Type.Integer({
    minimum: 0,
    description: 'Intents that keep their quoted fee; the limits of new terms apply when they are completed.',
  }),
  versions: Type.Array(
    namedObject('TierVersion', {
      ...Version,
      until: nullable(Instant, 'Null for the version in force.'),
    }),
    { description: 'Newest first.' },
  ),
})

const NewTerms = namedObject('NewTierTerms', {
  currency: CurrencyCode,
  version: nullable(
    Type.Integer({ minimum: 1 }),
    'The version that the new terms follow, so that no change of another operator is lost. Null creates the tier.',
  ),
  ...termFields,
})

const Affected = namedObject('AffectedMembers', { members: Count, total: WireMoney })
const TierPreview = namedObject('TierPreview', {
  hasChanged: Type.Boolean({ description: 'Whether the terms differ from those in force.' }),
  members: Members,
  openIntents: Count,
  gain: described(Affected, 'Members who could receive more, and how much more together.'),
  lose: described(Affected, 'Members who could receive less, and how much less together.'),
  unchanged: Count,
  most: Type.Array(namedObject('MemberEffect', { memberId: Id('member'), before: WireMoney, after: WireMoney }), {
    description: 'The members with the largest differences, at most 20.',
  }),
  isComplete: Type.Boolean({ description: 'False if only the first 100,000 members of the tier were compared.' }),
})

const listTiers = operation({
  route: 'GET /operator/v1/partners/:partnerId/tiers',
  summary: 'List the tiers of a partner',
  description: 'The tiers with their current terms, by name.',
  success: {
    description: 'All tiers.',
    schema: namedObject('OperatorTiers', { tiers: Type.Array(OperatorTier) }),
  },
  async read(reader, { params: { partnerId } }) {
    await findState(reader, partnerId)
    const counts = await members.countByTier(reader, partnerId)
    const tiers = (await listTerms(reader, partnerId)).map(tier => ({
      name: tier.name,
      currency: tier.currency,
      members: counts.get(tier.name) ?? { active: 0, invited: 0 },
      ...versionOf(tier),
    }))
    return { body: { tiers } }
  },
})

const getTier = operation({
  route: 'GET /operator/v1/partners/:partnerId/tiers/:tier',
  summary: 'Get a tier with all of its versions',
  params,
  success: { description: 'The tier.', schema: TierHistory },
  async read(reader, call) {
    const { partnerId, tier } = call.params
    const now = await partnerNow(reader, call, partnerId)
    return { body: await historyOf(reader, { partnerId, tier, now }) }
  },
})

const previewTier = operation({
  route: 'POST /operator/v1/partners/:partnerId/tiers/:tier/preview',
  summary: 'Preview new terms of a tier',
  description:
    'Compares, for each active member, what the member would receive for withdrawing as much as possible now, under the terms in force and under the new ones. Changes nothing.',
  params,
  body: NewTerms,
  success: { description: 'The effect of the new terms.', schema: TierPreview },
  async run(call, { read }) {
    const { partnerId, tier } = call.params
    const given = call.body
    const terms = termsOf(given)
    return await read(async reader => {
      const now = await partnerNow(reader, call, partnerId)
      const current = await requireCurrent(reader, { partnerId, tier, given })
      const effect = await effectOf(reader, { partnerId, tier, before: current ?? terms, after: terms })
      const affected = await affectedBy(reader, { partnerId, tier, now })
      const hasChanged = current === undefined || changesOf(current, { ...current, ...terms }) !== null
      return { body: { hasChanged, ...affected, ...effectOnWire(effect, given.currency) } }
    })
  },
})

const saveTier = operation({
  route: 'PUT /operator/v1/partners/:partnerId/tiers/:tier',
  summary: 'Create a tier, or change its terms',
  description:
    'New intents use the new terms immediately; existing intents and withdrawals keep their fees. Terms that change nothing make no version. `Conflict` if the tier has another version than the given one, or another currency.',
  params,
  body: NewTerms,
  success: { description: 'The tier.', schema: TierHistory },
  async run(call, { write }) {
    const { partnerId, tier } = call.params
    const given = call.body
    const terms = termsOf(given)
    return await write(async tx => {
      const now = await partnerNow(tx, call, partnerId)
      await findState(tx, partnerId)
      const before = await requireCurrent(tx, { partnerId, tier, given, locks: true })
      const after = await setTier(tx, { partnerId, name: tier, currency: given.currency, terms, now })
      if (before === undefined && after.version !== 1) throw changedMeanwhile(tier)
      const audit = { action: 'tier.set', details: changesOf(before, after) ?? {}, partnerId, now } as const
      return {
        body: await historyOf(tx, { partnerId, tier, now }),
        resourceId: tier,
        audit: after.version === before?.version ? undefined : audit,
      }
    })
  },
})

export const operatorTierOperations = named({ listTiers, getTier, previewTier, saveTier })

type Given = Static<typeof NewTerms>

/** @throws Problem `BodyValidation` */
function termsOf({ currency, ...given }: Given): TierTerms {
  const entries = termNames.map(name => {
    const value = given[name]
    if (typeof value !== 'object' || value === null) return [name, value]
    if (value.currency !== currency)
      throw problem('BodyValidation', `The amount must be in ${currency}`, { path: `${name}.currency` })
    return [name, fromWire(value).amount]
  })
  const terms: TierTerms = Object.fromEntries(entries)
  const fault = termsFault(terms)
  if (fault !== undefined) throw problem('BodyValidation', fault, { path: 'body' })
  return terms
}

/**
 * The tier as it is now; undefined if it is to be created.
 * @throws Problem `NotFound` if there is no such tier; `Conflict` if it has changed since the caller read it
 */
async function requireCurrent(
  db: Reader,
  { partnerId, tier, given, locks = false }: { partnerId: string; tier: string; given: Given; locks?: boolean },
): Promise<Tier | undefined> {
  await findState(db, partnerId)
  const current = await findTier(db, { partnerId, name: tier, locks })
  if (current === undefined) {
    if (given.version === null) return undefined
    throw problem('NotFound', `There is no tier ${tier}`)
  }
  if (current.version !== given.version) throw changedMeanwhile(tier)
  if (current.currency !== given.currency)
    throw problem('Conflict', `The tier ${tier} is in ${current.currency}, which cannot change; create another tier`)
  return current
}

function changedMeanwhile(tier: string) {
  return problem('Conflict', `The tier ${tier} was changed in the meantime; read it again, then repeat your change`)
}

async function affectedBy(db: Reader, { partnerId, tier, now }: { partnerId: string; tier: string; now: Date }) {
  const { active, invited } = await members.countByStatus(db, { partnerId, tier })
  return { members: { active, invited }, openIntents: await intents.countOpen(db, { partnerId, tier, now }) }
}

/** @throws Problem `NotFound` */
async function historyOf(db: Reader, { partnerId, tier, now }: { partnerId: string; tier: string; now: Date }) {
  await findState(db, partnerId)
  const versions = await listVersions(db, { partnerId, name: tier })
  const [current] = versions
  if (current === undefined) throw problem('NotFound', `There is no tier ${tier}`)
  return {
    name: tier,
    currency: current.currency,
    ...(await affectedBy(db, { partnerId, tier, now })),
    // Newest first: each version was in force until the one listed before it.
    versions: versions.map((each, index) => ({ ...versionOf(each), until: versions[index - 1]?.since ?? null })),
  }
}

function versionOf({ name: _, version, since, currency, ...terms }: TierVersion) {
  return { version, since, ...termsToWire(terms, currency) }
}

function effectOnWire({ gain, lose, most, ...rest }: TierEffect, currency: Currency) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return {
    gain: { members: gain.members, total: money(gain.total) },
    lose: { members: lose.members, total: money(lose.total) },
    most: most.map(({ memberId, before, after }) => ({ memberId, before: money(before), after: money(after) })),
    ...rest,
  }
}

import { Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { Count, namedObject, nullable, strict, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { visibleFormat } from '../kernel/text.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import { scopes } from '../partners/api-keys.ts'
import { Settings, SomeSettings } from '../partners/settings.ts'
import { Day, Float } from './float-schema.ts'

/** One line of text, without leading or trailing spaces. */
export function line(charactersMax: number, options: { description?: string; examples?: string[] } = {}) {
  return Type.String({
    minLength: 1,
    maxLength: charactersMax,
    pattern: '^(?=\\S)(?!.*\\s$)[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$',
    format: visibleFormat,
    ...options,
  })
}

export const PartnerState = wordOf(['open', 'paused', 'suspended'], {
  title: 'PartnerState',
  description:
    '`paused`: members cannot withdraw. `suspended`: every request of the partner is refused, whether it is paused or not.',
})

const Stop = Type.Object(
  {
    since: InstantOrNull,
    by: nullable(Type.String(), 'The actor as in the audit log.'),
    reason: TextOrNull,
  },
  { title: 'PartnerStop', description: 'Null where the audit log has no record.', ...strict },
)

/** Why a partner is stopped; null if it is not. */
export const stops = { paused: nullable(Stop), suspended: nullable(Stop) }

const summary = {
  id: Id('partner'),
  name: Type.String({ examples: ['Acme Couriers'] }),
  state: PartnerState,
  createdAt: Instant,
}

const { properties: settings } = Settings

export const Partners = namedObject('Partners', {
  partners: Type.Array(
    namedObject('PartnerSummary', { ...summary, country: settings.country, timeZone: settings.timeZone }),
  ),
  total: Type.Integer({ minimum: 0 }),
  skip: Count,
  take: Count,
})

export const Partner = namedObject('Partner', {
  ...summary,
  ...stops,
  settings: Settings,
  openCycle: nullable(namedObject('OpenPayCycle', { id: Id('payCycle'), startDate: Day, endDate: Day })),
  floats: Type.Array(Float),
  keys: namedObject('KeyCounts', { valid: Count, expired: Count, revoked: Count }),
  members: namedObject('MemberCounts', { active: Count, invited: Count, inactive: Count }),
})

export const NewPartner = namedObject('NewPartner', {
  name: line(140, { examples: ['Acme Couriers'] }),
  settings: Type.Optional(SomeSettings),
})

export const ReasonGiven = namedObject('ReasonGiven', {
  reason: Type.Optional(
    line(200, { description: 'For the audit log. Must not contain personal data.', examples: ['bank outage'] }),
  ),
})

const Scope = wordOf(scopes, { title: 'Scope' })

const apiKey = {
  id: Id('apiKey'),
  hint: Type.String({ description: 'The first characters of the key.', examples: ['mm_test_2a4B…'] }),
  state: wordOf(['valid', 'expired', 'revoked']),
  scopes: Type.Array(Scope),
  createdAt: Instant,
  expiresAt: InstantOrNull,
  revokedAt: InstantOrNull,
  lastUsedAt: nullable(Instant, 'To the minute.'),
}

export const ApiKey = namedObject('ApiKey', apiKey)

export const ApiKeyOfPartner = namedObject('ApiKeyOfPartner', { ...apiKey, partnerId: Id('partner') })

export const ApiKeys = namedObject('ApiKeys', {
  keys: Type.Array(ApiKey),
  hasMore: Type.Boolean({ description: 'Whether there are more keys after the last of these.' }),
})

export const ApiKeyWithSecret = namedObject('ApiKeyWithSecret', {
  ...apiKey,
  secret: nullable(Type.String(), 'The whole key; null in a replay.'),
})

/** The body may be left out. */
export const ApiKeyRotation = Type.Optional(
  namedObject('ApiKeyRotation', {
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 2_592_000,
        description:
          'How many seconds the old key stays valid, 0 to 2,592,000 (30 days), unless it expires earlier. By default, until it expires or is revoked.',
      }),
    ),
  }),
)

export const NewApiKey = namedObject('NewApiKey', {
  scopes: Type.Optional(
    Type.Array(Scope, {
      minItems: 1,
      maxItems: scopes.length,
      uniqueItems: true,
      description: 'By default, all scopes.',
    }),
  ),
  expiresInDays: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 36_500, description: 'By default, the key is valid until it is revoked.' }),
  ),
})

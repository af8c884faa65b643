import { Type } from 'typebox'
import { Count, TextOrNull } from '../contract/fields.ts'
import { strict } from '../contract/strict.ts'
import { Id } from '../kernel/ids.ts'
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

export const PartnerState = Type.Enum(['open', 'paused', 'suspended'], {
  title: 'PartnerState',
  type: 'string',
  description:
    '`paused`: members cannot withdraw. `suspended`: every request of the partner is refused, whether it is paused or not.',
})

const Stop = Type.Object(
  {
    since: InstantOrNull,
    by: Type.Union([Type.String(), Type.Null()], { description: 'The actor as in the audit log.' }),
    reason: TextOrNull,
  },
  { title: 'PartnerStop', description: 'Null where the audit log has no record.', ...strict },
)

/** Why a partner is stopped; null if it is not. */
export const stops = { paused: Type.Union([Stop, Type.Null()]), suspended: Type.Union([Stop, Type.Null()]) }

const summary = {
  id: Id('partner'),
  name: Type.String({ examples: ['Acme Couriers'] }),
  state: PartnerState,
  createdAt: Instant,
}

const { properties: settings } = Settings

export const Partners = Type.Object(
  {
    partners: Type.Array(
      Type.Object(
        { ...summary, country: settings.country, timeZone: settings.timeZone },
        { title: 'PartnerSummary', ...strict },
      ),
    ),
    total: Type.Integer({ minimum: 0 }),
    skip: Count,
    take: Count,
  },
  { title: 'Partners', ...strict },
)

export const Partner = Type.Object(
  {
    ...summary,
    ...stops,
    settings: Settings,
    openCycle: Type.Union([
      Type.Object({ id: Id('payCycle'), startDate: Day, endDate: Day }, { title: 'OpenPayCycle', ...strict }),
      Type.Null(),
    ]),
    floats: Type.Array(Float),
    keys: Type.Object({ valid: Count, expired: Count, revoked: Count }, { title: 'KeyCounts', ...strict }),
    members: Type.Object({ active: Count, invited: Count, inactive: Count }, { title: 'MemberCounts', ...strict }),
  },
  { title: 'Partner', ...strict },
)

export const NewPartner = Type.Object(
  {
    name: line(140, { examples: ['Acme Couriers'] }),
    settings: Type.Optional(SomeSettings),
  },
  { title: 'NewPartner', ...strict },
)

export const ReasonGiven = Type.Object(
  {
    reason: Type.Optional(
      line(200, { description: 'For the audit log. Must not contain personal data.', examples: ['bank outage'] }),
    ),
  },
  { title: 'ReasonGiven', ...strict },
)

const Scope = Type.Enum([...scopes], { title: 'Scope', type: 'string' })

const apiKey = {
  id: Id('apiKey'),
  hint: Type.String({ description: 'The first characters of the key.', examples: ['mm_test_2a4B…'] }),
  state: Type.Enum(['valid', 'expired', 'revoked'], { type: 'string' }),
  scopes: Type.Array(Scope),
  createdAt: Instant,
  expiresAt: InstantOrNull,
  revokedAt: InstantOrNull,
  lastUsedAt: Type.Union([Instant, Type.Null()], { description: 'To the minute.' }),
}

export const ApiKey = Type.Object(apiKey, { title: 'ApiKey', ...strict })

export const ApiKeyOfPartner = Type.Object(
  { ...apiKey, partnerId: Id('partner') },
  { title: 'ApiKeyOfPartner', ...strict },
)

export const ApiKeys = Type.Object(
  {
    keys: Type.Array(ApiKey),
    hasMore: Type.Boolean({ description: 'Whether there are more keys after the last of these.' }),
  },
  { title: 'ApiKeys', ...strict },
)

export const ApiKeyWithSecret = Type.Object(
  { ...apiKey, secret: Type.Union([Type.String(), Type.Null()], { description: 'The whole key; null in a replay.' }) },
  { title: 'ApiKeyWithSecret', ...strict },
)

/** The body may be left out. */
export const ApiKeyRotation = Type.Optional(
  Type.Object(
    {
      overlapSeconds: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 2_592_000,
          description:
            'How many seconds the old key stays valid, 0 to 2,592,000 (30 days), unless it expires earlier. By default, until it expires or is revoked.',
        }),
      ),
    },
    { title: 'ApiKeyRotation', ...strict },
  ),
)

export const NewApiKey = Type.Object(
  {
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
  },
  { title: 'NewApiKey', ...strict },
)

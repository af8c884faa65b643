import { Type } from 'typebox'
import { described } from '../kernel/schemas.ts'

/** Keys and values that a partner attaches to an object. The check constraints on `metadata` have the same limits. */
export const Metadata = Type.Unsafe<Metadata>({
  title: 'Metadata',
  type: 'object',
  maxProperties: 20,
  propertyNames: { type: 'string', minLength: 1, maxLength: 40 },
  additionalProperties: { type: 'string', minLength: 1, maxLength: 500 },
  description:
    'Your own keys and values: at most 20 keys of up to 40 characters, with values of up to 500. Not for personal data or secrets.',
  examples: [{ site: 'Leeds', costCentre: '4711' }],
})

export type Metadata = Record<string, string>

/** The filter `metadata[key]=value` of a list. */
export const metadataQuery = {
  metadata: Type.Optional(
    described(Metadata, 'Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`.'),
  ),
}

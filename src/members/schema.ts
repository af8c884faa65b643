import { type Static, Type } from 'typebox'
import { afterQuery, pageFields, pageQuery, totalField } from '../contract/list.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, strict, strictObject, wordOf } from '../kernel/schemas.ts'
import { Metadata, metadataQuery } from '../metadata/schema.ts'
import { Email, schemasOf, WorkerId } from './fields.ts'

const filterValuesMax = { maxItems: 100 }

/** Why a person in the console wants to see what is masked. */
export const RevealReason = Type.String({ pattern: '^(?=.*\\S)[^\\x00-\\x1f\\x7f]*$', minLength: 3, maxLength: 200 })

export const MemberStatus = wordOf(['invited', 'active', 'inactive'], { title: 'MemberStatus' })
export type MemberStatus = Static<typeof MemberStatus>

const required = schemasOf('required')
// Null is accepted wherever a response has null, so that a client can send back what it has read.
const nullable = schemasOf('nullable')
const defaulted = schemasOf('defaulted')

/** The complete profile of a member; omitted fields are null or their default. */
export const NewMember = namedObject('NewMember', {
  ...required,
  ...Type.Partial(Type.Object({ ...nullable, ...defaulted })).properties,
})
export type NewMember = Static<typeof NewMember>

/** A partial change; omitted fields stay unchanged, so there are no defaults. */
export const MemberUpdate = Type.Partial(Type.Object({ ...required, ...nullable, ...withoutDefaults(defaulted) }), {
  title: 'MemberUpdate',
  ...strict,
})
export type MemberUpdate = Static<typeof MemberUpdate>

const member = { memberId: Id('member'), status: MemberStatus, ...required, ...nullable, ...defaulted }
export const Member = namedObject('Member', member)

/** The extended shape. The published shape never grows. */
export const MemberWithMetadata = namedObject('Member', { ...member, metadata: Metadata })

export const Members = namedObject('Members', { members: Type.Array(Member), ...totalField, ...pageFields })

export const MembersWithMetadata = namedObject('Members', {
  members: Type.Array(MemberWithMetadata),
  ...totalField,
  ...pageFields,
})

export const MemberQuery = strictObject({
  memberIds: Type.Optional(Type.Array(Id('member'), filterValuesMax)),
  statuses: Type.Optional(Type.Array(MemberStatus, filterValuesMax)),
  emails: Type.Optional(Type.Array(Email, { ...filterValuesMax, description: 'Case-insensitive.' })),
  workerIds: Type.Optional(Type.Array(WorkerId, filterValuesMax)),
  search: Type.Optional(
    Type.String({
      minLength: 2,
      maxLength: 254,
      description:
        'An id, e-mail or worker id, or the beginning of the whole name or last name, in any case. At most 1,000 members are found by each kind of name.',
    }),
  ),
  ...metadataQuery,
  ...pageQuery,
  ...afterQuery('member'),
})

export const MemberRemoved = namedObject('MemberRemoved', { message: Type.Literal('OK') })

function withoutDefaults<T extends Record<string, object>>(schemas: T): T {
  const entries = Object.entries(schemas).map(([name, { default: _, ...schema }]: [string, { default?: unknown }]) => [
    name,
    schema,
  ])
  return Object.fromEntries(entries)
}

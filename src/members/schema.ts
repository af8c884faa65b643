import { type Static, Type } from 'typebox'
import { BankAccountEU, BankAccountUK, oneLine } from '../bank-accounts/schema.ts'
import { pageFields, pageQuery, totalField } from '../http/list.ts'
import { Id } from '../ids.ts'
import { visibleFormat } from '../text.ts'

const strict = { additionalProperties: false }
const filterValuesMax = { maxItems: 100 }

export const MemberStatus = Type.Enum(['invited', 'active', 'inactive'], { type: 'string' })
export type MemberStatus = Static<typeof MemberStatus>

/**
 * The pattern is the one that existing clients check answers by: a member whose e-mail it forbids would make every page of
 * the list unreadable to them. `format` alone lets more through, and clients generate their types from it.
 */
const Email = Type.String({
  format: 'email',
  pattern: "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$",
  maxLength: 254,
  examples: ['sam.okafor@example.com'],
})
const WorkerId = Type.String({
  minLength: 1,
  maxLength: 100,
  // A blank at either end would make two workers of one.
  pattern: '^(?=\\S)(?!.*\\s$)[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$',
  format: visibleFormat,
  description: 'The partner’s own number of the worker: no control characters, no blank at either end.',
  examples: ['E-10442'],
})
const Name = (example: string) =>
  Type.String({ minLength: 1, maxLength: 100, pattern: oneLine, format: visibleFormat, examples: [example] })

const required = {
  email: Email,
  firstName: Name('Sam'),
  lastName: Name('Okafor'),
  tier: Type.String({
    minLength: 1,
    maxLength: 60,
    description: 'Name of a tier; see `GET /v1/tiers`.',
    examples: ['Bronze'],
  }),
}

// What the answer says with null may be sent with null, so that a client can send back what it has read.
const orNull = {
  phone: Type.Union([Type.String({ minLength: 1, maxLength: 32 }), Type.Null()], {
    description: 'With or without the country; stored, and answered, in E.164.',
    examples: ['+447700900123'],
  }),
  workerId: Type.Union([WorkerId, Type.Null()]),
  accountDetails: Type.Union([BankAccountUK, BankAccountEU, Type.Null()]),
  dob: Type.Union([Type.String({ format: 'date' }), Type.Null()], {
    description: 'Day of birth.',
    examples: ['1990-06-24'],
  }),
  gender: Type.Union([Type.Enum(['Female', 'Male', 'NonBinary'], { type: 'string' }), Type.Null()]),
}

const EnablePayroll = Type.Boolean({
  default: true,
  description: 'Whether payroll deducts what this member withdraws.',
})

/** The whole desired state of a member; what is left out is null, or its default. */
export const NewMember = Type.Object(
  { ...required, ...Type.Partial(Type.Object(orNull)).properties, enablePayroll: Type.Optional(EnablePayroll) },
  { title: 'NewMember', ...strict },
)
export type NewMember = Static<typeof NewMember>

/** What to change about a member; what is left out stays as it is. */
export const MemberUpdate = Type.Partial(Type.Object({ ...required, ...orNull, enablePayroll: Type.Boolean() }), {
  title: 'MemberUpdate',
  ...strict,
})
export type MemberUpdate = Static<typeof MemberUpdate>

export const Member = Type.Object(
  {
    memberId: Id('member'),
    email: required.email,
    firstName: required.firstName,
    lastName: required.lastName,
    phone: orNull.phone,
    tier: required.tier,
    workerId: orNull.workerId,
    status: MemberStatus,
    accountDetails: orNull.accountDetails,
    enablePayroll: EnablePayroll,
    dob: orNull.dob,
    gender: orNull.gender,
  },
  { title: 'Member', ...strict },
)

export const Members = Type.Object(
  { members: Type.Array(Member), ...totalField, ...pageFields },
  { title: 'Members', ...strict },
)

export const MemberQuery = Type.Object(
  {
    memberIds: Type.Optional(Type.Array(Id('member'), filterValuesMax)),
    statuses: Type.Optional(Type.Array(MemberStatus, filterValuesMax)),
    emails: Type.Optional(Type.Array(Email, { ...filterValuesMax, description: 'In any case.' })),
    workerIds: Type.Optional(Type.Array(WorkerId, filterValuesMax)),
    ...pageQuery,
  },
  strict,
)

export const MemberRemoved = Type.Object({ message: Type.Literal('OK') }, { title: 'MemberRemoved', ...strict })

/** The columns of a file of members, in the order of the template. Each is a column of the table, too. */
export const columns = [
  'email',
  'first_name',
  'last_name',
  'phone',
  'tier',
  'worker_id',
  'sort_code',
  'account_number',
  'account_holder',
  'iban',
  'dob',
  'gender',
  'enable_payroll',
] as const
export type Column = (typeof columns)[number]

/** What a row of the table, or one like it, says in a column of a file. */
export function cellOf(row: Record<FieldOf<Column>, string | boolean | null>, column: Column): string {
  const field = column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return String(row[field as FieldOf<Column>] ?? '')
}

type FieldOf<C extends string> = C extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<FieldOf<Tail>>}` : C

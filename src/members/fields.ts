import { type Static, type TSchema, Type } from 'typebox'
import { BankAccountEU, BankAccountUK, oneLine } from '../bank-accounts/schema.ts'
import { nullable, wordOf } from '../kernel/schemas.ts'
import { visibleFormat } from '../kernel/text.ts'

/**
 * The pattern is the one that existing clients validate responses with: an e-mail that it rejects would make whole pages of the
 * list unreadable to them. `format` alone accepts more; it is kept because clients generate their types from it.
 */
export const Email = Type.String({
  title: 'Email',
  format: 'email',
  pattern: "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9-]*\\.)+[A-Za-z]{2,}$",
  maxLength: 254,
  examples: ['sam.okafor@example.com'],
})

export const WorkerId = Type.String({
  title: 'WorkerId',
  minLength: 1,
  maxLength: 100,
  // With leading or trailing spaces, one worker could be mistaken for two.
  pattern: '^(?=\\S)(?!.*\\s$)[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$',
  format: visibleFormat,
  description: 'The partner’s own identifier for the worker: no control characters, no leading or trailing spaces.',
  examples: ['E-10442'],
})

const Name = (title: string, example: string) =>
  Type.String({ title, minLength: 1, maxLength: 100, pattern: oneLine, format: visibleFormat, examples: [example] })

const oneLineMessage = (charsMax: number) => `must be one line of at most ${charsMax} characters, one of them visible`
const genders = ['Female', 'Male', 'NonBinary'] as const
const Gender = wordOf(genders, { title: 'Gender' })

/**
 * Every field of a member that a partner sets, in the order of responses and files, with its columns. The wire schema, the
 * columns of CSV and Excel files, COPY, the SQL lists, equality, the audit log and the export derive from this table. A new field
 * needs an entry here, a migration, its name in the event catalogue and in the rights of the database role, and tests.
 */
const table = {
  email: {
    schema: Email,
    presence: 'required',
    isAudited: false,
    sealedAs: 'profile',
    columns: {
      email: { sqlType: 'text', schema: Email, message: 'is not an e-mail address, like sam.okafor@example.com' },
    },
  },
  firstName: {
    schema: Name('FirstName', 'Sam'),
    presence: 'required',
    isAudited: false,
    columns: { first_name: { sqlType: 'text', schema: Name('FirstName', 'Sam'), message: oneLineMessage(100) } },
  },
  lastName: {
    schema: Name('LastName', 'Okafor'),
    presence: 'required',
    isAudited: false,
    columns: { last_name: { sqlType: 'text', schema: Name('LastName', 'Okafor'), message: oneLineMessage(100) } },
  },
  phone: {
    schema: nullable(
      Type.String({
        title: 'Phone',
        minLength: 1,
        maxLength: 32,
        description: 'With or without the country code; stored and returned in E.164.',
        examples: ['+447700900123'],
      }),
    ),
    presence: 'nullable',
    isAudited: false,
    sealedAs: 'profile',
    columns: {
      phone: {
        sqlType: 'text',
        schema: Type.String({ maxLength: 32 }),
        digits: 'any',
        message: 'is not a phone number, like +447700900123',
      },
    },
  },
  tier: {
    schema: Type.String({
      title: 'TierName',
      minLength: 1,
      maxLength: 60,
      description: 'Name of a tier; see `GET /v1/tiers`.',
      examples: ['Bronze'],
    }),
    presence: 'required',
    isAudited: true,
    columns: {
      tier: {
        sqlType: 'text',
        schema: Type.String({ maxLength: 60 }),
        message: 'is longer than any tier name',
      },
    },
  },
  workerId: {
    schema: nullable(WorkerId),
    presence: 'nullable',
    isAudited: false,
    sealedAs: 'profile',
    columns: { worker_id: { sqlType: 'text', schema: WorkerId, message: oneLineMessage(100), digits: 'any' } },
  },
  accountDetails: {
    schema: Type.Union([BankAccountUK, BankAccountEU, Type.Null()]),
    presence: 'nullable',
    isAudited: false,
    sealedAs: 'account',
    columns: {
      sort_code: {
        sqlType: 'text',
        schema: BankAccountUK.properties.sortCode,
        digits: 6,
        message: 'must be 6 digits, like 089999',
      },
      account_number: {
        sqlType: 'text',
        schema: BankAccountUK.properties.accountNumber,
        digits: 8,
        message: 'must be 8 digits, like 66374958',
      },
      account_holder: {
        sqlType: 'text',
        schema: BankAccountUK.properties.accountHolder,
        message: oneLineMessage(140),
      },
      iban: {
        sqlType: 'text',
        schema: BankAccountEU.properties.iban,
        message: 'is not an IBAN, like DE89370400440532013000',
      },
    },
  },
  dob: {
    schema: nullable(
      Type.String({ title: 'DateOfBirth', format: 'date', description: 'Date of birth.', examples: ['1990-06-24'] }),
    ),
    presence: 'nullable',
    isAudited: false,
    sealedAs: 'profile',
    columns: {
      dob: {
        sqlType: 'date',
        schema: Type.String({ format: 'date', pattern: '^(19|[2-9][0-9])' }),
        message: 'is not a valid date from 1900 on, like 1990-06-24',
      },
    },
  },
  gender: {
    schema: nullable(Gender),
    presence: 'nullable',
    isAudited: false,
    sealedAs: 'profile',
    columns: {
      gender: {
        sqlType: 'text',
        schema: Gender,
        parse: parseGender,
        message: `must be one of ${genders.join(', ')}`,
      },
    },
  },
  enablePayroll: {
    schema: Type.Boolean({ default: true, description: 'Whether payroll deducts what this member withdraws.' }),
    presence: 'defaulted',
    isAudited: true,
    columns: {
      enable_payroll: {
        sqlType: 'boolean',
        schema: Type.Boolean(),
        parse: parseBoolean,
        message: 'must be true or false',
      },
    },
  },
} as const satisfies Record<string, Field>

type Field = {
  schema: TSchema
  /** `required` for a new member; `nullable`: absent means null; `defaulted`: absent means the schema's default. */
  presence: 'required' | 'nullable' | 'defaulted'
  /** Whether the audit log records the value before and after a change. For other fields it records only that they changed. */
  isAudited: boolean
  /** The column of the sealed value that the field is part of; absent if its columns hold it as it is. */
  sealedAs?: 'profile' | 'account'
  columns: Record<string, ColumnSpec>
}

/** How a column of a file holds its part of a field, and a column of `members` if the field is not sealed. */
type ColumnSpec = {
  sqlType: 'text' | 'date' | 'boolean'
  /** Schema of the parsed text of a non-empty cell. */
  schema: TSchema
  /** The fault of a cell that the schema rejects; follows the column's name. */
  message: string
  /** Converts the text of a cell to the schema's type; identity if absent. */
  parse?: (text: string) => unknown
  /**
   * For text of digits, the number of digits. A spreadsheet may store it as a number, and a number of fewer digits may have lost
   * leading zeros.
   */
  digits?: number | 'any'
}

type Fields = typeof table
export type FieldName = keyof Fields
type ColumnsOf<F extends FieldName> = keyof Fields[F]['columns'] & string
/** A column of files of members, and of `members` unless its field is sealed. */
export type Column = { [F in FieldName]: ColumnsOf<F> }[FieldName]
type CamelCase<C extends string> = C extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : C
export type ColumnKey = CamelCase<Column>

type WithPresence<P> = { [F in FieldName]: Fields[F]['presence'] extends P ? F : never }[FieldName]
type Schemas<F extends FieldName> = { [Name in F]: Fields[Name]['schema'] }
type Value<F extends FieldName> = Static<Fields[F]['schema']>

/** The fields of a member that a partner sets, as stored: phone in E.164, account normalised. */
export type Profile = { [F in FieldName]: Value<F> }
/** A profile of which some fields may be unknown. */
export type PartialProfile = { [F in FieldName]: Profile[F] | null }
/** A field that is stored sealed. */
export type SealedField = { [F in FieldName]: Fields[F] extends { sealedAs: string } ? F : never }[FieldName]

// The three definitions below rebuild an object from the table's entries, whose names and types TypeScript does not follow.

/** The wire schema of each field of a presence. */
export function schemasOf<P extends Field['presence']>(presence: P): Schemas<WithPresence<P>> {
  return Object.fromEntries(
    Object.entries(table).flatMap(([name, field]) => (field.presence === presence ? [[name, field.schema]] : [])),
  ) as Schemas<WithPresence<P>>
}

/** The default of each optional field of a new member. */
export const absentValues = Object.fromEntries(
  Object.entries<Field>(table).flatMap(([name, { presence, schema }]) =>
    presence === 'required'
      ? []
      : [[name, presence === 'defaulted' ? (schema as { default?: unknown }).default : null]],
  ),
) as Pick<Profile, WithPresence<'nullable' | 'defaulted'>>

/** Every column, in the order of the template. */
export const columnSpecs = Object.entries<Field>(table).flatMap(([field, { presence, sealedAs, columns }]) =>
  Object.entries(columns).map(([name, spec]) => ({
    ...spec,
    name,
    key: camelCase(name),
    field,
    sealedAs,
    // If a column cannot be null, an empty cell keeps the current value.
    emptyCell: { required: 'refused', nullable: 'removes', defaulted: 'keeps' }[presence],
  })),
) as readonly (ColumnSpec & {
  name: Column
  key: ColumnKey
  field: FieldName
  sealedAs: Field['sealedAs']
  emptyCell: 'refused' | 'removes' | 'keeps'
})[]

/** The names of the columns, in the order of the template. */
export const columns: readonly Column[] = columnSpecs.map(({ name }) => name)
export const fieldNames = Object.keys(table) as FieldName[]
export const isSealed = (name: FieldName): name is SealedField => 'sealedAs' in table[name]
export const sealedFields = fieldNames.filter(isSealed)
export const auditedFields = fieldNames.filter(name => table[name].isAudited)

/** Derives a value for each column. */
export function byColumn<T>(derive: (spec: (typeof columnSpecs)[number]) => T): Record<Column, T> {
  return Object.fromEntries(columnSpecs.map(spec => [spec.name, derive(spec)])) as Record<Column, T>
}

function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function parseGender(text: string): string {
  const plain = text.toLowerCase().replace(/[\s-]/g, '')
  return genders.find(each => each.toLowerCase() === plain) ?? text
}

function parseBoolean(text: string): boolean | string {
  return booleans[text.toLowerCase()] ?? text
}
const booleans: Record<string, boolean> = { true: true, false: false, yes: true, no: false }

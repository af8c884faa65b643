import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { BankAccountEU, BankAccountUK } from '../bank-accounts/schema.ts'
import type { Cell } from '../imports/rows.ts'
import { type Column, columns, NewMember } from '../members/schema.ts'
import { hasVisible, visibleFormat } from '../text.ts'

const required: Column[] = ['email', 'first_name', 'last_name', 'phone', 'tier']
const ukAccount: Column[] = ['sort_code', 'account_number', 'account_holder']
const euAccount: Column[] = ['iban', 'account_holder']
// What our own files say beside: a file with the outcome added may come back.
const added = ['row', 'member_id', 'status', 'action', 'outcome', 'message']

/** What a column of a file is; null: one that we have added, which says nothing. */
export type Header = (Column | 'action' | null)[]

/** Reads the header. Case, blanks, hyphens and underscores do not matter. @returns with `faults`, it cannot be used */
export function readHeader(cells: Cell[]): { header: Header; faults: string[] } {
  const names = cells.map(cell => String(cell ?? '').trim())
  // Spreadsheets like to add empty columns at the end.
  while (names.at(-1) === '') names.pop()
  const header = names.map(name => [...columns, 'action' as const].find(each => plain(each) === plain(name)) ?? null)
  const has = (column: Column) => header.includes(column)
  const unknown = names.filter(
    (name, index) => header[index] === null && !added.some(each => plain(each) === plain(name)),
  )
  const twice = columns.filter(column => header.filter(each => each === column).length > 1)
  const missing = [
    ...required,
    // Half an account could never be told from none.
    ...(ukAccount.slice(0, 2).some(has) ? ukAccount : []),
    ...(has('iban') ? euAccount : []),
    ...(has('account_holder') && !has('iban') ? ukAccount : []),
  ].filter(column => !has(column))
  const faults = [
    ...[...new Set(missing)].map(column => `the column ${column} is missing`),
    ...twice.map(column => `the column ${column} is there twice`),
    ...unknown.map(name => `the column ${JSON.stringify(name.slice(0, 60))} is not known; leave it out`),
  ]
  return { header, faults: faults.length > 0 ? [...faults, `the columns are: ${columns.join(', ')}`] : [] }
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '')
}

/** A row in the words of the API. Empty cells are left out, but for `enablePayroll`: null where it is not said. */
export type RowRead = { body: NewMember; enablePayroll: boolean | null }

/** Reads a row. @returns what it says, or everything that is wrong with its cells, each with its column */
export function readRow(cells: Cell[], header: Header): RowRead | string[] {
  const faults: string[] = []
  const text: Partial<Record<Column, string>> = {}
  for (let index = 0; index < header.length; index++) {
    const column = header[index]
    if (column == null) continue
    if (column === 'action') {
      // A file of results that comes back as it is would bring back everybody whom it says to be gone.
      if (cells[index] === 'Offboard') faults.push('action: whoever was offboarded is in no list; take the row out')
      continue
    }
    const read = readCell(cells[index] ?? null, column)
    if (typeof read === 'string') {
      if (read !== '') text[column] = read
    } else faults.push(`${column}: ${read.fault}`)
  }
  // A cell that cannot be read is not an empty one.
  const isAccountRead = ![...ukAccount, ...euAccount].some(column =>
    faults.some(fault => fault.startsWith(`${column}:`)),
  )
  const body = bodyOf(text)
  for (const column of required) {
    if (text[column] === undefined && column !== 'phone' && !faults.some(fault => fault.startsWith(`${column}:`)))
      faults.push(`${column}: is empty`)
  }
  for (const { column, isValid, message } of checks) {
    const value = body[column]
    if (value !== undefined && !isValid(value)) faults.push(`${column}: ${message}`)
  }
  if (isAccountRead) faults.push(...accountFaults(text))
  if (faults.length > 0) return faults
  // Every column has been checked by the schema of its field.
  return { body: toBody(text, body) as NewMember, enablePayroll: (body.enable_payroll as boolean | undefined) ?? null }
}

function readCell(cell: Cell, column: Column): string | { fault: string } {
  // A blank around a cell is no part of what it says.
  if (typeof cell === 'string') {
    const text = cell.trim()
    if (text.includes('\0') || !text.isWellFormed()) return { fault: 'holds a character that is none; type it again' }
    return text.startsWith('#') && formulaErrors.test(text) ? { fault: `holds ${text}, the error of a formula` } : text
  }
  if (cell === null) return ''
  if (typeof cell === 'boolean') return String(cell)
  if (typeof cell === 'object') {
    return column === 'dob' ? cell.day : { fault: 'the cell is a date; format the column as text and type it again' }
  }
  const digits = String(cell)
  const length = { sort_code: 6, account_number: 8 }[column as string]
  // With all its digits nothing can have been lost.
  if (length !== undefined && digits.length === length) return digits
  if (['sort_code', 'account_number', 'worker_id', 'phone'].includes(column)) {
    return {
      fault: `the cell is a number (${digits.slice(0, 20)}), which loses leading zeros; format the column as text and type it again`,
    }
  }
  if (column === 'dob')
    return { fault: `the cell is a number; format the column as a date, or type it like 1990-06-24` }
  return digits
}

const formulaErrors = /^#(N\/A|REF!|VALUE!|DIV\/0!|NAME\?|NUM!|NULL!|SPILL!|CALC!)$/

// What a column says, as the field of the API takes it.
function bodyOf(text: Partial<Record<Column, string>>): Partial<Record<Column, unknown>> {
  const payroll = text.enable_payroll?.toLowerCase()
  const gender = text.gender?.toLowerCase().replace(/[\s-]/g, '')
  return {
    ...text,
    ...(gender === undefined ? {} : { gender: genders.find(each => each.toLowerCase() === gender) ?? text.gender }),
    ...(payroll === undefined ? {} : { enable_payroll: booleans[payroll] ?? payroll }),
  }
}

const genders = ['Female', 'Male', 'NonBinary']
const booleans: Record<string, boolean> = { true: true, false: false, yes: true, no: false }

function accountFaults({ sort_code, account_number, account_holder, iban }: Partial<Record<Column, string>>): string[] {
  const hasUk = sort_code !== undefined || account_number !== undefined
  if (hasUk && iban !== undefined) return ['iban: an account has a sort code and a number, or an iban, not both']
  return [
    ...(hasUk && sort_code === undefined ? ['sort_code: is empty, but there is an account_number'] : []),
    ...(hasUk && account_number === undefined ? ['account_number: is empty, but there is a sort_code'] : []),
    ...(account_holder === undefined && (hasUk || iban !== undefined)
      ? ['account_holder: is empty, but there is an account']
      : []),
    ...(account_holder !== undefined && !hasUk && iban === undefined
      ? ['account_holder: there is no account beside it']
      : []),
  ]
}

function toBody(
  text: Partial<Record<Column, string>>,
  { gender, enable_payroll: enablePayroll }: Partial<Record<Column, unknown>>,
) {
  const { email, first_name: firstName, last_name: lastName, tier, phone, worker_id: workerId, dob } = text
  const { sort_code: sortCode, account_number: accountNumber, account_holder: accountHolder, iban } = text
  const accountDetails =
    iban !== undefined
      ? { accountHolder, iban }
      : sortCode !== undefined
        ? { accountHolder, sortCode, accountNumber }
        : null
  return {
    ...{ email, firstName, lastName, tier, phone: phone ?? null, workerId: workerId ?? null },
    ...{ accountDetails, dob: dob ?? null, gender: gender ?? null },
    ...(enablePayroll === undefined ? {} : { enablePayroll }),
  }
}

const ajv = new Ajv({ strict: false, coerceTypes: false })
formats.default(ajv)
ajv.addFormat(visibleFormat, hasVisible)
const { properties: fields } = NewMember
const schemas: Record<Column, { schema: object; message: string }> = {
  email: { schema: fields.email, message: 'is not an e-mail address, like sam.okafor@example.com' },
  first_name: { schema: fields.firstName, message: 'must be one line of at most 100 characters, one of them visible' },
  last_name: { schema: fields.lastName, message: 'must be one line of at most 100 characters, one of them visible' },
  phone: { schema: fields.phone, message: 'is not a phone number, like +447700900123' },
  tier: { schema: fields.tier, message: 'is longer than the name of a tier can be' },
  worker_id: { schema: fields.workerId, message: 'must be one line of at most 100 characters, one of them visible' },
  sort_code: { schema: BankAccountUK.properties.sortCode, message: 'must be 6 digits, like 089999' },
  account_number: { schema: BankAccountUK.properties.accountNumber, message: 'must be 8 digits, like 66374958' },
  account_holder: {
    schema: BankAccountUK.properties.accountHolder,
    message: 'must be one line of at most 140 characters, one of them visible',
  },
  iban: { schema: BankAccountEU.properties.iban, message: 'is not an IBAN, like DE89370400440532013000' },
  dob: { schema: fields.dob, message: 'is not a day that exists, from 1900 on, written like 1990-06-24' },
  gender: { schema: fields.gender, message: `must be one of ${genders.join(', ')}` },
  enable_payroll: { schema: fields.enablePayroll, message: 'must be true or false' },
}
const checks = columns.map(column => {
  const { schema, message } = schemas[column]
  const isValid = ajv.compile(schema)
  // The database knows no year 0.
  return {
    column,
    isValid: column === 'dob' ? (day: unknown) => isValid(day) && String(day) >= '1900' : isValid,
    message,
  }
})

import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { byColumn, type Column, columnSpecs, columns } from '../members/fields.ts'
import type { NewMember } from '../members/schema.ts'
import { type Cell, readHeader as readNames } from '../tabular/tabular.ts'
import { hasVisible, visibleFormat } from '../text.ts'

// `phone` is required, since a list without it would remove every phone number.
const required: Column[] = [
  ...columnSpecs.flatMap(({ name, emptyCell }) => (emptyCell === 'refused' || name === 'phone' ? [name] : [])),
]
const ukAccount: Column[] = ['sort_code', 'account_number', 'account_holder']
const euAccount: Column[] = ['iban', 'account_holder']
const accountColumns = [...ukAccount, ...euAccount]
// A results file has these columns too, and may be uploaded again.
const added = ['row', 'member_id', 'status', 'action', 'outcome', 'message']

/** Columns of a file; null for a column that a results file adds and that is not read. */
export type Header = (Column | 'action' | null)[]

/** Reads the header. @returns a header that is unusable if it has `faults` */
export function readHeader(cells: Cell[]): { header: Header; faults: string[] } {
  const read = readNames(cells, {
    known: columns,
    ignored: added,
    required: has => [
      ...required,
      // Half an account would be indistinguishable from none.
      ...(ukAccount.slice(0, 2).some(has) ? ukAccount : []),
      ...(has('iban') ? euAccount : []),
      ...(has('account_holder') && !has('iban') ? ukAccount : []),
    ],
  })
  return {
    header: read.columns.map((column, index) => (read.ignored[index] === 'action' ? 'action' : column)),
    faults: read.faults.length > 0 ? [...read.faults, `the columns are: ${columns.join(', ')}; leave others out`] : [],
  }
}

/** A row in the shape of the API: empty cells are null, and fields with a default are left out if they are empty. */
export type RowRead = { body: Partial<NewMember>; faults: string[] }

/** Reads a row. @returns the values of the valid cells, and every fault of the others, prefixed with its column */
export function readRow(cells: Cell[], header: Header): RowRead {
  const faults: string[] = []
  const faulty = new Set<Column>()
  const addFault = (column: Column, message: string) => {
    faulty.add(column)
    faults.push(`${column}: ${message}`)
  }
  const values: Partial<Record<Column, unknown>> = {}
  for (let index = 0; index < header.length; index++) {
    const column = header[index]
    if (column == null) continue
    if (column === 'action') {
      // An unedited results file would otherwise reinstate every member that it reports as offboarded.
      if (cells[index] === 'Offboard') faults.push('action: offboarded members are not part of a list; remove the row')
      continue
    }
    const read = readCell(cells[index] ?? null, column)
    if (typeof read === 'object') addFault(column, read.fault)
    else if (read !== '') values[column] = read
  }
  // An unreadable cell is not an empty one.
  const isAccountRead = !accountColumns.some(column => faulty.has(column))
  for (const { name, emptyCell } of columnSpecs) {
    if (emptyCell === 'refused' && values[name] === undefined && !faulty.has(name)) addFault(name, 'is empty')
    const { parse, isValid, message } = checks[name]
    const text = values[name]
    if (text === undefined) continue
    const value = parse === undefined ? text : parse(text as string)
    if (isValid(value)) values[name] = value
    else addFault(name, message)
  }
  const halves = isAccountRead ? accountFaults(values) : []
  faults.push(...halves)
  for (const column of faulty) delete values[column]
  const hasAccount = halves.length === 0 && !accountColumns.some(column => faulty.has(column))
  return { body: bodyOf(hasAccount ? values : withoutAccount(values)), faults }
}

/** @returns the text of a cell, '' if it is empty */
function readCell(cell: Cell, column: Column): string | { fault: string } {
  // Leading and trailing spaces are not part of a value.
  if (typeof cell === 'string') {
    const text = cell.trim()
    if (text.includes('\0') || !text.isWellFormed()) return { fault: 'contains an invalid character; type it again' }
    return text.startsWith('#') && formulaErrors.test(text) ? { fault: `contains the formula error ${text}` } : text
  }
  if (cell === null) return ''
  if (typeof cell === 'boolean') return String(cell)
  const { sqlType, digits } = checks[column]
  if (typeof cell === 'object') {
    return sqlType === 'date' ? cell.day : { fault: 'the cell is a date; format the column as text and type it again' }
  }
  const number = String(cell)
  // With the full number of digits, no leading zero can have been lost.
  if (number.length === digits) return number
  if (digits !== undefined) {
    return {
      fault: `the cell is a number (${number.slice(0, 20)}), which loses leading zeros; format the column as text and type it again`,
    }
  }
  if (sqlType === 'date') {
    return { fault: 'the cell is a number; format the column as a date, or type it like 1990-06-24' }
  }
  return number
}

const formulaErrors = /^#(N\/A|REF!|VALUE!|DIV\/0!|NAME\?|NUM!|NULL!|SPILL!|CALC!)$/

type Values = Partial<Record<Column, unknown>>

function accountFaults({ sort_code, account_number, account_holder, iban }: Values): string[] {
  const hasUk = sort_code !== undefined || account_number !== undefined
  if (hasUk && iban !== undefined) return ['iban: an account has a sort code and a number, or an iban, not both']
  return [
    ...(hasUk && sort_code === undefined ? ['sort_code: is empty, but there is an account_number'] : []),
    ...(hasUk && account_number === undefined ? ['account_number: is empty, but there is a sort_code'] : []),
    ...(account_holder === undefined && (hasUk || iban !== undefined)
      ? ['account_holder: is empty, but there is an account']
      : []),
    ...(account_holder !== undefined && !hasUk && iban === undefined ? ['account_holder: the row has no account'] : []),
  ]
}

// Every value has been checked by the schema of its column.
function bodyOf(values: Values): Partial<NewMember> {
  const body: Record<string, unknown> = { accountDetails: accountOf(values) }
  for (const { name, key, field, emptyCell } of columnSpecs) {
    if (field === 'accountDetails') continue
    const value = values[name]
    if (value !== undefined) body[key] = value
    else if (emptyCell === 'removes') body[key] = null
  }
  return body as Partial<NewMember>
}

function withoutAccount(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !accountColumns.includes(name as Column)))
}

function accountOf({
  sort_code: sortCode,
  account_number: accountNumber,
  account_holder: accountHolder,
  iban,
}: Values) {
  if (iban !== undefined) return { accountHolder, iban }
  return sortCode === undefined ? null : { accountHolder, sortCode, accountNumber }
}

const ajv = new Ajv({ strict: false, coerceTypes: false })
formats.default(ajv)
ajv.addFormat(visibleFormat, hasVisible)
const checks = byColumn(({ schema, ...spec }) => ({ ...spec, isValid: ajv.compile<unknown>(schema) }))

import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import { hasVisible, visibleFormat } from '../kernel/text.ts'
import { byColumn, type Column, columnSpecs, columns } from '../members/fields.ts'
import type { NewMember } from '../members/schema.ts'
import { type Cell, readHeader as readNames } from '../tabular/tabular.ts'

// `phone` is required, since a list without it would remove every phone number.
const required: Column[] = [
  ...columnSpecs.flatMap(({ name, emptyCell }) => (emptyCell === 'refused' || name === 'phone' ? [name] : [])),
]
const ukAccount: Column[] = ['sort_code', 'account_number', 'account_holder']
const euAccount: Column[] = ['iban', 'account_holder']
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

/**
 * Returns a function that reads the rows below a header. It returns the values of the valid cells, and every fault of the others,
 * prefixed with its column.
 */
export function rowReader(header: Header): (cells: Cell[]) => RowRead {
  const actionAt = header.indexOf('action')
  const given = header.filter(column => column !== null && column !== 'action')
  const absent = columns.filter(column => !given.includes(column))
  // In the order of the file, which is the order of the faults.
  const cellsRead = [...given, ...absent].map(name => ({ ...checks[name], at: header.indexOf(name) }))
  return cells => {
    const faults: string[] = []
    const body: Record<string, unknown> = { accountDetails: null }
    const account: Account = {}
    let [isAccountRead, isAccountValid] = [true, true]
    // An unedited results file would otherwise reinstate every member that it reports as offboarded.
    if (cells[actionAt] === 'Offboard') faults.push('action: offboarded members are not part of a list; remove the row')
    for (const check of cellsRead) {
      const { name, key, field, emptyCell } = check
      // Index -1 would be looked up as the name of a property, which is slow.
      const { text, value, fault } = readCell(check.at === -1 ? null : (cells[check.at] ?? null), check)
      if (fault !== undefined) faults.push(`${name}: ${fault}`)
      if (field !== 'accountDetails') {
        if (value !== null) body[key] = value
        else if (emptyCell === 'removes') body[key] = null
        continue
      }
      // An unreadable cell is not an empty one.
      if (text === undefined) isAccountRead = false
      if (fault !== undefined) isAccountValid = false
      if (text) account[key as keyof Account] = text
    }
    const halves = isAccountRead ? accountFaults(account) : []
    faults.push(...halves)
    if (isAccountRead && isAccountValid && halves.length === 0) body.accountDetails = accountOf(account)
    // Every value has been checked by the schema of its column.
    return { body: body as Partial<NewMember>, faults }
  }
}

type Account = Partial<Record<'accountHolder' | 'sortCode' | 'accountNumber' | 'iban', string>>

/** `text` is undefined if the cell is unreadable; `value` is null if it is empty or has a fault. */
type ReadCell = { text?: string; value: unknown; fault?: string }

function readCell(cell: Cell, check: Check): ReadCell {
  const text = textOf(cell, check)
  if (typeof text === 'object') return { value: null, fault: text.fault }
  if (text === '') return check.emptyCell === 'refused' ? refusedEmptyCell : emptyCell
  const value = check.parse === undefined ? text : check.parse(text)
  return check.isValid(value) ? { text, value } : { text, value: null, fault: check.message }
}

const emptyCell: ReadCell = { text: '', value: null }
const refusedEmptyCell: ReadCell = { text: '', value: null, fault: 'is empty' }

/** @returns the text of a cell, '' if it is empty */
function textOf(cell: Cell, { sqlType, digits }: Check): string | { fault: string } {
  // Leading and trailing spaces are not part of a value.
  if (typeof cell === 'string') {
    const text = cell.trim()
    if (text.includes('\0') || !text.isWellFormed()) return { fault: 'contains an invalid character; type it again' }
    return text.startsWith('#') && formulaErrors.test(text) ? { fault: `contains the formula error ${text}` } : text
  }
  if (cell === null) return ''
  if (typeof cell === 'boolean') return String(cell)
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

function accountFaults({ sortCode, accountNumber, accountHolder, iban }: Account): string[] {
  const hasUk = sortCode !== undefined || accountNumber !== undefined
  if (hasUk && iban !== undefined) return ['iban: an account has a sort code and a number, or an iban, not both']
  return [
    ...(hasUk && sortCode === undefined ? ['sort_code: is empty, but there is an account_number'] : []),
    ...(hasUk && accountNumber === undefined ? ['account_number: is empty, but there is a sort_code'] : []),
    ...(accountHolder === undefined && (hasUk || iban !== undefined)
      ? ['account_holder: is empty, but there is an account']
      : []),
    ...(accountHolder !== undefined && !hasUk && iban === undefined ? ['account_holder: the row has no account'] : []),
  ]
}

function accountOf({ sortCode, accountNumber, accountHolder, iban }: Account) {
  if (iban !== undefined) return { accountHolder, iban }
  return sortCode === undefined ? null : { accountHolder, sortCode, accountNumber }
}

const ajv = new Ajv({ strict: false, coerceTypes: false })
formats.default(ajv)
ajv.addFormat(visibleFormat, hasVisible)
const checks = byColumn(({ schema, ...spec }) => ({ ...spec, isValid: ajv.compile<unknown>(schema) }))
type Check = (typeof checks)[Column]

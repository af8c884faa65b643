import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { CsvError, parse } from 'csv-parse/sync'
import { SaxesParser } from 'saxes'
import { type Static, Type } from 'typebox'
import { inWords, type Money } from '../../../kernel/money.ts'
import { strictObject, wordOf } from '../../../kernel/schemas.ts'
import { BankFileProblem, type ReadBankFile, type ReadLimits } from '../bank-files.ts'
import { ukPaymentMax } from '../uk-payments.ts'

/**
 * How a bank or a bureau writes ARUCS. No layout is public: in CSV, the columns are named by the header of the file. The XML reader follows
 * ARUDD by analogy; no real file has been seen.
 */
export type ArucsOptions = Static<typeof ArucsCsv> | Static<typeof ArucsXml>

const Column = Type.String({ minLength: 1, maxLength: 140 })
const ArucsCsv = strictObject({
  format: Type.Literal('csv'),
  /** Names of columns, as the header writes them. */
  columns: strictObject({
    reference: Column,
    amount: Column,
    reasonCode: Column,
    reasonText: Type.Optional(Column),
    currency: Type.Optional(Column),
  }),
  /** Default ','. */
  delimiter: Type.Optional(wordOf([',', ';', '\t', '|'])),
  /** `pounds`: with two decimals (default). `pence`: whole. */
  amountIn: Type.Optional(wordOf(['pounds', 'pence'])),
})
const ArucsXml = strictObject({ format: Type.Literal('xml') })

export const ArucsOptions = Type.Unsafe<ArucsOptions>({
  type: 'object',
  required: ['format'],
  discriminator: { propertyName: 'format' },
  oneOf: [ArucsCsv, ArucsXml],
})

const limits = {
  // The longest row of CSV or tag of XML, in characters. Real ones have a few hundred.
  rowCharsMax: 64 * 1024,
  // How many rows to search for the header: titles, dates and account details stand above it.
  rowsAboveMax: 50,
  // Real documents have seven levels.
  depthMax: 40,
  // How much of the bank's words is kept. The rest is cut.
  reasonTextCharsMax: 200,
}

/**
 * Reads ARUCS, the advice of credits that came back to us. Every record is a returned payment, with the code as it is.
 *
 * No message id of the file is known to be unique, so the first item stands for it. The reference identifies an entry, because a payment of
 * ours is returned once: an item that a bank repeats in a later file is the same entry.
 */
export function arucsReader(options: ArucsOptions): ReadBankFile {
  return (bytes, readLimits) => read(bytes, readLimits, options)
}

/** An item as the file has it, with the line on which it begins. */
type Item = {
  line: number
  reference: string
  amount: string
  reasonCode: string
  reasonText: string | undefined
  currency: string | undefined
}

async function* read(
  bytes: AsyncIterable<Uint8Array>,
  { bytesMax, recordsMax }: ReadLimits,
  options: ArucsOptions,
): ReturnType<ReadBankFile> {
  const items =
    options.format === 'csv' ? csvItems(decodedLines(bytes, bytesMax), options) : xmlItems(decoded(bytes, bytesMax))
  const amountIn = options.format === 'csv' ? (options.amountIn ?? 'pounds') : 'pounds'
  const lines = new Map<string, number>()
  for await (const item of items) {
    const { line, reference, reasonCode } = item
    const refuse = (message: string): never => {
      throw new BankFileProblem(message, { line })
    }
    if (lines.size >= recordsMax) refuse(`The file has more than ${recordsMax} items`)
    if (!/^[\x20-\x7e]{1,18}$/.test(reference)) refuse('The reference is missing or has more than 18 characters')
    if (!/^[0-9A-Za-z]{1,4}$/.test(reasonCode)) refuse('The return code is missing or has more than 4 characters')
    const earlier = lines.get(reference)
    if (earlier !== undefined) refuse(`The reference ${reference} is already on line ${earlier}`)
    const amount = moneyOf(item, amountIn, refuse)
    if (lines.size === 0) yield headOf(`${reference} ${reasonCode} ${inWords(amount)}`)
    lines.set(reference, line)
    yield {
      type: 'payment',
      line,
      reference,
      state: 'returned',
      amount,
      entryReference: reference,
      reasonCodes: [reasonCode],
      reasonText: item.reasonText?.slice(0, limits.reasonTextCharsMax) || null,
    }
  }
  if (lines.size === 0) yield headOf('no items')
}

function headOf(firstItem: string) {
  const messageId = `ARUCS-${createHash('sha256').update(firstItem).digest('hex').slice(0, 24).toUpperCase()}`
  return { type: 'head' as const, head: { message: 'ARUCS' as const, messageId, createdAt: null, account: null } }
}

function moneyOf(
  { amount: text, currency = 'GBP' }: Item,
  amountIn: 'pounds' | 'pence',
  refuse: (message: string) => never,
): Money {
  if (currency !== 'GBP') refuse(`The currency is ${JSON.stringify(currency.slice(0, 10))}, not GBP`)
  // Spreadsheets leave out zeros at the end.
  const form =
    amountIn === 'pence' ? /^([0-9]{1,11})$/ : /^([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,2})(?:\.([0-9]{1,2}))?$/
  const [, whole = '', pence = ''] = form.exec(text.replace(/^£/, '')) ?? []
  if (whole === '') refuse(`${JSON.stringify(text.slice(0, 30))} is not an amount in ${amountIn}`)
  const amount = BigInt(whole.replaceAll(',', '') + (amountIn === 'pence' ? '' : pence.padEnd(2, '0')))
  if (amount < 1n || amount > ukPaymentMax.bacs) refuse('The amount is outside what Bacs can pay')
  return { amount, currency: 'GBP' }
}

/** @throws BankFileProblem if the file is larger than allowed, or is not UTF-8 text */
async function* decoded(bytes: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let size = 0
  let line = 1
  const refuse = (message: string, textBefore: string): never => {
    throw new BankFileProblem(message, { line: line + lineEndsOf(textBefore) })
  }
  const decode = (chunk: Uint8Array = new Uint8Array(), stream = false): string => {
    try {
      return decoder.decode(chunk, { stream })
    } catch {
      const readable = Buffer.from(chunk).toString().split('\ufffd')[0] ?? ''
      return refuse('The file is not UTF-8', readable)
    }
  }
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > bytesMax) throw new BankFileProblem(`The file is larger than ${bytesMax} bytes`)
    const text = decode(chunk, true)
    if (text.includes('\0')) refuse('The file contains a NUL character', text.slice(0, text.indexOf('\0')))
    yield text
    line += lineEndsOf(text)
  }
  decode()
}

/**
 * Decodes whole lines: UTF-8, or else windows-1252, the superset of Latin-1 that banks in the UK write. A part of the lines that is
 * not UTF-8 does not change how the others are read.
 */
async function* decodedLines(bytes: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  let size = 0
  let line = 1
  let rest: Uint8Array = new Uint8Array()
  const decode = (lines: Uint8Array) => {
    const text = isUtf8(lines) ? Buffer.from(lines).toString() : new TextDecoder('windows-1252').decode(lines)
    const nul = text.indexOf('\0')
    if (nul >= 0)
      throw new BankFileProblem('The file contains a NUL character', { line: line + lineEndsOf(text.slice(0, nul)) })
    line += lineEndsOf(text)
    return text
  }
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > bytesMax) throw new BankFileProblem(`The file is larger than ${bytesMax} bytes`)
    const all = Buffer.concat([rest, chunk])
    // A line that is too long is refused by its reader.
    const end = all.length > limits.rowCharsMax ? all.length : all.lastIndexOf('\n') + 1
    if (end > 0) yield decode(all.subarray(0, end))
    rest = all.subarray(end)
  }
  if (rest.length > 0) yield decode(rest)
}

function lineEndsOf(text: string): number {
  return text.split('\n').length - 1
}

async function* csvItems(
  text: AsyncIterable<string>,
  { columns, delimiter = ',' }: ArucsOptions & { format: 'csv' },
): AsyncGenerator<Item> {
  const search = new HeaderSearch(Object.values(columns))
  let header: string[] | undefined
  for await (const { line, row } of rowsOf(text)) {
    if (header === undefined) {
      header = search.headerIn(row, { line, delimiter })
      continue
    }
    const cells = cellsOf(row, { line, delimiter })
    if (cells.length !== header.length)
      throw new BankFileProblem(`The row has ${cells.length} cells, and the header ${header.length}`, { line })
    const names = header
    const cell = (name: string | undefined) => (name === undefined ? undefined : cells[names.indexOf(folded(name))])
    yield {
      line,
      reference: cell(columns.reference) ?? '',
      amount: cell(columns.amount) ?? '',
      reasonCode: cell(columns.reasonCode) ?? '',
      reasonText: cell(columns.reasonText),
      currency: cell(columns.currency),
    }
  }
  if (header === undefined) throw search.problem()
}

/** Finds the header, which may stand below a title and other lines. Its names are compared without regard to case. */
class HeaderSearch {
  readonly #needed: string[]
  #rows = 0
  /** The row that has the most of the columns. */
  #closest: { line: number; missing: string[] } | undefined

  constructor(needed: string[]) {
    this.#needed = needed
  }

  /**
   * The names of the header, folded; undefined if the row is not the header.
   * @throws BankFileProblem if a column is there twice, or the header is overdue
   */
  headerIn(row: string, { line, delimiter }: { line: number; delimiter: string }): string[] | undefined {
    this.#rows += 1
    const names = cellsAbove(row, { line, delimiter }).map(folded)
    const missing = this.#needed.filter(name => !names.includes(folded(name)))
    if (missing.length === 0) {
      const repeated = this.#needed.find(name => names.filter(each => each === folded(name)).length > 1)
      if (repeated !== undefined) throw new BankFileProblem(`The header has more than one column ${repeated}`, { line })
      return names
    }
    if (missing.length < (this.#closest?.missing ?? this.#needed).length) this.#closest = { line, missing }
    if (this.#rows >= limits.rowsAboveMax) throw this.problem()
    return undefined
  }

  problem(): BankFileProblem {
    if (this.#rows === 0) return new BankFileProblem('The file is empty', { line: 1 })
    const { line = 1, missing = this.#needed } = this.#closest ?? {}
    const fault = missing.length < this.#needed.length ? 'The header has no column' : 'The file has no header with'
    return new BankFileProblem(`${fault} ${missing.join(', ')}`, { line })
  }
}

/** Lines above the header need not be CSV. */
function cellsAbove(row: string, of: { line: number; delimiter: string }): string[] {
  try {
    return cellsOf(row, of)
  } catch {
    return []
  }
}

function folded(name: string): string {
  return name.trim().toLowerCase()
}

/** Cuts a text into its lines that are not blank. A row is one line, so that a quote that is never closed ends with it. */
async function* rowsOf(text: AsyncIterable<string>): AsyncGenerator<{ line: number; row: string }> {
  let line = 0
  let rest = ''
  for await (const piece of text) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop() ?? ''
    for (const row of lines) {
      line += 1
      if (row.length > limits.rowCharsMax) throw tooLongRow(line)
      if (row.trim() !== '') yield { line, row }
    }
    if (rest.length > limits.rowCharsMax) throw tooLongRow(line + 1)
  }
  if (rest.trim() !== '') yield { line: line + 1, row: rest }
}

function tooLongRow(line: number): BankFileProblem {
  return new BankFileProblem(`The row is longer than ${limits.rowCharsMax} characters`, { line })
}

/** @throws BankFileProblem */
function cellsOf(row: string, { line, delimiter }: { line: number; delimiter: string }): string[] {
  try {
    const [cells = []] = parse(row.trim(), { delimiter, bom: true })
    return cells.map(cell => cell.trim())
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new BankFileProblem(`The CSV is broken: ${error.message.slice(0, 100)}`, { line })
  }
}

/**
 * Unverified: no sample is public. As in ARUDD, an item is an element `Returned…Item` below `OriginatingAccountRecord`, with its
 * fields as attributes.
 */
async function* xmlItems(text: AsyncIterable<string>): AsyncGenerator<Item> {
  const parser = new SaxesParser({ xmlns: false })
  const refuse = (message: string): never => {
    throw new BankFileProblem(message, { line: parser.line })
  }
  let found: Item[] = []
  let hasAdvice = false
  // Characters since the latest event: an upper bound for what the parser holds.
  let held = 0
  const path: string[] = []
  parser.on('error', error => refuse(`The XML is broken: ${error.message.slice(0, 100)}`))
  parser.on('doctype', () => refuse('A DOCTYPE is not allowed'))
  parser.on('opentag', tag => {
    held = 0
    if (path.length >= limits.depthMax) refuse(`More than ${limits.depthMax} nested elements are not allowed`)
    const name = tag.name.slice(tag.name.indexOf(':') + 1)
    hasAdvice ||= path.at(-1) === 'Advice' && name === 'OriginatingAccountRecords'
    if (path.at(-1) === 'OriginatingAccountRecord' && /^Returned[A-Za-z]*Item$/.test(name)) {
      const attributes = new Map(Object.entries(tag.attributes))
      found.push({
        line: parser.line,
        reference: attributes.get('ref')?.trim() ?? '',
        amount: attributes.get('valueOf')?.trim() ?? '',
        reasonCode: attributes.get('returnCode')?.trim() ?? '',
        reasonText: attributes.get('returnDescription'),
        currency: attributes.get('currency'),
      })
    }
    path.push(name)
  })
  parser.on('closetag', () => {
    held = 0
    path.pop()
  })
  const skip = () => {
    held = 0
  }
  parser.on('text', skip)
  parser.on('comment', skip)
  for await (const piece of text) {
    for (let from = 0; from < piece.length; from += limits.rowCharsMax) {
      const slice = piece.slice(from, from + limits.rowCharsMax)
      held += slice.length
      parser.write(slice)
      if (held > 2 * limits.rowCharsMax) refuse('A text or tag is longer than any field may be')
      const items = found
      found = []
      yield* items
    }
  }
  parser.close()
  yield* found
  if (!hasAdvice) refuse('The file is not ARUCS: it has no Advice/OriginatingAccountRecords')
}

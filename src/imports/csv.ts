import { isUtf8 } from 'node:buffer'
import { read } from 'node:fs'
import { promisify } from 'node:util'
import { CsvError, Parser } from 'csv-parse'
import { delimiterOf, unescaped } from '../csv.ts'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import type { Row } from './rows.ts'

/**
 * Reads a CSV file: UTF-8 with or without a byte order mark; commas, semicolons or tabs between cells, whichever its header
 * has most of; any line ends, also mixed ones. Memory does not grow with the file.
 *
 * The apostrophe is taken away that our own files put before a cell, so that a spreadsheet does not take it for a formula.
 * @throws FileFault
 */
export async function* readCsv(fd: number): AsyncGenerator<Row[]> {
  let table: Table | undefined
  for await (const { text, wrong } of checkedText(fd)) {
    table ??= new Table(delimiterOf(text.toString('latin1')))
    yield* inBatches(await table.feed(text, wrong))
    if (table.fault !== undefined) throw table.fault
  }
  if (table === undefined) throw isEmpty()
  yield* inBatches(await table.finish())
  if (table.fault !== undefined) throw table.fault
}

/** Cuts text into rows. It is fed by hand, since a stream that hands over row by row takes twice the time. */
class Table extends Parser {
  /** Why nothing is read any more; the rows before it are good. */
  fault: FileFault | undefined
  private header: string[] | undefined
  private rows: Row[] = []
  private raggedRows = 0

  constructor(delimiter: string) {
    super({
      delimiter,
      bom: true,
      // Left to guess, it would take the header's line end for all, and a file with mixed ones would lose its lines.
      record_delimiter: ['\r\n', '\n', '\r'],
      max_record_size: limits.recordBytesMax,
      // Such a row is named with the others.
      relax_column_count: true,
      skip_empty_lines: true,
    })
    // Whoever feeds it is told; an error that nobody listens to would end the process.
    this.on('error', () => {})
  }

  /** @param wrong what is wrong right behind this text, so that nothing can be read beyond it */
  async feed(text: Buffer, wrong: string | undefined): Promise<Row[]> {
    await this.told(done => this.write(text, done))
    if (wrong !== undefined) {
      // It looks some bytes ahead: without these, the last line end before the fault would not be counted yet.
      await this.told(done => this.write(lookAhead, done))
      this.fault ??= new FileFault(this.rowBeingRead, wrong)
    }
    if (this.rowBeingRead - 2 > limits.rowsMax) this.fault ??= tooManyRows()
    // The library bounds the bytes of a row and not its cells, of which empty ones take no bytes, and tells of them nowhere else.
    const { record } = Reflect.get(this, 'state') as { record: string[] }
    if (record.length > limits.rowCellsMax) this.fault ??= tooManyCells(this.rowBeingRead)
    return this.taken()
  }

  async finish(): Promise<Row[]> {
    await this.told(done => this.end(done))
    if (this.header === undefined) this.fault ??= isEmpty()
    return this.taken()
  }

  override push(cells: string[] | null): boolean {
    if (cells === null) return super.push(null)
    if (this.fault !== undefined) return true
    if (cells.length > limits.rowCellsMax) this.fault = tooManyCells(this.rowBeingRead - 1)
    else if (!cells.every(isBlank)) this.addRow(this.rowBeingRead - 1, cells)
    return true
  }

  private addRow(row: number, cells: string[]): void {
    for (let index = 0; index < cells.length; index++) cells[index] = unescaped(cells[index] ?? '')
    this.header ??= cells
    if (this.header === cells) this.fault = faultOfHeader(row, cells)
    if (row - 1 > limits.rowsMax) this.fault = tooManyRows()
    const isRagged = cells.length !== this.header.length
    if (isRagged && ++this.raggedRows > limits.raggedRowsMax) {
      const message = `More than ${limits.raggedRowsMax} rows have another number of cells than the header`
      this.fault = new FileFault(row, message)
    }
    if (this.fault !== undefined) return
    if (!isRagged && !cells.some(isLong)) this.rows.push({ row, cells })
    else this.rows.push({ row, cells: cells.slice(0, limits.columnsMax).map(cut), fault: faultOf(cells, this.header) })
  }

  private get rowBeingRead(): number {
    return this.info.records + this.info.empty_lines + 1
  }

  private async told(work: (done: (error?: Error | null) => void) => void): Promise<void> {
    // A parser that has failed is destroyed; a write to it would fail with an error of the stream.
    if (this.destroyed) return
    const error = await new Promise<unknown>(work)
    if (!error) return
    if (!(error instanceof CsvError)) throw error
    this.fault ??= new FileFault(this.rowBeingRead, messages[error.code] ?? 'The row is not well-formed CSV')
  }

  private taken(): Row[] {
    const { rows } = this
    this.rows = []
    return rows
  }
}

const lookAhead = Buffer.from('x'.repeat(16))

const messages: Partial<Record<CsvError['code'], string>> = {
  CSV_MAX_RECORD_SIZE: `The row is longer than ${limits.recordBytesMax} bytes; is a quote opened and never closed?`,
  CSV_QUOTE_NOT_CLOSED:
    'A quote is opened in this row and never closed; a quote that is part of a cell is written twice',
  CSV_INVALID_CLOSING_QUOTE: 'Something follows a closing quote; a quote that is part of a cell is written twice',
  INVALID_OPENING_QUOTE:
    'A quote stands in the middle of a cell; put the whole cell in quotes and write the quote within it twice',
}

function isEmpty(): FileFault {
  return new FileFault(1, 'The file is empty; its first row must name the columns')
}

function tooManyRows(): FileFault {
  return new FileFault(
    limits.rowsMax + 2,
    `The file has more than ${limits.rowsMax} rows, which is the longest list that can be taken`,
  )
}

function tooManyCells(row: number): FileFault {
  return new FileFault(row, `The row has more than ${limits.rowCellsMax} cells; is the file cut by another delimiter?`)
}

function faultOfHeader(row: number, cells: string[]): FileFault | undefined {
  if (row !== 1) return new FileFault(1, 'The first row is blank; it must name the columns')
  if (cells.length > limits.columnsMax) {
    return new FileFault(1, `The file has ${cells.length} columns; it may have ${limits.columnsMax}`)
  }
  if (cells.some(isLong))
    return new FileFault(1, `The name of a column is longer than ${limits.cellCharsMax} characters`)
  return undefined
}

function faultOf(cells: string[], header: string[]): string {
  if (cells.length !== header.length) {
    return `The row has ${cells.length} cells, and the header ${header.length}; a cell that holds a delimiter needs quotes`
  }
  const column = JSON.stringify(header[cells.findIndex(isLong)])
  return `The cell in the column ${column} is longer than ${limits.cellCharsMax} characters`
}

function isBlank(cell: string): boolean {
  return cell.trim() === ''
}

function isLong(cell: string): boolean {
  return cell.length > limits.cellCharsMax
}

function cut(cell: string): string {
  return cell.slice(0, limits.cellCharsMax)
}

function* inBatches(rows: Row[]): Generator<Row[]> {
  for (let from = 0; from < rows.length; from += limits.batchRowsMax) {
    yield rows.length <= limits.batchRowsMax ? rows : rows.slice(from, from + limits.batchRowsMax)
  }
}

// Some hundred rows at a time.
const chunkBytes = 64 * 1024

/** The file in chunks that end between two characters, up to the first thing in it that is not text. */
async function* checkedText(fd: number): AsyncGenerator<{ text: Buffer; wrong?: string }> {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = true
  for await (const chunk of chunksOf(fd)) {
    const bytes: Buffer = Buffer.concat([rest, chunk])
    if (isFirst) refuseOtherFormats(bytes)
    isFirst = false
    const text = bytes.subarray(0, wholeCharactersOf(bytes))
    const readable = readableBytesOf(text)
    if (readable < text.length) {
      yield { text: text.subarray(0, readable), wrong: text[readable] === 0 ? holdsNul : notUtf8 }
      return
    }
    yield { text }
    rest = bytes.subarray(text.length)
  }
  if (rest.length > 0) yield { text: Buffer.alloc(0), wrong: notUtf8 }
}

// By hand: a stream closes its file when it is destroyed, whatever it was told.
async function* chunksOf(fd: number): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    const { bytesRead } = await promisify(read)(fd, chunk, 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}

const notUtf8 = 'The row is not valid UTF-8; save the file as "CSV UTF-8"'
const holdsNul = 'The row holds a NUL, which is no text; save the file as "CSV UTF-8" again'

/** @throws FileFault for what is no CSV at all, by what it begins with */
function refuseOtherFormats(bytes: Buffer): void {
  const format = otherFormats.find(({ starts }) => starts.some(start => bytes.indexOf(start) === 0))
  if (format !== undefined) throw new FileFault(1, format.message)
  // Letters of two or four bytes each, without the mark that would say so.
  if (bytes.subarray(0, 4).includes(0)) throw new FileFault(1, savedAsUtf16)
  if (/^\s*</.test(bytes.toString('latin1', 0, 1_000).replace('\xef\xbb\xbf', ''))) {
    throw new FileFault(
      1,
      'The file is a web page or XML, not CSV; open it in a spreadsheet and save it as "CSV UTF-8"',
    )
  }
}

const savedAsUtf16 = 'The file is saved as UTF-16 ("Unicode text"); save it as "CSV UTF-8"'
const otherFormats = [
  {
    starts: [
      [0xff, 0xfe],
      [0xfe, 0xff],
    ].map(bytes => Buffer.from(bytes)),
    message: savedAsUtf16,
  },
  {
    starts: [Buffer.from('PK\x03\x04'), Buffer.from('PK\x05\x06')],
    message: 'The file is an Excel workbook or a zip, not CSV; send a workbook as .xlsx, or save it as "CSV UTF-8"',
  },
  {
    starts: [Buffer.from('d0cf11e0a1b11ae1', 'hex')],
    message: 'The file is an old Excel workbook (.xls), not CSV; save it as "CSV UTF-8" or as .xlsx',
  },
  { starts: [Buffer.from('%PDF')], message: 'The file is a PDF, not CSV; save the list as "CSV UTF-8" or as .xlsx' },
  { starts: [Buffer.from([0x1f, 0x8b])], message: 'The file is compressed (gzip); unpack it first' },
]

/** @returns how many bytes there are before a character that goes on in the next chunk */
function wholeCharactersOf(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    const isLead = byte >= 0xc0
    if (isLead) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** @returns how many bytes there are before the first that is no UTF-8, or NUL */
function readableBytesOf(text: Buffer): number {
  const nul = text.indexOf(0)
  const withoutNul = nul === -1 ? text : text.subarray(0, nul)
  if (isUtf8(withoutNul)) return withoutNul.length
  let good = 0
  let bad = withoutNul.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    const beginning = withoutNul.subarray(0, middle)
    if (isUtf8(beginning.subarray(0, wholeCharactersOf(beginning)))) good = middle
    else bad = middle
  }
  return good
}

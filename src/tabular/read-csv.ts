import { CsvError, type Parser, parse } from 'csv-parse'
import { piecesOf } from '../kernel/pace.ts'
import { readText } from './csv-text.ts'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import type { Row } from './rows.ts'
import { unescaped } from './write-csv.ts'

/**
 * Reads a CSV file: UTF-8 with or without a byte order mark, delimited by commas, semicolons or tabs, with line ends of any
 * kind, even mixed. Memory does not grow with the file.
 *
 * Removes the apostrophes that `escapeFormulas` put into files that we wrote.
 * @throws FileFault
 */
export async function* readCsv(fd: number): AsyncGenerator<Row[]> {
  let table: Table | undefined
  for await (const { text, wrong } of readText(fd)) {
    table ??= new Table(detectDelimiter(text))
    yield* piecesOf(await table.feed(text, wrong), limits.batchRowsMax)
    if (table.fault !== undefined) throw table.fault
  }
  if (table === undefined) throw isEmpty()
  yield* piecesOf(await table.finish(), limits.batchRowsMax)
  if (table.fault !== undefined) throw table.fault
}

/** Detects the delimiter of a file: the most frequent of comma, semicolon and tab in its header, outside quotes. */
export function detectDelimiter(text: string): string {
  const counts = { ',': 0, ';': 0, '\t': 0 }
  let isQuoted = false
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === '\n' || character === '\r') break
    else if (character in counts) counts[character as keyof typeof counts]++
  }
  return counts[';'] > counts[','] || counts['\t'] > counts[','] ? (counts[';'] >= counts['\t'] ? ';' : '\t') : ','
}

/**
 * Splits text into rows. Before the first quote of a file, a row is a line, and splitting lines is six times as fast as a parser.
 * From the row with the first quote, csv-parse takes over.
 */
class Table {
  /** Why reading stopped. The rows before it are valid. */
  fault: FileFault | undefined
  private readonly delimiter: string
  private header: string[] | undefined
  private rows: Row[] = []
  private raggedRows = 0
  /** Rows read so far, including blank ones. */
  private rowCount = 0
  /** The start of the row whose end has not arrived yet. */
  private rest = ''
  private quoted: QuotedRows | undefined

  constructor(delimiter: string) {
    this.delimiter = delimiter
  }

  /** @param wrong the fault directly after this text */
  async feed(text: string, wrong: string | undefined): Promise<Row[]> {
    if (this.quoted === undefined && text.includes('"')) {
      this.quoted = new QuotedRows(this.delimiter, (cells, rowsBefore) =>
        this.add(cells, this.rowCount + rowsBefore + 1),
      )
      text = this.rest + text
    }
    if (this.quoted === undefined) this.feedLines(text)
    else await this.quoted.feed(text)
    if (wrong !== undefined) {
      if (this.quoted === undefined) this.endLine()
      else await this.quoted.endLine()
    }
    const row = this.rowCount + (this.quoted?.rowCount ?? 0) + 1
    if (row - 2 > limits.rowsMax) this.fault ??= tooManyRows()
    const failure = this.quoted?.failure ?? wrong
    if (failure !== undefined) this.fault ??= new FileFault(row, failure)
    return this.take()
  }

  async finish(): Promise<Row[]> {
    if (this.quoted === undefined) {
      this.endLine()
      if (this.rest !== '') this.addLine(this.rest)
    } else {
      await this.quoted.finish()
      const { failure, rowCount } = this.quoted
      if (failure !== undefined) this.fault ??= new FileFault(this.rowCount + rowCount + 1, failure)
    }
    if (this.header === undefined) this.fault ??= isEmpty()
    return this.take()
  }

  private feedLines(text: string): void {
    // A line feed may follow in the next chunk.
    const isCut = text.endsWith('\r')
    const lines = (this.rest + (isCut ? text.slice(0, -1) : text)).split(lineEnd)
    this.rest = (lines.pop() ?? '') + (isCut ? '\r' : '')
    for (const line of lines) this.addLine(line)
    if (this.rest.length < limits.recordBytesMax / 8) return
    if (hasTooManyCells(this.rest, this.delimiter)) this.fault ??= tooManyCells(this.rowCount + 1)
    if (this.rest.length > limits.recordBytesMax) this.fault ??= new FileFault(this.rowCount + 1, tooLongRow)
  }

  private endLine(): void {
    if (!this.rest.endsWith('\r')) return
    this.addLine(this.rest.slice(0, -1))
    this.rest = ''
  }

  private addLine(line: string): void {
    this.rowCount += 1
    if (line !== '') this.add(line.split(this.delimiter, limits.rowCellsMax + 1), this.rowCount)
  }

  private add(cells: string[], row: number): void {
    if (this.fault !== undefined) return
    if (cells.length > limits.rowCellsMax) this.fault = tooManyCells(row)
    else if (!cells.every(isBlank)) this.addRow(row, cells)
  }

  private addRow(row: number, cells: string[]): void {
    for (let index = 0; index < cells.length; index++) cells[index] = unescaped(cells[index] ?? '')
    this.header ??= cells
    if (this.header === cells) this.fault = faultOfHeader(row, cells)
    if (row - 1 > limits.rowsMax) this.fault = tooManyRows()
    const isRagged = cells.length !== this.header.length
    if (isRagged && ++this.raggedRows > limits.raggedRowsMax) {
      const message = `More than ${limits.raggedRowsMax} rows do not have as many cells as the header`
      this.fault = new FileFault(row, message)
    }
    if (this.fault !== undefined) return
    if (!isRagged && !cells.some(isLong)) this.rows.push({ row, cells })
    else this.rows.push({ row, cells: cells.slice(0, limits.columnsMax).map(cut), fault: faultOf(cells, this.header) })
  }

  private take(): Row[] {
    const { rows } = this
    this.rows = []
    return rows
  }
}

const lineEnd = /\r\n|\n|\r/

/** Reads rows with quotes. The parser is fed manually: a stream of single rows takes twice as long. */
class QuotedRows {
  /** The fault of the row after the last readable one. */
  failure: string | undefined
  private readonly parser: Parser
  private readonly delimiter: string

  constructor(delimiter: string, onRow: (cells: string[], rowsBefore: number) => void) {
    this.delimiter = delimiter
    this.parser = parse({
      delimiter,
      // Detection would apply the header's line ending to the whole file, and lose lines if they are mixed.
      record_delimiter: ['\r\n', '\n', '\r'],
      max_record_size: limits.recordBytesMax,
      // Rows with another number of cells are reported with the other faults.
      relax_column_count: true,
      skip_empty_lines: true,
      on_record: (cells: string[]) => {
        onRow(cells, this.rowCount - 1)
      },
    })
    // Errors are reported to the caller of `write`; an error event without a listener would end the process.
    this.parser.on('error', () => {})
  }

  /** Rows read so far, including blank ones. */
  get rowCount(): number {
    return this.parser.info.records + this.parser.info.empty_lines
  }

  async feed(text: string): Promise<void> {
    const { rowCount } = this
    await this.run(done => this.parser.write(text, done))
    // The parser limits the bytes of a row but not its cells, and empty cells take no bytes.
    if (this.rowCount > rowCount) return
    // An unclosed quote turns many lines into one cell.
    if (text.split(lineEnd).some(line => hasTooManyCells(line, this.delimiter))) this.failure ??= tooManyCellsMessage
  }

  /** Makes the parser process a line end that it has received; otherwise the parser waits for a few more bytes. */
  async endLine(): Promise<void> {
    await this.run(done => this.parser.write('x'.repeat(16), done))
  }

  async finish(): Promise<void> {
    await this.run(done => this.parser.end(done))
  }

  private async run(work: (done: (error?: Error | null) => void) => void): Promise<void> {
    // A parser that has failed is destroyed; writing to it would fail with an error of the stream.
    if (this.parser.destroyed) return
    const error = await new Promise<unknown>(work)
    if (!error) return
    if (!(error instanceof CsvError)) throw error
    this.failure ??= messages[error.code] ?? 'The row is not well-formed CSV'
  }
}

const tooLongRow = `The row is longer than ${limits.recordBytesMax} bytes; check for a quote that is never closed`
const messages: Partial<Record<CsvError['code'], string>> = {
  CSV_MAX_RECORD_SIZE: tooLongRow,
  CSV_QUOTE_NOT_CLOSED: 'A quote is opened in this row and never closed; double each quote that is part of a cell',
  CSV_INVALID_CLOSING_QUOTE: 'Text follows a closing quote; double each quote that is part of a cell',
  INVALID_OPENING_QUOTE: 'A quote appears in the middle of a cell; quote the whole cell and double the quote inside it',
}

function isEmpty(): FileFault {
  return new FileFault(1, 'The file is empty; its first row must name the columns')
}

function tooManyRows(): FileFault {
  return new FileFault(limits.rowsMax + 2, `The file has more than ${limits.rowsMax} rows, the maximum for a list`)
}

const tooManyCellsMessage = `The row has more than ${limits.rowCellsMax} cells; the file may use another delimiter`

function tooManyCells(row: number): FileFault {
  return new FileFault(row, tooManyCellsMessage)
}

function faultOfHeader(row: number, cells: string[]): FileFault | undefined {
  if (row !== 1) return new FileFault(1, 'The first row is blank; it must name the columns')
  if (cells.length > limits.columnsMax) {
    return new FileFault(1, `The file has ${cells.length} columns; at most ${limits.columnsMax} are allowed`)
  }
  if (cells.some(isLong)) return new FileFault(1, `A column name is longer than ${limits.cellCharsMax} characters`)
  return undefined
}

function faultOf(cells: string[], header: string[]): string {
  if (cells.length !== header.length) {
    return `The row has ${cells.length} cells, and the header ${header.length}; quote cells that contain a delimiter`
  }
  const column = JSON.stringify(header[cells.findIndex(isLong)])
  return `The cell in the column ${column} is longer than ${limits.cellCharsMax} characters`
}

function hasTooManyCells(line: string, delimiter: string): boolean {
  return line.split(delimiter, limits.rowCellsMax + 1).length > limits.rowCellsMax
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

import path from 'node:path'
import { piecesOf } from '../kernel/pace.ts'
import { Archive } from './archive.ts'
import { dateOf, isDateFormat } from './date-formats.ts'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import type { Cell, Row } from './rows.ts'
import { SharedStrings } from './shared-strings.ts'
import { unescaped } from './write-csv.ts'
import { type Attributes, odd, parseXml, parseXmlInSteps } from './xml.ts'

/**
 * Reads the first visible sheet of a workbook, row by row. A cell has its stored value, which for a formula is the last calculated
 * one. Cells without a value are null, and cells that only have a style are blank.
 *
 * Memory grows with the shared strings, not with the rows.
 * @throws FileFault
 */
export async function* readXlsx(fd: number): AsyncGenerator<Row[]> {
  const archive = await Archive.open(fd)
  const frame = await readFrame(archive)
  const sheet = new Sheet({
    countsFrom1904: frame.countsFrom1904,
    strings: await readStrings(archive, frame.sharedStrings),
    dateStyles: await readDateStyles(archive, frame.styles),
  })
  const chunks = archive.stream(frame.sheet, { bytesMax: limits.sheetBytesMax })
  for await (const _ of parseXmlInSteps(chunks, sheet, { row: () => sheet.row + 1 })) yield* sheet.take()
  yield* sheet.take()
  if (!sheet.hasHeader) throw blankHeader()
}

type Frame = {
  sheet: string
  sharedStrings: string | undefined
  styles: string | undefined
  countsFrom1904: boolean
}

/** Finds the parts of a workbook. References outside the file are never followed. */
async function readFrame(archive: Archive): Promise<Frame> {
  if (archive.has('xl/workbook.bin')) {
    throw new FileFault(1, 'The workbook is in the binary format (.xlsb); save it as "Excel Workbook (.xlsx)"')
  }
  const sheets: { id: string | undefined; isHidden: boolean }[] = []
  let countsFrom1904: boolean | undefined
  await parseXml(archive.stream('xl/workbook.xml', { bytesMax: limits.frameBytesMax }), {
    open(name, attributes) {
      if (name === 'sheet') {
        const isHidden = (attributes.state ?? 'visible') !== 'visible'
        sheets.push({ id: attributes.id, isHidden })
      }
      if (name === 'workbookPr') countsFrom1904 ??= ['1', 'true'].includes(attributes.date1904 ?? '')
    },
  })
  const targets = await readTargets(archive)
  const sheet = sheets.find(({ id, isHidden }) => !isHidden && id !== undefined && targets.worksheets.has(id))?.id
  if (sheet === undefined) throw new FileFault(1, 'The workbook has no visible sheet')
  return { ...targets, sheet: targets.worksheets.get(sheet) ?? '', countsFrom1904: countsFrom1904 ?? false }
}

async function readTargets(archive: Archive) {
  const worksheets = new Map<string, string>()
  let sharedStrings: string | undefined
  let styles: string | undefined
  await parseXml(archive.stream('xl/_rels/workbook.xml.rels', { bytesMax: limits.frameBytesMax }), {
    open(name, attributes) {
      if (name !== 'Relationship' || attributes.TargetMode === 'External') return
      const [id = '', type = '', target = ''] = [attributes.Id, attributes.Type, attributes.Target]
      const part = target.startsWith('/') ? target.slice(1) : path.posix.join('xl', target)
      if (type.endsWith('/worksheet')) worksheets.set(id, part)
      if (type.endsWith('/sharedStrings')) sharedStrings ??= part
      if (type.endsWith('/styles')) styles ??= part
    },
  })
  return { worksheets, sharedStrings, styles }
}

async function readStrings(archive: Archive, part: string | undefined): Promise<SharedStrings> {
  const strings = new SharedStrings()
  if (part === undefined || !archive.has(part)) return strings
  const text = new CellText()
  await parseXml(archive.stream(part, { bytesMax: limits.sharedStringsBytesMax }), {
    open: name => text.open(name),
    close(name) {
      text.close(name)
      if (name === 'si') strings.add(text.take())
    },
    text: value => text.add(value),
  })
  return strings
}

/** The indexes of the styles that show a date. */
async function readDateStyles(archive: Archive, part: string | undefined): Promise<ReadonlySet<number>> {
  const dateStyles = new Set<number>()
  if (part === undefined || !archive.has(part)) return dateStyles
  const codes = new Map<number, string>()
  let isInCellStyles = false
  let style = 0
  await parseXml(archive.stream(part, { bytesMax: limits.frameBytesMax }), {
    open(name, attributes) {
      const id = Number(attributes.numFmtId)
      if (name === 'cellXfs') isInCellStyles = true
      if (name === 'numFmt') {
        const code = attributes.formatCode ?? ''
        if (code.length > limits.numberFormatCharsMax) throw odd(1)
        codes.set(id, code)
      }
      if (name === 'xf' && isInCellStyles && isDateFormat(id, codes)) dateStyles.add(style)
      if (name === 'xf' && isInCellStyles) style += 1
    },
    close(name) {
      if (name === 'cellXfs') isInCellStyles = false
    },
  })
  return dateStyles
}

/** Collects the text of a shared or inline string: the text of its runs, without phonetic hints. */
class CellText {
  private parts = ''
  private isInText = false
  private isPhonetic = false

  open(name: string): void {
    if (name === 'rPh') this.isPhonetic = true
    this.isInText = name === 't' && !this.isPhonetic
  }

  close(name: string): void {
    if (name === 'rPh') this.isPhonetic = false
    this.isInText = false
  }

  add(text: string): void {
    if (this.isInText) this.parts += text
  }

  take(): string {
    const { parts } = this
    this.parts = ''
    return parts
  }
}

type Value = string | number | boolean | Date | { error: string } | null

/** Turns the tags of a sheet into rows. */
class Sheet {
  hasHeader = false
  /** The last row that was read. */
  row = 0
  private readonly workbook: { countsFrom1904: boolean; strings: SharedStrings; dateStyles: ReadonlySet<number> }
  private header: Value[] = []
  private rows: Row[] = []
  private values: Value[] = []
  private currentRow = 0
  private column = 0
  private cell: { type: string; style: number; value: string; text: CellText } | undefined
  private isInValue = false
  private failedCells = 0

  constructor(workbook: Sheet['workbook']) {
    this.workbook = workbook
  }

  open(name: string, attributes: Attributes): void {
    if (name === 'row') this.openRow(attributes)
    else if (name === 'c') this.openCell(attributes)
    else if (this.cell !== undefined) {
      this.isInValue = name === 'v'
      this.cell.text.open(name)
    }
  }

  text(text: string): void {
    if (this.cell === undefined) return
    if (this.isInValue) this.cell.value += text
    else this.cell.text.add(text)
  }

  close(name: string): void {
    if (name === 'row') this.closeRow()
    else if (name === 'c') this.closeCell()
    else if (this.cell !== undefined) {
      this.isInValue = false
      this.cell.text.close(name)
    }
  }

  /** Removes and returns the rows read so far, in batches. */
  take(): Row[][] {
    const { rows } = this
    this.rows = []
    return piecesOf(rows, limits.batchRowsMax)
  }

  private openRow(attributes: Attributes): void {
    const number = attributes.r
    this.currentRow = number === undefined ? this.row + 1 : wholeNumber(number)
    if (this.currentRow > limits.rowsMax + 1) throw tooManyRows()
    if (!(this.currentRow > this.row)) throw odd(this.row + 1)
    this.values = []
    this.column = 0
  }

  private openCell(attributes: Attributes): void {
    const place = attributes.r
    this.column = place === undefined ? this.column + 1 : this.columnOf(place)
    const style = attributes.s
    this.cell = {
      type: attributes.t ?? 'n',
      style: style === undefined ? 0 : wholeNumber(style),
      value: '',
      text: new CellText(),
    }
    this.isInValue = false
  }

  // Some writers omit the row number, and give it only in the cells.
  private columnOf(place: string): number {
    const [, letters, digits] = /^([A-Z]{1,3})([1-9][0-9]{0,9})$/.exec(place) ?? []
    if (letters === undefined) throw odd(this.currentRow)
    const row = Number(digits)
    if (row > limits.rowsMax + 1) throw tooManyRows()
    if (row !== this.currentRow && this.values.length === 0 && this.column === 0 && row > this.row)
      this.currentRow = row
    if (row !== this.currentRow) throw odd(this.currentRow)
    let column = 0
    for (let index = 0; index < letters.length; index++) column = column * 26 + letters.charCodeAt(index) - 64
    if (column <= this.column) throw odd(this.currentRow)
    return column
  }

  private closeCell(): void {
    const { cell, column } = this
    this.cell = undefined
    if (cell === undefined) return
    const value = this.valueOf(cell)
    // A style may extend to the last column of the sheet.
    if (value === null) return
    if (column > limits.columnsMax) {
      throw new FileFault(
        this.currentRow,
        `The sheet has more than ${limits.columnsMax} columns; delete the unused columns`,
      )
    }
    while (this.values.length < column - 1) this.values.push(null)
    this.values[column - 1] = value
  }

  private valueOf({ type, style, value, text }: NonNullable<Sheet['cell']>): Value {
    if (type === 'inlineStr') return text.take() || null
    if (value === '') return null
    switch (type) {
      case 's':
        return this.workbook.strings.get(wholeNumber(value)) || null
      case 'str':
        return value
      case 'b':
        return value === '1' || value === 'true'
      case 'e':
        if (++this.failedCells > limits.errorCellsMax) throw tooManyFailed(this.currentRow)
        return { error: value }
      case 'd':
        return new Date(/[TZ]/.test(value) ? value.replace(/Z?$/, 'Z') : value)
      case 'n': {
        const number = Number(value)
        if (!Number.isFinite(number)) throw odd(this.currentRow)
        if (!this.workbook.dateStyles.has(style)) return number
        return dateOf(number, this.workbook) ?? new Date(Number.NaN)
      }
      default:
        throw odd(this.currentRow)
    }
  }

  private closeRow(): void {
    const { values, currentRow: row } = this
    this.row = row
    if (!this.hasHeader) {
      this.header = headerOf(row, values)
      this.hasHeader = true
    }
    if (!values.every(isBlank)) this.rows.push(rowOf(row, { values, header: this.header }))
  }
}

function wholeNumber(text: string): number {
  if (!/^[0-9]{1,10}$/.test(text)) throw odd(1)
  return Number(text)
}

function tooManyRows(): FileFault {
  const message = `The sheet reaches beyond row ${limits.rowsMax + 1}; delete the blank rows below the list`
  return new FileFault(limits.rowsMax + 2, message)
}

function tooManyFailed(row: number): FileFault {
  return new FileFault(row, `More than ${limits.errorCellsMax} cells hold an error, such as #N/A; correct the formulas`)
}

function blankHeader(): FileFault {
  return new FileFault(1, 'The first row is blank; it must name the columns')
}

function isBlank(value: Value): boolean {
  return value === null || (typeof value === 'string' && value.trim() === '')
}

/** @returns the cells up to the last non-blank one */
function headerOf(row: number, values: Value[]): Value[] {
  const header = values.slice(0, values.findLastIndex(value => !isBlank(value)) + 1)
  if (row !== 1 || header.length === 0) throw blankHeader()
  return header
}

function rowOf(row: number, { values, header }: { values: Value[]; header: Value[] }): Row {
  const read = header.map((_, index) => cellOf(values[index] ?? null))
  const cells = read.map(({ cell }) => cell)
  const at = read.findIndex(({ fault }) => fault !== undefined)
  if (at !== -1) return { row, cells, fault: `The cell in the column ${JSON.stringify(header[at])} ${read[at]?.fault}` }
  if (values.slice(header.length).every(isBlank)) return { row, cells }
  return { row, cells, fault: 'The row has cells beyond the last named column; name the column or delete the cells' }
}

/** Converts a value to a cell, and to a fault if the value is not allowed. The fault completes a sentence. */
function cellOf(value: Value): { cell: Cell; fault?: string } {
  if (typeof value === 'string' && value.length > limits.cellCharsMax) {
    return { cell: value.slice(0, limits.cellCharsMax), fault: `is longer than ${limits.cellCharsMax} characters` }
  }
  // A CSV file that we wrote still has its apostrophes after a spreadsheet has saved it as a workbook.
  if (typeof value === 'string') return { cell: unescaped(value) }
  if (value === null || typeof value !== 'object') return { cell: value }
  if ('error' in value) return { cell: value.error.slice(0, limits.cellCharsMax) }
  if (Number.isNaN(value.getTime())) return { cell: null, fault: 'is formatted as a date but does not contain one' }
  const text = value.toISOString()
  if (text.endsWith('T00:00:00.000Z')) return { cell: { day: text.slice(0, 10) } }
  return { cell: text.slice(0, 19), fault: 'contains a time of day; only a date is allowed' }
}

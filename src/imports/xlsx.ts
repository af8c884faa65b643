import path from 'node:path'
import type { Readable } from 'node:stream'
import { InvalidSpreadsheetError, readSheet } from 'read-excel-file/node'
import { unescaped } from '../csv.ts'
import { Archive, packed } from './archive.ts'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import type { Cell, Row } from './rows.ts'
import { type FailedCells, lookAtSheet } from './sheet.ts'
import { attributesOf, odd, Tags } from './xml.ts'

/**
 * Reads the first sheet of a workbook that is not hidden. A cell holds what is stored in it: of a formula, the value that was
 * last calculated. Cells without a value are null, blank rows are passed over, and what is styled but empty is blank.
 *
 * The library that reads the cells is given a workbook of four parts, put together from those that were looked at, and
 * nothing else of the file: it has no way to a link, a macro or a part that was not asked for.
 * @throws FileFault
 */
export async function* readXlsx(fd: number): AsyncGenerator<Row[]> {
  const { workbook, failed } = await lookAt(fd)
  const table = await cellsOf(workbook)
  const header = headerOf(table[0] ?? [])
  let batch: Row[] = []
  for (const [index, values] of table.entries()) {
    if (values.every(isBlank)) continue
    batch.push(rowOf(index + 1, { values, header, failed: failed.get(index + 1) }))
    if (batch.length < limits.batchRowsMax) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}

async function lookAt(fd: number): Promise<{ workbook: Readable; failed: FailedCells }> {
  const archive = await Archive.open(fd)
  const { sheet, sharedStrings, styles, countsFrom1904 } = await frameOf(archive)
  const parts = new Map<string, Buffer>([['xl/workbook.xml', workbookOf({ countsFrom1904 })]])
  parts.set('xl/_rels/workbook.xml.rels', relationships)
  const sheetXml = await archive.read(sheet, { bytesMax: limits.sheetBytesMax })
  parts.set('xl/sheet.xml', sheetXml)
  const failed = lookAtSheet(sheetXml)
  for (const [name, part, bytesMax] of [
    ['xl/sharedStrings.xml', sharedStrings, limits.sharedStringsBytesMax],
    ['xl/styles.xml', styles, limits.frameBytesMax],
  ] as const) {
    if (part === undefined || !archive.has(part)) continue
    const xml = await archive.read(part, { bytesMax })
    const tags = new Tags(xml)
    while (tags.next()) {
      if (tags.isEnd || !tags.is('numFmt')) continue
      if ((attributesOf(tags.text).formatCode ?? '').length > limits.numberFormatCharsMax) throw odd(1)
    }
    parts.set(name, xml)
  }
  return { workbook: packed(parts), failed }
}

type Frame = {
  sheet: string
  sharedStrings: string | undefined
  styles: string | undefined
  countsFrom1904: boolean
}

/** Where the parts of a workbook are. What is outside of the file is never looked up. */
async function frameOf(archive: Archive): Promise<Frame> {
  if (archive.has('xl/workbook.bin')) {
    throw new FileFault(1, 'The workbook is a binary one (.xlsb); save it as "Excel Workbook (.xlsx)"')
  }
  const sheets: { id: string | undefined; isHidden: boolean }[] = []
  let countsFrom1904: boolean | undefined
  const workbook = new Tags(await archive.read('xl/workbook.xml', { bytesMax: limits.frameBytesMax }))
  while (workbook.next()) {
    if (workbook.isEnd) continue
    const { id, state = 'visible', date1904 = '0' } = attributesOf(workbook.text)
    if (workbook.is('sheet')) sheets.push({ id, isHidden: state !== 'visible' })
    if (workbook.is('workbookPr')) countsFrom1904 ??= date1904 === '1' || date1904 === 'true'
  }
  const targets = await targetsOf(archive)
  const sheet = sheets.find(({ id, isHidden }) => !isHidden && id !== undefined && targets.worksheets.has(id))?.id
  if (sheet === undefined) throw new FileFault(1, 'The workbook has no sheet that is not hidden')
  return { ...targets, sheet: targets.worksheets.get(sheet) ?? '', countsFrom1904: countsFrom1904 ?? false }
}

async function targetsOf(archive: Archive) {
  const worksheets = new Map<string, string>()
  let sharedStrings: string | undefined
  let styles: string | undefined
  const tags = new Tags(await archive.read('xl/_rels/workbook.xml.rels', { bytesMax: limits.frameBytesMax }))
  while (tags.next()) {
    if (tags.isEnd || !tags.is('Relationship')) continue
    const { Id = '', Type = '', Target = '', TargetMode } = attributesOf(tags.text)
    if (TargetMode === 'External') continue
    const part = Target.startsWith('/') ? Target.slice(1) : path.posix.join('xl', Target)
    if (Type.endsWith('/worksheet')) worksheets.set(Id, part)
    if (Type.endsWith('/sharedStrings')) sharedStrings ??= part
    if (Type.endsWith('/styles')) styles ??= part
  }
  return { worksheets, sharedStrings, styles }
}

function workbookOf({ countsFrom1904 }: { countsFrom1904: boolean }): Buffer {
  const properties = `<workbookPr date1904="${countsFrom1904 ? 1 : 0}"/>`
  return Buffer.from(`<workbook>${properties}<sheets><sheet name="1" sheetId="1" r:id="sheet"/></sheets></workbook>`)
}

const relationshipTypes = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const relationships = Buffer.from(
  `<Relationships>${[
    ['sheet', 'worksheet', 'sheet.xml'],
    ['strings', 'sharedStrings', 'sharedStrings.xml'],
    ['styles', 'styles', 'styles.xml'],
  ]
    .map(([id, type, target]) => `<Relationship Id="${id}" Type="${relationshipTypes}/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`,
)

type Value = string | number | boolean | Date | null

/** All cells of the sheet, every row as long as the longest; a row that the sheet leaves out has no cells. */
async function cellsOf(workbook: Readable): Promise<Value[][]> {
  try {
    // Where it gives dates, its types name their constructor.
    return (await readSheet(workbook, { trim: false })) as Value[][]
  } catch (error) {
    // What it throws by accident is, here, the fault of the file too: it has seen nothing else.
    const row = error instanceof InvalidSpreadsheetError ? /row (\d+)/.exec(error.message)?.[1] : undefined
    throw odd(Number(row ?? 1))
  }
}

function isBlank(value: Value): boolean {
  return value === null || (typeof value === 'string' && value.trim() === '')
}

/** @returns the cells up to the last that is not blank */
function headerOf(values: Value[]): Value[] {
  const header = values.slice(0, values.findLastIndex(value => !isBlank(value)) + 1)
  if (header.length === 0) throw new FileFault(1, 'The first row is blank; it must name the columns')
  return header
}

function rowOf(
  row: number,
  { values, header, failed }: { values: Value[]; header: Value[]; failed: ReadonlyMap<number, string> | undefined },
): Row {
  const read = header.map((_, index) => cellOf(failed?.get(index + 1) ?? values[index] ?? null))
  const cells = read.map(({ cell }) => cell)
  const at = read.findIndex(({ fault }) => fault !== undefined)
  if (at !== -1) return { row, cells, fault: `The cell in the column ${JSON.stringify(header[at])} ${read[at]?.fault}` }
  if (values.slice(header.length).every(isBlank)) return { row, cells }
  return { row, cells, fault: 'The row goes on behind the last column that has a name; name it or delete its cells' }
}

/** A value as a cell, and what is wrong with it, as the end of a sentence. */
function cellOf(value: Value): { cell: Cell; fault?: string } {
  if (typeof value === 'string' && value.length > limits.cellCharsMax) {
    return { cell: value.slice(0, limits.cellCharsMax), fault: `is longer than ${limits.cellCharsMax} characters` }
  }
  // A file of ours that was opened in a spreadsheet and saved as a workbook has its apostrophes still.
  if (typeof value === 'string') return { cell: unescaped(value) }
  if (!(value instanceof Date)) return { cell: value }
  const time = value.getTime()
  const isInRange = time >= firstDay && time < endOfDays
  if (!isInRange) return { cell: null, fault: 'is formatted as a date and holds none that can be told' }
  const text = value.toISOString()
  if (text.endsWith('T00:00:00.000Z')) return { cell: { day: text.slice(0, 10) } }
  return { cell: text.slice(0, 19), fault: 'holds a time of day beside its date; only the date is wanted' }
}

// Before this day Excel and the calendar are a day apart: Excel has a 29 February 1900.
const firstDay = Date.UTC(1900, 2, 1)
const endOfDays = Date.UTC(10_000, 0, 1)

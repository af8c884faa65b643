import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import { cpuMs } from '../../test/runner/cpu.ts'
import { extent } from '../../test/runner/extent.ts'
import { limits } from './limits.ts'
import { FileFault, type Row, readRows } from './tabular.ts'
import { unescaped } from './write-csv.ts'
import { type Part, textRow, workbook, zipOf } from './zip.fixture.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tabular-xlsx-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

function saved(bytes: Buffer | string): string {
  const file = path.join(folder, `${++files}.xlsx`)
  writeFileSync(file, bytes)
  return file
}

async function rowsOf(file: string): Promise<Row[]> {
  const rows: Row[] = []
  for await (const batch of readRows({ path: file, kind: 'xlsx' })) rows.push(...batch)
  return rows
}

const read = async (...workbookArguments: Parameters<typeof workbook>) =>
  await rowsOf(saved(zipOf(workbook(...workbookArguments))))

async function faultOf(bytes: Buffer | string): Promise<FileFault> {
  const startMs = cpuMs()
  const fault = await rowsOf(saved(bytes)).catch((error: unknown) => error)
  expect(cpuMs() - startMs).toBeLessThan(5_000)
  if (!(fault instanceof FileFault)) throw new Error(`The file was not refused: ${JSON.stringify(fault)}`)
  return fault
}

const header = textRow(1, ['email', 'sort_code'])

describe('a workbook', () => {
  test('written by a library reads back unchanged', async () => {
    const file = path.join(folder, 'written.xlsx')
    const day = new Date(Date.UTC(1990, 1, 28))
    await writeExcelFile([
      ['email', 'sort_code', 'dob', 'amount', 'active'].map(value => ({ value, type: String })),
      [
        { value: 'zoë@example.com', type: String },
        { value: '089999', type: String },
        { value: day, type: Date, format: 'dd/mm/yyyy' },
        { value: 1250.5, type: Number },
        { value: true, type: Boolean },
      ],
    ]).toFile(file)
    expect(await rowsOf(file)).toEqual([
      { row: 1, cells: ['email', 'sort_code', 'dob', 'amount', 'active'] },
      { row: 2, cells: ['zoë@example.com', '089999', { day: '1990-02-28' }, 1250.5, true] },
    ])
  })

  test('can contain text, numbers, booleans, formula values and formula errors', async () => {
    const strings = '<si><t>shared &amp; kept</t></si><si><r><t>rich </t></r><r><rPr><b/></rPr><t>text</t></r></si>'
    const cells = [
      '<c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c>',
      '<c r="C2" t="inlineStr"><is><t xml:space="preserve"> 007 </t></is></c><c r="D2"><v>89999</v></c>',
      '<c r="E2" t="b"><v>0</v></c><c r="F2"><f>1+1</f><v>2</v></c><c r="G2" t="str"><f>A1</f><v>text</v></c>',
      '<c r="H2" t="e"><f>1/0</f><v>#DIV/0!</v></c><c r="I2" s="0"/><c r="J2" t="str"><f>""</f><v></v></c>',
    ]
    const top = textRow(1, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'])
    const [, row] = await read(`${top}<row r="2">${cells.join('')}</row>`, { strings })
    expect(row).toEqual({
      row: 2,
      cells: ['shared & kept', 'rich text', ' 007 ', 89999, false, 2, 'text', '#DIV/0!', null, null],
    })
  })

  test.each([
    ['', 'counts from 1900', '1900-03-01'],
    ['<workbookPr date1904="1"/>', 'counts from 1904', '1904-03-02'],
  ])('with %j %s', async (properties, _, first) => {
    const styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    const days = (row: number, value: string) => `<row r="${row}"><c r="A${row}" s="1"><v>${value}</v></c></row>`
    const rows = await read(`${textRow(1, ['dob'])}${days(2, '61')}${days(3, '61.5')}${days(4, '-3000')}`, {
      styles,
      properties,
    })
    expect(rows[1]).toEqual({ row: 2, cells: [{ day: first }] })
    expect(rows[2]).toMatchObject({ row: 3, fault: expect.stringMatching(/"dob" contains a time of day/) })
    expect(rows[3]).toMatchObject({
      row: 4,
      cells: [null],
      fault: expect.stringMatching(/does not contain one/),
    })
  })

  test('is read from its first visible sheet', async () => {
    const sheets =
      '<sheet name="Old" sheetId="1" state="hidden" r:id="rId1"/><sheet name="New" sheetId="2" r:id="rId2"/>'
    const second = `<worksheet><sheetData>${textRow(1, ['second'])}</sheetData></worksheet>`
    const rows = await read(textRow(1, ['first']), {
      sheets,
      more: [{ name: 'xl/worksheets/sheet2.xml', content: second }],
    })
    expect(rows).toEqual([{ row: 1, cells: ['second'] }])
  })

  test('counts blank rows but skips them, and a row may be shorter than the header', async () => {
    const styled = '<row r="3"><c r="A3" s="0"/></row>'
    const rows = await read(`${header}${styled}${textRow(5, ['a'])}${textRow(7, ['  ', ''])}`)
    expect(rows).toEqual([
      { row: 1, cells: ['email', 'sort_code'] },
      { row: 5, cells: ['a', null] },
    ])
  })

  test('reports rows with a cell that is too long, or with cells beyond the last named column', async () => {
    const rows = await read(
      `${header}${textRow(2, ['x'.repeat(1_001)])}${textRow(3, ['a', 'b', 'c'])}${textRow(4, ['d'])}`,
    )
    expect(rows.map(({ row, fault }) => [row, fault?.replace(/;.*/, '')])).toEqual([
      [1, undefined],
      [2, 'The cell in the column "email" is longer than 1000 characters'],
      [3, 'The row has cells beyond the last named column'],
      [4, undefined],
    ])
    expect(rows[1]?.cells[0]).toHaveLength(1_000)
  })

  test('with a false dimension, prefixed names and styles up to the last column is still read', async () => {
    const content = `<x:worksheet xmlns:x="x"><x:dimension ref="A1:B9"/><x:sheetData><x:row r="1"><x:c r="A1" t="inlineStr"><x:is><x:t>a</x:t></x:is></x:c><x:c r="XFD1" s="0"/></x:row></x:sheetData></x:worksheet>`
    expect(await read('', { more: [{ name: 'xl/worksheets/sheet1.xml', content }] })).toEqual([
      { row: 1, cells: ['a'] },
    ])
  })

  test('never loses or changes a text, wherever the library splits the sheet into chunks', async () => {
    const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }).filter(isXmlText), {
      minLength: 300,
      maxLength: 600,
    })
    await fc.assert(
      fc.asyncProperty(texts, async texts => {
        const rows = await read(`${header}${texts.map((text, index) => textRow(index + 2, [escaped(text)])).join('')}`)
        // Except for the apostrophe that our own files put before a formula, in workbooks and in CSV.
        expect(rows.slice(1).map(({ cells }) => cells[0])).toEqual(texts.map(unescaped))
      }),
      { numRuns: 5 },
    )
  })
})

// Files that are not workbooks, and workbooks that no spreadsheet writes.
describe('a hostile file is refused within five seconds of CPU time, with a remedy:', () => {
  const sheet = (content: string | Buffer, lies: Partial<Part> = {}) =>
    zipOf(workbook('', { more: [{ name: 'xl/worksheets/sheet1.xml', content, ...lies }] }))
  const withRows = (rows: string) => zipOf(workbook(`${header}${rows}`))
  const withParts = (...more: Part[]) => zipOf(workbook(header, { more }))
  const cell = (place: string) => `<row><c r="${place}"><v>1</v></c></row>`

  type Hostile = [string, () => Buffer | string, RegExp]
  test.each<Hostile>([
    ['nothing', () => '', /not an Excel workbook/],
    ['CSV', () => 'email,first_name\r\n', /sent as text\/csv/],
    ['an old or protected workbook', () => Buffer.from('d0cf11e0a1b11ae100000000', 'hex'), /password.*\.xls/],
    ['a zip that is cut short', () => withRows('').subarray(0, -40), /damaged/],
    ['a zip of other files', () => zipOf([{ name: 'readme.txt', content: 'hello' }]), /not a complete Excel workbook/],
    ['a binary workbook', () => zipOf([{ name: 'xl/workbook.bin', content: 'x' }]), /\.xlsb/],
    ['a workbook with macros', () => withParts({ name: 'xl/vbaProject.bin', content: 'x' }), /macros/],
    ['an encrypted part', () => withParts({ name: 'xl/styles.xml', content: 'x', flags: 1 }), /password/],
    [
      'another compression',
      () => withParts({ name: 'xl/styles.xml', content: 'x', method: 12 }),
      /no spreadsheet uses/,
    ],
    ['a zip within the workbook', () => withParts({ name: 'xl/more.zip', content: zipOf([]) }), /another archive/],
    [
      'number formats that take minutes to parse',
      () => {
        const formats = Array.from(
          { length: 60 },
          (_, id) => `<numFmt numFmtId="${200 + id}" formatCode="${'['.repeat(60_000)}"/>`,
        )
        return zipOf(workbook(`${header}${cell('A2')}`, { styles: `<numFmts>${formats.join('')}</numFmts>` }))
      },
      /save it again/,
    ],
    ['a path out of the archive', () => withParts({ name: '../../etc/passwd', content: 'x' }), /damaged/],
    [
      'a duplicate part',
      () => withParts({ name: 'XL/Styles.xml', content: '' }, { name: 'xl/styles.XML', content: '' }),
      /twice/,
    ],
    [
      'parts that overlap',
      () => withParts({ name: 'a.xml', content: 'x' }, { name: 'b.xml', content: 'x', offsetSaid: 0 }),
      /overlap/,
    ],
    [
      'ten thousand parts',
      () =>
        zipOf(Array.from({ length: 10_000 }, (_, index) => ({ name: `${index}.xml`, content: '', isStored: true }))),
      /too many parts/,
    ],
    ['a bomb of 1 : 1000', () => sheet(Buffer.alloc(16_000_000, ' ')), /compressed more than/],
    ['a bomb that claims to be small', () => sheet(Buffer.alloc(16_000_000, ' '), { bytesSaid: 100_000 }), /damaged/],
    ['a sheet that claims to be larger', () => sheet('<worksheet/>', { bytesSaid: 900_000 }), /damaged/],
    [
      'a sheet that claims to be endless',
      () => sheet('<worksheet/>', { bytesSaid: 0xfffffff0 }),
      /compressed more than/,
    ],
    ['a part with a wrong checksum', () => sheet('<worksheet/>', { crcSaid: 1 }), /damaged/],
    // A file of that size takes a gigabyte of memory and seconds to write.
    ...extent({
      short: [],
      long: [
        [
          'a sheet that is too large to be read',
          () => sheet(Buffer.alloc(limits.sheetBytesMax + 1, ' '), { isStored: true }),
          /CSV UTF-8/,
        ] satisfies Hostile,
      ],
    }),
    ['entity declarations', () => sheet('<!DOCTYPE x [<!ENTITY a "aaaa">]><worksheet>&a;</worksheet>'), /unusual/],
    [
      'entities among the texts',
      () => withParts({ name: 'xl/sharedStrings.xml', content: '<!DOCTYPE x><sst/>' }),
      /unusual/,
    ],
    ['a comment in a text', () => withRows('<row r="2"><c r="A2"><v>12<!-- -->34</v></c></row>'), /unusual/],
    ['a text that is not UTF-8', () => sheet(Buffer.from('<worksheet>\xff</worksheet>', 'latin1')), /unusual/],
    [
      '16,000 columns',
      () =>
        withRows(
          `<row r="2">${Array.from({ length: 16_000 }, (_, index) => `<c r="${letters(index)}2"><v>1</v></c>`).join('')}</row>`,
        ),
      /100 columns/,
    ],
    ['a cell in the last column', () => withRows(cell('XFD2')), /100 columns/],
    ['a cell too far down', () => withRows(cell('A1048576')), /beyond row 1000001/],
    ['a row beyond the limit of every spreadsheet', () => withRows('<row r="4000000000"/>'), /beyond row 1000001/],
    [
      'rows without end',
      () => {
        const { first, count } = extent({
          short: { first: 900_000, count: 110_000 },
          long: { first: 2, count: 1_100_000 },
        })
        const rows = `<row r="${first}"/>${'<row/>'.repeat(count)}`
        return sheet(`<worksheet><sheetData>${header}${rows}`, { isStored: true })
      },
      /beyond row 1000001/,
    ],
    ['a cell with two places', () => withRows('<row><c r="A2" x:r="XFD2"><v>1</v></c></row>'), /unusual/],
    ['rows out of order', () => withRows(`${textRow(3, ['a'])}${textRow(2, ['b'])}`), /unusual/],
    ['texts that do not exist', () => withRows('<row r="2"><c r="A2" t="s"><v>7</v></c></row>'), /unusual/],
    ['a cell of 10 MB', () => withRows(textRow(2, [random(10_000_000)])), /longer than any cell/],
    ['a tag of 10 MB', () => sheet(`<worksheet a="${random(10_000_000)}"/>`), /longer than any cell/],
    ['tags that do not end', () => sheet(`<worksheet>${'<a'.repeat(1_000_000)}`, { isStored: true }), /unusual/],
    [
      'tags nested too deeply',
      () => sheet(`<worksheet><sheetData>${header}</sheetData>${'<a>'.repeat(60)}${'</a>'.repeat(60)}</worksheet>`),
      /unusual/,
    ],
    [
      'too many failed formulas',
      () =>
        withRows(
          Array.from({ length: 10_001 }, (_, index) => `<row><c r="A${index + 2}" t="e"><v>#N/A</v></c></row>`).join(
            '',
          ),
        ),
      /formula/,
    ],
    [
      'no visible sheet',
      () => zipOf(workbook(header, { sheets: '<sheet name="a" state="veryHidden" r:id="rId1"/>' })),
      /no visible sheet/,
    ],
    ['a blank first row', () => zipOf(workbook(textRow(2, ['email']))), /first row is blank/],
    ['an empty sheet', () => zipOf(workbook('')), /first row is blank/],
  ])('%s', async (_, bytes, message) => {
    expect((await faultOf(bytes())).message).toMatch(message)
  })

  test('and reports the row where reading stopped', async () => {
    expect((await faultOf(withRows(`${textRow(2, ['a'])}${cell('XFD3')}`))).row).toBe(3)
  })
})

test('cells that only have a style are skipped, and a cell at a far corner is a fault of its row', async () => {
  const styled = Array.from({ length: extent({ short: 3, long: 100 }) }, (_, row) => {
    const cells = Array.from({ length: 16_000 }, (_, column) => `<c r="${letters(column)}${row + 2}" s="0"/>`)
    return `<row r="${row + 2}">${cells.join('')}</row>`
  })
  const rows = await read(
    `${header}${styled.join('')}${textRow(500, ['a'])}<row r="90000"><c r="CV90000"><v>1</v></c></row>`,
  )
  expect(rows.map(({ row, fault }) => [row, fault?.replace(/;.*/, '')])).toEqual([
    [1, undefined],
    [500, undefined],
    [90_000, 'The row has cells beyond the last named column'],
  ])
})

test('a sheet of many rows is read within little heap', { timeout: 60_000 }, async () => {
  // The modules need 12 MB, and the garbage collector needs headroom on a busy machine; holding all rows at once needs more.
  const { count, heapMb } = extent({ short: { count: 250_000, heapMb: 40 }, long: { count: 500_000, heapMb: 64 } })
  const rows = [textRow(1, ['email'])]
  for (let row = 2; row <= count + 1; row++) rows.push(`<row r="${row}"><c r="A${row}" t="s"><v>${row}</v></c></row>`)
  const more = [
    {
      name: 'xl/worksheets/sheet1.xml',
      content: `<worksheet><sheetData>${rows.join('')}</sheetData></worksheet>`,
      isStored: true,
    },
    {
      name: 'xl/sharedStrings.xml',
      content: `<sst>${'<si><t>sam.okafor@example.com</t></si>'.repeat(count + 2)}</sst>`,
      isStored: true,
    },
  ]
  expect(await countedByWorker(saved(zipOf(workbook('', { more }))), { heapMb })).toBe(count + 1)
})

async function countedByWorker(file: string, { heapMb }: { heapMb: number }): Promise<unknown> {
  const code = `
    import { parentPort, workerData } from 'node:worker_threads'
    const { readRows } = await import(workerData.rows)
    let count = 0
    for await (const batch of readRows({ path: workerData.file, kind: 'xlsx' })) count += batch.length
    parentPort.postMessage(count)`
  const rows = new URL('./tabular.ts', import.meta.url).href
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
    workerData: { file, rows },
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
  })
  return await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
}

// Letters that do not compress, so that the file is refused for their number.
function random(length: number): string {
  return randomBytes(length / 2).toString('hex')
}

function letters(column: number): string {
  return column < 26 ? String.fromCharCode(65 + column) : letters(Math.floor(column / 26) - 1) + letters(column % 26)
}

const isXmlText = (text: string) => text.trim() !== '' && !/[\0-\x1f\ufffe\uffff]|_x/.test(text) && text.isWellFormed()
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { anyText } from '../../test/runner/any-text.ts'
import { cpuMs } from '../../test/runner/cpu.ts'
import { extent } from '../../test/runner/extent.ts'
import { limits } from './limits.ts'
import { FileFault, type Row, readRows } from './tabular.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tabular-csv-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

/** Returns the rows up to the first fault, and the fault. */
async function read(bytes: string | Buffer): Promise<{ rows: Row[]; fault: FileFault | undefined }> {
  const file = path.join(folder, `${++files}.csv`)
  writeFileSync(file, bytes)
  const rows: Row[] = []
  try {
    for await (const batch of readRows({ path: file, kind: 'csv' })) {
      expect(batch.length).toBeLessThanOrEqual(limits.batchRowsMax)
      rows.push(...batch)
    }
    return { rows, fault: undefined }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    return { rows, fault: error }
  }
}

async function cellsOf(bytes: string | Buffer): Promise<unknown[]> {
  const { rows, fault } = await read(bytes)
  expect(fault).toBe(undefined)
  return rows.map(({ cells }) => cells)
}

describe('a file', () => {
  test.each([
    ['commas', 'a,b;c\n1,2\n'],
    ['semicolons', 'a;"b,,,c";d\n1;2;3\n'],
    ['tabs', 'a\tb,c\td\n1\t2\t3\n'],
    ['one column', 'a\n1\n'],
  ])('of %s is split by the delimiter of its header', async (_, text) => {
    const [header, row] = (await cellsOf(text)) as string[][]
    expect(row).toEqual(header?.map((_, index) => String(index + 1)))
  })

  test('may have a byte order mark, and mixed line ends of any kind', async () => {
    expect(await cellsOf('\ufeff"a",b\r\n1,2\n3,4\r5,"6"')).toEqual([
      ['a', 'b'],
      ['1', '2'],
      ['3', '4'],
      ['5', '6'],
    ])
  })

  test('keeps leading zeros, spaces, quotes and line breaks within quotes, and empty cells', async () => {
    expect(await cellsOf('a,b\n007, x \n"say ""hi""","1\r\n2"\n,"3"\n')).toEqual([
      ['a', 'b'],
      ['007', ' x '],
      ['say "hi"', '1\r\n2'],
      ['', '3'],
    ])
  })

  test('counts rows as a spreadsheet does: blank ones are counted, line breaks within quotes are not', async () => {
    const { rows } = await read('a,b\n\n"1\n\n1",2\r\n,\n\n  ,""\n3,4\n\n\n')
    expect(rows.map(({ row }) => row)).toEqual([1, 3, 7])
  })

  test('that we wrote reads back unchanged, even text that already began with an apostrophe', async () => {
    const cell = anyText({ maxLength: 20 }).filter(text => !text.includes('\0') && !text.startsWith("'"))
    // The constant keeps a row from being blank.
    const rows = fc.array(fc.tuple(fc.constant('x'), cell, cell), { minLength: 1, maxLength: 300 })
    await fc.assert(
      fc.asyncProperty(rows, fc.constantFrom(',', ';', '\t'), async (rows, delimiter) => {
        const table = [['email', 'first name', 'tier'], ...rows]
        const text = stringify(table, { delimiter, escape_formulas: true, quoted: true, record_delimiter: 'windows' })
        expect(await cellsOf(text)).toEqual(table)
      }),
      { numRuns: extent({ short: 5, long: 20 }) },
    )
    expect(await cellsOf("a\n'=1+1\n'-5\n'text\n''=1\n")).toEqual([['a'], ['=1+1'], ['-5'], ["'text"], ["'=1"]])
  })

  test('without quotes is read as csv-parse would read it', async () => {
    const piece = fc.constantFrom('a', '1', ' ', ',', ';', '\t', '\n', '\r', '\r\n', 'ä')
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async pieces => {
        const text = `a,b,c\n${pieces.join('')}`
        const options = { record_delimiter: ['\r\n', '\n', '\r'], relax_column_count: true, skip_empty_lines: true }
        const parsed = (parse(text, options) as string[][]).filter(cells => cells.some(cell => cell.trim() !== ''))
        expect(await cellsOf(text)).toEqual(parsed)
      }),
      { numRuns: extent({ short: 50, long: 300 }) },
    )
  })

  test('is read the same wherever its 64 KiB chunks end', async () => {
    // Rows of 600 bytes.
    const above = `a,b\n${`${'1'.repeat(298)},${'2'.repeat(300)}\n`.repeat(109)}`
    for (let shift = 100; shift < 140; shift++) {
      const cells = await cellsOf(`${above}${'p'.repeat(shift)},"ä\u{1f600}""\r\n"\r\n1,2\r\n`)
      expect(cells.slice(-2)).toEqual([
        ['p'.repeat(shift), 'ä\u{1f600}"\r\n'],
        ['1', '2'],
      ])
      const { rows } = await read(`${above}${'p'.repeat(shift)},2\r\n3,4\r\n`)
      expect(rows.slice(-2)).toEqual([
        { row: 111, cells: ['p'.repeat(shift), '2'] },
        { row: 112, cells: ['3', '4'] },
      ])
    }
  })
})

test('a faulty row is reported, and the others are read', async () => {
  const { rows, fault } = await read(`email,b\n1\n1,2,3\n1,2\n1,${'x'.repeat(1_001)}\n3,4\n`)
  expect(fault).toBe(undefined)
  expect(rows.map(({ row, fault }) => [row, fault?.replace(/;.*/, '')])).toEqual([
    [1, undefined],
    [2, 'The row has 1 cells, and the header 2'],
    [3, 'The row has 3 cells, and the header 2'],
    [4, undefined],
    [5, 'The cell in the column "b" is longer than 1000 characters'],
    [6, undefined],
  ])
  expect(rows[4]?.cells[1]).toHaveLength(1_000)
})

describe('reading stops within five seconds of CPU time, names the row and the remedy, and the rows before it are valid:', () => {
  const good = 'a,b\n1,2\n'
  const deep = `a,b\n${'1,2\n'.repeat(50_000)}`
  // A string of this size would take longer to write than the file to read.
  const filled = (repeated: string, bytes: number) => Buffer.concat([Buffer.from(good), Buffer.alloc(bytes, repeated)])
  const utf16 = (text: string) => Buffer.from(text, 'utf16le')
  test.each<[string, () => string | Buffer, number, RegExp]>([
    ['nothing', () => '', 1, /empty/],
    ['only a byte order mark', () => '\ufeff', 1, /empty/],
    ['only blank rows', () => '\n\r\n,\n', 1, /empty/],
    ['a blank first row', () => '\na,b\n', 1, /first row is blank/],
    ['UTF-16', () => utf16('\ufeffa,b\n'), 1, /UTF-16.*"CSV UTF-8"/],
    ['big-endian UTF-16', () => utf16('\ufeffa,b\n').swap16(), 1, /UTF-16/],
    ['UTF-16 without a mark', () => utf16('a,b\n'), 1, /UTF-16/],
    ['Latin-1', () => Buffer.from(`${good}ä,2\n`, 'latin1'), 3, /not valid UTF-8; save/],
    ['Latin-1 far down', () => Buffer.from(`${deep}ä,2\n3,4\n`, 'latin1'), 50_002, /not valid UTF-8/],
    ['a character that is cut short at the end', () => Buffer.from(`${good}ä`).subarray(0, -1), 3, /not valid UTF-8/],
    ['NUL', () => `${good}1,\0\n`, 3, /NUL/],
    ['NUL after blank rows far down', () => `${deep}\n\r\n1,\0\n`, 50_004, /NUL/],
    ['a workbook', () => 'PK\x03\x04rest', 1, /workbook.*\.xlsx/],
    ['an old workbook', () => Buffer.from('d0cf11e0a1b11ae1', 'hex'), 1, /\.xls/],
    ['a PDF', () => '%PDF-1.7', 1, /PDF/],
    ['gzip', () => Buffer.from([0x1f, 0x8b, 8, 0]), 1, /gzip/],
    ['a web page', () => '\ufeff \n<!DOCTYPE html><table>', 1, /web page/],
    ['a quote that is not closed', () => `${good}1,"2\n3,4\n`, 3, /never closed/],
    ['a quote that is not closed in a large file', () => `${good}1,"2\n${'3,4\n'.repeat(500_000)}`, 3, /never closed/],
    ['a quote within a cell', () => `${good}1,2"3\n`, 3, /middle of a cell/],
    ['text after a closing quote', () => `${good}1,"2"3\n`, 3, /closing quote/],
    ['a line of 100 MB', () => filled('x', 100_000_000), 3, /longer than/],
    ['a quoted cell of 10 MB', () => `${good}1,"${'x\n'.repeat(5_000_000)}"\n`, 3, /longer than/],
    ['16,000 columns', () => `${'a,'.repeat(15_999)}a\n`, 1, /more than 1000 cells/],
    ['100 MB of commas', () => filled(',', 100_000_000), 3, /more than 1000 cells/],
    [
      'commas between quoted line breaks',
      () => filled(`"\n"${','.repeat(60_000)}`, 60_000_000),
      3,
      /more than 1000 cells/,
    ],
    ['blank rows of many cells', () => filled(`${','.repeat(60_000)}\n`, 60_000_000), 3, /more than 1000 cells/],
    ['a column name that is too long', () => `${'a'.repeat(1_001)},b\n1,2\n`, 1, /column name/],
    ['one row too many', () => `a\n${'1\n'.repeat(1_000_001)}`, 1_000_002, /more than 1000000 rows/],
    ['blank rows without end', () => `a,b\n${'\n'.repeat(5_000_000)}`, 1_000_002, /more than 1000000 rows/],
    [
      'rows with another delimiter',
      () => `a,b\n${'1;2\n'.repeat(1_000_000)}`,
      10_002,
      /10000 rows do not have as many cells/,
    ],
  ])('%s', async (_, bytes, row, message) => {
    const startMs = cpuMs()
    const { rows, fault } = await read(bytes())
    expect(cpuMs() - startMs).toBeLessThan(5_000)
    expect([fault?.row, fault?.message]).toEqual([row, expect.stringMatching(message)])
    expect(rows.every(read => read.row < row)).toBe(true)
    if (row === 3)
      expect(rows).toEqual([
        { row: 1, cells: ['a', 'b'] },
        { row: 2, cells: ['1', '2'] },
      ])
  })
})

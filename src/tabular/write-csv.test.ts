import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { extent } from '../../test/runner/extent.ts'
import { csvLines, unescaped } from './write-csv.ts'

// Blanks and quotes before the sign do not keep a text from being a formula.
const formula = /^["\t]*[=+\-@＝＋－＠]/

/** The cells that a spreadsheet reads, if it splits at this delimiter and recognises quotes only at the start of a cell. */
function cellsOf(file: string, delimiter: string): string[] {
  const options = { delimiter, relax_quotes: true, relax_column_count: true, record_delimiter: ['\r\n', '\n', '\r'] }
  return (parse(file, options) as string[][]).flat()
}

const awkward = fc
  .array(fc.constantFrom('a', '1', '=', '+', '-', '@', '＝', ',', ';', '\t', '\r', '\n', '"', "'", ' '), {
    maxLength: 8,
  })
  .map(parts => parts.join(''))

test.each([',', ';', '\t'])('a file that is split at %j has no formula in any cell, whatever its delimiter', read => {
  fc.assert(
    fc.property(
      fc.array(awkward, { minLength: 1, maxLength: 4 }),
      fc.constantFrom(',', ';', '\t'),
      (cells, written) => {
        const file = csvLines([['first', ...cells, 'last']], { delimiter: written })
        // A spreadsheet that ignores quotes sees the pieces between separators as cells.
        const pieces = file.split(read).flatMap(piece => piece.split(/[\r\n]/))
        for (const piece of pieces) expect(piece).not.toMatch(formula)
        if (written === read) for (const cell of cellsOf(file, read)) expect(cell).not.toMatch(formula)
      },
    ),
    { numRuns: extent({ short: 200, long: 2_000 }) },
  )
})

test.each([',', ';', '\t'])('a file written with %j reads back as the same texts', delimiter => {
  fc.assert(
    fc.property(fc.array(awkward, { minLength: 1, maxLength: 4 }), cells => {
      const file = csvLines([['first', ...cells]], { delimiter })
      expect(cellsOf(file, delimiter).map(unescaped)).toEqual(['first', ...cells])
    }),
    { numRuns: extent({ short: 200, long: 2_000 }) },
  )
})

test('only text that could begin a formula gets an apostrophe', () => {
  const rows = [
    ['=1', 'a;=cmd()', 'a;"=cmd()', 'a\n+1', "a;'=1", "'=1"],
    ['a=1', 'a-b', 'a; =1', 'O’Brien, Anne-Marie', "'t", ''],
  ]
  expect(csvLines(rows)).toBe(
    `'=1,"a;'=cmd()","a;'""=cmd()","a\n'+1","a;''=1",''=1\r\na=1,a-b,"a; =1","O’Brien, Anne-Marie",'t,\r\n`,
  )
})

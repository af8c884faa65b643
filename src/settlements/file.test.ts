import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { readLines } from '../tabular/reading.ts'
import { FileFault, readRows } from '../tabular/tabular.ts'
import { linesMax, settlementFile } from './file.ts'
import type { LineFault, Taken } from './rules.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'settlement-file-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function read(text: string) {
  const file = path.join(folder, 'settlement.csv')
  writeFileSync(file, text)
  const taken: Taken[] = []
  const faults: LineFault[] = []
  await using handle = await open(file)
  await readLines({ fd: handle.fd, kind: 'csv' }, settlementFile, {
    signal: new AbortController().signal,
    onLines(lines) {
      for (const line of lines) taken.push(line)
    },
    onFault: (at, message) => faults.push({ at, message }),
  })
  return { taken, faults }
}

const a = 'mem_01kah4pzc5e4r8v2m6t0x9y3ba'
const b = 'mem_01kah4pzc5e4r8v2m6t0x9y3bb'
const header = 'member_id,amount_decimal,currency'
const two = [
  { memberId: a, amount: 5_000n, currency: 'GBP', at: 2 },
  { memberId: b, amount: -120n, currency: 'GBP', at: 3 },
]

describe('a good file', () => {
  test.each([
    ['as documented', `${header}\r\n${a},50.00,GBP\r\n${b},-1.20,GBP\r\n`],
    ['with fewer decimals', `${header}\n${a},50,GBP\n${b},-1.2,GBP\n`],
    ['in minor units', `member_id,amount_minor,currency\n${a},5000,GBP\n${b},-120,GBP\n`],
    ['with both amounts', `member_id,amount_decimal,amount_minor,currency\n${a},50.00,5000,GBP\n${b},-1.20,-120,GBP\n`],
    ['without a last line end, and with bare line feeds', `${header}\n${a},50.00,GBP\n${b},-1.20,GBP`],
    ['with a byte order mark', `\ufeff${header}\n${a},50.00,GBP\n${b},-1.20,GBP\n`],
    ['with semicolons', `member_id;amount_decimal;currency\n${a};50.00;GBP\n${b};-1.20;GBP\n`],
    ['with tabs', `member_id\tamount_decimal\tcurrency\n${a}\t50.00\tGBP\n${b}\t-1.20\tGBP\n`],
    ['with other case and spacing', ` Member ID ,AMOUNT Decimal,Currency\n${a},50.00,GBP\n${b},-1.20,GBP\n`],
    ['with columns in another order', `currency,memberId,amountDecimal\nGBP,${a},50.00\nGBP,${b},-1.20\n`],
    [
      'with quotes and spaces around',
      `"member_id","amount_decimal","currency"\n"${a}", 50.00 ,GBP\n${b},"-1.20",GBP\n`,
    ],
    [
      'as the deductions went out',
      `member_id,worker_id,email,amount_decimal,currency\n${a},'=1+1,"a,b@example.com",50.00,GBP\n${b},,b@example.com,-1.20,GBP\n`,
    ],
  ])('is read %s', async (_, text) => {
    expect(await read(text)).toEqual({ taken: two, faults: [] })
  })

  test('may have empty lines, which count as rows', async () => {
    const { taken, faults } = await read(`${header}\n\n${a},50.00,GBP\n,,\n${b},-1.20,GBP\n\n\n`)
    expect(faults).toEqual([])
    expect(taken.map(line => line.at)).toEqual([3, 5])
  })
})

describe('a bad file', () => {
  const rows = (...lines: string[]) => [header, ...lines].join('\n')
  test.each<[string, string, [number, RegExp][]]>([
    ['an empty file', '', [[1, /is empty/]]],
    ['a missing column', `member_id,currency\n${a},GBP`, [[1, /amount_decimal is missing/]]],
    ['a column twice', `${header},Amount Decimal\n${a},1,GBP,1`, [[1, /amount_decimal appears twice/]]],
    [
      'an amount without its unit',
      `member_id,amount,currency\n${a},5000,GBP`,
      [[1, /^the column amount does not say its unit; name it amount_decimal .* or amount_minor/]],
    ],
    [
      'an amount without its unit beside one with it',
      `member_id,amount,amount_decimal,currency\n${a},5000,50.00,GBP`,
      [[1, /^the column amount does not say its unit/]],
    ],
    [
      'two amounts that differ',
      `member_id,amount_decimal,amount_minor,currency\n${a},40.00,5000,GBP\n${b},1,100,GBP`,
      [[2, /^amount_decimal is 40.00 and amount_minor is 5000, which is not the same amount/]],
    ],
    [
      'one of two amounts missing',
      `member_id,amount_decimal,amount_minor,currency\n${a},,5000,GBP\n${b},1,,GBP`,
      [
        [2, /^amount_decimal: is empty/],
        [3, /^amount_minor: must be a whole number/],
      ],
    ],
    ['decimals of minor units', `member_id,amount_minor,currency\n${a},50.00,GBP`, [[2, /^amount_minor: must be/]]],
    ['decimals that the currency lacks', rows(`${a},50.5,JPY`), [[2, /^amount_decimal: must be in JPY, such as 120,/]]],
    ['an unknown column', `${header},=cmd\n${a},1,GBP,x`, [[1, /"=cmd" is not known/]]],
    ['no lines', header, [[1, /no lines below/]]],
    ['only empty lines', `${header}\n\n`, [[1, /no lines below/]]],
    ['too few cells', rows(`${a},1`), [[2, /2 cells/]]],
    ['too many cells', rows(`${a},1,GBP,x`), [[2, /4 cells/]]],
    ['too many decimals', rows(`${a},50.001,GBP`), [[2, /^amount_decimal: must be in GBP, such as 120.00/]]],
    ['thousands', rows(`${a},"5,000",GBP`), [[2, /^amount/]]],
    ['an exponent', rows(`${a},5e3,GBP`), [[2, /^amount/]]],
    ['a plus', rows(`${a},+5,GBP`), [[2, /^amount/]]],
    ['no amount', rows(`${a},,GBP`), [[2, /^amount/]]],
    ['more than a number can hold', rows(`${a},90071992547409.92,GBP`), [[2, /^amount/]]],
    ['a formula', rows(`=HYPERLINK(0),1,GBP`), [[2, /^member_id/]]],
    ['an id of another kind', rows(`w_01kah4pzc5e4r8v2m6t0x9y3ba,1,GBP`), [[2, /^member_id/]]],
    ['a currency that does not exist', rows(`${a},1,XYZ`), [[2, /^currency/]]],
    ['a currency in lower case', rows(`${a},1,gbp`), [[2, /^currency/]]],
    ['everything wrong with a row, in one sentence', rows('x,y,z'), [[2, /member_id.*; currency/]]],
    [
      'every bad row, and the good ones between',
      rows(`${a},x,GBP`, `${a},1,GBP`, `${b},1,x`),
      [
        [2, /amount/],
        [4, /currency/],
      ],
    ],
    ['a quote that is not closed', rows(`${a},1,GBP`, `"${b},1,GBP`), [[3, /quote is opened .* never closed/]]],
    ['a quote within a cell', rows(`${a},1"2,GBP`), [[2, /quote appears in the middle/]]],
    ['something after a quote', rows(`"${a}"x,1,GBP`), [[2, /follows a closing quote/]]],
    ['a row without end', rows(`"${'x'.repeat(600_000)}`), [[2, /longer than 524288/]]],
    ['NUL', rows(`${a}\0,1,GBP`), [[2, /NUL/]]],
    ['a million columns', `${','.repeat(1_000_000)}\n`, [[1, /more than 1000 cells/]]],
    ['a row of a million cells', rows(','.repeat(1_000_000)), [[2, /more than 1000 cells/]]],
  ])('%s is named', async (_, text, expected) => {
    const { faults } = await read(text)
    expect(faults.map(({ at }) => at)).toEqual(expected.map(([at]) => at))
    for (const [index, [, message]] of expected.entries()) expect(faults[index]?.message).toMatch(message)
  })

  test('a file with too many lines is refused at the first line beyond the limit', async () => {
    const text = `${header}\n${`${a},1,GBP\n`.repeat(linesMax + 5)}`
    const { faults } = await read(text)
    expect(faults).toEqual([{ at: linesMax + 2, message: `a settlement has at most ${linesMax} lines` }])
  })
})

test('line ends may be mixed without losing a line', async () => {
  const [a, b] = ['mem_01kah4pzc5e4r8v2m6t0x9y3bd', 'mem_01kah4pzc5e4r8v2m6t0x9y3be']
  for (const ends of [
    ['\r\n', '\n', '\n'],
    ['\n', '\r\n', '\n'],
    ['\r\n', '\n', '\r\n'],
    ['\r', '\r', '\r'],
  ]) {
    const file = [header, `${a},5,GBP`, `${b},6,GBP`].map((line, index) => line + ends[index])
    const { taken, faults } = await read(file.join(''))
    expect(faults).toEqual([])
    expect(taken.map(line => line.memberId)).toEqual([a, b])
  }
})

test('any sequence of bytes gives lines or faults', async () => {
  const pieces = [
    header,
    '\n',
    '\r\n',
    ',',
    ';',
    '"',
    '""',
    a,
    '50.00',
    '-0',
    'GBP',
    '\0',
    '\ufeff',
    '\ud6c0',
    ' ',
    '#',
  ]
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...pieces), { maxLength: 12 }),
      fc.boolean(),
      async (chosen, hasHeader) => {
        expect(await readHere(`${hasHeader ? `${header}\n` : ''}${chosen.join('')}`)).not.toHaveLength(0)
      },
    ),
    { numRuns: 500 },
  )
})

// Without the thread, which ends with a faulty header and takes long to start anew.
async function readHere(text: string): Promise<unknown[]> {
  const file = path.join(folder, 'bytes.csv')
  writeFileSync(file, text)
  const found: unknown[] = []
  let columns: ReturnType<typeof settlementFile.readHeader>['columns'] | undefined
  try {
    for await (const rows of readRows({ path: file, kind: 'csv' })) {
      for (const { row, cells, fault } of rows) {
        if (columns !== undefined) found.push(fault ?? settlementFile.readLine(row, cells, columns))
        else {
          const header = settlementFile.readHeader(cells)
          columns = header.columns
          found.push(header)
        }
      }
    }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    found.push(error.message)
  }
  return found
}

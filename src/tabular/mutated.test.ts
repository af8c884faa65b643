import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { cpuMs } from '../../test/runner/cpu.ts'
import { extent } from '../../test/runner/extent.ts'
import { FileFault, type Row, readRows } from './tabular.ts'
import { textRow, workbook, zipOf } from './zip.fixture.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tabular-mutated-'))
afterAll(() => rmSync(folder, { recursive: true }))

// A mutated file has a few hundred bytes: a reader that takes longer than this never ends.
const msMax = 5_000

async function outcomeOf(bytes: Buffer, kind: 'csv' | 'xlsx'): Promise<Row[] | FileFault> {
  const file = path.join(folder, kind)
  writeFileSync(file, bytes)
  const startMs = cpuMs()
  const rows: Row[] = []
  try {
    for await (const batch of readRows({ path: file, kind })) rows.push(...batch)
    return rows
  } catch (error) {
    if (error instanceof FileFault) return error
    throw error
  } finally {
    expect(cpuMs() - startMs).toBeLessThan(msMax)
  }
}

// Characters that a reader treats specially, and bytes that are not text.
const bytes = fc.oneof(
  fc.constantFrom(
    ...['"', '""', ',', ';', '\t', '\r', '\n', '\r\n', "'=", '\0', '<', '>', '&', '/>', 'PK'].map(Buffer.from),
  ),
  fc.constantFrom([0xd6], [0xff, 0xfe], [0xef, 0xbb, 0xbf], [0xe2, 0x82], [0xf0, 0x9f, 0x98]).map(Buffer.from),
  fc.uint8Array({ minLength: 1, maxLength: 4 }).map(Buffer.from),
)
const place = fc.double({ min: 0, max: 1, noNaN: true })
type Mutation = (file: Buffer) => Buffer
const at = (file: Buffer, share: number) => Math.floor(share * file.length)
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(place, bytes).map(
    ([to, inserted]): Mutation =>
      file => {
        return Buffer.concat([file.subarray(0, at(file, to)), inserted, file.subarray(at(file, to))])
      },
  ),
  fc.tuple(place, bytes).map(
    ([to, written]): Mutation =>
      file => {
        return Buffer.concat([file.subarray(0, at(file, to)), written, file.subarray(at(file, to) + written.length)])
      },
  ),
  fc.tuple(place, place).map(
    ([a, b]): Mutation =>
      file => {
        const [from, to] = [at(file, Math.min(a, b)), at(file, Math.max(a, b))]
        return Buffer.concat([file.subarray(0, from), file.subarray(to)])
      },
  ),
  fc.tuple(place, place).map(
    ([a, b]): Mutation =>
      file => {
        const [from, to] = [at(file, Math.min(a, b)), at(file, Math.max(a, b))]
        return Buffer.concat([file.subarray(0, to), file.subarray(from)])
      },
  ),
  place.map(
    (to): Mutation =>
      file =>
        file.subarray(0, at(file, to)),
  ),
)
const mutations = fc.array(mutation, { minLength: 1, maxLength: 4 })
const mutated = (file: Buffer, each: Mutation[]) => each.reduce((bytes, mutate) => mutate(bytes), file)

const list = [
  '\ufeffemail;first_name;last_name;phone;tier',
  'zoë@example.com;"Zoë ""Z"" X";Müller;+447700900123;Bronze',
  "sam.okafor@example.com;'=Sam;Okafor;;Silver",
  '',
  '"a;b@example.com";"two\r\nlines";😀;07700 900123;Gold',
  '',
].join('\r\n')
const rows = `${textRow(1, ['email', 'sort_code'])}${textRow(2, ['sam@example.com', '089999'])}<row r="3"><c r="A3" t="s"><v>0</v></c><c r="B3" t="e"><v>#N/A</v></c></row>`
const parts = workbook(rows, {
  strings: '<si><t>shared &amp; kept</t></si>',
  styles: '<cellXfs><xf numFmtId="14"/></cellXfs>',
})

test('a CSV file with text after a closing quote and then invalid UTF-8 is refused at that row', async () => {
  const fault = await outcomeOf(Buffer.from('""09\xd6,', 'latin1'), 'csv')
  expect(fault).toBeInstanceOf(FileFault)
  expect(fault).toMatchObject({ row: 1, message: expect.stringMatching(/^Text follows a closing quote/) })
})

test('any mutated CSV file gives rows or a fault', async () => {
  await fc.assert(
    fc.asyncProperty(mutations, async each => void (await outcomeOf(mutated(Buffer.from(list), each), 'csv'))),
    { numRuns: extent({ short: 100, long: 1_000 }) },
  )
})

test('any short sequence of bytes read as CSV gives rows or a fault', async () => {
  const text = fc.stringMatching(/^[a-z0-9 ]{1,3}$/).map(Buffer.from)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(bytes, text), { maxLength: 8 }), async pieces => {
      await outcomeOf(Buffer.concat(pieces), 'csv')
    }),
    { numRuns: extent({ short: 200, long: 2_000 }) },
  )
})

test('any mutated workbook, or part of one, gives rows or a fault', async () => {
  await fc.assert(
    fc.asyncProperty(mutations, async each => void (await outcomeOf(mutated(zipOf(parts), each), 'xlsx'))),
    { numRuns: extent({ short: 30, long: 300 }) },
  )
  await fc.assert(
    fc.asyncProperty(fc.nat(parts.length - 1), mutations, async (index, each) => {
      const changed = parts.map((part, place) =>
        place === index ? { ...part, content: mutated(Buffer.from(part.content as string), each) } : part,
      )
      await outcomeOf(zipOf(changed), 'xlsx')
    }),
    { numRuns: extent({ short: 60, long: 600 }) },
  )
})

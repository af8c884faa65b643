import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { BankFileProblem, type BankRecord, type ReadLimits } from '../bank-files.ts'
import { type ArucsOptions, arucsReader } from './read-arucs.ts'

const csv: ArucsOptions = {
  format: 'csv',
  columns: { reference: 'Reference', amount: 'Value', reasonCode: 'Code', reasonText: 'Reason', currency: 'Currency' },
}
const xml: ArucsOptions = { format: 'xml' }
const limits: ReadLimits = { bytesMax: 1_000_000, recordsMax: 1_000 }

async function* inChunks(bytes: Uint8Array, size = 7) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function read(file: string | Uint8Array, options: ArucsOptions = csv, chunkBytes = 7) {
  const bytes = typeof file === 'string' ? Buffer.from(file) : file
  const records: BankRecord[] = []
  let messageId = ''
  for await (const each of arucsReader(options)(inChunks(bytes, chunkBytes), limits)) {
    if (each.type === 'head') messageId = each.head.messageId
    else {
      expect(messageId).not.toBe('')
      records.push(each)
    }
  }
  return { messageId, records }
}

const header = 'Date,Reference,Value,Currency,Code,Reason\r\n'
const rows = `${header}2026-03-13,MMABCDEFGHIJ2345,123.45,GBP,5,No account\r\n2026-03-13,"MMKLMNOPQRST6723 ","1,234.50",GBP,B,"Closed, since March"\r\n2026-03-13,PAYROLL 0042,0.01,GBP,0,\r\n`

/** By analogy with ARUDD. */
const items = (...given: string[]) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<BACSDocument xmlns="urn:x"><Data><ARUCS><Header/>\n<Advice><OriginatingAccountRecords><OriginatingAccountRecord><OriginatingAccount name="ACME"/>\n${given.join('\n')}\n</OriginatingAccountRecord></OriginatingAccountRecords></Advice></ARUCS></Data></BACSDocument>`
const item = (changed = '') =>
  `<ReturnedCreditItem ref="MMABCDEFGHIJ2345" transCode="99" returnCode="5" returnDescription="NO ACCOUNT" originalProcessingDate="2026-03-11" valueOf="123.45" currency="GBP"${changed}/>`

const returned = {
  type: 'payment',
  state: 'returned',
  reference: 'MMABCDEFGHIJ2345',
  entryReference: 'MMABCDEFGHIJ2345',
  amount: { amount: 12_345n, currency: 'GBP' },
  reasonCodes: ['5'],
}

describe('returned credits are read', () => {
  test('from CSV by the names of its columns, with codes and references as they are', async () => {
    const { messageId, records } = await read(rows)
    expect(messageId).toMatch(/^ARUCS-[0-9A-F]{24}$/)
    expect(records).toEqual([
      { ...returned, line: 2, reasonText: 'No account' },
      {
        ...{ ...returned, line: 3, reference: 'MMKLMNOPQRST6723', entryReference: 'MMKLMNOPQRST6723' },
        ...{ amount: { amount: 123_450n, currency: 'GBP' }, reasonCodes: ['B'], reasonText: 'Closed, since March' },
      },
      // Not ours: the importer decides.
      {
        ...{ ...returned, line: 4, reference: 'PAYROLL 0042', entryReference: 'PAYROLL 0042' },
        ...{ amount: { amount: 1n, currency: 'GBP' }, reasonCodes: ['0'], reasonText: null },
      },
    ])
  })

  test('from CSV in pence with another delimiter and a byte order mark', async () => {
    const columns = { reference: 'ref', amount: 'pence', reasonCode: 'code' }
    const options: ArucsOptions = { format: 'csv', columns, delimiter: ';', amountIn: 'pence' }
    const { records } = await read('\ufeffref;pence;code\nMMABCDEFGHIJ2345;12345;5\n', options)
    expect(records).toEqual([{ ...returned, line: 2, reasonText: null }])
  })

  test('from CSV below a title, with a header in any case, in Latin-1, and without the zeros that spreadsheets drop', async () => {
    const above = 'Returned credits – “Acme”;\r\n"unclosed\r\nDate: 13/03/2026\r\n\r\n'.replace(/[–“”]/g, '-')
    const file = `${above}date,REFERENCE,value,Currency,CODE,reason\r\n2026-03-13,MMABCDEFGHIJ2345,99.7,GBP,5,Zoë’s account\r\n2026-03-13,MMKLMNOPQRST6723,"1,100",GBP,5,\r\n`
    const latin1 = Buffer.from(file.replace('’', '\x92'), 'latin1')
    for (const size of [1, 7, 1_000]) {
      const { records } = await read(latin1, csv, size)
      expect(records).toEqual([
        { ...returned, line: 6, amount: { amount: 9_970n, currency: 'GBP' }, reasonText: 'Zoë’s account' },
        expect.objectContaining({ line: 7, amount: { amount: 110_000n, currency: 'GBP' } }),
      ])
    }
    const { records } = await read(file)
    expect(records[0]).toMatchObject({ reasonText: 'Zoë’s account' })
  })

  test('from XML, whatever its prefixes', async () => {
    const { records } = await read(items(item()), xml)
    expect(records).toEqual([{ ...returned, line: 4, reasonText: 'NO ACCOUNT' }])
    const prefixed = items(item()).replaceAll(/<(\/?)(?=[A-Z])/g, '<$1b:')
    expect((await read(prefixed, xml)).records).toEqual(records)
  })

  test('from a file without items', async () => {
    expect(await read(header)).toMatchObject({ records: [], messageId: expect.stringMatching(/^ARUCS-/) })
    expect(await read(items(), xml)).toMatchObject({ records: [] })
  })

  test('the same from the same file, however it is cut into chunks', async () => {
    const whole = await read(rows, csv, 1_000_000)
    for (const size of [1, 2, 3, 64]) expect(await read(rows, csv, size)).toEqual(whole)
    const other = rows.replace('123.45', '123.46')
    expect((await read(other)).messageId).not.toBe(whole.messageId)
  })
})

describe('a broken or hostile file is refused whole, with its line:', () => {
  const row = (reference: string, value: string, code = '5', currency = 'GBP') =>
    `${header}2026-03-13,MMAAAAAAAAAAAAAA,1.00,GBP,5,\r\n2026-03-13,${reference},${value},${currency},${code},\r\n`
  const good = 'MMABCDEFGHIJ2345'
  test.each<[string, string | Uint8Array, ArucsOptions, RegExp, number | null]>([
    ['nothing', '', csv, /empty/, 1],
    ['another currency', row(good, '1.00', '5', 'EUR'), csv, /"EUR", not GBP/, 3],
    ['a negative amount', row(good, '-1.00'), csv, /"-1\.00" is not an amount/, 3],
    ['an amount of zero', row(good, '0.00'), csv, /outside what Bacs can pay/, 3],
    ['more than Bacs can pay', row(good, '20000000.01'), csv, /outside what Bacs can pay/, 3],
    ['an amount with three decimals', row(good, '1.500'), csv, /not an amount in pounds/, 3],
    ['an amount that ends with a point', row(good, '1.'), csv, /not an amount in pounds/, 3],
    ['an amount with an exponent', row(good, '1e5'), csv, /not an amount/, 3],
    ['a huge amount', row(good, '9'.repeat(5_000)), csv, /not an amount/, 3],
    ['no reference', row('', '1.00'), csv, /reference is missing/, 3],
    ['a long reference', row('A'.repeat(19), '1.00'), csv, /more than 18/, 3],
    ['no code', row(good, '1.00', ''), csv, /return code is missing/, 3],
    ['a duplicate reference', row('MMAAAAAAAAAAAAAA', '1.00'), csv, /is already on line 2/, 3],
    ['a missing column', rows.replace('Value', 'Amount'), csv, /no column Value/, 1],
    ['a duplicate column', rows.replace('Date', 'Value'), csv, /more than one column Value/, 1],
    ['a row that is cut off', rows.slice(0, rows.indexOf(',5,')), csv, /4 cells, and the header 6/, 2],
    ['a quote that is never closed', rows.replace('"MMK', '""MMK'), csv, /The CSV is broken/, 3],
    ['a row of 1 MB', `${header}${'x'.repeat(900_000)}`, csv, /longer than 65536 characters/, 2],
    ['Latin-1 in a reference', Buffer.from(`${header}2026-03-13,Zoë,1.00,GBP,5,\r\n`, 'latin1'), csv, /reference/, 2],
    ['Latin-1 in XML', Buffer.from(items(item(' name="Zoë"')), 'latin1'), xml, /not UTF-8/, 4],
    ['no header among its first lines', `${'title\r\n'.repeat(60)}${rows}`, csv, /no header with Reference, Value/, 1],
    ['UTF-16', Buffer.from(rows, 'utf16le'), csv, /NUL/, 1],
    ['a NUL', `${rows}\0`, csv, /NUL/, 5],
    ['too many bytes', 'x\r\n'.repeat(400_000), csv, /larger than 1000000 bytes|header/, null],
    [
      'too many items',
      header + Array.from({ length: 1_001 }, (_, index) => `d,R${index},1.00,GBP,5,\r\n`).join(''),
      ...([csv, /more than 1000 items/, 1_002] as const),
    ],
    ['a cut-off document', items(item()).slice(0, -20), xml, /The XML is broken/, 5],
    ['a DOCTYPE', `<!DOCTYPE x [<!ENTITY a "b">]>${items(item())}`, xml, /DOCTYPE/, 1],
    ['an entity', items(item()).replace('NO ACCOUNT', '&boom;'), xml, /The XML is broken/, 4],
    ['a duplicate attribute', items(item(' ref="X"')), xml, /The XML is broken/, 4],
    ['an attribute of 500 kB', items(item(` x="${'y'.repeat(500_000)}"`)), xml, /longer than any field/, 4],
    ['deep nesting', '<a>'.repeat(50), xml, /nested elements/, 1],
    ['an item in euros', items(item().replace('GBP', 'EUR')), xml, /"EUR", not GBP/, 4],
    ['an item without a value', items(item().replace('valueOf', 'amount')), xml, /not an amount/, 4],
    ['a duplicate item', items(item(), item()), xml, /is already on line 4/, 5],
    ['another document', '<Document><CstmrPmtStsRpt/></Document>', xml, /not ARUCS/, 1],
  ])('%s', async (_, file, options, message, line) => {
    const error = await read(file, options, 65_536).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(BankFileProblem)
    expect((error as BankFileProblem).message).toMatch(message)
    if (line !== null) expect((error as BankFileProblem).line).toBe(line)
  })

  test('any mutation of a file gives records or a problem, never another error', async () => {
    const mutation = fc.record({ at: fc.nat(600), bytes: fc.uint8Array({ maxLength: 4 }), removed: fc.nat(8) })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(csv, xml), fc.array(mutation, { maxLength: 3 }), async (options, mutations) => {
        const file = mutations.reduce<Buffer>(
          (bytes, { at, bytes: more, removed }) =>
            Buffer.concat([bytes.subarray(0, at), more, bytes.subarray(at + removed)]),
          Buffer.from(options === csv ? rows : items(item())),
        )
        await read(file, options, 65_536).catch((error: unknown) => expect(error).toBeInstanceOf(BankFileProblem))
      }),
      { numRuns: 300 },
    )
  })
})

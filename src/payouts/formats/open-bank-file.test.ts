import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accountReport, type Entry, statusReport } from '../../../test/banks/iso20022.ts'
import { type Part, zipOf } from '../../tabular/zip.fixture.ts'
import { BankFileProblem, type ReadBankFile } from './bank-files.ts'
import { sepaFormat } from './sepa/format.ts'
import { standard18Format } from './standard18/format.ts'

const arucs = { format: 'csv', columns: { reference: 'Ref', amount: 'Amount', reasonCode: 'Code' } } as const
const readers = {
  sepa: sepaFormat().read,
  arucs: standard18Format({ scheme: 'bacs', serviceUserNumber: '123456' }, arucs).read,
}
const limits = { bytesMax: 10_000_000, recordsMax: 100 }

async function* chunksOf(bytes: Uint8Array, size: number) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function partsOf(
  file: string | Uint8Array,
  { read = readers.sepa, chunkBytes = 1_000 }: { read?: ReadBankFile; chunkBytes?: number } = {},
) {
  const parts: (ReturnType<ReadBankFile> extends AsyncGenerator<infer Each> ? Each : never)[] = []
  for await (const part of read(chunksOf(Buffer.from(file as string), chunkBytes), limits)) parts.push(part)
  return parts
}

async function problemOf(file: string | Uint8Array, read?: ReadBankFile): Promise<string> {
  const error = await partsOf(file, { ...(read === undefined ? {} : { read }) }).catch((thrown: unknown) => thrown)
  if (!(error instanceof BankFileProblem)) throw new Error(`It was not refused: ${String(error)}`)
  return error.message
}

const at = new Date('2026-03-12T09:00:00Z')
const entry: Entry = { bank: 'E1', amount: 700n, direction: 'CRDT', bookedOn: '2026-03-12', details: '' }
const statement = (id: string, entries = [entry]) =>
  accountReport({ id, at }, { kind: 'camt.053', iban: 'DE75512108001245126199', entries })

describe('an archive', () => {
  test('is read as its files in order, and each head has the name of its file', async () => {
    const file = zipOf([
      { name: 'a.xml', content: statement('S1') },
      { name: 'folder/', content: '' },
      { name: 'folder/b.xml', content: statusReport({ id: 'P1', at }, { messageId: 'B1', status: 'ACTC' }, []) },
      // A copy for people, and what operating systems add.
      ...['statement.PDF', '__MACOSX/a.xml', '.DS_Store'].map(name => ({ name, content: '%PDF-1.7' })),
    ])
    for (const chunkBytes of [1, 100_000])
      expect(await partsOf(file, { chunkBytes })).toMatchObject([
        { type: 'head', head: { messageId: 'S1', file: 'a.xml' } },
        { type: 'entry' },
        { type: 'head', head: { messageId: 'P1', file: 'folder/b.xml' } },
        { type: 'batch' },
      ])
  })

  test('of returned credits is read by a Bacs rail', async () => {
    const file = zipOf([{ name: 'arucs.csv', content: 'ref,amount,code\nMMABCDEFGHIJ2345,99.7,5\n' }])
    expect(await partsOf(file, { read: readers.arucs })).toMatchObject([{ type: 'head' }, { type: 'payment' }])
  })

  const whole = zipOf([{ name: 'a.xml', content: statement('S1') }])
  const repeated = (count: number): Part[] =>
    Array.from({ length: count }, (_, index) => ({ name: `${index}.xml`, content: statement('S1') }))
  test.each<[string, Uint8Array, string]>([
    ['is cut off', whole.subarray(0, -10), 'The archive is damaged or cut off; fetch it again'],
    ['has changed bytes', zipOf([{ name: 'a.xml', content: statement('S1'), crcSaid: 1 }]), 'damaged'],
    ['says another size', zipOf([{ name: 'a.xml', content: statement('S1'), bytesSaid: 5 }]), 'damaged'],
    ['has a password', zipOf([{ name: 'a.xml', content: 'x', flags: 1 }]), 'protected by a password'],
    ['is compressed by another method', zipOf([{ name: 'a.xml', content: 'x', method: 99 }]), 'unusual way'],
    ['holds an archive', zipOf([{ name: 'a.zip', content: whole }]), 'holds another archive'],
    ['holds an archive under another name', zipOf([{ name: 'a.xml', content: whole }]), 'a.xml in the archive: Line 1'],
    ['is a bomb', zipOf([{ name: 'a.xml', content: ' '.repeat(2_000_000) }]), 'compressed more than any real'],
    [
      'is large when unpacked',
      zipOf([{ name: 'a', content: Buffer.alloc(10_000_001), isStored: true }]),
      'larger than 10000000',
    ],
    [
      'holds too many files',
      zipOf(Array.from({ length: 1_001 }, (_, n) => ({ name: `${n}`, content: '' }))),
      'more than 1000 files',
    ],
    ['holds too many records', zipOf(repeated(101)), '100.xml in the archive: '],
    ['holds one name twice', zipOf([...repeated(1), ...repeated(1)]), 'two files of one name'],
    ['leaves its folder', zipOf([{ name: '../a.xml', content: statement('S1') }]), 'damaged'],
    ['holds nothing', zipOf([]), 'holds no file that a rail reads'],
    ['holds only a PDF', zipOf([{ name: 'a.pdf', content: '%PDF' }]), 'holds no file that a rail reads'],
    [
      'holds a broken file',
      zipOf([...repeated(1), { name: 'b.xml', content: '<Document>' }]),
      'b.xml in the archive: Line 1: The XML is broken',
    ],
    [
      'holds an MT940',
      zipOf([{ name: 'b.sta', content: ':20:X\r\n:25:1\r\n' }]),
      'b.sta in the archive: The file is an MT940',
    ],
    [
      'is a workbook',
      zipOf([
        { name: '[Content_Types].xml', content: '' },
        { name: 'xl/workbook.xml', content: '' },
      ]),
      'an Excel workbook (.xlsx)',
    ],
  ])('that %s is refused in a clear sentence', async (_, file, message) => {
    expect(await problemOf(file)).toContain(message)
  })

  test('with changed bytes is refused or read, and breaks nothing else', async () => {
    const change = fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255) })
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async changes => {
        const changed = Buffer.from(whole)
        for (const { at, byte } of changes) changed[at] = byte
        await partsOf(changed).catch(error => expect(error).toBeInstanceOf(BankFileProblem))
      }),
      { numRuns: 300 },
    )
  })
})

describe('a file that no rail reads is refused by its name:', () => {
  const swift = '{1:F01BANKDEFFXXXX0000000000}{2:I940BANKDEFFXXXXN}{4:\r\n'
  test.each<[string, string | Uint8Array]>([
    ['MT940', ':20:STARTUMS\r\n:25:10020030/1234567\r\n:28C:0/1\r\n:60F:C260310EUR1,00\r\n'],
    ['MT940', `${swift}:20:X\r\n:25:DE89\r\n`],
    ['MT942', `${swift.replace('940', '942')}:20:X\r\n:25:DE89\r\n`],
    ['MT942', '\r\n:20:X\r\n:25:DE89\r\n:28C:1\r\n:34F:EUR0,\r\n:13:2603101200\r\n'],
    ['MT950', `${swift.replace('940', '950')}:20:X\r\n`],
    ['BAI2', '01,122099999,123456789,260310,0200,1,80,1,2/\n'],
    ['PDF', '%PDF-1.7\n%âãÏÓ\n'],
    ['HTML', '\n<!DOCTYPE html>\n<html lang="de"><title>Anmelden</title>'],
    ['HTML', '<HTML><HEAD>'],
    ['JSON', '{\n "transactions": []}'],
    ['CSV', '"Auftragskonto";"Buchungstag";"Betrag"\n"DE89";"10.03.26";"1,00"\n'],
    ['CSV', Buffer.from('\ufeffDate\tAmount\tText\n', 'utf16le')],
    ['.xls', Buffer.from('d0cf11e0a1b11ae1', 'hex')],
    ['gzip', gzipSync('<Document/>')],
    ['7-Zip', Buffer.from('377abcaf271c', 'hex')],
    ['PGP', '-----BEGIN PGP MESSAGE-----\n\n'],
    ['PGP', Buffer.from('85010c03a1b2c3d4e5f60718', 'hex')],
    ['p7m', Buffer.from('3082021006092a864886f70d010702a0820201', 'hex')],
    ['p7m', '-----BEGIN PKCS7-----\nMIIC'],
    ['p7m', 'MIME-Version: 1.0\nContent-Type: application/x-pkcs7-mime; smime-type=signed-data\n'],
    ['age', 'age-encryption.org/v1\n-> X25519 '],
    ['Standard 18', 'VOL1123456                               123456'],
    ['DTAUS', '0128ALK10020030'],
    ['OFX', 'OFXHEADER:100\nDATA:OFXSGML\n'],
    ['OFX', '<?xml version="1.0"?>\n<?OFX OFXHEADER="200"?>\n<OFX>'],
  ])('%s', async (name, file) => {
    const message = await problemOf(file)
    expect(message).toContain(name)
    expect(message).toMatch(/^The file is .*\. The rail reads pain\.002, camt\.052, camt\.053 and camt\.054$/)
  })

  test('also by a rail that reads CSV', async () => {
    expect(await problemOf(statement('S1'), readers.arucs)).toBe(
      'The file is XML, but the settings of the rail say that returns come as CSV. The rail reads ARUCS as CSV',
    )
    expect(await problemOf('%PDF-1.7', readers.arucs)).toContain('a PDF')
    // Its own files are not mistaken for another kind.
    expect(await partsOf('ref,amount,code\n', { read: readers.arucs })).toHaveLength(1)
  })

  test.each([
    ['nothing', '', 'The file is empty'],
    ['text', 'hello', 'The XML is broken'],
  ])('%s keeps the reader’s words', async (_, file, message) => {
    expect(await problemOf(file)).toContain(message)
  })
})

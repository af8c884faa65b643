import writeExcelFile, { type SheetData } from 'write-excel-file/node'
import { type Column, columns } from '../src/members/fields.ts'

// In characters, for typical values. Other columns are as wide as a name.
const widths: Partial<Record<Column, number>> = { email: 32, phone: 20, account_holder: 28, iban: 30 }

/**
 * The template as an Excel workbook: a frozen header row, and columns formatted as text, so that Excel keeps leading zeros
 * and dates as typed.
 */
export async function memberTemplate(): Promise<Buffer> {
  const header = columns.map(value => ({ value, fontWeight: 'bold' as const, format: '@' }))
  // The library formats cells, not columns. This row supplies the style that is then set on each column.
  const first = columns.map(() => ({ value: '', type: String, format: '@' }))
  const sheet = { sheet: 'Members', stickyRowsCount: 1, columns: columns.map(name => ({ width: widths[name] ?? 18 })) }
  const rows: SheetData = [header, first]
  const workbook = await writeExcelFile(rows, sheet, { features: [textColumns] }).toBuffer()
  return withoutTimestamps(workbook)
}

const textColumns = {
  files: {
    transform: {
      'xl/worksheets/sheet{id}.xml': {
        transform(xml: string) {
          const style = /<c r="A2" s="(\d+)"\/>/.exec(xml)?.[1]
          if (style === undefined)
            throw new Error('Cannot find the empty cell A2; write-excel-file has changed its output')
          return xml.replaceAll('<col ', `<col style="${style}" `)
        },
      },
    },
  },
}

// Makes the output reproducible. A zip stores each file's modification time twice: in the local header and in the central
// directory. Source: APPNOTE.TXT of the .ZIP file format, sections 4.3.7, 4.3.12 and 4.3.16.
function withoutTimestamps(zip: Buffer): Buffer {
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  let at = zip.readUInt32LE(end + 16)
  while (at < end) {
    zip.writeUInt32LE(firstOfJanuary1980, at + 12)
    zip.writeUInt32LE(firstOfJanuary1980, zip.readUInt32LE(at + 42) + 10)
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return zip
}

// MS-DOS format: two bytes of time, two of date.
const firstOfJanuary1980 = 0x00210000

import writeExcelFile, { type SheetData } from 'write-excel-file/node'
import { type Column, columns } from '../src/members/fields.ts'

// In characters, for what is usual in each; the others get the width of a name.
const widths: Partial<Record<Column, number>> = { email: 32, phone: 20, account_holder: 28, iban: 30 }

/**
 * The template as an Excel workbook: a header that stays in sight, and below it columns that are text as a whole, so that
 * leading zeros and days stay as they are typed.
 */
export async function memberTemplate(): Promise<Buffer> {
  const header = columns.map(value => ({ value, fontWeight: 'bold' as const, format: '@' }))
  // The library formats cells, not columns: this row shows the style to give to each.
  const first = columns.map(() => ({ value: '', type: String, format: '@' }))
  const sheet = { sheet: 'Members', stickyRowsCount: 1, columns: columns.map(name => ({ width: widths[name] ?? 18 })) }
  const rows: SheetData = [header, first]
  const workbook = await writeExcelFile(rows, sheet, { features: [columnsOfText] }).toBuffer()
  return withoutTime(workbook)
}

const columnsOfText = {
  files: {
    transform: {
      'xl/worksheets/sheet{id}.xml': {
        transform(xml: string) {
          const style = /<c r="A2" s="(\d+)"\/>/.exec(xml)?.[1]
          if (style === undefined) throw new Error('The library writes an empty cell in another way than it did')
          return xml.replaceAll('<col ', `<col style="${style}" `)
        },
      },
    },
  },
}

// The same bytes every time: a zip holds when each of its files was written, beside each and in the directory at its end.
// Source: APPNOTE.TXT of the .ZIP file format, sections 4.3.7, 4.3.12 and 4.3.16.
function withoutTime(zip: Buffer): Buffer {
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  let at = zip.readUInt32LE(end + 16)
  while (at < end) {
    zip.writeUInt32LE(firstOfJanuary1980, at + 12)
    zip.writeUInt32LE(firstOfJanuary1980, zip.readUInt32LE(at + 42) + 10)
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return zip
}

// Two bytes of time and two of a day.
const firstOfJanuary1980 = 0x00210000

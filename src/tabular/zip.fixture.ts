import { crc32, deflateRawSync } from 'node:zlib'

/** A part of an archive, with false metadata for tests. */
export type Part = {
  name: string
  content: string | Buffer
  isStored?: boolean
  flags?: number
  method?: number
  /** The size in the archive’s metadata, if false. */
  bytesSaid?: number
  crcSaid?: number
  /** The offset in the directory. */
  offsetSaid?: number
}

export function zipOf(parts: Part[]): Buffer {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const { name, content, isStored = false, flags = 0, method, bytesSaid, crcSaid, offsetSaid } of parts) {
    const bytes = Buffer.from(content as string)
    const stored = isStored ? bytes : deflateRawSync(bytes)
    const fixed = Buffer.alloc(26)
    fixed.writeUInt16LE(20, 0)
    fixed.writeUInt16LE(flags, 2)
    fixed.writeUInt16LE(method ?? (isStored ? 0 : 8), 4)
    fixed.writeUInt32LE(crcSaid ?? crc32(bytes), 10)
    fixed.writeUInt32LE(stored.length, 14)
    fixed.writeUInt32LE(bytesSaid ?? bytes.length, 18)
    fixed.writeUInt16LE(Buffer.byteLength(name), 22)
    locals.push(Buffer.from('PK\x03\x04'), fixed, Buffer.from(name), stored)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offsetSaid ?? offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00'), fixed, place, Buffer.from(name))
    offset += 30 + Buffer.byteLength(name) + stored.length
  }
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(parts.length, 8)
  end.writeUInt16LE(parts.length, 10)
  end.writeUInt32LE(Buffer.concat(directory).length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, ...directory, end])
}

const kinds = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'

/** The parts of a workbook whose first sheet contains these rows; each part can be replaced or omitted. */
export function workbook(
  rows: string,
  {
    strings = '',
    styles = '',
    properties = '',
    sheets = '<sheet name="List" sheetId="1" r:id="rId1"/>',
    more = [],
  }: { strings?: string; styles?: string; properties?: string; sheets?: string; more?: Part[] } = {},
): Part[] {
  const parts: Part[] = [
    { name: '[Content_Types].xml', content: '<Types/>' },
    {
      name: 'xl/workbook.xml',
      content: `<?xml version="1.0"?><workbook ${main} xmlns:r="r">${properties}<sheets>${sheets}</sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: `<Relationships><Relationship Id="rId1" Type="${kinds}/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="${kinds}/worksheet" Target="/xl/worksheets/sheet2.xml"/><Relationship Id="rId3" Type="${kinds}/sharedStrings" Target="sharedStrings.xml"/><Relationship Id="rId4" Type="${kinds}/styles" Target="styles.xml"/></Relationships>`,
    },
    { name: 'xl/worksheets/sheet1.xml', content: `<worksheet ${main}><sheetData>${rows}</sheetData></worksheet>` },
    { name: 'xl/sharedStrings.xml', content: `<sst ${main}>${strings}</sst>` },
    { name: 'xl/styles.xml', content: `<styleSheet ${main}>${styles}</styleSheet>` },
  ]
  const replaced = parts.filter(({ name }) => !more.some(part => part.name === name))
  return [...replaced, ...more]
}

/** A row of cells with inline strings. */
export function textRow(row: number, texts: string[]): string {
  const cells = texts.map((text, index) => {
    const letter = String.fromCharCode(65 + index)
    return `<c r="${letter}${row}" t="inlineStr"><is><t xml:space="preserve">${text}</t></is></c>`
  })
  return `<row r="${row}">${cells.join('')}</row>`
}

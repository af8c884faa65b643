import { read } from 'node:fs'
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import { tooLarge } from './sheet.ts'

/**
 * The zip that a workbook is, looked at before anything in it is unpacked. It is unpacked part by part, and each only as
 * far as its limit: what the archive says about itself is held against what comes out.
 */
export class Archive {
  private readonly zip: ZipFile
  private readonly entries: Map<string, Entry>

  private constructor(zip: ZipFile, entries: Map<string, Entry>) {
    this.zip = zip
    this.entries = entries
  }

  /**
   * @param fd stays open: the library would close it only if it were asked to
   * @throws FileFault for what is no zip, and for a zip that no spreadsheet writes
   */
  static async open(fd: number): Promise<Archive> {
    await refuseOtherFormats(fd)
    const zip = await wellFormed(yauzl.fromFdPromise(fd, { strictFileNames: true, autoClose: false }))
    if (zip.entryCount > limits.archivePartsMax) throw hostile('holds too many parts')
    const entries = new Map<string, Entry>()
    await wellFormed(
      (async () => {
        for await (const entry of zip.eachEntry()) add(entry, entries)
      })(),
    )
    refuseOverlaps([...entries.values()])
    return new Archive(zip, entries)
  }

  has(name: string): boolean {
    return this.entries.has(name.toLowerCase())
  }

  /**
   * Unpacks one part.
   * @param bytesMax what it may hold unpacked
   * @throws FileFault when there is no such part, when it is larger than that or than it says, or damaged
   */
  async read(name: string, { bytesMax }: { bytesMax: number }): Promise<Buffer> {
    const entry = this.entries.get(name.toLowerCase())
    if (entry === undefined) throw new FileFault(1, 'The file is not a whole Excel workbook (.xlsx); save it again')
    if (entry.uncompressedSize > bytesMax) throw tooLarge()
    const unpacked = await wellFormed(this.unpack(entry))
    if (crc32(unpacked) !== entry.crc32) throw damaged()
    return unpacked
  }

  private async unpack(entry: Entry): Promise<Buffer> {
    const unpacked = Buffer.allocUnsafe(entry.uncompressedSize)
    let bytes = 0
    // It fails by itself when more or less comes out than the entry says.
    for await (const chunk of await this.zip.openReadStreamPromise(entry))
      bytes += (chunk as Buffer).copy(unpacked, bytes)
    return unpacked
  }
}

/** The same parts in a zip that is not compressed: nothing is in it but what was looked at. */
export function packed(parts: Map<string, Buffer>): Readable {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const [name, bytes] of parts) {
    const fixed = Buffer.alloc(26)
    fixed.writeUInt16LE(20, 0)
    fixed.writeUInt32LE(crc32(bytes), 10)
    fixed.writeUInt32LE(bytes.length, 14)
    fixed.writeUInt32LE(bytes.length, 18)
    fixed.writeUInt16LE(name.length, 22)
    locals.push(Buffer.from('PK\x03\x04'), fixed, Buffer.from(name), bytes)
    const place = Buffer.alloc(14)
    place.writeUInt32LE(offset, 10)
    directory.push(Buffer.from('PK\x01\x02\x14\x00'), fixed, place, Buffer.from(name))
    offset += 30 + name.length + bytes.length
  }
  const directoryBytes = directory.reduce((sum, { length }) => sum + length, 0)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(parts.size, 8)
  end.writeUInt16LE(parts.size, 10)
  end.writeUInt32LE(directoryBytes, 12)
  end.writeUInt32LE(offset, 16)
  return Readable.from([...locals, ...directory, end], { objectMode: false })
}

async function refuseOtherFormats(fd: number): Promise<void> {
  const start = Buffer.alloc(8)
  await promisify(read)(fd, start, 0, start.length, 0)
  if (start.toString('latin1', 0, 4) === 'PK\x03\x04') return
  if (start.toString('hex') === 'd0cf11e0a1b11ae1') {
    const message = 'The workbook is protected by a password, or an old one (.xls); save it as .xlsx without a password'
    throw new FileFault(1, message)
  }
  throw new FileFault(1, 'The file is not an Excel workbook (.xlsx); a list in CSV is sent as text/csv')
}

/** @throws FileFault */
function add(entry: Entry, entries: Map<string, Entry>): void {
  const name = entry.fileName.toLowerCase()
  if (entry.isEncrypted()) throw new FileFault(1, 'The workbook is protected by a password; save it without one')
  if (!entry.canDecodeFileData()) throw hostile('is compressed in a way that no spreadsheet uses')
  if (/(^|\/)vbaproject\.bin$|^xl\/macrosheets\//.test(name)) {
    throw new FileFault(1, 'The workbook has macros; save it as "Excel Workbook (.xlsx)", which has none')
  }
  if (/\.(zip|xlsx|xlsm|xlsb|xls|docx|pptx|jar|7z|rar|gz)$/.test(name)) throw hostile('holds another archive')
  const { compressedSize, uncompressedSize } = entry
  if (uncompressedSize > limits.ratioFreeBytes && uncompressedSize > compressedSize * limits.ratioMax) {
    throw hostile('is packed more tightly than any list')
  }
  if (entries.has(name)) throw hostile('holds the same part twice')
  entries.set(name, entry)
}

/** @throws FileFault when two parts share bytes: a small archive could hold an endless workbook */
function refuseOverlaps(entries: Entry[]): void {
  const inOrder = entries.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader)
  let end = 0
  for (const { relativeOffsetOfLocalHeader, compressedSize, fileNameLength } of inOrder) {
    if (relativeOffsetOfLocalHeader < end) throw hostile('holds parts that overlap')
    end = relativeOffsetOfLocalHeader + localHeaderBytesMin + fileNameLength + compressedSize
  }
}

const localHeaderBytesMin = 30

/** Whatever the library says about an archive, to the person who made it is one thing: it is broken. */
async function wellFormed<T>(work: Promise<T>): Promise<T> {
  return await work.catch(error => {
    throw error instanceof FileFault ? error : damaged()
  })
}

function damaged(): FileFault {
  return new FileFault(1, 'The workbook is damaged; open it in a spreadsheet and save it again')
}

function hostile(what: string): FileFault {
  return new FileFault(1, `The workbook ${what}; open it in a spreadsheet and save it again, or save it as "CSV UTF-8"`)
}

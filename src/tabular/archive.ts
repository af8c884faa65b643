import { read } from 'node:fs'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'

/**
 * The zip archive of a workbook, checked before anything is unpacked. Parts are unpacked one by one up to their limit, and their
 * size and checksum are compared with the archive's directory.
 */
export class Archive {
  private readonly zip: ZipFile
  private readonly entries: Map<string, Entry>

  private constructor(zip: ZipFile, entries: Map<string, Entry>) {
    this.zip = zip
    this.entries = entries
  }

  /**
   * @param fd stays open, since `autoClose` is off
   * @throws FileFault if the file is not a zip, or is a zip that no spreadsheet writes
   */
  static async open(fd: number): Promise<Archive> {
    await refuseOtherFormats(fd)
    const zip = await wellFormed(yauzl.fromFdPromise(fd, { strictFileNames: true, autoClose: false }))
    if (zip.entryCount > limits.archivePartsMax) throw hostile('contains too many parts')
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
   * Unpacks one part as a stream.
   * @param bytesMax limit for the unpacked size
   * @throws FileFault if the part is missing, damaged, or larger than the limit or its declared size
   */
  async *stream(name: string, { bytesMax }: { bytesMax: number }): AsyncGenerator<Buffer> {
    const entry = this.entries.get(name.toLowerCase())
    if (entry === undefined) throw new FileFault(1, 'The file is not a complete Excel workbook (.xlsx); save it again')
    if (entry.uncompressedSize > bytesMax) throw tooLarge()
    let checksum = 0
    // The library throws if the unpacked size differs from the entry's.
    const unpacked = (await wellFormed(this.zip.openReadStreamPromise(entry))) as AsyncIterable<Buffer>
    const chunks = unpacked[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { value, done } = await wellFormed(chunks.next())
        if (done) break
        checksum = crc32(value, checksum)
        yield value
      }
    } finally {
      await chunks.return?.()
    }
    if (checksum !== entry.crc32) throw damaged()
  }
}

async function refuseOtherFormats(fd: number): Promise<void> {
  const start = Buffer.alloc(8)
  await promisify(read)(fd, start, 0, start.length, 0)
  if (start.toString('latin1', 0, 4) === 'PK\x03\x04') return
  if (start.toString('hex') === 'd0cf11e0a1b11ae1') {
    const message =
      'The workbook is protected by a password or in the old format (.xls); save it as .xlsx without a password'
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
  if (/\.(zip|xlsx|xlsm|xlsb|xls|docx|pptx|jar|7z|rar|gz)$/.test(name)) throw hostile('contains another archive')
  const { compressedSize, uncompressedSize } = entry
  if (uncompressedSize > limits.ratioFreeBytes && uncompressedSize > compressedSize * limits.ratioMax) {
    throw hostile('is compressed more than any real list')
  }
  if (entries.has(name)) throw hostile('contains the same part twice')
  entries.set(name, entry)
}

/** @throws FileFault if two parts share bytes, since a small archive could then hold an endless workbook */
function refuseOverlaps(entries: Entry[]): void {
  const inOrder = entries.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader)
  let end = 0
  for (const { relativeOffsetOfLocalHeader, compressedSize, fileNameLength } of inOrder) {
    if (relativeOffsetOfLocalHeader < end) throw hostile('contains overlapping parts')
    end = relativeOffsetOfLocalHeader + localHeaderBytesMin + fileNameLength + compressedSize
  }
}

const localHeaderBytesMin = 30

/** Reports every error of the library as a damaged archive: to the author of the file they mean the same. */
async function wellFormed<T>(work: Promise<T>): Promise<T> {
  return await work.catch(error => {
    throw error instanceof FileFault ? error : damaged()
  })
}

function tooLarge(): FileFault {
  return new FileFault(1, 'The workbook is too large to be read; save it as "CSV UTF-8", which has no such limit')
}

function damaged(): FileFault {
  return new FileFault(1, 'The workbook is damaged; open it in a spreadsheet and save it again')
}

function hostile(what: string): FileFault {
  return new FileFault(1, `The workbook ${what}; open it in a spreadsheet and save it again, or save it as "CSV UTF-8"`)
}

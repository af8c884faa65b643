import { read } from 'node:fs'
import { promisify } from 'node:util'
import type { Entry } from 'yauzl'
import { Zip, type ZipFault } from '../kernel/zip.ts'
import { FileFault } from './fault.ts'
import { limits } from './limits.ts'

/** The zip archive of a workbook. */
export class Archive {
  private readonly zip: Zip
  private readonly parts: Map<string, Entry>

  private constructor(zip: Zip) {
    this.zip = zip
    this.parts = new Map(zip.parts.map(part => [part.fileName.toLowerCase(), part]))
  }

  /**
   * @param fd stays open
   * @throws FileFault if the file is not a zip, or is a zip that no spreadsheet writes
   */
  static async open(fd: number): Promise<Archive> {
    await refuseOtherFormats(fd)
    const { archivePartsMax: partsMax, ratioMax, ratioFreeBytes } = limits
    const zip = await Zip.open(fd, { limits: { partsMax, ratioMax, ratioFreeBytes }, refuse: refusal })
    if (zip.parts.some(({ fileName }) => /(^|\/)vbaproject\.bin$|^xl\/macrosheets\//i.test(fileName)))
      throw new FileFault(1, 'The workbook has macros; save it as "Excel Workbook (.xlsx)", which has none')
    return new Archive(zip)
  }

  has(name: string): boolean {
    return this.parts.has(name.toLowerCase())
  }

  /**
   * Unpacks one part as a stream.
   * @param bytesMax limit for the unpacked size
   * @throws FileFault if the part is missing, damaged, or larger than the limit or its declared size
   */
  stream(name: string, { bytesMax }: { bytesMax: number }): AsyncGenerator<Buffer> {
    const part = this.parts.get(name.toLowerCase())
    if (part === undefined) throw new FileFault(1, 'The file is not a complete Excel workbook (.xlsx); save it again')
    if (part.uncompressedSize > bytesMax) throw tooLarge()
    return this.zip.stream(part)
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

function tooLarge(): FileFault {
  return new FileFault(1, 'The workbook is too large to be read; save it as "CSV UTF-8", which has no such limit')
}

const hostile: Record<Exclude<ZipFault, 'damaged' | 'encrypted'>, string> = {
  'too many parts': 'contains too many parts',
  'an unknown compression': 'is compressed in a way that no spreadsheet uses',
  'another archive': 'contains another archive',
  'too high a compression': 'is compressed more than any real list',
  'a part twice': 'contains the same part twice',
  'overlapping parts': 'contains overlapping parts',
}

function refusal(fault: ZipFault): FileFault {
  if (fault === 'damaged')
    return new FileFault(1, 'The workbook is damaged; open it in a spreadsheet and save it again')
  if (fault === 'encrypted') return new FileFault(1, 'The workbook is protected by a password; save it without one')
  const advice = 'open it in a spreadsheet and save it again, or save it as "CSV UTF-8"'
  return new FileFault(1, `The workbook ${hostile[fault]}; ${advice}`)
}

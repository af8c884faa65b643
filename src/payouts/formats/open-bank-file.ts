import { Zip, type ZipFault } from '../../kernel/zip.ts'
import { BankFileProblem, type ReadBankFile, type ReadLimits } from './bank-files.ts'
import { isZip, otherKindOf, startBytes } from './file-kinds.ts'

const limits = {
  // Held in memory while it is unpacked. XML shrinks to a tenth at least.
  archiveBytesMax: 64 * 1024 * 1024,
  zip: {
    // A year of daily statements of three accounts.
    partsMax: 1_000,
    // Statements with many equal entries reach 100, zip bombs 1,000.
    ratioMax: 200,
    ratioFreeBytes: 1024 * 1024,
  },
}

/**
 * Reads a bank file, or all bank files of a ZIP archive as one: all of them, or nothing. A file that no bank file reader reads is refused
 * with the name of its kind, because a parser's error says little to an operator.
 * @param reads what the rail reads, for the refusal
 */
export function openingArchives(read: ReadBankFile, of: { reads: string; isCsvRead: boolean }): ReadBankFile {
  const readPlain: ReadBankFile = async function* (bytes, readLimits) {
    const { start, whole } = await peek(bytes)
    refuseOtherKind(start, of)
    yield* read(whole, readLimits)
  }
  return async function* (bytes, readLimits) {
    const { start, whole } = await peek(bytes)
    if (isZip(start)) yield* readArchive(whole, readLimits, readPlain)
    else yield* readPlain(whole, readLimits)
  }
}

function refuseOtherKind(start: Uint8Array, { reads, isCsvRead }: { reads: string; isCsvRead: boolean }): void {
  const kind = otherKindOf(start, { isCsvRead })
  if (kind !== undefined) throw new BankFileProblem(`The file is ${kind}. The rail reads ${reads}`)
}

/** Reads the beginning of a stream; the returned stream repeats it. */
async function peek(
  bytes: AsyncIterable<Uint8Array>,
): Promise<{ start: Uint8Array; whole: AsyncIterable<Uint8Array> }> {
  const chunks = bytes[Symbol.asyncIterator]()
  let start: Uint8Array = new Uint8Array()
  while (start.length < startBytes) {
    const { value, done } = await chunks.next()
    if (done) break
    start = start.length === 0 ? value : Buffer.concat([start, value])
  }
  async function* whole() {
    try {
      yield start
      yield* { [Symbol.asyncIterator]: () => chunks }
    } finally {
      await chunks.return?.()
    }
  }
  return { start: start.subarray(0, startBytes), whole: start.length === 0 ? noBytes() : whole() }
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

async function* readArchive(
  bytes: AsyncIterable<Uint8Array>,
  { bytesMax, recordsMax }: ReadLimits,
  read: ReadBankFile,
): ReturnType<ReadBankFile> {
  const zip = await Zip.open(await collected(bytes), { limits: limits.zip, refuse: refusal })
  refuseDocument(zip.parts.map(({ fileName }) => fileName))
  const parts = zip.parts.filter(({ fileName }) => !isBesides(fileName))
  if (parts.length === 0) throw new BankFileProblem('The archive holds no file that a rail reads')
  const unpacked = parts.reduce((sum, { uncompressedSize }) => sum + uncompressedSize, 0)
  if (unpacked > bytesMax) throw new BankFileProblem(`The files of the archive are larger than ${bytesMax} bytes`)
  let records = 0
  for (const part of parts) {
    const name = part.fileName.slice(0, nameCharsMax)
    try {
      for await (const each of read(zip.stream(part), { bytesMax, recordsMax: recordsMax - records })) {
        if (each.type !== 'head') records += 1
        // Without the name, a message that is in two files would count as one message that says everything twice.
        yield each.type === 'head' ? { ...each, head: { ...each.head, file: name } } : each
      }
    } catch (error) {
      throw error instanceof BankFileProblem ? new BankFileProblem(`${name} in the archive: ${error.message}`) : error
    }
  }
}

const nameCharsMax = 100

async function collected(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    if (size > limits.archiveBytesMax)
      throw new BankFileProblem(`The archive is larger than ${limits.archiveBytesMax} bytes; unpack it first`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Folders, files that operating systems add, and the PDF that some banks put beside a statement. */
function isBesides(name: string): boolean {
  return /\/$|(^|\/)(__MACOSX\/|\.DS_Store$|Thumbs\.db$)|\.pdf$/i.test(name)
}

/** Office documents are also archives. */
function refuseDocument(names: string[]): void {
  const is = names.some(name => name.startsWith('xl/')) ? 'an Excel workbook (.xlsx)' : 'an Office document'
  if (names.includes('[Content_Types].xml') || names.includes('META-INF/manifest.xml'))
    throw new BankFileProblem(`The file is ${is}; ask the bank for the machine-readable file`)
}

const faults: Record<ZipFault, string> = {
  damaged: 'The archive is damaged or cut off; fetch it again',
  encrypted: 'The archive is protected by a password; unpack it first',
  'too many parts': `The archive holds more than ${limits.zip.partsMax} files; import them in several archives`,
  'an unknown compression': 'The archive is compressed in an unusual way; unpack it first',
  'another archive': 'The archive holds another archive; unpack it first',
  'too high a compression': 'The archive is compressed more than any real bank file; unpack it first, and look into it',
  'a part twice': 'The archive holds two files of one name',
  'overlapping parts': 'The files in the archive overlap, which no real archive does',
}

function refusal(fault: ZipFault): BankFileProblem {
  return new BankFileProblem(faults[fault])
}

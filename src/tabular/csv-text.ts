import { isUtf8 } from 'node:buffer'
import { read } from 'node:fs'
import { promisify } from 'node:util'
import { FileFault } from './fault.ts'

// A few hundred rows at a time.
const chunkBytes = 64 * 1024

/**
 * Reads a text file in UTF-8, without its byte order mark, in chunks that end between two characters.
 * @returns the text up to the first invalid byte, and in `wrong` the fault of that byte
 * @throws FileFault for a file of another format
 */
export async function* readText(fd: number): AsyncGenerator<{ text: string; wrong?: string }> {
  let rest: Buffer = Buffer.alloc(0)
  let isFirst = true
  for await (const chunk of chunksOf(fd)) {
    const bytes: Buffer = Buffer.concat([rest, chunk])
    if (isFirst) refuseOtherFormats(bytes)
    const from = isFirst && bytes.indexOf(byteOrderMark) === 0 ? byteOrderMark.length : 0
    isFirst = false
    const text = bytes.subarray(from, wholeCharactersOf(bytes))
    const readable = readableBytesOf(text)
    if (readable < text.length) {
      yield { text: text.toString('utf8', 0, readable), wrong: text[readable] === 0 ? containsNul : notUtf8 }
      return
    }
    yield { text: text.toString('utf8') }
    rest = bytes.subarray(from + text.length)
  }
  if (rest.length > 0) yield { text: '', wrong: notUtf8 }
}

const byteOrderMark = Buffer.from('\ufeff')

// Not a stream: a destroyed stream closes its file, even with `autoClose: false`.
async function* chunksOf(fd: number): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const chunk = Buffer.allocUnsafe(chunkBytes)
    const { bytesRead } = await promisify(read)(fd, chunk, 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield chunk.subarray(0, bytesRead)
  }
}

const notUtf8 = 'The row is not valid UTF-8; save the file as "CSV UTF-8"'
const containsNul = 'The row contains a NUL character; save the file as "CSV UTF-8" again'

/** @throws FileFault for a file that begins like another format */
function refuseOtherFormats(bytes: Buffer): void {
  const format = otherFormats.find(({ starts }) => starts.some(start => bytes.indexOf(start) === 0))
  if (format !== undefined) throw new FileFault(1, format.message)
  // NUL near the start: UTF-16 or UTF-32 without a byte order mark.
  if (bytes.subarray(0, 4).includes(0)) throw new FileFault(1, savedAsUtf16)
  if (/^\s*</.test(bytes.toString('latin1', 0, 1_000).replace('\xef\xbb\xbf', ''))) {
    throw new FileFault(
      1,
      'The file is a web page or XML, not CSV; open it in a spreadsheet and save it as "CSV UTF-8"',
    )
  }
}

const savedAsUtf16 = 'The file is saved as UTF-16 ("Unicode text"); save it as "CSV UTF-8"'
const otherFormats = [
  {
    starts: [
      [0xff, 0xfe],
      [0xfe, 0xff],
    ].map(bytes => Buffer.from(bytes)),
    message: savedAsUtf16,
  },
  {
    starts: [Buffer.from('PK\x03\x04'), Buffer.from('PK\x05\x06')],
    message: 'The file is an Excel workbook or a zip, not CSV; send a workbook as .xlsx, or save it as "CSV UTF-8"',
  },
  {
    starts: [Buffer.from('d0cf11e0a1b11ae1', 'hex')],
    message: 'The file is an old Excel workbook (.xls), not CSV; save it as "CSV UTF-8" or as .xlsx',
  },
  { starts: [Buffer.from('%PDF')], message: 'The file is a PDF, not CSV; save the list as "CSV UTF-8" or as .xlsx' },
  { starts: [Buffer.from([0x1f, 0x8b])], message: 'The file is compressed (gzip); unpack it first' },
]

/** @returns the number of bytes before a character that continues in the next chunk */
function wholeCharactersOf(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    const isLead = byte >= 0xc0
    if (isLead) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** @returns the number of bytes before the first invalid UTF-8 or NUL byte */
function readableBytesOf(text: Buffer): number {
  const nul = text.indexOf(0)
  const withoutNul = nul === -1 ? text : text.subarray(0, nul)
  if (isUtf8(withoutNul)) return withoutNul.length
  let good = 0
  let bad = withoutNul.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    const beginning = withoutNul.subarray(0, middle)
    if (isUtf8(beginning.subarray(0, wholeCharactersOf(beginning)))) good = middle
    else bad = middle
  }
  return good
}

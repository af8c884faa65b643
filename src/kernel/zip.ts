import { crc32 } from 'node:zlib'
import yauzl, { type Entry, type ZipFile } from 'yauzl'

/** What is wrong with an archive. */
export type ZipFault =
  | 'damaged'
  | 'encrypted'
  | 'too many parts'
  | 'an unknown compression'
  | 'another archive'
  | 'too high a compression'
  | 'a part twice'
  | 'overlapping parts'

export type ZipLimits = {
  partsMax: number
  /** Unpacked bytes of a part per packed byte. */
  ratioMax: number
  /** Unpacked bytes below which the ratio of a part is not checked. */
  ratioFreeBytes: number
}

/**
 * A zip archive, checked before anything is unpacked. Parts are unpacked one by one, and their size and checksum are compared
 * with the archive's directory.
 */
export class Zip {
  readonly parts: readonly Entry[]
  private readonly zip: ZipFile
  private readonly refuse: (fault: ZipFault) => Error

  private constructor(zip: ZipFile, parts: Entry[], refuse: (fault: ZipFault) => Error) {
    this.zip = zip
    this.parts = parts
    this.refuse = refuse
  }

  /**
   * @param source a file descriptor, which stays open, or the bytes of the archive
   * @param refuse creates the error for a fault
   */
  static async open(
    source: number | Buffer,
    { limits, refuse }: { limits: ZipLimits; refuse: (fault: ZipFault) => Error },
  ): Promise<Zip> {
    const damaged = () => refuse('damaged')
    const options = { strictFileNames: true, autoClose: false }
    const zip = await orElse(
      damaged,
      typeof source === 'number' ? yauzl.fromFdPromise(source, options) : yauzl.fromBufferPromise(source, options),
    )
    if (zip.entryCount > limits.partsMax) throw refuse('too many parts')
    const parts: Entry[] = []
    const reading = async () => {
      for await (const part of zip.eachEntry()) parts.push(part)
    }
    await orElse(damaged, reading())
    const fault = parts.map(part => faultOf(part, limits)).find(found => found !== undefined) ?? faultOfAll(parts)
    if (fault !== undefined) throw refuse(fault)
    return new Zip(zip, parts, refuse)
  }

  /** Unpacks one part as a stream. Throws if it is damaged, or its size is not the declared one. */
  async *stream(part: Entry): AsyncGenerator<Buffer> {
    const damaged = () => this.refuse('damaged')
    let checksum = 0
    // The library throws if the unpacked size differs from the entry's.
    const unpacked = (await orElse(damaged, this.zip.openReadStreamPromise(part))) as AsyncIterable<Buffer>
    const chunks = unpacked[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { value, done } = await orElse(damaged, chunks.next())
        if (done) break
        checksum = crc32(value, checksum)
        yield value
      }
    } finally {
      await chunks.return?.()
    }
    if (checksum !== part.crc32) throw damaged()
  }
}

function faultOf(part: Entry, { ratioMax, ratioFreeBytes }: ZipLimits): ZipFault | undefined {
  if (part.isEncrypted()) return 'encrypted'
  if (!part.canDecodeFileData()) return 'an unknown compression'
  if (/\.(zip|xlsx|xlsm|xlsb|xls|docx|pptx|jar|7z|rar|gz)$/i.test(part.fileName)) return 'another archive'
  const { compressedSize, uncompressedSize } = part
  if (uncompressedSize > ratioFreeBytes && uncompressedSize > compressedSize * ratioMax) return 'too high a compression'
  return undefined
}

/** Parts that share bytes would let a small archive unpack to unlimited data. */
function faultOfAll(parts: Entry[]): ZipFault | undefined {
  if (new Set(parts.map(({ fileName }) => fileName.toLowerCase())).size < parts.length) return 'a part twice'
  const inOrder = parts.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader)
  let end = 0
  for (const { relativeOffsetOfLocalHeader, compressedSize, fileNameLength } of inOrder) {
    if (relativeOffsetOfLocalHeader < end) return 'overlapping parts'
    end = relativeOffsetOfLocalHeader + localHeaderBytesMin + fileNameLength + compressedSize
  }
  return undefined
}

const localHeaderBytesMin = 30

/** Replaces every error of the library with ours: all mean that the archive is damaged. */
async function orElse<T>(error: () => Error, work: Promise<T>): Promise<T> {
  return await work.catch(() => {
    throw error()
  })
}

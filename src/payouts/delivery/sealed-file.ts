import { randomBytes } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import type { Day } from '../../kernel/time.ts'
import { DataKey } from '../../sealing/data-key.ts'

// A sealed file is a line of JSON that says which key opens it, and then chunks: each its length in four bytes, and the sealed bytes. A
// chunk is sealed with its place and, if it is the last, with that, so that a file that was cut or put together from others is refused.

const format = 'midmonth sealed file 1'

/** Which key seals a file. */
export type ArchiveDay = { rail: string; day: Day }

type Head = ArchiveDay & { format: typeof format; id: string }

/** Seals the bytes of a file of the bank for the archive. */
export type SealFile = (bytes: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

const limits = {
  headBytesMax: 1_000,
  // Files are read in chunks of 64 KiB.
  chunkBytesMax: 16 * 1024 * 1024,
}

/** @param key 32 bytes */
export async function* sealedFile(
  bytes: AsyncIterable<Uint8Array>,
  { key, ...of }: ArchiveDay & { key: Buffer },
): AsyncGenerator<Uint8Array> {
  const head: Head = { format, ...of, id: randomBytes(16).toString('hex') }
  yield Buffer.from(`${JSON.stringify(head)}\n`)
  const chunks = new Chunks(key, head)
  let waiting: Uint8Array = Buffer.alloc(0)
  for await (const chunk of bytes) {
    if (waiting.length > 0) yield chunks.seal(waiting, { isLast: false })
    waiting = chunk
  }
  yield chunks.seal(waiting, { isLast: true })
}

/**
 * Opens a sealed file.
 * @param findKey finds the key of a day; undefined once it was destroyed
 * @throws Error with a sentence for the operator, perhaps after the first chunks
 */
export async function* openSealedFile(
  file: string,
  findKey: (of: ArchiveDay) => Promise<Buffer | undefined>,
): AsyncGenerator<Buffer> {
  const handle = await open(file)
  try {
    const head = await readHead(handle)
    if (head === undefined) throw new Error(`${file} is not a file that Midmonth has sealed`)
    const { rail, day } = head.value
    const key = await findKey({ rail, day })
    if (key === undefined)
      throw new Error(
        `${file} cannot be opened: the database has no key of ${rail} for ${day}; keys are destroyed when bank files are no longer kept, and a restored database lacks those made after its backup`,
      )
    const chunks = new Chunks(key, head.value)
    const { size } = await handle.stat()
    for (let at = head.bytes; ; ) {
      const prefix = await read(handle, { at, bytes: 4 })
      if (prefix.length < 4) throw new Error(`${file} was cut off`)
      const length = prefix.readUInt32BE()
      if (length > limits.chunkBytesMax) throw new Error(`${file} was changed`)
      const end = at + 4 + length
      if (end > size) throw new Error(`${file} was cut off`)
      yield chunks.open(await read(handle, { at: at + 4, bytes: length }), { isLast: end === size })
      if (end === size) return
      at = end
    }
  } finally {
    await handle.close()
  }
}

class Chunks {
  readonly #key: DataKey<`chunk ${string}`>
  readonly #id: string
  #place = 0

  constructor(key: Buffer, { rail, day, id }: Head) {
    this.#key = new DataKey(key, `${rail} ${day}`)
    this.#id = id
  }

  seal(chunk: Uint8Array, { isLast }: { isLast: boolean }): Buffer {
    const sealed = this.#key.seal(Buffer.from(chunk), this.#nextKind(isLast))
    const length = Buffer.alloc(4)
    length.writeUInt32BE(sealed.length)
    return Buffer.concat([length, sealed])
  }

  open(sealed: Buffer, { isLast }: { isLast: boolean }): Buffer {
    return this.#key.openBytes(sealed, this.#nextKind(isLast))
  }

  #nextKind(isLast: boolean): `chunk ${string}` {
    this.#place += 1
    return `chunk ${this.#id} ${this.#place}${isLast ? ' last' : ''}`
  }
}

async function readHead(handle: FileHandle): Promise<{ value: Head; bytes: number } | undefined> {
  const start = await read(handle, { at: 0, bytes: limits.headBytesMax })
  const end = start.indexOf('\n')
  try {
    const value: Head = JSON.parse(start.subarray(0, end).toString())
    return value.format === format ? { value, bytes: end + 1 } : undefined
  } catch {
    return undefined
  }
}

/** Reads at most so many bytes. */
async function read(handle: FileHandle, { at, bytes }: { at: number; bytes: number }): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, at)
  return buffer.subarray(0, bytesRead)
}

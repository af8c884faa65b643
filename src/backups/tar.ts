import { type FileHandle, mkdir, open } from 'node:fs/promises'
import path from 'node:path'

// A tar file of the format ustar, which holds the names and sizes of PostgreSQL's files: at most 100 bytes and 1 GB.

const block = 512

/** An entry: a folder, a file of the disk, or a file with a text. */
export type Entry = { name: string } & (
  | { isFolder: true }
  | { file: FileHandle; bytes: number }
  | { text: string | Buffer }
)

/** Writes entries. A file that shrinks meanwhile is filled with zeros, and of one that grows only `bytes` are read. */
export async function* tar(entries: AsyncIterable<Entry>): AsyncGenerator<Uint8Array> {
  for await (const entry of entries) {
    if ('isFolder' in entry) {
      yield headerOf(`${entry.name}/`, { type: '5', bytes: 0, mode: 0o700 })
      continue
    }
    const text = 'text' in entry ? Buffer.from(entry.text) : undefined
    const bytes = 'bytes' in entry ? entry.bytes : (text?.length ?? 0)
    yield headerOf(entry.name, { type: '0', bytes, mode: 0o600 })
    if (text !== undefined) yield text
    else if ('file' in entry) yield* contentOf(entry.file, bytes)
    if (bytes % block > 0) yield Buffer.alloc(block - (bytes % block))
  }
  yield Buffer.alloc(2 * block)
}

async function* contentOf(file: FileHandle, bytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes; ) {
    const chunk = Buffer.alloc(Math.min(1024 * 1024, bytes - at))
    const { bytesRead } = await file.read(chunk, 0, chunk.length, at)
    yield bytesRead > 0 ? chunk.subarray(0, bytesRead) : chunk
    at += bytesRead > 0 ? bytesRead : chunk.length
  }
}

/** @param mtimeSeconds since 1970 */
export function headerOf(
  name: string,
  { type, bytes, mode, mtimeSeconds = 0 }: { type: '0' | '5'; bytes: number; mode: number; mtimeSeconds?: number },
): Buffer {
  const header = Buffer.alloc(block)
  if (Buffer.byteLength(name) > 100) throw new Error(`The name ${name} is too long for a tar file`)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at)
  header.write(name, 0)
  octal(mode, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(bytes, 124, 12)
  octal(mtimeSeconds, 136, 12)
  header.write(type, 156)
  header.write('ustar\x0000', 257)
  // The checksum counts its own field as blanks.
  header.fill(' ', 148, 156)
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  )
  return header
}

/**
 * Reads entries into a folder, and syncs each file.
 * @throws Error if it was cut off or names a path outside the folder
 */
export async function untar(bytes: AsyncIterable<Uint8Array>, folder: string): Promise<void> {
  const input = new Input(bytes)
  for (;;) {
    const header = await input.exactly(block)
    const name = header.toString('utf8', 0, 100).replace(/\0.*$/s, '')
    if (name === '') return
    const target = path.join(folder, name)
    if (!target.startsWith(`${folder}/`)) throw new Error('The backup names a file outside its folder')
    const size = Number.parseInt(header.toString('latin1', 124, 135), 8)
    if (header.toString('latin1', 156, 157) === '5') {
      await mkdir(target, { mode: 0o700, recursive: true })
      continue
    }
    const file = await open(target, 'wx', 0o600)
    try {
      for (let left = size; left > 0; ) {
        const chunk = await input.atMost(left)
        await file.writeFile(chunk)
        left -= chunk.length
      }
      await file.sync()
    } finally {
      await file.close()
    }
    await input.exactly((block - (size % block)) % block)
  }
}

class Input {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#source = bytes[Symbol.asyncIterator]()
  }

  async atMost(count: number): Promise<Buffer> {
    while (this.#rest.length === 0) await this.#more()
    const chunk = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(chunk.length)
    return chunk
  }

  async exactly(count: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    for (let left = count; left > 0; ) {
      const chunk = await this.atMost(left)
      chunks.push(chunk)
      left -= chunk.length
    }
    return Buffer.concat(chunks)
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#source.next()
    if (done) throw new Error('The backup was cut off')
    this.#rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  }
}

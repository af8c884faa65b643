import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

/** Returns the checksum and size of bytes without keeping them. @param use awaited before the next chunk is read */
export async function measured(
  bytes: AsyncIterable<string | Uint8Array>,
  { use = async () => undefined }: { use?: (chunk: string | Uint8Array) => Promise<void> } = {},
): Promise<{ sha256: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    size += Buffer.byteLength(chunk)
    await use(chunk)
  }
  return { sha256: hash.digest('hex'), size }
}

/** Makes names that were added to a folder or removed from it survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

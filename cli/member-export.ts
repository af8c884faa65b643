import { createWriteStream } from 'node:fs'
import { access, rename, rm } from 'node:fs/promises'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { countOf } from '../src/text.ts'
import type { Api } from './api.ts'
import { terminal, writeLine } from './terminal.ts'

/**
 * Exports the complete list of members. The file gets its final name only once it is complete: importing half a list would
 * offboard the other half.
 */
export async function exportMembers(api: Api, file: string | undefined): Promise<void> {
  if (file !== undefined && (await isThere(file)))
    throw new Error(`${file} already exists; remove it first or choose another name`)
  const members = await api.open({
    path: '/v1/members?statuses=active&statuses=invited',
    headers: { accept: 'text/csv' },
  })
  if (file === undefined) {
    await pipeline(members, terminal().stdout, { end: false }).catch(refuseUnlessSeenEnough)
    return
  }
  const part = `${file}.part`
  const lines = new LineCount()
  try {
    // Readable only by its owner: it holds bank accounts.
    await pipeline(members, lines, createWriteStream(part, { mode: 0o600 }))
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
  writeLine(`Exported ${countOf(lines.count - 1, 'member')} to ${file}.`)
}

/** Counts lines, and prepends the byte order mark that makes Excel read the file as UTF-8. */
class LineCount extends Transform {
  count = 0

  override _construct(done: () => void): void {
    this.push('\ufeff')
    done()
  }

  override _transform(chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void): void {
    for (const byte of chunk) if (byte === lineFeed) this.count += 1
    done(null, chunk)
  }
}

// No field of a member contains one.
const lineFeed = 0x0a

async function isThere(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  )
}

// As in `openwage members export | head`.
function refuseUnlessSeenEnough(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

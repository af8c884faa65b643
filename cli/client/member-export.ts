import { Transform } from 'node:stream'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { countOf } from '../print.ts'
import { writeLine } from '../terminal.ts'
import { saveAnswer } from './files.ts'

/**
 * Exports the complete list of members. The file gets its final name only once it is complete: importing half a list would
 * offboard the other half.
 */
export async function exportMembers(midmonth: Midmonth, file: string | undefined): Promise<void> {
  const lines = new LineCount()
  const open = () => midmonth.members.export({ statuses: ['active', 'invited'] })
  await saveAnswer(open, { file, through: [lines] })
  if (file !== undefined) writeLine(`Exported ${countOf(lines.count - 1, 'member')} to ${file}.`)
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

import path from 'node:path'
import { sql } from '../../../database/database.ts'
import { lockByNameIfFree } from '../../../database/named-locks.ts'
import { problem } from '../../../errors.ts'
import type { TaskContext } from '../../../tasks.ts'
import { putByHand } from '../delivery/by-hand.ts'
import { measured } from '../delivery/files.ts'
import * as batches from './batches.ts'
import type { FileRailSettings } from './format.ts'
import { type SentFile, send } from './send.ts'

/**
 * Writes the file of an approved batch into a folder, for an operator who carries it to the bank. The batch then counts as sent.
 * If the bank has answered the batch, an export that was killed has left its file, and the bank has it: the batch then counts as
 * sent without being written again.
 * @returns `path` is null if the file was not written again; undefined if the batch is not approved, or is held
 * @throws Error for the operator; if it is a NotDelivered, the batch can still be changed
 */
export async function exportBatch(
  { db, log, now }: TaskContext,
  { rail, batchId, folder }: { rail: FileRailSettings; batchId: string; folder: string },
): Promise<(SentFile & { path: string | null }) | undefined> {
  if (rail.delivery !== null) throw problem('Conflict', `The rail ${rail.name} sends its files itself`)
  // Of two exports at once, each would write a file. The lock is held by a transaction that does nothing else.
  return await db.transaction().execute(async turn => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(turn)
    if (!(await lockByNameIfFree(turn, 'export of', batchId)))
      throw problem('Conflict', 'Another command is exporting the batch; only its file must go to the bank')
    let written: string | null = null
    const put = async (name: string, bytes: AsyncIterable<string>) => {
      if (await batches.isAnswered(db, batchId)) return await measured(bytes)
      written = path.join(folder, name)
      return await putByHand(written, bytes)
    }
    const sent = await send({ db, log, now }, { rail, batchId, put })
    return sent && { ...sent, path: written }
  })
}

import path from 'node:path'
import { sql } from '../../../database/database.ts'
import { lockByNameIfFree } from '../../../database/named-locks.ts'
import { problem } from '../../../errors.ts'
import type { TaskContext } from '../../../tasks.ts'
import { putByHand } from '../delivery/by-hand.ts'
import type { FileRailSettings } from './format.ts'
import { type SentFile, send } from './send.ts'

/**
 * Writes the file of an approved batch into a folder, for an operator who carries it to the bank. The batch then counts as sent.
 * @returns undefined if the batch is not approved, or is held
 * @throws Error for the operator; if it is a NotDelivered, the batch can still be changed
 */
export async function exportBatch(
  { db, log, now }: TaskContext,
  { rail, batchId, folder }: { rail: FileRailSettings; batchId: string; folder: string },
): Promise<(SentFile & { path: string }) | undefined> {
  if (rail.delivery !== null) throw problem('Conflict', `The rail ${rail.name} sends its files itself`)
  // Of two exports at once, each would write a file. The lock is held by a transaction that does nothing else.
  return await db.transaction().execute(async turn => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(turn)
    if (!(await lockByNameIfFree(turn, 'export of', batchId)))
      throw problem('Conflict', 'Another command is exporting the batch; only its file must go to the bank')
    const fileOf = (name: string) => path.join(folder, name)
    const put = (name: string, bytes: AsyncIterable<string>) => putByHand(fileOf(name), bytes)
    const sent = await send({ db, log, now }, { rail, batchId, put })
    return sent && { ...sent, path: fileOf(sent.name) }
  })
}

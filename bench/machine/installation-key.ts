import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import type { Db } from '../../src/database/database.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'

/** The installation's key of every database of a run: several checkouts use them. */
export const installationKey = Buffer.alloc(32, 'bench').toString('base64')

/** Connects to a migrated database and opens its key. The caller closes the connection. */
export async function connectWithKey(
  url: string,
  { connectionsMax = 1 }: { connectionsMax?: number } = {},
): Promise<{ db: Db; close: () => Promise<void> }> {
  const { db, close } = connect(url, { log: pino({ level: 'silent' }), connectionsMax })
  await openSealer(db, { key: installationKey })
  return { db, close }
}

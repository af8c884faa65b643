import { readLastBackup } from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import { readArchiving, readReplication } from '../database/durability.ts'
import * as float from '../float/float.ts'
import type { Retention } from '../kernel/retention.ts'
import { listStates } from '../partners/partners.ts'
import { listBrakes } from '../payouts/books/brakes.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listBegun } from '../payouts/books/import.ts'
import { findRestore } from '../payouts/books/restores.ts'
import { findOverdue } from '../retention/retention.ts'
import { listWorkers } from '../worker/heartbeats.ts'

/**
 * Reads the facts that the status, the findings and the metrics are all made of.
 * @param asked.differencesMax one neglected account must not hide everything else
 */
export async function readFacts(
  db: Reader,
  { retention, differencesMax, now }: { retention: Retention; differencesMax: number; now: Date },
) {
  return {
    archiving: await readArchiving(db),
    replication: await readReplication(db),
    lastBackupAt: await readLastBackup(db),
    /** The restore after which the banks are not compared yet. */
    restore: await findRestore(db),
    /** The kinds of which data is past its retention. */
    overdueKinds: await findOverdue(db, { retention, now }),
    workers: await listWorkers(db),
    partners: await listStates(db),
    floats: await float.listAll(db),
    brakes: await listBrakes(db),
    openExceptions: await exceptions.countOpen(db),
    /** Bank files that are partly imported. */
    importing: await listBegun(db),
    /** The differences in the bank’s statements. */
    differences: await exceptions.listDifferences(db, { take: differencesMax }),
  }
}

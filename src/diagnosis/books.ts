import type { Reader } from '../database/database.ts'
import { readArchiving, readReplication } from '../database/durability.ts'
import { describeExcess } from '../database/grants.ts'
import { readSchemaState } from '../database/migrations.ts'
import { defaultPartitionsInUse } from '../database/partitions.ts'
import * as float from '../float/float.ts'
import type { Retention } from '../kernel/retention.ts'
import { countMembersWithoutKeys } from '../members/key-checks.ts'
import { listValidKeys } from '../partners/api-keys.ts'
import { checkMode, listStates, type Mode } from '../partners/partners.ts'
import { unansweredStatuses, unsentStatuses } from '../payouts/books/batch-lifecycle.ts'
import * as batches from '../payouts/books/batches.ts'
import { listBrakes } from '../payouts/books/brakes.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listBegun } from '../payouts/books/import.ts'
import * as railHolds from '../payouts/books/rail-holds.ts'
import { findRestore } from '../payouts/books/restores.ts'
import { listCopies } from '../sealing/key-copies.ts'
import { listInstant } from '../tiers/tiers.ts'
import { countOperators } from '../users/users.ts'
import * as verifications from '../verification/verifications.ts'
import * as webhooks from '../webhooks/webhooks.ts'
import { listWorkers } from '../worker/heartbeats.ts'
import { readOverdue } from './overdue.ts'

const limits = {
  differencesMax: 20,
  // Newest first. A rail closes one or two batches a day, so this is more than a month of unsettled batches.
  batchesMax: 200,
}

/**
 * Reads the facts behind the findings in a transaction with one snapshot, so that they agree with each other.
 * @throws Error with a message for the operator if the database belongs to the other mode
 */
export async function readBooks(db: Reader, { mode, retention, now }: { mode: Mode; retention: Retention; now: Date }) {
  await checkMode(db, mode)
  return {
    keyCopies: await listCopies(db),
    membersWithoutKeys: await countMembersWithoutKeys(db),
    excess: await describeExcess(db),
    archiving: await readArchiving(db),
    replication: await readReplication(db),
    toContract: (await readSchemaState(db)).toContract,
    defaultPartitions: await defaultPartitionsInUse(db),
    partners: await listStates(db),
    floats: await float.listAll(db),
    instantTiers: await listInstant(db),
    keys: await listValidKeys(db, { mode, now }),
    endpoints: await webhooks.listHealth(db),
    workersAlive: (await listWorkers(db)).filter(({ isAlive }) => isAlive).length,
    operators: await countOperators(db),
    // Read separately, so that many sent batches, for example of an API, do not hide a waiting one.
    batches: [
      ...(await batches.list(db, { statuses: unsentStatuses, take: limits.batchesMax })),
      ...(await batches.list(db, { statuses: unansweredStatuses, take: limits.batchesMax })),
    ],
    heldRails: await railHolds.list(db),
    brakes: await listBrakes(db),
    restore: await findRestore(db),
    openExceptions: await exceptions.countOpen(db),
    importing: await listBegun(db),
    differences: await exceptions.listDifferences(db, { take: limits.differencesMax }),
    ...(await readOverdue(db, { retention, now })),
    verification: await verifications.findLastEnded(db),
  }
}

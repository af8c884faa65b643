import type { Reader } from '../database/database.ts'
import { describeExcess } from '../database/grants.ts'
import { readSchemaState } from '../database/migrations.ts'
import { defaultPartitionsInUse } from '../database/partitions.ts'
import { readCluster } from '../database/spread.ts'
import type { Retention } from '../kernel/retention.ts'
import { findMembersWithoutKeys } from '../members/key-checks.ts'
import { listValidKeys } from '../partners/api-keys.ts'
import { checkMode, type Mode } from '../partners/partners.ts'
import { unansweredStatuses, unsentStatuses } from '../payouts/books/batch-lifecycle.ts'
import * as batches from '../payouts/books/batches.ts'
import * as railHolds from '../payouts/books/rail-holds.ts'
import { listCopies } from '../sealing/key-copies.ts'
import { listInstant } from '../tiers/tiers.ts'
import { countOperators } from '../users/users.ts'
import * as verifications from '../verification/verifications.ts'
import * as webhooks from '../webhooks/webhooks.ts'
import { readFacts } from './facts.ts'

const limits = {
  differencesMax: 20,
  // Newest first. A rail closes one or two batches a day, so this is more than a month of unsettled batches.
  batchesMax: 200,
}

/** The facts in the database behind the findings. */
export type FindingFacts = Awaited<ReturnType<typeof readFindingFacts>>

/**
 * Reads the facts behind the findings in a transaction with one snapshot, so that they agree with each other.
 * @throws Error with a message for the operator if the database belongs to the other mode
 */
export async function readFindingFacts(
  db: Reader,
  { mode, retention, now }: { mode: Mode; retention: Retention; now: Date },
) {
  await checkMode(db, mode)
  const facts = await readFacts(db, { retention, differencesMax: limits.differencesMax, now })
  return {
    ...facts,
    /** The keys that open this database. */
    keyCopies: await listCopies(db),
    membersWithoutKeys: await findMembersWithoutKeys(db, { isThorough: facts.restore !== undefined }),
    /** The rights of the program's role beyond those it needs. */
    excess: await describeExcess(db),
    /** The migrations whose last steps wait until no older program runs. */
    toContract: (await readSchemaState(db)).toContract,
    /** The nodes of a distributed database. */
    cluster: await readCluster(db),
    /** The default partitions with rows. */
    defaultPartitions: await defaultPartitionsInUse(db),
    /** The tiers that ask for instant payouts. */
    instantTiers: await listInstant(db),
    keys: await listValidKeys(db, { mode, now }),
    endpoints: await webhooks.listHealth(db),
    /** Operators who can sign in to the console. */
    operators: await countOperators(db),
    // Read separately, so that many sent batches, for example of an API, do not hide a waiting one.
    batches: [
      ...(await batches.list(db, { statuses: unsentStatuses, take: limits.batchesMax })),
      ...(await batches.list(db, { statuses: unansweredStatuses, take: limits.batchesMax })),
    ],
    heldRails: await railHolds.list(db),
    /** The last verification of the books by the worker that has ended. */
    verification: await verifications.findLastEnded(db),
  }
}

import { Batches } from '../batch/batch.ts'
import { type BatchDb, type Db, lanesOf, type Reader } from '../database/database.ts'
import type { Replay } from '../idempotency/idempotency.ts'
import type { ProcessMetrics } from '../metrics/process-metrics.ts'
import type { Tracing } from '../tracing/tracing.ts'
import { type Completed, type Completion, completeAll } from './completions.ts'
import type { Banks } from './facts.ts'
import * as intents from './intents.ts'
import type { Intent } from './rules.ts'
import { SubmissionSchedule } from './submission-schedule.ts'

/**
 * The two hot operations, each coalesced with those of concurrent requests.
 * @param db for a command that waits for a lock; it has a longer lock time-out and is not shared with other batches
 * @param batchDb for batches, which never wait for a lock
 */
export function withdrawalBatches({
  db,
  batchDb,
  banks,
  metrics,
  tracing,
}: {
  db: Db
  batchDb: BatchDb
  banks: Banks
  metrics?: { process: ProcessMetrics } | undefined
  tracing?: Tracing | undefined
}) {
  const lanes = lanesOf(batchDb)
  const dbFor = ({ waits }: { waits: boolean }) => (waits ? db : batchDb)
  const creations = new Batches<intents.NewIntent, Intent | Replay>(
    async (commands, context) => {
      const create = (reader: Reader) => intents.createAll(reader, commands, banks)
      // On Citus the lock that keeps a partner on its node must last until the end; one PostgreSQL writes in a single statement.
      return lanes === 'shared' ? await create(dbFor(context)) : await dbFor(context).transaction().execute(create)
    },
    { name: 'intents', lanes, tracing, onSent: count => metrics?.process.sentBatch('intents', count) },
  )
  const schedule = new SubmissionSchedule()
  const completions = new Batches<Completion, Completed | Replay>(
    async (commands, context) => {
      const { outcomes, scheduled } = await dbFor(context)
        .transaction()
        .execute(tx => completeAll(tx, commands, { waits: context.waits, banks, schedule }))
      schedule.remember(scheduled)
      return outcomes
    },
    { name: 'completions', lanes, tracing, onSent: count => metrics?.process.sentBatch('completions', count) },
  )
  return {
    createIntent: (command: intents.NewIntent) => creations.submit(command.partner.id, command),
    complete: (command: Completion) => completions.submit(command.partner.id, command),
  }
}

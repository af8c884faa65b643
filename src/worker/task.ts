import type { Logger } from 'pino'
import { type Db, lanesOf, sql, type Tx } from '../database/database.ts'
import type { Clock } from '../kernel/time.ts'
import type { Tracing } from '../tracing/tracing.ts'

/** Every background task: what the worker runs, and what operations schedule. */
export type TaskName =
  | 'submit-withdrawals'
  | 'ask-about-withdrawals'
  | 'read-rail-reports'
  | 'send-payout-batches'
  | 'read-bank-files'
  | 'reconcile-bank-accounts'
  | 'expire-intents'
  | 'make-pay-runs-available'
  | 'close-pay-cycles'
  | 'apply-member-imports'
  | 'expire-member-imports'
  | 'remove-old-data'
  | 'forget-member-sessions'
  | 'forget-user-sessions'
  | 'fold-float-changes'
  | 'fold-cycle-changes'
  | 'fold-member-counts'
  | 'add-up-withdrawals'
  | 'verify-ledger'
  | 'seal-ledger'
  | 'number-event-feeds'
  | 'maintain-partitions'
  | 'watch-floats'
  | 'move-sandbox-clocks'
  | 'notify-operators'

/**
 * The partners that a task works for. In a sandbox, a partner can have its own clock, so its due rows are searched separately;
 * see `scopesOf`. Everywhere else the scope is `all`. Functions that find due rows require a scope, so that no task forgets it.
 * `none` leaves what belongs to no partner.
 */
export type Scope = 'all' | 'none' | { only: string } | { except: readonly string[] }

/** A task's dependencies. A task opens its own transactions and never calls an external system inside one. */
export type TaskContext = { db: Db; log: Logger; now: Clock; scope?: Scope; tracing?: Tracing | undefined }

/** Chooses data from before an instant, at most `countMax` rows. */
export type Old = { before: Date; countMax: number; scope?: Scope | undefined }

// A distributed PostgreSQL locks rows only in statements that name a partner, if one without rows.
const noPartner = ''

/** The partner that statements in a scope name as a constant; undefined in a scope of several. */
export function constantOf(scope: Scope = 'all'): string | undefined {
  return scope === 'none' ? noPartner : partnerOf(scope)
}

/** SQL of an additional condition: the partner is in the scope. Empty for all partners, so that query plans do not change. */
export function inScope(scope: Scope = 'all', partnerId = sql`partner_id`) {
  if (scope === 'all') return sql``
  if (scope === 'none') return sql`and ${partnerId} = ${noPartner}`
  if ('only' in scope) return sql`and ${partnerId} = ${scope.only}`
  return sql`and ${partnerId} <> all(${scope.except}::text[])`
}

/**
 * Finds the rows that are due and acts on them. Takes no payload, may be killed at any point and run again, and may run
 * concurrently with itself.
 */
type Task = (context: TaskContext) => Promise<void>

export type Tasks = Record<TaskName, Task>

/** The only partner of a scope; undefined for several partners, who share the real clock, and for none. */
export function partnerOf(scope: Scope = 'all'): string | undefined {
  return typeof scope === 'object' && 'only' in scope ? scope.only : undefined
}

/**
 * Schedules a task in the caller's transaction. Each call adds a queue entry: with a shared job key, concurrent
 * transactions would wait for each other.
 * @param at by the partner's clock; without a partner, by the real clock
 */
export async function scheduleTask(
  tx: Tx,
  { task, at, partnerId }: { task: TaskName; at: Date; partnerId?: string | undefined },
): Promise<void> {
  const offset = partnerId === undefined ? sql`0` : await offsetOf(tx, partnerId)
  // Adding a job notifies the workers, and PostgreSQL serialises the commits of notifying transactions. A batch's short
  // lock timeout must not apply to that wait.
  await sql`
    select set_config('lock_timeout', '2s', true), graphile_worker.add_job(${task}, run_at => ${at}::timestamptz
      - coalesce(${offset}, 0) * interval '1 ms')`.execute(tx)
}

/** SQL of the offset of a partner's clock. Where partners are on other nodes than the queue, it is read first. */
async function offsetOf(tx: Tx, partnerId: string) {
  const read = sql<{ offsetMs: bigint }>`select offset_ms from sandbox_clocks where partner_id = ${partnerId}`
  if (lanesOf(tx) === 'shared') return sql`(${read})`
  const { rows } = await read.execute(tx)
  return sql`${rows[0]?.offsetMs ?? null}::bigint`
}

import assert from 'node:assert/strict'
import { Gauge, Registry } from 'prom-client'
import { type Db, type Reader, sql } from '../database/database.ts'
import { isArchivingFailing } from '../database/durability.ts'
import { defaultPartitionsInUse } from '../database/partitions.ts'
import type { Retention } from '../kernel/retention.ts'
import { listFailing } from '../notices/notices.ts'
import type { Mode } from '../partners/partners.ts'
import * as batches from '../payouts/books/batches.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { findLastEnded } from '../verification/verifications.ts'
import { readSeals } from '../verification/verify.ts'
import * as webhooks from '../webhooks/webhooks.ts'
import * as inspection from '../withdrawals/inspection.ts'
import { readTasks } from '../worker/queue.ts'
import { readFacts } from './facts.ts'

/** @property isForSupport whether the metrics leave the installation, so that they name no hosts */
type Asked = { mode: Mode; retention: Retention; now: Date; isForSupport?: boolean }

const limits = {
  // Each partner adds a series to some gauges. The others are added up as `other`.
  partnersMax: 200,
  differencesMax: 100,
}

async function readGaugeFacts(db: Reader, { retention, now }: Asked) {
  const { rows } = await sql<{ bytes: bigint; at: Date }>`
    select pg_database_size(current_database()) as bytes, clock_timestamp() as at`.execute(db)
  const [database] = rows
  assert(database !== undefined)
  return {
    databaseBytes: Number(database.bytes),
    clockOffsetMs: now.getTime() - database.at.getTime(),
    ...(await readFacts(db, { retention, differencesMax: limits.differencesMax, now })),
    defaultPartitions: await defaultPartitionsInUse(db),
    queue: await readTasks(db, now),
    withdrawals: await inspection.countUnfinished(db, now),
    withdrawalsByRail: await inspection.countUnpaidByRail(db),
    batches: await batches.countUnsettled(db),
    batchesToApprove: await batches.countWaiting(db),
    oldestExceptionAt: await exceptions.findOldestOpen(db),
    endpoints: await webhooks.listHealth(db),
    seals: await readSeals(db),
    verification: await findLastEnded(db),
    failingNotices: await listFailing(db),
  }
}

type Facts = Awaited<ReturnType<typeof readGaugeFacts>>

type Sample = { labels?: Record<string, string>; value: number }

/** The gauges of the installation: the same in each process, except for its clock. Amounts are in minor units, times in seconds since 1970. */
const gauges: { name: string; help: string; labels?: string[]; of: (facts: Facts, asked: Asked) => Sample[] }[] = [
  {
    name: 'info',
    help: 'The mode of the installation: sandbox or live.',
    labels: ['mode'],
    of: (_, { mode }) => [{ labels: { mode }, value: 1 }],
  },
  {
    name: 'workers_alive',
    help: 'Workers with a heartbeat in the last minute.',
    of: ({ workers }) => one(workers.filter(({ isAlive }) => isAlive).length),
  },
  {
    name: 'tasks_due',
    help: 'Background tasks that are due, including those that are running.',
    labels: ['task'],
    of: ({ queue }) => queue.due.map(({ task, count }) => ({ labels: { task }, value: count })),
  },
  {
    name: 'tasks_oldest_due_timestamp_seconds',
    help: 'When the oldest due background task became due.',
    labels: ['task'],
    of: ({ queue }) => queue.due.map(({ task, oldestAt }) => ({ labels: { task }, value: seconds(oldestAt) })),
  },
  {
    name: 'tasks_given_up',
    help: 'Background tasks that have used up their retries.',
    labels: ['task'],
    of: ({ queue }) => queue.givenUp.map(({ task, count }) => ({ labels: { task }, value: count })),
  },
  {
    name: 'withdrawals_unfinished',
    help: 'Withdrawals that wait for the bank.',
    labels: ['status'],
    of: ({ withdrawals }) => byStatus(withdrawals, ({ count }) => count),
  },
  {
    name: 'withdrawals_stuck',
    help: 'Withdrawals that wait for the bank for longer than they should.',
    labels: ['status'],
    of: ({ withdrawals }) => byStatus(withdrawals, ({ stuck }) => stuck),
  },
  {
    name: 'withdrawals_oldest_unfinished_timestamp_seconds',
    help: 'When the oldest withdrawal that waits for the bank was created.',
    labels: ['status'],
    of: ({ withdrawals }) =>
      Object.entries(withdrawals).flatMap(([status, { oldest }]) =>
        oldest === null ? [] : [{ labels: { status }, value: seconds(oldest) }],
      ),
  },
  {
    name: 'payouts_unpaid',
    help: 'Withdrawals that are not paid, by rail and state; the rail is none before the payment is submitted.',
    labels: ['rail', 'status'],
    of: ({ withdrawalsByRail }) =>
      withdrawalsByRail.map(({ rail, status, count }) => ({ labels: { rail: rail ?? 'none', status }, value: count })),
  },
  {
    name: 'payout_batches',
    help: 'Payout batches that are not settled.',
    labels: ['rail', 'status'],
    of: ({ batches: all }) => all.map(({ rail, status, count }) => ({ labels: { rail, status }, value: count })),
  },
  {
    name: 'payout_batches_oldest_cut_off_timestamp_seconds',
    help: 'The oldest cut-off of payout batches that take no more payments and are not settled.',
    labels: ['rail', 'status'],
    of: ({ batches: all }) =>
      all.flatMap(({ rail, status, oldestCutOffAt }) =>
        oldestCutOffAt === null ? [] : [{ labels: { rail, status }, value: seconds(oldestCutOffAt) }],
      ),
  },
  {
    name: 'payout_batches_waiting_for_approval',
    help: 'Payout batches that wait for approval.',
    of: ({ batchesToApprove }) => one(batchesToApprove),
  },
  {
    name: 'payout_exceptions_open',
    help: 'Open payout exceptions.',
    of: ({ openExceptions }) => one(openExceptions),
  },
  {
    name: 'payout_exceptions_oldest_open_timestamp_seconds',
    help: 'When the oldest open payout exception was created.',
    of: ({ oldestExceptionAt }) => times(oldestExceptionAt),
  },
  {
    name: 'bank_differences_open',
    help: 'Differences between bank statements and the books that are not explained.',
    of: ({ differences }) => one(differences.length),
  },
  {
    name: 'bank_imports_unfinished',
    help: 'Bank files that are partly imported.',
    of: ({ importing }) => one(importing.length),
  },
  {
    name: 'rail_brakes',
    help: 'Reasons why no batch of a rail is approved automatically.',
    labels: ['rail'],
    of: ({ brakes }) => sums(brakes.map(({ rail }) => ({ labels: { rail }, value: 1 }))),
  },
  {
    name: 'payouts_stopped_since_timestamp_seconds',
    help: 'When it was detected that the database was restored; nothing is sent to banks until payouts are resumed.',
    of: ({ restore }) => times(restore?.detectedAt ?? null),
  },
  {
    name: 'partners',
    help: 'Partners, by state.',
    labels: ['state'],
    of: ({ partners }) => countsOf(['active', 'paused', 'suspended'], partners.map(stateOf)),
  },
  {
    name: 'float_free',
    help: 'A partner’s float less what is pending, in minor units.',
    labels: ['partner', 'currency'],
    of: facts => byPartner(facts, ({ free }) => free),
  },
  {
    name: 'float_floor',
    help: 'The amount below which a partner’s float is low, in minor units.',
    labels: ['partner', 'currency'],
    of: facts => byPartner(facts, ({ floor }) => floor),
  },
  {
    name: 'floats_low',
    help: 'Floats of all partners that are below their floor.',
    of: ({ floats }) => one(floats.filter(({ floor, free }) => floor !== null && free < floor).length),
  },
  {
    name: 'float_uncovered',
    help: 'What floats lack because the operator bears costs, in minor units.',
    labels: ['partner', 'currency'],
    of: facts => byPartner(facts, ({ uncovered }) => (uncovered === 0n ? null : uncovered)),
  },
  {
    name: 'webhook_endpoints',
    help: 'Webhook endpoints, by state: given_up were disabled because they failed, disabled by their partner.',
    labels: ['state'],
    of: ({ endpoints }) => countsOf(['healthy', 'failing', 'given_up', 'disabled'], endpoints.map(stateOfEndpoint)),
  },
  {
    name: 'ledger_last_seal_timestamp_seconds',
    help: 'When the books of a pay cycle were last sealed.',
    of: ({ seals }) => times(seals.latestAt),
  },
  {
    name: 'ledger_last_verification_timestamp_seconds',
    help: 'When the last verification of the books ended.',
    of: ({ verification }) => times(verification?.endedAt ?? null),
  },
  {
    name: 'ledger_broken_rules',
    help: 'Rules of the books that the last verification found broken; -1 if it failed.',
    of: ({ verification }) =>
      verification === undefined
        ? []
        : one(verification.checks?.filter(({ disagreement }) => disagreement !== null).length ?? -1),
  },
  {
    name: 'backup_last_timestamp_seconds',
    help: 'When the last recorded backup was taken.',
    of: ({ lastBackupAt }) => times(lastBackupAt),
  },
  {
    name: 'database_size_bytes',
    help: 'The size of the database on disk.',
    of: ({ databaseBytes }) => one(databaseBytes),
  },
  {
    name: 'clock_offset_seconds',
    help: 'How far the clock of this process is ahead of the clock of the database.',
    of: ({ clockOffsetMs }) => one(clockOffsetMs / 1_000),
  },
  {
    name: 'database_replicas',
    help: 'Replicas that stream from the database, by how their commits are waited for.',
    labels: ['state'],
    of: ({ replication: { replicas } }) =>
      countsOf(
        ['async', 'potential', 'sync', 'quorum', 'unknown'],
        replicas.map(({ state }) => state ?? 'unknown'),
      ),
  },
  {
    name: 'database_replica_lag_seconds',
    help: 'How far a replica is behind; of those with the same name, the one that is furthest behind.',
    labels: ['replica'],
    of: ({ replication: { replicas } }, { isForSupport = false }) =>
      replicas.flatMap(({ name, lagSeconds }, index) =>
        lagSeconds === null
          ? []
          : [{ labels: { replica: isForSupport ? `replica ${index + 1}` : name }, value: lagSeconds }],
      ),
  },
  {
    name: 'database_replication_synchronous',
    help: 'Whether commits wait for a replica; missing if there is none.',
    of: ({ replication: { isSynchronous, replicas } }) => (replicas.length === 0 ? [] : one(isSynchronous ? 1 : 0)),
  },
  {
    name: 'database_wal_archiving_failed',
    help: 'Whether archiving the WAL has failed since it last succeeded.',
    of: ({ archiving }) => (archiving.isOn ? one(isArchivingFailing(archiving) ? 1 : 0) : []),
  },
  {
    name: 'database_default_partitions_used',
    help: 'Tables with rows outside the partitions of their months.',
    of: ({ defaultPartitions }) => one(defaultPartitions.length),
  },
  {
    name: 'notices_failing',
    help: 'Attempts in a row in which a message to operators did not arrive, by channel.',
    labels: ['channel'],
    of: ({ failingNotices }) =>
      failingNotices.map(({ channel, attempts }) => ({ labels: { channel }, value: attempts })),
  },
  {
    name: 'retention_overdue',
    help: 'Kinds of data that are kept for longer than they should be.',
    of: ({ overdueKinds }) => one(overdueKinds.length),
  },
]

const one = (value: number): Sample[] => [{ value }]
/** How many are in each state, also those in which none is. */
const countsOf = (states: readonly string[], found: readonly string[]): Sample[] =>
  states.map(state => ({ labels: { state }, value: found.filter(each => each === state).length }))
const seconds = (at: Date) => at.getTime() / 1_000
const times = (at: Date | null): Sample[] => (at === null ? [] : one(seconds(at)))
const byStatus = (all: Facts['withdrawals'], value: (of: Facts['withdrawals']['held']) => number): Sample[] =>
  Object.entries(all).map(([status, of]) => ({ labels: { status }, value: value(of) }))

function stateOf({ paused, suspendedAt }: Facts['partners'][number]): string {
  return suspendedAt !== null ? 'suspended' : paused ? 'paused' : 'active'
}

function stateOfEndpoint({ enabled, failingSince, disabledReason }: Facts['endpoints'][number]): string {
  if (enabled) return failingSince === null ? 'healthy' : 'failing'
  return disabledReason === 'failing' || disabledReason === 'gone' ? 'given_up' : 'disabled'
}

/** Adds up the samples with the same labels. */
function sums(samples: Sample[]): Sample[] {
  const found = new Map<string, Sample>()
  for (const { labels = {}, value } of samples) {
    const name = JSON.stringify(labels)
    found.set(name, { labels, value: (found.get(name)?.value ?? 0) + value })
  }
  return [...found.values()]
}

function byPartner({ floats }: Facts, value: (each: Facts['floats'][number]) => bigint | null): Sample[] {
  const named = new Set([...new Set(floats.map(({ partnerId }) => partnerId))].slice(0, limits.partnersMax))
  return sums(
    floats.flatMap(each => {
      const amount = value(each)
      const partner = named.has(each.partnerId) ? each.partnerId : 'other'
      return amount === null ? [] : [{ labels: { partner, currency: each.currency }, value: Number(amount) }]
    }),
  )
}

/** The gauges of the installation, for the reference. */
export const installationMetrics = gauges.map(({ name, help, labels = [] }) => ({
  name: `midmonth_${name}`,
  help,
  labelNames: labels,
}))

/** Reads the gauges in one snapshot. @returns them in the exposition format of Prometheus */
export async function exposeInstallation(db: Db, asked: Asked): Promise<string> {
  const facts = await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(tx => readGaugeFacts(tx, asked))
  const registry = new Registry()
  for (const { name, help, labels = [], of } of gauges) {
    const samples = of(facts, asked)
    // Without a sample it would be 0, which would be read as a time in 1970.
    if (samples.length === 0) continue
    const gauge = new Gauge({ name: `midmonth_${name}`, help, labelNames: labels, registers: [registry] })
    for (const sample of samples) gauge.set(sample.labels ?? {}, sample.value)
  }
  return await registry.metrics()
}

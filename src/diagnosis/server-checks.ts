import { type Archiving, isArchivingFailing, type Replication } from '../database/durability.ts'
import type { Cluster } from '../database/spread.ts'
import { countOf } from '../kernel/text.ts'
import { withoutKeysInWords } from '../members/key-checks.ts'
import type { Mode } from '../partners/partners.ts'
import { overdueInWords } from '../retention/retention.ts'
import type { KeyCopy } from '../sealing/key-copies.ts'
import { type Check, type Facts, type Finds, hint, missing, warning } from './finding.ts'

const limits = {
  // A daily backup, and two hours for it to be taken.
  backupAgeMsMax: 26 * 3_600_000,
}

/** The database, its role and its backups. */
export const serverChecks: readonly Check<Facts>[] = [
  {
    name: 'database',
    find: ({ isEmbedded }) =>
      isEmbedded
        ? warning({
            sentence:
              'The database is the PostgreSQL that comes with Midmonth, on this machine only; use a server that you back up',
            command: 'export DATABASE_URL=postgres://midmonth_app:PASSWORD@HOST/midmonth',
          })
        : null,
    fine: () => 'The server is durable, and the schema is up to date',
  },
  {
    name: 'role',
    find: ({ excess }) =>
      excess === undefined
        ? null
        : warning({
            sentence: excess,
            command: 'DATABASE_OWNER_URL=postgres://midmonth_owner:PASSWORD@HOST/midmonth midmonth migrate',
          }),
    fine: () => 'The program’s database role has no more rights than it needs',
  },
  {
    name: 'partitions',
    // The clock of a sandbox runs ahead of its partitions.
    find: ({ mode, defaultPartitions }) =>
      mode === 'sandbox' || defaultPartitions.length === 0
        ? null
        : warning({
            sentence: `${defaultPartitions.join(' and ')} ${defaultPartitions.length === 1 ? 'is' : 'are'} not empty: a month began without its partition, because no worker had been running; see "Partitions" in docs/operations/running.md`,
            command: 'midmonth start --worker',
          }),
    fine: ({ mode }) => (mode === 'sandbox' ? '' : 'Every month with events or transfers has its partition'),
  },
  {
    name: 'cluster',
    find: ({ cluster }) => (cluster === undefined ? null : faultsOf(cluster)),
    fine: ({ cluster }) => (cluster === undefined ? '' : `${cluster.nodes} servers hold the tables and answer`),
  },
  {
    name: 'migrations',
    find: ({ toContract }) =>
      toContract.length === 0
        ? null
        : hint({
            sentence: `${toContract.join(' and ')} ${toContract.length === 1 ? 'keeps' : 'keep'} what only older versions need, so that you can go back to one`,
            command: 'midmonth migrate --contract',
          }),
    fine: () => '',
  },
  {
    name: 'operators',
    find: ({ operators }) =>
      operators > 1
        ? null
        : warning({
            sentence:
              operators === 0
                ? 'No operator can sign in to the console; approving a payout batch there takes two'
                : 'One operator can sign in to the console; approving a payout batch there takes two',
            command: 'midmonth operator create EMAIL --invite',
          }),
    fine: ({ operators }) => `${operators} operators can sign in to the console`,
  },
  {
    name: 'key',
    find: ({ installationKey: { name, fault }, keyCopies }) =>
      fault === undefined ? keyOf(name, keyCopies) : missing({ sentence: fault, command: null }),
    fine: ({ installationKey: { name }, keyCopies }) =>
      `The installation’s key is ${name}; ${keyCopies.length - 1} more can open this database`,
  },
  {
    name: 'memberKeys',
    find: ({ membersWithoutKeys }) =>
      membersWithoutKeys.count === 0
        ? null
        : missing({ sentence: withoutKeysInWords(membersWithoutKeys), command: null }),
    fine: ({ restore }) =>
      restore === undefined ? 'The latest members have their keys' : 'All members have their keys',
  },
  {
    name: 'erasures',
    find: ({ erasureJournal }) => (erasureJournal === undefined ? null : journalOf(erasureJournal)),
    fine: () => '',
  },
  {
    name: 'retention',
    find: ({ overdueKinds, retention }) => {
      const sentence = overdueInWords(overdueKinds, retention)
      return sentence === undefined ? null : warning({ sentence, command: 'midmonth start --worker' })
    },
    fine: () => 'No data is past its retention',
  },
  {
    name: 'backups',
    find: facts => {
      const sentence = backupOverdue(facts)
      const command = facts.isEmbedded
        ? 'midmonth backup take'
        : 'pg_dump --format=custom --file=midmonth.dump "$DATABASE_OWNER_URL" && midmonth backup recorded'
      return sentence === undefined ? null : warning({ sentence, command })
    },
    fine: ({ lastBackupAt }) =>
      lastBackupAt === null ? '' : `The last backup was taken at ${lastBackupAt.toISOString()}`,
  },
  {
    name: 'replication',
    find: facts => {
      const sentence = asynchronousInWords(facts)
      const command =
        'psql "$DATABASE_OWNER_URL" --command "select application_name, state, sync_state from pg_stat_replication"'
      return sentence === undefined ? null : warning({ sentence, command })
    },
    fine: ({ replication: { replicas, isSynchronous } }) =>
      replicas.length > 0 && isSynchronous ? 'Every commit waits for a replica' : '',
  },
  { name: 'archiving', find: ({ archiving }) => archivingOf(archiving), fine: archivingInWords },
]

function faultsOf({ unreachable, misplaced, prepared }: Cluster): Finds {
  return [
    ...unreachable.map(node =>
      missing({
        sentence: `The server ${node} does not answer the coordinator; requests of the partners there are answered 503`,
        command: `psql "$DATABASE_OWNER_URL" --command "select * from citus_check_cluster_node_health()"`,
      }),
    ),
    ...(misplaced.length === 0
      ? []
      : [
          missing({
            sentence: `${misplaced.join(' and ')} ${misplaced.length === 1 ? 'is' : 'are'} not spread over the nodes as the program expects`,
            command: 'midmonth distribute',
          }),
        ]),
    ...prepared.map(({ node, count }) =>
      warning({
        sentence: `${node} has ${countOf(count, 'transaction')} prepared minutes ago and never ended; they hold locks. The coordinator ends them once a minute if it reaches the server`,
        command: 'psql "$DATABASE_OWNER_URL" --command "select recover_prepared_transactions()"',
      }),
    ),
  ]
}

type BackupFacts = { mode: Mode; lastBackupAt: Date | null; now: Date }

/** The warning about the backups of a live installation; undefined if the last backup is recent. */
export function backupOverdue({ mode, lastBackupAt, now }: BackupFacts): string | undefined {
  if (mode !== 'live') return undefined
  if (lastBackupAt === null) return 'No backup has been recorded'
  if (now.getTime() - lastBackupAt.getTime() <= limits.backupAgeMsMax) return undefined
  return `The last recorded backup was taken at ${lastBackupAt.toISOString()}, more than a day ago`
}

/** The warning about a live installation whose commits wait for none of its replicas; undefined if they do, or there is none. */
export function asynchronousInWords({
  mode,
  replication: { isSynchronous, replicas },
}: {
  mode: Mode
  replication: Replication
}): string | undefined {
  if (mode !== 'live' || isSynchronous || replicas.length === 0) return undefined
  const subject = replicas.length === 1 ? 'The replica is' : `All ${replicas.length} replicas are`
  return `${subject} asynchronous: after a failover, withdrawals that were acknowledged or paid may be missing; see docs/operations/high-availability.md`
}

/** The warning about an archive of the WAL that fails; undefined if it does not. */
export function failingArchiveInWords(archiving: Archiving): string | undefined {
  if (!isArchivingFailing(archiving)) return undefined
  return `The server’s last attempt to archive its WAL, at ${archiving.failedAt?.toISOString()}, failed`
}

function keyOf(name: string, copies: readonly KeyCopy[]): Finds {
  const stale = copies.filter(({ isComplete }) => !isComplete)
  if (stale.length > 0)
    return warning({
      sentence: `${stale.map(({ provider }) => provider).join(' and ')} cannot open this database since its key was rotated; copy the installation’s key again`,
      command: 'midmonth installation-key copy --settings FILE',
    })
  if (copies.length > 1) return null
  return hint({
    sentence: `Only the installation’s key ${name} opens this database: back it up apart from the database, or keep a second one in escrow; without it members’ accounts, webhooks and second factors are lost`,
    command: 'midmonth installation-key copy --file escrow.key',
  })
}

function journalOf({ place, unrecorded, fault }: NonNullable<Facts['erasureJournal']>): Finds {
  if (fault !== undefined)
    return warning({ sentence: `The journal of erasures (${place}) cannot be read: ${fault}`, command: null })
  if (unrecorded > 0) {
    const erasures = unrecorded === 1 ? 'an erasure' : `${unrecorded} erasures`
    return warning({
      sentence: `The journal of erasures (${place}) lacks ${erasures} that the database knows; restore it from its backup, and the next start adds what is still missing`,
      command: 'midmonth start',
    })
  }
  return hint({
    sentence: `Back up the journal of erasures (${place}) with every backup of the database: without it, a restored database has erased members again`,
    command: null,
  })
}

function archivingOf(archiving: Archiving): Finds {
  const { isOn, archivedAt } = archiving
  if (!isOn)
    return hint({
      sentence:
        'The server archives no WAL, so a restore loses what was committed after the last backup; restore one before going live',
      command: null,
    })
  const failing = failingArchiveInWords(archiving)
  if (failing === undefined && archivedAt !== null) return null
  return warning({
    sentence: failing ?? 'The server is set to archive its WAL, but has archived nothing yet',
    command: 'psql "$DATABASE_OWNER_URL" --command "select * from pg_stat_archiver"',
  })
}

function archivingInWords({ archiving: { archivedAt } }: Facts): string {
  return `The server archives its WAL, last at ${archivedAt?.toISOString()}`
}

import type { Archiving } from '../database/durability.ts'
import { type Check, type Facts, type Found, hint, missing, warning } from './finding.ts'

/** The database, its role and its backups. */
export const serverChecks: readonly Check<Facts>[] = [
  {
    name: 'database',
    find: ({ isEmbedded }) =>
      isEmbedded
        ? [
            warning({
              sentence:
                'The database is the PostgreSQL that comes with Midmonth, on this machine alone; use a server that you back up',
              command: 'export DATABASE_URL=postgres://midmonth_app:PASSWORD@HOST/midmonth',
            }),
          ]
        : [],
    fine: () => 'The server is durable, and the schema is up to date',
  },
  {
    name: 'role',
    find: ({ excess }) =>
      excess === undefined
        ? []
        : [
            warning({
              sentence: excess,
              command: 'DATABASE_OWNER_URL=postgres://midmonth_owner:PASSWORD@HOST/midmonth midmonth migrate',
            }),
          ],
    fine: () => 'The program’s database role has no more rights than it needs',
  },
  {
    name: 'operators',
    find: ({ operators }) =>
      operators > 1
        ? []
        : [
            warning({
              sentence:
                operators === 0
                  ? 'No operator can sign in to the console; approving a payout batch there takes two'
                  : 'One operator can sign in to the console; approving a payout batch there takes two',
              command: 'midmonth admin create EMAIL --invite',
            }),
          ],
    fine: ({ operators }) => `${operators} operators can sign in to the console`,
  },
  {
    name: 'key',
    find: ({ installationKey: { place, fault } }) =>
      fault === undefined
        ? [
            hint({
              sentence: `Back up the installation’s key (${place}) apart from the database: without it webhooks, second factors and replays are lost`,
              command: null,
            }),
          ]
        : [missing({ sentence: fault, command: 'export MIDMONTH_INSTALLATION_KEY_FILE=FILE' })],
    fine: () => 'The installation’s key is that of this database',
  },
  {
    name: 'addresses',
    find: ({ now, auditAddressDays, oldestAuditAddressAt }) => {
      // The worker removes them within a minute. A day more means that no worker runs.
      const keptSince = now.getTime() - (auditAddressDays + 1) * 86_400_000
      if (oldestAuditAddressAt === null || oldestAuditAddressAt.getTime() >= keptSince) return []
      const sentence = `The audit log still has addresses of ${oldestAuditAddressAt.toISOString()}, but MIDMONTH_AUDIT_ADDRESS_DAYS is ${auditAddressDays}; a worker removes them`
      return [warning({ sentence, command: 'midmonth start --worker' })]
    },
    fine: ({ auditAddressDays }) => `The audit log keeps addresses for ${auditAddressDays} days`,
  },
  { name: 'backups', find: ({ archiving }) => backupsOf(archiving), fine: backupsInWords },
]

function backupsOf({ isOn, archivedAt, failedAt }: Archiving): Found[] {
  if (!isOn)
    return [
      hint({
        sentence:
          'The server archives no WAL, and dumps cannot be seen from here; take one daily, and restore one before going live',
        command: 'pg_dump --format=custom --file=midmonth.dump "$DATABASE_OWNER_URL"',
      }),
    ]
  const isFailing = failedAt !== null && (archivedAt === null || failedAt > archivedAt)
  if (!isFailing && archivedAt !== null) return []
  return [
    warning({
      sentence: isFailing
        ? `The server’s last attempt to archive its WAL, at ${failedAt.toISOString()}, failed`
        : 'The server is set to archive its WAL, but has archived nothing yet',
      command: 'psql "$DATABASE_OWNER_URL" --command "select * from pg_stat_archiver"',
    }),
  ]
}

function backupsInWords({ archiving: { archivedAt } }: Facts): string {
  return `The server archives its WAL, last at ${archivedAt?.toISOString()}; whether base backups are taken cannot be seen from here`
}

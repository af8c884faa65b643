import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import pg from 'pg'
import { snakeCase } from '../kernel/text.ts'
import { type Reader, sql } from './database.ts'
import { readableQueueColumns, readColumns } from './read-columns.ts'
import { type TablePlace, tablePlaces } from './table-places.ts'
import { type TableRule, tableRules } from './table-rules.ts'
import type { DB } from './tables.ts'

// The rights of each database role. The owner role runs migrations and nothing else, the app role runs the program, and the
// read role is for operators who query the database.

/** The database role of the program. */
export type AppRole = {
  name: string
  /** Used only to create the role. */
  password?: string | undefined
}

/**
 * @property mayRevoke false while older programs may run, which need rights that this program does not
 * @property isSpread whether the tables are spread over nodes, which know no rights to single columns
 */
type GrantOptions = { mayRevoke: boolean; isSpread: boolean }

/**
 * Grants the app role and the read role exactly the rights that the rules of the tables and the list of readable columns
 * give, and revokes all others. Idempotent. Creates a missing role if the owner may create roles, and otherwise skips it.
 * @param client a connection of the owner, after all migrations, that holds the lock of `migrate`, because PostgreSQL fails
 *   concurrent grants on the same table
 */
export async function applyGrants(client: pg.ClientBase, app: AppRole, options: GrantOptions): Promise<void> {
  const session = await describeSession(client, app)
  const statements = [
    // A database created by PostgreSQL 14 lets every role create tables here.
    ...(session.ownsSchema ? ['revoke create on schema public from public'] : []),
    // The queue's tables have row-level security but no policies, so only the owner could read them. Grants control access instead.
    ...session.securedTables.map(table => `alter table ${table} disable row level security`),
    // An app role with the owner's rights needs no grants, and a revoke would take rights from the owner.
    ...(session.isAppOwner ? [] : [...creation(app, session, session.hasApp), ...appGrants(app, session, options)]),
    ...creation({ name: readRoleOf(session) }, session, session.hasRead),
    ...readGrants(session, options),
  ]
  await client.query('begin')
  try {
    await client.query(`set local lock_timeout = '5s'`)
    for (const statement of statements) await client.query(statement)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

type Session = {
  database: string
  mayCreateRoles: boolean
  ownsDatabase: boolean
  ownsSchema: boolean
  hasApp: boolean
  isAppOwner: boolean
  hasRead: boolean
  queueTables: string[]
  /** They have no grants: rows are read and written through the table of all partitions. */
  partitions: string[]
  securedTables: string[]
  /** The columns of each table of the program outside its primary key. */
  columns: { readonly [table: string]: string[] }
}

async function describeSession(client: pg.ClientBase, app: AppRole): Promise<Session> {
  const { rows } = await client.query<Session>(
    `select current_database() as database,
            (select rolcreaterole or rolsuper from pg_roles where rolname = current_user) as "mayCreateRoles",
            (select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()) as "ownsDatabase",
            (select pg_has_role(nspowner, 'usage') from pg_namespace where nspname = 'public') as "ownsSchema",
            exists (select from pg_roles where rolname = $1) as "hasApp",
            coalesce((select pg_has_role(oid, current_user, 'usage') from pg_roles where rolname = $1), false) as "isAppOwner",
            exists (select from pg_roles where rolname = current_database() || '_read') as "hasRead",
            coalesce(array_agg(table_name), '{}') as "queueTables",
            coalesce(array_agg(table_name) filter (where is_secured), '{}') as "securedTables",
            array(select format('public.%I', relname) from pg_class
                   where relnamespace = 'public'::regnamespace and relispartition and relkind = 'r') as partitions,
            (select json_object_agg(relname, columns)
               from (select relname, array_agg(attname order by attnum) as columns
                       from pg_attribute join pg_class c on c.oid = attrelid
                      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
                        and attnum > 0 and not attisdropped and attgenerated = ''
                        and not exists (select from pg_index where indrelid = c.oid and indisprimary and attnum = any(indkey))
                      group by relname) changeable) as columns
       from (select format('%I.%I', nspname, relname) as table_name, relrowsecurity as is_secured
               from pg_class c join pg_namespace n on n.oid = c.relnamespace
              where nspname = 'graphile_worker' and relkind in ('r', 'v')) queue`,
    [app.name],
  )
  const [session] = rows
  if (session === undefined) throw new Error('PostgreSQL returned no session details')
  return session
}

const readRoleOf = ({ database }: Session) => `${database}_read`

function creation({ name, password }: AppRole, { mayCreateRoles }: Session, exists: boolean): string[] {
  if (exists || !mayCreateRoles) return []
  const secret = password === undefined ? '' : ` password ${pg.escapeLiteral(scramVerifier(password))}`
  return [`create role ${pg.escapeIdentifier(name)} login${secret}`]
}

// All tables of the program.
const ownTables = Object.keys(tableRules).map(table => `public.${snakeCase(table)}`)

function appGrants({ name }: AppRole, session: Session, { mayRevoke, isSpread }: GrantOptions): string[] {
  if (!session.hasApp && !session.mayCreateRoles) return []
  const role = pg.escapeIdentifier(name)
  return [
    ...baseGrants(role, session, { mayRevoke, onDatabase: 'connect, temporary' }),
    `grant select on ${[...ownTables, ...session.queueTables].join(', ')} to ${role}`,
    ...(Object.entries(tableRules) as [keyof DB, TableRule][]).flatMap(([table, rule]) => {
      const name = snakeCase(table)
      const rights = rightsUnder(rule, session.columns[name] ?? [])
      return (isSpread ? rightsOnNodes(rights, tablePlaces[table]) : rights).map(
        right => `grant ${right} on public.${name} to ${role}`,
      )
    }),
    `grant execute on function public.analyze_tables(text[]) to ${role}`,
    // Removes old addresses from the audit log, and nothing else.
    `grant execute on function public.forget_audit_addresses(timestamptz, integer) to ${role}`,
    // Removes old disclosures, and nothing else.
    `grant execute on function public.forget_disclosures(timestamptz, integer) to ${role}`,
    // Make partitions of this month and the next, and drop events that nothing reads.
    `grant execute on function public.make_partitions(text), public.drop_old_events(timestamptz) to ${role}`,
    // Refuses to do anything on a live database.
    `grant execute on function public.reset_sandbox_partner(text) to ${role}`,
    // There, no function of the owner may write to a reference table to which the program writes too. Triggers refuse it on a live database.
    // The coordinator takes the next number of an identity column itself, with the program's rights.
    ...(isSpread
      ? [
          `grant delete on public.payout_references to ${role}`,
          `grant usage on all sequences in schema public to ${role}`,
        ]
      : []),
    // The queue library writes all its own tables except the list of its migrations.
    ...session.queueTables
      .filter(table => table !== 'graphile_worker.migrations')
      .map(table => `grant insert, update, delete on ${table} to ${role}`),
    `grant execute on all functions in schema graphile_worker to ${role}`,
  ]
}

/** @param columns the columns of the table outside its primary key */
function rightsUnder(rule: TableRule, columns: readonly string[]): string[] {
  switch (rule) {
    case 'read-only':
      return []
    case 'append-only':
      return ['insert']
    case 'disposable':
      return ['insert', 'delete']
    case 'permanent':
      return ['insert', `update (${columns.join(', ')})`]
    case 'free':
      return ['insert', `update (${columns.join(', ')})`, 'delete']
  }
  const isProtected = (column: string) => 'protects' in rule && rule.protects.map(snakeCase).includes(column)
  const changes = 'changes' in rule ? rule.changes.map(snakeCase) : columns.filter(column => !isProtected(column))
  return ['insert', `update (${changes.join(', ')})`, ...(rule.deletable ? ['delete'] : [])]
}

// Nodes know no rights to single columns, and write to a reference table in turn only for who may update it.
function rightsOnNodes(rights: readonly string[], place: TablePlace): readonly string[] {
  if (place === 'local' || rights.length === 0) return rights
  const whole = rights.map(right => right.replace(/ \(.*/, ''))
  return place === 'reference' && !whole.includes('update') ? [...whole, 'update'] : whole
}

function readGrants(session: Session, { mayRevoke, isSpread }: GrantOptions): string[] {
  if (!session.hasRead && !session.mayCreateRoles) return []
  const role = pg.escapeIdentifier(readRoleOf(session))
  return [
    ...baseGrants(role, session, { mayRevoke, onDatabase: 'connect' }),
    `grant select (${readableQueueColumns.join(', ')}) on graphile_worker.jobs to ${role}`,
    // Nodes know no rights to single columns, so this role cannot read the tables on them.
    ...readColumns
      .filter(([table]) => !isSpread || tablePlaces[table as keyof DB] === 'local')
      .map(
        ([table, columns]) =>
          `grant select (${columns.map(snakeCase).join(', ')}) on public.${snakeCase(table)} to ${role}`,
      ),
  ]
}

function baseGrants(
  role: string,
  { database, ownsDatabase, queueTables, partitions }: Session,
  { mayRevoke, onDatabase }: { mayRevoke: boolean; onDatabase: string },
): string[] {
  return [
    ...(ownsDatabase ? [`grant ${onDatabase} on database ${pg.escapeIdentifier(database)} to ${role}`] : []),
    `grant usage on schema public, graphile_worker to ${role}`,
    ...(mayRevoke ? [`revoke all on ${[...ownTables, ...partitions, ...queueTables].join(', ')} from ${role}`] : []),
  ]
}

// A password in a statement could end up in the server's log, so only the verifier that PostgreSQL stores is sent.
// Source: RFC 5803, and "pg_authid" in PostgreSQL's documentation.
function scramVerifier(password: string): string {
  const salt = randomBytes(16)
  const iterations = 4096
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256')
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest()
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${stored}:${keyed('Server Key').toString('base64')}`
}

/**
 * Describes, for the operator, what an SQL injection or a leaked DATABASE_URL could do beyond what the program needs.
 * Returns undefined if the program's role has no excess rights.
 */
export async function describeExcess(db: Reader): Promise<string | undefined> {
  const { rows } = await sql<{ isSuperuser: boolean; isOwner: boolean; reachesOut: boolean }>`
    select rolsuper as is_superuser,
           (select pg_has_role(relowner, 'usage') from pg_class where oid = 'public.ledger_transfers'::regclass) as is_owner,
           pg_has_role('pg_execute_server_program', 'usage') or pg_has_role('pg_read_server_files', 'usage')
             or pg_has_role('pg_write_server_files', 'usage') as reaches_out
      from pg_roles where rolname = current_user`.execute(db)
  const [found] = rows
  if (found === undefined) return undefined
  const excess = [
    ...(found.isOwner ? ['change the schema, disable its triggers and rewrite the ledger'] : []),
    ...(found.isSuperuser || found.reachesOut ? ['read files and run programs on the database server'] : []),
  ]
  if (excess.length === 0) return undefined
  return (
    `The program's database role can ${excess.join(', and ')}; ` +
    'give the program its own role, see "Database roles" in docs/operations/running.md'
  )
}

import pg from 'pg'

/**
 * The roles of the database: its owner, which runs migrations; the one that the service runs as; and one to look inside. The
 * superuser that a cluster begins with makes them, and nothing logs in as it afterwards.
 */
export const roles = { owner: 'openwage_owner', app: 'openwage_app', read: 'openwage_read' } as const

/** Makes roles and database in a new cluster, one command a line, as a single-user server reads them. */
export const firstCommands = [
  ...Object.values(roles).map(role => `create role ${role} login`),
  `create database openwage owner ${roles.owner}`,
]
  .map(command => `${command}\n`)
  .join('')

/** The superuser of a new cluster, after PostgreSQL's custom. */
export const superuser = 'postgres'

/** The superuser of a cluster from before there were roles, as which everything ran. It owns the database and all in it. */
const formerSuperuser = 'openwage'

/** Whether an error says that the cluster is from before there were roles. */
export function lacksRoles(error: unknown): boolean {
  // 28000: invalid authorization specification.
  return (
    error instanceof pg.DatabaseError && error.code === '28000' && error.message.includes(`"${roles.app}" does not`)
  )
}

/**
 * Makes the roles in a cluster from before there were any, and gives the database and everything in it to its owner, in one
 * transaction. Several at once take turns; the later ones find nothing to do.
 */
export async function introduceRoles(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client({ ...connection, user: formerSuperuser })
  client.on('error', () => undefined)
  await client.connect()
  try {
    // A batch of statements is one transaction.
    await client.query(introduction)
  } finally {
    await client.end()
  }
}

// `reassign owned` does not take a cluster's first superuser. Indexes and the sequences of columns follow their tables.
const introduction = `
  select pg_advisory_xact_lock(hashtext('openwage roles'));
  do $$
  declare
    command text;
  begin
    if exists (select from pg_roles where rolname = '${roles.app}') then
      return;
    end if;
    for command in
      select format('create role %I login', role) from unnest('{${Object.values(roles).join(',')}}'::text[]) role
      union all
      select format('alter database %I owner to ${roles.owner}', current_database())
      union all
      select owned.command || ' owner to ${roles.owner}' from (
        select format('alter schema %I', nspname), nspowner, oid from pg_namespace
        union all
        select format('alter table %s', oid::regclass), relowner, relnamespace from pg_class where relkind in ('r', 'p', 'v', 'm')
        union all
        select format('alter sequence %s', oid::regclass), relowner, relnamespace from pg_class
         where relkind = 'S' and not exists (
           select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid and deptype in ('a', 'i'))
        union all
        select format('alter routine %s', oid::regprocedure), proowner, pronamespace from pg_proc where prokind <> 'a'
        union all
        select format('alter type %s', oid::regtype), typowner, typnamespace from pg_type
         where typtype in ('d', 'e', 'r')
            or typtype = 'c' and exists (select from pg_class where pg_class.oid = typrelid and relkind = 'c')
        union all
        select format('alter statistics %I.%I', nspname, stxname), stxowner, stxnamespace
          from pg_statistic_ext join pg_namespace on pg_namespace.oid = stxnamespace
      ) owned (command, owner, namespace) join pg_namespace on pg_namespace.oid = owned.namespace
      where owned.owner = '${formerSuperuser}'::regrole and nspname <> 'information_schema' and nspname not like 'pg\\_%'
    loop
      execute command;
    end loop;
  end $$`

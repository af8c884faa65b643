import pg from 'pg'

/** The names that an application gives to its database. */
export type Names = {
  /** Begins the names of folders and processes. */
  app: string
  database: string
  /**
   * `owner` owns the database and runs migrations, the service runs as `app`, and `read` is for queries by hand. The cluster's
   * superuser creates them and is not used afterwards.
   */
  roles: { owner: string; app: string; read: string }
  /** The superuser of clusters from before there were roles. It owns the database and everything in it. */
  formerSuperuser: string
}

/** Creates the roles and the database of a new cluster: one command a line, as a single-user server reads them. */
export function firstCommands({ roles, database }: Names): string {
  return [
    ...Object.values(roles).map(role => `create role ${role} login`),
    `create database ${database} owner ${roles.owner}`,
  ]
    .map(command => `${command}\n`)
    .join('')
}

/** The superuser of a new cluster. */
export const superuser = 'postgres'

/** Whether an error says that the cluster is from before there were roles. */
export function lacksRoles(error: unknown, { roles }: Names): boolean {
  // 28000: invalid authorization specification.
  return (
    error instanceof pg.DatabaseError && error.code === '28000' && error.message.includes(`"${roles.app}" does not`)
  )
}

/**
 * Creates the roles in a cluster from before there were any, and gives the database and everything in it to its owner, in one
 * transaction. Idempotent; concurrent calls take turns.
 */
export async function introduceRoles(connection: pg.ClientConfig, names: Names): Promise<void> {
  const client = new pg.Client({ ...connection, user: names.formerSuperuser })
  client.on('error', () => undefined)
  await client.connect()
  try {
    // Statements that are sent together run in one transaction.
    await client.query(introduction(names))
  } finally {
    await client.end()
  }
}

// `reassign owned` refuses a cluster's first superuser. Indexes and the sequences of columns follow their tables.
const introduction = ({ app, roles, formerSuperuser }: Names) => `
  select pg_advisory_xact_lock(hashtext('${app} roles'));
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

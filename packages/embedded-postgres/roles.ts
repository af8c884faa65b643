/** The names that an application gives to its database. */
export type Names = {
  /** The prefix of folder and process names. */
  app: string
  database: string
  /**
   * `owner` owns the database and runs migrations, the service runs as `app`, and `read` is for queries by hand. The cluster's
   * superuser creates them and is not used afterwards.
   */
  roles: { owner: string; app: string; read: string }
}

/** Commands that create the roles and the database of a new cluster, one per line as single-user mode requires. */
export function firstCommands({ roles, database }: Names): string {
  return [
    ...Object.values(roles).map(role => `create role ${role} login`),
    `create database ${database} owner ${roles.owner}`,
  ]
    .map(command => `${command}\n`)
    .join('')
}

/** The superuser of a cluster. */
export const superuser = 'postgres'

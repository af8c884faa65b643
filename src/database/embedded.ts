import {
  beginRestore as begin,
  type EmbeddedPostgres,
  EmbeddedPostgresProblem,
  type Names,
  type Restoring,
  startEmbeddedPostgres as start,
  useOwnServer,
} from '@midmonth/embedded-postgres'

/** The names of Midmonth's database in the embedded PostgreSQL. */
export const names: Names = {
  app: 'midmonth',
  database: 'midmonth',
  roles: { owner: 'midmonth_owner', app: 'midmonth_app', read: 'midmonth_read' },
}

/**
 * Starts the embedded PostgreSQL with our names, or joins the running one.
 * @throws EmbeddedPostgresProblem, which names DATABASE_URL if the operator's own server would help
 */
export async function startEmbeddedPostgres(
  options: Omit<Parameters<typeof start>[0], 'names'>,
): Promise<EmbeddedPostgres> {
  try {
    return await start({ ...options, names })
  } catch (error) {
    if (!(error instanceof EmbeddedPostgresProblem) || !error.message.endsWith(useOwnServer)) throw error
    throw new EmbeddedPostgresProblem(`${error.message} (set DATABASE_URL)`, { cause: error })
  }
}

/** Like `beginRestore` of the embedded PostgreSQL, with our names. */
export async function beginRestore(options: Omit<Parameters<typeof begin>[0], 'names'>): Promise<Restoring> {
  return await begin({ ...options, names })
}

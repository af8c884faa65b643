import {
  type EmbeddedPostgres,
  EmbeddedPostgresProblem,
  type Names,
  startEmbeddedPostgres as start,
  useOwnServer,
} from '@openwage/embedded-postgres'

/** The names of Openwage's database in the embedded PostgreSQL. */
export const names: Names = {
  app: 'openwage',
  database: 'openwage',
  roles: { owner: 'openwage_owner', app: 'openwage_app', read: 'openwage_read' },
  formerSuperuser: 'openwage',
}

/**
 * Starts the embedded PostgreSQL with our names, or joins the running one.
 * @throws EmbeddedPostgresProblem; where a server of the operator's own would help, it names DATABASE_URL
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

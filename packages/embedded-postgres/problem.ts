/** The embedded PostgreSQL cannot run. The message tells the operator what to do. */
export class EmbeddedPostgresProblem extends Error {
  override name = 'EmbeddedPostgresProblem'
}

/** The last resort in a message. The application appends how to configure it. */
export const useOwnServer = 'use a PostgreSQL server of your own'

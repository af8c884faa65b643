import type pg from 'pg'

// An idle pooler shows itself in the first round: it gives out the session that was given back last, or the one that was given back
// first. A busy one gives out any, and would have to give each connection the same one each time.
const thoroughRounds = 3

/**
 * Rejects a pooler that shares sessions between connections, such as PgBouncer in transaction mode: time-outs, prepared statements and
 * LISTEN would be lost, and be found on the connections of others.
 * @param options.isThorough false for a command, which must not wait for the rounds that only a busy pooler needs
 * @throws with a sentence for the operator
 */
export async function requireOwnSessions(pool: pg.Pool, { isThorough = true } = {}): Promise<void> {
  const clients: pg.PoolClient[] = []
  try {
    // One after the other: if the second is refused, the first is released.
    const first = await pool.connect()
    clients.push(first)
    const second = await pool.connect()
    clients.push(second)
    const owners = new Map<number, pg.PoolClient>()
    for (let round = 1; round <= (isThorough ? thoroughRounds : 1); round++) {
      for (const client of [first, first, second]) {
        const { pid, timeOut } = await sessionOf(client)
        const owner = owners.get(pid) ?? client
        owners.set(pid, client)
        if (owner !== client || owners.size > clients.length || timeOut === '0') {
          throw new Error(
            'a pooler shares sessions between connections, so time-outs and prepared statements are lost; set pool_mode = session for this database, or connect to PostgreSQL itself',
          )
        }
      }
    }
  } finally {
    for (const client of clients) client.release()
  }
}

async function sessionOf(client: pg.PoolClient): Promise<{ pid: number; timeOut: string }> {
  const { rows } = await client.query<{ pid: number; timeOut: string }>(
    `select pg_backend_pid() as pid, current_setting('statement_timeout') as "timeOut"`,
  )
  const [session] = rows
  if (session === undefined) throw new Error('PostgreSQL has no answer')
  return session
}

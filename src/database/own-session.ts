import type pg from 'pg'

// Each attempt is enough for an idle pooler. A busy one may give two connections different sessions, or one the same session twice.
const attemptsMax = 5

/**
 * Rejects a pooler that shares sessions between connections, such as PgBouncer in transaction mode: time-outs, prepared statements and
 * LISTEN would be lost, and be found on the connections of others.
 * @throws with a sentence for the operator
 */
export async function requireOwnSessions(pool: pg.Pool): Promise<void> {
  const clients: pg.PoolClient[] = []
  try {
    // One after the other: if the second is refused, the first is released.
    const first = await pool.connect()
    clients.push(first)
    const second = await pool.connect()
    clients.push(second)
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const before = await sessionOf(first, 'begin')
      await first.query('commit')
      // If sessions are shared, this one takes what the first has just given back, and keeps it.
      const other = await sessionOf(second, 'begin')
      const after = await sessionOf(first)
      await second.query('commit')
      const isOwn = before.pid === after.pid && before.pid !== other.pid
      if (!isOwn || [before, other, after].some(({ timeOut }) => timeOut === '0')) {
        throw new Error(
          'a pooler shares sessions between connections, so time-outs and prepared statements are lost; set pool_mode = session for this database, or connect to PostgreSQL itself',
        )
      }
    }
  } finally {
    for (const client of clients) client.release()
  }
}

async function sessionOf(client: pg.PoolClient, begin = ''): Promise<{ pid: number; timeOut: string }> {
  if (begin !== '') await client.query(begin)
  const { rows } = await client.query<{ pid: number; timeOut: string }>(
    `select pg_backend_pid() as pid, current_setting('statement_timeout') as "timeOut"`,
  )
  const [session] = rows
  if (session === undefined) throw new Error('PostgreSQL has no answer')
  return session
}

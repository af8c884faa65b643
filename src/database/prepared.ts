import type { PostgresPool } from 'kysely'
import type pg from 'pg'
import { sql } from './database.ts'
import { isOutdatedPlan } from './errors.ts'
import { type Begin, forKysely, isBegin, type Lease, lease, statementNames } from './lease.ts'
import { parameterOf } from './parameters.ts'

const mark = '/* answered with the next statement */'

/**
 * Begins the SQL of a statement that returns nothing, inside a transaction. On the connections of batches the statement is not
 * awaited: that saves a round trip, and its failure rejects the next statement. A commit after a failed statement rolls back.
 */
export const answeredWithNext = sql.raw(mark)

/**
 * Gives Kysely connections on which every statement with parameters is prepared.
 * Neither `begin` nor a statement that starts with `answeredWithNext` is awaited.
 */
export function preparing(pool: pg.Pool, begin: Begin): PostgresPool {
  const nameOf = statementNames('batch')
  return {
    options: pool.options,
    async connect() {
      const leased = await lease(pool, begin)
      const send = (text: string, values: readonly unknown[]) =>
        values.length === 0
          ? leased.query(text)
          : leased.query({ name: nameOf(text), text, values: values.map(parameterOf) })
      let unawaited: Promise<unknown> | undefined
      let isOutdated = false
      const query = async (text: string, values: readonly unknown[]) => {
        const answering = send(text, values)
        // The first failure is the cause: later statements fail only because the transaction is aborted.
        const answer = unawaited === undefined ? answering : unawaited.then(() => answering)
        answering.catch(error => {
          if (isOutdatedPlan(error)) isOutdated = true
        })
        unawaited = undefined
        if (!isBegin(text) && !text.startsWith(mark)) return await answer
        unawaited = answer
        unawaited.catch(() => undefined)
        return { command: '', rows: [] }
      }
      // A migration has altered a column that statements of this connection return: they would fail as long as the connection lives.
      return forKysely({ query: query as Lease['query'], release: () => leased.release(isOutdated) })
    },
    end: () => pool.end(),
  }
}

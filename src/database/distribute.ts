import type pg from 'pg'
import type { Db } from './database.ts'
import { type AppRole, applyGrants } from './grants.ts'
import { inTurn } from './migrate.ts'
import { readSchemaState } from './migrations.ts'
import type { DistributionStep } from './node-forms.ts'
import { placeTables } from './placing.ts'

/**
 * Spreads the tables over the nodes, and then gives the rights that the nodes know. Continues where a run that was interrupted has arrived.
 * @param db connected as the owner, like `pool`
 * @param options.shards into how many shards the partners are divided; cannot be changed later without moving all rows
 * @throws Error like `planDistribution`
 */
export async function distribute(
  db: Db,
  pool: pg.Pool,
  app: AppRole,
  { shards, onStep = () => undefined }: { shards?: number; onStep?: (change: string) => void } = {},
): Promise<DistributionStep[]> {
  return await inTurn(pool, async client => {
    if (shards !== undefined) await client.query(`set citus.shard_count = ${shards}`)
    const steps = await placeTables(client, db, onStep)
    const { toContract } = await readSchemaState(db)
    await applyGrants(client, app, { mayRevoke: toContract.length === 0, isSpread: true })
    return steps
  })
}

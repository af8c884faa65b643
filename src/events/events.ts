import { sql, type Tx } from '../db.ts'
import { newId } from '../ids.ts'

/**
 * Appends the event of a state change, in the transaction that makes it. `sequence` grows by one per resource; the
 * caller holds the resource's row, so nobody else can be appending to it.
 * @param data what a partner may know: ids, amounts and states, never bank details or names
 */
export async function append(
  tx: Tx,
  {
    partnerId,
    type,
    resourceId,
    data,
    now,
  }: { partnerId: string; type: string; resourceId: string; data: Record<string, unknown>; now: Date },
): Promise<void> {
  await sql`
    insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
    select ${partnerId}, ${newId('event', now)}, ${type}, ${resourceId},
           coalesce(max(sequence), 0) + 1, ${JSON.stringify(data)}, ${now}
      from events where partner_id = ${partnerId} and resource_id = ${resourceId}`.execute(tx)
}

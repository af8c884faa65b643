import { sql, type Tx } from '../database/database.ts'
import { resetOffset } from '../partners/clocks.ts'
import * as partners from '../partners/partners.ts'

/**
 * Deletes everything that the partner has, except its settings, tiers, keys, audit log and place in the event feed, and sets
 * its clock to real time. The caller opens a pay cycle.
 *
 * A function of the database deletes, because the program may not delete from the books; see
 * docs/decisions/0015-a-clock-per-partner.md.
 */
export async function resetPartner(tx: Tx, { partnerId }: { partnerId: string }): Promise<void> {
  // A partner with ten thousand members takes half a minute: each member's rows are looked for in every table.
  await sql`set local statement_timeout = '110s'`.execute(tx)
  await sql`select from partners where id = ${partnerId} for no key update`.execute(tx)
  await sql`select reset_sandbox_partner(${partnerId})`.execute(tx)
  await resetOffset(tx, partnerId)
  await partners.resumePartner(tx, partnerId)
}

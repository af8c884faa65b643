import { sql, type Tx } from '../../src/database/database.ts'
import { closeException as close } from '../../src/payouts/books/decisions.ts'
import { decideOutcome as say } from '../../src/payouts/books/outcomes.ts'

// For tests of what follows from a decision: each is confirmed by a second person, which the database requires of some.

export const closeException: typeof close = async (tx, decided) => {
  await confirm(tx, { subject: decided.exceptionId, decided: { decision: decided.decision }, now: decided.now })
  return await close(tx, decided)
}

export const decideOutcome: typeof say = async (tx, decided) => {
  await confirm(tx, { subject: decided.payment, decided: { outcome: decided.outcome }, now: decided.now })
  return await say(tx, decided)
}

/** Records that two people have decided, in the transaction that carries their decision out. */
export async function confirm(
  tx: Tx,
  { subject, decided, now }: { subject: string; decided: object; now: Date },
): Promise<void> {
  await sql`
    insert into payout_proposals (subject, decision, note, person, proposed_at, confirmed_by, confirmed_in)
    values (${subject}, ${JSON.stringify(decided)}, 'proposed', 'First', ${now}, 'Second', pg_current_xact_id())`.execute(
    tx,
  )
}

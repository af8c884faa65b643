import { sql, type Tx } from '../../src/database/database.ts'
import { closeException as close } from '../../src/payouts/books/decisions.ts'
import { decideOutcome as say } from '../../src/payouts/books/outcomes.ts'

// For tests of a decision's effects: a second person confirms every decision, as the database requires for some.

export const closeException: typeof close = async (tx, decided) => {
  await confirm(tx, { subject: decided.exceptionId, decided: { decision: decided.decision }, now: decided.now })
  return await close(tx, decided)
}

export const decideOutcome: typeof say = async (tx, decided) => {
  await confirm(tx, { subject: decided.payment, decided: { outcome: decided.outcome }, now: decided.now })
  return await say(tx, decided)
}

/** Records the decision of two people, in the transaction that carries it out. */
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

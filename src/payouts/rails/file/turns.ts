import { type Reader, sql } from '../../../database/database.ts'
import type { FileRailSettings } from './format.ts'
import type { Said, Staged } from './staging.ts'

/** What the records of a file are about, as far as their order of application needs it. */
type Owners = {
  /** Partners, by the reference of a payment. */
  partners: Map<string, string>
  /** Message ids of batches that were sent. */
  batches: Set<string>
}

/** Finds out what some records are about. */
export async function listOwners(
  db: Reader,
  { rail, said }: { rail: FileRailSettings; said: Said[] },
): Promise<Owners> {
  const payments = said.flatMap(({ record }) => (record.type === 'payment' ? [record.reference] : []))
  const { rows } = await sql<{ reference: string; partnerId: string }>`
    select reference, partner_id from payouts
     where rail = ${rail.name} and reference = any(${[...new Set(payments)]}::text[])`.execute(db)
  const debits = said.flatMap(({ record }) => {
    return record.type === 'entry' && record.amount.amount < 0n && record.reference !== null ? [record.reference] : []
  })
  const { rows: batches } = await sql<{ messageId: string }>`
    select message_id from payout_batches
     where rail = ${rail.name} and message_id = any(${[...new Set(debits)]}::text[]) and sending_at is not null`.execute(
    db,
  )
  return {
    partners: new Map(rows.map(({ reference, partnerId }) => [reference, partnerId])),
    batches: new Set(batches.map(({ messageId }) => messageId)),
  }
}

// After all others.
const statementStep = 2_147_483_647

/**
 * Gives the records of a file their turns. The records of one message about payments and other money can be applied in any
 * order, as long as those about the same payment stay in the order of the file, so they take turns partner by partner. An answer
 * about a whole batch depends on what was said before it, and what follows may depend on it, so it has its own step.
 * Statements come last: a balance is compared with the books, which have all entries then.
 */
export class Turns {
  #messageId: string | undefined
  #step = 0
  #place = 0

  next(said: Said, { partners, batches }: Owners): Staged {
    const { head, record } = said
    if (head.messageId !== this.#messageId) this.#step += 1
    this.#messageId = head.messageId
    this.#place += 1
    const turn = { partnerId: '', place: this.#place, said }
    if (record.type === 'statement') return { ...turn, step: statementStep }
    const isAboutBatch =
      record.type === 'batch' ||
      (record.type === 'entry' && record.amount.amount < 0n && batches.has(record.reference ?? ''))
    if (isAboutBatch) {
      const step = this.#step + 1
      this.#step += 2
      return { ...turn, step }
    }
    const partnerId = record.type === 'payment' ? (partners.get(record.reference) ?? '') : ''
    return { ...turn, partnerId, step: this.#step }
  }
}

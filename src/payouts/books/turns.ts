import { type Reader, sql } from '../../database/database.ts'
import { listSent } from './batches.ts'
import { hasReference } from './by-reference.ts'
import { debitedBatchOf, otherMoneyOf } from './entries.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { Explanations } from './float-movements.ts'
import type { Said, Staged } from './staging.ts'

/** The subjects of some records, as far as the order of application needs them. */
type Owners = {
  /** Partners, by the reference of a payment. */
  payments: Map<string, string>
  /** What may explain entries that are not payments. */
  explanations: Explanations
  /** Message ids of batches that were sent. */
  batches: Set<string>
}

/** Finds out what some records are about. */
export async function listOwners(
  db: Reader,
  { rail, said }: { rail: FileRailSettings; said: Said[] },
): Promise<Owners> {
  const references = said.flatMap(({ record }) => (record.type === 'payment' ? [record.reference] : []))
  const { rows } = await sql<{ reference: string; partnerId: string }>`
    select reference, partner_id from payouts
     where rail = ${rail.name} and ${hasReference(references)}`.execute(db)
  const entries = said.flatMap(({ head, record }) => (record.type === 'entry' ? [{ head, record }] : []))
  const messageIds = entries.flatMap(({ record }) => debitedBatchOf(record))
  return {
    payments: new Map(rows.map(({ reference, partnerId }) => [reference, partnerId])),
    explanations: await Explanations.read(
      db,
      rail,
      entries.map(({ head, record }) => otherMoneyOf(head, record)),
    ),
    batches: await listSent(db, { rail: rail.name, messageIds }),
  }
}

// After all others.
const statementStep = 2_147_483_647

/**
 * Gives the records of a file their turns. The records of one message about payments and other money can be applied in any order, as long
 * as those about the same payment stay in the order of the file, so they take turns partner by partner. An answer about a whole batch
 * depends on what was said before it, and what follows may depend on it, so it has its own step. Statements come last: a balance is
 * compared with the books, which then have all entries.
 */
export class Turns {
  #messageId: string | undefined
  #step = 0
  #place = 0

  next(said: Said, owners: Owners): Staged {
    const { head, record } = said
    if (head.messageId !== this.#messageId) this.#step += 1
    this.#messageId = head.messageId
    this.#place += 1
    const turn = { partnerId: partnerOf(said, owners) ?? '', place: this.#place, said }
    if (record.type === 'statement') return { ...turn, step: statementStep }
    const isAboutBatch =
      record.type === 'batch' ||
      (record.type === 'entry' && debitedBatchOf(record).some(messageId => owners.batches.has(messageId)))
    if (!isAboutBatch) return { ...turn, step: this.#step }
    this.#step += 2
    return { ...turn, step: this.#step - 1 }
  }
}

function partnerOf({ head, record }: Said, { payments, explanations }: Owners): string | undefined {
  if (record.type === 'payment') return payments.get(record.reference)
  return record.type === 'entry' ? explanations.partnerOf(otherMoneyOf(head, record)) : undefined
}

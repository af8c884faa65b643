import { type Reader, sql, type Tx } from '../../database/database.ts'
import type { BankFileHead, BankRecord, BatchLevel } from '../formats/bank-files.ts'
import { endUnanswered } from './bank-records.ts'
import { lockAnswered, markBatch } from './batch-answers.ts'
import * as batches from './batches.ts'
import { referencedPayouts } from './by-reference.ts'
import * as copies from './copies.ts'
import * as exceptions from './exceptions.ts'
import { gravestOf, isAboutPayee, namesDuplicate, reasonOf } from './reasons.ts'
import type { Context } from './record-keys.ts'

// A bank that gets a file twice pays the first copy and rejects the second, as a whole or payment by payment. So a rejection of a
// whole batch gives the money back only if there was one copy and the reason is the file's own; otherwise people decide.

type Level = BatchLevel | 'payment'

/** Why something was rejected. */
type Rejection = { level: Level; reasonCodes: readonly string[]; hasText: boolean; isDuplicate: boolean }

/** A batch that a file rejects as a whole, with the reasons of the whole and of its payments, each once. */
export type RejectedBatch = {
  id: string
  messageId: string
  /** The bank's id of the message that rejects it. */
  rejectedBy: string
  line: number
  rejections: readonly Rejection[]
}

/** Collects what a file rejects while it is read for the first time, in little memory: a batch can have 100,000 payments. */
export class Rejections {
  #messageId = ''
  readonly #reasons = new Map<string, { index: number; rejection: Rejection }>()
  readonly #batches = new Map<string, { line: number; reasons: Set<number> }>()
  readonly #payments = new Map<string, { line: number; reason: number; isAboutPayee: boolean }>()

  add(part: { type: 'head'; head: BankFileHead } | BankRecord): void {
    if (part.type === 'head') this.#messageId ||= part.head.messageId
    if (part.type === 'batch' && part.state === 'rejected') {
      const batch = this.#batches.get(part.messageId) ?? { line: part.line, reasons: new Set() }
      batch.reasons.add(this.#indexOf(part, part.level))
      this.#batches.set(part.messageId, batch)
    }
    if (part.type === 'payment' && part.state === 'failed') {
      const { reference, line } = part
      // Of two reasons for one payment, the one that needs a decision counts.
      if (this.#payments.get(reference)?.isAboutPayee === false) return
      const reason = this.#indexOf(part, 'payment')
      this.#payments.set(reference, { line, reason, isAboutPayee: isAboutPayee(part) })
    }
  }

  #indexOf(part: Extract<BankRecord, { type: 'batch' | 'payment' }>, level: Level): number {
    const { reasonCodes, reasonText } = part
    const rejection = { level, reasonCodes, hasText: reasonText !== null, isDuplicate: namesDuplicate(part) }
    const key = JSON.stringify(rejection)
    const known = this.#reasons.get(key)
    if (known !== undefined) return known.index
    this.#reasons.set(key, { index: this.#reasons.size, rejection })
    return this.#reasons.size - 1
  }

  /**
   * Finds the batches that the file rejects as a whole: those that it says are rejected, and those of which it rejects every payment
   * that has not failed, unless each for a reason about its payee.
   */
  async listBatches(tx: Tx, rail: string): Promise<RejectedBatch[]> {
    if (this.#batches.size === 0 && this.#payments.size === 0) return []
    const payments = [...this.#payments]
    const messageIds = [...this.#batches.keys()]
    const { rows } = await sql<{ id: string; messageId: string; line: number | null; reasons: number[] | null }>`
      with rejected as materialized (
        select p.batch_id, count(*) filter (where p.outcome is null or p.outcome = 'paid') as payment_count, min(r.line) as line,
               array_agg(distinct r.reason) filter (where not r.is_about_payee) as reasons
          from unnest(${payments.map(([reference]) => reference)}::text[], ${payments.map(([, { line }]) => line)}::integer[],
                      ${payments.map(([, { reason }]) => reason)}::integer[],
                      ${payments.map(([, each]) => each.isAboutPayee)}::boolean[])
                 as r (reference, line, reason, is_about_payee)
          join (${referencedPayouts}) on f.reference = r.reference and p.rail = ${rail} and p.removed_at is null
         group by p.batch_id
      ), waiting as materialized (
        select batch_id, count(*) as count from payouts
         where batch_id = any(array(select batch_id from rejected)) and removed_at is null and (outcome is null or outcome = 'paid')
         group by batch_id
      )
      select b.id, b.message_id, r.line, r.reasons
        from payout_batches b left join rejected r on r.batch_id = b.id
       where b.id = any(array(select batch_id from rejected
                              union select id from payout_batches
                                     where rail = ${rail} and message_id = any(${messageIds}::text[])))
         and b.sending_at is not null
         and (b.message_id = any(${messageIds}::text[])
              or (r.reasons is not null and r.payment_count > 0
                  and r.payment_count = (select count from waiting w where w.batch_id = b.id)))
       order by b.id`.execute(tx)
    const all = [...this.#reasons.values()].map(({ rejection }) => rejection)
    return rows.map(({ id, messageId, line, reasons }) => {
      const whole = this.#batches.get(messageId)
      const indexes = [...(whole?.reasons ?? []), ...(reasons ?? [])]
      const rejections = indexes.flatMap(index => all[index] ?? [])
      return { id, messageId, rejectedBy: this.#messageId, line: whole?.line ?? line ?? 0, rejections }
    })
  }
}

/** The batches that a file rejects as a whole, as they were found when it was read. */
export async function readRejected(db: Reader, fileId: string): Promise<RejectedBatch[]> {
  const { rows } = await sql<{ rejectedBatches: string }>`
    select rejected_batches from bank_files where id = ${fileId}`.execute(db)
  return JSON.parse(rows[0]?.rejectedBatches ?? '[]')
}

/**
 * Decides about each batch that a file rejects as a whole, after all that the file says about single payments. Safe to run twice: a
 * batch that was given back is rejected, and an exception opens once.
 */
export async function decideRejections(tx: Tx, context: Context, rejected: readonly RejectedBatch[]): Promise<void> {
  for (const batch of rejected) await decide(tx, context, batch)
}

// The kinds of exceptions about a rejected batch. One open exception is enough.
const kinds = ['duplicate', 'rejected', 'float', 'contradiction'] as const

const earlierMax = 100

async function decide(tx: Tx, context: Context, rejected: RejectedBatch): Promise<void> {
  const { rail, fileId, now } = context
  const { messageId: reference, rejectedBy: messageId, line, rejections } = rejected
  const reasonCode = gravestOf(rejections.flatMap(({ reasonCodes }) => reasonCodes))
  const batch = await lockAnswered(tx, context, reference)
  if (batch === undefined) return
  const file = { id: fileId, line }
  const earlier = (
    await exceptions.listAbout(tx, { rail: rail.name, references: [reference], take: earlierMax })
  ).filter(({ kind }) => kinds.some(each => each === kind))
  const openException = async (kind: (typeof kinds)[number], reason: string) => {
    const open = earlier.find(({ closedAt }) => closedAt === null)
    if (open !== undefined && kind !== 'duplicate') return
    if (open !== undefined) return await exceptions.restate(tx, { id: open.id, kind, reason })
    const fingerprint = `${messageId} rejects ${reference} ${reasonCode ?? ''}`
    await exceptions.open(tx, [{ rail: rail.name, kind, fingerprint, reason, file, reference, reasonCode }], now)
  }
  if (batch.paidCount > 0)
    return await openException('contradiction', 'The bank rejects a batch of which it has reported payments as paid')
  if (batch.status === 'rejected' || batch.status === 'settled' || batch.unansweredCount === 0) return
  if (rejections.some(({ isDuplicate }) => isDuplicate))
    return await openException(
      'duplicate',
      'The bank takes the batch for a duplicate; find out which of the two it paid',
    )
  if (reasonOf(reasonCode).next === 'decide_once_funded')
    return await openException('float', 'The paying account lacked the money for the batch; top it up and decide')
  const doubt = await doubtOf(tx, { batchId: batch.id, rejections, isRejectedAgain: earlier.length > 0 })
  if (doubt !== null) return await openException('rejected', doubt)
  const source = { rail: rail.name, messageId, keyPrefix: `rejected ${reference}`, file }
  await endUnanswered(tx, { source, batchId: batch.id, outcome: 'failed', reasonCode, now })
  await markBatch(tx, { batchId: batch.id, as: 'rejected', now })
  await batches.recordGivenBack(tx, { batchId: batch.id, now })
}

type RejectedWhole = { batchId: string; rejections: readonly Rejection[]; isRejectedAgain: boolean }

/** Why the bank may pay a batch that it rejects, in a sentence for the operator; null if it does not. */
async function doubtOf(tx: Tx, { batchId, rejections, isRejectedAgain }: RejectedWhole): Promise<string | null> {
  const ask = 'ask the bank whether it pays another copy'
  if (await batches.hasSignOfCopy(tx, batchId))
    return `The bank rejects the batch, but has taken a copy of its file; ${ask}`
  const debit = await findDebit(tx, batchId)
  if (debit !== undefined)
    return `The bank rejects the batch, but the debit of the exception ${debit} may be that of the batch or a payment of it; ${ask}`
  if (isRejectedAgain) return `The bank rejects the batch again; ${ask}`
  const { length: count } = await copies.list(tx, batchId)
  if (count === 0) return `The bank rejects the batch, though no copy of its file has left; ${ask}`
  if (count > 1) return `The bank rejects the batch, but its file may have left ${count} times; ${ask}`
  if (!rejections.some(({ reasonCodes }) => reasonCodes.length > 0))
    return `The bank rejects the batch without a reason code; ${ask}`
  if (!rejections.every(isOfFile))
    return `The bank rejects the batch for a reason that may not apply to another copy of the file; ${ask}`
  return null
}

/** Money that left, waits for a decision, and may have paid the batch or a payment of it. @returns the exception */
async function findDebit(db: Reader, batchId: string): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select e.id from payout_exceptions e join payout_batches b on b.rail = e.rail
     where b.id = ${batchId} and e.closed_at is null and e.kind = 'money_out' and e.booked_on is not null
       and (-e.amount = b.control_total
            or -e.amount = (select sum(net_amount) from payouts where batch_id = ${batchId} and outcome is null)
            or -e.amount in (select net_amount from payouts where batch_id = ${batchId} and outcome is null))
     order by e.id limit 1`.execute(db)
  return rows[0]?.id
}

/** Whether a rejection is about the content of the file, which is the same in every copy. */
function isOfFile({ level, reasonCodes, hasText }: Rejection): boolean {
  if (reasonCodes.length === 0) return !hasText
  return reasonCodes.every(
    code => code === 'FF01' || code === 'AM10' || (code === 'AC01' && level === 'payment-information'),
  )
}

import { createHash } from 'node:crypto'
import stringify from 'safe-stable-stringify'
import type { Reader } from '../database/database.ts'
import { conflict, type Issue, issue, Problem, problem } from '../kernel/errors.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import * as partnerBatches from '../payouts/books/partner-batches.ts'
import { type Answer, type AnswerFormat, answerFormats } from '../payouts/formats/answers.ts'
import type { BankFileAnswers, BankFileOutcome } from './bank-file-schema.ts'

// The answer is in memory, and kept with its idempotency key: at most seven megabytes.
const paymentsMax = 10_000

type BatchToAnswer = { partnerId: string; batchId: string; asked: BankFileAnswers; rails: readonly FileRailSettings[] }

/**
 * Writes the file in which the bank of a rail answers a sent batch. Changes nothing: the file takes effect when it is imported. The same
 * request gives the same bytes.
 * @throws Problem `BodyValidation`, `NotFound`, `Conflict`, `UnprocessableEntity`
 */
export async function answerBatch(
  db: Reader,
  { partnerId, batchId, asked, rails }: BatchToAnswer,
): Promise<{ name: string; mediaType: 'text/xml' | 'text/csv'; text: string }> {
  const { format, batch: ofBatch, outcomes = [] } = asked
  refuse(faultsOf(asked))
  const batch = await partnerBatches.find(db, { partnerId, batchId })
  if (batch === undefined) throw problem('NotFound', `There is no batch ${batchId} with only your payments`)
  const rail = rails.find(({ name }) => name === batch.rail)
  const debtor = rail?.debtors[batch.debtor]
  if (rail === undefined || debtor === undefined)
    throw problem('UnprocessableEntity', `The rail ${batch.rail} or its account is no longer configured`)
  const write = rail.format.answers?.[format]
  if (write === undefined) throw problem('UnprocessableEntity', unreadable(rail, format))
  if (batch.sentAt === null) throw conflict(`The batch is ${batch.status}; the bank answers it once it is sent`)
  if (batch.paymentCount > paymentsMax)
    throw problem('UnprocessableEntity', `A batch of more than ${paymentsMax} payments is not answered`)
  const payments = await partnerBatches.listPayments(db, { partnerId, batchId, countMax: paymentsMax })
  const known = new Set(payments.map(({ reference }) => reference))
  refuse(
    outcomes.flatMap(({ paymentReference }, index) =>
      paymentReference === undefined || known.has(paymentReference)
        ? []
        : [fault(index, 'paymentReference', `${paymentReference} is not a payment of this batch`)],
    ),
  )
  const { mediaType, extension } = answerFormats[format]
  const written = write({
    messageId: messageIdOf(batch.id, asked),
    createdAt: batch.sentAt,
    bookedOn: batch.valueDate,
    batchMessageId: batch.messageId,
    currency: batch.currency,
    account: debtor.account,
    batch: ofBatch && {
      level: ofBatch.level ?? 'group',
      state: ofBatch.outcome,
      reasonCode: ofBatch.reasonCode ?? null,
      reasonText: ofBatch.reasonText ?? null,
    },
    answers: answersTo(payments, { format, outcomes }),
  })
  let text = ''
  for await (const chunk of written) text += chunk
  return { name: `${batch.messageId}-${format}.${extension}`, mediaType, text }
}

function refuse(issues: Issue[]): void {
  if (issues.length > 0) throw new Problem('BodyValidation', issues)
}

function fault(index: number, field: keyof BankFileOutcome, message: string): Issue {
  return issue('BodyValidation', message, { path: `outcomes.${index}.${field}` })
}

type Outcomes = { format: AnswerFormat; outcomes: readonly BankFileOutcome[] }

/** Finds answers in the body that no file of this format can give. */
function faultsOf({ format, batch, outcomes }: BankFileAnswers): Issue[] {
  const faults = faultsOfOutcomes({ format, outcomes: outcomes ?? [] })
  const add = (path: string, message: string) => faults.push(issue('BodyValidation', message, { path }))
  if (batch === undefined && outcomes === undefined) add('outcomes', 'Give outcomes, batch, or both')
  if (batch !== undefined && !answerFormats[format].answersBatches)
    add('batch', `${format} cannot answer for a whole batch; use pain.002`)
  for (const field of ['reasonCode', 'reasonText'] as const)
    if (batch?.[field] !== undefined && batch.outcome !== 'rejected')
      add(`batch.${field}`, `A batch that is ${batch.outcome} has no reason; leave it out`)
  return faults
}

function faultsOfOutcomes({ format, outcomes }: Outcomes): Issue[] {
  const { states, reasonCharsMax } = answerFormats[format]
  const seen = new Set<string | undefined>()
  return outcomes.flatMap(({ paymentReference, outcome, reasonCode, reasonText }, index) => {
    const isRepeated = seen.has(paymentReference)
    seen.add(paymentReference)
    const isSayable = (states as readonly string[]).includes(outcome)
    const hasReason = outcome === 'failed' || outcome === 'returned'
    return [
      ...(isRepeated
        ? [fault(index, 'paymentReference', `${paymentReference ?? 'The default'} already has an outcome`)]
        : []),
      ...(isSayable ? [] : [fault(index, 'outcome', `${format} cannot say ${outcome}; use ${states.join(', ')}`)]),
      ...Object.entries({ reasonCode, reasonText })
        .filter(([, value]) => value !== undefined && !hasReason)
        .map(([field]) =>
          fault(index, field as keyof BankFileOutcome, `A payment that is ${outcome} has no reason; leave it out`),
        ),
      ...(reasonCode === undefined || reasonCode.length <= reasonCharsMax
        ? []
        : [fault(index, 'reasonCode', `A reason of ${format} has at most ${reasonCharsMax} characters`)]),
    ]
  })
}

function unreadable({ name, format: { answers = {} } }: FileRailSettings, format: AnswerFormat): string {
  const read = Object.keys(answers)
  return `The rail ${name} does not read ${format}${read.length === 0 ? '' : `; it reads ${read.join(', ')}`}`
}

async function* answersTo(
  payments: readonly { reference: string; netAmount: bigint }[],
  { format, outcomes }: Outcomes,
): AsyncGenerator<Answer> {
  const byReference = new Map(outcomes.map(each => [each.paymentReference, each]))
  for (const { reference, netAmount } of payments) {
    const given = byReference.get(reference) ?? byReference.get(undefined)
    // The bank is silent about it.
    if (given === undefined) continue
    const { outcome: state, reasonCode = answerFormats[format].defaultReason, reasonText = null } = given
    const hasReason = state === 'failed' || state === 'returned'
    yield { reference, amount: netAmount, state, reasonCode: hasReason ? reasonCode : null, reasonText }
  }
}

/** Identifies the answer, so that a second import is recognised as the same message. */
function messageIdOf(batchId: string, asked: BankFileAnswers): string {
  const digest = createHash('sha256')
    .update(stringify([batchId, asked]))
    .digest('hex')
  return `SIM${digest.slice(0, 21).toUpperCase()}`
}

import { type Static, Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { WireMoney } from '../kernel/money.ts'
import { namedObject, nullable, strict, strictObject, wordOf } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'
import { batchStatuses } from '../payouts/books/batch-lifecycle.ts'
import { type AnswerFormat, answerFormats } from '../payouts/formats/answers.ts'
import { batchLevels } from '../payouts/formats/bank-files.ts'
import { referencePattern } from '../payouts/payments/reference.ts'

const reasonText = Type.Optional(
  Type.String({
    minLength: 1,
    // AddtlInf is a Max105Text.
    maxLength: 105,
    description: 'The reason in words.',
    examples: ['DUPLICATE FILE: message id already processed'],
  }),
)

const BankFileOutcome = strictObject({
  paymentReference: Type.Optional(
    Type.String({
      pattern: `^${referencePattern}$`,
      description:
        'A payment of the batch, by the `paymentReference` of its withdrawal. Without it, the outcome applies to all payments that are not named.',
      examples: ['MMABCDEFGHIJKLMN'],
    }),
  ),
  outcome: wordOf(['accepted', 'pending', 'paid', 'failed', 'returned'], {
    description:
      'The bank’s answer. `pain.002`: `accepted`, `pending`, `paid` or `failed`. `camt.054`: `paid` or `returned`. `arucs-csv`: `returned`.',
  }),
  reasonCode: Type.Optional(
    Type.String({
      pattern: '^[0-9A-Z]{1,4}$',
      description:
        'Why the payment failed or was returned, one character for `arucs-csv`; by default `AC04`, `BE01` (`camt.054`) or `B` (`arucs-csv`). See docs/reference/bank-files.md.',
      examples: ['AC04'],
    }),
  ),
  reasonText,
})
export type BankFileOutcome = Static<typeof BankFileOutcome>

const BankFileBatchOutcome = Type.Object(
  {
    outcome: wordOf(['accepted', 'pending', 'rejected']),
    level: Type.Optional(
      wordOf(batchLevels, { description: 'Where the file says so: `GrpSts` (the default) or `PmtInfSts`.' }),
    ),
    reasonCode: Type.Optional(
      Type.String({
        pattern: '^[0-9A-Z]{1,4}$',
        description: 'Why the batch was rejected; by default, the bank gives no code.',
        examples: ['DU01'],
      }),
    ),
    reasonText,
  },
  { ...strict, description: 'The bank’s answer about the whole batch, only in `pain.002`.' },
)

export const BankFileAnswers = Type.Object(
  {
    format: wordOf(Object.keys(answerFormats) as AnswerFormat[], {
      description: 'The kind of file. The rail must read it.',
    }),
    batch: Type.Optional(BankFileBatchOutcome),
    outcomes: Type.Optional(
      Type.Array(BankFileOutcome, {
        minItems: 1,
        maxItems: 10_000,
        description:
          'The outcomes, each payment at most once. The bank is silent about payments without an outcome. Required unless `batch` is given.',
      }),
    ),
  },
  { ...strict, examples: [{ format: 'pain.002', outcomes: [{ outcome: 'paid' }] }] },
)
export type BankFileAnswers = Static<typeof BankFileAnswers>

export const BankFile = namedObject('SandboxBankFile', {
  batchId: Id('payoutBatch'),
  rail: Type.String({ description: 'The name of the rail in the operator’s configuration.' }),
  status: wordOf(batchStatuses),
  valueDate: Type.String({
    format: 'date',
    description: 'The day on which the bank executes the batch; for Bacs, the processing day.',
  }),
  paymentCount: Type.Integer({ minimum: 0 }),
  controlTotal: WireMoney,
  messageId: Type.String({ description: 'Identifies the batch at the bank.' }),
  sentAt: nullable(Instant),
  formats: Type.Array(wordOf(Object.keys(answerFormats) as AnswerFormat[]), {
    description: 'The kinds of files that can answer the batch.',
  }),
})

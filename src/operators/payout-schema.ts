import { Type } from 'typebox'
import { Id } from '../ids.ts'
import { CurrencyCode, SignedMoney, toWire, WireMoney } from '../money.ts'
import type * as exceptions from '../payouts/exceptions.ts'
import * as batches from '../payouts/rails/file/batches.ts'
import { Instant } from '../time.ts'

const strict = { additionalProperties: false }
const InstantOrNull = Type.Union([Instant, Type.Null()])
const TextOrNull = Type.Union([Type.String(), Type.Null()])
const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

const hasMore = Type.Boolean({ description: 'Whether there are more after the last of these.' })

export const Rail = Type.Object(
  {
    name: Type.String({ examples: ['sepa'] }),
    currency: CurrencyCode,
    kind: Type.Enum(['files', 'api'], { type: 'string', description: 'How payments reach the bank.' }),
    isByHand: Type.Boolean({ description: 'Whether operators carry its files to the bank and back.' }),
    hold: Type.Union(
      [
        Type.Object(
          { since: Instant, by: Type.String({ description: 'The operator who holds it.', examples: ['Ada'] }) },
          strict,
        ),
        Type.Null(),
      ],
      { description: 'Null unless the rail is held. Nothing is sent through a rail that is held.' },
    ),
  },
  { title: 'Rail', ...strict },
)
export const Rails = Type.Object({ rails: Type.Array(Rail) }, { title: 'Rails', ...strict })

export const BatchStatus = Type.Enum([...batches.batchStatuses], { title: 'PayoutBatchStatus', type: 'string' })

const batch = {
  id: Id('payoutBatch'),
  messageId: Type.String({ description: 'The batch’s name in its file and in the bank’s answers.' }),
  rail: Type.String({ examples: ['sepa'] }),
  debtor: Type.String({ description: '`default`, or the partner whose own account pays.' }),
  valueDate: Day,
  isInstant: Type.Boolean(),
  cutOffAt: Type.Unsafe<string>({ ...Instant, description: 'Until then payments join the batch.' }),
  status: BatchStatus,
  needsApproval: Type.Boolean({ description: 'Whether it is complete and waits for people to approve it.' }),
  held: Type.Boolean({ description: 'Whether an operator holds it back.' }),
  paymentCount: Type.Integer({ minimum: 0 }),
  total: WireMoney,
  fileName: TextOrNull,
  fileSha256: TextOrNull,
  nameCheck: Type.Union([Type.String(), Type.Null()], { description: 'What the bank says about the payees’ names.' }),
  closedAt: InstantOrNull,
  approvedAt: InstantOrNull,
  approvedAutomatically: Type.Boolean(),
  sentAt: InstantOrNull,
}

export const Batches = Type.Object(
  { batches: Type.Array(Type.Object(batch, { title: 'PayoutBatchSummary', ...strict })), hasMore },
  { title: 'PayoutBatches', ...strict },
)

export const Batch = Type.Object(
  {
    ...batch,
    approvals: Type.Array(Type.Object({ person: Type.String(), at: Instant }, { title: 'PayoutApproval', ...strict }), {
      description: 'Who approved it, oldest first.',
    }),
    approvalsNeeded: Type.Integer({ minimum: 1, description: 'How many people must approve it.' }),
  },
  { title: 'PayoutBatch', ...strict },
)

export const Payments = Type.Object(
  {
    payments: Type.Array(
      Type.Object(
        {
          reference: Type.String({ examples: ['OWK7Q2MZ4TB5XJ3A'] }),
          partnerId: Id('partner'),
          withdrawalId: Id('withdrawal'),
          amount: WireMoney,
          outcome: Type.Union([Type.Enum(['paid', 'failed', 'returned'], { type: 'string' }), Type.Null()]),
          reason: TextOrNull,
          removedAt: Type.Union([Instant, Type.Null()], { description: 'When an operator took it out.' }),
        },
        { title: 'BatchPayment', ...strict },
      ),
    ),
    hasMore,
  },
  { title: 'BatchPayments', ...strict },
)

export const RemovedPayment = Type.Object(
  { partnerId: Id('partner'), withdrawalId: Id('withdrawal'), batchId: Id('payoutBatch') },
  { title: 'RemovedPayment', ...strict },
)

export const ExportedFile = Type.Object(
  { name: Type.String(), sha256: Type.String(), valueDate: Day },
  { title: 'ExportedFile', ...strict },
)

export const ImportedFile = Type.Object(
  {
    fileId: Id('bankFile'),
    result: Type.Enum(['imported', 'repeated'], {
      type: 'string',
      description: '`repeated`: a file with the same bytes was imported before; nothing changed.',
    }),
    records: Type.Integer({ minimum: 0 }),
  },
  { title: 'ImportedFile', ...strict },
)

const exceptionKinds = [
  ...(['unmatched', 'amount', 'contradiction', 'duplicate', 'refused', 'money_in', 'money_out', 'float'] as const),
  'blocked',
  'unreadable',
] as const satisfies exceptions.ExceptionKind[]

export const Exception = Type.Object(
  {
    id: Id('payoutException'),
    rail: Type.String({ examples: ['sepa'] }),
    kind: Type.Enum([...exceptionKinds], { type: 'string', description: 'Why the answer of the bank did not fit.' }),
    reference: TextOrNull,
    partnerId: Type.Union([Id('partner'), Type.Null()]),
    withdrawalId: Type.Union([Id('withdrawal'), Type.Null()]),
    outcome: Type.Union([Type.Enum(['paid', 'failed', 'returned'], { type: 'string' }), Type.Null()], {
      description: 'What the bank says became of the payment.',
    }),
    amount: Type.Union([SignedMoney, Type.Null()], { description: 'Negative if money left the account.' }),
    reasonCode: TextOrNull,
    reason: Type.String(),
    fileName: TextOrNull,
    line: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], { description: 'Of the bank’s file.' }),
    openedAt: Instant,
    closedAt: InstantOrNull,
    closedBy: TextOrNull,
    decision: TextOrNull,
    note: TextOrNull,
  },
  { title: 'PayoutException', ...strict },
)

export const Exceptions = Type.Object(
  { exceptions: Type.Array(Exception), hasMore },
  { title: 'PayoutExceptions', ...strict },
)

export function batchOnWire({ controlTotal, currency, sendingAt: _, ...rest }: batches.Batch) {
  const instants = ['cutOffAt', 'closedAt', 'approvedAt', 'sentAt'] as const
  return {
    ...rest,
    ...Object.fromEntries(instants.map(name => [name, rest[name]?.toISOString() ?? null])),
    needsApproval: rest.status === 'building' && rest.closedAt !== null,
    total: toWire({ amount: controlTotal, currency }),
  }
}

export function exceptionOnWire({ amount, currency, openedAt, closedAt, ...rest }: exceptions.Exception) {
  return {
    ...rest,
    amount: amount === null || currency === null ? null : toWire({ amount, currency }),
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
  }
}

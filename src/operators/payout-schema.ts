import { type Static, Type } from 'typebox'
import { hasMoreField } from '../contract/list.ts'
import { Id } from '../kernel/ids.ts'
import { CurrencyCode, SignedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, strict, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import { batchStatuses } from '../payouts/books/batch-lifecycle.ts'
import type * as batches from '../payouts/books/batches.ts'
import type * as exceptions from '../payouts/books/exceptions.ts'
import { outcomesByHand } from '../payouts/books/outcomes.ts'
import type { Proposal } from '../payouts/books/proposals.ts'
import { answerSources, type PaymentHistory } from '../payouts/history.ts'
import { referencePattern } from '../payouts/payments/reference.ts'
import { Day } from './float-schema.ts'
import { line } from './partner-schema.ts'

const reason = nullable(Type.String(), 'Null if none was given.')

export const EarlyClosing = namedObject('EarlyClosing', {
  note: line(500, { description: 'Why.', examples: ['the bank closes early today'] }),
})

export const ImportingFile = namedObject('ImportingFile', {
  fileId: Id('bankFile'),
  rail: Type.String({ examples: ['sepa'] }),
  name: Type.String({ examples: ['camt053.xml'] }),
  status: wordOf(['importing']),
  records: Type.Integer({ minimum: 0, description: 'How many records the file has.' }),
  applied: Type.Integer({ minimum: 0, description: 'How many records are imported.' }),
  receivedAt: Instant,
})

const brake = nullable(
  namedObject('RailBrake', {
    batchId: Id('payoutBatch', 'The batch that was given back.'),
    since: Instant,
    awaits: Type.String({
      format: 'date',
      description: 'The day whose statement shows that the batch was not paid.',
    }),
    reason: Type.String({ description: 'Why batches of the rail await approval by people, in words.' }),
  }),
  'Null unless a whole batch was given back and no statement shows yet that the bank did not pay it. Until then people approve every batch of the rail.',
)

export const Rail = namedObject('Rail', {
  name: Type.String({ examples: ['sepa'] }),
  isConfigured: Type.Boolean({
    description:
      'Whether the rail is in `MIDMONTH_RAILS`. A rail that was removed from the settings is listed while it is held.',
  }),
  currency: nullable(CurrencyCode, 'Null if the rail is not configured.'),
  kind: nullable(wordOf(['files', 'api']), 'How payments reach the bank. Null if the rail is not configured.'),
  isByHand: Type.Boolean({ description: 'Whether operators carry its files to the bank and back.' }),
  importing: Type.Array(ImportingFile, {
    description:
      'Bank files that are partly imported. If the importing process is killed, the worker continues the import, or importing the same file again does.',
  }),
  hold: nullable(
    namedObject('RailHold', {
      since: Instant,
      by: Type.String({ description: 'The operator who holds it.', examples: ['Ada'] }),
      reason,
    }),
    'Null unless the rail is held. Nothing is sent through a held rail.',
  ),
  brake,
})
export const Rails = namedObject('Rails', { rails: Type.Array(Rail) })

const ProposedDecision = nullable(
  namedObject('ProposedDecision', {
    decision: Type.String({ description: 'The decision and its fields, as JSON.' }),
    note: Type.String(),
    person: Type.String({
      description: 'Who proposed the decision. Another person confirms it with the same request.',
    }),
    proposedAt: Instant,
  }),
  'A decision that takes two people and that one person has made.',
)

export const BatchStatus = wordOf(batchStatuses, { title: 'PayoutBatchStatus' })

const batch = {
  id: Id('payoutBatch'),
  messageId: Type.String({ description: 'The batch’s name in its file and in the bank’s answers.' }),
  rail: Type.String({ examples: ['sepa'] }),
  debtor: Type.String({ description: '`default`, or the partner whose own account pays.' }),
  valueDate: Day,
  isInstant: Type.Boolean(),
  cutOffAt: described(Instant, 'Until then payments join the batch.'),
  cutOffTimeZone: nullable(
    Type.String({ examples: ['Europe/Berlin'] }),
    'The time zone of the bank, in which the cut-off is set. Null if the rail is not configured.',
  ),
  status: BatchStatus,
  needsApproval: Type.Boolean({ description: 'Whether the batch is complete and awaits approval by people.' }),
  held: Type.Boolean({ description: 'Whether an operator holds the batch.' }),
  paymentCount: Type.Integer({ minimum: 0 }),
  total: WireMoney,
  fileName: TextOrNull,
  fileSha256: TextOrNull,
  nameCheck: nullable(Type.String(), 'The worst result of the bank’s check of the payees’ names.'),
  closedAt: InstantOrNull,
  approvedAt: InstantOrNull,
  approvedAutomatically: Type.Boolean(),
  sentAt: InstantOrNull,
  acknowledgedAt: nullable(Instant, 'When the bank acknowledged the batch.'),
  endedAt: nullable(
    Instant,
    'When the last payment of the batch was answered, the bank rejected the batch, or the batch was cancelled.',
  ),
}

const batchSummary = namedObject('PayoutBatchSummary', batch)

export const Batches = namedObject('PayoutBatches', { batches: Type.Array(batchSummary), ...hasMoreField })

export const Batch = namedObject('PayoutBatch', {
  ...batch,
  approvals: Type.Array(
    namedObject('PayoutApproval', {
      person: Type.String(),
      login: nullable(
        Type.String(),
        'The login of the operating system, for an approval by command. Null for a user of the console.',
      ),
      at: Instant,
    }),
    { description: 'The approvals of the batch, oldest first.' },
  ),
  approvalsNeeded: Type.Integer({ minimum: 1, description: 'How many people must approve the batch.' }),
  copies: Type.Array(
    namedObject('PayoutBatchCopy', {
      kind: wordOf(['delivery', 'export', 'download']),
      person: nullable(Type.String(), 'Null for the worker.'),
      at: Instant,
    }),
    { description: 'Each time that the batch’s file left, or may have left, oldest first.' },
  ),
  proposal: ProposedDecision,
  hold: nullable(
    namedObject('PayoutBatchHold', {
      since: InstantOrNull,
      by: nullable(Type.String(), 'The actor as in the audit log.'),
      reason,
    }),
    'Null unless an operator holds the batch.',
  ),
  brake,
})

const outcome = nullable(wordOf(['paid', 'failed', 'returned']))

export const Payments = namedObject('BatchPayments', {
  payments: Type.Array(
    namedObject('BatchPayment', {
      reference: Type.String({ examples: ['MMK7Q2MZ4TB5XJ3A'] }),
      partnerId: Id('partner'),
      partnerName: Type.String(),
      memberId: Id('member'),
      withdrawalId: Id('withdrawal'),
      payee: nullable(
        namedObject('Payee', {
          accountHolder: Type.String({ examples: ['Mia Schulz'] }),
          lastFour: Type.String({ description: 'The end of the account number or IBAN.', examples: ['3000'] }),
        }),
        'The holder of the paid account. Null if it was erased.',
      ),
      amount: WireMoney,
      outcome,
      reason: TextOrNull,
      removedAt: nullable(Instant, 'When an operator removed the payment from its batch.'),
    }),
  ),
  ...hasMoreField,
})

export const PaymentOutcome = namedObject('PaymentOutcome', {
  outcome: wordOf(outcomesByHand),
  note: line(500, { description: 'How you know the outcome.', examples: ['the bank said so on the phone'] }),
  credit: Type.Optional(
    Type.Object(
      { bookedOn: Day, amount: WireMoney },
      { title: 'ReturnCredit', ...strict, description: 'With `returned`: the entry by which the money arrived.' },
    ),
  ),
  borneBy: Type.Optional(
    wordOf(['operator', 'partner'], {
      default: 'operator',
      description: 'With `returned`, if less arrived than was paid: who bears the difference.',
    }),
  ),
})
export type PaymentOutcome = Static<typeof PaymentOutcome>

export const RemovedPayment = namedObject('RemovedPayment', {
  partnerId: Id('partner'),
  withdrawalId: Id('withdrawal'),
  batchId: Id('payoutBatch'),
})

export const ExportedFile = namedObject('ExportedFile', { name: Type.String(), sha256: Type.String(), valueDate: Day })

export const ImportedFile = namedObject('ImportedFile', {
  fileId: Id('bankFile'),
  result: wordOf(['imported', 'repeated'], {
    description: '`repeated`: a file with the same bytes was imported before; nothing changed.',
  }),
  records: Type.Integer({ minimum: 0 }),
  skippedAccounts: Type.Integer({
    minimum: 0,
    description: 'Accounts of the file that are not of this rail. Nothing about them was booked.',
  }),
})

const exceptionKinds = [
  ...([
    'unmatched',
    'amount',
    'contradiction',
    'duplicate',
    'rejected',
    'refused',
    'money_in',
    'money_out',
    'float',
  ] as const),
  'blocked',
  'unreadable',
  'paid_after_give_back',
  'statement_gap',
  'opening_balance',
  'bank_balance',
] as const satisfies exceptions.ExceptionKind[]

const exceptionFields = {
  id: Id('payoutException'),
  rail: Type.String({ examples: ['sepa'] }),
  kind: wordOf(exceptionKinds, { description: 'Why the answer of the bank did not fit.' }),
  reference: TextOrNull,
  batchId: nullable(Id('payoutBatch'), 'The batch that the answer is about, or that has its payment.'),
  partnerId: nullable(Id('partner')),
  withdrawalId: nullable(Id('withdrawal')),
  outcome: nullable(wordOf(['paid', 'failed', 'returned']), 'The outcome of the payment that the bank reports.'),
  amount: nullable(SignedMoney, 'Negative if money left the account.'),
  bookedOn: nullable(Day, 'When the bank booked the money, if it moved any.'),
  bankText: nullable(Type.String(), 'The bank’s words about the money.'),
  reasonCode: TextOrNull,
  reason: Type.String(),
  fileName: TextOrNull,
  line: nullable(Type.Integer({ minimum: 1 }), 'The name of the bank’s file.'),
  openedAt: Instant,
  closedAt: InstantOrNull,
  closedBy: TextOrNull,
  decision: TextOrNull,
  note: TextOrNull,
  proposedBy: nullable(
    Type.String(),
    'Who has proposed a decision that awaits a second person. Null if no decision is proposed.',
  ),
}

export const Exception = namedObject('PayoutException', exceptionFields)

export function proposalView(proposal: Proposal | undefined) {
  if (proposal === undefined) return null
  const { decision, note, person, proposedAt } = proposal
  return { decision, note, person, proposedAt }
}

export const OpenProposals = namedObject('PayoutProposals', {
  proposals: Type.Array(
    namedObject('PayoutProposal', {
      subject: Type.String({ description: 'The exception, or the reference of the payment.' }),
      rail: Type.String({ examples: ['sepa'] }),
      exceptionId: nullable(Id('payoutException')),
      reference: nullable(
        Type.String(),
        'The payment whose outcome is proposed. Null for a decision about an exception.',
      ),
      partnerId: nullable(Id('partner')),
      withdrawalId: nullable(Id('withdrawal')),
      decision: Type.String({ description: 'The decision and its fields, as JSON.' }),
      note: Type.String(),
      person: Type.String({ description: 'Who proposed the decision.' }),
      proposedAt: Instant,
    }),
  ),
  ...hasMoreField,
})

export const ExceptionDetails = namedObject('PayoutExceptionDetails', {
  ...exceptionFields,
  proposal: ProposedDecision,
  proposals: Type.Array(
    namedObject('ProposedPayment', {
      reference: Type.String({ examples: ['MMK7Q2MZ4TB5XJ3A'] }),
      partnerId: Id('partner'),
      withdrawalId: Id('withdrawal'),
      amount: WireMoney,
      outcome,
    }),
    { description: 'The payments whose references the bank’s words contain. No payment is attached automatically.' },
  ),
  isBookedElsewhere: Type.Boolean({
    description: 'Whether another message has booked the same amount on the same day: it may be the same money.',
  }),
})

export const Exceptions = namedObject('PayoutExceptions', { exceptions: Type.Array(Exception), ...hasMoreField })

const PaymentAnswer = namedObject('PaymentAnswer', {
  at: described(Instant, 'When the answer was read or decided.'),
  by: wordOf(answerSources, {
    description:
      '`operator`: an operator decided. `midmonth`: the rail cannot carry the payment, or the bank does not confirm payments.',
  }),
  isAboutBatch: Type.Boolean({ description: 'Whether the answer is about the whole batch.' }),
  outcome: described(outcome, 'The outcome that the answer gave the payment. Null if it changed nothing.'),
  reason: TextOrNull,
  bookedOn: nullable(Day, 'The day on which the bank booked the money, if the answer names it.'),
  fileName: nullable(Type.String(), 'The file of the bank. Null if the answer did not come in a file.'),
  line: nullable(Type.Integer({ minimum: 1 })),
})

export const Payout = namedObject('Payout', {
  reference: Type.String({ examples: ['MMK7Q2MZ4TB5XJ3A'] }),
  rail: Type.String({ examples: ['sepa'] }),
  partnerId: Id('partner'),
  withdrawalId: Id('withdrawal'),
  amount: WireMoney,
  createdAt: Instant,
  expectedAt: InstantOrNull,
  outcome,
  reasonCode: nullable(Type.String(), 'The code of the bank.'),
  reason: TextOrNull,
  removedAt: nullable(Instant, 'When an operator removed the payment from its batch.'),
  batch: nullable(batchSummary, 'Null if the payment is not in a batch.'),
  answers: Type.Array(PaymentAnswer, {
    description: 'The bank’s answers about the payment, oldest first; at most 100.',
  }),
  exceptions: Type.Array(Exception, {
    description: 'The answers about the payment or its batch that did not fit, oldest first; at most 100.',
  }),
  proposal: ProposedDecision,
})

/** @param rails the rails with files, which have the time zones of their banks */
export function batchView(
  { controlTotal, currency, sendingAt: _, ...rest }: batches.Batch,
  rails: readonly { name: string; timeZone: string }[],
) {
  return {
    ...rest,
    cutOffTimeZone: rails.find(({ name }) => name === rest.rail)?.timeZone ?? null,
    needsApproval: rest.status === 'building' && rest.closedAt !== null,
    total: toWire({ amount: controlTotal, currency }),
  }
}

export function payoutView(
  { netAmount: amount, currency, batch: ofBatch, exceptions: open, proposal, ...rest }: PaymentHistory,
  rails: Parameters<typeof batchView>[1],
) {
  return {
    ...rest,
    amount: toWire({ amount, currency }),
    batch: ofBatch && batchView(ofBatch, rails),
    exceptions: open.map(exceptionView),
    proposal: proposalView(proposal),
  }
}

export function exceptionView({ amount, currency, ...rest }: exceptions.Exception) {
  return { ...rest, amount: amount === null || currency === null ? null : toWire({ amount, currency }) }
}

export const Closing = namedObject('ExceptionClosing', {
  decision: wordOf(['ignore', 'attach', 'give_back', 'book', 'recover', 'write_off']),
  note: line(500, { description: 'Why.', examples: ['bank charges'] }),
  reference: Type.Optional(
    line(140, {
      description:
        'With `attach`: the payment reference or the withdrawal’s id. With `book`: the reference of the movement, by default the one recorded for the entry.',
    }),
  ),
  partnerId: Type.Optional(
    Id(
      'partner',
      'With `book`, and with `write_off` of money that left without a payment: the partner whose float the money is in.',
    ),
  ),
  payCycleId: Type.Optional(Id('payCycle', 'With `book`: the pay cycle whose settlement the money pays.')),
  charge: Type.Optional(
    Type.Object(
      {
        amount: WireMoney,
        borneBy: wordOf(['operator', 'partner'], { description: 'Who bears the charge.' }),
      },
      {
        title: 'BankCharge',
        ...strict,
        description:
          'With `attach` and `give_back`: the amount that the bank kept from a return, took beside a payment, or deducted from it. The money and the charge must add up to exactly the payment. If the operator bears it, the decision takes two people.',
      },
    ),
  ),
  references: Type.Optional(
    Type.Array(Type.String({ pattern: `^${referencePattern}$` }), {
      minItems: 1,
      // An operator names them one by one; for more, banks give a report.
      maxItems: 100,
      uniqueItems: true,
      description:
        'With `give_back`, if the bank debited too little for a batch: the payments that it did not make. They must add up to the shortfall; the others are then paid. With `recover` and `write_off` of a batch: the payments that the bank made; by default, all payments that were given back. With `recover` of money that left without a reference: the payments that the bank made, which must add up to the money. With `attach` of money that the bank describes only in words, in place of `reference`: several payments, which must add up to the money.',
    }),
  ),
})

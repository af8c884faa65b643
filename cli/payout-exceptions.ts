import { Option } from 'commander'
import type { PayoutException, PayoutExceptionId } from '../packages/console/src/generated/operator.ts'
import { asOption } from './actor.ts'
import { minorUnits, name } from './arguments.ts'
import { moneyInWords } from './money.ts'
import { OperatorCommand, withOperators } from './operator-client.ts'
import { addPaging, nextPage } from './paging.ts'
import { printResult, sheet, table } from './print.ts'

const operations = () => import('../src/operators/exception-operations.ts')

export const payoutExceptionsCommand = new OperatorCommand('exceptions', operations).description(
  'Bank answers that did not fit: list them, and close each by a decision.',
)

addPaging(
  payoutExceptionsCommand
    .command('list')
    .description('List open exceptions, newest first.')
    .option('--all', 'include closed exceptions'),
  'payoutException',
)
  .examples('payouts exceptions list', 'payouts exceptions list --all --json')
  .prints(
    (api, { all, take, before: after }) => api.listPayoutExceptions({ state: all ? 'all' : 'open', take, after }),
    page =>
      table(
        page.exceptions.map(({ id, rail, kind, reference, reason, openedAt, decision, proposedBy }) => ({
          id,
          rail,
          kind,
          reference,
          opened: openedAt,
          decision,
          'proposed by': proposedBy,
          reason,
        })),
      ) + nextPage(page.exceptions, page),
  )

payoutExceptionsCommand
  .command('show')
  .description('Show an exception, with its file and line.')
  .argument('<exception>', 'the exception’s id, pex_…')
  .examples('payouts exceptions show pex_…')
  .prints(
    (api, id: PayoutExceptionId) => api.getPayoutException(id),
    ({ amount, openedAt, closedAt, proposal: _, proposals, isBookedElsewhere, ...rest }) =>
      sheet({
        ...rest,
        amount: amount && moneyInWords(amount),
        opened: openedAt,
        closed: closedAt,
        'its words name': proposals.map(({ reference }) => reference).join(', ') || null,
        warning: isBookedElsewhere ? 'Another message has booked the same amount on the same day' : null,
      }),
  )

payoutExceptionsCommand
  .command('close')
  .description(
    'Close an exception. "ignore": nothing follows. "attach": the answer is about the payment of --reference. "give-back": the payment, or each unanswered payment of the batch, was not made; the members can withdraw again. "book": the money that arrived or left is a movement of the float of --partner. "recover": the bank made the payment, or the payments of the batch, after the money was given back; the members repay, first from their available balance. "write-off": you bear the money that left; the float lacks it until "float cover".',
  )
  .argument('<exception>', 'the exception’s id, pex_…')
  .addOption(
    new Option('--decision <decision>', 'the decision')
      .choices(['ignore', 'attach', 'give-back', 'book', 'recover', 'write-off'] as const)
      .makeOptionMandatory(),
  )
  .requiredOption('--note <text>', 'why', name({ lengthMax: 500 }))
  .option(
    '--reference <reference>',
    'with attach: the payment reference MM…, or the withdrawal’s id w_…; with book: the reference of the movement, by default the one recorded for the entry',
    name({ lengthMax: 140 }),
  )
  .option(
    '--payments <reference...>',
    'the references of payments. With give-back, if the bank debited too little for the batch: the payments that it did not make; with recover and write-off of a batch, and with recover of money that left without a reference: the payments that the bank made; with attach of money that the bank describes only in words: several payments that add up to the money',
  )
  .option(
    '--charge <minorUnits>',
    'with attach and give-back: the amount that the bank kept from a return, took beside a payment, or deducted from it',
    minorUnits,
  )
  .addOption(
    new Option('--borne-by <who>', 'who bears the charge')
      .choices(['operator', 'partner'] as const)
      .default('operator' as const),
  )
  .option(
    '--partner <partner>',
    'with book, and with write-off of money that left without a payment: the partner’s id, par_…',
  )
  .option('--cycle <payCycle>', 'with book: the pay cycle whose settlement the money pays, pc_…')
  .addOption(asOption())
  .examples(
    'payouts exceptions close pex_… --decision ignore --note "bank charges"',
    'payouts exceptions close pex_… --decision attach --reference MMK7Q2MZ4TB5XJ3A --note "the bank cut the reference off"',
    'payouts exceptions close pex_… --decision give-back --note "the bank has confirmed that it paid nothing"',
    'payouts exceptions close pex_… --decision give-back --payments MMK7Q2MZ4TB5XJ3A --note "the bank has named it"',
    'payouts exceptions close pex_… --decision book --partner par_… --note "opening transfer"',
    'payouts exceptions close pex_… --decision recover --note "the statement of the 11th has the debit"',
    'payouts exceptions close pex_… --decision write-off --note "the member has left"',
    'payouts exceptions close pex_… --decision book --partner par_… --cycle pc_… --note "the first of two transfers"',
  )
  .action(async (exceptionId: PayoutExceptionId, { decision, note, reference, charge: units, borneBy, ...more }) => {
    const { payments: references, partner: partnerId, cycle: payCycleId, ...options } = more
    const closing = { decision: decision.replace('-', '_'), note, reference, references, partnerId, payCycleId }
    const closed = await withOperators(options, operations, async api => {
      if (units === undefined) return await api.closePayoutException(exceptionId, closing)
      const amount = inCurrencyOf(await api.getPayoutException(exceptionId), units)
      return await api.closePayoutException(exceptionId, { ...closing, charge: { amount, borneBy } })
    })
    printResult(options, {
      value: closed,
      text: () =>
        closed.closedAt === null
          ? `The decision about ${exceptionId} is proposed; another person must run the same command.`
          : `${exceptionId} is closed.`,
    })
  })

payoutExceptionsCommand
  .command('withdraw')
  .description('Withdraw a decision that takes two people and that one person has made.')
  .argument('<exception>', 'the exception’s id, pex_…')
  .addOption(asOption())
  .examples('payouts exceptions withdraw pex_…')
  .prints(
    (api, exceptionId: PayoutExceptionId) => api.withdrawPayoutDecision(exceptionId),
    (_, exceptionId) => `The decision about ${exceptionId} is withdrawn.`,
  )

function inCurrencyOf({ amount }: PayoutException, units: bigint) {
  if (amount === null) throw new Error('The answer gives no amount, so it cannot have a charge')
  return { amount: Number(units), currency: amount.currency }
}

import { Command, Option } from 'commander'
import type { Reader } from '../src/database/database.ts'
import { type Currency, inWords, toWire } from '../src/kernel/money.ts'
import { systemClock } from '../src/main.ts'
import { readProposals } from '../src/payouts/books/attachments.ts'
import type * as decisions from '../src/payouts/books/decisions.ts'
import { decide } from '../src/payouts/books/decisions-of-two.ts'
import * as exceptions from '../src/payouts/books/exceptions.ts'
import { withdrawProposal } from '../src/payouts/books/proposals.ts'
import { asOption, loginOf, personOf, recordChange } from './actor.ts'
import { minorUnits, name } from './arguments.ts'
import { examples } from './help.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { printResult, sheet, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const payoutExceptionsCommand = new Command('exceptions').description(
  'Bank answers that did not fit: list them, and close each by a decision.',
)

addPaging(
  payoutExceptionsCommand
    .command('list')
    .description('List open exceptions, newest first.')
    .option('--all', 'include closed exceptions'),
  'payoutException',
)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts exceptions list', 'payouts exceptions list --all --json'))
  .action(async ({ json, all, ...paging }: Paging & { json?: boolean; all?: boolean }) => {
    const asked = { state: all ? 'all' : 'open', before: paging.before, take: paging.take + 1 } as const
    const found = await withDatabase(async db => await exceptions.list(db, asked))
    const { shown, hasMore, more } = pageOf(found, paging)
    printResult(
      { json },
      {
        value: { exceptions: shown.map(exceptionOnWire), hasMore },
        text: () =>
          table(
            shown.map(({ id, rail, kind, reference, reason, openedAt, decision, proposedBy }) => ({
              id,
              rail,
              kind,
              reference,
              opened: openedAt.toISOString(),
              decision,
              'proposed by': proposedBy,
              reason,
            })),
          ) + more,
      },
    )
  })

payoutExceptionsCommand
  .command('show')
  .description('Show an exception, with its file and line.')
  .argument('<exception>', 'the exception’s id, pex_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts exceptions show pex_…'))
  .action(async (id: string, options) => {
    const { found, proposals, isBookedElsewhere } = await withDatabase(async db => {
      const [found] = await exceptions.list(db, { id, take: 1 })
      if (found === undefined)
        throw new Error(`There is no exception ${id}; run midmonth payouts exceptions list to see the ids`)
      return { found, ...(await readProposals(db, found)) }
    })
    const { amount, currency, openedAt, closedAt, ...rest } = found
    printResult(options, {
      value: {
        ...exceptionOnWire(found),
        proposals: proposals.map(({ netAmount: units, currency: code, ...payment }) => ({
          ...payment,
          amount: toWire({ amount: units, currency: code }),
        })),
        isBookedElsewhere,
      },
      text: () =>
        sheet({
          ...rest,
          amount: amount === null || currency === null ? null : inWords({ amount, currency }),
          opened: openedAt.toISOString(),
          closed: closedAt?.toISOString() ?? null,
          'its words name': proposals.map(({ reference }) => reference).join(', ') || null,
          warning: isBookedElsewhere ? 'Another message has booked the same amount on the same day' : null,
        }),
    })
  })

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
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples(
      'payouts exceptions close pex_… --decision ignore --note "bank charges"',
      'payouts exceptions close pex_… --decision attach --reference MMK7Q2MZ4TB5XJ3A --note "the bank cut the reference off"',
      'payouts exceptions close pex_… --decision give-back --note "the bank has confirmed that it paid nothing"',
      'payouts exceptions close pex_… --decision give-back --payments MMK7Q2MZ4TB5XJ3A --note "the bank has named it"',
      'payouts exceptions close pex_… --decision book --partner par_… --note "opening transfer"',
      'payouts exceptions close pex_… --decision recover --note "the statement of the 11th has the debit"',
      'payouts exceptions close pex_… --decision write-off --note "the member has left"',
      'payouts exceptions close pex_… --decision book --partner par_… --cycle pc_… --note "the first of two transfers"',
    ),
  )
  .action(async (exceptionId: string, { note, as, json, ...given }: CloseOptions) => {
    const now = systemClock()
    const done = await withTransaction(async (tx, { MIDMONTH_APPROVAL_LOGINS }) => {
      const decided = decisionOf({ ...given, currency: await currencyOf(tx, exceptionId) })
      const person = personOf(as)
      const by = { person, login: loginOf(), mayShareLogin: MIDMONTH_APPROVAL_LOGINS === 'any' }
      const { exception, done } = await decide(tx, { exceptionId, by, note, now, ...decided })
      const { partnerId } = exception
      const details = {
        ...{ person, decision: decided.decision, note, reference: given.reference ?? null },
        ...(given.payments === undefined ? {} : { references: given.payments }),
        ...(done === 'closed' ? {} : { isProposed: true }),
        ...(given.charge === undefined ? {} : { charge: `${given.charge}`, borneBy: given.borneBy }),
      }
      const change = { action: 'payout_exception.close', resourceId: exceptionId, details } as const
      // An answer that names no payment belongs to no partner.
      await recordChange(tx, { partnerId, change, now })
      return done
    })
    printResult(
      { json },
      {
        value: { id: exceptionId, decision: given.decision.replace('-', '_'), isClosed: done === 'closed' },
        text: () =>
          done === 'closed'
            ? `${exceptionId} is closed.`
            : `The decision about ${exceptionId} is proposed; another person must run the same command.`,
      },
    )
  })

payoutExceptionsCommand
  .command('withdraw')
  .description('Withdraw a decision that takes two people and that one person has made.')
  .argument('<exception>', 'the exception’s id, pex_…')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts exceptions withdraw pex_…'))
  .action(async (exceptionId: string, { as, json }: { as?: string; json?: boolean }) => {
    const now = systemClock()
    await withTransaction(async tx => {
      const [found] = await exceptions.list(tx, { id: exceptionId, take: 1 })
      const by = personOf(as)
      const { decision, person } = await withdrawProposal(tx, { subject: exceptionId, person: by, now })
      const details = { person: by, decision, proposedBy: person }
      const change = { action: 'payout_exception.withdraw', resourceId: exceptionId, details } as const
      await recordChange(tx, { partnerId: found?.partnerId ?? null, change, now })
    })
    printResult({ json }, { value: { id: exceptionId }, text: () => `The decision about ${exceptionId} is withdrawn.` })
  })

type CloseOptions = {
  decision: 'ignore' | 'attach' | 'give-back' | 'book' | 'recover' | 'write-off'
  note: string
  reference?: string
  payments?: string[]
  charge?: bigint
  borneBy: 'operator' | 'partner'
  partner?: string
  cycle?: string
  as?: string
  json?: boolean
}

function decisionOf({
  decision,
  reference,
  payments,
  charge: units,
  borneBy,
  currency,
  partner,
  cycle,
}: Omit<CloseOptions, 'note' | 'as' | 'json'> & { currency: Currency | null }): decisions.Decision {
  if (units !== undefined && decision !== 'attach' && decision !== 'give-back')
    throw new Error('--charge belongs to attach and give-back')
  if (units !== undefined && currency === null)
    throw new Error('The answer gives no amount, so it cannot have a charge')
  const charge = units === undefined || currency === null ? undefined : { amount: { amount: units, currency }, borneBy }
  if (payments !== undefined && (decision === 'ignore' || decision === 'book'))
    throw new Error('--payments belongs to attach, give-back, recover and write-off')
  if (decision === 'give-back') return { decision: 'give_back', references: payments, charge }
  if (decision === 'recover') return { decision, references: payments }
  if (decision === 'write-off') return { decision: 'write_off', references: payments, partnerId: partner }
  if (decision === 'ignore') return { decision }
  if (decision === 'book') {
    if (partner === undefined) throw new Error('To book the money, name the partner with --partner')
    if (cycle !== undefined && reference !== undefined)
      throw new Error('Money of a settlement has the reference of its pay cycle; leave --reference out')
    return { decision, partnerId: partner, reference, payCycleId: cycle }
  }
  if (payments !== undefined) {
    if (reference !== undefined || charge !== undefined)
      throw new Error('--reference and --charge do not go with --payments; leave them out')
    return { decision, references: payments }
  }
  if (reference === undefined)
    throw new Error('To attach an answer, name the payment with --reference, or several with --payments')
  return { decision, reference, charge }
}

async function currencyOf(db: Reader, id: string): Promise<Currency | null> {
  return (await exceptions.list(db, { id, take: 1 }))[0]?.currency ?? null
}

function exceptionOnWire({ amount, currency, ...exception }: exceptions.Exception) {
  return { ...exception, amount: signed(amount, currency) }
}

// Money that left the account is negative, which `toWire` refuses.
function signed(amount: bigint | null, currency: Currency | null) {
  return amount === null || currency === null ? null : { amount, currency }
}

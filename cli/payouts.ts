import { openAsBlob } from 'node:fs'
import { access, constants } from 'node:fs/promises'
import path from 'node:path'
import { Option } from 'commander'
import type { PaymentOutcome, PayoutBatchId } from '../packages/console/src/generated/operator.ts'
import { progressInWords } from '../src/diagnosis/progress.ts'
import { isIdOf } from '../src/kernel/ids.ts'
import { dayIn } from '../src/kernel/time.ts'
import { batchStatuses } from '../src/payouts/books/batch-lifecycle.ts'
import { asOption } from './actor.ts'
import { day, minorUnits, name, whole } from './arguments.ts'
import { inTable as balancesInTable, daysDefault, differencesMax } from './bank-balances.ts'
import { stateInWords } from './batch-state.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, allOf, OperatorCommand, withOperators } from './operator-client.ts'
import { addPaging, nextPage, takeMax } from './paging.ts'
import { openArchivedCommand } from './payout-archive.ts'
import { payoutExceptionsCommand } from './payout-exceptions.ts'
import { exportCommand } from './payout-export.ts'
import { payoutProposalsCommand } from './payout-proposals.ts'
import { closeAllCommand, payoutRulesCommand } from './payout-rules.ts'
import { countOf, printResult, sheet, table } from './print.ts'

// One screen; a batch can have 100,000 payments.
const paymentsShown = 20

const operations = async () => ({
  ...(await import('../src/operators/payout-operations.ts')),
  ...(await import('../src/operators/rail-operations.ts')),
  ...(await import('../src/operators/restore-operations.ts')),
})

export const payoutsCommand = new OperatorCommand('payouts', operations).description(
  'Manage payments through bank files: batches, approvals, files and exceptions.',
)

addPaging(
  payoutsCommand
    .command('list')
    .description(
      'List the batches of payments, newest first, and the rails that are held or do not approve batches automatically.',
    )
    .option('--rail <rail>', 'only this rail')
    .addOption(new Option('--status <status...>', 'only batches with these statuses').choices(batchStatuses)),
  'payoutBatch',
)
  .examples('payouts list', 'payouts list --status building approved --json')
  .prints(
    async (api, { rail, status: statuses, take, before: after }) => ({
      ...(await api.listPayoutBatches({ rail, statuses, take, after })),
      ...(await api.listRails()),
    }),
    ({ rails, ...page }, { rail: only }) => {
      const shown = rails.filter(({ name: rail }) => only === undefined || rail === only)
      return [
        ...rails.flatMap(({ name: rail, hold }) =>
          hold === null ? [] : [`${rail} has been held since ${hold.since} by ${hold.by}.`],
        ),
        ...shown.flatMap(({ name: rail, brake }) =>
          brake === null ? [] : [`No batch of ${rail} is approved automatically. ${brake.reason}.`],
        ),
        ...shown.flatMap(({ importing }) => importing.map(each => `${progressInWords(each)}.`)),
        table(
          page.batches.map(batch => ({
            id: batch.id,
            rail: batch.rail,
            'value date': batch.valueDate,
            state: stateInWords(batch),
            payments: batch.paymentCount,
            total: moneyInWords(batch.total),
            'cut-off': batch.cutOffAt,
          })),
        ) + nextPage(page.batches, page),
      ].join('\n')
    },
  )

payoutsCommand
  .command('show')
  .description('Show a batch: its sums, its approvals, its payments and its file.')
  .argument('<batch>', 'the batch’s id, bat_…')
  .option('--payments <count>', 'how many of its payments to list', whole({ min: 0, max: 100_000 }), paymentsShown)
  .examples('payouts show bat_…', 'payouts show bat_… --payments 1000')
  .prints(
    async (api, batchId: PayoutBatchId, { payments: countMax }) => ({
      ...(await api.getPayoutBatch(batchId)),
      payments:
        countMax === 0
          ? []
          : await allOf(api.listBatchPayments(batchId, { take: Math.min(countMax, takeMax) }), { countMax }),
    }),
    ({ payments, ...batch }) => {
      const { approvals, approvalsNeeded, proposal, cutOffAt, cutOffTimeZone } = batch
      const more = batch.paymentCount - payments.filter(({ removedAt }) => removedAt === null).length
      return [
        sheet({
          id: batch.id,
          rail: batch.rail,
          state: stateInWords(batch),
          'message id': batch.messageId,
          'paid from': batch.debtor,
          'value date': batch.valueDate,
          'cut-off': cutOffTimeZone === null ? cutOffAt : inZone(new Date(cutOffAt), cutOffTimeZone),
          approvals: batch.approvedAutomatically ? 'none needed' : `${approvals.length} of ${approvalsNeeded}`,
          payments: batch.paymentCount,
          total: moneyInWords(batch.total),
          'name check': batch.nameCheck,
          file: batch.fileName,
          'SHA-256': batch.fileSha256,
          sent: batch.sentAt,
        }),
        '',
        ...(approvals.length === 0
          ? []
          : [table(approvals.map(({ person, login, at }) => ({ 'approved by': person, login, at })))]),
        ...(proposal === null ? [] : [`${proposal.person} proposes to close it early: ${proposal.note}\n`]),
        table(
          payments.map(({ reference, partnerName, payee, amount, outcome, removedAt }) => ({
            reference,
            partner: partnerName,
            payee: payee?.accountHolder ?? null,
            account: payee === null ? null : `…${payee.lastFour}`,
            amount: moneyInWords(amount),
            state: removedAt === null ? outcome : 'removed',
          })),
        ),
        ...(more > 0 ? [`… and ${countOf(more, 'payment')} more; see --payments`] : []),
      ].join('\n')
    },
  )

/** A day and time of a bank, with its zone. */
function inZone(at: Date, timeZone: string): string {
  const time = at.toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' })
  return `${dayIn(timeZone, at)} ${time} ${timeZone} (${at.toISOString()})`
}

payoutsCommand
  .command('close')
  .description(
    'Close a batch before its cut-off, so that it can be approved and sent. This takes two people: the first person proposes it, and the same command of another person closes the batch. Later payments go into another batch.',
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .requiredOption('--note <text>', 'why', name({ lengthMax: 500 }))
  .addOption(asOption())
  .examples('payouts close bat_… --note "the bank closes early today" --as "Ada Lovelace"')
  .prints(
    (api, batchId: PayoutBatchId, { note }) => api.closePayoutBatch(batchId, { note }),
    (batch, batchId) =>
      batch.closedAt === null
        ? `It is proposed that ${batchId} is closed early; another person must run the same command.`
        : `${batchId} is closed: ${stateInWords(batch)}.`,
  )

payoutsCommand
  .command('withdraw')
  .description('Withdraw the proposal to close a batch early.')
  .argument('<batch>', 'the batch’s id, bat_…')
  .addOption(asOption())
  .examples('payouts withdraw bat_…')
  .prints(
    (api, batchId: PayoutBatchId) => api.withdrawPayoutBatchClosing(batchId),
    (_, batchId) => `${batchId} stays open until its cut-off.`,
  )

payoutsCommand
  .command('approve')
  .description(
    'Approve a batch above the limits for automatic approval, after its cut-off. The batch is sent once two people have approved it.',
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .addOption(asOption())
  .examples('payouts approve bat_…', 'payouts approve bat_… --as "Ada Lovelace"')
  .prints(
    (api, batchId: PayoutBatchId) => api.approvePayoutBatch(batchId),
    ({ status, approvals, approvalsNeeded }, batchId) =>
      status === 'approved'
        ? `${batchId} is approved.`
        : `${batchId} has ${approvals.length} of ${approvalsNeeded} approvals; another person must approve it.`,
  )

for (const { verb, description } of [
  {
    verb: 'hold',
    description:
      'Hold an unsent batch, or a whole rail: nothing is sent until it is released. The bank’s answers are still read.',
  },
  {
    verb: 'release',
    description: 'Release a held batch or rail, even a rail that is no longer in MIDMONTH_RAILS.',
  },
] as const) {
  payoutsCommand
    .command(verb)
    .description(description)
    .argument('<batch or rail>', 'the batch’s id, bat_…, or the rail’s name in MIDMONTH_RAILS')
    .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
    .addOption(asOption())
    .examples(`payouts ${verb} bat_…`, `payouts ${verb} sepa --reason "bank outage"`)
    .action(async (named: string, { reason, ...options }) => {
      if (isBatchId(named)) {
        const batch = await withOperators(options, operations, api => api[`${verb}PayoutBatch`](named, { reason }))
        printResult(options, { value: batch, text: () => `${named} is ${stateInWords(batch)}.` })
      } else {
        const rail = await withOperators(options, operations, api => api[`${verb}Rail`](named, { reason }))
        printResult(options, {
          value: rail,
          text: () => `${named} is ${rail.hold === null ? 'released' : 'held'}.`,
        })
      }
    })
}

function isBatchId(text: string): text is PayoutBatchId {
  return isIdOf('payoutBatch', text)
}

payoutsCommand
  .command('resume')
  .description(
    'Send payments again after the database was restored, once what the banks paid was compared with the restored books. Refused while an exception that was opened since is open, a bank’s statement of a day from the backup to the restore is missing, or an API has not listed its payments since.',
  )
  .requiredOption('--note <text>', 'how you compared the banks', name({ lengthMax: 500 }))
  .option('--without-statements', 'do not wait for statements and lists')
  .addOption(asOption())
  .examples('payouts resume --note "imported the statements of 31 March; two exceptions decided"')
  .prints(
    (api, { note, withoutStatements }) => api.resumePayouts({ note, withoutStatements }),
    ({ detectedAt }) => `Payments, which were stopped at ${detectedAt}, are sent again.`,
  )

payoutsCommand
  .command('outcome')
  .description(
    'Record the outcome of a sent payment that no bank file answers. "failed" is refused while a debit that waits for a decision may be the payment, and while the bank may still pay. "returned" needs the day and the amount of the credit.',
  )
  .argument('<payment>', 'the payment reference MM…, or the withdrawal’s id w_…')
  .addOption(
    new Option('--outcome <outcome>', 'the outcome of the payment')
      .choices(['paid', 'failed', 'returned'] as const satisfies readonly PaymentOutcome['outcome'][])
      .makeOptionMandatory(),
  )
  .requiredOption('--note <text>', 'how you know the outcome', name({ lengthMax: 500 }))
  .option('--booked-on <day>', 'with returned: when the bank booked the credit, for example 2026-03-31', day)
  .option('--amount <minorUnits>', 'with returned: the amount that arrived', minorUnits)
  .addOption(
    new Option('--borne-by <who>', 'with returned, if less arrived than was paid: who bears the difference')
      .choices(['operator', 'partner'] as const)
      .default('operator' as const),
  )
  .addOption(asOption())
  .examples(
    'payouts outcome MMK7Q2MZ4TB5XJ3A --outcome paid --note "seen in the portal"',
    'payouts outcome w_… --outcome returned --booked-on 2026-03-31 --amount 9450 --note "the bank kept 5.00"',
  )
  .action(async (payment: string, { outcome, note, bookedOn, amount, borneBy, ...options }) => {
    const isReturned = outcome === 'returned'
    if (isReturned && (bookedOn === undefined || amount === undefined))
      throw new Error('For returned, give the day and amount of the credit with --booked-on and --amount')
    if (!isReturned && (bookedOn !== undefined || amount !== undefined))
      throw new Error(`A credit does not belong to ${outcome}`)
    const payout = await withOperators(options, operations, async api => {
      if (!isReturned) return await api.decidePaymentOutcome(payment, { outcome, note })
      const { currency } = (await api.getPayout(payment)).amount
      const credit = { bookedOn, amount: { amount: Number(amount), currency } }
      return await api.decidePaymentOutcome(payment, { outcome, note, credit, borneBy })
    })
    const { reference, proposal } = payout
    printResult(options, {
      value: payout,
      text: () =>
        proposal === null
          ? `${reference} counts as ${outcome}; the withdrawal follows within a minute.`
          : `It is proposed that ${reference} is ${outcome}; another person must run the same command.`,
    })
  })

payoutsCommand
  .command('remove')
  .description('Take a payment out of an unsent batch. The withdrawal fails, so the member gets the money back.')
  .argument('<payment>', 'the payment reference MM…, or the withdrawal’s id w_…')
  .option(
    '--reason <text>',
    'the reason; the partner and the member read it',
    name({ lengthMax: 140 }),
    'Stopped by the operator',
  )
  .addOption(asOption())
  .examples('payouts remove MMK7Q2MZ4TB5XJ3A --reason "The member asked for it"')
  .prints(
    (api, payment: string, { reason }) => api.removePayment(payment, { reason }),
    removed => `${removed.withdrawalId} left ${removed.batchId}; it fails within a minute.`,
  )

payoutsCommand.addCommand(exportCommand)
payoutsCommand.addCommand(openArchivedCommand)

payoutsCommand
  .command('import')
  .description(
    'Import a bank file, or a ZIP archive of such files: all of it, or nothing. Importing a file again changes nothing, or continues an interrupted import.',
  )
  .argument('<rail>', 'the rail’s name in MIDMONTH_RAILS')
  .argument('<file>', 'the bank’s file')
  .addOption(asOption())
  .examples('payouts import sepa /secure/from-the-bank/pain002.xml')
  .prints(
    async (api, rail: string, file: string) => {
      await access(file, constants.R_OK)
      return await api.importBankFile(rail, await openAsBlob(file), { name: path.basename(file) })
    },
    imported => {
      const { result, records, skippedAccounts } = imported
      const ofOthers =
        skippedAccounts === 0
          ? ''
          : ` ${countOf(skippedAccounts, 'account')} of the file ${skippedAccounts === 1 ? 'is' : 'are'} not of this rail; nothing about ${skippedAccounts === 1 ? 'it' : 'them'} was booked.`
      return result === 'repeated'
        ? 'The file was imported before; nothing changed.'
        : `${countOf(records, 'record')} imported.${ofOthers}`
    },
  )

payoutsCommand
  .command('balances')
  .description(
    'Compare the paying accounts with the books, by day: the balance that the bank states, the sum of the floats on the account, and the difference.',
  )
  .option('--rail <rail>', 'only this rail')
  .option('--days <n>', 'how many days per account, up to 366', whole({ min: 1, max: 366 }), daysDefault)
  .examples('payouts balances', 'payouts balances --rail sepa --days 31 --json')
  .action(async ({ rail, days, ...options }) => {
    const load = () => import('../src/operators/float-operations.ts')
    const compared = await withOperators(options, load, api => api.listAccountDays({ rail, days }))
    const differences = compared.differences.slice(0, differencesMax)
    printResult(options, {
      value: compared,
      text: () => balancesInTable(compared.accountDays, { differences }),
    })
  })

payoutExceptionsCommand.addCommand(closeAllCommand)
payoutsCommand.addCommand(payoutProposalsCommand)
payoutsCommand.addCommand(payoutExceptionsCommand)
payoutsCommand.addCommand(payoutRulesCommand)

for (const each of payoutsCommand.commands)
  if (each !== exportCommand && each !== openArchivedCommand) addServerOptions(each)

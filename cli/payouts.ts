import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Command, InvalidArgumentError, Option } from 'commander'
import type { Action, Details } from '../src/audit-log/audit-log.ts'
import type { Settings } from '../src/config.ts'
import type { Tx } from '../src/database/database.ts'
import { isIdOf } from '../src/kernel/ids.ts'
import { type Currency, inWords, toWire } from '../src/kernel/money.ts'
import { beginsWithDay, type Day, dayIn } from '../src/kernel/time.ts'
import { readRails, systemClock } from '../src/main.ts'
import { accountDayOnWire } from '../src/operators/float-schema.ts'
import * as approvals from '../src/payouts/books/approvals.ts'
import { listBalances } from '../src/payouts/books/balances.ts'
import { type BatchStatus, batchStatuses } from '../src/payouts/books/batch-lifecycle.ts'
import * as batches from '../src/payouts/books/batches.ts'
import { brakeInWords, listBrakes } from '../src/payouts/books/brakes.ts'
import * as copies from '../src/payouts/books/copies.ts'
import { findPayout } from '../src/payouts/books/decided-payments.ts'
import { decideOutcomeOfTwo } from '../src/payouts/books/decisions-of-two.ts'
import { closeEarly } from '../src/payouts/books/early-closing.ts'
import * as exceptions from '../src/payouts/books/exceptions.ts'
import type { FileRailSettings } from '../src/payouts/books/file-rail-settings.ts'
import { importBankFile, listBegun, progressInWords } from '../src/payouts/books/import.ts'
import { type OutcomeByHand, outcomesByHand } from '../src/payouts/books/outcomes.ts'
import { listProposals, withdrawProposal } from '../src/payouts/books/proposals.ts'
import * as railHolds from '../src/payouts/books/rail-holds.ts'
import * as unsentBatches from '../src/payouts/books/unsent-batches.ts'
import { exportAgain, exportBatch } from '../src/payouts/channels/files/export.ts'
import { fileRailsOf } from '../src/payouts/channels/rail.ts'
import { asOption, loginOf, personOf, recordChange } from './actor.ts'
import { minorUnits, name, whole } from './arguments.ts'
import { inTable as balancesInTable, daysDefault, differencesMax } from './bank-balances.ts'
import { examples } from './help.ts'
import { openLog } from './log.ts'
import { addPaging, type Paging, pageOf } from './paging.ts'
import { payoutExceptionsCommand } from './payout-exceptions.ts'
import { payoutProposalsCommand } from './payout-proposals.ts'
import { closeAllCommand, payoutRulesCommand } from './payout-rules.ts'
import { countOf, printResult, sheet, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

// One screen; a batch can have 100,000 payments.
const paymentsShown = 20

export const payoutsCommand = new Command('payouts')

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
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts list', 'payouts list --status building approved --json'))
  .action(async ({ json, rail, status, ...paging }: ListOptions) => {
    const asked = { rail, statuses: status, before: paging.before, take: paging.take + 1 }
    const { found, held, brakes, importing } = await withDatabase(async db => ({
      found: await batches.list(db, asked),
      held: await railHolds.list(db),
      importing: await listBegun(db, rail),
      brakes: await listBrakes(db, { rail }),
    }))
    const { shown, hasMore, more } = pageOf(found, paging)
    printResult(
      { json },
      {
        value: { batches: shown.map(onWire), hasMore, heldRails: held, brakes, importing },
        text: () =>
          held
            .map(each => `${each.rail} has been held since ${each.heldAt.toISOString()} by ${each.heldBy}.\n`)
            .join('') +
          brakes
            .map(brake => `No batch of ${brake.rail} is approved automatically. ${brakeInWords(brake)}.\n`)
            .join('') +
          importing.map(each => `${progressInWords(each)}.\n`).join('') +
          table(
            shown.map(batch => ({
              id: batch.id,
              rail: batch.rail,
              'value date': batch.valueDate,
              state: stateInWords(batch),
              payments: batch.paymentCount,
              total: inWords({ amount: batch.controlTotal, currency: batch.currency }),
              'cut-off': batch.cutOffAt.toISOString(),
            })),
          ) +
          more,
      },
    )
  })

type ListOptions = Paging & { json?: boolean; rail?: string; status?: BatchStatus[] }

payoutsCommand
  .command('show')
  .description('Show a batch: its sums, its approvals, its payments and its file.')
  .argument('<batch>', 'the batch’s id, bat_…')
  .option('--payments <count>', 'how many of its payments to list', whole({ min: 0, max: 100_000 }), paymentsShown)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts show bat_…', 'payouts show bat_… --payments 1000'))
  .action(async (batchId: string, { json, payments: take }: { json?: boolean; payments: number }) => {
    const { batch, approved, proposal, payments, timeZone } = await withTransaction(async (tx, settings) => {
      const batch = await batches.get(tx, batchId)
      return {
        ...{ batch, timeZone: await zoneOf(settings, batch.rail) },
        approved: await approvals.listApprovals(tx, batchId),
        proposal: (await listProposals(tx, [batchId]))[0] ?? null,
        payments: take === 0 ? [] : await batches.listPayments(tx, { batchId, after: '', take }),
      }
    })
    const { currency } = batch
    const more = batch.paymentCount - payments.filter(({ removedAt }) => removedAt === null).length
    printResult(
      { json },
      {
        value: {
          ...onWire(batch),
          cutOffTimeZone: timeZone,
          approvals: approved,
          approvalsNeeded: approvals.approvalsNeeded,
          proposal,
          payments: payments.map(({ netAmount: amount, ...payment }) => ({
            ...payment,
            amount: toWire({ amount, currency }),
          })),
        },
        text: () =>
          [
            sheet({
              id: batch.id,
              rail: batch.rail,
              state: stateInWords(batch),
              'message id': batch.messageId,
              'paid from': batch.debtor,
              'value date': batch.valueDate,
              'cut-off': timeZone === null ? batch.cutOffAt.toISOString() : inZone(batch.cutOffAt, timeZone),
              approvals: batch.approvedAutomatically
                ? 'none needed'
                : `${approved.length} of ${approvals.approvalsNeeded}`,
              payments: batch.paymentCount,
              total: inWords({ amount: batch.controlTotal, currency: batch.currency }),
              'name check': batch.nameCheck,
              file: batch.fileName,
              'SHA-256': batch.fileSha256,
              sent: batch.sentAt?.toISOString() ?? null,
            }),
            '',
            ...(approved.length === 0
              ? []
              : [
                  table(
                    approved.map(({ person, login, at }) => ({ 'approved by': person, login, at: at.toISOString() })),
                  ),
                ]),
            ...(proposal === null ? [] : [`${proposal.person} proposes to close it early: ${proposal.note}\n`]),
            table(
              payments.map(({ reference, partnerName, payee, netAmount: amount, outcome, removedAt }) => ({
                reference,
                partner: partnerName,
                payee: payee?.accountHolder ?? null,
                account: payee === null ? null : `…${payee.lastFour}`,
                amount: inWords({ amount, currency }),
                state: removedAt === null ? outcome : 'removed',
              })),
            ),
            ...(more > 0 ? [`… and ${countOf(more, 'payment')} more; see --payments`] : []),
          ].join('\n'),
      },
    )
  })

/** A day and time of a bank, with its zone. */
function inZone(at: Date, timeZone: string): string {
  const time = at.toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' })
  return `${dayIn(timeZone, at)} ${time} ${timeZone} (${at.toISOString()})`
}

/** Null if the rail has no files, or is no longer configured. */
async function zoneOf(settings: Settings, rail: string): Promise<string | null> {
  return fileRailsOf(await readRails(settings)).find(({ name }) => name === rail)?.timeZone ?? null
}

payoutsCommand
  .command('close')
  .description(
    'Close a batch before its cut-off, so that it can be approved and sent. This takes two people: the first person proposes it, and the same command of another person closes the batch. Later payments go into another batch.',
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .requiredOption('--note <text>', 'why', name({ lengthMax: 500 }))
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts close bat_… --note "the bank closes early today" --as "Ada Lovelace"'))
  .action(async (batchId: string, { note, as, json }: { note: string; as?: string; json?: boolean }) => {
    const person = personOf(as)
    const now = systemClock()
    const { batch, done } = await withTransaction(async (tx, settings) => {
      const rail = await findRail(settings, (await batches.get(tx, batchId)).rail)
      const by = { person, login: loginOf(), mayShareLogin: settings.MIDMONTH_APPROVAL_LOGINS === 'any' }
      const done = await closeEarly(tx, { rail, batchId, by, note, now })
      const details = { person, note, ...(done === 'closed' ? {} : { isProposed: true }) }
      await recordOnBatch(tx, { action: 'payout_batch.close', batchId, details, now })
      return { batch: await batches.get(tx, batchId), done }
    })
    printResult(
      { json },
      {
        value: { ...onWire(batch), isClosed: done === 'closed' },
        text: () =>
          done === 'closed'
            ? `${batchId} is closed: ${stateInWords(batch)}.`
            : `It is proposed that ${batchId} is closed early; another person must run the same command.`,
      },
    )
  })

payoutsCommand
  .command('withdraw')
  .description('Withdraw the proposal to close a batch early.')
  .argument('<batch>', 'the batch’s id, bat_…')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts withdraw bat_…'))
  .action(async (batchId: string, { as, json }: { as?: string; json?: boolean }) => {
    const now = systemClock()
    await withTransaction(async tx => {
      await batches.lock(tx, batchId)
      const by = personOf(as)
      const { decision, person } = await withdrawProposal(tx, { subject: batchId, person: by, now })
      const details = { person: by, decision, proposedBy: person }
      await recordOnBatch(tx, { action: 'payout_batch.withdraw', batchId, details, now })
    })
    printResult({ json }, { value: { id: batchId }, text: () => `${batchId} stays open until its cut-off.` })
  })

payoutsCommand
  .command('approve')
  .description(
    `Approve a batch above the limits for automatic approval, after its cut-off. The batch is sent once ${approvals.approvalsNeeded} people have approved it.`,
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts approve bat_…', 'payouts approve bat_… --as "Ada Lovelace"'))
  .action(async (batchId: string, { as, json }: { as?: string; json?: boolean }) => {
    const person = personOf(as)
    const now = systemClock()
    const { batch, approvalCount } = await withTransaction(async (tx, { MIDMONTH_APPROVAL_LOGINS }) => {
      const mayShareLogin = MIDMONTH_APPROVAL_LOGINS === 'any'
      const by = { person, login: loginOf(), mayShareLogin }
      const { approvalCount, hasChanged } = await approvals.approve(tx, { batchId, ...by, now })
      // A repeat is also recorded as such: a command accepts any name, and another spelling of a name may be an attempt to count twice.
      const details = { person, ...(hasChanged ? {} : { isRepeated: true }) }
      await recordOnBatch(tx, { action: 'payout_batch.approve', batchId, details, now })
      return { batch: await batches.get(tx, batchId), approvalCount }
    })
    printResult(
      { json },
      {
        value: { ...onWire(batch), approvalCount },
        text: () =>
          batch.status === 'approved'
            ? `${batchId} is approved.`
            : `${batchId} has ${approvalCount} of ${approvals.approvalsNeeded} approvals; another person must approve it.`,
      },
    )
  })

for (const { verb, held, action, description } of [
  {
    verb: 'hold',
    held: true,
    action: 'payout_batch.hold',
    description:
      'Hold an unsent batch, or a whole rail: nothing is sent until it is released. The bank’s answers are still read.',
  },
  {
    verb: 'release',
    held: false,
    action: 'payout_batch.release',
    description: 'Release a held batch or rail, even a rail that is no longer in MIDMONTH_RAILS.',
  },
] as const) {
  payoutsCommand
    .command(verb)
    .description(description)
    .argument('<batch or rail>', 'the batch’s id, bat_…, or the rail’s name in MIDMONTH_RAILS')
    .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
    .addOption(asOption())
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`payouts ${verb} bat_…`, `payouts ${verb} sepa --reason "bank outage"`))
    .action(async (batchId: string, { reason = null, as, json }: HoldOptions) => {
      const now = systemClock()
      if (!isIdOf('payoutBatch', batchId)) {
        const rail = batchId
        const hasChanged = await withTransaction(async (tx, settings) => {
          // A hold outlives the rail in the settings.
          if (held || !(await railHolds.wasEverHeld(tx, rail))) {
            findNamed(await readRails(settings), rail)
          }
          const person = personOf(as)
          const isNew = await (held ? railHolds.hold : railHolds.release)(tx, { rail, person, now })
          const change = { action: `rail.${verb}`, resourceId: rail, details: { person, reason } } as const
          // The rail is the installation's, not a partner's.
          if (isNew) await recordChange(tx, { partnerId: null, change, now })
          return isNew
        })
        printResult(
          { json },
          { value: { rail, held, hasChanged }, text: () => `${rail} is ${held ? 'held' : 'released'}.` },
        )
        return
      }
      const batch = await withTransaction(async tx => {
        const hasChanged = await unsentBatches.setHeld(tx, { batchId, held })
        if (hasChanged) await recordOnBatch(tx, { action, batchId, details: { person: personOf(as), reason }, now })
        return await batches.get(tx, batchId)
      })
      printResult({ json }, { value: onWire(batch), text: () => `${batchId} is ${stateInWords(batch)}.` })
    })
}

type HoldOptions = { reason?: string | null; as?: string; json?: boolean }

payoutsCommand
  .command('outcome')
  .description(
    'Record the outcome of a sent payment that no bank file answers. "failed" is refused while a debit that waits for a decision may be the payment, and while the bank may still pay. "returned" needs the day and the amount of the credit.',
  )
  .argument('<payment>', 'the payment reference MM…, or the withdrawal’s id w_…')
  .addOption(
    new Option('--outcome <outcome>', 'the outcome of the payment').choices(outcomesByHand).makeOptionMandatory(),
  )
  .requiredOption('--note <text>', 'how you know the outcome', name({ lengthMax: 500 }))
  .option('--booked-on <day>', 'with returned: when the bank booked the credit, for example 2026-03-31', dayOf)
  .option('--amount <minorUnits>', 'with returned: the amount that arrived', minorUnits)
  .addOption(
    new Option('--borne-by <who>', 'with returned, if less arrived than was paid: who bears the difference')
      .choices(['operator', 'partner'] as const)
      .default('operator' as const),
  )
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    examples(
      'payouts outcome MMK7Q2MZ4TB5XJ3A --outcome paid --note "seen in the portal"',
      'payouts outcome w_… --outcome returned --booked-on 2026-03-31 --amount 9450 --note "the bank kept 5.00"',
    ),
  )
  .action(async (payment: string, { outcome, note, bookedOn, amount, borneBy, as, json }: OutcomeOptions) => {
    const now = systemClock()
    const { withdrawalId, reference, done } = await withTransaction(async (tx, { MIDMONTH_APPROVAL_LOGINS }) => {
      const { currency } = await findPayout(tx, payment)
      const decided = outcomeOf({ outcome, bookedOn, amount, borneBy, currency })
      const by = { person: personOf(as), login: loginOf(), mayShareLogin: MIDMONTH_APPROVAL_LOGINS === 'any' }
      const found = await decideOutcomeOfTwo(tx, { payment, by, note, now, ...decided })
      const credit = amount === undefined ? {} : { bookedOn: bookedOn ?? null, amount: toWire({ amount, currency }) }
      const details = {
        ...{ person: personOf(as), note, outcome, ...credit },
        ...(found.done === 'decided' ? {} : { isProposed: true }),
      }
      const change = { action: 'payout.outcome', resourceId: found.withdrawalId, details } as const
      await recordChange(tx, { partnerId: found.partnerId, change, now })
      return found
    })
    printResult(
      { json },
      {
        value: { reference, withdrawalId, outcome },
        text: () =>
          done === 'decided'
            ? `${reference} counts as ${outcome}; the withdrawal follows within a minute.`
            : `It is proposed that ${reference} is ${outcome}; another person must run the same command.`,
      },
    )
  })

type OutcomeOptions = {
  outcome: (typeof outcomesByHand)[number]
  note: string
  bookedOn?: Day
  amount?: bigint
  borneBy: 'operator' | 'partner'
  as?: string
  json?: boolean
}

function outcomeOf({
  outcome,
  bookedOn,
  amount,
  borneBy,
  currency,
}: Pick<OutcomeOptions, 'outcome' | 'borneBy'> & {
  bookedOn: Day | undefined
  amount: bigint | undefined
  currency: Currency
}): OutcomeByHand {
  if (outcome !== 'returned') {
    if (bookedOn !== undefined || amount !== undefined) throw new Error(`A credit does not belong to ${outcome}`)
    return { outcome }
  }
  if (bookedOn === undefined || amount === undefined)
    throw new Error('For returned, give the day and amount of the credit with --booked-on and --amount')
  return { outcome, credit: { bookedOn, amount: { amount, currency } }, borneBy }
}

function dayOf(text: string): Day {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || !beginsWithDay(text))
    throw new InvalidArgumentError('Use a date, for example 2026-03-31.')
  return text
}

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
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts remove MMK7Q2MZ4TB5XJ3A --reason "The member asked for it"'))
  .action(async (payment: string, { reason, as, json }: { reason: string; as?: string; json?: boolean }) => {
    const now = systemClock()
    const removed = await withTransaction(async tx => {
      const done = await unsentBatches.remove(tx, { payment, reason, now })
      const details = { person: personOf(as), batchId: done.batchId, reason }
      const change = { action: 'payout.remove', resourceId: done.withdrawalId, details } as const
      await recordChange(tx, { partnerId: done.partnerId, change, now })
      return done
    })
    printResult(
      { json },
      { value: removed, text: () => `${removed.withdrawalId} left ${removed.batchId}; it fails within a minute.` },
    )
  })

payoutsCommand
  .command('export')
  .description(
    'Write the file of an approved batch, for a bank that takes files by hand. The batch then counts as sent.',
  )
  .argument('<batch>', 'the batch’s id, bat_…')
  .option('--folder <folder>', 'where to write the file', '.')
  .option(
    '--first-file-not-sent',
    'write the file even if an interrupted export may have written it: you know that the bank does not have it',
  )
  .option('--again', 'write the file of a sent batch once more: you know that the bank does not have it')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts export bat_… --folder /secure/to-the-bank'))
  .action(async (batchId: string, options: ExportOptions) => {
    const { folder, firstFileNotSent: isFirstUnsent = false, again: isAgain = false, as, json } = options
    const now = systemClock()
    const written = await withDatabase(async (db, settings) => {
      const rail = await findRail(settings, (await batches.get(db, batchId)).rail)
      const record = async (tx: Tx, { sha256 }: { sha256: string }) => {
        const words = { ...(isFirstUnsent ? { firstFileNotSent: true } : {}), ...(isAgain ? { again: true } : {}) }
        const details = { person: personOf(as), sha256, ...words }
        await recordOnBatch(tx, { action: 'payout_batch.export', batchId, details, now })
      }
      const context = { db, log: openLog('warn'), now: systemClock }
      const asked = { rail, batchId, folder, person: personOf(as), record }
      if (isAgain) return await exportAgain(context, asked)
      const file = await exportBatch(context, { ...asked, isFirstUnsent })
      if (file !== undefined) return file
      const sent = await copies.list(db, batchId)
      if (sent.length > 0)
        throw new Error(
          `The file has left already: ${copies.inWords(sent)}. If the bank gets it twice, it may pay all members twice; add --again only if the bank does not have it`,
        )
      if (await railHolds.isHeld(db, rail.name)) throw new Error(`The rail ${rail.name} is held; release it first`)
      const state = stateInWords(await batches.get(db, batchId))
      throw new Error(`The batch is ${state}; only an approved batch can be exported`)
    })
    printResult(
      { json },
      {
        value: written,
        text: () =>
          [
            written.path ?? 'The bank has answered this batch, so its file was not written again. It counts as sent.',
            ...(written.path !== null && !written.isNew ? ['An earlier export has written this file.'] : []),
            `value date ${written.valueDate}`,
            `SHA-256 ${written.sha256}`,
          ].join('\n'),
      },
    )
  })

type ExportOptions = { folder: string; firstFileNotSent?: boolean; again?: boolean; as?: string; json?: boolean }

payoutsCommand
  .command('import')
  .description(
    'Import a bank file, or a ZIP archive of such files: all of it, or nothing. Importing a file again changes nothing, or continues an interrupted import.',
  )
  .argument('<rail>', 'the rail’s name in MIDMONTH_RAILS')
  .argument('<file>', 'the bank’s file')
  .addOption(asOption())
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts import sepa /secure/from-the-bank/pain002.xml'))
  .action(async (railName: string, file: string, options: { as?: string; json?: boolean }) => {
    const now = systemClock()
    const fileName = path.basename(file)
    const imported = await withDatabase(async (db, settings) => {
      const rail = await findRail(settings, railName)
      const { size } = await stat(file)
      const bytes = () => createReadStream(file)
      return await importBankFile(db, {
        rail,
        name: fileName,
        size,
        bytes,
        now,
        async record(tx, { fileId, ...imported }) {
          const details = { person: personOf(options.as), rail: railName, file: fileName, ...imported }
          const change = { action: 'bank_file.import', resourceId: fileId, details } as const
          // The file is about the operator's account, not about one partner.
          await recordChange(tx, { partnerId: null, change, now })
        },
      })
    })
    if (imported.result === 'rejected')
      throw new Error(`${file} was refused, and nothing of it was booked. ${imported.problem}`)
    const { result, records, skippedAccounts } = imported
    const ofOthers =
      skippedAccounts === 0
        ? ''
        : ` ${countOf(skippedAccounts, 'account')} of the file ${skippedAccounts === 1 ? 'is' : 'are'} not of this rail; nothing about ${skippedAccounts === 1 ? 'it' : 'them'} was booked.`
    printResult(options, {
      value: imported,
      text: () =>
        result === 'repeated'
          ? 'The file was imported before; nothing changed.'
          : `${countOf(records, 'record')} imported.${ofOthers}`,
    })
  })

payoutsCommand
  .command('balances')
  .description(
    'Compare the paying accounts with the books, by day: the balance that the bank states, the sum of the floats on the account, and the difference.',
  )
  .option('--rail <rail>', 'only this rail')
  .option('--days <n>', 'how many days per account, up to 366', whole({ min: 1, max: 366 }), daysDefault)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('payouts balances', 'payouts balances --rail sepa --days 31 --json'))
  .action(async ({ rail, days, json }: { rail?: string; days: number; json?: boolean }) => {
    const { balances, differences } = await withDatabase(async (db, settings) => {
      const rails = rail === undefined ? fileRailsOf(await readRails(settings)) : [await findRail(settings, rail)]
      const listed = await Promise.all(rails.map(each => listBalances(db, each, { daysMax: days })))
      const asked = { rails: rails.map(({ name }) => name), take: differencesMax }
      return { balances: listed.flat().map(accountDayOnWire), differences: await exceptions.listDifferences(db, asked) }
    })
    printResult(
      { json },
      {
        value: { balances, differences },
        text: () => balancesInTable(balances, { differences }),
      },
    )
  })

payoutExceptionsCommand.addCommand(closeAllCommand)
payoutsCommand.addCommand(payoutProposalsCommand)
payoutsCommand.addCommand(payoutExceptionsCommand)
payoutsCommand.addCommand(payoutRulesCommand)

/** Records a change of a batch for each partner that has payments in it. */
async function recordOnBatch(
  tx: Tx,
  { action, batchId, details, now }: { action: Action; batchId: string; details: Details; now: Date },
): Promise<void> {
  for (const partnerId of await batches.listPartners(tx, batchId)) {
    await recordChange(tx, { partnerId, change: { action, resourceId: batchId, details }, now })
  }
}

async function findRail(settings: Settings, wanted: string): Promise<FileRailSettings> {
  return findNamed(fileRailsOf(await readRails(settings)), wanted)
}

function findNamed<T extends { name: string }>(rails: readonly T[], wanted: string): T {
  const rail = rails.find(each => each.name === wanted)
  if (rail !== undefined) return rail
  const known = rails.map(each => each.name).join(', ')
  throw new Error(`MIDMONTH_RAILS has no rail ${wanted}${known === '' ? '' : `; it has ${known}`}`)
}

function stateInWords({ status, held, closedAt }: batches.Batch): string {
  const state = status === 'building' && closedAt !== null ? 'waiting for approval' : status
  return held ? `${state}, held` : state
}

function onWire({ controlTotal, currency, ...batch }: batches.Batch) {
  return { ...batch, currency, controlTotal: toWire({ amount: controlTotal, currency }) }
}

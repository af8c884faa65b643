import { Command, Option } from 'commander'
import type { Action } from '../src/audit-log/audit-log.ts'
import * as invoices from '../src/fees/invoices.ts'
import { type Currency, inWords } from '../src/kernel/money.ts'
import { invoiceOnWire, invoiceSummaryOnWire } from '../src/operators/finance-schema.ts'
import { recordChange } from './actor.ts'
import { currency, day, month, name, whole } from './arguments.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { printResult, sheet, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const invoiceCommand = new Command('invoice')

const argument = {
  partner: ['<partner>', 'the partner’s id, par_…'],
  invoice: ['<invoice>', 'the invoice’s id, ivc_…; invoice list shows it'],
} as const

invoiceCommand
  .command('issue')
  .description(
    'Bill the fees that the employer pays and that no invoice bills yet. Fees that were given back are set off.',
  )
  .argument(...argument.partner)
  .argument('<currency>', 'for example GBP', currency)
  .option('--month <month>', 'a month that is over, for example 2026-03; by default all fees until now', month)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('invoice issue par_… GBP --month 2026-03'))
  .action(async (partnerId: string, code: Currency, { month: asked, json }) => {
    const { lines, ...invoice } = await withTransaction(async tx => {
      const now = await partnerNow(tx, partnerId)
      const issued = await invoices.issue(tx, { partnerId, currency: code, month: asked, now })
      const { number, sum, lastDay } = invoiceSummaryOnWire(issued)
      const change = { action: 'invoice.issue', resourceId: issued.id, details: { number, sum, lastDay } } as const
      await recordChange(tx, { partnerId, change, now })
      return issued
    })
    show({ json }, { invoice, lines })
  })

invoiceCommand
  .command('list')
  .description('List invoices, newest first.')
  .option('--partner <id>', 'only invoices of this partner')
  .addOption(new Option('--status <status>', 'only invoices in this state').choices(invoices.invoiceStatuses))
  .option('--take <n>', 'how many', whole({ min: 1, max: 1_000 }), 50)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('invoice list --status open', 'invoice list --partner par_…'))
  .action(async ({ partner: partnerId, status, take, json }) => {
    const statuses = status === undefined ? undefined : [status]
    const found = await withDatabase(async db => invoices.list(db, { partnerId, statuses, page: { skip: 0, take } }))
    printResult({ json }, { value: found.map(invoiceSummaryOnWire), text: () => table(found.map(rowOf)) })
  })

invoiceCommand
  .command('show')
  .description('Show an invoice with its lines.')
  .argument(...argument.partner)
  .argument(...argument.invoice)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('invoice show par_… ivc_…'))
  .action(async (partnerId: string, invoiceId: string, options) => {
    show(
      options,
      await withDatabase(async db => ({
        invoice: await invoices.find(db, { partnerId, invoiceId }),
        lines: await invoices.listInvoiceLines(db, { partnerId, invoiceId }),
      })),
    )
  })

invoiceCommand
  .command('pay')
  .description('Mark an invoice as paid: its fees become revenue. Its money is not part of the float. Idempotent.')
  .argument(...argument.partner)
  .argument(...argument.invoice)
  .requiredOption('--reference <text>', 'the reference of the transfer', name({ lengthMax: 140 }))
  .requiredOption('--on <day>', 'when the money arrived, for example 2026-04-07', day)
  .option('--json', 'print JSON')
  .addHelpText('after', examples('invoice pay par_… ivc_… --reference "transfer 7" --on 2026-04-07'))
  .action(async (partnerId: string, invoiceId: string, { reference, on, json }) => {
    const invoice = await withTransaction(async tx => {
      const now = await partnerNow(tx, partnerId)
      const paid = await invoices.pay(tx, { partnerId, invoiceId, reference, paidOn: on, now })
      const change = { action: 'invoice.pay', resourceId: invoiceId, details: { reference, on } } as const
      if (paid.isChanged) await recordChange(tx, { partnerId, change, now })
      return paid.invoice
    })
    printResult({ json }, { value: invoiceSummaryOnWire(invoice), text: () => sheet(rowOf(invoice)) })
  })

for (const { verb, action, description, act } of [
  {
    verb: 'reopen',
    action: 'invoice.reopen',
    description: 'Reopen a paid invoice: its fees are no longer revenue.',
    act: invoices.reopen,
  },
  {
    verb: 'void',
    action: 'invoice.void',
    description: 'Make the latest open invoice in its currency void: the next invoice bills its fees.',
    act: invoices.makeVoid,
  },
] as const satisfies { action: Action; [name: string]: unknown }[]) {
  invoiceCommand
    .command(verb)
    .description(description)
    .argument(...argument.partner)
    .argument(...argument.invoice)
    .requiredOption('--note <text>', 'why, for the audit log', name({ lengthMax: 500 }))
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`invoice ${verb} par_… ivc_… --note "wrong partner"`))
    .action(async (partnerId: string, invoiceId: string, { note, json }) => {
      const invoice = await withTransaction(async tx => {
        const now = await partnerNow(tx, partnerId)
        const changed = await act(tx, { partnerId, invoiceId, now })
        await recordChange(tx, { partnerId, change: { action, resourceId: invoiceId, details: { note } }, now })
        return changed
      })
      printResult({ json }, { value: invoiceSummaryOnWire(invoice), text: () => sheet(rowOf(invoice)) })
    })
}

function show(
  options: { json?: boolean },
  { invoice, lines }: { invoice: invoices.Invoice; lines: invoices.InvoiceLine[] },
): void {
  const words = (amount: bigint) => inWords({ amount, currency: invoice.currency })
  printResult(options, {
    value: invoiceOnWire(invoice, lines),
    text: () =>
      [
        sheet(rowOf(invoice)),
        table(
          lines.map(({ day: of, tier, withdrawals, fees, givenBack, feesGivenBack }) => ({
            ...{ day: of, tier, withdrawals, fees: words(fees) },
            'given back': givenBack,
            'fees given back': words(feesGivenBack),
          })),
        ),
      ].join('\n\n'),
  })
}

function rowOf(invoice: invoices.Invoice) {
  const { id, partnerId, status, firstDay, lastDay, sum: amount, currency: code, paidOn, paidReference } = invoice
  return {
    ...{ id, number: invoices.numberInWords(invoice), partner: partnerId, status },
    ...{ from: firstDay, to: lastDay, sum: inWords({ amount, currency: code }) },
    ...{ 'paid on': paidOn, reference: paidReference },
  }
}

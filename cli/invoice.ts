import { Option } from 'commander'
import {
  type Invoice,
  type InvoiceId,
  type InvoiceSummary,
  invoiceStatuses,
  type PartnerId,
} from '../packages/console/src/generated/operator.ts'
import type { Currency } from '../src/kernel/money.ts'
import { currency, day, month, name, whole } from './arguments.ts'
import { moneyInWords } from './money.ts'
import { addServerOptions, OperatorCommand } from './operator-client.ts'
import { sheet, table } from './print.ts'

const operations = () => import('../src/operators/invoice-operations.ts')

export const invoiceCommand = new OperatorCommand('invoice', operations).description(
  'Bill the fees that employers pay.',
)

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
  .examples('invoice issue par_… GBP --month 2026-03')
  .prints(
    (api, partnerId: PartnerId, code: Currency, { month: asked }) =>
      api.issueInvoice(partnerId, { currency: code, month: asked }),
    result => inWords(result),
  )

invoiceCommand
  .command('list')
  .description('List invoices, newest first.')
  .option('--partner <id>', 'only invoices of this partner')
  .addOption(new Option('--status <status>', 'only invoices in this state').choices(invoiceStatuses))
  .option('--take <n>', 'how many', whole({ min: 1, max: 1_000 }), 50)
  .examples('invoice list --status open', 'invoice list --partner par_…')
  .prints(
    (api, { partner: partnerId, status, take }) => {
      const statuses = status === undefined ? undefined : [status]
      return api.listInvoices({ partnerId, statuses, take })
    },
    found => table(found.invoices.map(rowOf)),
  )

invoiceCommand
  .command('show')
  .description('Show an invoice with its lines.')
  .argument(...argument.partner)
  .argument(...argument.invoice)
  .examples('invoice show par_… ivc_…')
  .prints(
    (api, partnerId: PartnerId, invoiceId: InvoiceId) => api.getInvoice(partnerId, invoiceId),
    result => inWords(result),
  )

invoiceCommand
  .command('pay')
  .description('Mark an invoice as paid: its fees become revenue. Its money is not part of the float. Idempotent.')
  .argument(...argument.partner)
  .argument(...argument.invoice)
  .requiredOption('--reference <text>', 'the reference of the transfer', name({ lengthMax: 140 }))
  .requiredOption('--on <day>', 'when the money arrived, for example 2026-04-07', day)
  .examples('invoice pay par_… ivc_… --reference "transfer 7" --on 2026-04-07')
  .prints(
    (api, partnerId: PartnerId, invoiceId: InvoiceId, { reference, on }) =>
      api.payInvoice(partnerId, invoiceId, { reference, on }),
    invoice => sheet(rowOf(invoice)),
  )

for (const { verb, description } of [
  { verb: 'reopen', description: 'Reopen a paid invoice: its fees are no longer revenue.' },
  {
    verb: 'void',
    description: 'Make the latest open invoice in its currency void: the next invoice bills its fees.',
  },
] as const) {
  invoiceCommand
    .command(verb)
    .description(description)
    .argument(...argument.partner)
    .argument(...argument.invoice)
    .requiredOption('--note <text>', 'why, for the audit log', name({ lengthMax: 500 }))
    .examples(`invoice ${verb} par_… ivc_… --note "wrong partner"`)
    .prints(
      (api, partnerId: PartnerId, invoiceId: InvoiceId, { note }) =>
        api[`${verb}Invoice`](partnerId, invoiceId, { note }),
      invoice => sheet(rowOf(invoice)),
    )
}

addServerOptions(invoiceCommand)

function inWords({ lines, ...invoice }: Invoice): string {
  return [
    sheet(rowOf(invoice)),
    table(
      lines.map(({ day: of, tier, withdrawals, fees, givenBack, feesGivenBack }) => ({
        ...{ day: of, tier, withdrawals, fees: moneyInWords(fees) },
        'given back': givenBack,
        'fees given back': moneyInWords(feesGivenBack),
      })),
    ),
  ].join('\n\n')
}

function rowOf({ id, number, partnerId, status, firstDay, lastDay, sum, paid }: InvoiceSummary) {
  return {
    ...{ id, number, partner: partnerId, status },
    ...{ from: firstDay, to: lastDay, sum: moneyInWords(sum) },
    ...{ 'paid on': paid?.on ?? null, reference: paid?.reference ?? null },
  }
}

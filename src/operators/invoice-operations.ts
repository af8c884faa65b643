import { Type } from 'typebox'
import { pageFields, pageOf, pageQuery, totalField } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import * as invoices from '../fees/invoices.ts'
import { named, operationWith, type Words } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, signedMoney, toWire } from '../kernel/money.ts'
import { described, namedObject, nullable, strictObject, wordOf } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'
import { partnerNow } from '../partners/clocks.ts'
import { Day } from './float-schema.ts'
import { line } from './partner-schema.ts'
import { Month } from './revenue-operations.ts'

const operation = operationWith({ tag: 'Finance', isForOperators: true })

const InvoiceStatus = wordOf(invoices.invoiceStatuses, {
  title: 'InvoiceStatus',
  description: 'The fees of a `void` invoice are billed by the next one.',
})

const summary = {
  id: Id('invoice'),
  partnerId: Id('partner'),
  number: Type.String({ description: 'The partner’s invoices are numbered without gaps.', examples: ['9Y3BDA-0001'] }),
  status: InvoiceStatus,
  firstDay: described(Day, 'The first day with a fee.'),
  lastDay: described(Day, 'The last day that the invoice covers.'),
  sum: signedMoney('The amount that the partner has to pay.'),
  issuedAt: Instant,
  paid: nullable(
    namedObject('InvoicePaid', { reference: Type.String(), on: Day }),
    'How the invoice was paid; null until then.',
  ),
}

const InvoiceLine = namedObject('InvoiceLine', {
  day: Day,
  tier: Type.String({ examples: ['Gold'] }),
  withdrawals: Type.Integer({ description: 'Withdrawals that were charged a fee on the day.' }),
  fees: signedMoney('Their fees.'),
  givenBack: Type.Integer({ description: 'Withdrawals whose fee was given back on the day.' }),
  feesGivenBack: signedMoney('Their fees.'),
})

const Invoice = namedObject('Invoice', {
  ...summary,
  lines: Type.Array(InvoiceLine, { description: 'By day and tier.' }),
})

const listInvoices = operation({
  route: 'GET /operator/v1/invoices',
  summary: 'List invoices',
  description: 'The invoices for fees that employers pay, newest first.',
  query: strictObject({
    ...pageQuery,
    partnerId: Type.Optional(Id('partner', 'Only invoices of this partner.')),
    statuses: Type.Optional(
      Type.Array(InvoiceStatus, { minItems: 1, maxItems: 3, description: 'Only invoices in these states.' }),
    ),
  }),
  success: {
    description: 'One page of invoices.',
    schema: namedObject('Invoices', {
      invoices: Type.Array(namedObject('InvoiceSummary', summary)),
      ...totalField,
      ...pageFields,
    }),
  },
  async read(reader, { query }) {
    const { partnerId, statuses } = query
    const page = pageOf(query)
    const total = await invoices.count(reader, { partnerId, statuses })
    const found = await invoices.list(reader, { partnerId, statuses, page })
    return { body: { invoices: found.map(summaryOnWire), total, ...page } }
  },
})

const issueInvoice = operation({
  route: 'POST /operator/v1/partners/:partnerId/invoices',
  summary: 'Issue an invoice',
  description:
    'Bills the fees that the employer pays and that no invoice bills yet, until the end of a month or until now. Fees that were given back are set off.',
  body: namedObject('NewInvoice', {
    currency: CurrencyCode,
    month: Type.Optional(described(Month, 'A month that is over. By default, all fees until now.')),
  }),
  success: { status: 201, description: 'The invoice.', schema: Invoice },
  async write(tx, call) {
    const { partnerId } = call.params
    const now = await partnerNow(tx, call, partnerId)
    const body = onWire(await invoices.issue(tx, { partnerId, ...call.body, now }))
    const { id, number, sum, lastDay } = body
    const audit = { action: 'invoice.issue', details: { number, sum, lastDay }, partnerId, now } as const
    return { body, resourceId: id, audit }
  },
})

const getInvoice = operation({
  route: 'GET /operator/v1/partners/:partnerId/invoices/:invoiceId',
  summary: 'Get an invoice',
  success: { description: 'The invoice with its lines.', schema: Invoice },
  async read(reader, call) {
    return { body: await withLines(reader, await invoices.find(reader, call.params)) }
  },
})

const payInvoice = operation({
  route: 'POST /operator/v1/partners/:partnerId/invoices/:invoiceId/pay',
  summary: 'Mark an invoice as paid',
  description:
    'Records that the partner has paid: the fees become revenue. The money is on an account of the operator; it is not part of the float. Idempotent.',
  body: namedObject('InvoicePayment', {
    reference: line(140, { description: 'The reference of the transfer.', examples: ['INV 9Y3BDA-0001'] }),
    on: described(Day, 'When the money arrived.'),
  }),
  success: { description: 'The invoice.', schema: Invoice },
  problems: ['UnprocessableEntity'],
  async write(tx, call) {
    const { partnerId, invoiceId } = call.params
    const { reference, on } = call.body
    const now = await partnerNow(tx, call, partnerId)
    const { invoice, isChanged } = await invoices.pay(tx, { partnerId, invoiceId, reference, paidOn: on, now })
    const audit = { action: 'invoice.pay', details: { reference, on }, partnerId, now } as const
    return { body: await withLines(tx, invoice), resourceId: invoiceId, audit: isChanged ? audit : undefined }
  },
})

const reopenInvoice = correction('reopen', {
  summary: 'Reopen a paid invoice',
  description: 'The fees are no longer revenue, and the invoice is open again.',
  correct: invoices.reopen,
})

const voidInvoice = correction('void', {
  summary: 'Make an invoice void',
  description: 'The next invoice bills its fees. Only the latest open invoice in its currency can be made void.',
  correct: invoices.makeVoid,
})

export const invoiceOperations = named({
  listInvoices,
  issueInvoice,
  getInvoice,
  payInvoice,
  reopenInvoice,
  voidInvoice,
})

function correction(verb: 'reopen' | 'void', { correct, ...words }: Words & { correct: typeof invoices.reopen }) {
  return operation({
    route: `POST /operator/v1/partners/:partnerId/invoices/:invoiceId/${verb}`,
    ...words,
    body: namedObject('InvoiceNote', {
      note: line(500, {
        description: 'The reason in the audit log. Must not contain personal data.',
        examples: ['Paid by mistake'],
      }),
    }),
    success: { description: 'The invoice.', schema: Invoice },
    async write(tx, call) {
      const { partnerId, invoiceId } = call.params
      const now = await partnerNow(tx, call, partnerId)
      const invoice = await correct(tx, { partnerId, invoiceId, now })
      return {
        body: await withLines(tx, invoice),
        resourceId: invoiceId,
        audit: { action: `invoice.${verb}`, details: call.body, partnerId, now },
      }
    },
  })
}

async function withLines(reader: Reader, invoice: invoices.Invoice) {
  const { partnerId, id: invoiceId } = invoice
  return onWire({ ...invoice, lines: await invoices.listInvoiceLines(reader, { partnerId, invoiceId }) })
}

function onWire({ lines, ...invoice }: invoices.Invoice & { lines: invoices.InvoiceLine[] }) {
  return {
    ...summaryOnWire(invoice),
    lines: lines.map(({ fees, feesGivenBack, ...rest }) => ({
      ...rest,
      ...allToWire({ fees, feesGivenBack }, invoice.currency),
    })),
  }
}

function summaryOnWire({ number, sum, currency, paidReference, paidOn, ...rest }: invoices.Invoice) {
  return {
    ...rest,
    number: invoices.numberInWords({ ...rest, number }),
    sum: toWire({ amount: sum, currency }),
    paid: paidReference === null ? null : { reference: paidReference, on: paidOn },
  }
}

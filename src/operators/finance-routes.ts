import { type Static, Type } from 'typebox'
import { pageFields, pageOf, pageQuery, totalField } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import * as invoices from '../fees/invoices.ts'
import { readRevenue } from '../fees/revenue.ts'
import { readStatement } from '../fees/statement.ts'
import * as float from '../float/float.ts'
import { csvHeaders, prefersCsv, sendCsv } from '../http/bodies/csv.ts'
import { operation } from '../http/described-route.ts'
import { partnerNow, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { CurrencyCode, fromWire, toWire, WireMoney } from '../kernel/money.ts'
import { findState } from '../partners/partners.ts'
import { journalDaysMax, openJournal } from '../verification/journal.ts'
import {
  Day,
  Invoice,
  InvoiceStatus,
  InvoiceSummary,
  invoiceOnWire,
  invoiceSummaryOnWire,
  Month,
  Revenues,
  revenueOnWire,
  Statement,
  statementFile,
  statementOnWire,
} from './finance-schema.ts'
import { line } from './partner-schema.ts'

const tag = 'Finance'
const strict = { additionalProperties: false }
const config = { isForOperators: true } as const
const ofPartner = Type.Object({ partnerId: Id('partner') })
const ofInvoice = Type.Object({ partnerId: Id('partner'), invoiceId: Id('invoice') })

const Payment = Type.Object(
  {
    reference: line(140, { description: 'The reference of the transfer.', examples: ['INV 9Y3BDA-0001'] }),
    on: Type.Unsafe<string>({ ...Day, description: 'When the money arrived.' }),
  },
  { title: 'InvoicePayment', ...strict },
)
const Note = Type.Object(
  {
    note: line(500, {
      description: 'The reason in the audit log. Must not contain personal data.',
      examples: ['Paid by mistake'],
    }),
  },
  { title: 'InvoiceNote', ...strict },
)

export function financeRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/operator/v1/partners/:partnerId/revenue',
    {
      config,
      schema: operation({
        id: 'getRevenue',
        tag,
        summary: 'Get the revenue of a partner',
        description: 'The fees that are the operator’s income, by currency, and where the money is.',
        params: ofPartner,
        success: { status: 200, description: 'One entry per currency.', schema: Revenues },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({ status: 200, body: await revenueOf(reader, request.params) })),
  )

  app.post(
    '/operator/v1/partners/:partnerId/revenue/withdraw',
    {
      config,
      schema: operation({
        id: 'withdrawRevenue',
        tag,
        summary: 'Withdraw revenue from a float',
        description:
          'Records that collected fees were taken out of the float: at most the amount collected, and the amount that is free above the floor.',
        params: ofPartner,
        body: Type.Object(
          {
            amount: WireMoney,
            reference: line(140, {
              description: 'Your reference, for example the bank’s. A second movement with it does nothing.',
              examples: ['fees 2026-03'],
            }),
          },
          { title: 'RevenueMovement', ...strict },
        ),
        success: { status: 200, description: 'The revenue after the withdrawal.', schema: Revenues },
        problems: ['NotFound', 'UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const { reference } = request.body
        const amount = fromWire(request.body.amount)
        const now = await partnerNow(tx, request, partnerId)
        const moved = await float.withdrawRevenue(tx, { partnerId, amount, reference, now })
        const details = { amount: toWire(amount), reference, movementId: moved.movementId }
        const change = { action: 'revenue.withdraw', resourceId: amount.currency, details } as const
        if (!moved.isRepeated) await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: await revenueOf(tx, request.params), resourceId: moved.movementId }
      }),
  )

  app.get(
    '/operator/v1/partners/:partnerId/fee-statement',
    {
      config,
      schema: operation({
        id: 'getFeeStatement',
        tag,
        summary: 'Get the fee statement of a month',
        description:
          'The fees of a partner’s withdrawals by day and tier, and their sums per currency. A fee counts on the day of its withdrawal, and is given back on the day on which the withdrawal was cancelled, failed or was returned. With `accept: text/csv`, the response is a file of the lines.',
        params: ofPartner,
        query: Type.Object({ month: Month }, strict),
        success: {
          status: 200,
          description: 'The statement, or its lines as a file.',
          schema: Statement,
          csv: {
            description: 'One line per day and tier, with amounts in decimals. Spreadsheets read no cell as a formula.',
            example:
              'day,tier,withdrawals,member_fees,employer_fees,given_back,member_fees_given_back,employer_fees_given_back,currency\r\n2026-03-10,Bronze,3,1.50,0.00,1,0.50,0.00,GBP\r\n',
          },
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      reply.header('vary', 'accept')
      return await read(db, request, reply, async reader => {
        const { partnerId } = request.params
        const { month } = request.query
        const { timeZone } = await findState(reader, partnerId)
        const statement = await readStatement(reader, { partnerId, timeZone, month })
        if (prefersCsv(request.headers.accept))
          return { status: 200, body: statementFile(statement), headers: csvHeaders(`fees-${month}.csv`) }
        return { status: 200, body: statementOnWire(statement) }
      })
    },
  )

  app.get(
    '/operator/v1/invoices',
    {
      config,
      schema: operation({
        id: 'listInvoices',
        tag,
        summary: 'List invoices',
        description: 'The invoices for fees that employers pay, newest first.',
        query: Type.Object(
          {
            ...pageQuery,
            partnerId: Type.Optional(Id('partner', 'Only invoices of this partner.')),
            statuses: Type.Optional(
              Type.Array(InvoiceStatus, { minItems: 1, maxItems: 3, description: 'Only invoices in these states.' }),
            ),
          },
          strict,
        ),
        success: {
          status: 200,
          description: 'One page of invoices.',
          schema: Type.Object(
            { invoices: Type.Array(InvoiceSummary), ...totalField, ...pageFields },
            { title: 'Invoices', ...strict },
          ),
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partnerId, statuses } = request.query
        const page = pageOf(request.query)
        const filter = { partnerId, statuses: statuses as readonly invoices.InvoiceStatus[] | undefined }
        const total = await invoices.count(reader, filter)
        const found = await invoices.list(reader, { ...filter, page })
        return { status: 200, body: { invoices: found.map(invoiceSummaryOnWire), total, ...page } }
      }),
  )

  app.post(
    '/operator/v1/partners/:partnerId/invoices',
    {
      config,
      schema: operation({
        id: 'issueInvoice',
        tag,
        summary: 'Issue an invoice',
        description:
          'Bills the fees that the employer pays and that no invoice bills yet, until the end of a month or until now. Fees that were given back are set off.',
        params: ofPartner,
        body: Type.Object(
          {
            currency: CurrencyCode,
            month: Type.Optional(
              Type.Unsafe<string>({ ...Month, description: 'A month that is over. By default, all fees until now.' }),
            ),
          },
          { title: 'NewInvoice', ...strict },
        ),
        success: { status: 201, description: 'The invoice.', schema: Invoice },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const now = await partnerNow(tx, request, partnerId)
        const { lines, ...invoice } = await invoices.issue(tx, { partnerId, ...request.body, now })
        const body = invoiceOnWire(invoice, lines)
        const { id, number, sum, lastDay } = body
        const change = { action: 'invoice.issue', resourceId: id, details: { number, sum, lastDay } } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 201, body, resourceId: id }
      }),
  )

  app.get(
    '/operator/v1/partners/:partnerId/invoices/:invoiceId',
    {
      config,
      schema: operation({
        id: 'getInvoice',
        tag,
        summary: 'Get an invoice',
        params: ofInvoice,
        success: { status: 200, description: 'The invoice with its lines.', schema: Invoice },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const invoice = await invoices.find(reader, request.params)
        return { status: 200, body: await withLines(reader, invoice) }
      }),
  )

  app.post(
    '/operator/v1/partners/:partnerId/invoices/:invoiceId/pay',
    {
      config,
      schema: operation({
        id: 'payInvoice',
        tag,
        summary: 'Mark an invoice as paid',
        description:
          'Records that the partner has paid: the fees become revenue. The money is on an account of the operator; it is not part of the float. Idempotent.',
        params: ofInvoice,
        body: Payment,
        success: { status: 200, description: 'The invoice.', schema: Invoice },
        problems: ['NotFound', 'UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId, invoiceId } = request.params
        const { reference, on } = request.body
        const now = await partnerNow(tx, request, partnerId)
        const paid = await invoices.pay(tx, { partnerId, invoiceId, reference, paidOn: on, now })
        const change = { action: 'invoice.pay', resourceId: invoiceId, details: { reference, on } } as const
        if (paid.isChanged) await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: await withLines(tx, paid.invoice), resourceId: invoiceId }
      }),
  )

  for (const { verb, action, summary, description, act } of [
    {
      verb: 'reopen',
      action: 'invoice.reopen',
      summary: 'Reopen a paid invoice',
      description: 'The fees are no longer revenue, and the invoice is open again.',
      act: invoices.reopen,
    },
    {
      verb: 'void',
      action: 'invoice.void',
      summary: 'Make an invoice void',
      description: 'The next invoice bills its fees. Only the latest open invoice in its currency can be made void.',
      act: invoices.makeVoid,
    },
  ] as const) {
    app.post(
      `/operator/v1/partners/:partnerId/invoices/:invoiceId/${verb}`,
      {
        config,
        schema: operation({
          id: `${verb}Invoice`,
          tag,
          summary,
          description,
          params: ofInvoice,
          body: Note,
          success: { status: 200, description: 'The invoice.', schema: Invoice },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { partnerId, invoiceId } = request.params
          const { note } = request.body
          const now = await partnerNow(tx, request, partnerId)
          const invoice = await act(tx, { partnerId, invoiceId, now })
          const change = { action, resourceId: invoiceId, details: { note } }
          await recordOperatorChange(tx, request, { partnerId, change, now })
          return { status: 200, body: await withLines(tx, invoice), resourceId: invoiceId }
        }),
    )
  }

  app.get(
    '/operator/v1/journal',
    {
      config,
      schema: operation({
        id: 'exportJournal',
        tag,
        summary: 'Export the journal',
        description:
          'The books by day and account, for an accounting program. The withdrawals and pay runs of a day are one entry per reason; every other movement is an entry. The lines with one reference, reason and currency balance. Export days that are over: the current day can still grow.',
        query: Type.Object(
          {
            from: Type.Unsafe<string>({ ...Day, description: 'The first day, by each partner’s time zone.' }),
            to: Type.Unsafe<string>({ ...Day, description: `The last day, at most ${journalDaysMax} days in all.` }),
            partnerId: Type.Optional(Id('partner', 'Only this partner; by default, all partners.')),
          },
          strict,
        ),
        success: {
          status: 200,
          description: 'The journal as a file.',
          csv: {
            description:
              'One line per day, partner, reference, account and side, with the amount in decimals either in `debit` or in `credit`. Spreadsheets read no cell as a formula.',
            example: `day,partner_id,reference,reason,account,debit,credit,currency\r\n2026-03-10,${exampleId('partner')},bank transfer 1,float.funded,float,5000.00,,GBP\r\n2026-03-10,${exampleId('partner')},bank transfer 1,float.funded,funding,,5000.00,GBP\r\n`,
          },
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { from: firstDay, to: lastDay, partnerId } = request.query
      const parts = await openJournal(db, { partnerId, firstDay, lastDay })
      return sendCsv(request, reply, { name: `journal-${firstDay}-${lastDay}.csv`, parts })
    },
  )
}

/** @throws Problem `NotFound` */
async function revenueOf(reader: Reader, { partnerId }: Static<typeof ofPartner>) {
  await findState(reader, partnerId)
  return { revenue: (await readRevenue(reader, partnerId)).map(revenueOnWire) }
}

async function withLines(reader: Reader, invoice: invoices.Invoice) {
  return invoiceOnWire(invoice, await invoices.listInvoiceLines(reader, { ...invoice, invoiceId: invoice.id }))
}

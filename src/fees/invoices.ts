import { type Columns, type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { type Currency, inWords } from '../kernel/money.ts'
import { addDays, type Day, dayIn, startOfDay } from '../kernel/time.ts'
import { describeDetached, detachedUntil, firstWholeDay } from '../ledger/detached.ts'
import * as ledger from '../ledger/ledger.ts'
import { daysOf, instantsOf, listLines } from './statement.ts'

// Employers' fees: a receivable of the partner, which an invoice bills and the operator marks as paid. Its money is not part of the
// float.

export const invoiceStatuses = ['open', 'paid', 'void'] as const
type InvoiceStatus = (typeof invoiceStatuses)[number]

/**
 * @property number counts the partner's invoices, without gaps
 * @property firstDay the first day with a fee
 * @property lastDay the last day that the invoice is for
 */
export type Invoice = Columns<'invoices'>

/** Employers' fees of a day and tier, in minor units: charged on that day, and given back on it. */
export type InvoiceLine = Omit<Columns<'invoiceLines'>, 'partnerId' | 'invoiceId'>

type OfInvoice = { partnerId: string; invoiceId: string }

/** Returns the number as printed, which is unique across partners. */
export function numberInWords({ partnerId, number }: { partnerId: string; number: number }): string {
  return `${partnerId.slice(-6).toUpperCase()}-${String(number).padStart(4, '0')}`
}

/**
 * Issues the invoice for all unbilled employers' fees of a partner, up to the end of a month or until now. Fees that have been
 * given back are set off.
 * @param month '2026-03', which must be over; undefined for all fees until now
 * @throws Problem `NotFound`; `Conflict` if the month is not over, or there is nothing to bill
 */
export async function issue(
  tx: Tx,
  { partnerId, currency, month, now }: { partnerId: string; currency: Currency; month?: string | undefined; now: Date },
): Promise<Invoice & { lines: InvoiceLine[] }> {
  const timeZone = await lockPartner(tx, partnerId)
  const today = dayIn(timeZone, now)
  const lastDay = month === undefined ? today : daysOf(month).last
  if (month !== undefined && lastDay >= today)
    throw conflict(`${month} is not over yet; leave out the month to bill all fees until now`)
  const lines = await listUnbilled(tx, { partnerId, currency, timeZone, lastDay })
  const sum = sumOf(lines)
  const [first] = lines
  if (first === undefined) throw conflict(`No fees in ${currency} are left to bill until ${lastDay}`)
  if (sum <= 0n)
    throw conflict(
      sum === 0n
        ? `Until ${lastDay}, the fees given back equal the others, so nothing is left to bill`
        : `Until ${lastDay}, the fees given back exceed the others by ${inWords({ amount: -sum, currency })}; the next invoice sets this off`,
    )
  const { rows } = await sql<{ number: number }>`
    select coalesce(max(number), 0) + 1 as number from invoices where partner_id = ${partnerId}`.execute(tx)
  const invoice: Invoice = {
    ...{ partnerId, id: newId('invoice', now), number: rows[0]?.number ?? 1, currency, status: 'open' },
    ...{ firstDay: first.day, lastDay, sum, issuedAt: now, paidReference: null, paidOn: null },
  }
  await tx.insertInto('invoices').values(invoice).execute()
  const ofInvoice = { partnerId, invoiceId: invoice.id }
  await tx
    .insertInto('invoiceLines')
    .values(lines.map(line => ({ ...ofInvoice, ...line })))
    .execute()
  await book(tx, invoice, { reason: 'invoice.issued', now })
  return { ...invoice, lines }
}

// Fees of a day are complete soon after it: a withdrawal that is decided before midnight is committed within minutes.
const daysLate = 2

/** The fees that no invoice bills, without those of the time whose transfers are detached: a year is detached once they are invoiced. */
async function listUnbilled(
  tx: Reader,
  { partnerId, currency, timeZone, lastDay }: { partnerId: string; currency: Currency; timeZone: string; lastDay: Day },
): Promise<InvoiceLine[]> {
  const { rows } = await sql<{ through: Day | null; begins: Day | null }>`
    select (select max(last_day)::text from invoices
             where partner_id = ${partnerId} and currency = ${currency} and status <> 'void') as through,
           -- Withdrawals of a seeded sandbox are older than the partner.
           (select (created_at at time zone ${timeZone})::date::text from withdrawals
             where partner_id = ${partnerId} and employer_fee > 0 order by id limit 1) as begins`.execute(tx)
  const { through = null, begins = null } = rows[0] ?? {}
  if (begins === null) return []
  const until = await detachedUntil(tx)
  const attachedSince = until === null ? '' : firstWholeDay(timeZone, until)
  const unbilledSince = addDays(through ?? begins, -daysLate)
  const firstDay = unbilledSince < attachedSince ? attachedSince : unbilledSince
  if (firstDay > lastDay) return []
  const span = instantsOf(timeZone, { first: firstDay, last: lastDay })
  const charged = await listLines(tx, { partnerId, ...span })
  const billed = await sql<InvoiceLine>`
    select l.day::text, l.tier, l.withdrawals, l.fees, l.given_back, l.fees_given_back
      from invoice_lines l join invoices i on i.partner_id = l.partner_id and i.id = l.invoice_id
     where l.partner_id = ${partnerId} and i.currency = ${currency} and i.status <> 'void'
       and l.day >= ${firstDay}`.execute(tx)
  const unbilled = new Map<string, InvoiceLine>()
  const add = (sign: 1 | -1, { day, tier, ...line }: InvoiceLine) => {
    const key = `${day} ${tier}`
    const sum = unbilled.get(key) ?? { day, tier, withdrawals: 0, fees: 0n, givenBack: 0, feesGivenBack: 0n }
    sum.withdrawals += sign * line.withdrawals
    sum.fees += BigInt(sign) * line.fees
    sum.givenBack += sign * line.givenBack
    sum.feesGivenBack += BigInt(sign) * line.feesGivenBack
    unbilled.set(key, sum)
  }
  for (const { day, tier, employerFees: fees, employerFeesGivenBack: feesGivenBack, ...line } of charged) {
    if (line.currency !== currency || (fees === 0n && feesGivenBack === 0n)) continue
    add(1, { day, tier, withdrawals: line.withdrawals, fees, givenBack: line.givenBack, feesGivenBack })
  }
  for (const line of billed.rows) add(-1, line)
  return [...unbilled.values()]
    .filter(({ fees, feesGivenBack }) => fees !== 0n || feesGivenBack !== 0n)
    .sort((a, b) => (a.day === b.day ? (a.tier < b.tier ? -1 : 1) : a.day < b.day ? -1 : 1))
}

/**
 * The partners whose fees from before an instant are not invoiced, in an order. Fees of the day that the instant is in count too.
 * @returns `isCredit`: whether more was given back than charged in a currency, which only a later invoice sets off
 */
export async function listUninvoiced(db: Reader, before: Date): Promise<{ partnerId: string; isCredit: boolean }[]> {
  const { rows } = await sql<{ partnerId: string; timeZone: string; currency: Currency }>`
    select distinct t.partner_id, p.time_zone, t.currency
      from tiers t
      join tier_versions v on v.partner_id = t.partner_id and v.tier = t.name and v.fee_payer = 'employer'
      join partners p on p.id = t.partner_id
     order by 1, 3`.execute(db)
  const uninvoiced: { partnerId: string; isCredit: boolean }[] = []
  for (const billed of rows) {
    const lines = await listUnbilled(db, { ...billed, lastDay: addDays(firstWholeDay(billed.timeZone, before), -1) })
    const sum = sumOf(lines)
    if (sum !== 0n) uninvoiced.push({ partnerId: billed.partnerId, isCredit: sum < 0n })
  }
  return uninvoiced
}

const sumOf = (lines: InvoiceLine[]) =>
  lines.reduce((total, { fees, feesGivenBack }) => total + fees - feesGivenBack, 0n)

/** How an invoice was paid: the reference of the transfer, and the day on which it arrived. */
export type InvoicePayment = { reference: string; paidOn: Day }

/**
 * Marks an invoice as paid: the fees that it bills become revenue. Idempotent.
 * @returns the invoice, and whether it was open until now
 * @throws Problem `NotFound`; `Conflict` if it is void, or paid in another way; `UnprocessableEntity` if the day is in the future
 */
export async function pay(
  tx: Tx,
  { partnerId, invoiceId, reference, paidOn, now }: OfInvoice & InvoicePayment & { now: Date },
): Promise<{ invoice: Invoice; isChanged: boolean }> {
  const timeZone = await lockPartner(tx, partnerId)
  const invoice = await find(tx, { partnerId, invoiceId })
  if (invoice.status === 'paid' && invoice.paidReference === reference && invoice.paidOn === paidOn)
    return { invoice, isChanged: false }
  requireStatus(invoice, 'open')
  if (paidOn > dayIn(timeZone, now))
    throw problem('UnprocessableEntity', `${paidOn} is in the future; give the day on which the money arrived`)
  const paid = { ...invoice, status: 'paid', paidReference: reference, paidOn } as const
  await save(tx, paid)
  await book(tx, paid, { reason: 'invoice.paid', now })
  return { invoice: paid, isChanged: true }
}

/**
 * Reopens an invoice that was marked as paid by mistake: its fees are no longer revenue.
 * @throws Problem `NotFound`; `Conflict` if it is not paid
 */
export async function reopen(tx: Tx, { partnerId, invoiceId, now }: OfInvoice & { now: Date }): Promise<Invoice> {
  await lockPartner(tx, partnerId)
  const invoice = await find(tx, { partnerId, invoiceId })
  requireStatus(invoice, 'paid')
  const open = { ...invoice, status: 'open', paidReference: null, paidOn: null } as const
  await save(tx, open)
  await book(tx, open, { reason: 'invoice.reopened', now })
  return open
}

/**
 * Makes an invoice void, so that the next one bills its fees.
 * @throws Problem `NotFound`; `Conflict` if it is not open, not the latest one in its currency, or transfers of its days are detached
 */
export async function makeVoid(tx: Tx, { partnerId, invoiceId, now }: OfInvoice & { now: Date }): Promise<Invoice> {
  const timeZone = await lockPartner(tx, partnerId)
  const invoice = await find(tx, { partnerId, invoiceId })
  requireStatus(invoice, 'open')
  const detached = await describeDetached(tx, startOfDay(timeZone, invoice.firstDay), timeZone)
  if (detached !== null) throw conflict(detached)
  const later = await tx
    .selectFrom('invoices')
    .select(['partnerId', 'number'])
    .where('partnerId', '=', partnerId)
    .where('currency', '=', invoice.currency)
    .where('status', '<>', 'void')
    .where('number', '>', invoice.number)
    .orderBy('number')
    .executeTakeFirst()
  if (later !== undefined)
    throw conflict(`Invoice ${numberInWords(later)} follows this one; make that invoice void first`)
  const voided = { ...invoice, status: 'void' } as const
  await save(tx, voided)
  await book(tx, voided, { reason: 'invoice.voided', now })
  return voided
}

const postings = {
  'invoice.issued': [['fees_receivable', 'partner_fees']],
  'invoice.paid': [
    ['operator_account', 'fees_receivable'],
    ['fees', 'revenue'],
  ],
  'invoice.reopened': [
    ['fees_receivable', 'operator_account'],
    ['revenue', 'fees'],
  ],
  'invoice.voided': [['partner_fees', 'fees_receivable']],
} as const

async function book(
  tx: Tx,
  { partnerId, id, sum: amount, currency }: Invoice,
  { reason, now }: { reason: keyof typeof postings; now: Date },
): Promise<void> {
  const transfers = postings[reason].map(([debit, credit]) => ({ debit, credit, amount, currency }))
  await ledger.post(tx, { partnerId, movementId: id, reason, transfers, now })
}

function requireStatus({ status, partnerId, number }: Invoice, wanted: InvoiceStatus): void {
  if (status !== wanted) throw conflict(`Invoice ${numberInWords({ partnerId, number })} is ${status}, not ${wanted}`)
}

async function save(tx: Tx, { partnerId, id, status, paidReference, paidOn }: Invoice): Promise<void> {
  await tx
    .updateTable('invoices')
    .set({ status, paidReference, paidOn })
    .where('partnerId', '=', partnerId)
    .where('id', '=', id)
    .execute()
}

// Invoices of one partner change one at a time. @returns the partner's time zone
async function lockPartner(tx: Tx, partnerId: string): Promise<string> {
  const { rows } = await sql<{ timeZone: string }>`
    select time_zone from partners where id = ${partnerId} for no key update`.execute(tx)
  if (rows[0] === undefined)
    throw problem('NotFound', `There is no partner ${partnerId}; run midmonth partner list to see the ids`)
  return rows[0].timeZone
}

/** @throws Problem `NotFound`, also for another partner's invoice */
export async function find(db: Reader, { partnerId, invoiceId }: OfInvoice): Promise<Invoice> {
  return await selectAll(db)
    .where('partnerId', '=', partnerId)
    .where('id', '=', invoiceId)
    .executeTakeFirstOrThrow(() =>
      problem('NotFound', `There is no invoice ${invoiceId}; run midmonth invoice list to see the ids`),
    )
}

/** The lines of an invoice, by day and tier. */
export async function listInvoiceLines(db: Reader, { partnerId, invoiceId }: OfInvoice): Promise<InvoiceLine[]> {
  return await db
    .selectFrom('invoiceLines')
    .select(['day', 'tier', 'withdrawals', 'fees', 'givenBack', 'feesGivenBack'])
    .where('partnerId', '=', partnerId)
    .where('invoiceId', '=', invoiceId)
    .orderBy('day')
    .orderBy('tier')
    .execute()
}

type InvoiceFilter = { partnerId?: string | undefined; statuses?: readonly InvoiceStatus[] | undefined }

/** Invoices, newest first. */
export async function list(db: Reader, { page, ...filter }: InvoiceFilter & { page: Page }): Promise<Invoice[]> {
  return await filtered(selectAll(db), filter).orderBy('id', 'desc').offset(page.skip).limit(page.take).execute()
}

export async function count(db: Reader, filter: InvoiceFilter): Promise<number> {
  const { total } = await filtered(selectAll(db), filter)
    .clearSelect()
    .select(sql<number>`count(*)::integer`.as('total'))
    .executeTakeFirstOrThrow()
  return total
}

function selectAll(db: Reader) {
  return db.selectFrom('invoices').selectAll()
}

function filtered(query: ReturnType<typeof selectAll>, { partnerId, statuses }: InvoiceFilter) {
  return query
    .$if(partnerId !== undefined, all => all.where('partnerId', '=', partnerId ?? ''))
    .$if(statuses !== undefined, all => all.where('status', 'in', statuses ?? []))
}

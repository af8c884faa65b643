import type { Db } from '../../../database/database.ts'
import type { Clock } from '../../../kernel/time.ts'
import { SecretFileProblem } from '../../../secret-file.ts'
import { readRecords } from '../../books/reports.ts'
import { type Payment, type Report, type ReportedOutcome, toReport } from '../../payments/payment.ts'
import type { Channel } from '../channel.ts'
import { admit, releaseApproved } from './approvals.ts'
import {
  closeRequest,
  closeRequestsUntil,
  findPayments,
  type KnownPayment,
  openBlocked,
  openRequest,
  recordFailure,
  recordTransfers,
} from './books.ts'
import { catchUp } from './catch-up.ts'
import { AdyenClient, forEachAtOnce, Refused } from './client.ts'
import { refusalOf, transferInfo } from './request.ts'
import type { AdyenSettings } from './settings.ts'
import { type Transfer, UnexpectedShape } from './transfer.ts'

const dayMs = 86_400_000

const limits = {
  // Eight requests run at a time: even at three seconds each, all payments fit into one call.
  paymentsMax: 50,
  callMsMax: 20_000,
  // The vendor keeps a key for at least a week. After that, a repeated request could pay twice.
  repeatMsMax: 6 * dayMs,
  // After this time the bank either has the payment of a request or never will. Requests are aborted after 10 s.
  effectMsMax: 15 * 60_000,
  // The bank's clock may differ from ours, and a partner's sandbox clock may be ahead.
  clockMsMax: dayMs,
  // The vendor lists at most six months.
  listedMsMax: 150 * dayMs,
}

type ChannelOptions = { db: Db; now: Clock; settings: AdyenSettings; requestMsMax?: number }

/**
 * The channel of Adyen's Transfers API. Each payment is a request; the response accepts it, and notifications report its outcome.
 * The reference is the idempotency key. Not yet run against the vendor's live service.
 * @param requestMsMax timeout of a request; by default 10,000
 */
export function adyenChannel({ db, now, settings, requestMsMax }: ChannelOptions): Channel {
  const { name, currency } = settings
  const client = new AdyenClient(settings, requestMsMax)
  const context = { db, now, settings, client }
  return {
    name,
    feed: name,
    currencies: [currency],
    isSlow: false,
    time: { kept: 'real' },
    work: [
      { task: 'send-payout-batches', run: () => releaseApproved({ db, settings, now: now() }) },
      { task: 'read-bank-files', run: ({ log }) => catchUp({ ...context, log }) },
    ],
    paymentsMax: limits.paymentsMax,
    callMsMax: limits.callMsMax,
    submit: (payments, signal) => submit(context, payments, signal),
    ask: (references, signal) => ask(context, references, signal),
    collect: (after, countMax) => readRecords(db, { rail: name, after, countMax }),
  }
}

type Context = { db: Db; now: Clock; settings: AdyenSettings; client: AdyenClient }

async function submit(context: Context, payments: Payment[], signal: AbortSignal): Promise<Report[]> {
  const { now, settings } = context
  const rail = settings.name
  const references = payments.map(({ reference }) => reference)
  const known = await findKnown(context, references)
  for (const { reference, netAmount } of payments) {
    const before = known.get(reference)
    if (before === undefined) throw new Error(`unknown payment ${reference} on rail ${rail}`)
    if (before.netAmount !== netAmount.amount || before.currency !== netAmount.currency)
      throw new Error(`${reference} was reused with another amount`)
  }
  // Payments that the bank has, or that an operator has given back, need no request.
  const open = payments.filter(({ reference }) => isOpen(known.get(reference), now()))
  const sendable: Payment[] = []
  for (const payment of open) {
    const refusal = refusalOf(settings, payment)
    if (refusal === undefined) sendable.push(payment)
    else await fail(context, payment.reference, { reasonCode: null, reason: refusal, restriction: null })
  }
  const admitted = await context.db
    .transaction()
    .execute(tx => admit(tx, { settings, references: sendable.map(({ reference }) => reference), now: now() }))
  const approved = sendable.filter(({ reference }) => admitted.has(reference))
  const failure = await forEachAtOnce(approved, async payment => {
    const before = known.get(payment.reference)
    if (!before?.mayBeMade || (await learn(context, before, signal))?.length === 0)
      await create(context, payment, signal)
  })
  // Payments that were accepted before the failure are in the books, and come with the reports.
  if (failure !== undefined) throw failure
  const reports = reportsOf(references, await findKnown(context, references))
  return reports.filter(({ outcome }) => outcome !== 'unknown')
}

function isOpen(known: KnownPayment | undefined, now: Date): boolean {
  return (
    known !== undefined &&
    known.outcome === null &&
    known.transferId === null &&
    mayRepeat(known, now) &&
    !waitsForRetry(known, now)
  )
}

function waitsForRetry({ retryAt, sentAt }: KnownPayment, now: Date): boolean {
  return sentAt === null && retryAt !== null && retryAt > now
}

function mayRepeat({ sentAt }: KnownPayment, now: Date): boolean {
  return sentAt === null || now.getTime() - sentAt.getTime() < limits.repeatMsMax
}

async function create(context: Context, payment: Payment, signal: AbortSignal): Promise<void> {
  const { db, now, settings, client } = context
  const { reference } = payment
  const info = transferInfo(settings, payment)
  // The payment may have been given back while others were requested.
  const request = await openRequest(db, { rail: settings.name, reference, now: now() })
  if (request === undefined) return
  try {
    const key = request.refusedCount === 0 ? reference : `${reference}R${request.refusedCount}`
    const transfer = await client.create(info, { key, signal })
    // A response is about the payment of its request, whatever reference it names.
    const transfers = [{ ...transfer, reference, isPayout: true, sequence: 0 }]
    await db.transaction().execute(tx => recordTransfers(tx, { settings, transfers, now: now() }))
  } catch (error) {
    if (hadNoEffect(error)) await closeRequest(db, request)
    if (error instanceof Refused && isAboutAccount(error)) {
      const reason = `${error.code} The bank refuses the account details`
      await fail(context, reference, { reasonCode: error.code, reason, restriction: 'account_refused' })
      return
    }
    // Only this payment is blocked.
    const refused = (status: string) => `Adyen refuses the payment (${status}); nothing was paid, and it is tried again`
    if (await block(context, error, { reference, refused })) return
    throw error
  }
}

/** Whether the request certainly made no payment. Other statuses, such as a redirect, may come from a proxy. */
function hadNoEffect(error: unknown): boolean {
  if (error instanceof SecretFileProblem) return true
  return error instanceof Refused && [400, 401, 403, 422].includes(error.status)
}

/** Whether a refusal is certainly about the member's account, so that the payment was not made and never will be. */
function isAboutAccount({ status, fields }: Refused): boolean {
  return status === 422 && fields.length > 0 && fields.every(field => /^counterparty\b/.test(field))
}

/**
 * Opens an exception for an error that is neither the member's fault nor an outage. The payments are retried.
 * @param refused a sentence about a refusal of this payment only
 * @returns whether only this payment is affected, so that others can continue
 */
async function block(
  { db, now, settings }: Context,
  error: unknown,
  { reference, refused }: { reference: string; refused: (status: string) => string },
): Promise<boolean> {
  const rail = settings.name
  const open = (blocked: { reference?: string; code: string; reason: string }) =>
    db.transaction().execute(tx => openBlocked(tx, { rail, ...blocked, now: now() }))
  if (error instanceof SecretFileProblem) {
    await open({ code: 'key', reason: `The API key cannot be used, so no payment is made: ${error.message}` })
    return false
  }
  if (error instanceof UnexpectedShape) {
    await open({ reference, code: 'shape', reason: `The bank’s answer cannot be read: ${error.message}` })
    return true
  }
  if (!(error instanceof Refused)) return false
  const { status, code } = error
  if (status === 400 || status === 422) {
    await open({ reference, code, reason: refused(`${status} ${code}`) })
    return true
  }
  await open({ code, reason: `Adyen refuses all requests (${status} ${code}); check API key, roles and address` })
  return false
}

async function fail(
  { db, now, settings }: Context,
  reference: string,
  why: Omit<Parameters<typeof recordFailure>[1], 'rail' | 'reference' | 'now'>,
): Promise<void> {
  await db.transaction().execute(tx => recordFailure(tx, { rail: settings.name, reference, ...why, now: now() }))
}

async function ask(context: Context, references: string[], signal: AbortSignal): Promise<Report[]> {
  const { db, now, settings } = context
  const known = await findKnown(context, references)
  const asked = [...known.values()].filter(({ sentAt, outcome }) => sentAt !== null && outcome === null)
  const lookedUp = new Set<string>()
  const failure = await forEachAtOnce(asked, async payment => {
    const { reference } = payment
    const until = new Date(now().getTime() - limits.effectMsMax)
    const transfers = await learn(context, payment, signal)
    if (transfers === undefined) return
    if (transfers.length === 0) {
      await closeRequestsUntil(db, { rail: settings.name, reference, until })
      if (!mayRepeat(payment, now())) await blockOld(context, reference)
    }
    lookedUp.add(reference)
  })
  if (failure !== undefined && lookedUp.size === 0) throw failure
  const certain = references.filter(reference => {
    const before = known.get(reference)
    return before === undefined || before.sentAt === null || before.outcome !== null || lookedUp.has(reference)
  })
  const after = await findKnown(context, certain)
  return reportsOf(certain, after).map(report =>
    report.outcome === 'unknown' && mustWait(after.get(report.reference), now())
      ? { ...report, outcome: 'pending' }
      : report,
  )
}

/** Whether a payment that the bank does not have must not be requested now. */
function mustWait(known: KnownPayment | undefined, now: Date): boolean {
  return known !== undefined && (!mayRepeat(known, now) || waitsForRetry(known, now))
}

/**
 * Looks a payment up, and records what Adyen has of it.
 * @returns undefined if Adyen refuses to say, for which there is an exception
 */
async function learn(
  context: Context,
  payment: KnownPayment,
  signal: AbortSignal,
): Promise<readonly Transfer[] | undefined> {
  const { db, now, settings } = context
  const { reference } = payment
  try {
    const transfers = await lookUp(context, payment, signal)
    await db.transaction().execute(tx => recordTransfers(tx, { settings, transfers, now: now() }))
    return transfers
  } catch (error) {
    const refused = (status: string) => `Adyen does not say what became of the payment (${status}); it is asked again`
    if (!(await block(context, error, { reference, refused }))) throw error
    return undefined
  }
}

async function lookUp(
  { client, now }: Context,
  { reference, transferId, sentAt, mayBeMade, refusedTransfers }: KnownPayment,
  signal: AbortSignal,
): Promise<Transfer[]> {
  if (transferId !== null) return [await client.get(transferId, signal)]
  const nowMs = now().getTime()
  // Before a restore, it may have been sent at any time.
  const sentMs = mayBeMade ? nowMs - limits.listedMsMax + 2 * limits.clockMsMax : (sentAt?.getTime() ?? nowMs)
  const sinceMs = Math.min(sentMs, nowMs) - limits.clockMsMax
  const untilMs = Math.min(Math.max(sentMs, nowMs) + limits.clockMsMax, sinceMs + limits.listedMsMax)
  const page = await client.list({ since: new Date(sinceMs), until: new Date(untilMs), reference }, signal)
  const { transfers, unreadable } = page
  // An unreadable transfer may be the payment.
  if (unreadable[0] !== undefined) throw new UnexpectedShape(unreadable[0].why)
  return transfers.filter(each => each.reference === reference && !refusedTransfers.includes(each.id))
}

async function blockOld({ db, now, settings }: Context, reference: string): Promise<void> {
  const reason =
    'Adyen does not know the payment after days of trying. Its idempotency key may have ended, so it is not sent again; give it back'
  await db
    .transaction()
    .execute(tx => openBlocked(tx, { rail: settings.name, reference, code: 'unknown', reason, now: now() }))
}

async function findKnown({ db, settings }: Context, references: string[]): Promise<Map<string, KnownPayment>> {
  const known = await findPayments(db, settings.name, references)
  return new Map(known.map(each => [each.reference, each]))
}

function reportsOf(references: string[], known: ReadonlyMap<string, KnownPayment>): Report[] {
  return references.map(reference => {
    const payment = known.get(reference)
    const isKnown = payment !== undefined && (payment.transferId !== null || payment.isWaiting)
    const outcome: ReportedOutcome = payment?.outcome ?? (isKnown ? 'pending' : 'unknown')
    return toReport({ reference, outcome, reason: payment?.reason ?? null, restriction: payment?.restriction ?? null })
  })
}

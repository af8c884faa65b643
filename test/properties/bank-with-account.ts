import assert from 'node:assert/strict'
import {
  accountReport,
  type Entry,
  type PaymentOrder,
  readCreditTransfer,
  statusReport,
  transaction,
  wholeBatch,
} from '../bank-xml.ts'

/** What a booking moved for one payment, or for none. Negative if money left. */
type Part = { reference: string | null; amount: bigint }

/** An entry of an account: the truth about the money. */
export type Booking = {
  /** The bank's reference of it, the same in all messages. */
  id: string
  iban: string
  amount: bigint
  bookedOn: string
  parts: Part[]
  /** How the bank describes it. */
  entry: Pick<Entry, 'details' | 'text' | 'isReversal' | 'isReturn'>
  toldIn: Set<ReportKind>
}
export type ReportKind = 'camt.053' | 'camt.054'

/** One copy of a file: it can reach the bank more than once. */
export type Copy = {
  messageId: string
  iban: string
  orders: PaymentOrder[]
  state: 'received' | 'rejected' | 'executed'
}

/** How the bank books what it executes. */
export type Manner = 'sum' | 'payments' | 'words'

export type Rejection = { how: 'file' | 'each payment'; code: string | undefined; text: string | undefined }

/** How the bank names a payment whose money comes back. */
export type ReturnWay = 'reference' | 'words' | 'remittance' | 'less charges'

/** Rejections that every copy of a file gets, because they follow from its contents. */
export const alwaysRejected: readonly string[] = ['FF01', 'AM10', 'AC01']

/** What the bank keeps of money that comes back. */
const charge = 500n

/**
 * A bank that keeps its own accounts. It takes every copy of a file that reaches it, executes or rejects it, and never says of money
 * what is not in its accounts; but it says so late, twice, or in words only.
 */
export class BankWithAccount {
  readonly copies: Copy[] = []
  readonly bookings: Booking[] = []
  /** Files that it executed, by their message id. It books every copy of a file in the same manner. */
  readonly #manners = new Map<string, Manner>()
  /** Payments whose payees cannot be paid. */
  readonly #unpayable = new Set<string>()
  /** Files that it rejects for what they contain, however often they come, by their message id. */
  readonly #neverExecuted = new Set<string>()
  readonly #files = new Set<string>()
  readonly #atStart: ReadonlyMap<string, bigint>
  readonly #statements = new Map<string, { number: number; closing: bigint }>()
  #serial = 0
  now: Date

  constructor({ now, balances }: { now: Date; balances: ReadonlyMap<string, bigint> }) {
    this.now = now
    this.#atStart = balances
  }

  /** Takes the files that are new in its inbox. */
  receive(files: ReadonlyMap<string, string>): void {
    for (const [name, xml] of files) {
      if (this.#files.has(name)) continue
      this.#files.add(name)
      const iban = /<DbtrAcct>.*?<IBAN>([^<]+)/s.exec(xml)?.[1]
      assert(iban !== undefined)
      this.copies.push({ ...readCreditTransfer(xml, name), iban, state: 'received' })
    }
  }

  /** The same file reaches the bank once more. */
  duplicate(copy: Copy): void {
    this.copies.push({ ...copy, state: this.#neverExecuted.has(copy.messageId) ? 'rejected' : 'received' })
  }

  /** Says that it has a copy. */
  accept({ messageId }: Copy, status: string): string {
    return statusReport(this.#message(), { messageId, status }, [])
  }

  reject(copy: Copy, { how, code, text }: Rejection): string {
    const { messageId, orders } = copy
    const isAlways = code !== undefined && alwaysRejected.includes(code)
    if (isAlways) this.#neverExecuted.add(messageId)
    for (const each of isAlways ? this.#copiesOf(copy) : [copy]) each.state = 'rejected'
    const why = { status: 'RJCT', reason: code, text }
    if (how === 'file') return statusReport(this.#message(), { messageId, ...why }, [])
    return statusReport(
      this.#message(),
      { messageId },
      orders.map(({ reference }) => ({ reference, ...why })),
    )
  }

  #copiesOf({ messageId }: Copy): Copy[] {
    return this.copies.filter(each => each.messageId === messageId)
  }

  /** Whether a rejection of this copy can be for what the file contains: no copy of it has been executed. */
  canRejectAlways(copy: Copy): boolean {
    return this.#copiesOf(copy).every(({ state }) => state !== 'executed')
  }

  /**
   * Books what a copy orders, as one sum or payment by payment.
   * @param options.failing how many of the payments cannot be made
   * @returns its report of these, before or after which it books
   */
  execute(copy: Copy, { as: wanted, failing }: { as: Manner; failing: number }): string | undefined {
    const { messageId, iban, orders } = copy
    const as = this.#manners.get(messageId) ?? wanted
    this.#manners.set(messageId, as)
    copy.state = 'executed'
    // What cannot be paid does not become payable by a copy, nor the other way round.
    const isFirst = this.#copiesOf(copy).filter(({ state }) => state === 'executed').length === 1
    if (isFirst) for (const { reference } of orders.slice(0, failing)) this.#unpayable.add(reference)
    const paid = orders.filter(({ reference }) => !this.#unpayable.has(reference))
    const parts = paid.map(({ reference, amount }) => ({ reference, amount: -amount }))
    if (as === 'sum') this.#book(iban, parts, { details: wholeBatch(messageId) })
    else
      for (const part of parts)
        this.#book(iban, [part], namedBy(as === 'words' ? 'words' : 'reference', part.reference))
    const failed = orders.filter(({ reference }) => this.#unpayable.has(reference))
    if (failed.length === 0 || !isFirst) return undefined
    const statuses = failed.map(({ reference }) => ({ reference, status: 'RJCT', reason: 'AC04' }))
    return statusReport(this.#message(), { messageId }, statuses)
  }

  /** Whether the bank has paid, or may still pay, a payment. */
  debitsOf(reference: string): Booking[] {
    return this.bookings.filter(({ parts }) => parts.some(each => each.reference === reference && each.amount < 0n))
  }

  /** The payments of which the payee has the money, once or more often. */
  paid(): string[] {
    return [...this.moved()].filter(([, amount]) => amount < 0n).map(([reference]) => reference)
  }

  /** The payments that have come back at least as often as they were made. */
  cameBack(): string[] {
    return [...this.moved()].filter(([, amount]) => amount >= 0n).map(([reference]) => reference)
  }

  /** What all bookings moved for each payment. */
  moved(): Map<string, bigint> {
    const moved = new Map<string, bigint>()
    for (const { reference, amount } of this.bookings.flatMap(({ parts }) => parts))
      if (reference !== null) moved.set(reference, (moved.get(reference) ?? 0n) + amount)
    return moved
  }

  /** The money of a payment comes back. */
  return(reference: string, way: ReturnWay): void {
    const { iban, amount } = this.#paymentOf(reference)
    const parts: Part[] = [{ reference, amount }]
    if (way === 'less charges') parts.push({ reference: null, amount: -charge })
    this.#book(iban, parts, namedBy(way, reference, { reason: 'AC04' }))
  }

  /** It was booked by mistake that a payment came back, or that it was made: the opposite is booked. */
  reverse(reference: string, direction: 'return' | 'payment'): void {
    const { iban, amount } = this.#paymentOf(reference)
    const part = { reference, amount: direction === 'return' ? -amount : amount }
    this.#book(iban, [part], { details: transaction({ reference }), isReversal: true })
  }

  #paymentOf(reference: string): { iban: string; amount: bigint } {
    for (const { iban, orders } of this.copies) {
      const order = orders.find(each => each.reference === reference)
      if (order !== undefined) return { iban, amount: order.amount }
    }
    assert.fail(`${reference} was never ordered`)
  }

  /** Money that is about no payment. */
  other(iban: string, amount: bigint, reference: string | null): void {
    this.#book(iban, [{ reference: null, amount }], {
      details: reference === null ? '' : transaction({ reference }),
    })
  }

  #book(iban: string, parts: Part[], entry: Booking['entry']): void {
    const amount = parts.reduce((sum, each) => sum + each.amount, 0n)
    if (amount === 0n) return
    const id = `E${++this.#serial}`
    this.bookings.push({ id, iban, amount, parts, entry, bookedOn: dayOf(this.now), toldIn: new Set() })
  }

  balanceOf(iban: string): bigint {
    const booked = this.bookings.filter(each => each.iban === iban)
    return booked.reduce((sum, { amount }) => sum + amount, this.#atStart.get(iban) ?? 0n)
  }

  /** Tells of the bookings of an account that no report of this kind has told of; undefined if there are none. */
  report(iban: string, kind: ReportKind): string | undefined {
    const news = this.bookings.filter(each => each.iban === iban && !each.toldIn.has(kind))
    if (news.length === 0) return undefined
    for (const { toldIn } of news) toldIn.add(kind)
    const entries = news.map(({ id, amount, bookedOn, entry }): Entry => {
      const [units, direction] = amount < 0n ? ([-amount, 'DBIT'] as const) : ([amount, 'CRDT'] as const)
      return { bank: id, amount: units, direction, bookedOn, ...entry }
    })
    if (kind === 'camt.054') return accountReport(this.#message(), { kind, iban, entries })
    const before = this.#statements.get(iban) ?? { number: 0, closing: this.#atStart.get(iban) ?? 0n }
    const next = { number: before.number + 1, closing: this.balanceOf(iban) }
    this.#statements.set(iban, next)
    const statement = { ...next, opening: before.closing, day: dayOf(this.now) }
    return accountReport(this.#message(), { kind, iban, entries, statement })
  }

  #message(): { id: string; at: Date } {
    return { id: `M${++this.#serial}`, at: this.now }
  }
}

function namedBy(
  way: ReturnWay,
  reference: string,
  returned?: { reason: string },
): Pick<Entry, 'details' | 'text' | 'isReturn'> {
  const isReturn = returned !== undefined
  switch (way) {
    case 'reference':
    case 'less charges':
      return { details: transaction({ reference, ...(isReturn ? { returned } : {}) }) }
    case 'words':
      return {
        details: '',
        isReturn,
        text: isReturn ? `RETURN ${reference} ${returned.reason}` : `PAYMENT ${reference}`,
      }
    case 'remittance':
      return { details: transaction({ remittance: reference.toLowerCase() }), isReturn }
    default:
      return way satisfies never
  }
}

function dayOf(instant: Date): string {
  return instant.toISOString().slice(0, 10)
}

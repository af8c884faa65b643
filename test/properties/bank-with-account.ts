import assert from 'node:assert/strict'
import {
  accountReport,
  type Entry,
  type PaymentOrder,
  readCreditTransfer,
  statusReport,
  transaction,
  wholeBatch,
} from '../banks/iso20022.ts'

/** The amount that a booking moved, for a payment or for none. Negative if money left the account. */
type Part = { reference: string | null; amount: bigint }

/** An entry of an account, which is the truth about the money. */
export type Booking = {
  /** The bank's reference, the same in all messages. */
  id: string
  iban: string
  amount: bigint
  bookedOn: string
  parts: Part[]
  /** The bank's description of the entry. */
  entry: Pick<Entry, 'details' | 'text' | 'isReversal' | 'isReturn'>
  /** The sum that replaces the entries of a batch in statements. */
  sum?: { id: string; details: string } | undefined
  toldIn: Set<ReportKind>
}
export type ReportKind = 'camt.053' | 'camt.054'

/** One copy of a file, which can reach the bank more than once. */
export type Copy = {
  messageId: string
  iban: string
  orders: PaymentOrder[]
  state: 'received' | 'rejected' | 'executed'
}

/**
 * How the bank books executed payments: as one sum, payment by payment, in one entry with all payments, or only in words. `both`:
 * payment by payment in notices, and as one sum in statements.
 */
export type Manner = 'sum' | 'payments' | 'details' | 'words' | 'both'

export type Rejection = {
  how: 'file' | 'each payment' | 'two files'
  code: string | undefined
  text: string | undefined
}

/** How the bank identifies a returned payment. `rejected`: it rejects the payment first. */
export type ReturnWay = 'reference' | 'words' | 'remittance' | 'less charges' | 'rejected'

/** The rejections that every copy of a file gets, because they follow from its contents. */
export const alwaysRejected: readonly string[] = ['FF01', 'AM10', 'AC01']

/** The charge that the bank deducts from returned money. */
const charge = 500n

/**
 * A bank that keeps its own accounts. It executes or rejects every copy of a file, and never reports money that is not in its
 * accounts; but it reports late, twice, or only in words.
 */
export class BankWithAccount {
  readonly copies: Copy[] = []
  readonly bookings: Booking[] = []
  readonly #inWords = new Map<string, ReturnWay>()
  /** Payments that it made and later rejected. */
  readonly rejectedAfterwards = new Set<string>()
  /** Executed files, by message id. The bank books every copy of a file in the same manner. */
  readonly #manners = new Map<string, Manner>()
  /** Payments whose payees cannot be paid. */
  readonly #unpayable = new Set<string>()
  /** Files rejected for their contents, however often they arrive, by message id. */
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

  /** Collects the new files in its inbox. */
  receive(files: ReadonlyMap<string, string>): void {
    for (const [name, xml] of files) {
      if (this.#files.has(name)) continue
      this.#files.add(name)
      const iban = /<DbtrAcct>.*?<IBAN>([^<]+)/s.exec(xml)?.[1]
      assert(iban !== undefined)
      this.copies.push({ ...readCreditTransfer(xml, name), iban, state: 'received' })
    }
  }

  /** Delivers the same file to the bank once more. */
  duplicate(copy: Copy): void {
    this.copies.push({ ...copy, state: this.#neverExecuted.has(copy.messageId) ? 'rejected' : 'received' })
  }

  /** Reports that it has accepted a copy, or each of its payments. */
  accept({ messageId, orders }: Copy, { status, isEach }: { status: string; isEach: boolean }): string {
    if (!isEach) return statusReport(this.#message(), { messageId, status }, [])
    const statuses = orders.map(({ reference }) => ({ reference, status }))
    return statusReport(this.#message(), { messageId }, statuses)
  }

  /** Reports that it has made the payments of a copy; undefined if it has made none. */
  confirm({ messageId, orders }: Copy): string | undefined {
    const paid = this.paid()
    const statuses = orders.flatMap(({ reference }) =>
      paid.includes(reference) ? [{ reference, status: 'ACSC' }] : [],
    )
    return statuses.length === 0 ? undefined : statusReport(this.#message(), { messageId }, statuses)
  }

  /** @returns the files with the rejection */
  reject(copy: Copy, { how, code, text }: Rejection): string[] {
    const { messageId, orders } = copy
    const isAlways = code !== undefined && alwaysRejected.includes(code)
    if (isAlways) this.#neverExecuted.add(messageId)
    for (const each of isAlways ? this.#copiesOf(copy) : [copy]) each.state = 'rejected'
    const why = { status: 'RJCT', reason: code, text }
    if (how === 'file') return [statusReport(this.#message(), { messageId, ...why }, [])]
    const statuses = orders.map(({ reference }) => ({ reference, ...why }))
    const parts = how === 'two files' ? [statuses.slice(0, 1), statuses.slice(1)] : [statuses]
    return parts.flatMap(part => (part.length === 0 ? [] : [statusReport(this.#message(), { messageId }, part)]))
  }

  #copiesOf({ messageId }: Copy): Copy[] {
    return this.copies.filter(each => each.messageId === messageId)
  }

  /** Whether this copy can be rejected for the file's contents, because no copy has been executed. */
  canRejectAlways(copy: Copy): boolean {
    return this.#copiesOf(copy).every(({ state }) => state !== 'executed')
  }

  /**
   * Books the orders of a copy.
   * @param options.failing the number of payments that cannot be made
   * @param options.charge the charge in addition to the first debit or, if negative, deducted from that debit
   * @returns the report of the failed payments, before or after the booking
   */
  execute(
    copy: Copy,
    { as: wanted, failing, charge: taken = 0n }: { as: Manner; failing: number; charge?: bigint },
  ): string | undefined {
    const { messageId, iban, orders } = copy
    const as = this.#manners.get(messageId) ?? wanted
    // The program cannot distinguish a batch booked both as a sum and payment by payment from two bookings.
    this.#manners.set(messageId, as === 'both' ? 'sum' : as)
    copy.state = 'executed'
    // A copy does not make an unpayable payment payable, or vice versa.
    const isFirst = this.#copiesOf(copy).filter(({ state }) => state === 'executed').length === 1
    if (isFirst) for (const { reference } of orders.slice(0, failing)) this.#unpayable.add(reference)
    const paid = orders.filter(({ reference }) => !this.#unpayable.has(reference))
    const parts = paid.map(({ reference, amount }) => ({ reference, amount: -amount }))
    const [first, ...others] = parts
    const extra = taken === 0n ? [] : [{ reference: null, amount: -taken }]
    const sum = { id: `E${++this.#serial}`, details: wholeBatch(messageId) }
    if (as === 'sum' && first !== undefined) this.#book(iban, [...parts, ...extra], { details: sum.details })
    else if (as === 'details') {
      const details = parts.map(({ reference, amount }) => transaction({ reference, amount: -amount })).join('')
      this.#book(iban, parts, { details })
    } else if (first !== undefined) {
      const way = as === 'words' ? 'words' : 'reference'
      const ofSum = as === 'both' ? sum : undefined
      const charged = as === 'both' ? [] : extra
      this.#book(iban, [first, ...charged], namedBy(way, first.reference), ofSum)
      for (const part of others) this.#book(iban, [part], namedBy(way, part.reference), ofSum)
    }
    const failed = orders.filter(({ reference }) => this.#unpayable.has(reference))
    if (failed.length === 0 || !isFirst) return undefined
    const statuses = failed.map(({ reference }) => ({ reference, status: 'RJCT', reason: 'AC04' }))
    return statusReport(this.#message(), { messageId }, statuses)
  }

  /** Whether the bank has paid, or may still pay, a payment. */
  debitsOf(reference: string): Booking[] {
    return this.bookings.filter(({ parts }) => parts.some(each => each.reference === reference && each.amount < 0n))
  }

  /** The payments whose payee has the money, once or more often. */
  paid(): string[] {
    return [...this.moved()].filter(([, amount]) => amount < 0n).map(([reference]) => reference)
  }

  /** The payments that have come back at least as often as they were made. */
  cameBack(): string[] {
    return [...this.moved()].filter(([, amount]) => amount >= 0n).map(([reference]) => reference)
  }

  /** The net amount that all bookings moved for each payment. */
  moved(): Map<string, bigint> {
    const moved = new Map<string, bigint>()
    for (const { reference, amount } of this.bookings.flatMap(({ parts }) => parts))
      if (reference !== null) moved.set(reference, (moved.get(reference) ?? 0n) + amount)
    return moved
  }

  /** Returns the money of a payment. @returns the rejection, if the bank first rejects the payment */
  return(reference: string, wanted: ReturnWay): string | undefined {
    // A booking of the same day by reference repeats the one in words.
    const way = this.#inWords.get(reference) ?? wanted
    if (way === 'words' || way === 'remittance') this.#inWords.set(reference, way)
    const { iban, amount, messageId } = this.#paymentOf(reference)
    const parts: Part[] = [{ reference, amount }]
    if (way === 'less charges') parts.push({ reference: null, amount: -charge })
    this.#book(iban, parts, namedBy(way, reference, { reason: 'AC04' }))
    if (way !== 'rejected') return undefined
    this.rejectedAfterwards.add(reference)
    return statusReport(this.#message(), { messageId }, [{ reference, status: 'RJCT', reason: 'AC04' }])
  }

  /** Reverses the mistaken booking of a return or payment. */
  reverse(reference: string, direction: 'return' | 'payment'): void {
    const { iban, amount } = this.#paymentOf(reference)
    const part = { reference, amount: direction === 'return' ? -amount : amount }
    this.#book(iban, [part], { details: transaction({ reference }), isReversal: true })
  }

  #paymentOf(reference: string): { iban: string; amount: bigint; messageId: string } {
    for (const { iban, orders, messageId } of this.copies) {
      const order = orders.find(each => each.reference === reference)
      if (order !== undefined) return { iban, amount: order.amount, messageId }
    }
    assert.fail(`${reference} was never ordered`)
  }

  /** Books money without a payment. */
  other(iban: string, amount: bigint, reference: string | null): void {
    this.#book(iban, [{ reference: null, amount }], {
      details: reference === null ? '' : transaction({ reference }),
    })
  }

  #book(iban: string, parts: Part[], entry: Booking['entry'], sum?: Booking['sum']): void {
    const amount = parts.reduce((sum, each) => sum + each.amount, 0n)
    if (amount === 0n) return
    const id = `E${++this.#serial}`
    this.bookings.push({ id, iban, amount, parts, entry, sum, bookedOn: dayOf(this.now), toldIn: new Set() })
  }

  balanceOf(iban: string): bigint {
    const booked = this.bookings.filter(each => each.iban === iban)
    return booked.reduce((sum, { amount }) => sum + amount, this.#atStart.get(iban) ?? 0n)
  }

  /**
   * Reports the bookings of an account that are not yet in a report of this kind; undefined if there are none.
   * @param options.isLater whether the report gives the following day
   */
  report(iban: string, kind: ReportKind, { isLater = false } = {}): string | undefined {
    const news = this.bookings.filter(each => each.iban === iban && !each.toldIn.has(kind))
    if (news.length === 0) return undefined
    for (const { toldIn } of news) toldIn.add(kind)
    const inSums = Map.groupBy(news, each => (kind === 'camt.053' && each.sum?.id) || each.id)
    const entries = [...inSums].flatMap(([bank, alike]): Entry[] => {
      const [first] = alike
      if (first === undefined) return []
      const amount = alike.reduce((total, each) => total + each.amount, 0n)
      const [units, direction] = amount < 0n ? ([-amount, 'DBIT'] as const) : ([amount, 'CRDT'] as const)
      const entry = first.sum?.id === bank ? { details: first.sum.details } : first.entry
      const bookedOn = isLater ? dayOf(new Date(Date.parse(first.bookedOn) + 86_400_000)) : first.bookedOn
      return [{ bank, amount: units, direction, bookedOn, ...entry }]
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
    case 'rejected':
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

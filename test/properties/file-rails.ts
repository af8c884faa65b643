import type { Outcome, Restriction } from './model.ts'

/**
 * The part of the model about file rails: batches, bank answers, exceptions and decisions. It has no database and no code of the
 * program. The money rules are in `model.ts`. Instants are milliseconds since 1970, days are counted from 1970, amounts are in
 * minor units.
 *
 * Its calendar knows only weekends, and its time zones have no summer time: use it from January to March.
 */

export type RailName = 'euros' | 'pounds'
/** A bank's reason; null if it gives none. */
export type Code = string | null
export type FileForm = 'pain.002' | 'camt.053' | 'camt.054' | 'arucs'

/** One item of a bank's report. Withdrawals and batches are named w0, b0, … in order of creation. */
export type Statement =
  | { says: 'batch'; of: string; status: 'ACTC' | 'PDNG' | 'RJCT'; code: Code }
  | { says: 'status'; of: string; status: 'ACSC' | 'PDNG' | 'RJCT'; code: Code }
  /** A booked payment or a return. */
  | ({ says: 'entry'; of: string; isReturn: boolean; amount: bigint; code: Code } & Booking)
  | ({ says: 'whole batch'; of: string; amount: bigint } & Booking)
  /** Money without a payment; negative if it left the account. */
  | ({ says: 'money'; amount: bigint; reference: string | null } & Booking)

/** The bank's reference and booking day of an entry, the same in all messages. */
export type Booking = { bank: string; bookedOn: string }

export type BankFile = {
  rail: RailName
  form: FileForm
  message: string
  /** The reported account. */
  debtor: Debtor
  statements: Statement[]
  /** Distinguishes copies of one message with different bytes. */
  copy: number
  fault: 'none' | 'half' | 'other account' | 'other currency'
}

export type Decision =
  | { decision: 'ignore' | 'give_back' }
  | { decision: 'attach'; to: string }
  | { decision: 'book'; partner: string; reference: string | null }

/** The fate of sent files. */
export type SendFault = 'none' | 'killed before delivery' | 'killed after delivery' | 'not delivered'

/** What happens to the files of the rails, to be performed by both the program and the model. */
export type BankStep =
  | { do: 'send'; fault: SendFault }
  | { do: 'approve'; batch: string; person: string }
  | { do: 'hold' | 'let go'; batch: string }
  | { do: 'remove'; withdrawal: string }
  | { do: 'import'; file: BankFile }
  | { do: 'read reports' }
  | { do: 'decide'; exception: string; by: Decision }
  | { do: 'fund'; partner: string; rail: RailName; amount: bigint; reference: string }

const bankSteps = ['send', 'approve', 'hold', 'let go', 'remove', 'import', 'read reports', 'decide', 'fund'] as const

export function isBankStep(step: { do: string }): step is BankStep {
  return bankSteps.some(each => each === step.do)
}

type Debtor = 'default' | 'own'

/** Each partner has members paid in both currencies. Payments of the last partner come from a separate account. */
export const partners = ['p0', 'p1', 'p2'] as const
export const members = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5'] as const

export function ofMember(member: string): { partner: string; rail: RailName } {
  const number = Number(member.slice(1))
  return { partner: `p${Math.floor(number / 2)}`, rail: number % 2 === 0 ? 'euros' : 'pounds' }
}

export const limits = { paymentMax: 15_000n, batchMax: 22_000n, dayMax: 26_000n }
/** References that match none of our payments and batches. */
export const strangers = { payment: 'MMAAAAAAAAAAAAAA', batch: 'MMBAAAAAAAAAAAAAA' }

export function debtorOf(partner: string): Debtor {
  return partner === 'p2' ? 'own' : 'default'
}

/** A withdrawal that was submitted, by its name. */
type Payment = {
  name: string
  partner: string
  rail: RailName
  net: bigint
  batch: Batch
  expectedOn: number
  outcome: Outcome | null
  /** The instant at which the outcome was recorded. */
  endedAt: number
  restriction: Restriction | null
  isRemoved: boolean
}
export type Batch = {
  name: string
  rail: RailName
  debtor: Debtor
  valueDay: number
  cutOffAt: number
  status: 'building' | 'approved' | 'sent' | 'acknowledged' | 'settled' | 'rejected' | 'cancelled'
  isHeld: boolean
  isClosed: boolean
  approvedAt: number | null
  isAutomatic: boolean
  approvals: Set<string>
  claims: number
  /** How often the file may have been sent: an answered batch is not sent again. */
  copies: number
  isAnswered: boolean
  /** Whether the bank has shown that it accepted a copy. */
  isTaken: boolean
  isGivenBack: boolean
  /** Whether the bank has the file. */
  isDelivered: boolean
  /** The instant at which the delivery was recorded. */
  sentAt: number
  /** Whether it was sent after the day of its cut-off, so that the operator must ask the bank. */
  question: Exception | null
  /** Answers from before the delivery was recorded. */
  early: 'acknowledged' | 'rejected' | null
}
type Exception = {
  rail: RailName
  kind:
    | 'unmatched'
    | 'amount'
    | 'contradiction'
    | 'paid_after_give_back'
    | 'duplicate'
    | 'rejected'
    | 'float'
    | 'money_in'
    | 'money_out'
    | 'blocked'
  about: string | null
  outcome: Outcome | null
  amount: bigint | null
  code: Code
  /** Whether the item is an entry of the account. */
  isBooked?: boolean
  openedAt: number
  decision: string | null
}
type Entry = Booking & { isReturn: boolean }
/** What the bank says about a payment; with the entry if it books money. */
type Heard = { of: string; outcome: Outcome | null; amount: bigint | null; code: Code; entry?: Entry | undefined }
type OtherMoney = Pick<BankFile, 'rail' | 'debtor'> & { amount: bigint; reference: string | null; bank: string }
type Movement = { partner: string; rail: RailName; amount: bigint; reference: string; isTaken: boolean }

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const cutOffHour = 15
const rails = {
  euros: { offsetMs: hourMs, leadDays: 0, confirms: true },
  pounds: { offsetMs: 0, leadDays: 1, confirms: false },
} as const
const creditDays = 1

class Refused extends Error {}

/** The partners' books, as far as a bank changes them. */
type Books = {
  isSubmitted(withdrawal: string): boolean
  report(withdrawal: string, outcome: Outcome, restriction: Restriction | null): void
  move(partner: string, rail: RailName, amount: bigint): void
}

export class FileRails {
  now: number
  readonly payments = new Map<string, Payment>()
  readonly batches = new Map<string, Batch>()
  readonly exceptions: Exception[] = []
  readonly #movements: Movement[] = []
  readonly #reports: { of: Payment; outcome: Outcome }[] = []
  readonly #seen = new Set<string>()
  /** The amounts of bookings by subject and bank reference, because a statement repeats the bookings of a notification. */
  readonly #booked = new Map<string, Map<string, bigint>>()
  /** Payments and batches of which the bank has booked a debit that no one has to look at. */
  readonly #debited = new Set<string>()
  /** The counted entries of single payments, by payment. */
  readonly #entries = new Map<string, Entry[]>()
  readonly #books: Books
  readonly #idOf: (batch: string) => string

  /** @param options.idOf returns the id of a batch, which determines the order of approval */
  constructor({ now, books, idOf }: { now: number; books: Books; idOf: (batch: string) => string }) {
    this.now = now
    this.#books = books
    this.#idOf = idOf
  }

  /** @returns 'ok' or 'refused' */
  apply(step: BankStep): 'ok' | 'refused' {
    try {
      this.#perform(step)
      return 'ok'
    } catch (error) {
      if (error instanceof Refused) return 'refused'
      throw error
    }
  }

  /** The expected observable state of the program, by name. */
  state(): Map<string, string> {
    const seen = new Map<string, string>()
    for (const [name, { batch, outcome, isRemoved, expectedOn }] of this.payments) {
      const words = [batch.name, dayText(expectedOn), outcome ?? 'open', isRemoved ? 'removed' : '']
      seen.set(`payout ${name}`, words.join(' ').trim())
    }
    for (const [name, batch] of this.batches) {
      const all = this.#paymentsOf(batch)
      const words = [batch.rail, batch.debtor, dayText(batch.valueDay), batch.status, batch.isHeld ? 'held' : '']
      seen.set(`batch ${name}`, [...words, all.length, sum(all)].filter(word => word !== '').join(' '))
    }
    for (const exception of this.exceptions) {
      const key = `exception ${keyOf(exception)} ${exception.decision ?? 'open'}`
      seen.set(key, `${Number(seen.get(key) ?? 0) + 1}`)
    }
    return seen
  }

  openExceptions(): string[] {
    return this.exceptions.filter(({ decision }) => decision === null).map(keyOf)
  }

  /** The exceptions of late batches. */
  openQuestions(): string[] {
    return this.exceptions.filter(({ decision, kind }) => decision === null && kind === 'blocked').map(keyOf)
  }

  /** The payments in the file of a batch. */
  paymentsOf(batch: string): Payment[] {
    const found = this.batches.get(batch)
    return found === undefined ? [] : this.#paymentsOf(found)
  }

  #paymentsOf(batch: Batch): Payment[] {
    return [...this.payments.values()].filter(each => each.batch === batch && !each.isRemoved)
  }

  /** The booking of a bank that books a batch as one sum. */
  debitOf(batch: string): bigint {
    return sum(this.paymentsOf(batch).filter(({ outcome }) => outcome !== 'failed'))
  }

  #perform(step: BankStep): void {
    switch (step.do) {
      case 'send':
        for (const rail of ['euros', 'pounds'] as const) this.#send(rail, step.fault)
        break
      case 'approve':
        this.#approve(step)
        break
      case 'hold':
      case 'let go':
        this.#unsent(step.batch).isHeld = step.do === 'hold'
        break
      case 'remove':
        this.#remove(step.withdrawal)
        break
      case 'import':
        this.#import(step.file)
        break
      case 'read reports':
        for (const { of, outcome } of this.#reports.splice(0))
          this.#books.report(of.name, outcome, of.outcome === outcome ? of.restriction : null)
        break
      case 'decide':
        this.#decide(step.exception, step.by)
        break
      case 'fund':
        this.#move({ ...step, isTaken: false })
        break
      default:
        step satisfies never
    }
  }

  /** Adds a submitted withdrawal to the open batch of its day. */
  submit({ name, member, net }: { name: string; member: string; net: bigint }): void {
    const { partner, rail } = ofMember(member)
    const { cutOffAt, valueDay, expectedOn } = scheduleOf(rail, this.now)
    const debtor = debtorOf(partner)
    const open = [...this.batches.values()].find(
      batch => batch.rail === rail && batch.debtor === debtor && batch.valueDay === valueDay && !batch.isClosed,
    )
    const batch = open ?? this.#openBatch({ rail, debtor, valueDay, cutOffAt })
    this.payments.set(name, {
      ...{ name, partner, rail, net, batch, expectedOn },
      ...{ outcome: null, endedAt: 0, restriction: null, isRemoved: false },
    })
  }

  /** Reports the known outcomes of submitted withdrawals. */
  poll(): void {
    for (const { name, outcome, restriction } of this.payments.values())
      if (outcome !== null && this.#books.isSubmitted(name)) this.#books.report(name, outcome, restriction)
  }

  #openBatch(of: Pick<Batch, 'rail' | 'debtor' | 'valueDay' | 'cutOffAt'>): Batch {
    const batch: Batch = {
      ...{ name: `b${this.batches.size}`, ...of, status: 'building', approvedAt: null, approvals: new Set() },
      ...{ isHeld: false, isClosed: false, isAutomatic: false, isAnswered: false, isTaken: false, isGivenBack: false },
      ...{ claims: 0, copies: 0, isDelivered: false, early: null, sentAt: 0, question: null },
    }
    this.batches.set(batch.name, batch)
    return batch
  }

  #send(rail: RailName, fault: SendFault): void {
    const all = [...this.batches.values()].filter(batch => batch.rail === rail)
    for (const batch of all) {
      if (batch.status === 'building' && batch.cutOffAt <= this.now) batch.isClosed = true
      const isEmpty = this.#paymentsOf(batch).length === 0
      if (['building', 'approved'].includes(batch.status) && batch.isClosed && isEmpty) batch.status = 'cancelled'
    }
    const waiting = all.filter(({ status, isClosed }) => status === 'building' && isClosed)
    for (const batch of waiting.sort((a, b) => (this.#idOf(a.name) < this.#idOf(b.name) ? -1 : 1))) {
      const payments = this.#paymentsOf(batch)
      const today = all.filter(
        ({ isAutomatic, approvedAt }) =>
          isAutomatic && approvedAt !== null && dayIn(rail, approvedAt) === dayIn(rail, this.now),
      )
      const sumToday = today.reduce((total, each) => total + sum(this.#paymentsOf(each)), 0n)
      const isLarge =
        payments.some(({ net }) => net > limits.paymentMax) ||
        sum(payments) > limits.batchMax ||
        sumToday + sum(payments) > limits.dayMax
      // The statements here have no balances, so they do not show that a batch was not paid. The other bank sends no statements.
      const hasBrake = rail === 'euros' && all.some(({ isGivenBack }) => isGivenBack)
      if (isLarge || hasBrake) continue
      Object.assign(batch, { status: 'approved', approvedAt: this.now, isAutomatic: true })
    }
    if (!rails[rail].confirms) this.#payUnanswered(rail)
    this.#matchDebits(rail)
    this.#settle(rail)
    for (const batch of all) if (batch.status === 'approved' && !batch.isHeld) this.#sendBatch(batch, fault)
  }

  #payUnanswered(rail: RailName): void {
    for (const batch of this.batches.values()) {
      const isAtBank = batch.rail === rail && ['sent', 'acknowledged'].includes(batch.status)
      const unanswered = this.#paymentsOf(batch).filter(({ outcome }) => outcome === null)
      if (!isAtBank || unanswered.length === 0) continue
      const isLate = dayIn(rail, batch.sentAt) > dayIn(rail, batch.cutOffAt)
      if (isLate) batch.question ??= this.#open({ rail, kind: 'blocked', about: batch.name })
      if (isLate && batch.question?.decision !== 'ignore') continue
      const valueDay = isLate ? scheduleOf(rail, batch.sentAt).valueDay : batch.valueDay
      if (dayIn(rail, this.now) < addBankingDays(valueDay, creditDays)) continue
      for (const each of unanswered) this.#end(each, 'paid')
    }
  }

  #sendBatch(batch: Batch, given: SendFault): void {
    // An answered batch is not delivered again.
    const fault = batch.isAnswered ? 'none' : given
    if (batch.claims === 0 && dayIn(batch.rail, this.now) > dayIn(batch.rail, batch.cutOffAt)) {
      const { cutOffAt, valueDay, expectedOn } = scheduleOf(batch.rail, this.now)
      Object.assign(batch, { cutOffAt, valueDay })
      for (const each of this.#paymentsOf(batch)) each.expectedOn = expectedOn
    }
    if (fault === 'not delivered') return
    batch.claims += 1
    if (!batch.isAnswered) batch.copies += 1
    if (fault === 'killed before delivery') return
    batch.isDelivered = true
    if (fault === 'killed after delivery') return
    batch.status = batch.early ?? 'sent'
    batch.sentAt = this.now
  }

  #approve({ batch: name, person }: { batch: string; person: string }): void {
    const batch = this.batches.get(name)
    if (batch?.status !== 'building' || !batch.isClosed) throw new Refused()
    batch.approvals.add(person)
    if (batch.approvals.size >= 2) Object.assign(batch, { status: 'approved', approvedAt: this.now })
  }

  #unsent(name: string): Batch {
    const batch = this.batches.get(name)
    if (batch === undefined || !['building', 'approved'].includes(batch.status) || batch.claims > 0) throw new Refused()
    return batch
  }

  #remove(name: string): void {
    const payment = this.payments.get(name)
    if (payment === undefined || payment.outcome !== null) throw new Refused()
    this.#unsent(payment.batch.name)
    payment.isRemoved = true
    this.#end(payment, 'failed')
  }

  // Bank answers.

  #import(file: BankFile): void {
    if (file.fault !== 'none') throw new Refused()
    if (this.#isSeen(`file ${file.rail} ${file.message} ${file.copy}`)) return
    const rejected = this.#rejectedBy(file)
    for (const each of file.statements) {
      if (this.#isSeen(`${file.rail} ${messageOf(file)} ${recordOf(file, each)}`)) continue
      const batch = this.#batchOf(each)
      const isRejection = (each.says === 'batch' || each.says === 'status') && each.status === 'RJCT'
      if (batch !== undefined) {
        batch.isAnswered = true
        const isOfWhole = isRejection && (each.says === 'batch' || rejected.has(batch))
        if (!isOfWhole) batch.isTaken = true
        if (isOfWhole && !isAboutPayee(each)) continue
      }
      this.#hear(file, each)
    }
    // The payment's reason takes precedence over the batch's.
    for (const [batch, codes] of [...rejected].sort(([a], [b]) => (this.#idOf(a.name) < this.#idOf(b.name) ? -1 : 1)))
      this.#reject(batch, { codes, message: messageOf(file) })
    this.#matchDebits(file.rail)
    this.#settle(file.rail)
  }

  #isSeen(key: string): boolean {
    const isSeen = this.#seen.has(key)
    this.#seen.add(key)
    return isSeen
  }

  #open(of: Pick<Exception, 'rail' | 'kind'> & Partial<Exception>): Exception {
    const nothing = { about: null, outcome: null, amount: null, code: null }
    const exception = { ...nothing, openedAt: this.now, decision: null, ...of }
    this.exceptions.push(exception)
    return exception
  }

  #hear({ rail, debtor, form }: BankFile, statement: Statement): void {
    const open = (kind: Exception['kind'] | undefined, about: Partial<Exception>) => {
      if (kind !== undefined) this.#open({ rail, kind, ...about })
    }
    switch (statement.says) {
      case 'batch': {
        const { of: about, code } = statement
        open(this.#hearOfBatch(statement), { about, code })
        break
      }
      case 'status': {
        const { of: about, code } = statement
        const outcome = ({ ACSC: 'paid', PDNG: null, RJCT: 'failed' } as const)[statement.status]
        open(this.#hearOfPayment({ of: about, outcome, amount: null, code }), { about, outcome, code })
        break
      }
      case 'entry': {
        const { of: about, amount, code } = statement
        const outcome = statement.isReturn ? 'returned' : 'paid'
        // ARUCS reports returns but books nothing.
        const entry = form === 'arucs' ? undefined : statement
        const kind = this.#hearOfPayment({ of: about, outcome, amount, code, entry })
        open(kind, {
          ...{ about, amount: kind === 'paid_after_give_back' ? -amount : amount, code },
          outcome: kind === 'money_in' ? null : outcome,
          isBooked: entry !== undefined,
        })
        break
      }
      case 'whole batch':
        open(this.#hearOfWhole(statement), { about: statement.of, amount: -statement.amount, isBooked: true })
        break
      case 'money': {
        const { reference: about, amount } = statement
        open(this.#hearOfMoney({ rail, debtor, amount, reference: about, bank: statement.bank }), { about, amount })
        break
      }
      default:
        statement satisfies never
    }
  }

  #hearOfPayment(heard: Heard): Exception['kind'] | undefined {
    const { of, entry } = heard
    const entries = this.#entries.get(of) ?? []
    const isKnown = entries.some(({ bank }) => bank === entry?.bank)
    if (entry !== undefined && !isKnown) this.#entries.set(of, [...entries, entry])
    // A return that another message has already reported is applied, or left to an operator.
    if (isKnown && entry?.isReturn) return undefined
    const kind = this.#meaningOf(heard, entries)
    if (!isKnown && kind === undefined && entry?.isReturn === false) this.#debited.add(of)
    // Another message's report of the same entry.
    return isKnown ? undefined : kind
  }

  #meaningOf({ of, outcome, amount, code, entry }: Heard, entries: Entry[]): Exception['kind'] | undefined {
    const payment = this.payments.get(of)
    if (payment === undefined) return 'unmatched'
    if (payment.batch.claims === 0 || payment.isRemoved) return 'contradiction'
    const before = payment.outcome
    if (before === 'failed' && outcome === 'paid') {
      // All statuses to that effect are one exception.
      return entry === undefined && this.#isSeen(`given back ${of}`) ? undefined : 'paid_after_give_back'
    }
    if (amount !== null && amount !== payment.net) return 'amount'
    const returns = entries.filter(({ isReturn }) => isReturn)
    const isAfterReturn = returns.length > 0 && returns.every(each => each.bookedOn < (entry?.bookedOn ?? ''))
    // Only a status had reported the payment, which was then given back: the first booking is its debit.
    const isFirst = entry !== undefined && entries.length === 0
    if (before === 'returned' && outcome === 'paid' && (isAfterReturn || isFirst)) return 'paid_after_give_back'
    if (entry !== undefined && before === 'paid' && outcome === 'returned') {
      // The same credit in another message, or a credit that may reverse a second debit.
      if (entries.some(({ bank }) => bank === entry.bank)) return undefined
      if (code !== 'AM05' && code !== 'AM04' && this.#countDuplicates(payment) > 0) return 'money_in'
    }
    return this.#endedBy(payment, outcome, code)
  }

  /** Surplus debits of a payment or its batch, less the credits that were left to an operator. */
  #countDuplicates({ name, batch }: Payment): number {
    return this.exceptions
      .filter(({ decision }) => decision !== 'attach' && decision !== 'applied')
      .reduce((count, { kind, about }) => {
        if (kind === 'money_out' && (about === name || about === batch.name)) return count + 1
        return kind === 'money_in' && about === name ? count - 1 : count
      }, 0)
  }

  #endedBy(payment: Payment, outcome: Outcome | null, code: Code): Exception['kind'] | undefined {
    const before = payment.outcome
    if (outcome === null || outcome === before || (outcome === 'paid' && before === 'returned')) return undefined
    // A bank rejects the copy of a payment that it has made.
    const isCopy = outcome === 'failed' && code === 'AM05'
    const isPossible = before === null || (before === 'paid' && outcome === 'returned')
    if (!isPossible && !isCopy) return 'contradiction'
    if (outcome !== 'paid' && code === 'AM05') return 'duplicate'
    if (outcome !== 'paid' && code === 'AM04') return 'float'
    this.#end(payment, outcome, outcome === 'paid' ? null : restrictionOf(code))
    return undefined
  }

  #hearOfBatch({ of, status }: { of: string; status: string }): Exception['kind'] | undefined {
    const batch = this.batches.get(of)
    if (batch === undefined || batch.claims === 0) return 'unmatched'
    if (status === 'RJCT') return undefined
    if (status === 'ACTC' && this.#isGivenBack(batch))
      return this.#isSeen(`given back ${of}`) ? undefined : 'paid_after_give_back'
    if (batch.status === 'sent') batch.status = 'acknowledged'
    if (batch.status === 'approved') batch.early ??= 'acknowledged'
    return undefined
  }

  /** The sent batch of an item, or the batch with its payment. */
  #batchOf(statement: Statement): Batch | undefined {
    if (statement.says === 'money') return undefined
    const isWhole = statement.says === 'batch' || statement.says === 'whole batch'
    const batch = isWhole ? this.batches.get(statement.of) : this.payments.get(statement.of)?.batch
    return batch && batch.claims > 0 ? batch : undefined
  }

  /** The batches that a file rejects as a whole or payment by payment, with the reasons. */
  #rejectedBy({ statements }: BankFile): Map<Batch, Code[]> {
    const found = new Map<Batch, Code[]>()
    const rejections = statements.flatMap(each =>
      (each.says === 'batch' || each.says === 'status') && each.status === 'RJCT' ? [each] : [],
    )
    for (const [batch, all] of Map.groupBy(rejections, each => this.#batchOf(each))) {
      if (batch === undefined) continue
      const open = this.#paymentsOf(batch).filter(({ outcome }) => outcome === null || outcome === 'paid')
      const ofPayments = all.filter(each => each.says === 'status' && !this.payments.get(each.of)?.isRemoved)
      const isComplete = open.length > 0 && open.every(({ name }) => ofPayments.some(({ of }) => of === name))
      const ofWhole = all.filter(({ says }) => says === 'batch')
      const others = ofPayments.filter(each => !isAboutPayee(each))
      if (ofWhole.length > 0 || (isComplete && others.length > 0))
        found.set(
          batch,
          [...ofWhole, ...others].map(({ code }) => code),
        )
    }
    return found
  }

  /** A bank that rejects a batch may pay another copy of it. */
  #reject(batch: Batch, { codes, message }: { codes: Code[]; message: string }): undefined {
    const code = gravestOf(codes)
    const kinds = ['duplicate', 'rejected', 'float', 'contradiction']
    const earlier = this.exceptions.filter(({ about, kind }) => about === batch.name && kinds.includes(kind))
    const open = (kind: Exception['kind']): undefined => {
      const undecided = earlier.find(({ decision }) => decision === null)
      if (undecided !== undefined && kind === 'duplicate') undecided.kind = kind
      if (undecided !== undefined || this.#isSeen(`rejection ${message} ${batch.name} ${code}`)) return
      this.#open({ rail: batch.rail, kind, about: batch.name, code })
    }
    const payments = this.#paymentsOf(batch)
    const isPaid = payments.some(({ outcome }) => outcome === 'paid' || outcome === 'returned')
    if (isPaid) return open('contradiction')
    const hasFailed = batch.status === 'rejected' || batch.status === 'settled' || batch.early === 'rejected'
    if (hasFailed || !payments.some(({ outcome }) => outcome === null)) return
    if (code === 'AM05') return open('duplicate')
    if (code === 'AM04') return open('float')
    const isOfFile = code !== null && codes.every(each => each === null || each === 'FF01')
    if (!isOfFile || batch.isTaken || batch.copies !== 1 || earlier.length > 0) return open('rejected')
    batch.isGivenBack = true
    for (const each of payments) if (each.outcome === null) this.#end(each, 'failed')
    if (batch.status === 'approved') batch.early = 'rejected'
    else batch.status = 'rejected'
  }

  #hearOfWhole({ of, amount, bank }: { of: string; amount: bigint; bank: string }): Exception['kind'] | undefined {
    const batch = this.batches.get(of)
    const booked = this.#bookedOf(of)
    const isKnown = booked.has(bank)
    const isAnother = !isKnown && [...booked.values()].includes(amount)
    booked.set(bank, amount)
    if (batch === undefined || batch.claims === 0) return isKnown ? undefined : 'money_out'
    if (amount !== this.debitOf(of)) {
      if (isKnown) return undefined
      const isGivenBack = this.#isGivenBack(batch) || amount === sum(this.#paymentsOf(batch))
      return isGivenBack ? 'paid_after_give_back' : 'amount'
    }
    if (isAnother) return 'money_out'
    this.#debited.add(of)
    for (const each of this.#paymentsOf(batch)) if (each.outcome === null) this.#end(each, 'paid')
    return undefined
  }

  #isGivenBack(batch: Batch): boolean {
    const payments = this.#paymentsOf(batch)
    return payments.length > 0 && payments.every(({ outcome }) => outcome === 'failed')
  }

  /** Mismatched debits may match once payments have failed. */
  #matchDebits(rail: RailName): void {
    for (const batch of this.batches.values()) {
      if (batch.rail !== rail || batch.claims === 0) continue
      const amount = -this.debitOf(batch.name)
      const [first, ...others] = this.exceptions.filter(
        each => each.decision === null && each.kind === 'amount' && each.about === batch.name && each.amount === amount,
      )
      if (first === undefined) continue
      this.#debited.add(batch.name)
      for (const each of this.#paymentsOf(batch)) if (each.outcome === null) this.#end(each, 'paid')
      first.decision = 'applied'
      for (const each of others) each.kind = 'money_out'
    }
  }

  #bookedOf(about: string): Map<string, bigint> {
    const booked = this.#booked.get(about) ?? new Map<string, bigint>()
    this.#booked.set(about, booked)
    return booked
  }

  #hearOfMoney({ rail, debtor, amount, reference, bank }: OtherMoney): Exception['kind'] | undefined {
    const booked = this.#bookedOf('other money')
    if (booked.has(bank)) return undefined
    booked.set(bank, amount)
    const recorded = this.#movements.find(
      each =>
        each.rail === rail &&
        each.amount === amount &&
        each.reference === reference &&
        !each.isTaken &&
        debtorOf(each.partner) === debtor,
    )
    if (recorded === undefined) return amount > 0n ? 'money_in' : 'money_out'
    recorded.isTaken = true
    return undefined
  }

  #end(payment: Payment, outcome: Outcome, restriction: Restriction | null = null): void {
    Object.assign(payment, { outcome, endedAt: this.now, restriction })
    this.#reports.push({ of: payment, outcome })
  }

  #settle(rail: RailName): void {
    for (const batch of this.batches.values()) {
      const isAtBank = batch.rail === rail && ['sent', 'acknowledged'].includes(batch.status)
      if (isAtBank && this.#paymentsOf(batch).every(({ outcome }) => outcome !== null)) batch.status = 'settled'
    }
  }

  // Decisions of operators.

  #decide(key: string, by: Decision): void {
    const exception = this.exceptions.find(each => each.decision === null && keyOf(each) === key)
    if (exception === undefined) throw new Refused()
    if (by.decision === 'ignore') this.#refuseIfOurs(exception)
    if (by.decision === 'attach') this.#attach(exception, by.to)
    if (by.decision === 'give_back') this.#giveBack(exception)
    if (by.decision === 'book') this.#book(exception, by)
    exception.decision = by.decision
  }

  /** Bookings of our payments and batches must not be left out of the books. */
  #refuseIfOurs({ rail, kind, about, isBooked, outcome, amount }: Exception): void {
    const payment = this.payments.get(about ?? '')
    // ARUCS does not give a day.
    const isAdvised = kind === 'amount' && outcome === 'returned' && amount !== null && payment !== undefined
    if (isAdvised && amount < payment.net && (payment.outcome === null || payment.outcome === 'paid'))
      throw new Refused()
    if (!isBooked || kind === 'money_in' || kind === 'money_out' || kind === 'unmatched') return
    const ours = this.payments.get(about ?? '') ?? this.batches.get(about ?? '')
    if (ours?.rail === rail) throw new Refused()
  }

  #attach({ rail, outcome, amount, code }: Exception, to: string): void {
    const payment = this.payments.get(to)
    if (outcome === null || payment === undefined || payment.rail !== rail || !isRecordedSent(payment))
      throw new Refused()
    if (amount !== null && amount !== payment.net) throw new Refused()
    const isPossible = payment.outcome === null || (payment.outcome === 'paid' && outcome === 'returned')
    if (!isPossible) throw new Refused()
    this.#end(payment, outcome, outcome === 'paid' ? null : restrictionOf(code))
    this.#settle(rail)
  }

  #giveBack({ rail, kind, about, outcome: reported, amount, code, openedAt, isBooked }: Exception): void {
    if (kind === 'money_in' || kind === 'money_out') throw new Refused()
    const payment = this.payments.get(about ?? '')
    const batch = this.batches.get(about ?? '')
    // The bank has debited the batch, so it made some of the payments.
    if (batch !== undefined && amount !== null) throw new Refused()
    // Another amount moved, and no charge is named.
    if (payment !== undefined && kind === 'amount' && isBooked) throw new Refused()
    const isAboutUnpaid = reported === 'paid' || kind === 'blocked' || kind === 'float' || kind === 'duplicate'
    const isPaid = payment?.outcome === 'paid' && (isAboutUnpaid || payment.endedAt > openedAt)
    // What the bank has debited comes back only with a credit.
    const isDebited = payment && (this.#debited.has(payment.name) || this.#debited.has(payment.batch.name))
    if ((isPaid || isDebited) && reported !== 'returned') throw new Refused()
    const all = payment ? [payment] : batch ? this.#paymentsOf(batch).filter(({ outcome }) => outcome === null) : []
    const isPossible = (each: Payment) =>
      each.rail === rail && (each.outcome === null || each.outcome === 'paid') && isRecordedSent(each)
    if (all.length === 0 || !all.every(isPossible)) throw new Refused()
    if (batch !== undefined) batch.isGivenBack = true
    // A booked return shows that the payment was made.
    const unanswered = payment !== undefined && isBooked && reported === 'returned' ? 'returned' : 'failed'
    for (const each of all)
      this.#end(each, each.outcome === null ? unanswered : 'returned', payment ? restrictionOf(code) : null)
    this.#settle(rail)
  }

  #book(
    { rail, kind, about, outcome, amount, isBooked }: Exception,
    { partner, reference: given }: { partner: string; reference: string | null },
  ): void {
    // Returned money belongs to the payment's partner.
    const isCredit = isBooked && outcome === 'returned' && (kind === 'amount' || kind === 'contradiction')
    if ((kind !== 'money_in' && kind !== 'money_out' && !isCredit) || amount === null) throw new Refused()
    const payment = this.payments.get(about ?? '')
    if (isCredit && (payment === undefined || partner !== payment.partner)) throw new Refused()
    const known = this.#movements.filter(
      each =>
        each.partner === partner && each.rail === rail && each.amount === amount && each.reference === (given ?? about),
    )
    const free = known.find(({ isTaken }) => !isTaken)
    if (free !== undefined) {
      free.isTaken = true
      return
    }
    if (given !== null && known.length > 0) throw new Refused()
    // Without a reference, the movement gets a unique one.
    const reference = given ?? `exception ${this.#movements.length}`
    this.#move({ partner, rail, amount, reference, isTaken: true })
  }

  #move({ partner, rail, amount, reference, isTaken }: Movement): void {
    const same = this.#movements.find(each => each.partner === partner && each.reference === reference)
    if (same !== undefined) {
      if (same.rail === rail && same.amount === amount) return
      throw new Refused()
    }
    this.#movements.push({ partner, rail, amount, reference, isTaken })
    this.#books.move(partner, rail, amount)
  }
}

function isRecordedSent({ batch }: Payment): boolean {
  return ['sent', 'acknowledged', 'settled', 'rejected'].includes(batch.status)
}

/** Whether a payment was rejected for a reason that applies to every copy. */
function isAboutPayee(rejection: Statement): boolean {
  return rejection.says === 'status' && (rejection.code === 'AC04' || rejection.code === 'AG01')
}

function gravestOf(codes: Code[]): Code {
  const order = [['AM05'], ['AM04'], ['FF01', 'AG01'], ['AC04'], ['MS03']]
  const ranked = order.map(alike => codes.find(code => code !== null && alike.includes(code)))
  return ranked.find(code => code !== undefined) ?? null
}

function restrictionOf(code: Code): Restriction | null {
  if (code === 'AM04' || code === 'AM05') return null
  return code === 'AC04' || code === '5' ? 'account' : 'review'
}

/** Identifies the message of a file. ARUCS has no id, so its first item identifies it. */
function messageOf({ form, message, statements: [first] }: BankFile): string {
  if (form !== 'arucs' || first?.says !== 'entry') return message
  return `arucs ${first.of} ${first.code} ${first.amount}`
}

/** Identifies a record within its message. ARUCS has only the payment's reference, not the bank's. */
function recordOf({ form }: BankFile, statement: Statement): string {
  if (form === 'arucs' && statement.says === 'entry') return statement.of
  return 'bank' in statement ? statement.bank : `${statement.says} ${statement.of} ${statement.status}`
}

function keyOf({ rail, kind, about, outcome, amount, code }: Exception): string {
  return [rail, kind, about, outcome, amount, code].map(word => word ?? '-').join(' ')
}

function sum(payments: Payment[]): bigint {
  return payments.reduce((total, { net }) => total + net, 0n)
}

// The calendar.

function scheduleOf(rail: RailName, now: number): { cutOffAt: number; valueDay: number; expectedOn: number } {
  const { offsetMs, leadDays } = rails[rail]
  const today = dayIn(rail, now)
  const cutOffOn = (day: number) => day * dayMs + cutOffHour * hourMs - offsetMs
  const inputDay = bankingDayFrom(now >= cutOffOn(today) ? today + 1 : today)
  const valueDay = addBankingDays(inputDay, leadDays)
  return { cutOffAt: cutOffOn(inputDay), valueDay, expectedOn: addBankingDays(valueDay, creditDays) }
}

function dayIn(rail: RailName, instant: number): number {
  return Math.floor((instant + rails[rail].offsetMs) / dayMs)
}

function addBankingDays(day: number, count: number): number {
  return count === 0 ? day : addBankingDays(bankingDayFrom(day + 1), count - 1)
}

function bankingDayFrom(day: number): number {
  // 1970-01-01 was a Thursday.
  const weekday = (day + 4) % 7
  return weekday === 0 || weekday === 6 ? bankingDayFrom(day + 1) : day
}

function dayText(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10)
}

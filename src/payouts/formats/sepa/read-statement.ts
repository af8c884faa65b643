import { fromDecimals, type Money } from '../../../kernel/money.ts'
import { addDays, type Day } from '../../../kernel/time.ts'
import { isBatchReference, isReference } from '../../payments/reference.ts'
import type { BankMessage, Booking } from '../bank-files.ts'
import type { MessageReader, Unit } from './parse-xml.ts'
import {
  dayAmong,
  dayOf,
  type Emit,
  headFields,
  headOf,
  moneyOf,
  problem,
  required,
  unlessPlaceholder,
} from './values.ts'

/** A transaction of an entry. `amount` is signed, in the entry's currency; null if the bank does not give it. */
type Detail = {
  unit: Unit
  number: number
  amount: bigint | null
  isCredit: boolean
  isReturn: boolean
  reference: string | null
}

/** An entry whose transactions are being read. Amounts are signed: positive if money arrived. */
type OpenEntry = {
  unit: Unit
  amount: bigint
  currency: Money['currency']
  isBooked: boolean
  day: Day
  details: number
  /** The first transaction, until it is known whether the entry has another. */
  first: Detail | undefined
  /** The rest of the amount that the transactions so far leave. */
  left: bigint
  hasPaymentWithoutAmount: boolean
  hasOtherWithoutAmount: boolean
}

type AccountMessage = Extract<BankMessage, 'camt.052' | 'camt.053' | 'camt.054'>

// The element of the entries of one account.
const containers: Record<AccountMessage, string> = { 'camt.052': 'Rpt', 'camt.053': 'Stmt', 'camt.054': 'Ntfctn' }

/**
 * Reads camt.053 and camt.054: booked entries and their transactions, and the balances and numbers of statements, of any number of
 * accounts. An entry's records add up to its amount: the rest that its transactions leave is a record without a reference to a payment,
 * such as a charge. From camt.052, only its proof that the bank has a payment.
 */
export class StatementReader implements MessageReader {
  readonly units
  private readonly message: AccountMessage
  private readonly isInterim: boolean
  private readonly emit: Emit
  private header: Unit | undefined
  // Of the statement that is being read, and of the head that was emitted last.
  private account: string | undefined
  private isHeadDue = false
  private emitted: { account: string | null; currency: string | null } | undefined
  private entry: OpenEntry | undefined
  private opening: Money | null = null
  private closing: Money | null = null
  private closedOn: Day | undefined

  constructor(message: AccountMessage, emit: Emit) {
    this.message = message
    this.isInterim = message === 'camt.052'
    this.emit = this.isInterim ? emitterOfSigns(emit) : emit
    this.units = this.unitsBelow(containers[message])
  }

  end(): void {
    const { header, message } = this
    // Without any statement, it is the message of a day on which nothing happened.
    if (this.emitted === undefined && header !== undefined)
      this.emit({ type: 'head', head: headOf(header, { message, account: null }) })
  }

  private unitsBelow(container: string): MessageReader['units'] {
    return {
      GrpHdr: {
        fields: headFields,
        read: unit => {
          this.header = unit
        },
      },
      [container]: { fields: statementFields, read: unit => this.endStatement(unit) },
      [`${container}/Acct`]: { fields: accountFields, read: unit => this.readAccount(unit) },
      [`${container}/Bal`]: { fields: balanceFields, read: unit => this.readBalance(unit) },
      [`${container}/Ntry`]: { fields: entryFields, read: (...given) => this.readEntry(...given) },
      [`${container}/Ntry/NtryDtls/TxDtls`]: { fields: detailFields, read: (...given) => this.readDetail(...given) },
    }
  }

  private readAccount(unit: Unit): void {
    const id = accountIdFields.map(field => unit.get(field)).find(value => value !== undefined)
    if (id === undefined) throw problem(unit, 'The account has no number')
    const plain = id.replace(/\s/g, '')
    if (this.account !== undefined) throw problem(unit, 'The statement names a second account')
    this.account = plain
    this.isHeadDue = true
    const currency = unit.get('Ccy')
    if (currency !== undefined) this.emitHead(currency)
  }

  /** @param currency the account's; null if neither the account nor a balance names it */
  private emitHead(currency: string | null): void {
    const { header, message, account } = this
    if (!this.isHeadDue || account === undefined) return
    this.isHeadDue = false
    if (this.emitted?.account === account && this.emitted.currency === currency) return
    this.emitted = { account, currency }
    if (header !== undefined) this.emit({ type: 'head', head: { ...headOf(header, { message, account }), currency } })
  }

  private readBalance(unit: Unit): void {
    if (this.isHeadDue) this.emitHead(moneyOf(unit, 'Amt')?.currency ?? null)
    const type = unit.get('Tp/CdOrPrtry/Cd')
    const isOpening = type === 'OPBD' || type === 'PRCD'
    // The balance at the foot of a page is not the balance of the day.
    if ((!isOpening && type !== 'CLBD') || unit.get('Tp/SubTp/Cd') === 'INTM') return
    const money = moneyOf(unit, 'Amt')
    const day = dayOf(unit, 'Dt')
    if (money === undefined || day === undefined) throw problem(unit, 'The balance lacks its amount or day')
    if (!isOpening) this.closedOn = day
    // Some banks leave out the sign of every balance. Their entries count.
    if (unit.get('CdtDbtInd') === undefined) return
    const balance = { ...money, amount: isCreditOf(unit) ? money.amount : -money.amount }
    if (isOpening) this.opening = balance
    else this.closing = balance
  }

  /** A statement without any balance counts as well: its number is not missing. */
  private endStatement(unit: Unit): void {
    this.emitHead(null)
    const numbers = { electronic: numberOf(unit, 'ElctrncSeqNb'), legal: numberOf(unit, 'LglSeqNb') }
    const day = this.dayOfStatement(unit)
    const balances = { opening: this.opening, closing: this.closing }
    const coversFrom = this.closedOn === undefined ? null : firstDayOf(unit, this.closedOn)
    const isEmpty = Object.values({ ...balances, ...numbers, coversFrom }).every(value => value === null)
    // Notifications also have numbers, but they count something else.
    if (this.message === 'camt.053' && day !== undefined && !isEmpty)
      this.emit({ type: 'statement', line: unit.line, day, coversFrom, ...balances, numbers })
    this.account = this.closedOn = undefined
    this.opening = this.closing = null
  }

  private dayOfStatement(unit: Unit): Day | undefined {
    return this.closedOn ?? lastDayOf(unit)
  }

  private begun(unit: Unit, statement: Unit): OpenEntry {
    if (this.entry?.unit === unit) return this.entry
    if (this.account === undefined) throw problem(unit, 'The account of the entry is missing')
    this.emitHead(null)
    const money = moneyOf(unit, 'Amt')
    if (money === undefined) throw problem(unit, 'The entry has no amount')
    const amount = isCreditOf(unit) ? money.amount : -money.amount
    const status = unit.get('Sts/Cd') ?? required(unit, 'Sts')
    const isBooked = status === 'BOOK' || (this.isInterim && status === 'PDNG')
    this.entry = {
      ...{ unit, amount, currency: money.currency, isBooked, day: this.bookedOn(unit, statement) },
      ...{ details: 0, first: undefined, left: amount },
      ...{ hasPaymentWithoutAmount: false, hasOtherWithoutAmount: false },
    }
    return this.entry
  }

  private readDetail(unit: Unit, [outer, statement]: readonly Unit[]): void {
    if (outer === undefined || statement === undefined) return
    const entry = this.begun(outer, statement)
    if (!entry.isBooked) return
    entry.details += 1
    const detail = detailOf(unit, entry)
    if (entry.details === 1) {
      entry.first = detail
      return
    }
    if (entry.first !== undefined) this.emitDetail(entry.first, entry)
    entry.first = undefined
    this.emitDetail(detail, entry)
  }

  private readEntry(unit: Unit, [statement]: readonly Unit[]): void {
    if (statement === undefined) return
    const whole = this.begun(unit, statement)
    this.entry = undefined
    if (!whole.isBooked) return
    // A single transaction without an amount has the entry's amount.
    if (whole.first !== undefined)
      this.emitDetail({ ...whole.first, amount: whole.first.amount ?? whole.amount }, whole)
    if (whole.hasPaymentWithoutAmount && whole.hasOtherWithoutAmount)
      throw problem(unit, 'The transactions of the entry have no amounts')
    if (whole.details > 0 && (whole.left === 0n || whole.hasPaymentWithoutAmount)) return
    this.emit({
      type: 'entry',
      line: unit.line,
      entryReference: entryReferenceOf(unit),
      amount: { amount: whole.left, currency: whole.currency },
      booking: bookingOf(whole),
      reference: unit.get('NtryDtls/Btch/PmtInfId') ?? unit.get('NtryDtls/Btch/MsgId') ?? null,
      reasonCodes: [],
      reasonText: null,
    })
  }

  private emitDetail({ unit, number, amount, isCredit, isReturn, reference }: Detail, of: OpenEntry): void {
    of.left -= amount ?? 0n
    const reused = unlessPlaceholder(unit.get('Refs/AcctSvcrRef')) ?? entryReferenceOf(of.unit)
    // Banks repeat a reference on all transactions of an entry.
    const entryReference = reused === null || number === 1 ? reused : `${reused}/${number}`
    const booking = bookingOf(of, unit)
    const reason = {
      reasonCodes: unit.all('RtrInf/Rsn/Cd', 'RtrInf/Rsn/Prtry'),
      reasonText: joined(unit.all('RtrInf/AddtlInf')),
    }
    const isPayment = reference !== null && (isReturn || (!isCredit && isReference(reference)))
    if (isPayment) {
      of.hasPaymentWithoutAmount ||= amount === null
      this.emit({
        type: 'payment',
        line: unit.line,
        reference,
        state: isReturn ? 'returned' : 'paid',
        amount: amount === null ? null : { amount: amount < 0n ? -amount : amount, currency: of.currency },
        entryReference,
        ...reason,
        booking,
      })
    } else if (amount === null) {
      of.hasOtherWithoutAmount = true
    } else {
      const batch = unit.get('Refs/PmtInfId') ?? unit.get('Refs/MsgId')
      this.emit({
        type: 'entry',
        line: unit.line,
        entryReference,
        amount: { amount, currency: of.currency },
        booking,
        reference:
          reference ?? of.unit.get('NtryDtls/Btch/PmtInfId') ?? of.unit.get('NtryDtls/Btch/MsgId') ?? batch ?? null,
        ...reason,
      })
    }
  }

  /** An entry without dates is booked on the day of its statement. */
  private bookedOn(unit: Unit, statement: Unit): Day {
    const day =
      dayOf(unit, 'BookgDt') ??
      dayOf(unit, 'ValDt') ??
      this.dayOfStatement(statement) ??
      (this.header && dayAmong(this.header, ['CreDtTm']))
    if (day === undefined) throw problem(unit, 'Neither the entry nor its statement has a date')
    return day
  }
}

/**
 * Reads the proof in an interim report that the bank has taken a payment or a batch. Its entries may still change, and the statement
 * repeats them.
 */
function emitterOfSigns(emit: Emit): Emit {
  return part => {
    if (part.type === 'head') return emit(part)
    if (part.type === 'payment' && part.state === 'paid' && part.booking?.isReversal === false) {
      const { booking: _, ...payment } = part
      return emit({ ...payment, state: 'accepted', amount: null, entryReference: null })
    }
    if (part.type !== 'entry' || part.amount.amount > 0n || part.booking.isReversal) return
    const { line, reference: messageId, reasonCodes, reasonText } = part
    if (messageId === null || !isBatchReference(messageId)) return
    emit({ type: 'batch', line, messageId, level: 'group', state: 'acknowledged', reasonCodes, reasonText })
  }
}

/** The last day that a statement covers, as far as it says so. A period that ends at midnight ends with the day before. */
function lastDayOf(statement: Unit): Day | undefined {
  const end = dayAmong(statement, ['FrToDt/ToDtTm'])
  if (end === undefined) return dayAmong(statement, ['CreDtTm'])
  const start = dayAmong(statement, ['FrToDt/FrDtTm'])
  const isMidnight = /T00:00(:00(\.0+)?)?(Z|[+-]|$)/.test(statement.get('FrToDt/ToDtTm') ?? '')
  return isMidnight && start !== undefined && start < end ? addDays(end, -1) : end
}

// The part of the bank transaction code that marks a return: RRTN.
const subFamily = 'BkTxCd/Domn/Fmly/SubFmlyCd'
// From version 3 on, charges are records within one element; before, each charge is an element.
const chargeFields = ['Chrgs/TtlChrgsAndTaxAmt', 'Chrgs/Rcrd/Amt', 'Chrgs/Amt']
const accountIdFields = ['Id/IBAN', 'Id/BBAN', 'Id/Othr/Id', 'Id/PrtryAcct/Id']
const accountFields = [...accountIdFields, 'Ccy']
const statementFields = ['ElctrncSeqNb', 'LglSeqNb', 'CreDtTm', 'FrToDt/FrDtTm', 'FrToDt/ToDtTm']
const balanceFields = ['Tp/CdOrPrtry/Cd', 'Tp/SubTp/Cd', 'Amt', 'CdtDbtInd', 'Dt/Dt', 'Dt/DtTm']
const entryFields = [
  ...['NtryRef', 'AcctSvcrRef', 'Amt', 'CdtDbtInd', 'RvslInd', 'Sts', 'Sts/Cd', 'AddtlNtryInf'],
  ...['BookgDt/Dt', 'BookgDt/DtTm', 'ValDt/Dt', 'ValDt/DtTm'],
  ...[subFamily, 'NtryDtls/Btch/PmtInfId', 'NtryDtls/Btch/MsgId', ...chargeFields],
]
const detailFields = [
  ...['Refs/AcctSvcrRef', 'Refs/EndToEndId', 'Refs/InstrId', 'Refs/PmtInfId', 'Refs/MsgId'],
  ...['Amt', 'AmtDtls/TxAmt/Amt', 'CdtDbtInd', subFamily],
  ...['RmtInf/Ustrd', 'RmtInf/Strd/CdtrRefInf/Ref', 'RtrInf/Rsn/Cd', 'RtrInf/Rsn/Prtry', 'RtrInf/AddtlInf'],
  ...['AddtlTxInf', ...chargeFields],
]

/**
 * Money that comes back is a return if the bank says so in any of its three ways, or if it carries one of our references, as no other
 * incoming payment does.
 */
function detailOf(unit: Unit, entry: OpenEntry): Detail {
  const isCredit = isCreditOf(unit.get('CdtDbtInd') === undefined ? entry.unit : unit)
  // An amount in another currency is the original payment's.
  const money = [moneyOf(unit, 'Amt'), moneyOf(unit, 'AmtDtls/TxAmt/Amt')].find(
    each => each?.currency === entry.currency,
  )
  const amount = money === undefined ? null : isCredit ? money.amount : -money.amount
  const reference = referenceOf(unit)
  const isReturn =
    isCredit &&
    (hasReturnReason(unit) ||
      (unit.get(subFamily) ?? entry.unit.get(subFamily)) === 'RRTN' ||
      isTrue(entry.unit.get('RvslInd')) ||
      (reference !== null && isReference(reference)))
  return { unit, number: entry.details, amount, isCredit, isReturn, reference }
}

/** @param detail the transaction of the entry that the record is about, if any */
function bookingOf({ unit, day, currency, details }: OpenEntry, detail?: Unit): Booking {
  const remittance = joined(detail?.all('RmtInf/Ustrd', 'RmtInf/Strd/CdtrRefInf/Ref') ?? [])
  // The charges of an entry are not the charges of each of its transactions.
  const ofEntry = details > 1 ? null : chargesOf(unit, currency)
  return {
    day,
    bankReference: bankReferenceOf(...(detail === undefined ? [] : [detail]), unit),
    isReversal: isTrue(unit.get('RvslInd')),
    isReturn:
      (detail !== undefined && hasReturnReason(detail)) || (detail?.get(subFamily) ?? unit.get(subFamily)) === 'RRTN',
    texts: [remittance, detail?.get('AddtlTxInf'), unit.get('AddtlNtryInf')].filter(
      text => text !== null && text !== undefined,
    ),
    charges: (detail && chargesOf(detail, currency)) ?? ofEntry,
  }
}

function hasReturnReason(detail: Unit): boolean {
  return detail.get('RtrInf/Rsn/Cd') !== undefined || detail.get('RtrInf/Rsn/Prtry') !== undefined
}

/** Charges are shown, never computed with, so an odd charge does not refuse a file. */
function chargesOf(unit: Unit, currency: Money['currency']): bigint | null {
  const path = chargeFields.find(field => unit.get(field) !== undefined)
  if (path === undefined) return null
  let sum = 0n
  const currencies = unit.all(`${path}@Ccy`)
  for (const [index, text] of unit.all(path).entries()) {
    const amount = currencies[index] === currency ? fromDecimals(text, currency) : undefined
    if (amount === undefined) return null
    sum += amount
  }
  return sum
}

function isTrue(text: string | undefined): boolean {
  return text === 'true' || text === '1'
}

function referenceOf(unit: Unit): string | null {
  const given = [unit.get('Refs/EndToEndId'), unit.get('Refs/InstrId')].filter(each => each !== undefined)
  return given.find(each => isReference(each)) ?? given.find(each => unlessPlaceholder(each)) ?? null
}

/** Reads a bank's number of a statement; null if no number counts. */
function numberOf(unit: Unit, field: string): bigint | null {
  const text = unit.get(field)
  return text !== undefined && /^\d{1,18}$/.test(text) ? BigInt(text) : null
}

/** The first day that a statement covers completely: some begin during a day. Without a period, it covers the day of its balance. */
function firstDayOf(unit: Unit, closedOn: Day): Day {
  const begins = unit.get('FrToDt/FrDtTm')
  const day = dayAmong(unit, ['FrToDt/FrDtTm'])
  if (begins === undefined || day === undefined) return closedOn
  const first = /^.{10}(T00:00|$)/.test(begins) ? day : addDays(day, 1)
  return first < closedOn ? first : closedOn
}

function isCreditOf(unit: Unit): boolean {
  const direction = required(unit, 'CdtDbtInd')
  if (direction !== 'CRDT' && direction !== 'DBIT') throw problem(unit, 'CdtDbtInd is neither CRDT nor DBIT')
  return direction === 'CRDT'
}

function entryReferenceOf(unit: Unit): string | null {
  return unlessPlaceholder(unit.get('AcctSvcrRef')) ?? unit.get('NtryRef') ?? null
}

function bankReferenceOf(...units: Unit[]): string | null {
  const given = units.map(unit => unlessPlaceholder(unit.get('Refs/AcctSvcrRef') ?? unit.get('AcctSvcrRef')))
  return given.find(each => each !== undefined) ?? null
}

function joined(texts: string[]): string | null {
  return texts.length === 0 ? null : texts.join(' ')
}

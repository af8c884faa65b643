import { fromDecimals, type Money } from '../../../money.ts'
import type { Day } from '../../../time.ts'
import { isReference } from '../../reference.ts'
import type { Booking } from '../bank-files.ts'
import type { MessageReader, Unit } from './parse-xml.ts'
import { dayAmong, dayOf, type Emit, headFields, headOf, moneyOf, problem, required } from './values.ts'

/** A transaction of an entry. `amount` is signed, in the entry's currency; null if the bank does not give it. */
type Detail = {
  unit: Unit
  number: number
  amount: bigint | null
  isCredit: boolean
  isReturn: boolean
  reference: string | null
}

/** An entry of which the transactions are being read. Amounts are signed: positive if money arrived. */
type Entry = {
  unit: Unit
  amount: bigint
  currency: Money['currency']
  isBooked: boolean
  details: number
  /** The first transaction, until it is known whether the entry has another. */
  first: Detail | undefined
  /** What the transactions so far leave of the amount. */
  left: bigint
  hasPaymentWithoutAmount: boolean
  hasOtherWithoutAmount: boolean
}

/**
 * Reads camt.053 and camt.054: booked entries and their transactions, and the balances and numbers of statements. An entry's
 * records add up to its amount: what its transactions leave is a record without a reference to a payment, such as a charge.
 * @param container the element of an account's entries: `Stmt` or `Ntfctn`
 */
export function readStatement(container: 'Stmt' | 'Ntfctn', emit: Emit): MessageReader {
  const message = container === 'Stmt' ? 'camt.053' : 'camt.054'
  let header: Unit | undefined
  let account: string | undefined
  let entry: Entry | undefined
  let opening: Money | null = null
  let closing: { day: Day; balance: Money } | null = null

  const readAccount = (unit: Unit) => {
    const id = accountFields.map(field => unit.get(field)).find(value => value !== undefined)
    if (id === undefined) throw problem(unit, 'The account has no number')
    const plain = id.replace(/\s/g, '')
    if (account !== undefined && plain !== account)
      throw problem(unit, 'A file holds the entries of one account; this is a second')
    if (account === undefined && header !== undefined)
      emit({ type: 'head', head: headOf(header, { message, account: plain }) })
    account = plain
  }

  const readBalance = (unit: Unit) => {
    const type = unit.get('Tp/CdOrPrtry/Cd')
    const isOpening = type === 'OPBD' || type === 'PRCD'
    // The balance at the foot of a page is not that of the day.
    if ((!isOpening && type !== 'CLBD') || unit.get('Tp/SubTp/Cd') === 'INTM') return
    const money = moneyOf(unit, 'Amt')
    const day = dayOf(unit, 'Dt')
    if (money === undefined || day === undefined) throw problem(unit, 'The balance lacks its amount or day')
    const balance = { ...money, amount: isCreditOf(unit) ? money.amount : -money.amount }
    if (isOpening) opening = balance
    else closing = { day, balance }
  }

  /** A statement without any balance counts too: its number is not missing. */
  const endStatement = (unit: Unit) => {
    const numbers = { electronic: numberOf(unit, 'ElctrncSeqNb'), legal: numberOf(unit, 'LglSeqNb') }
    const day = closing?.day ?? dayAmong(unit, ['FrToDt/ToDtTm', 'CreDtTm'])
    const balances = { opening, closing: closing?.balance ?? null }
    const isEmpty = Object.values({ ...balances, ...numbers }).every(value => value === null)
    if (day !== undefined && !isEmpty) emit({ type: 'statement', line: unit.line, day, ...balances, numbers })
    opening = closing = null
  }

  const begun = (unit: Unit): Entry => {
    if (entry?.unit === unit) return entry
    const money = moneyOf(unit, 'Amt')
    if (money === undefined) throw problem(unit, 'The entry has no amount')
    const amount = isCreditOf(unit) ? money.amount : -money.amount
    const isBooked = (unit.get('Sts/Cd') ?? required(unit, 'Sts')) === 'BOOK'
    entry = {
      ...{ unit, amount, currency: money.currency, isBooked, details: 0, first: undefined, left: amount },
      ...{ hasPaymentWithoutAmount: false, hasOtherWithoutAmount: false },
    }
    return entry
  }

  const readDetail = (unit: Unit, [outer]: readonly Unit[]) => {
    if (outer === undefined) return
    const entry = begun(outer)
    if (!entry.isBooked) return
    entry.details += 1
    const detail = detailOf(unit, entry)
    if (entry.details === 1) {
      entry.first = detail
      return
    }
    if (entry.first !== undefined) emitDetail(entry.first, entry)
    entry.first = undefined
    emitDetail(detail, entry)
  }

  const readEntry = (unit: Unit) => {
    const whole = begun(unit)
    entry = undefined
    if (!whole.isBooked) return
    // A single transaction without an amount has the entry's.
    if (whole.first !== undefined) emitDetail({ ...whole.first, amount: whole.first.amount ?? whole.amount }, whole)
    if (whole.hasPaymentWithoutAmount && whole.hasOtherWithoutAmount)
      throw problem(unit, 'The transactions of the entry have no amounts')
    if (whole.details > 0 && (whole.left === 0n || whole.hasPaymentWithoutAmount)) return
    emit({
      type: 'entry',
      line: unit.line,
      entryReference: entryReferenceOf(unit),
      amount: { amount: whole.left, currency: whole.currency },
      booking: bookingOf({ day: bookedOn(unit), bankReference: bankReferenceOf(unit), currency: whole.currency, unit }),
      reference: unit.get('NtryDtls/Btch/PmtInfId') ?? unit.get('NtryDtls/Btch/MsgId') ?? null,
      reasonCodes: [],
      reasonText: null,
    })
  }

  const emitDetail = ({ unit, number, amount, isCredit, isReturn, reference }: Detail, of: Entry) => {
    of.left -= amount ?? 0n
    const reused = unit.get('Refs/AcctSvcrRef') ?? entryReferenceOf(of.unit)
    // Banks repeat a reference on all transactions of an entry.
    const entryReference = reused === null || number === 1 ? reused : `${reused}/${number}`
    const bankReference = bankReferenceOf(unit, of.unit)
    const booking = (day: Day) =>
      bookingOf({ day, bankReference, currency: of.currency, unit: of.unit, detail: unit, isAlone: of.details === 1 })
    const reason = {
      reasonCodes: unit.all('RtrInf/Rsn/Cd', 'RtrInf/Rsn/Prtry'),
      reasonText: joined(unit.all('RtrInf/AddtlInf')),
    }
    const day = dayOf(of.unit, 'BookgDt') ?? dayOf(of.unit, 'ValDt')
    const isPayment = reference !== null && (isReturn || (!isCredit && isReference(reference)))
    if (isPayment) {
      of.hasPaymentWithoutAmount ||= amount === null
      emit({
        type: 'payment',
        line: unit.line,
        reference,
        state: isReturn ? 'returned' : 'paid',
        amount: amount === null ? null : { amount: amount < 0n ? -amount : amount, currency: of.currency },
        entryReference,
        ...reason,
        ...(day === undefined ? {} : { booking: booking(day) }),
      })
    } else if (amount === null) {
      of.hasOtherWithoutAmount = true
    } else {
      const batch = unit.get('Refs/PmtInfId') ?? unit.get('Refs/MsgId')
      emit({
        type: 'entry',
        line: unit.line,
        entryReference,
        amount: { amount, currency: of.currency },
        booking: booking(bookedOn(of.unit)),
        reference:
          reference ?? of.unit.get('NtryDtls/Btch/PmtInfId') ?? of.unit.get('NtryDtls/Btch/MsgId') ?? batch ?? null,
        ...reason,
      })
    }
  }

  const bookedOn = (unit: Unit): Day => {
    const day = dayOf(unit, 'BookgDt') ?? dayOf(unit, 'ValDt')
    if (day === undefined) throw problem(unit, 'The entry has no booking date')
    return day
  }

  return {
    GrpHdr: {
      fields: headFields,
      read(unit) {
        header = unit
      },
    },
    // Notifications have numbers, too, which count something else.
    ...(container === 'Stmt' ? { Stmt: { fields: statementFields, read: endStatement } } : {}),
    [`${container}/Acct`]: { fields: accountFields, read: readAccount },
    [`${container}/Bal`]: { fields: balanceFields, read: readBalance },
    [`${container}/Ntry`]: { fields: entryFields, read: readEntry },
    [`${container}/Ntry/NtryDtls/TxDtls`]: { fields: detailFields, read: readDetail },
  }
}

// The part of the bank transaction code that tells a return: RRTN.
const subFamily = 'BkTxCd/Domn/Fmly/SubFmlyCd'
// From version 3 on, charges are records within one element; before, each charge is an element.
const chargeFields = ['Chrgs/TtlChrgsAndTaxAmt', 'Chrgs/Rcrd/Amt', 'Chrgs/Amt']
const accountFields = ['Id/IBAN', 'Id/BBAN', 'Id/Othr/Id', 'Id/PrtryAcct/Id']
const statementFields = ['ElctrncSeqNb', 'LglSeqNb', 'CreDtTm', 'FrToDt/ToDtTm']
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
 * Money that comes back is a return if the bank says so in any of its three ways, or if it carries one of our references, which
 * no other incoming payment does.
 */
function detailOf(unit: Unit, entry: Entry): Detail {
  const isCredit = isCreditOf(unit.get('CdtDbtInd') === undefined ? entry.unit : unit)
  // Other currencies are those of the original payment.
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

/**
 * @param detail the transaction of the entry that the record is about, if it is about one
 * @param isAlone whether the entry has no other transaction: charges of an entry are not those of each of its transactions
 */
function bookingOf({
  day,
  bankReference,
  currency,
  unit,
  detail,
  isAlone = true,
}: {
  day: Day
  bankReference: string | null
  currency: Money['currency']
  unit: Unit
  detail?: Unit
  isAlone?: boolean
}): Booking {
  const remittance = joined([
    ...(detail?.all('RmtInf/Ustrd') ?? []),
    ...(detail?.all('RmtInf/Strd/CdtrRefInf/Ref') ?? []),
  ])
  return {
    day,
    bankReference,
    isReversal: isTrue(unit.get('RvslInd')),
    isReturn:
      (detail !== undefined && hasReturnReason(detail)) || (detail?.get(subFamily) ?? unit.get(subFamily)) === 'RRTN',
    texts: [remittance, detail?.get('AddtlTxInf'), unit.get('AddtlNtryInf')].filter(
      text => text !== null && text !== undefined,
    ),
    charges: (detail && chargesOf(detail, currency)) ?? (isAlone ? chargesOf(unit, currency) : null),
  }
}

function hasReturnReason(detail: Unit): boolean {
  return detail.get('RtrInf/Rsn/Cd') !== undefined || detail.get('RtrInf/Rsn/Prtry') !== undefined
}

/** Charges are told, not computed with, so that an odd one refuses no file. */
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
  return given.find(each => isReference(each)) ?? given.find(each => !/^NOT ?PROVIDED$/.test(each)) ?? null
}

/** Reads a bank's number of a statement; null if there is none that counts. */
function numberOf(unit: Unit, field: string): bigint | null {
  const text = unit.get(field)
  return text !== undefined && /^\d{1,18}$/.test(text) ? BigInt(text) : null
}

function isCreditOf(unit: Unit): boolean {
  const direction = required(unit, 'CdtDbtInd')
  if (direction !== 'CRDT' && direction !== 'DBIT') throw problem(unit, 'CdtDbtInd is neither CRDT nor DBIT')
  return direction === 'CRDT'
}

function entryReferenceOf(unit: Unit): string | null {
  return unit.get('AcctSvcrRef') ?? unit.get('NtryRef') ?? null
}

/** Banks fill the field with a placeholder if they have no reference. */
function bankReferenceOf(...units: Unit[]): string | null {
  const given = units.map(unit => unit.get('Refs/AcctSvcrRef') ?? unit.get('AcctSvcrRef'))
  return given.find(each => each !== undefined && !/^(NONREF|NOT ?PROVIDED)$/.test(each)) ?? null
}

function joined(texts: string[]): string | null {
  return texts.length === 0 ? null : texts.join(' ')
}

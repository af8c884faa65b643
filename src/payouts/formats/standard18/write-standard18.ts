import { type Static, Type } from 'typebox'
import { inDecimals } from '../../../kernel/money.ts'
import { wordOf } from '../../../kernel/schemas.ts'
import { addDays, type Day, dayIn, daysBetween } from '../../../kernel/time.ts'
import type { BatchToWrite, Debtor, PaymentOrder, WriteBatch } from '../bank-files.ts'
import { type UkScheme, ukPaymentMax } from '../uk-payments.ts'
import { fieldCharsMax, isField, toBacsName } from './characters.ts'

/** How a bank or a bureau wants the file. Banks differ; most of them accept the defaults. */
export const Standard18Options = Type.Object({
  /** Both take the same file. They differ in the largest payment and in the earliest processing day. */
  scheme: wordOf(['bacs', 'faster-payments']),
  /** SUN: six digits. */
  serviceUserNumber: Type.String({ pattern: '^[0-9]{6}$' }),
  /** `multi`: records of 106 columns, each with its processing day. Default `single`: 100 columns, the day in UHL1. */
  processing: Type.Optional(wordOf(['single', 'multi'])),
  /** Whether VOL1, HDR1, HDR2, UHL1, EOF1, EOF2 and UTL1 are written. Some upload pages want only the records. Default true. */
  hasLabels: Type.Optional(Type.Boolean()),
  /** HDR1 and EOF1, column 15. Default '1'. */
  hdr1Column15: Type.Optional(wordOf(['1', ' '])),
  /** UHL1, columns 11–16: '999999' (default), or the service user number. */
  receivingParty: Type.Optional(wordOf(['999999', 'service-user-number'])),
  /** EOF1, columns 55–60. Default `zeros`. */
  blockCount: Type.Optional(wordOf(['zeros', 'counted'])),
})
export type Standard18Options = Static<typeof Standard18Options>

/** The largest sum of a file, in pence: £999,999,999.99, the eleven digits of the contra. */
export const contraMax = 99_999_999_999n

// Days from the creation of the file to its processing day. Bacs processes on a working day after it, Faster Payments on the same day.
const daysAheadMin: Record<UkScheme, number> = { bacs: 1, 'faster-payments': 0 }

const limits = {
  // Seven digits in UTL1.
  paymentsMax: 9_999_999,
  // The window of Bacs for a processing day.
  daysAheadMax: 30,
  // Expired files may be overwritten: later than any processing day that a spell of holidays can move.
  expiresAfterDays: 7,
  // 2,000 bytes in blocks of 100, as HDR2 says.
  recordsPerBlock: 20,
  // Written at once: large enough for a file system, small enough for memory.
  chunkChars: 64 * 1024,
}

/** Writes payments as a file of Standard 18, for Bacs or Faster Payments Direct Corporate Access. Lines end with CRLF. */
export function standard18Writer(options: Standard18Options): WriteBatch {
  return batch => write(batch, options)
}

async function* write(batch: BatchToWrite, options: Standard18Options): AsyncGenerator<string> {
  refuseUnlessItFits(batch, options)
  const originator = originatorOf(batch.debtor)
  const { hasLabels = true, processing = 'single' } = options
  const labels = labelsOf(batch, options)
  const recordEnd = `${processing === 'multi' ? julian(batch.valueDate) : ''}\r\n`
  const paymentMax = ukPaymentMax[options.scheme]

  let chunk = hasLabels ? labels.header : ''
  let total = 0n
  let count = 0
  for await (const payment of batch.payments) {
    chunk += recordOf(payment, originator, paymentMax) + recordEnd
    total += payment.amount
    count += 1
    if (chunk.length < limits.chunkChars) continue
    yield chunk
    chunk = ''
  }
  if (count !== batch.paymentCount || total !== batch.controlTotal) {
    throw new Error(
      `The payments of batch ${batch.messageId} are ${count} over ${pounds(total)}, not ${batch.paymentCount} over ${pounds(batch.controlTotal)}`,
    )
  }
  yield chunk + contraOf(originator, total) + recordEnd + (hasLabels ? labels.trailer : '')
}

/** @throws Error */
function refuseUnlessItFits(batch: BatchToWrite, { scheme, serviceUserNumber }: Standard18Options): void {
  const refuse = (reason: string) => {
    throw new Error(`Batch ${batch.messageId} does not fit Standard 18: ${reason}`)
  }
  if (!/^[0-9]{6}$/.test(serviceUserNumber)) refuse('the service user number is not six digits')
  if (batch.currency !== 'GBP') refuse(`its currency is ${batch.currency}, not GBP`)
  if (batch.paymentCount < 1 || batch.paymentCount > limits.paymentsMax) refuse(`it has ${batch.paymentCount} payments`)
  if (batch.controlTotal > contraMax) refuse(`its total is above ${pounds(contraMax)}`)
  const daysAhead = daysBetween(createdOn(batch), batch.valueDate)
  const [first, last] = [daysAheadMin[scheme], limits.daysAheadMax]
  if (daysAhead < first || daysAhead > last)
    refuse(`its processing day is ${daysAhead} days ahead, not ${first} to ${last}`)
  if (!/[A-Z0-9]/.test(batch.messageId)) refuse('its message id has no letter and no digit')
}

/** The debtor's sort code, account and name, each as wide as its field. */
type Originator = { account: string; name: string }

/** @throws Error */
function originatorOf({ name, account }: Debtor): Originator {
  if ('iban' in account) throw new Error('The debtor of a Standard 18 file needs a sort code and an account number')
  return { account: account.sortCode + account.accountNumber, name: toBacsName(name).padEnd(fieldCharsMax) }
}

/** @throws Error */
function recordOf({ reference, amount, account }: PaymentOrder, originator: Originator, paymentMax: bigint): string {
  if ('iban' in account) throw new Error(`Payment ${reference} has an IBAN, not a sort code and an account number`)
  if (amount < 1n || amount > paymentMax)
    throw new Error(`Payment ${reference} is ${pounds(amount)}, outside £0.01 to ${pounds(paymentMax)}`)
  if (!isField(reference)) throw new Error(`The reference ${JSON.stringify(reference)} does not fit Standard 18`)
  return record({
    destination: account.sortCode + account.accountNumber,
    transactionCode: '99',
    originator,
    amount,
    reference,
    name: toBacsName(account.accountHolder),
  })
}

/** Debits the sum of the batch from the originator's account. */
function contraOf(originator: Originator, amount: bigint): string {
  return record({
    destination: originator.account,
    transactionCode: '17',
    originator,
    amount,
    reference: 'CONTRA',
    name: originator.name,
  })
}

type RecordFields = {
  destination: string
  transactionCode: '99' | '17'
  originator: Originator
  amount: bigint
  reference: string
  name: string
}

/** Returns the first 100 columns of a record. */
function record({ destination, transactionCode, originator, amount, reference, name }: RecordFields): string {
  if (!/^[0-9]{14}$/.test(destination) || !/^[0-9]{14}$/.test(originator.account))
    throw new Error(`The account of ${reference} is not six digits and eight`)
  const pence = String(amount).padStart(11, '0')
  const texts = `${originator.name}${reference.padEnd(fieldCharsMax)}${name.padEnd(fieldCharsMax)}`
  // Account type 0 in column 15; columns 32–35 are free.
  return `${destination}0${transactionCode}${originator.account}    ${pence}${texts}`
}

function labelsOf(batch: BatchToWrite, options: Standard18Options): { header: string; trailer: string } {
  const { serviceUserNumber, processing = 'single', hdr1Column15 = '1', receivingParty = '999999' } = options
  // Any six characters that are unique on the day; a message id ends with what makes it unique.
  const serial = batch.messageId.slice(-6).padStart(6, '0')
  const expires = addDays(batch.valueDate, limits.expiresAfterDays)
  const file = (blockCount: string) => ({
    ...{ 5: 'A', 6: serviceUserNumber, 12: 'S', 15: hdr1Column15, 16: serviceUserNumber, 22: serial },
    ...{ 28: '0001', 32: '0001', 42: julian(createdOn(batch)), 48: julian(expires), 55: blockCount },
  })
  const format = { 5: 'F', 6: '02000', 11: processing === 'multi' ? '00106' : '00100', 51: '00' }
  const recordCount = batch.paymentCount + 1
  const blocks = options.blockCount === 'counted' ? Math.ceil(recordCount / limits.recordsPerBlock) : 0
  const header = [
    label('VOL1', { 5: serial, 42: serviceUserNumber, 80: '1' }),
    label('HDR1', file('000000')),
    label('HDR2', format),
    label('UHL1', {
      5: julian(batch.valueDate),
      11: receivingParty === '999999' ? '999999' : serviceUserNumber,
      ...{ 21: '00', 23: '000000', 29: processing === 'multi' ? '4 MULTI  ' : '1 DAILY  ', 38: '001' },
    }),
  ]
  const trailer = [
    label('EOF1', file(String(blocks).padStart(6, '0'))),
    label('EOF2', format),
    label('UTL1', {
      // The contra is the only debit.
      ...{ 5: String(batch.controlTotal).padStart(13, '0'), 18: String(batch.controlTotal).padStart(13, '0') },
      ...{ 31: '0000001', 38: String(batch.paymentCount).padStart(7, '0') },
    }),
  ]
  return { header: header.join(''), trailer: trailer.join('') }
}

/** Returns a label of 80 columns from its fields by their first column, counted from 1, in ascending order. */
function label(name: string, fields: Record<number, string>): string {
  let line = name
  for (const [column, text] of Object.entries(fields)) line = line.padEnd(Number(column) - 1) + text
  return `${line.padEnd(80)}\r\n`
}

/** Returns a day as bYYDDD: a blank, the year, and the day of the year from 001. */
function julian(day: Day): string {
  const dayOfYear = daysBetween(`${day.slice(0, 4)}-01-01`, day) + 1
  return ` ${day.slice(2, 4)}${String(dayOfYear).padStart(3, '0')}`
}

function createdOn({ createdAt }: BatchToWrite): Day {
  return dayIn('Europe/London', createdAt)
}

function pounds(amount: bigint): string {
  return `£${inDecimals({ amount, currency: 'GBP' })}`
}

import type { BankAccount } from '../../../bank-accounts/rules.ts'
import { type Currency, inDecimals } from '../../../kernel/money.ts'
import type { BatchToWrite, PaymentOrder, WriteBatch } from '../bank-files.ts'
import { ukPaymentMax } from '../uk-payments.ts'
import { epcName, epcText, isEpcReference } from './names.ts'
import { escapeXml, inChunks } from './xml-text.ts'

export type CreditTransferOptions = {
  /** Asks the bank for one booked entry per batch (true) or per payment (false). By default the bank's contract decides. */
  isBatchBooked?: boolean | undefined
  /** Marks the payments of a batch as salaries (`SALA`). Some banks then book the batch as one sum without details. */
  isSalary?: boolean | undefined
}

/** Writes SEPA credit transfers, instant or not, as pain.001.001.09. */
export function writeSepaCreditTransfer(options: CreditTransferOptions = {}): WriteBatch {
  return batch => writeCreditTransfer(batch, sepa, options)
}

/** Writes payments in pounds between UK accounts as pain.001.001.09: Bacs, or Faster Payments if instant. */
export function writeUkCreditTransfer(options: CreditTransferOptions = {}): WriteBatch {
  return batch => writeCreditTransfer(batch, uk, options)
}

type Scheme = {
  currency: Currency
  /** In minor units. */
  paymentMax: bigint
  paymentType: { single: string; instant: string }
  chargeBearer: string
  /** Whether a text for the payee is written. */
  hasRemittance: boolean
  /** The elements of an account, without the wrapper. */
  accountId(account: BankAccount): string
  /** The elements that identify the account's bank; empty if the account number identifies it. */
  bank(account: BankAccount, bic: string | undefined): string
}

/** 999,999,999.99, in cents. Source: EPC implementation guidelines, "Instructed Amount" */
export const sepaPaymentMax = 99_999_999_999n

const serviceLevel = (code: string) => `<SvcLvl><Cd>${code}</Cd></SvcLvl>`

const sepa: Scheme = {
  currency: 'EUR',
  paymentMax: sepaPaymentMax,
  paymentType: {
    single: serviceLevel('SEPA'),
    instant: `${serviceLevel('SEPA')}<LclInstrm><Cd>INST</Cd></LclInstrm>`,
  },
  chargeBearer: 'SLEV',
  hasRemittance: true,
  accountId(account) {
    if (!('iban' in account)) throw new Error('A SEPA payment needs an IBAN')
    if (!/^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$/.test(account.iban)) throw new Error('The IBAN is malformed')
    return `<IBAN>${account.iban}</IBAN>`
  },
  bank(_account, bic) {
    if (bic === undefined) return ''
    if (!/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/.test(bic)) throw new Error('The BIC is malformed')
    return `<BICFI>${bic}</BICFI>`
  },
}

const uk: Scheme = {
  currency: 'GBP',
  // The limit of a Bacs item, £20,000,000.
  // The larger of the two schemes; a payment that Faster Payments cannot pay is refused before it joins a batch.
  paymentMax: ukPaymentMax.bacs,
  // ISO 20022 external codes: not urgent, and urgent by a net settlement system.
  paymentType: { single: serviceLevel('NURG'), instant: serviceLevel('URNS') },
  chargeBearer: 'SHAR',
  // A Bacs record has one reference of 18 characters, and some banks fill it with the text instead of the end-to-end id.
  hasRemittance: false,
  accountId(account) {
    return `<Othr><Id>${ukAccount(account).accountNumber}</Id><SchmeNm><Cd>BBAN</Cd></SchmeNm></Othr>`
  },
  bank(account, bic) {
    const { sortCode } = ukAccount(account)
    const clearing = `<ClrSysMmbId><ClrSysId><Cd>GBDSC</Cd></ClrSysId><MmbId>${sortCode}</MmbId></ClrSysMmbId>`
    return `${sepa.bank(account, bic)}${clearing}`
  },
}

function ukAccount(account: BankAccount): { sortCode: string; accountNumber: string } {
  if ('iban' in account) throw new Error('A UK payment needs a sort code and an account number')
  if (!/^[0-9]{6}$/.test(account.sortCode)) throw new Error('The sort code is malformed')
  if (!/^[0-9]{8}$/.test(account.accountNumber)) throw new Error('The account number is malformed')
  return account
}

function writeCreditTransfer(
  batch: BatchToWrite,
  scheme: Scheme,
  options: CreditTransferOptions,
): AsyncGenerator<string> {
  return inChunks(write(batch, scheme, options))
}

async function* write(batch: BatchToWrite, scheme: Scheme, options: CreditTransferOptions): AsyncGenerator<string> {
  yield head(batch, scheme, options)
  let count = 0
  let total = 0n
  for await (const order of batch.payments) {
    count += 1
    total += order.amount
    yield creditTransfer(order, scheme)
  }
  // The sums are at the top of the file, which has been written by now; the error stops the file from being sent.
  const { messageId, paymentCount, controlTotal } = batch
  if (count !== paymentCount || total !== controlTotal) {
    const expected = `instead of ${paymentCount} and ${controlTotal}`
    throw new Error(`Batch ${messageId} has count ${count} and total ${total} ${expected}`)
  }
  yield '</PmtInf>\n</CstmrCdtTrfInitn>\n</Document>\n'
}

// One payment information per batch, so that a batch-booked entry names the batch: both ids are the message id.
function head(batch: BatchToWrite, scheme: Scheme, { isBatchBooked, isSalary }: CreditTransferOptions): string {
  const { messageId, createdAt, valueDate, currency, debtor, paymentCount, controlTotal, isInstant } = batch
  if (currency !== scheme.currency) throw new Error(`Batch ${messageId} is in ${currency}, not in ${scheme.currency}`)
  if (!isEpcReference(messageId)) throw new Error(`The message id ${messageId} is malformed`)
  if (paymentCount < 1) throw new Error(`Batch ${messageId} is empty`)
  const name = escapeXml(epcName(debtor.name))
  const sums = `<NbOfTxs>${paymentCount}</NbOfTxs><CtrlSum>${inDecimals({ amount: controlTotal, currency })}</CtrlSum>`
  // The debtor's bank is mandatory in the schema; banks know their own customer's account without it.
  const bank = scheme.bank(debtor.account, debtor.bic) || '<Othr><Id>NOTPROVIDED</Id></Othr>'
  const purpose = isSalary === true ? '<CtgyPurp><Cd>SALA</Cd></CtgyPurp>' : ''
  const booking = isBatchBooked === undefined ? '' : `<BtchBookg>${isBatchBooked}</BtchBookg>`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09">',
    '<CstmrCdtTrfInitn>',
    `<GrpHdr><MsgId>${escapeXml(messageId)}</MsgId><CreDtTm>${createdAt.toISOString().slice(0, 19)}Z</CreDtTm>${sums}` +
      `<InitgPty><Nm>${name}</Nm></InitgPty></GrpHdr>`,
    `<PmtInf><PmtInfId>${escapeXml(messageId)}</PmtInfId><PmtMtd>TRF</PmtMtd>${booking}${sums}`,
    `<PmtTpInf>${isInstant ? scheme.paymentType.instant : scheme.paymentType.single}${purpose}</PmtTpInf>`,
    `<ReqdExctnDt><Dt>${valueDate}</Dt></ReqdExctnDt>`,
    `<Dbtr><Nm>${name}</Nm></Dbtr>`,
    `<DbtrAcct><Id>${scheme.accountId(debtor.account)}</Id><Ccy>${currency}</Ccy></DbtrAcct>`,
    `<DbtrAgt><FinInstnId>${bank}</FinInstnId></DbtrAgt>`,
    `<ChrgBr>${scheme.chargeBearer}</ChrgBr>\n`,
  ].join('\n')
}

// InstrId repeats the reference: some banks answer with InstrId only.
function creditTransfer({ reference, amount, account, remittanceText }: PaymentOrder, scheme: Scheme): string {
  if (!isEpcReference(reference)) throw new Error(`The reference ${reference} is malformed`)
  if (amount < 1n || amount > scheme.paymentMax)
    throw new Error(`Payment ${reference}: the amount ${amount} is not allowed`)
  const id = escapeXml(reference)
  const money = inDecimals({ amount, currency: scheme.currency })
  const bank = scheme.bank(account, undefined)
  const remittance =
    remittanceText === undefined || !scheme.hasRemittance
      ? ''
      : `<RmtInf><Ustrd>${escapeXml(epcText(remittanceText))}</Ustrd></RmtInf>`
  return (
    `<CdtTrfTxInf><PmtId><InstrId>${id}</InstrId><EndToEndId>${id}</EndToEndId></PmtId>` +
    `<Amt><InstdAmt Ccy="${scheme.currency}">${money}</InstdAmt></Amt>` +
    (bank === '' ? '' : `<CdtrAgt><FinInstnId>${bank}</FinInstnId></CdtrAgt>`) +
    `<Cdtr><Nm>${escapeXml(epcName(account.accountHolder))}</Nm></Cdtr>` +
    `<CdtrAcct><Id>${scheme.accountId(account)}</Id></CdtrAcct>${remittance}</CdtTrfTxInf>\n`
  )
}

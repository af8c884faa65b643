import { inDecimals } from '../../../kernel/money.ts'
import type { AnswersToWrite } from '../answers.ts'
import type { BatchLevel } from '../bank-files.ts'
import { escapeXml, inChunks } from './xml-text.ts'

const statuses = { accepted: 'ACSP', pending: 'PDNG', paid: 'ACSC', failed: 'RJCT', rejected: 'RJCT' } as const

/**
 * Writes a payment status report, pain.002.001.10.
 * @throws Error for `returned`, which only a statement can say
 */
export function writeStatusReport(report: AnswersToWrite): AsyncGenerator<string> {
  return inChunks(statusReport(report))
}

async function* statusReport({ messageId, createdAt, batchMessageId, currency, batch, answers }: AnswersToWrite) {
  const batchId = escapeXml(batchMessageId)
  const statusOf = (level: BatchLevel, element: 'GrpSts' | 'PmtInfSts') =>
    batch?.level === level
      ? `<${element}>${statuses[batch.state]}</${element}>${reason('StsRsnInf', batch.reasonCode, batch.reasonText)}`
      : ''
  yield [
    declaration,
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10">',
    '<CstmrPmtStsRpt>',
    `<GrpHdr>${idAndTime(messageId, createdAt)}</GrpHdr>`,
    `<OrgnlGrpInfAndSts><OrgnlMsgId>${batchId}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>` +
      `${statusOf('group', 'GrpSts')}</OrgnlGrpInfAndSts>`,
    `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${batchId}</OrgnlPmtInfId>${statusOf('payment-information', 'PmtInfSts')}\n`,
  ].join('\n')
  for await (const { reference, amount, state, reasonCode, reasonText } of answers) {
    if (state === 'returned') throw new Error('A payment status report cannot say that a payment was returned')
    const id = escapeXml(reference)
    yield `<TxInfAndSts><OrgnlInstrId>${id}</OrgnlInstrId><OrgnlEndToEndId>${id}</OrgnlEndToEndId>` +
      `<TxSts>${statuses[state]}</TxSts>${reason('StsRsnInf', reasonCode, reasonText)}` +
      `<OrgnlTxRef><Amt><InstdAmt Ccy="${currency}">${inDecimals({ amount, currency })}</InstdAmt></Amt></OrgnlTxRef>` +
      '</TxInfAndSts>\n'
  }
  yield '</OrgnlPmtInfAndSts>\n</CstmrPmtStsRpt>\n</Document>\n'
}

/**
 * Writes a notification of booked entries, camt.054.001.08, one entry per payment.
 * @throws Error for a payment that is neither `paid` nor `returned`: nothing is booked for it
 */
export function writeNotification(notification: AnswersToWrite): AsyncGenerator<string> {
  return inChunks(entryNotification(notification))
}

async function* entryNotification(notification: AnswersToWrite) {
  const { messageId, createdAt, bookedOn, batchMessageId, currency, account, answers } = notification
  const id =
    'iban' in account
      ? `<IBAN>${account.iban}</IBAN>`
      : `<Othr><Id>${account.sortCode}${account.accountNumber}</Id></Othr>`
  yield [
    declaration,
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.08">',
    '<BkToCstmrDbtCdtNtfctn>',
    `<GrpHdr>${idAndTime(messageId, createdAt)}</GrpHdr>`,
    `<Ntfctn><Id>${escapeXml(messageId)}</Id><Acct><Id>${id}</Id><Ccy>${currency}</Ccy></Acct>\n`,
  ].join('\n')
  for await (const { reference, amount, state, reasonCode, reasonText } of answers) {
    if (state !== 'paid' && state !== 'returned') throw new Error(`Nothing is booked for a payment that is ${state}`)
    const isReturned = state === 'returned'
    const money = `<Amt Ccy="${currency}">${inDecimals({ amount, currency })}</Amt>`
    const direction = `<CdtDbtInd>${isReturned ? 'CRDT' : 'DBIT'}</CdtDbtInd>`
    yield `<Ntry>${money}${direction}<RvslInd>${isReturned}</RvslInd><Sts><Cd>BOOK</Cd></Sts>` +
      `<BookgDt><Dt>${bookedOn}</Dt></BookgDt><ValDt><Dt>${bookedOn}</Dt></ValDt>` +
      `<AcctSvcrRef>${escapeXml(reference.slice(0, 30))}-${isReturned ? 'R' : 'D'}</AcctSvcrRef>` +
      `<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>${isReturned ? 'RRTN' : 'ESCT'}</SubFmlyCd></Fmly></Domn></BkTxCd>` +
      `<NtryDtls><TxDtls><Refs><PmtInfId>${escapeXml(batchMessageId)}</PmtInfId>` +
      `<EndToEndId>${escapeXml(reference)}</EndToEndId></Refs>${money}${direction}` +
      `${reason('RtrInf', reasonCode, reasonText)}</TxDtls></NtryDtls></Ntry>\n`
  }
  yield '</Ntfctn>\n</BkToCstmrDbtCdtNtfctn>\n</Document>\n'
}

const declaration = '<?xml version="1.0" encoding="UTF-8"?>'

function idAndTime(messageId: string, createdAt: Date): string {
  return `<MsgId>${escapeXml(messageId)}</MsgId><CreDtTm>${createdAt.toISOString()}</CreDtTm>`
}

// Max105Text in both schemas.
const reasonCharsMax = 105

function reason(element: 'StsRsnInf' | 'RtrInf', code: string | null, text: string | null): string {
  if (code === null && text === null) return ''
  const rsn = code === null ? '' : `<Rsn><Cd>${escapeXml(code)}</Cd></Rsn>`
  return `<${element}>${rsn}${text === null ? '' : `<AddtlInf>${escapeXml(text.slice(0, reasonCharsMax))}</AddtlInf>`}</${element}>`
}

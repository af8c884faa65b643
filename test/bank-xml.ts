// The XML that the banks of the tests read and write. It shares no code with the program, so that neither hides the other's
// faults. It is on one line, as many banks write it.

/** A payment order as the bank reads it. Amounts are in minor units. */
export type PaymentOrder = { reference: string; amount: bigint; iban: string }

/**
 * Reads the orders of a pain.001 as a bank does that trusts its sums.
 * @throws Error if the file is cut off, or does not add up
 */
export function readCreditTransfer(xml: string, file: string): { messageId: string; orders: PaymentOrder[] } {
  const field = (text: string, name: string) =>
    new RegExp(`<${name}(?: [^>]*)?>([^<]*)</${name}>`).exec(text)?.[1] ?? ''
  const orders = xml
    .split('<CdtTrfTxInf>')
    .slice(1)
    .map(text => ({
      reference: field(text, 'EndToEndId'),
      amount: BigInt(field(text, 'InstdAmt').replace('.', '')),
      iban: field(text, 'IBAN'),
    }))
  const total = orders.reduce((sum, { amount }) => sum + amount, 0n)
  const isWhole = xml.trimEnd().endsWith('</Document>')
  if (!isWhole || Number(field(xml, 'NbOfTxs')) !== orders.length || field(xml, 'CtrlSum') !== inDecimals(total))
    throw new Error(`The file ${file} is not whole, or does not add up`)
  return { messageId: field(xml, 'MsgId'), orders }
}

export function inDecimals(amount: bigint): string {
  return `${amount / 100n}.${String(amount % 100n).padStart(2, '0')}`
}

type Message = { id: string; at: Date }

/** A status in pain.002, of a batch or of a payment. */
export type Status = { status: string; reason?: string | undefined }

/**
 * Writes a pain.002.
 * @param batch the message that is answered; without a status, nothing is said of it as a whole
 */
export function statusReport(
  message: Message,
  batch: { messageId: string } & Partial<Status>,
  payments: ({ reference: string } & Status)[],
): string {
  const answers = payments.map(
    ({ reference, status, reason }) =>
      `<TxInfAndSts><OrgnlEndToEndId>${reference}</OrgnlEndToEndId><TxSts>${status}</TxSts>${reasonOf(reason)}</TxInfAndSts>`,
  )
  const group = batch.status === undefined ? '' : `<GrpSts>${batch.status}</GrpSts>${reasonOf(batch.reason)}`
  return document(
    'pain.002.001.10',
    'CstmrPmtStsRpt',
    `${headOf(message)}<OrgnlGrpInfAndSts><OrgnlMsgId>${batch.messageId}</OrgnlMsgId>` +
      `<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}</OrgnlGrpInfAndSts>` +
      (answers.length === 0
        ? ''
        : `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${batch.messageId}</OrgnlPmtInfId>${answers.join('')}</OrgnlPmtInfAndSts>`),
  )
}

function reasonOf(code: string | undefined): string {
  return code === undefined ? '' : `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`
}

/** An entry of an account. `bank` is the bank's reference of it. */
export type Entry = {
  bank: string
  amount: bigint
  direction: 'CRDT' | 'DBIT'
  currency?: string
  bookedOn: string
  details: string
  isReversal?: boolean
}

/** The transaction of an entry. */
export function transaction(of: { reference: string; returned?: { reason?: string | undefined } }): string {
  const { reference, returned } = of
  const reason = returned?.reason
  const why =
    returned === undefined ? '' : `<RtrInf>${reason === undefined ? '' : `<Rsn><Cd>${reason}</Cd></Rsn>`}</RtrInf>`
  return `<TxDtls><Refs><EndToEndId>${reference}</EndToEndId></Refs>${why}</TxDtls>`
}

/** What an entry has instead of transactions if a batch was booked as one sum. */
export function wholeBatch(messageId: string): string {
  return `<Btch><PmtInfId>${messageId}</PmtInfId></Btch>`
}

/** Writes a camt.054 (notification) or a camt.053 (statement). */
export function accountReport(
  message: Message,
  { kind, iban, entries }: { kind: 'camt.053' | 'camt.054'; iban: string; entries: Entry[] },
): string {
  const [name, container] =
    kind === 'camt.054' ? ['BkToCstmrDbtCdtNtfctn', 'Ntfctn'] : (['BkToCstmrStmt', 'Stmt'] as const)
  const account = `<Id>${message.id}</Id><Acct><Id><IBAN>${iban}</IBAN></Id></Acct>`
  return document(
    `${kind}.001.08`,
    name,
    `${headOf(message)}<${container}>${account}${entries.map(entryOf).join('')}</${container}>`,
  )
}

function entryOf(
  { bank, amount, direction, currency = 'EUR', bookedOn, details, isReversal = false }: Entry,
  index: number,
): string {
  return (
    `<Ntry><NtryRef>${index + 1}</NtryRef><Amt Ccy="${currency}">${inDecimals(amount)}</Amt><CdtDbtInd>${direction}</CdtDbtInd>${isReversal ? '<RvslInd>true</RvslInd>' : ''}` +
    `<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>${bookedOn}</Dt></BookgDt>` +
    `<AcctSvcrRef>${bank}</AcctSvcrRef><NtryDtls>${details}</NtryDtls></Ntry>`
  )
}

function headOf({ id, at }: Message): string {
  return `<GrpHdr><MsgId>${id}</MsgId><CreDtTm>${at.toISOString().slice(0, 19)}</CreDtTm></GrpHdr>`
}

function document(version: string, name: string, content: string): string {
  const namespace = `urn:iso:std:iso:20022:tech:xsd:${version}`
  return `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="${namespace}"><${name}>${content}</${name}></Document>`
}

// Reads and writes the XML of the test banks. It shares no code with the program, so that neither hides the other's
// faults. The XML is on one line, as many banks write it.

/** A payment order as the bank reads it. Amounts are in minor units. */
export type PaymentOrder = { reference: string; amount: bigint; iban: string }

/**
 * Reads the orders of a pain.001 like a bank that trusts its control sums.
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
    throw new Error(`The file ${file} is truncated or does not add up`)
  return { messageId: field(xml, 'MsgId'), orders }
}

export function inDecimals(amount: bigint): string {
  return `${amount / 100n}.${String(amount % 100n).padStart(2, '0')}`
}

type Message = { id: string; at: Date }

/** A status in pain.002, of a batch or a payment, with the bank's reason code and text. */
export type Status = { status: string; reason?: string | undefined; text?: string | undefined }

/**
 * Writes a pain.002.
 * @param batch the message to answer; without a status, the report has no group status
 * @param information the status of the payment information
 */
export function statusReport(
  message: Message,
  batch: { messageId: string } & Partial<Status>,
  payments: ({ reference: string } & Status)[],
  information?: Status,
): string {
  const answers = payments.map(
    ({ reference, ...said }) =>
      `<TxInfAndSts><OrgnlEndToEndId>${reference}</OrgnlEndToEndId><TxSts>${said.status}</TxSts>${reasonOf(said)}</TxInfAndSts>`,
  )
  const group = batch.status === undefined ? '' : `<GrpSts>${batch.status}</GrpSts>${reasonOf(batch)}`
  const ofInformation =
    information === undefined ? '' : `<PmtInfSts>${information.status}</PmtInfSts>${reasonOf(information)}`
  return document(
    'pain.002.001.10',
    'CstmrPmtStsRpt',
    `${headOf(message)}<OrgnlGrpInfAndSts><OrgnlMsgId>${batch.messageId}</OrgnlMsgId>` +
      `<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}</OrgnlGrpInfAndSts>` +
      (answers.length === 0 && information === undefined
        ? ''
        : `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${batch.messageId}</OrgnlPmtInfId>${ofInformation}${answers.join('')}</OrgnlPmtInfAndSts>`),
  )
}

function reasonOf({ reason, text }: { reason?: string | undefined; text?: string | undefined }): string {
  if (reason === undefined && text === undefined) return ''
  return `<StsRsnInf>${codeOf(reason)}${text === undefined ? '' : `<AddtlInf>${text}</AddtlInf>`}</StsRsnInf>`
}

function codeOf(reason: string | undefined): string {
  return reason === undefined ? '' : `<Rsn><Cd>${reason}</Cd></Rsn>`
}

/** An entry of an account. `bank` is the bank's reference. */
export type Entry = {
  bank: string
  amount: bigint
  direction: 'CRDT' | 'DBIT'
  currency?: string
  bookedOn: string
  details: string
  /** Whether the entry reverses an earlier one. */
  isReversal?: boolean
  /** Whether the entry has the bank transaction code of a return. */
  isReturn?: boolean
  /** Additional information in the bank's words. */
  text?: string | undefined
}

/** Writes the transaction details of an entry. */
export function transaction(of: {
  reference?: string
  returned?: { reason?: string | undefined }
  /** The remittance text. */
  remittance?: string
  /** The transaction's share of an entry with several transactions. */
  amount?: bigint
}): string {
  const { reference, returned, remittance, amount } = of
  const part = amount === undefined ? '' : `<Amt Ccy="EUR">${inDecimals(amount)}</Amt>`
  const named = reference === undefined ? '' : `<Refs><EndToEndId>${reference}</EndToEndId></Refs>`
  const text = remittance === undefined ? '' : `<RmtInf><Ustrd>${remittance}</Ustrd></RmtInf>`
  const why = returned === undefined ? '' : `<RtrInf>${codeOf(returned.reason)}</RtrInf>`
  return `<TxDtls>${named}${part}${text}${why}</TxDtls>`
}

/** Writes the details of an entry that books a whole batch as one sum. */
export function wholeBatch(messageId: string): string {
  return `<Btch><PmtInfId>${messageId}</PmtInfId></Btch>`
}

/** The number, balances and day of a statement. */
export type StatementHead = { number: number; opening: bigint; closing: bigint; day: string }

/** Writes a camt.054 (notification) or a camt.053 (statement). */
export function accountReport(
  message: Message,
  {
    kind,
    iban,
    entries,
    statement,
  }: { kind: 'camt.053' | 'camt.054'; iban: string; entries: Entry[]; statement?: StatementHead },
): string {
  const [name, container] =
    kind === 'camt.054' ? ['BkToCstmrDbtCdtNtfctn', 'Ntfctn'] : (['BkToCstmrStmt', 'Stmt'] as const)
  const number = statement === undefined ? '' : `<ElctrncSeqNb>${statement.number}</ElctrncSeqNb>`
  const account = `<Id>${message.id}</Id>${number}<Acct><Id><IBAN>${iban}</IBAN></Id></Acct>`
  const balances =
    statement === undefined
      ? ''
      : balanceOf('OPBD', statement.opening, statement.day) + balanceOf('CLBD', statement.closing, statement.day)
  return document(
    `${kind}.001.08`,
    name,
    `${headOf(message)}<${container}>${account}${balances}${entries.map(entryOf).join('')}</${container}>`,
  )
}

function balanceOf(type: 'OPBD' | 'CLBD', amount: bigint, day: string): string {
  const [units, direction] = amount < 0n ? ([-amount, 'DBIT'] as const) : ([amount, 'CRDT'] as const)
  return (
    `<Bal><Tp><CdOrPrtry><Cd>${type}</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${inDecimals(units)}</Amt>` +
    `<CdtDbtInd>${direction}</CdtDbtInd><Dt><Dt>${day}</Dt></Dt></Bal>`
  )
}

function entryOf(entry: Entry, index: number): string {
  const { bank, amount, direction, currency = 'EUR', bookedOn, details, isReversal, isReturn, text } = entry
  return (
    `<Ntry><NtryRef>${index + 1}</NtryRef><Amt Ccy="${currency}">${inDecimals(amount)}</Amt><CdtDbtInd>${direction}</CdtDbtInd>` +
    (isReversal ? '<RvslInd>true</RvslInd>' : '') +
    `<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>${bookedOn}</Dt></BookgDt><AcctSvcrRef>${bank}</AcctSvcrRef>` +
    (isReturn
      ? '<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>RRTN</SubFmlyCd></Fmly></Domn></BkTxCd>'
      : '') +
    `<NtryDtls>${details}</NtryDtls>${text === undefined ? '' : `<AddtlNtryInf>${text}</AddtlNtryInf>`}</Ntry>`
  )
}

function headOf({ id, at }: Message): string {
  return `<GrpHdr><MsgId>${id}</MsgId><CreDtTm>${at.toISOString().slice(0, 19)}</CreDtTm></GrpHdr>`
}

function document(version: string, name: string, content: string): string {
  const namespace = `urn:iso:std:iso:20022:tech:xsd:${version}`
  return `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="${namespace}"><${name}>${content}</${name}></Document>`
}

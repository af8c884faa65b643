import type { BankRecord, BatchLevel, GivenReasons, PaymentState } from '../bank-files.ts'
import type { MessageReader, Unit } from './parse-xml.ts'
import { type Emit, headFields, headOf, moneyOf, required, unlessPlaceholder } from './values.ts'

type BatchRecord = Extract<BankRecord, { type: 'batch' }>
type BatchState = BatchRecord['state']

/**
 * The meanings of ISO 20022 status codes for a batch and for a payment. A payment counts as paid when it is settled, not before. ACSC is
 * settlement on the debtor's account, the last status that most banks report.
 */
const states: ReadonlyMap<string, { batch: BatchState; payment: PaymentState }> = new Map([
  ['RCVD', { batch: 'pending', payment: 'pending' }],
  ['PDNG', { batch: 'pending', payment: 'pending' }],
  ['PART', { batch: 'partly', payment: 'pending' }],
  ['ACTC', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACCP', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACFC', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACWC', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACWP', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACSP', { batch: 'acknowledged', payment: 'accepted' }],
  ['ACSC', { batch: 'acknowledged', payment: 'paid' }],
  ['ACCC', { batch: 'acknowledged', payment: 'paid' }],
  ['RJCT', { batch: 'rejected', payment: 'failed' }],
])

// Verification of payee: completed (RCVC, RVCM), no match (RVNM), close match (RVMC), not applicable (RVNA), not completed (RVNC).
const nameChecks: ReadonlySet<string> = new Set(['RCVC', 'RVCM', 'RVNM', 'RVMC', 'RVNA', 'RVNC'])

// Version 2 has other names.
const codeFields = ['StsRsnInf/Rsn/Cd', 'StsRsnInf/Rsn/Prtry', 'StsRsnInf/StsRsn/Cd', 'StsRsnInf/StsRsn/Prtry']
const textFields = ['StsRsnInf/AddtlInf', 'StsRsnInf/AddtlStsRsnInf']
const reasonFields = [...codeFields, ...textFields]

/** Reads pain.002 at all three levels: message, payment information and payment. */
export function readStatusReport(emit: Emit): MessageReader {
  let group: Unit | undefined
  // The bank does not name our message, so its status waits for the payment information, which carries the same id.
  let isUnnamed = false
  let isTold = false
  const reported = new WeakSet<Unit>()

  const readGroup = (unit: Unit) => {
    group = unit
    isUnnamed = unlessPlaceholder(unit.get('OrgnlMsgId')) === undefined
    if (!isUnnamed) readStatusOfGroup(unit)
  }
  const readStatusOfGroup = (about: Unit) => {
    if (group !== undefined)
      readBatch(group, { level: 'group', status: group.get('GrpSts'), messageId: messageIdOf(about) })
  }
  const readPaymentInformation = (unit: Unit) => {
    if (reported.has(unit)) return
    reported.add(unit)
    if (isUnnamed) readStatusOfGroup(unit)
    isTold = true
    const status = unit.get('PmtInfSts')
    if (status !== undefined) readBatch(unit, { level: 'payment-information', status, messageId: messageIdOf(unit) })
  }
  const readBatch = (
    unit: Unit,
    { level, status, messageId }: { level: BatchLevel; status: string | undefined; messageId: string },
  ) => {
    if (status === undefined) return
    if (nameChecks.has(status)) return nameCheck(unit, { messageId, reference: null, code: status })
    const state = states.get(status)?.batch ?? 'pending'
    emit({ type: 'batch', line: unit.line, messageId, level, state, ...reasonsOf(unit, status) })
    checkNamesInReasons(unit, { messageId, reference: null })
  }
  // Our payment information carries the id of the message.
  const messageIdOf = (unit: Unit) =>
    unlessPlaceholder(group?.get('OrgnlMsgId')) ??
    unlessPlaceholder(unit.get('OrgnlPmtInfId')) ??
    group?.get('OrgnlMsgId') ??
    required(unit, 'OrgnlPmtInfId')

  const readPayment = (unit: Unit, [information]: readonly Unit[]) => {
    if (information !== undefined) readPaymentInformation(information)
    const reference =
      unlessPlaceholder(unit.get('OrgnlEndToEndId')) ?? unit.get('OrgnlInstrId') ?? required(unit, 'OrgnlEndToEndId')
    const messageId = messageIdOf(information ?? unit)
    const status = unit.get('TxSts') ?? information?.get('PmtInfSts') ?? group?.get('GrpSts') ?? 'none'
    if (nameChecks.has(status)) return nameCheck(unit, { messageId, reference, code: status })
    const state = states.get(status)?.payment ?? 'pending'
    const amount = moneyOf(unit, 'OrgnlTxRef/Amt/InstdAmt') ?? null
    const entryReference = unit.get('StsId') ?? null
    emit({ type: 'payment', line: unit.line, reference, state, amount, entryReference, ...reasonsOf(unit, status) })
    checkNamesInReasons(unit, { messageId, reference })
  }

  const checkNamesInReasons = (unit: Unit, of: { messageId: string; reference: string | null }) => {
    for (const code of unit.all('StsRsnInf/Rsn/Cd')) if (nameChecks.has(code)) nameCheck(unit, { ...of, code })
  }
  const nameCheck = (unit: Unit, of: { messageId: string; reference: string | null; code: string }) =>
    emit({ type: 'name-check', line: unit.line, ...of })

  const payment = {
    fields: [
      ...['OrgnlPmtInfId', 'StsId', 'OrgnlInstrId', 'OrgnlEndToEndId', 'TxSts', 'OrgnlTxRef/Amt/InstdAmt'],
      ...reasonFields,
    ],
    read: readPayment,
  }
  return {
    units: {
      GrpHdr: {
        fields: headFields,
        read: unit => emit({ type: 'head', head: headOf(unit, { message: 'pain.002', account: null }) }),
      },
      OrgnlGrpInfAndSts: { fields: ['OrgnlMsgId', 'GrpSts', ...reasonFields], read: readGroup },
      OrgnlPmtInfAndSts: { fields: ['OrgnlPmtInfId', 'PmtInfSts', ...reasonFields], read: readPaymentInformation },
      'OrgnlPmtInfAndSts/TxInfAndSts': payment,
      // Version 2.
      TxInfAndSts: payment,
    },
    end() {
      if (isUnnamed && !isTold && group !== undefined) readStatusOfGroup(group)
    },
  }
}

// A status that is not in the table changes nothing: the payment is pending, and the code is shown.
function reasonsOf(unit: Unit, status: string): GivenReasons {
  const texts = [...(states.has(status) ? [] : [`Status ${status}`]), ...unit.all(...textFields)]
  return {
    reasonCodes: unit.all(...codeFields).filter(code => !nameChecks.has(code)),
    reasonText: texts.length === 0 ? null : texts.join(' '),
  }
}

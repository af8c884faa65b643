import { BankFileProblem, type ReadBankFile } from '../bank-files.ts'
import { type MessageReader, parseMessage } from './parse-xml.ts'
import { StatementReader } from './read-statement.ts'
import { readStatusReport } from './read-status-report.ts'
import type { Emit } from './values.ts'

/**
 * Reads a payment status report (pain.002), an interim report (camt.052), a statement (camt.053) or a notification of entries
 * (camt.054), of any version: the name of the message's element tells which.
 */
export const readBankFile: ReadBankFile = async function* (bytes, { bytesMax, recordsMax }) {
  let found: Parameters<Emit>[0][] = []
  let records = 0
  let hasHead = false
  const emit: Emit = part => {
    found.push(part)
    if (part.type === 'head') hasHead = true
    else if (!hasHead) throw new BankFileProblem('The head of the message is missing', { line: part.line })
    else if (++records > recordsMax)
      throw new BankFileProblem(`The file has more than ${recordsMax} records`, { line: part.line })
  }
  for await (const _ of parseMessage(bytes, { bytesMax, readerOf: element => readerOf(element, emit) })) {
    yield* found
    found = []
  }
  if (!hasHead) throw new BankFileProblem('The head of the message is missing')
}

// Version 2 of pain.002 is named after itself.
function readerOf(element: string, emit: Emit): MessageReader | undefined {
  if (element === 'CstmrPmtStsRpt' || element === 'pain.002.001.02') return readStatusReport(emit)
  if (element === 'BkToCstmrAcctRpt') return new StatementReader('camt.052', emit)
  if (element === 'BkToCstmrStmt') return new StatementReader('camt.053', emit)
  if (element === 'BkToCstmrDbtCdtNtfctn') return new StatementReader('camt.054', emit)
  return undefined
}

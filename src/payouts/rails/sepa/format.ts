import type { FileFormat } from '../file/format.ts'
import { readBankFile } from './read-bank-file.ts'
import { writeNotification, writeStatusReport } from './write-answers.ts'
import { type CreditTransferOptions, writeSepaCreditTransfer } from './write-credit-transfer.ts'

/** SEPA credit transfers: pain.001.001.09 to the bank; pain.002, camt.053 and camt.054 from it. */
export function sepaFormat(options: CreditTransferOptions = {}): FileFormat {
  return {
    name: 'pain.001.001.09',
    extension: 'xml',
    write: writeSepaCreditTransfer(options),
    read: readBankFile,
    answers: { 'pain.002': writeStatusReport, 'camt.054': writeNotification },
    refusal({ account, amount }) {
      if (!('iban' in account)) return 'A SEPA payment needs an IBAN'
      return amount > paymentMax ? 'A SEPA payment is at most 999,999,999.99' : undefined
    },
    // Some banks take fewer; none takes more without an agreement.
    paymentsMax: 100_000,
    // 18 digits in the schema; banks limit the sum to what their systems hold.
    totalMax: 99_999_999_999_999n,
  }
}

// EPC implementation guidelines, "Instructed Amount".
const paymentMax = 99_999_999_999n

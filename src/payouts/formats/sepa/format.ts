import type { BankAccount } from '../../../bank-accounts/rules.ts'
import type { FileFormat } from '../format.ts'
import { openingArchives } from '../open-bank-file.ts'
import { ukAccountRefusal, ukRefusal } from '../uk-payments.ts'
import { type CountryChanges, countriesPaid } from './countries.ts'
import { epcName } from './names.ts'
import { readBankFile } from './read-bank-file.ts'
import { writeNotification, writeStatusReport } from './write-answers.ts'
import {
  type CreditTransferOptions,
  sepaPaymentMax,
  writeSepaCreditTransfer,
  writeUkCreditTransfer,
} from './write-credit-transfer.ts'

/**
 * SEPA credit transfers: pain.001.001.09 to the bank; pain.002 and camt.052 to camt.054 from it.
 * @param countries changes to the list of countries that SEPA reaches
 */
export function sepaFormat({
  countries,
  ...options
}: CreditTransferOptions & { countries?: CountryChanges | undefined } = {}): FileFormat {
  const paid = countriesPaid(countries)
  // Many banks refuse a whole file for one such IBAN.
  const accountRefusal = (account: BankAccount) => {
    if (!('iban' in account)) return 'A SEPA payment needs an IBAN'
    const country = account.iban.slice(0, 2)
    return paid.has(country) ? undefined : `SEPA payments do not reach accounts in ${country}`
  }
  return {
    ...common,
    write: writeSepaCreditTransfer(options),
    accountRefusal,
    refusal: ({ account, amount }) =>
      accountRefusal(account) ?? (amount > sepaPaymentMax ? 'A SEPA payment is at most 999,999,999.99' : undefined),
  }
}

/** Payments in pounds, by Bacs or, if instant, by Faster Payments: the same messages as for SEPA. */
export function ukFormat(options: CreditTransferOptions = {}): FileFormat {
  return {
    ...common,
    write: writeUkCreditTransfer(options),
    accountRefusal: ukAccountRefusal,
    refusal: payment => ukRefusal(payment.isInstant ? 'faster-payments' : 'bacs')(payment),
  }
}

const common = {
  name: 'pain.001.001.09',
  extension: 'xml',
  read: openingArchives(readBankFile, { reads: 'pain.002, camt.052, camt.053 and camt.054', isCsvRead: false }),
  payeeName: epcName,
  readsStatements: true,
  readsReturns: true,
  answers: { 'pain.002': writeStatusReport, 'camt.054': writeNotification },
  // Some banks accept fewer; no bank accepts more without an agreement.
  paymentsMax: 100_000,
  // 18 digits in the schema; banks limit the sum to what their systems hold.
  totalMax: 99_999_999_999_999n,
}

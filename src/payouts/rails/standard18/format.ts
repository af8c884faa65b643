import { BankFileProblem, type ReadBankFile } from '../bank-files.ts'
import type { FileFormat } from '../file/format.ts'
import { ukPaymentMax } from '../uk-limits.ts'
import { type ArucsOptions, arucsReader } from './read-arucs.ts'
import { arucsCsvWriter } from './write-arucs.ts'
import { type Standard18Options, standard18Writer } from './write-standard18.ts'

// Of one file, in pence: £999,999,999.99, the largest contra.
const totalMax = 99_999_999_999n

/**
 * Bacs or Faster Payments: Standard 18 to the bank, returned credits from it.
 * @param arucs how the bank writes returned credits; null refuses every file
 */
export function standard18Format(options: Standard18Options, arucs: ArucsOptions | null): FileFormat {
  return {
    name: 'Standard 18',
    extension: 'txt',
    write: standard18Writer(options),
    read: arucs === null ? refuseAll : arucsReader(arucs),
    readsStatements: false,
    ...(arucs?.format === 'csv' ? { answers: { 'arucs-csv': arucsCsvWriter(arucs) } } : {}),
    refusal({ account, amount }) {
      if (!('sortCode' in account)) return 'This bank pays to a sort code and an account number only'
      return amount > ukPaymentMax[options.scheme] ? 'The amount is above the limit of the payment scheme' : undefined
    },
    paymentsMax: 100_000,
    totalMax,
  }
}

// biome-ignore lint/correctness/useYield: it refuses every file before the first record.
const refuseAll: ReadBankFile = async function* () {
  throw new BankFileProblem(
    'The rail has no "returns" in OPENWAGE_RAILS, which says how the bank writes returned payments',
  )
}

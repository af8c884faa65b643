import { BankFileProblem, type ReadBankFile } from '../bank-files.ts'
import type { FileFormat } from '../format.ts'
import { openingArchives } from '../open-bank-file.ts'
import { ukAccountRefusal, ukRefusal } from '../uk-payments.ts'
import { toBacsName } from './characters.ts'
import { type ArucsOptions, arucsReader } from './read-arucs.ts'
import { arucsCsvWriter } from './write-arucs.ts'
import { contraMax, type Standard18Options, standard18Writer } from './write-standard18.ts'

/**
 * Bacs or Faster Payments: Standard 18 to the bank, returned credits from it.
 * @param arucs how the bank writes returned credits; null refuses every file
 */
export function standard18Format(options: Standard18Options, arucs: ArucsOptions | null): FileFormat {
  return {
    name: 'Standard 18',
    extension: 'txt',
    write: standard18Writer(options),
    read: arucs === null ? refuseAll : openingArchives(arucsReader(arucs), arucsFiles(arucs)),
    readsStatements: false,
    readsReturns: arucs !== null,
    ...(arucs?.format === 'csv' ? { answers: { 'arucs-csv': arucsCsvWriter(arucs) } } : {}),
    payeeName: toBacsName,
    accountRefusal: ukAccountRefusal,
    refusal: ukRefusal(options.scheme),
    paymentsMax: 100_000,
    totalMax: contraMax,
  }
}

function arucsFiles({ format }: ArucsOptions): { reads: string; isCsvRead: boolean } {
  return { reads: `ARUCS as ${format === 'csv' ? 'CSV' : 'XML'}`, isCsvRead: format === 'csv' }
}

// biome-ignore lint/correctness/useYield: it refuses every file before the first record.
const refuseAll: ReadBankFile = async function* () {
  throw new BankFileProblem(
    'The rail has no "returns" in MIDMONTH_RAILS, which says how the bank writes returned payments',
  )
}

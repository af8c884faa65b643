import { countOf } from '../kernel/text.ts'

/** Describes the progress of an import of a bank file. */
export function progressInWords(file: { rail: string; name: string; records: number; applied: number }): string {
  const { rail, name, records, applied } = file
  return `${applied} of ${countOf(records, 'record')} of the bank file ${name} are imported on ${rail}`
}

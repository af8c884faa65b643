import { type ColumnKey, columnSpecs } from '../members/fields.ts'

type OwnKey = 'partnerId' | 'jobId' | 'row' | 'newMemberId' | 'faults'
export type CopiedRow = Record<OwnKey | ColumnKey, string | number | boolean | null>

/** The columns of a row of a file, in the order in which they are copied. */
export const copiedColumns: readonly { name: string; key: keyof CopiedRow }[] = [
  { name: 'partner_id', key: 'partnerId' },
  { name: 'job_id', key: 'jobId' },
  { name: 'row', key: 'row' },
  { name: 'new_member_id', key: 'newMemberId' },
  ...columnSpecs,
  { name: 'faults', key: 'faults' },
]

export const copyStatement = `copy member_job_rows (${copiedColumns.map(({ name }) => name).join(', ')}) from stdin`

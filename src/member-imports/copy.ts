import { type ColumnKey, columnSpecs } from '../members/fields.ts'

type OwnKey = 'partnerId' | 'jobId' | 'row' | 'newMemberId' | 'faults'
export type CopiedRow = Record<OwnKey | ColumnKey, string | number | boolean | null>

/** Columns of a file's row, in the order of the COPY statement. */
export const copiedColumns: readonly { name: string; key: keyof CopiedRow }[] = [
  { name: 'partner_id', key: 'partnerId' },
  { name: 'job_id', key: 'jobId' },
  { name: 'row', key: 'row' },
  { name: 'new_member_id', key: 'newMemberId' },
  ...columnSpecs,
  { name: 'faults', key: 'faults' },
]

export const copyStatement = `copy member_job_rows (${copiedColumns.map(({ name }) => name).join(', ')}) from stdin`

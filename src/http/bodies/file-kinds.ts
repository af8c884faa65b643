import path from 'node:path'
import { mediaTypes } from '../../contract/media-types.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import type { TableKind } from '../../tabular/tabular.ts'

/** `bytes` is any other file, whose format its reader detects. */
export type FileKind = TableKind | 'bytes'

/** The kind of a file in a form: by its media type, or else by the extension of its name. Undefined if it is not accepted. */
export function fileKindOf(mediaType: string, name: string): TableKind | undefined {
  const extension = path.extname(name).toLowerCase()
  if (extension === '.xlsm') return undefined
  if (mediaType === mediaTypes.csv) return 'csv'
  if (mediaType === mediaTypes.xlsx) return 'xlsx'
  if (mediaType === macroWorkbook) return undefined
  // Browsers on Windows send .csv files as application/vnd.ms-excel.
  if (extension === '.csv') return 'csv'
  return extension === '.xlsx' ? 'xlsx' : undefined
}

const macroWorkbook = 'application/vnd.ms-excel.sheet.macroenabled.12'
const unsupportedKinds: Record<string, string> = {
  [macroWorkbook]: 'Workbooks with macros are not accepted; save the file as .xlsx or "CSV UTF-8"',
  'application/vnd.ms-excel': 'Old Excel workbooks (.xls) are not accepted; save the file as .xlsx or "CSV UTF-8"',
}

/** Media types that are refused with advice on how to save the file instead. */
export const unsupportedMediaTypes = Object.keys(unsupportedKinds)

export function unsupportedKind(mediaType = '', name = ''): Problem {
  const advice = unsupportedKinds[/\.xlsm$/i.test(name) ? macroWorkbook : mediaType]
  return problem('UnsupportedMediaType', advice ?? 'The file must be CSV (.csv) or an Excel workbook (.xlsx)')
}

import { FileFault } from './fault.ts'
import { limits } from './limits.ts'
import { odd, Tags } from './xml.ts'

/** Texts such as '#N/A' of the cells whose formula failed, by row and then by column, both from 1. */
export type FailedCells = Map<number, Map<number, string>>

/**
 * Looks at what the library that reads the cells would not tell: how far the sheet reaches, before all of that is filled up
 * in memory, and the cells whose formula failed, which it takes for empty.
 * @throws FileFault when it reaches too far, or is written in a way that two readers could take differently
 */
export function lookAtSheet(xml: Buffer): FailedCells {
  const failed: FailedCells = new Map()
  let failedCount = 0
  let failing: Place | undefined
  let rowCount = 0
  let cellCount = 0
  let rowLast = 0
  let columnLast = 0
  const tags = new Tags(xml)
  while (tags.next()) {
    if (tags.isEnd) {
      if (failing !== undefined && tags.is('v')) {
        const inRow = failed.get(failing.row) ?? new Map<number, string>()
        failed.set(failing.row, inRow.set(failing.column, tags.textBefore))
      }
    } else if (tags.is('row')) {
      if (++rowCount > limits.sheetRowsMax) throw tooManyRows()
      requireRowWithinLimits(tags.text)
    } else if (tags.is('c')) {
      failing = undefined
      const cell = placeOf(tags.text, rowLast)
      if (++cellCount > limits.sheetCellsMax) throw tooLarge()
      if (tags.isWhole) continue
      requireWithinLimits(cell)
      rowLast = Math.max(rowLast, cell.row)
      columnLast = Math.max(columnLast, cell.column)
      if (!cell.isFailed) continue
      failing = cell
      if (++failedCount > limits.errorCellsMax) throw tooManyFailed(cell)
    }
  }
  if (rowLast * columnLast > limits.sheetCellsMax) throw tooLarge()
  return failed
}

type Place = { row: number; column: number }

// The library takes an attribute by its name without the prefix, and the last of several: there must be only one.
const cellTag =
  /^<(?:[\w.-]+:)?c((?:\s+(?!r=)[A-Za-z]\w*="[^"&:]*")*)\s+r="([A-Z]{1,3})([1-9][0-9]{0,6})"((?:\s+(?!r=)[A-Za-z]\w*="[^"&:]*")*)\s*\/?>$/

function placeOf(tag: string, rowLast: number): Place & { isFailed: boolean } {
  const [whole, before = '', letters = '', digits, behind = ''] = cellTag.exec(tag) ?? []
  if (whole === undefined) throw odd(rowLast + 1)
  let column = 0
  for (let index = 0; index < letters.length; index++) column = column * 26 + letters.charCodeAt(index) - 64
  return { row: Number(digits), column, isFailed: / t="e"/.test(before) || / t="e"/.test(behind) }
}

function requireWithinLimits({ row, column }: Place): void {
  if (row > limits.sheetRowsMax) throw tooManyRows()
  if (column > limits.columnsMax) {
    throw new FileFault(
      row,
      `The sheet has more than ${limits.columnsMax} columns; delete those that are not for members`,
    )
  }
}

// The library fills up with blank rows whatever is left out before a row.
function requireRowWithinLimits(tag: string): void {
  for (const [, number] of tag.matchAll(/[\s:]r\s*=\s*["']([^"']*)/g)) {
    if (!(Number(number) <= limits.sheetRowsMax)) throw tooManyRows()
  }
}

function tooManyRows(): FileFault {
  const message = `The sheet reaches beyond row ${limits.sheetRowsMax}; delete the blank rows below the list, or save it as "CSV UTF-8"`
  return new FileFault(limits.sheetRowsMax + 1, message)
}

function tooManyFailed({ row }: Place): FileFault {
  return new FileFault(row, `More than ${limits.errorCellsMax} cells hold an error, such as #N/A; mend their formula`)
}

export function tooLarge(): FileFault {
  return new FileFault(1, 'The workbook is too large to be read; save it as "CSV UTF-8", which has no such limit')
}

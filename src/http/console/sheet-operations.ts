import { Type } from 'typebox'
import { strictObject } from '../../kernel/schemas.ts'
import { readSheet } from '../../tabular/reading.ts'
import { type Cell, FileFault, type Row } from '../../tabular/tabular.ts'
import { payroll } from '../../users/roles.ts'
import { consoleOperation, named } from '../operation.ts'

const limits = {
  // A list of 100,000 members. The errors of larger files are shown without their rows.
  fileBytesMax: 32 * 1024 * 1024,
  // As many rows as a refusal names. Their numbers must fit into an address.
  rowsMax: 1_001,
  // More than a screen shows.
  columnsMax: 50,
  cellCharsMax: 100,
}

const RowNumbers = Type.String({ pattern: `^[1-9]\\d{0,6}(,[1-9]\\d{0,6}){0,${limits.rowsMax - 1}}$` })

/**
 * Reads some rows of a file, so that the console can show the errors of a list, pay run or settlement in the sheet itself, in any
 * format. The file is not kept.
 */
const readSheetRows = consoleOperation({
  route: 'POST /console/v1/sheet-rows',
  scope: 'any',
  roles: payroll,
  query: strictObject({ rows: RowNumbers }),
  fileBody: { name: 'Sheet', description: 'A table.', example: '' },
  fileBytesMax: limits.fileBytesMax,
  async read(_, { file, query, signal }) {
    const wanted = new Set(query.rows.split(',').map(Number))
    let header: string[] | undefined
    const found: { row: number; cells: string[] }[] = []
    const onBatch = (rows: Row[]) => {
      for (const { row, cells } of rows) {
        if (header === undefined) header = textsOf(cells)
        else if (wanted.has(row)) found.push({ row, cells: textsOf(cells) })
      }
    }
    await file.lend(async fd => {
      await readSheet({ fd, kind: file.tableKind }, { signal, onBatch }).catch(error => {
        // The rows before the fault are shown.
        if (!(error instanceof FileFault)) throw error
      })
    })
    return { body: { header: header ?? [], rows: found } }
  },
})

export const sheetOperations = named({ readSheetRows })

function textsOf(cells: Cell[]): string[] {
  return cells.slice(0, limits.columnsMax).map(cell => {
    const text = cell === null ? '' : typeof cell === 'object' ? cell.day : String(cell)
    return text.length > limits.cellCharsMax ? `${text.slice(0, limits.cellCharsMax - 1)}…` : text
  })
}

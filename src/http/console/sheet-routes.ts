import { Type } from 'typebox'
import { readSheet } from '../../tabular/reading.ts'
import { type Cell, FileFault, type Row } from '../../tabular/tabular.ts'
import { disconnectSignal } from '../bodies/body-timeouts.ts'
import { acceptUploads } from '../bodies/upload.ts'
import type { UploadedFile } from '../bodies/uploaded-file.ts'
import type { App } from '../server/server.ts'
import { hiddenOperation } from '../users/hidden-operation.ts'

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
export function sheetRoutes(app: App): void {
  // In its own scope, because only this operation accepts a file.
  app.register(async (scope: App) => {
    acceptUploads(scope, { kinds: ['csv', 'xlsx'], fileBytesMax: limits.fileBytesMax })
    scope.post(
      '/console/v1/sheet-rows',
      {
        config: { scope: 'any' },
        schema: hiddenOperation({
          id: 'readSheetRows',
          query: Type.Object({ rows: RowNumbers }, { additionalProperties: false }),
          takesFile: true,
        }),
      },
      async (request, reply) => {
        // The scope's content type parser always produces an UploadedFile.
        const uploaded = request.body as UploadedFile
        const wanted = new Set(request.query.rows.split(',').map(Number))
        let header: string[] | undefined
        const found: { row: number; cells: string[] }[] = []
        const onBatch = (rows: Row[]) => {
          for (const { row, cells } of rows) {
            if (header === undefined) header = textsOf(cells)
            else if (wanted.has(row)) found.push({ row, cells: textsOf(cells) })
          }
        }
        await uploaded.lend(async fd => {
          await readSheet({ fd, kind: uploaded.tableKind }, { signal: disconnectSignal(reply), onBatch }).catch(
            error => {
              // The rows before the fault are shown.
              if (!(error instanceof FileFault)) throw error
            },
          )
        })
        return { header: header ?? [], rows: found }
      },
    )
  })
}

function textsOf(cells: Cell[]): string[] {
  return cells.slice(0, limits.columnsMax).map(cell => {
    const text = cell === null ? '' : typeof cell === 'object' ? cell.day : String(cell)
    return text.length > limits.cellCharsMax ? `${text.slice(0, limits.cellCharsMax - 1)}…` : text
  })
}

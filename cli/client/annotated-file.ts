import { open, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parse } from 'csv-parse'
import {
  type Cell,
  csvLines,
  detectDelimiter,
  FileFault,
  plain,
  readRows,
  type TableKind,
  unescaped,
} from '../../src/tabular/tabular.ts'

/** The note on a row. Notes without a row come last: they are about members who are not in the file. */
export type Note = { row: number | null; action: string; outcome: string; memberId: string; message: string }

const added = ['row', 'action', 'outcome', 'member_id', 'message']
const addedNames = new Set(added.map(plain))

/**
 * Writes `NAME.result.csv` next to a file: its rows unchanged, each preceded by its note. If that file exists, the name is
 * `NAME.result-2.csv`, and so on. Memory use does not grow with the file.
 *
 * Importing a result file must not reinstate the members that were just offboarded: their rows are empty in the file's own
 * columns, so that an import rejects them.
 * @param notes in row order, at most one per row
 * @returns the path of the result file
 */
export async function annotate(source: { path: string; kind: TableKind }, notes: AsyncIterable<Note>) {
  const delimiter = source.kind === 'csv' ? detectDelimiter(await beginningOf(source.path)) : ','
  const { result, handle } = await newFileBeside(source.path)
  try {
    await pipeline(Readable.from(linesOf(source, { notes, delimiter })), handle.createWriteStream())
  } catch (error) {
    await rm(result, { force: true })
    throw error
  }
  return result
}

/** Parses the results of a job from CSV. */
export async function* notesOf(results: Readable): AsyncGenerator<Note> {
  const records = results.pipe(parse({ bom: true }))
  // A response that breaks off must not look complete.
  results.once('error', error => records.destroy(error))
  let names: string[] | undefined
  for await (const cells of records as AsyncIterable<string[]>) {
    if (names === undefined) {
      names = cells
      continue
    }
    const [row = '', action = '', outcome = '', memberId = '', message = ''] = cells.map(unescaped)
    const cell = (name: string) => unescaped(cells[names?.indexOf(name) ?? -1] ?? '')
    const who = `${cell('first_name')} ${cell('last_name')} (${cell('email')}) is not in the file`
    const isMissing = row === ''
    yield {
      row: isMissing ? null : Number(row),
      action,
      outcome,
      memberId,
      message: isMissing ? [who, message].filter(text => text !== '').join('; ') : message,
    }
  }
}

async function* linesOf(
  source: { path: string; kind: TableKind },
  { notes, delimiter }: { notes: AsyncIterable<Note>; delimiter: string },
): AsyncGenerator<string> {
  const queue = notes[Symbol.asyncIterator]()
  let next = await queue.next()
  // The byte order mark makes Excel read the file as UTF-8.
  yield '\ufeff'
  let kept: number[] | undefined
  let width = 0
  try {
    for await (const rows of readRows(source)) {
      const lines: string[][] = []
      for (const { row, cells } of rows) {
        const texts = cells.map(textOf)
        if (kept === undefined) {
          // Replaces the notes of an earlier result.
          width = texts.length
          kept = texts.flatMap((name, index) => (addedNames.has(plain(name)) ? [] : [index]))
          lines.push([...added, ...kept.map(index => texts[index] ?? '')])
          if (next.value?.row === row) next = await queue.next()
          continue
        }
        const isNoted = next.value?.row === row
        const { action, outcome, memberId, message } = (isNoted ? next.value : undefined) ?? nothing
        // A row that is wider than the header keeps its extra cells: they are the error.
        const cellsThere = [...kept.map(index => texts[index] ?? ''), ...texts.slice(width)]
        lines.push([String(row), action, outcome, memberId, message, ...cellsThere])
        if (isNoted) next = await queue.next()
      }
      yield csvLines(lines, { delimiter })
    }
  } catch (error) {
    // The service stopped reading at the same row and has reported why.
    if (!(error instanceof FileFault)) throw error
  }
  for (; !next.done; next = await queue.next()) {
    const { row, action, outcome, memberId, message } = next.value
    const blank = (kept ?? []).map(() => '')
    yield csvLines([[String(row ?? ''), action, outcome, memberId, message, ...blank]], { delimiter })
  }
}

const nothing = { action: '', outcome: '', memberId: '', message: '' }

function textOf(cell: Cell): string {
  if (cell === null) return ''
  return typeof cell === 'object' ? cell.day : String(cell)
}

async function newFileBeside(original: string) {
  const { dir, name } = path.parse(original)
  for (let number = 1; ; number++) {
    const result = path.join(dir, `${name}.result${number === 1 ? '' : `-${number}`}.csv`)
    try {
      // Readable only by its owner: like the original, it holds bank accounts.
      return { result, handle: await open(result, 'wx', 0o600) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

// 16 KiB is enough for a header.
async function beginningOf(file: string): Promise<string> {
  const handle = await open(file)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(16 * 1024), 0).finally(() => handle.close())
  return buffer.toString('latin1', 0, bytesRead)
}

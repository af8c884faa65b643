import { open, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parse } from 'csv-parse'
import { type Cell, csvLines, detectDelimiter, FileFault, plain, readRows, unescaped } from '../src/tabular/tabular.ts'

/** A note on a row. Notes without a row are about members missing from the file, and come last. */
export type Note = { row: number | null; action: string; outcome: string; memberId: string; message: string }

const added = ['row', 'action', 'outcome', 'member_id', 'message']
const addedNames = new Set(added.map(plain))

/**
 * Writes `NAME.result.csv` next to a file: its rows unchanged, with the notes in columns before them. If the name is taken, it
 * writes `NAME.result-2.csv`, and so on. Memory does not grow with the files.
 *
 * Importing the result by mistake must not reinstate the members that were offboarded: their rows are blank in the columns of the
 * file, so that an import refuses them.
 * @param notes in the order of the rows, at most one for each
 * @returns the path of the new file
 */
export async function annotate(source: { path: string; kind: 'csv' | 'xlsx' }, notes: AsyncIterable<Note>) {
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
    const who = `${cell('first_name')} ${cell('last_name')}, ${cell('email')}, is not in the file`
    const isMissing = row === ''
    yield {
      ...{ row: isMissing ? null : Number(row), action, outcome, memberId },
      message: isMissing ? [who, message].filter(text => text !== '').join('; ') : message,
    }
  }
}

async function* linesOf(
  source: { path: string; kind: 'csv' | 'xlsx' },
  { notes, delimiter }: { notes: AsyncIterable<Note>; delimiter: string },
): AsyncGenerator<string> {
  const queue = notes[Symbol.asyncIterator]()
  let next = await queue.next()
  // The byte order mark makes Excel open the file as UTF-8.
  yield '\ufeff'
  let kept: number[] | undefined
  let width = 0
  try {
    for await (const rows of readRows(source)) {
      const lines: string[][] = []
      for (const { row, cells } of rows) {
        const texts = cells.map(textOf)
        if (kept === undefined) {
          // Notes of an earlier run are replaced.
          width = texts.length
          kept = texts.flatMap((name, index) => (addedNames.has(plain(name)) ? [] : [index]))
          lines.push([...added, ...kept.map(index => texts[index] ?? '')])
          if (next.value?.row === row) next = await queue.next()
          continue
        }
        const isNoted = next.value?.row === row
        const { action, outcome, memberId, message } = (isNoted ? next.value : undefined) ?? nothing
        // A row wider than the header keeps its extra cells, since they are its fault.
        const cellsThere = [...kept.map(index => texts[index] ?? ''), ...texts.slice(width)]
        lines.push([String(row), action, outcome, memberId, message, ...cellsThere])
        if (isNoted) next = await queue.next()
      }
      yield csvLines(lines, { delimiter })
    }
  } catch (error) {
    // The service stopped at the same row, and has reported why.
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
      // Only the owner may read it: it contains bank accounts, like the original.
      return { result, handle: await open(result, 'wx', 0o600) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

// Enough for a header.
async function beginningOf(file: string): Promise<string> {
  const handle = await open(file)
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(16 * 1024), 0).finally(() => handle.close())
  return buffer.toString('latin1', 0, bytesRead)
}

import { open, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { parse } from 'csv-parse'
import { type Cell, csvLines, detectDelimiter, FileFault, plain, readRows, unescaped } from '../src/tabular/tabular.ts'

/** The note on a row. Notes without a row are about members who are not in the file, and come last. */
export type Note = { row: number | null; action: string; outcome: string; memberId: string; message: string }

const added = ['row', 'action', 'outcome', 'member_id', 'message']
const addedNames = new Set(added.map(plain))

/**
 * Writes `NAME.result.csv` beside a file: its rows and cells as they stand, and before them what is said of each row. Where
 * there is such a file already it is `NAME.result-2.csv`, and so on. Memory does not grow with the files.
 *
 * The result of an import must not bring back by mistake those whom it has offboarded: their rows have nothing in the
 * columns of the file, so that an import refuses them.
 * @param notes in the order of the rows, at most one for each
 * @returns where it is
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

/** Reads the results of a job, which come as CSV. */
export async function* notesOf(results: Readable): AsyncGenerator<Note> {
  const records = results.pipe(parse({ bom: true }))
  // An answer that breaks off must not look like one that has ended.
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
  // By this mark Excel opens the file as what it is, UTF-8.
  yield '\ufeff'
  let kept: number[] | undefined
  let width = 0
  try {
    for await (const rows of readRows(source)) {
      const lines: string[][] = []
      for (const { row, cells } of rows) {
        const texts = cells.map(textOf)
        if (kept === undefined) {
          // A file that has come back with its notes gets new ones.
          width = texts.length
          kept = texts.flatMap((name, index) => (addedNames.has(plain(name)) ? [] : [index]))
          lines.push([...added, ...kept.map(index => texts[index] ?? '')])
          if (next.value?.row === row) next = await queue.next()
          continue
        }
        const isNoted = next.value?.row === row
        const { action, outcome, memberId, message } = (isNoted ? next.value : undefined) ?? nothing
        // A row of another width than the header keeps all its cells, which is what is wrong with it.
        const cellsThere = [...kept.map(index => texts[index] ?? ''), ...texts.slice(width)]
        lines.push([String(row), action, outcome, memberId, message, ...cellsThere])
        if (isNoted) next = await queue.next()
      }
      yield csvLines(lines, { delimiter })
    }
  } catch (error) {
    // Where reading stopped, the service stopped as well, and has said why.
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
      // For its owner alone: it holds what the original holds, bank accounts among it.
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

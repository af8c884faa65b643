import { openAsBlob } from 'node:fs'
import { access, constants, open as openFile, rename, rm, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { terminal } from '../terminal.ts'
import { WrongUsage } from './failure.ts'
import { printStream } from './output.ts'

/** The streamed body of a response that is a file. */
export function bodyOf(answer: Response): Readable {
  return answer.body === null ? Readable.from([]) : Readable.fromWeb(answer.body)
}

/**
 * Writes a file of the service to standard output, or to a new file, which gets its name only once it is complete: half a list
 * must not pass for a whole one.
 * @param options.through transforms the content of the file
 * @throws Error if the file exists
 */
export async function saveAnswer(
  open: () => Promise<Response>,
  { file, through = [] }: { file: string | undefined; through?: NodeJS.ReadWriteStream[] },
): Promise<void> {
  if (file === undefined) return await printStream(bodyOf(await open()))
  if (await isThere(file)) throw new Error(`${file} already exists; remove it first or choose another name`)
  const answer = await open()
  const part = `${file}.${process.pid}.part`
  // A new file, readable only by its owner: it can hold bank accounts and names.
  const handle = await openFile(part, 'wx', 0o600)
  try {
    await pipeline([bodyOf(answer), ...through, handle.createWriteStream()])
    await rename(part, file)
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** A file to upload, read from disk while it is sent. @throws WrongUsage */
export async function fileToUpload(path: string): Promise<Blob> {
  try {
    // Says why it cannot be read, which openAsBlob does not.
    await access(path, constants.R_OK)
    // A pipe would be taken for an empty file.
    if (!(await stat(path)).isFile()) throw new Error('it is not a file; pipe it to standard input and use - instead')
    return await openAsBlob(path)
  } catch (error) {
    throw new WrongUsage(`Cannot read ${path}: ${error instanceof Error ? error.message : error}`)
  }
}

/** Standard input, read to its end. The service takes no more than a file that fits in memory. */
export async function readInput(): Promise<Blob> {
  return new Blob([await buffer(terminal().stdin)])
}

async function isThere(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  )
}

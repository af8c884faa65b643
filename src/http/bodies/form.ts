import { Transform, type TransformCallback } from 'node:stream'
import { type Problem, problem } from '../../kernel/errors.ts'

/** The bytes of a form besides its file: two boundaries and the headers of one part. */
export const formBytesMax = 16 * 1024

/** How a part of a form describes its file. */
export type FilePart = { mediaType: string; name: string }

/**
 * Extracts the file from a `multipart/form-data` body that consists of one file. Only searches for the boundary that ends the
 * file, and refuses a second part at its start, so that the cost is linear in the bytes of the body.
 * Source: RFC 7578; RFC 2046, section 5.1.1
 */
export class FormFile extends Transform {
  private readonly boundary: string
  private readonly onFile: (part: FilePart) => void
  private reading: 'headers' | 'file' | 'end' = 'headers'
  // Bytes that may be the beginning of a boundary or of the headers.
  private rest: Buffer = Buffer.alloc(0)

  /**
   * @param onFile receives the description of the file before its bytes; may throw a Problem
   * @throws Problem `BadRequest` if the content type has no boundary
   */
  constructor(contentType: string, onFile: (part: FilePart) => void) {
    super()
    const [, quoted, plain] = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ?? []
    const boundary = quoted ?? plain
    if (boundary === undefined) throw malformed()
    this.boundary = boundary
    this.onFile = onFile
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.rest = Buffer.concat([this.rest, chunk])
    try {
      if (this.reading === 'headers') this.readHeaders()
      if (this.reading === 'file') this.readFile()
      if (this.reading === 'end') this.readEnd()
      done()
    } catch (error) {
      done(error as Error)
    }
  }

  override _flush(done: TransformCallback): void {
    done(this.reading === 'end' && this.rest.toString('latin1').startsWith('--') ? null : malformed())
  }

  private readHeaders(): void {
    const end = this.rest.indexOf('\r\n\r\n')
    if (end > formBytesMax || (end === -1 && this.rest.length > formBytesMax)) throw malformed()
    const start = `--${this.boundary}`
    if (end === -1) {
      // A form without parts is only its closing boundary.
      if (this.rest.toString('latin1').startsWith(`${start}--`)) throw notOneFile()
      return
    }
    const [first, ...headers] = this.rest.toString('utf8', 0, end).split('\r\n')
    if (first !== start) throw malformed()
    const part = partOf(headers)
    if (part === undefined) throw notOneFile()
    this.onFile(part)
    this.rest = this.rest.subarray(end + 4)
    this.reading = 'file'
  }

  private readFile(): void {
    const delimiter = `\r\n--${this.boundary}`
    const end = this.rest.indexOf(delimiter, 0, 'latin1')
    const known = end === -1 ? Math.max(0, this.rest.length - delimiter.length + 1) : end
    if (known > 0) this.push(this.rest.subarray(0, known))
    this.rest = this.rest.subarray(end === -1 ? known : end + delimiter.length)
    if (end !== -1) this.reading = 'end'
  }

  private readEnd(): void {
    const text = this.rest.toString('latin1', 0, 8)
    if (text.startsWith('\r\n')) throw notOneFile()
    if (!('--\r\n'.startsWith(text) || text === '--\r\n')) throw malformed()
  }
}

/** @returns undefined if the part is not a file */
function partOf(headers: string[]): FilePart | undefined {
  const headerOf = (name: string) =>
    headers.find(line => line.slice(0, line.indexOf(':')).trim().toLowerCase() === name)?.slice(name.length + 1)
  const disposition = headerOf('content-disposition') ?? ''
  const type = headerOf('content-type')
  const [, quoted, plain] = /;\s*filename\*?=(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))/i.exec(disposition) ?? []
  const name = quoted ?? plain
  if (!/^\s*form-data\s*(;|$)/i.test(disposition)) throw malformed()
  if (name === undefined && type === undefined) return undefined
  return { mediaType: (type ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '', name: name ?? '' }
}

export function notOneFile(): Problem {
  return problem('BodyValidation', 'The form must contain one file and nothing else', { path: 'body' })
}

function malformed(): Problem {
  return problem('BadRequest', 'The body is not well-formed multipart/form-data')
}

import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Readable, Transform, type TransformCallback } from 'node:stream'
import { finished, pipeline } from 'node:stream/promises'
import { Busboy, type BusboyInstance } from '@fastify/busboy'
import type { FastifyRequest } from 'fastify'
import { type Problem, problem } from '../errors.ts'
import { requireUtf8 } from './csv.ts'
import type { App } from './server.ts'

/** A body that came as a file and lies on the disk until the request is answered. */
export class UploadedFile {
  /** Gone when the response is finished or the caller has hung up; who reads on by then reads from an open handle. */
  readonly path: string
  readonly kind: FileKind
  readonly bytes: number
  /** In hexadecimal digits. */
  readonly sha256: string

  constructor({ path, kind, bytes, sha256 }: { path: string; kind: FileKind; bytes: number; sha256: string }) {
    this.path = path
    this.kind = kind
    this.bytes = bytes
    this.sha256 = sha256
  }

  /** What makes two requests the same: the file, and not where it lies. */
  toJSON(): { kind: FileKind; sha256: string } {
    return { kind: this.kind, sha256: this.sha256 }
  }
}
type FileKind = 'csv' | 'xlsx'

export const mediaTypes = {
  csv: 'text/csv',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  form: 'multipart/form-data',
} as const

const limits = {
  /** A million members with an account each, and as much again. */
  fileBytesMax: 100 * 1024 * 1024,
  /** 100 MiB at a megabit and a half a second. */
  arrivalMsMax: 10 * 60_000,
  /** A million rows are read and compared within a minute; on a slow and busy machine within several. */
  answerMsMax: 10 * 60_000,
  /** Files that arrive at once, of all partners: each may fill its share of the disk. */
  arrivingMax: 64,
  /** Of one partner, whose jobs are done one after the other anyway. */
  arrivingOfOneMax: 3,
  /** A folder that is as old as this has been left behind by a process that was killed. */
  folderAgeMsMax: 60 * 60_000,
  /** For so long a refused body is read on to nothing: who is still sending does not read the answer. */
  lingerMsMax: 1_000,
}

/**
 * Lets the routes of this scope take a file as their body: CSV or XLSX as it is, or as the one part of a form. It goes to
 * the disk as it comes, never whole into memory, and `request.body` is an `UploadedFile`.
 *
 * Answers 413 beyond 100 MiB, 415 to another kind of file, and 400 to an empty one and to a form that is not one file.
 */
export function acceptUploads(scope: App): void {
  scope.addHook('onRoute', route => {
    route.config = { arrivalMsMax: limits.arrivalMsMax, answerMsMax: limits.answerMsMax, ...route.config }
  })
  scope.addHook('preParsing', async (request, reply) => {
    reply.raw.once('close', () => void discard(folders.get(request)))
  })
  scope.addHook('preHandler', async request => {
    // Nothing passes over the connection while a large file is dealt with; otherwise it would be taken for an idle one.
    const { socket } = request.raw
    if (request.body instanceof UploadedFile && socket instanceof Socket) socket.setTimeout(limits.answerMsMax)
  })
  for (const kind of ['csv', 'xlsx'] as const) {
    scope.addContentTypeParser(mediaTypes[kind], async (request: FastifyRequest, payload: Readable) => {
      requireUtf8(request)
      return await receive(request, payload, incoming => {
        incoming.kind = kind
        payload.pipe(incoming)
      })
    })
  }
  scope.addContentTypeParser(mediaTypes.form, async (request: FastifyRequest, payload: Readable) => {
    return await receive(request, payload, incoming => openForm(request, payload, incoming))
  })
  scope.addContentTypeParser(Object.keys(otherKinds), async (request: FastifyRequest) => {
    throw kindRefused(request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase())
  })
}

// The folder of each request that brought a file.
const folders = new WeakMap<FastifyRequest, string>()

async function receive(
  request: FastifyRequest,
  payload: Readable,
  open: (incoming: IncomingFile) => void,
): Promise<UploadedFile> {
  const incoming = new IncomingFile()
  // Hung up, or too slow: nothing more is worth reading.
  let isBrokenOff = false
  const giveUp = (error: Error) => {
    isBrokenOff = true
    incoming.destroy(error)
  }
  payload.on('error', giveUp)
  let folder: string | undefined
  const partnerId = request.partner.id
  arriving.push(partnerId)
  try {
    const mine = arriving.filter(each => each === partnerId)
    if (arriving.length > limits.arrivingMax || mine.length > limits.arrivingOfOneMax) throw busy()
    if (payload.destroyed) throw problem('BadRequest', 'The body ended early')
    if (Number(request.headers['content-length']) > limits.fileBytesMax + formBytesMax) throw tooLarge()
    folder = await mkdtemp(path.join(tmpdir(), folderPrefix))
    folders.set(request, folder)
    // The caller may have hung up meanwhile; a file that is opened now could come to lie in a folder just being removed.
    if (incoming.errored) throw incoming.errored
    const file = path.join(folder, 'body')
    open(incoming)
    await pipeline(incoming, createWriteStream(file, { flags: 'wx', mode: 0o600 }))
    return incoming.uploaded(file)
  } catch (error) {
    const refusal = incoming.errored ?? error
    await discard(folder)
    payload.unpipe()
    if (!isBrokenOff) await readToNothing(payload)
    throw refusal
  } finally {
    arriving.splice(arriving.indexOf(partnerId), 1)
    payload.off('error', giveUp)
  }
}

// The partner of each file that is arriving.
const arriving: string[] = []

function busy(): Problem {
  return problem(
    'ServiceUnavailable',
    'Too many files are arriving already; try again in a moment',
    {},
    { 'retry-after': '5' },
  )
}

/** Removes the files of a process that was killed: they hold bank details, and nobody else will ever remove them. */
export async function removeLeftBehind(now: Date): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(folderPrefix)) continue
    const folder = path.join(tmpdir(), name)
    // Another process may be removing its own at this moment.
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: now.getTime() }))
    if (now.getTime() - mtimeMs > limits.folderAgeMsMax) await rm(folder, { recursive: true, force: true })
  }
}

const folderPrefix = 'openwage-upload-'

/** A file on its way to the disk: counted, hashed, and refused when it is too large. */
class IncomingFile extends Transform {
  kind: FileKind | undefined
  private bytes = 0
  private readonly hash = createHash('sha256')

  constructor() {
    super()
    // Told by the pipeline; before there is one, an error that nobody listens to would end the process.
    this.on('error', () => {})
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.bytes += chunk.length
    this.hash.update(chunk)
    if (this.bytes > limits.fileBytesMax) done(tooLarge())
    else done(null, chunk)
  }

  /** @throws Problem when nothing came */
  uploaded(path: string): UploadedFile {
    const { kind, bytes } = this
    if (kind === undefined) throw notOneFile()
    if (bytes === 0) throw problem('BodyValidation', 'The file is empty', { path: 'body' })
    return new UploadedFile({ path, kind, bytes, sha256: this.hash.digest('hex') })
  }
}

// Of a form beside its file: two boundaries and the headers of one part.
const formBytesMax = 16 * 1024

function openForm(request: FastifyRequest, payload: Readable, incoming: IncomingFile): void {
  const giveUp = (error: Problem) => incoming.destroy(error)
  const form = formOf(request)
  form.on('file', (_field, file, name, _encoding, mediaType) => {
    file.on('error', () => giveUp(malformedForm()))
    incoming.kind = kindOf(mediaType, name)
    if (incoming.kind === undefined) giveUp(kindRefused(mediaType, name))
    // The form ends it: something wrong may still come behind the file.
    file.pipe(incoming, { end: false })
  })
  form.on('field', () => giveUp(notOneFile()))
  form.on('partsLimit', () => giveUp(notOneFile()))
  form.on('error', () => giveUp(malformedForm()))
  form.on('finish', () => incoming.end())
  payload.pipe(form)
}

function formOf({ headers }: FastifyRequest): BusboyInstance {
  try {
    const limits = { parts: 1, fieldSize: 1, headerPairs: 20, headerSize: formBytesMax / 2 }
    return new Busboy({ headers: { ...headers, 'content-type': headers['content-type'] ?? '' }, limits })
  } catch {
    throw malformedForm()
  }
}

/** What a part of a form is, by its media type, or else by the ending of its name. */
function kindOf(mediaType: string, name: string | undefined): FileKind | undefined {
  const ending = path.extname(name ?? '').toLowerCase()
  if (ending === '.xlsm') return undefined
  if (mediaType === mediaTypes.csv) return 'csv'
  if (mediaType === mediaTypes.xlsx) return 'xlsx'
  if (mediaType === macroWorkbook) return undefined
  // Browsers on Windows name a .csv file application/vnd.ms-excel.
  if (ending === '.csv') return 'csv'
  return ending === '.xlsx' ? 'xlsx' : undefined
}

const macroWorkbook = 'application/vnd.ms-excel.sheet.macroenabled.12'
const otherKinds: Record<string, string> = {
  [macroWorkbook]: 'A workbook with macros is not taken; save it as .xlsx or "CSV UTF-8"',
  'application/vnd.ms-excel': 'An old Excel workbook (.xls) is not taken; save it as .xlsx or "CSV UTF-8"',
}

function kindRefused(mediaType = '', name = ''): Problem {
  const known = otherKinds[/\.xlsm$/i.test(name) ? macroWorkbook : mediaType]
  return problem('UnsupportedMediaType', known ?? 'The file must be CSV (.csv) or an Excel workbook (.xlsx)')
}

function notOneFile(): Problem {
  return problem('BodyValidation', 'The form must hold one file and nothing else', { path: 'body' })
}

function malformedForm(): Problem {
  return problem('BadRequest', 'The body is not well-formed multipart/form-data')
}

function tooLarge(): Problem {
  return problem('PayloadTooLarge', `The file must not exceed ${limits.fileBytesMax} bytes`)
}

async function readToNothing(payload: Readable): Promise<void> {
  if (payload.readableEnded || payload.destroyed) return
  payload.resume()
  // Whether it ends, breaks off or goes on too long does not matter any more.
  await finished(payload, { signal: AbortSignal.timeout(limits.lingerMsMax), cleanup: true }).catch(() => {})
}

async function discard(folder: string | undefined): Promise<void> {
  // The file may just be opening.
  if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

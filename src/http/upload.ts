import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, open, readdir, rm, unlink } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { type Problem, problem } from '../errors.ts'
import { drain } from './bodies.ts'
import { requireUtf8 } from './csv.ts'
import { FormFile, formBytesMax, notOneFile } from './form.ts'
import type { App } from './server.ts'

/** A body that came as a file, and lies on the disk, without a name, until the request is answered. */
export class UploadedFile {
  readonly kind: FileKind
  readonly bytes: number
  /** In hexadecimal digits. */
  readonly sha256: string
  private readonly handle: FileHandle
  private borrowers = 0
  private isAnswered = false

  constructor(handle: FileHandle, { kind, bytes, sha256 }: { kind: FileKind; bytes: number; sha256: string }) {
    this.handle = handle
    this.kind = kind
    this.bytes = bytes
    this.sha256 = sha256
  }

  /**
   * Lends the descriptor of the open file. It stays open until `work` has ended, also when the caller hangs up before: the
   * next file that is opened may get its number.
   */
  async lend<T>(work: (fd: number) => Promise<T>): Promise<T> {
    if (this.isAnswered) throw problem('BadRequest', 'The caller has hung up')
    this.borrowers += 1
    try {
      return await work(this.handle.fd)
    } finally {
      this.borrowers -= 1
      await this.closeUnused()
    }
  }

  /** The request is answered, or its caller has hung up. */
  async answered(): Promise<void> {
    this.isAnswered = true
    await this.closeUnused()
  }

  /** What makes two requests the same: the file, and not where it lies. */
  toJSON(): { kind: FileKind; sha256: string } {
    return { kind: this.kind, sha256: this.sha256 }
  }

  private async closeUnused(): Promise<void> {
    // Closing it again does nothing.
    if (this.isAnswered && this.borrowers === 0) await this.handle.close()
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
}

type Accepted = { kinds: readonly FileKind[]; fileBytesMax: number }
const anyFile: Accepted = { kinds: ['csv', 'xlsx'], fileBytesMax: limits.fileBytesMax }

/**
 * Lets the routes of this scope take a file as their body: CSV or XLSX as it is, or as the one part of a form. It goes to
 * the disk as it comes, never whole into memory, and `request.body` is an `UploadedFile`.
 *
 * @param kinds those that are taken; with both of them, a form too
 * Answers 413 beyond `fileBytesMax`, 415 to another kind of file, and 400 to an empty one and to a form that is not one file.
 */
export function acceptUploads(scope: App, { kinds, fileBytesMax }: Accepted = anyFile): void {
  scope.addHook('onRoute', route => {
    route.config = { arrivalMsMax: limits.arrivalMsMax, answerMsMax: limits.answerMsMax, ...route.config }
  })
  scope.addHook('preParsing', async (request, reply) => {
    const upload: Upload = { isAnswered: false, file: undefined }
    uploads.set(request, upload)
    reply.raw.once('close', () => {
      upload.isAnswered = true
      void upload.file?.answered()
    })
  })
  scope.addHook('preHandler', async request => {
    // Nothing passes over the connection while a large file is dealt with; otherwise it would be taken for an idle one.
    const { socket } = request.raw
    if (request.body instanceof UploadedFile && socket instanceof Socket) socket.setTimeout(limits.answerMsMax)
  })
  for (const kind of kinds) {
    scope.addContentTypeParser(mediaTypes[kind], async (request: FastifyRequest, payload: Readable) => {
      requireUtf8(request)
      return await receive(request, payload, fileBytesMax, incoming => {
        incoming.kind = kind
        payload.pipe(incoming)
      })
    })
  }
  if (kinds.length === 1) return
  scope.addContentTypeParser(mediaTypes.form, async (request: FastifyRequest, payload: Readable) => {
    return await receive(request, payload, fileBytesMax, incoming => openForm(request, payload, incoming))
  })
  scope.addContentTypeParser(Object.keys(otherKinds), async (request: FastifyRequest) => {
    throw kindRefused(request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase())
  })
}

type Upload = { isAnswered: boolean; file: UploadedFile | undefined }
const uploads = new WeakMap<FastifyRequest, Upload>()

async function receive(
  request: FastifyRequest,
  payload: Readable,
  fileBytesMax: number,
  begin: (incoming: IncomingFile) => void,
): Promise<UploadedFile> {
  const incoming = new IncomingFile(fileBytesMax)
  // Hung up, or too slow: nothing more is worth reading.
  let isBrokenOff = false
  const giveUp = (error: Error) => {
    isBrokenOff = true
    incoming.destroy(error)
  }
  payload.on('error', giveUp)
  let handle: FileHandle | undefined
  const partnerId = request.partner.id
  arriving.push(partnerId)
  try {
    const mine = arriving.filter(each => each === partnerId)
    if (arriving.length > limits.arrivingMax || mine.length > limits.arrivingOfOneMax) throw busy()
    if (payload.destroyed) throw problem('BadRequest', 'The body ended early')
    if (Number(request.headers['content-length']) > fileBytesMax + formBytesMax) throw tooLarge(fileBytesMax)
    handle = await openNameless()
    // The caller may have hung up meanwhile.
    if (incoming.errored) throw incoming.errored
    begin(incoming)
    await handle.writeFile(incoming)
    const file = incoming.uploaded(handle)
    const upload = uploads.get(request)
    if (upload !== undefined) upload.file = file
    if (upload?.isAnswered) await file.answered()
    return file
  } catch (error) {
    const refusal = incoming.errored ?? error
    await handle?.close()
    payload.unpipe()
    if (!isBrokenOff) await drain(payload)
    throw isFull(refusal) ? noRoom() : refusal
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

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE'].includes((error as { code?: string }).code ?? '')
}

function noRoom(): Problem {
  const message = 'The service has no room for the file at the moment; try again in a minute'
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '60' })
}

/**
 * Opens a file that has no name any more. It holds bank details, and whatever ends this process, a SIGKILL too, the
 * operating system frees it.
 */
async function openNameless(): Promise<FileHandle> {
  const file = path.join(tmpdir(), `${filePrefix}${randomUUID()}`)
  const handle = await open(file, 'wx+', 0o600)
  try {
    await unlink(file)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Removes what earlier processes have left in the temporary folder, whatever its age. A live neighbour loses nothing: it
 * has opened its files, and never looks for them by name.
 */
export async function removeLeftBehind(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    // Best effort: one may be another user's, or just being removed.
    if (name.startsWith(filePrefix)) await rm(path.join(tmpdir(), name), { recursive: true }).catch(() => undefined)
  }
}

const filePrefix = 'openwage-upload-'

/** A file on its way to the disk: counted, hashed, and refused when it is too large. */
class IncomingFile extends Transform {
  kind: FileKind | undefined
  private bytes = 0
  private readonly hash = createHash('sha256')
  private readonly bytesMax: number

  constructor(bytesMax: number) {
    super()
    this.bytesMax = bytesMax
    // Told by what writes it; before it is written, an error that nobody listens to would end the process.
    this.on('error', () => {})
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.bytes += chunk.length
    this.hash.update(chunk)
    if (this.bytes > this.bytesMax) done(tooLarge(this.bytesMax))
    else done(null, chunk)
  }

  /** @throws Problem when nothing came */
  uploaded(handle: FileHandle): UploadedFile {
    const { kind, bytes } = this
    if (kind === undefined) throw notOneFile()
    if (bytes === 0) throw problem('BodyValidation', 'The file is empty', { path: 'body' })
    return new UploadedFile(handle, { kind, bytes, sha256: this.hash.digest('hex') })
  }
}

function openForm(request: FastifyRequest, payload: Readable, incoming: IncomingFile): void {
  const form = new FormFile(request.headers['content-type'] ?? '', ({ mediaType, name }) => {
    incoming.kind = kindOf(mediaType, name)
    if (incoming.kind === undefined) throw kindRefused(mediaType, name)
  })
  form.on('error', error => incoming.destroy(error))
  payload.pipe(form).pipe(incoming)
}

/** What a part of a form is, by its media type, or else by the ending of its name. */
function kindOf(mediaType: string, name: string): FileKind | undefined {
  const ending = path.extname(name).toLowerCase()
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

function tooLarge(bytesMax: number): Problem {
  return problem('PayloadTooLarge', `The file must not exceed ${bytesMax} bytes`)
}

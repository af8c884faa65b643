import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { type Readable, Transform, type TransformCallback } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { mediaTypes } from '../../contract/media-types.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import { keepOpenFor } from '../server/connections.ts'
import type { App } from '../server/server.ts'
import { drain } from './bodies.ts'
import { requireUtf8 } from './csv.ts'
import { type FileKind, fileKindOf, unsupportedKind, unsupportedMediaTypes } from './file-kinds.ts'
import { FormFile, formBytesMax, notOneFile } from './form.ts'
import { openNameless, UploadedFile } from './uploaded-file.ts'

const limits = {
  /** Twice the size of a million members with a bank account each. */
  fileBytesMax: 100 * 1024 * 1024,
  /** 100 MiB at 1.5 Mbit/s. */
  arrivalMsMax: 10 * 60_000,
  /** A million rows are read and compared within a minute, or within several on a slow and busy machine. */
  answerMsMax: 10 * 60_000,
  /** Files arriving concurrently, of all partners: each may fill its share of the disk. */
  arrivingMax: 64,
  /** Files arriving concurrently, of one partner, whose jobs run one after the other anyway. */
  arrivingOfOneMax: 3,
}

type Accepted = { kinds: readonly FileKind[]; fileBytesMax: number }
export const anyFile: Accepted = { kinds: ['csv', 'xlsx'], fileBytesMax: limits.fileBytesMax }

/**
 * Lets the routes of this scope take a file as their body: CSV or XLSX on its own, or as the only part of a form. The file is
 * streamed to disk, never held whole in memory, and `request.body` is an `UploadedFile`.
 *
 * `bytes` is any file, without a form.
 *
 * Responds with 413 beyond `fileBytesMax`, 415 to another kind of file, and 400 to an empty file or a form that is not one file.
 * @param kinds the accepted kinds; if both CSV and XLSX are accepted, so is a form
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
    if (request.body instanceof UploadedFile) keepOpenFor(request, limits.answerMsMax)
  })
  for (const kind of kinds) {
    scope.addContentTypeParser(mediaTypes[kind], async (request: FastifyRequest, payload: Readable) => {
      if (kind !== 'bytes') requireUtf8(request)
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
  scope.addContentTypeParser(unsupportedMediaTypes, async (request: FastifyRequest) => {
    throw unsupportedKind(request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase())
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
  // The caller has disconnected or is too slow: there is nothing left to drain.
  let isAborted = false
  const abort = (error: Error) => {
    isAborted = true
    incoming.destroy(error)
  }
  payload.on('error', abort)
  let handle: FileHandle | undefined
  const partnerId = request.operator?.id ?? request.partner.id
  arriving.push(partnerId)
  try {
    const ofPartner = arriving.filter(each => each === partnerId)
    if (arriving.length > limits.arrivingMax || ofPartner.length > limits.arrivingOfOneMax) throw tooMany()
    if (payload.destroyed) throw problem('BadRequest', 'The body ended early')
    if (Number(request.headers['content-length']) > fileBytesMax + formBytesMax) throw tooLarge(fileBytesMax)
    handle = await openNameless()
    // The caller may have disconnected in the meantime.
    if (incoming.errored) throw incoming.errored
    begin(incoming)
    await handle.writeFile(incoming)
    const file = incoming.uploaded(handle)
    const upload = uploads.get(request)
    if (upload !== undefined) upload.file = file
    if (upload?.isAnswered) await file.answered()
    return file
  } catch (error) {
    await handle?.close()
    payload.unpipe()
    if (!isAborted) await drain(payload)
    // Not the error of `incoming`: a failed write also ends `incoming`, with an error that hides the reason.
    throw error
  } finally {
    arriving.splice(arriving.indexOf(partnerId), 1)
    payload.off('error', abort)
  }
}

// The partner, or the operator, of each file that is arriving.
const arriving: string[] = []

function openForm(request: FastifyRequest, payload: Readable, incoming: IncomingFile): void {
  const form = new FormFile(request.headers['content-type'] ?? '', ({ mediaType, name }) => {
    incoming.kind = fileKindOf(mediaType, name)
    if (incoming.kind === undefined) throw unsupportedKind(mediaType, name)
  })
  form.on('error', error => incoming.destroy(error))
  payload.pipe(form).pipe(incoming)
}

/** Counts and hashes a file on its way to disk, and refuses one that is too large. */
class IncomingFile extends Transform {
  kind: FileKind | undefined
  private bytes = 0
  private readonly hash = createHash('sha256')
  private readonly bytesMax: number

  constructor(bytesMax: number) {
    super()
    this.bytesMax = bytesMax
    // `writeFile` throws the error. Until it listens, an error without a listener would end the process.
    this.on('error', () => {})
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    this.bytes += chunk.length
    this.hash.update(chunk)
    if (this.bytes > this.bytesMax) done(tooLarge(this.bytesMax))
    else done(null, chunk)
  }

  /** @throws Problem `BodyValidation` if the file is empty or missing */
  uploaded(handle: FileHandle): UploadedFile {
    const { kind, bytes } = this
    if (kind === undefined) throw notOneFile()
    if (bytes === 0) throw problem('BodyValidation', 'The file is empty', { path: 'body' })
    return new UploadedFile(handle, { kind, bytes, sha256: this.hash.digest('hex') })
  }
}

function tooMany(): Problem {
  const message = 'Too many files are being uploaded, so nothing was done; try again in a moment'
  return problem('ServiceUnavailable', message, {}, { 'retry-after': '5' })
}

function tooLarge(bytesMax: number): Problem {
  return problem('PayloadTooLarge', `The file must not exceed ${bytesMax} bytes`)
}

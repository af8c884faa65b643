import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'

const brotli = promisify(zlib.brotliCompress)
const gzip = promisify(zlib.gzip)

const encodings = ['br', 'gzip', 'identity'] as const
type Encoding = (typeof encodings)[number]

/** A file in memory, in every encoding in which it is served. All readers share these buffers. */
export type StaticFile = { type: string; hash: string; bytes: Record<Encoding, Buffer> }

/** Compresses a file once, off the main thread. */
export async function staticFile(type: string, content: string | Buffer): Promise<StaticFile> {
  const identity = Buffer.from(content)
  // 9 of 11: the last two levels take ten times as long and save a few per cent.
  const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 9 }
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 16)
  return { type, hash, bytes: { br: await brotli(identity, { params }), gzip: await gzip(identity), identity } }
}

/** The address contains a hash of the content, so the content never changes. */
export const immutable = 'public, max-age=31536000, immutable'
/** Revalidated after a minute, with 304 if unchanged. */
export const briefly = 'public, max-age=60'
/** Revalidated on every request, with 304 if unchanged. */
export const revalidated = 'no-cache'

export function sendStaticFile(
  request: FastifyRequest,
  reply: FastifyReply,
  { file, cacheControl }: { file: StaticFile; cacheControl: string },
): FastifyReply {
  const etag = `W/"${file.hash}"`
  reply.headers({ etag, 'cache-control': cacheControl, vary: 'accept-encoding' })
  if (request.headers['if-none-match']?.includes(etag)) return reply.code(304).send()
  const encoding = acceptedEncoding(request.headers['accept-encoding'])
  if (encoding !== 'identity') reply.header('content-encoding', encoding)
  return reply.type(file.type).send(file.bytes[encoding])
}

/** The smallest encoding that the client accepts. Weights are not compared, but `q=0` refuses an encoding. */
export function acceptedEncoding(header: unknown): Encoding {
  if (typeof header !== 'string') return 'identity'
  const accepted = header
    .toLowerCase()
    .split(',')
    .map(each => each.trim().split(/\s*;\s*/))
    .filter(([, weight]) => weight === undefined || !/^q=0(\.0*)?$/.test(weight))
    .map(([name]) => name)
  return encodings.find(name => accepted.includes(name)) ?? 'identity'
}

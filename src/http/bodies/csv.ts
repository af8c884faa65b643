import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { mediaTypes } from '../../contract/media-types.ts'
import { Deadline } from '../../kernel/deadline.ts'
import { problem } from '../../kernel/errors.ts'
import type { Download } from '../operation.ts'

/** @throws Problem `UnsupportedMediaType` if the `content-type` names another character set */
export function requireUtf8(request: FastifyRequest): void {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw problem('UnsupportedMediaType', `The body must be UTF-8, not ${charset.slice(0, 40)}`)
  }
}

/** Whether an `accept` header prefers a media type to JSON. Wildcards mean JSON. */
export function prefers(mediaType: 'text/csv' | 'text/html', accept: string | undefined): boolean {
  const weights = new Map(
    (accept ?? '').split(',').map(range => {
      const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
      const weight = parameters.find(parameter => parameter.startsWith('q='))?.slice(2)
      return [type, weight === undefined ? 1 : Number(weight)] as const
    }),
  )
  const weight = weights.get(mediaType) ?? 0
  return weight > 0 && weight >= (weights.get('application/json') ?? 0)
}

/**
 * Streams a file. The response is not stored for its idempotency key: it may be a hundred megabytes, and reading again does no
 * harm. An error during the stream is logged, because the status has already been sent.
 */
export function sendParts(request: FastifyRequest, reply: FastifyReply, { headers, parts }: Download): FastifyReply {
  const file = Readable.from(inTime(parts))
  file.on('error', error => request.log.error({ err: error, requestId: request.id }, 'a file download was aborted'))
  return reply.headers(headers).send(file)
}

// The caller's reading speed decides how long the whole file takes, so each part has its own deadline.
async function* inTime(parts: AsyncIterable<string>): AsyncGenerator<string> {
  const iterator = parts[Symbol.asyncIterator]()
  try {
    for (;;) {
      const { value, done } = await new Deadline({ ms: partMsMax, isSheddable: false }).run(() => iterator.next())
      if (done) return
      yield value
    }
  } finally {
    await iterator.return?.()
  }
}

// The same as the limit of a statement.
const partMsMax = 10_000

/** Headers of a CSV download. `name` may contain only letters, digits, `-` and `.`. */
export function csvHeaders(name: string): Record<string, string> {
  return fileHeaders(name, 'text/csv')
}

/** Headers of a download. `name` as in `csvHeaders`. */
export function fileHeaders(
  name: string,
  mediaType: 'text/csv' | 'text/xml' | typeof mediaTypes.bytes,
): Record<string, string> {
  const type = mediaType === mediaTypes.bytes ? mediaType : `${mediaType}; charset=utf-8`
  return { 'content-type': type, 'content-disposition': `attachment; filename="${name}"` }
}

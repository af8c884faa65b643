import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Deadline } from '../deadline.ts'
import { problem } from '../errors.ts'

/** @throws Problem `UnsupportedMediaType` when the `content-type` names another character set */
export function requireUtf8(request: FastifyRequest): void {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw problem('UnsupportedMediaType', `The body must be UTF-8, not ${charset.slice(0, 40)}`)
  }
}

/** Whether an `accept` header wants CSV rather than JSON. Without a word of CSV the answer is JSON. */
export function prefersCsv(accept: string | undefined): boolean {
  const weights = new Map(
    (accept ?? '').split(',').map(range => {
      const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
      const weight = parameters.find(parameter => parameter.startsWith('q='))?.slice(2)
      return [type, weight === undefined ? 1 : Number(weight)] as const
    }),
  )
  const csv = weights.get('text/csv') ?? 0
  return csv > 0 && csv >= (weights.get('application/json') ?? 0)
}

/**
 * Answers with a CSV file, as it is made. It is not kept for a repetition: it may be a hundred megabytes, and to read it again
 * does no harm. What breaks it off is in the log, since the answer cannot say so any more.
 * @param name as in `csvHeaders`
 */
export function sendCsv(
  request: FastifyRequest,
  reply: FastifyReply,
  { name, parts }: { name: string; parts: AsyncIterable<string> },
): FastifyReply {
  const file = Readable.from(inTime(parts))
  file.on('error', error => request.log.error({ err: error, requestId: request.id }, 'a file broke off in the middle'))
  return reply.headers(csvHeaders(name)).send(file)
}

// The whole takes as long as the caller reads, so that each part has a deadline of its own.
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

// As long as a statement may take.
const partMsMax = 10_000

/** Headers of an answer that is a CSV file to keep. `name` holds nothing but letters, digits, `-` and `.`. */
export function csvHeaders(name: string): Record<string, string> {
  return { 'content-type': 'text/csv; charset=utf-8', 'content-disposition': `attachment; filename="${name}"` }
}

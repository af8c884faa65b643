import type { FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../../http/server/server.ts'
import { sendStaticFile } from '../../http/server/static-file.ts'
import { problem } from '../../kernel/errors.ts'
import type { Mode } from '../../partners/partners.ts'
import { type Docs, openDocs } from './site.ts'

type DocsOptions = { mode: Mode; openapi: () => object; operators: () => object; publicUrl?: string | undefined }

/**
 * The documentation at /docs: the reference of all operations, rendered from the OpenAPI document, and the guides of docs/.
 * A page is rendered and compressed when it is first read, and then kept. All readers share its bytes.
 */
export function docsRoutes(app: App, { mode, openapi, operators, publicUrl }: DocsOptions): void {
  let opening: Promise<Docs> | undefined
  const headers = headersOf(mode)

  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept')
    if (request.headers.accept?.includes('text/html')) return reply.redirect('/docs')
    throw problem('UnknownPath', '/ does not exist; see /docs for the documentation')
  })

  app.get('/docs/', (_, reply) => reply.redirect('/docs'))

  const urls = ['/docs', '/docs/*', '/llms.txt', '/llms-full.txt']
  for (const url of urls) app.get(url, answer)

  // Building the document blocks the main thread for 0.2 s, so it is done before the first request.
  app.addHook('onListen', async () => {
    setImmediate(() => void find('/docs').catch(error => app.log.warn({ err: error }, 'documentation not ready')))
  })

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const found = await find(request.url.split('?', 1)[0] ?? '')
    if (found === undefined) throw problem('UnknownPath', 'The documentation has no such page; start at /docs')
    return sendStaticFile(request, reply.headers(headers), found)
  }

  async function find(address: string): ReturnType<Docs['find']> {
    opening ??= openDocs({ mode, document: openapi(), operators: operators(), publicUrl }).catch(error => {
      opening = undefined
      throw error
    })
    return await (await opening).find(address)
  }
}

function headersOf(mode: Mode): Record<string, string> {
  // In live mode the script must not send any request.
  const connect = mode === 'sandbox' ? "'self'" : "'none'"
  return {
    'content-security-policy': `default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src ${connect}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
  }
}

import { readFile } from 'node:fs/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../../errors.ts'
import type { Mode } from '../../partners/partners.ts'
import type { App } from '../server.ts'
import { withPartsInPlace } from '../shared-parts.ts'
import { findGuides, readGuide } from './guides.ts'
import type { Html } from './html.ts'
import { renderPage, type Site } from './layout.ts'
import { guideAddress } from './markdown.ts'
import { type Document, operationsOf } from './openapi.ts'
import { renderOverview } from './overview.ts'
import { deliveriesAddress, operationAddress, renderDeliveries, renderOperation } from './reference.ts'
import { briefly, immutable, type StaticFile, sendStaticFile, staticFile } from './static-file.ts'

type Page = { title: string; content: () => Html | Promise<Html> }
type Pages = { site: Site; pages: Map<string, Page>; assets: Map<string, StaticFile> }

/**
 * The documentation at /docs: the reference of all operations, rendered from the OpenAPI document, and the guides of docs/.
 * A page is rendered and compressed when it is first read, and kept; all readers share its bytes.
 */
export function docsRoutes(app: App, { mode, openapi }: { mode: Mode; openapi: () => object }): void {
  let opening: Promise<Pages> | undefined
  const files = new Map<string, Promise<StaticFile>>()
  const headers = headersOf(mode)

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    reply.header('vary', 'accept')
    if (request.headers.accept?.includes('text/html')) return reply.redirect('/docs')
    throw problem('UnknownPath', '/ does not exist; see /docs for the documentation')
  })

  for (const url of ['/docs', '/docs/*']) app.get(url, { schema: { hide: true } }, answer)

  // Building the document blocks the main thread for 0.2 s, so it is done before the first request.
  app.addHook('onListen', async () => {
    setImmediate(() => void findFile('/docs').catch(error => app.log.warn({ err: error }, 'documentation not ready')))
  })

  async function answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const found = await findFile(request.url.split('?', 1)[0] ?? '')
    if (found === undefined) throw problem('UnknownPath', 'The documentation has no such page; start at /docs')
    return sendStaticFile(request, reply.headers(headers), found)
  }

  async function findFile(address: string): Promise<{ file: StaticFile; cacheControl: string } | undefined> {
    opening ??= open({ mode, openapi: withPartsInPlace(openapi() as Document) }).catch(error => {
      opening = undefined
      throw error
    })
    const { site, pages, assets } = await opening
    const asset = assets.get(address)
    if (asset !== undefined) return { file: asset, cacheControl: immutable }
    const page = pages.get(address)
    if (page === undefined) return undefined
    const file = await once(address, async () => {
      const { text } = renderPage(site, { title: page.title, address, content: await page.content() })
      return await staticFile('text/html; charset=utf-8', text)
    })
    return { file, cacheControl: briefly }
  }

  // Concurrent first readers share one rendering; a failed one is tried again.
  async function once(address: string, make: () => Promise<StaticFile>): Promise<StaticFile> {
    const known = files.get(address)
    if (known !== undefined) return await known
    const file = make()
    files.set(address, file)
    file.catch(() => files.delete(address))
    return await file
  }
}

async function open({ mode, openapi }: { mode: Mode; openapi: Document }): Promise<Pages> {
  const [style, script] = await Promise.all([
    readAsset('page.css', 'text/css; charset=utf-8'),
    readAsset('page.js', 'text/javascript; charset=utf-8'),
  ])
  const guides = findGuides()
  const operations = operationsOf(openapi)
  const canSend = mode === 'sandbox'
  const site = {
    document: openapi,
    operations,
    guides,
    assets: { style: style.address, script: script.address },
    canSend,
  }
  const pages = new Map<string, Page>([
    ['/docs', { title: 'API', content: () => renderOverview(site) }],
    ...guides.map((guide): [string, Page] => [
      guideAddress(guide.file),
      { title: guide.title, content: () => readGuide(guide, guides) },
    ]),
    [deliveriesAddress, { title: 'Webhook deliveries', content: () => renderDeliveries(openapi) }],
    ...operations.map((operation): [string, Page] => [
      operationAddress(operation),
      { title: operation.summary, content: () => renderOperation(operation, openapi, { canSend }) },
    ]),
  ])
  return { site, pages, assets: new Map([style, script].map(({ address, file }) => [address, file])) }
}

async function readAsset(name: string, type: string): Promise<{ address: string; file: StaticFile }> {
  const file = await staticFile(type, await readFile(new URL(name, import.meta.url)))
  const [stem, extension] = name.split('.')
  return { address: `/docs/assets/${stem}-${file.hash}.${extension}`, file }
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

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { withPartsInPlace } from '../../contract/shared-parts.ts'
import { briefly, immutable, type StaticFile, staticFile } from '../../http/server/static-file.ts'
import type { Mode } from '../../partners/partners.ts'
import { findGuides, readGuide } from './guides.ts'
import type { Html } from './html.ts'
import { operatorsAddress, renderPage, type Site } from './layout.ts'
import { llmsFull, llmsIndex } from './llms.ts'
import { guideAddress } from './markdown.ts'
import { type Document, operationsOf } from './openapi.ts'
import { renderOverview } from './overview.ts'
import { deliveriesAddress, operationAddress, renderDeliveries, renderOperation } from './reference.ts'
import { searchEntries } from './search.ts'

type Found = { file: StaticFile; cacheControl: string }

/** All files of the documentation, by address. Each file is rendered when it is first read, and then kept. */
export type Docs = { addresses: string[]; find: (address: string) => Promise<Found | undefined> }

const html = 'text/html; charset=utf-8'
const javascript = 'text/javascript; charset=utf-8'
const text = 'text/plain; charset=utf-8'
const entriesAddress = '/docs/search.js'

type DocsOptions = { mode: Mode; document: object; operators: object; publicUrl?: string | undefined }

/**
 * @param options.operators the OpenAPI document of the operators' API; `document` is the partners' one
 * @param options.publicUrl the address at which readers reach this service, from the setting
 */
export async function openDocs({ mode, document, operators, publicUrl }: DocsOptions): Promise<Docs> {
  const [style, script, engine] = await Promise.all([
    readAsset(new URL('page.css', import.meta.url), 'page.css', 'text/css; charset=utf-8'),
    readAsset(new URL('page.js', import.meta.url), 'page.js', javascript),
    readAsset(new URL(import.meta.resolve('minisearch')), 'minisearch.js', javascript),
  ])
  const openapi = withPartsInPlace(document as Document)
  const guides = findGuides(publicUrl)
  const operations = operationsOf(openapi)
  const canSend = mode === 'sandbox'
  const site: Site = {
    document: openapi,
    documentAddress: '/openapi.json',
    operations,
    guides,
    assets: { style: style.address, script: script.address, engine: engine.address, entries: entriesAddress },
    canSend,
  }
  const operatorDocument = withPartsInPlace(operators as Document)
  const operatorSite: Site = {
    ...site,
    document: operatorDocument,
    documentAddress: '/operator/openapi.json',
    operations: operationsOf(operatorDocument),
  }
  const pageOf =
    (of: Site) =>
    (address: string, title: string, content: () => Html | Promise<Html>): [string, Make] => [
      address,
      async () => await staticFile(html, renderPage(of, { title, address, content: await content() }).text),
    ]
  const page = pageOf(site)
  const operatorPage = pageOf(operatorSite)
  const files = new Map<string, Make>([
    page('/docs', 'API', () => renderOverview(site)),
    ...guides.map(guide => page(guideAddress(guide.file), guide.title, () => readGuide(guide, guides))),
    page(deliveriesAddress, 'Webhook deliveries', () => renderDeliveries(openapi)),
    ...operations.map(operation =>
      page(operationAddress(operation), operation.summary, () => renderOperation(operation, openapi, { canSend })),
    ),
    operatorPage(operatorsAddress, 'For operators', () => renderOverview(operatorSite)),
    // Pages have no operator key, so they send no requests.
    ...operatorSite.operations.map(operation =>
      operatorPage(operationAddress(operation), operation.summary, () =>
        renderOperation(operation, operatorDocument, { canSend: false }),
      ),
    ),
    [entriesAddress, async () => await staticFile(javascript, await searchEntries(site))],
    ['/llms.txt', async () => await staticFile(text, await llmsIndex(site))],
    ['/llms-full.txt', async () => await staticFile(text, await llmsFull(site))],
  ])
  const assets = new Map([style, script, engine].map(({ address, file }) => [address, file]))
  const made = new Map<string, Promise<StaticFile>>()

  return {
    addresses: [...files.keys(), ...assets.keys()],
    find: async address => {
      const asset = assets.get(address)
      if (asset !== undefined) return { file: asset, cacheControl: immutable }
      const make = files.get(address)
      return make === undefined ? undefined : { file: await once(address, make), cacheControl: briefly }
    },
  }

  // Concurrent first readers share one rendering; a failed rendering is retried.
  async function once(address: string, make: Make): Promise<StaticFile> {
    const known = made.get(address)
    if (known !== undefined) return await known
    const file = make()
    made.set(address, file)
    file.catch(() => made.delete(address))
    return await file
  }
}

type Make = () => Promise<StaticFile>

async function readAsset(url: URL, name: string, type: string): Promise<{ address: string; file: StaticFile }> {
  // The source map of a library is not served.
  const content = (await readFile(fileURLToPath(url), 'utf8')).replace(/^\/\/# sourceMappingURL=.*$/m, '')
  const file = await staticFile(type, content)
  const [stem, extension] = name.split('.')
  return { address: `/docs/assets/${stem}-${file.hash}.${extension}`, file }
}

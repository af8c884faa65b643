import type { Described } from '../../contract/description.ts'
import { documentText } from '../../contract/document-text.ts'
import {
  type DocumentHead,
  operatorDocument,
  partnerDocument,
  representationDocument,
} from '../../contract/documents.ts'
import { openApiDocument } from '../../contract/openapi.ts'
import type { App } from './server.ts'
import { revalidated, type StaticFile, sendStaticFile, staticFile } from './static-file.ts'

/**
 * Serves the OpenAPI documents of the operations that are registered after this.
 * @param options.webhooks the requests that the service sends, by type of event
 * @returns the documents; not before the app is ready
 */
export function serveDocuments(app: App, { webhooks }: { webhooks: Record<string, object> }): App['documents'] {
  const described: Described[] = []
  app.addHook('onRoute', ({ method, url, schema }) => {
    const { operationId, hide } = (schema ?? {}) as { operationId?: string; hide?: boolean }
    if (operationId !== undefined && !hide)
      described.push({ ...(schema as unknown as Described), method: String(method), path: url })
  })
  const documentOf = (head: DocumentHead, options = {}) => {
    let document: object | undefined
    return () => (document ??= openApiDocument(head, described, options))
  }
  const documents = {
    partners: documentOf(partnerDocument, { webhooks }),
    representation: documentOf(representationDocument, { webhooks }),
    operators: documentOf(operatorDocument),
  }
  app.decorate('documents', documents)
  serveDocument(app, '/openapi.json', { plain: documents.partners, representation: documents.representation })
  serveDocument(app, '/operator/openapi.json', { plain: documents.operators })
  return documents
}

/** Serves a document at an address, and another one to those who prefer fuller responses. */
function serveDocument(
  app: App,
  address: string,
  { plain, representation }: { plain: () => object; representation?: () => object },
): void {
  const files = new Map<() => object, Promise<StaticFile>>()
  app.get(address, async (request, reply) => {
    const { prefer } = request.query as { prefer?: string }
    const document = prefer === 'representation' && representation !== undefined ? representation : plain
    const file = files.get(document) ?? staticFile('application/json; charset=utf-8', documentText(document()))
    files.set(document, file)
    return sendStaticFile(request, reply, { file: await file, cacheControl: revalidated })
  })
}

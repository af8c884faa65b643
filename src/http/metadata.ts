import type { FastifyContextConfig } from 'fastify'
import { type Static, type TObject, Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import type { ProblemName } from '../kernel/errors.ts'
import * as metadata from '../metadata/metadata.ts'
import { Metadata } from '../metadata/schema.ts'
import { operation } from './described-route.ts'
import type { ApiContext, App } from './server/server.ts'
import { read, withIdempotency } from './with-idempotency.ts'

const ObjectMetadata = Type.Object({ metadata: Metadata }, { title: 'ObjectMetadata', additionalProperties: false })

type Scope = NonNullable<FastifyContextConfig['scope']>

/** An object that has metadata, and how its operations are named. */
type Described<P extends TObject> = {
  kind: metadata.Kind
  /** Ends the ids of the operations, and is in their summaries. */
  names: { id: string; summary: string }
  tag: string
  path: string
  params: P
  scopes: { read: Scope; write: Scope }
  problem: ProblemName
  idOf: (params: Static<P>) => string
  /** @throws Problem if there is no such object of the partner */
  requireKnown: (db: Reader, asked: { partnerId: string; params: Static<P> }) => Promise<unknown>
}

/** The operations that read and replace the metadata of one kind of object. */
export function metadataRoutes<P extends TObject>(
  app: App,
  { db }: ApiContext,
  { kind, names, tag, path, params, scopes, problem, idOf, requireKnown }: Described<P>,
): void {
  app.get(
    `${path}/metadata`,
    {
      config: { scope: scopes.read },
      schema: operation({
        id: `get${names.id}Metadata`,
        tag,
        summary: `Get the metadata of ${names.summary}`,
        params: params as TObject,
        success: { status: 200, description: 'The metadata.', schema: ObjectMetadata },
        problems: [problem],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        const given = request.params as Static<P>
        await requireKnown(reader, { partnerId, params: given })
        const found = await metadata.find(reader, { partnerId, resourceId: idOf(given) })
        return { status: 200, body: { metadata: found } }
      }),
  )

  app.put(
    `${path}/metadata`,
    {
      config: { scope: scopes.write },
      schema: operation({
        id: `set${names.id}Metadata`,
        tag,
        summary: `Set the metadata of ${names.summary}`,
        description: 'Replaces it as a whole: a key that is left out is removed. Idempotent.',
        params: params as TObject,
        body: ObjectMetadata,
        success: { status: 200, description: 'The metadata.', schema: ObjectMetadata },
        problems: [problem],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const partnerId = request.partner.id
        const given = request.params as Static<P>
        await requireKnown(tx, { partnerId, params: given })
        const resourceId = idOf(given)
        const { metadata: after } = request.body
        const before = await metadata.replace(tx, { partnerId, kind, resourceId, metadata: after })
        const audit =
          JSON.stringify(before) === JSON.stringify(after)
            ? undefined
            : // Without the values: the audit log is kept forever.
              ({ action: 'metadata.set', details: { before: Object.keys(before), after: Object.keys(after) } } as const)
        return { status: 200, body: { metadata: after }, resourceId, audit }
      }),
  )
}

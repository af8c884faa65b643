import assert from 'node:assert/strict'
import type { Reader, Tx } from '../database/database.ts'
import { namedObject } from '../kernel/schemas.ts'
import * as metadata from '../metadata/metadata.ts'
import { Metadata } from '../metadata/schema.ts'
import type { Scope } from '../partners/api-keys.ts'
import type { Role } from '../users/roles.ts'
import { named, type Operation, operation } from './operation.ts'
import type { ApiContext } from './server/server.ts'

const ObjectMetadata = namedObject('ObjectMetadata', { metadata: Metadata })

/** An object that has metadata, and how its operations are named. */
type Described = {
  kind: metadata.Kind
  /** Ends the ids of the operations, is in their summaries, and in their names in the SDK: `<resource>.get<of>Metadata`. */
  names: { id: string; summary: string; sdk: { resource: string; of: string } }
  tag: string
  /** It ends with the id of the object. */
  path: `/${string}`
  scopes: { read: Scope; write: Scope }
  roles: { read: readonly Role[]; write: readonly Role[] }
  /** @throws Problem if there is no such object of the partner */
  requireKnown: (db: Reader, asked: { partnerId: string; resourceId: string; context: ApiContext }) => Promise<unknown>
  /** Excludes an erasure of the member whom the object is about. @throws Problem if the member is erased */
  lock?: (tx: Tx, asked: { partnerId: string; resourceId: string }) => Promise<void>
}

/** The operations that read and replace the metadata of one kind of object. */
export function metadataOperations(object: Described): Operation[] {
  const { kind, names, tag, path, scopes, roles, requireKnown, lock } = object
  const { id, summary, sdk } = names
  return named({
    [`get${id}Metadata`]: operation({
      route: `GET ${path}/metadata`,
      scope: scopes.read,
      roles: roles.read,
      sdk: `${sdk.resource}.get${sdk.of}Metadata`,
      tag,
      summary: `Get the metadata of ${summary}`,
      success: { description: 'The metadata.', schema: ObjectMetadata },
      async read(reader, call) {
        const partnerId = call.partner.id
        const resourceId = idOf(call.params)
        await requireKnown(reader, { partnerId, resourceId, context: call.context })
        return { body: { metadata: await metadata.find(reader, { partnerId, resourceId }) } }
      },
    }),
    [`set${id}Metadata`]: operation({
      route: `PUT ${path}/metadata`,
      scope: scopes.write,
      roles: roles.write,
      sdk: `${sdk.resource}.set${sdk.of}Metadata`,
      tag,
      summary: `Set the metadata of ${summary}`,
      description: 'Replaces it as a whole: a key that is left out is removed. Idempotent.',
      body: ObjectMetadata,
      success: { description: 'The metadata.', schema: ObjectMetadata },
      async write(tx, call) {
        const partnerId = call.partner.id
        const resourceId = idOf(call.params)
        await requireKnown(tx, { partnerId, resourceId, context: call.context })
        await lock?.(tx, { partnerId, resourceId })
        const { metadata: after } = call.body
        const before = await metadata.replace(tx, { partnerId, kind, resourceId, metadata: after })
        const audit =
          JSON.stringify(before) === JSON.stringify(after)
            ? undefined
            : // Without the values: the audit log is kept forever.
              ({ action: 'metadata.set', details: { before: Object.keys(before), after: Object.keys(after) } } as const)
        return { body: { metadata: after }, resourceId, audit }
      },
    }),
  })
}

/** The only parameter of the path. */
function idOf(params: unknown): string {
  const [id] = Object.values(params as Record<string, string>)
  assert(id !== undefined)
  return id
}

import type { Static, TObject } from 'typebox'
import type { Reader, Tx } from '../database/database.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { namedObject } from '../kernel/schemas.ts'
import * as metadata from '../metadata/metadata.ts'
import { Metadata } from '../metadata/schema.ts'
import type { Scope } from '../partners/api-keys.ts'
import type { Role } from '../users/roles.ts'
import { named, type Operation, operation } from './operation.ts'
import type { ApiContext } from './server/server.ts'

const ObjectMetadata = namedObject('ObjectMetadata', { metadata: Metadata })

/** An object that has metadata, and how its operations are named. */
type Described<P extends TObject> = {
  kind: metadata.Kind
  /** Ends the ids of the operations, is in their summaries, and in their names in the SDK: `<resource>.get<of>Metadata`. */
  names: { id: string; summary: string; sdk: { resource: string; of: string } }
  tag: string
  path: `/${string}`
  params: P
  scopes: { read: Scope; write: Scope }
  roles: { read: readonly Role[]; write: readonly Role[] }
  problem: ProblemName
  idOf: (params: Static<P>) => string
  /** @throws Problem if there is no such object of the partner */
  requireKnown: (db: Reader, asked: { partnerId: string; params: Static<P>; context: ApiContext }) => Promise<unknown>
  /** Excludes an erasure of the member whom the object is about. @throws Problem if the member is erased */
  lock?: (tx: Tx, asked: { partnerId: string; params: Static<P> }) => Promise<void>
}

/** The operations that read and replace the metadata of one kind of object. */
export function metadataOperations<P extends TObject>({
  kind,
  names,
  tag,
  path,
  params,
  scopes,
  roles,
  problem,
  idOf,
  requireKnown,
  lock,
}: Described<P>): Operation[] {
  const { id, summary, sdk } = names
  return named({
    [`get${id}Metadata`]: operation({
      route: `GET ${path}/metadata`,
      scope: scopes.read,
      roles: roles.read,
      sdk: `${sdk.resource}.get${sdk.of}Metadata`,
      tag,
      summary: `Get the metadata of ${summary}`,
      params: params as TObject,
      success: { description: 'The metadata.', schema: ObjectMetadata },
      problems: [problem],
      async read(reader, call) {
        const partnerId = call.partner.id
        const given = call.params as Static<P>
        await requireKnown(reader, { partnerId, params: given, context: call.context })
        return { body: { metadata: await metadata.find(reader, { partnerId, resourceId: idOf(given) }) } }
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
      params: params as TObject,
      body: ObjectMetadata,
      success: { description: 'The metadata.', schema: ObjectMetadata },
      problems: [problem],
      async write(tx, call) {
        const partnerId = call.partner.id
        const given = call.params as Static<P>
        await requireKnown(tx, { partnerId, params: given, context: call.context })
        await lock?.(tx, { partnerId, params: given })
        const resourceId = idOf(given)
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

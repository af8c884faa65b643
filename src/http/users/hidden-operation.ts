import type { FastifyRequest } from 'fastify'
import { type TSchema, Type } from 'typebox'
import type { SignedIn } from '../../users/sessions.ts'
import { operation } from '../described-route.ts'

const tag = 'Console'

type Given<K extends string, S> = S extends TSchema ? { [key in K]: S } : unknown

/** Declares an operation of the console: validated like any other, but not in the OpenAPI document of the partner API. */
export function hiddenOperation<
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
>({ id, params, query, body }: { id: string; params?: P; query?: Q; body?: B }) {
  const declared = operation({
    id,
    tag,
    summary: id,
    public: true,
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
    success: { status: 200, description: 'Done.', schema: Type.Unknown() },
  })
  return { ...declared, hide: true } as { hide: true } & Given<'params', P> & Given<'querystring', Q> & Given<'body', B>
}

/** The user of a route that requires one. */
export function userOf({ user }: FastifyRequest): SignedIn {
  if (user === undefined) throw new Error('The route does not require a user')
  return user
}

import type { FastifySchema } from 'fastify'
import type { TSchema } from 'typebox'
import { type Declaration, describe } from '../contract/description.ts'

type Given<K extends string, S> = S extends TSchema ? { [key in K]: S } : unknown

type Declared<P, Q, B> = Omit<Declaration, 'params' | 'query' | 'body'> & {
  params?: P
  query?: Q
  body?: B
  public?: boolean
  session?: true
  deprecated?: true
}

/** The schema of a route that is not declared as an operation yet. */
export function operation<
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
>({ public: isPublic, session, deprecated, ...declared }: Declared<P, Q, B>) {
  const credential = isPublic ? 'none' : session ? 'session' : 'key'
  return describe(declared as Declaration, {
    credential,
    isDeprecated: deprecated === true,
  }) as unknown as FastifySchema & Given<'params', P> & Given<'querystring', Q> & Given<'body', B>
}

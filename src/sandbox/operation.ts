import type { TSchema } from 'typebox'
import { operation } from '../http/described-route.ts'
import type { ApiContext } from '../http/server/server.ts'
import type { ProblemName } from '../kernel/errors.ts'
import type { Tasks } from '../worker/task.ts'

/** The dependencies of the sandbox's routes, with the worker's tasks, which some of them run immediately. */
export type SandboxContext = ApiContext & { tasks: Partial<Tasks> }

// The move of a clock or the tasks that run immediately, the wait for caches of keys, and the response.
export const answerMsMax = 30_000

type Declared<P extends TSchema | undefined, Q extends TSchema | undefined, B extends TSchema | undefined> = Omit<
  Parameters<typeof operation<P, Q, B>>[0],
  'tag'
>

/** Declares an operation of the sandbox, which a live installation answers like any unknown path. */
export function sandboxOperation<
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
>({ problems = [], ...declared }: Declared<P, Q, B>) {
  const all: ProblemName[] = ['UnknownPath', ...problems]
  return operation<P, Q, B>({ ...declared, tag: 'Sandbox', problems: all } as Parameters<typeof operation<P, Q, B>>[0])
}

import type { TSchema } from 'typebox'
import { type Declared, declaredAs, type Route } from '../http/operation.ts'
import type { ProblemName } from '../kernel/errors.ts'
import { building } from '../users/roles.ts'
import type { SandboxContext } from './operation-context.ts'

// The move of a clock or the tasks that run immediately, the wait for caches of keys, and the response.
export const answerMsMax = 30_000

/**
 * Declares an operation of the sandbox, which a live installation answers like any unknown path. Unless it says otherwise, it is for the
 * users who build on the API.
 */
export function sandboxOperation<
  R extends Route,
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
  Result = unknown,
>(declared: Declared<'tag', R, P, Q, B, SandboxContext, Result>) {
  const problems: ProblemName[] = ['UnknownPath', ...(declared.problems ?? [])]
  return declaredAs<SandboxContext>({ roles: building, ...declared, tag: 'Sandbox', problems })
}

import { type Problem, problem } from '../../kernel/errors.ts'

/** The methods that each path supports, so that a wrong method gets 405 instead of 404. */
export class MethodTable {
  readonly #routes: { method: string; pattern: RegExp }[] = []

  /** @param url the route's pattern: `/v1/members/:memberId` */
  add({ url, method }: { url: string; method: string | string[] }): void {
    const pattern = new RegExp(`^${url.replace(/:[A-Za-z]+/g, '[^/]+').replace('*', '.*')}$`)
    for (const each of [method].flat()) this.#routes.push({ method: each, pattern })
  }

  /** The refusal of a request that matched no route: 405 if the path supports other methods, else 404. */
  refusalOf({ method, url }: { method: string; url: string }): Problem {
    const path = url.split('?', 1)[0] ?? ''
    const allowed = this.#routes.filter(route => route.pattern.test(path)).map(route => route.method)
    if (allowed.length === 0) {
      return problem('UnknownPath', `${path.slice(0, 200)} does not exist; see /openapi.json for the paths`)
    }
    const allow = [...new Set(allowed)].sort().join(', ')
    return problem('MethodNotAllowed', `${method} is not allowed here; use ${allow}`, {}, { allow })
  }
}

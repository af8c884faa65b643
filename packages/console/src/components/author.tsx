import { send } from '../api.ts'
import { useLoaded } from '../query.ts'

type Author = { kind: string; name: string | null }

const nameless: Record<string, string> = {
  user: 'the operator',
  operator_key: 'the operator',
  cli: 'the operator',
  api_key: 'API',
  worker: 'automatically',
}

/** The name of the person, key or command that did something, as far as this reader may see it. */
export function authorName({ kind, name }: Author): string {
  return name ?? nameless[kind] ?? kind
}

type Authored = Author & { resourceId: string; at: string }
type Action = 'pay_cycle.settle' | 'pay_run.revert'

/** Who made a change to each record and when, by record id. */
export function useAuthors(action: Action, ids: string[]): ReadonlyMap<string, Authored> {
  const key = ids.length === 0 ? null : `authors ${action} ${ids.join()}`
  const { value } = useLoaded(key, async () => {
    const query = new URLSearchParams([['action', action], ...ids.map(id => ['ids', id])])
    const { authors } = await send<{ authors: Authored[] }>('GET', `/console/v1/authors?${query}`)
    return new Map(authors.map(author => [author.resourceId, author]))
  })
  return value ?? new Map()
}

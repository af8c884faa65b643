import { reload } from '../query.ts'
import { messageOf } from './states.tsx'
import { toast } from './toast.tsx'

/** Does something, says so, and brings up to date what it changed. */
export async function act<T>(
  doing: () => PromiseLike<T>,
  done: string | ((result: T) => string),
  ...changes: string[]
) {
  try {
    const result = await doing()
    toast(typeof done === 'string' ? done : done(result))
    reload(...changes)
    return result
  } catch (error) {
    toast(messageOf(error), { kind: 'bad' })
    return undefined
  }
}

import { ApiError } from '../../sdk/src/index.ts'
import { messageOf } from './problems.ts'
import { reload } from './query.ts'
import { deferWithUndo, toast } from './toasts.ts'

type Said<T> = string | ((result: T) => string)

/**
 * Does something, says so, and reloads what it changed.
 * @param changes prefixes of the keys to reload
 */
export async function act<T>(
  doing: () => PromiseLike<T>,
  done: Said<T> | undefined,
  ...changes: string[]
): Promise<T | undefined> {
  try {
    const result = await doing()
    if (done !== undefined) toast(typeof done === 'string' ? done : done(result))
    reload(...changes)
    return result
  } catch (error) {
    toast(messageOf(error), { kind: 'bad' })
    // Often the record has changed since the page was loaded.
    if (error instanceof ApiError) reload(...changes)
    return undefined
  }
}

/**
 * Like `act`, after the reader has had time to undo it.
 * @param text shown at once, as if it were done
 * @param options.onEnd called once it is done, refused or undone
 */
export function actUnlessUndone<T>(
  text: string,
  doing: () => PromiseLike<T>,
  { done, changes, onUndo, onEnd }: { done?: Said<T>; changes: string[]; onUndo?: () => void; onEnd?: () => void },
): void {
  deferWithUndo(
    text,
    async () => {
      await act(doing, done, ...changes)
      onEnd?.()
    },
    () => {
      onUndo?.()
      onEnd?.()
    },
  )
}

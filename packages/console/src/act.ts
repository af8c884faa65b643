import { ApiError } from '../../sdk/src/index.ts'
import { messageOf } from './problems.ts'
import { reload } from './query.ts'
import { deferWithUndo, toast } from './toasts.ts'

type Message<T> = string | ((result: T) => string)

/** Says that a change was made, and reloads what it changed: the responses whose keys have these prefixes. */
export function announce(done: string, ...changes: string[]): void {
  toast(done)
  reload(...changes)
}

/**
 * Makes a change, reports the result in a toast and reloads what changed.
 * @param changes prefixes of the keys to reload
 */
export async function act<T>(
  change: () => PromiseLike<T>,
  done: Message<T> | undefined,
  ...changes: string[]
): Promise<T | undefined> {
  try {
    const result = await change()
    if (done !== undefined) toast(typeof done === 'string' ? done : done(result))
    reload(...changes)
    return result
  } catch (error) {
    toast(messageOf(error), { kind: 'bad' })
    // The record has often changed since the page was loaded.
    if (error instanceof ApiError) reload(...changes)
    return undefined
  }
}

/**
 * Like `act`, but waits first so that the reader can undo the change.
 * @param text shown at once, as if the change were already made
 * @param options.onEnd called once the change is made, rejected or undone
 */
export function actUnlessUndone<T>(
  text: string,
  change: () => PromiseLike<T>,
  { done, changes, onUndo, onEnd }: { done?: Message<T>; changes: string[]; onUndo?: () => void; onEnd?: () => void },
): void {
  deferWithUndo(
    text,
    async () => {
      await act(change, done, ...changes)
      onEnd?.()
    },
    () => {
      onUndo?.()
      onEnd?.()
    },
  )
}

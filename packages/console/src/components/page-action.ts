import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** What the palette can open on another page: a drawer, or the dialog that chooses a file. */
export type PageAction =
  | 'invite-member'
  | 'import-members'
  | 'add-pay'
  | 'settle'
  | 'create-key'
  | 'invite-user'
  | 'fund-float'
  | 'invite-operator'

const requested = signal<PageAction>()

/** Requests an action from the current page or the next one. */
export function requestPageAction(action: PageAction | undefined): void {
  requested.value = action
}

/**
 * Runs an action once the palette requests it.
 * @param run undefined while the page is not ready
 */
export function usePageAction(action: PageAction | undefined, run: (() => void) | undefined): void {
  const isRequested = action !== undefined && requested.value === action
  const isReady = run !== undefined
  useEffect(() => {
    if (!isRequested || !isReady) return
    requested.value = undefined
    run()
  }, [isRequested, isReady])
}

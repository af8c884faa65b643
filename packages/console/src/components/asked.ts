import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** What the palette can open on another page: a drawer, or the dialog that chooses a file. */
export type Asked =
  | 'invite-member'
  | 'import-members'
  | 'add-pay'
  | 'settle'
  | 'create-key'
  | 'invite-user'
  | 'fund-float'
  | 'invite-operator'

const asked = signal<Asked>()

/** Asks the page that is shown next, or is shown already, to open something. */
export function ask(what: Asked | undefined): void {
  asked.value = what
}

/** Opens it once when the palette asks for it. @param open undefined until the page can */
export function useAsked(what: Asked | undefined, open: (() => void) | undefined): void {
  const isAsked = what !== undefined && asked.value === what
  const canOpen = open !== undefined
  useEffect(() => {
    if (!isAsked || !canOpen) return
    asked.value = undefined
    open()
  }, [isAsked, canOpen])
}

import { signal } from '@preact/signals'
import { toasts } from '../toasts.ts'

/** Drawers that are open. What lies beneath them can be neither clicked nor heard, so the topmost one shows the toasts. */
export const drawersOpen = signal(0)

/** @param props.isInDrawer whether it is part of an open drawer, rather than of the page */
export function Toasts({ isInDrawer = false }: { isInDrawer?: boolean }) {
  if (!isInDrawer && drawersOpen.value > 0) return null
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, undo }) => (
        <div key={id} class={`toast toast-${kind}`}>
          <span>{text}</span>
          {undo && (
            <button type="button" class="toast-undo" onClick={undo}>
              Undo
            </button>
          )}
        </div>
      ))}
    </div>
  )
}

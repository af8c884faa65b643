import { signal } from '@preact/signals'
import { toasts } from '../toasts.ts'

/** The number of open drawers. A page beneath a drawer is inert and silent to screen readers, so the topmost drawer shows the toasts. */
export const drawersOpen = signal(0)

/** @param props.isInDrawer whether the toasts are part of an open drawer rather than the page */
export function Toasts({ isInDrawer = false }: { isInDrawer?: boolean }) {
  if (!isInDrawer && drawersOpen.value > 0) return null
  return (
    <div class="toasts stack" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind, undo }) => (
        <div key={id} class={`toast row toast-${kind}`}>
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

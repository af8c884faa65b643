import { signal } from '@preact/signals'

type Toast = { id: number; text: string; kind: 'plain' | 'bad'; undo?: () => void }

const toasts = signal<Toast[]>([])
/** Drawers that are open. What lies beneath them can be neither clicked nor heard, so the topmost one shows the toasts. */
export const drawersOpen = signal(0)
let last = 0

function dismiss(id: number): void {
  toasts.value = toasts.value.filter(each => each.id !== id)
}

export function toast(
  text: string,
  { kind = 'plain', forMs = 4_000 }: { kind?: 'plain' | 'bad'; forMs?: number } = {},
) {
  last++
  const id = last
  toasts.value = [...toasts.value, { id, text, kind }]
  setTimeout(() => dismiss(id), kind === 'bad' ? 10_000 : forMs)
}

// Long enough to read the line and reach the button.
const undoMs = 6_000
const waiting = new Map<number, () => void>()

/**
 * Does something that cannot be taken back, but only after the reader has had time to undo it. Leaving the page does it at once.
 */
export function doUnlessUndone(text: string, act: () => void, onUndo: () => void): void {
  last++
  const id = last
  const settle = (then: () => void) => () => {
    clearTimeout(timer)
    waiting.delete(id)
    dismiss(id)
    then()
  }
  const timer = setTimeout(() => waiting.get(id)?.(), undoMs)
  waiting.set(id, settle(act))
  toasts.value = [...toasts.value, { id, text, kind: 'plain', undo: settle(onUndo) }]
}

addEventListener('pagehide', () => {
  for (const act of [...waiting.values()]) act()
})

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

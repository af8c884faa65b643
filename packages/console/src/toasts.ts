import { signal } from '@preact/signals'

type Toast = { id: number; text: string; kind: 'plain' | 'bad'; undo?: () => void }

export const toasts = signal<Toast[]>([])
let last = 0

function dismiss(id: number): void {
  toasts.value = toasts.value.filter(each => each.id !== id)
}

export function toast(text: string, { kind = 'plain' }: { kind?: Toast['kind'] } = {}): void {
  last++
  const id = last
  toasts.value = [...toasts.value, { id, text, kind }]
  setTimeout(() => dismiss(id), kind === 'bad' ? 10_000 : 4_000)
}

// Long enough to read the line and reach the button.
const undoMs = 6_000
const waiting = new Set<() => Promise<unknown>>()

/** Does something that cannot be taken back, but only after the reader has had time to undo it. See `doWhatWaits`. */
export function doUnlessUndone(text: string, act: () => PromiseLike<unknown>, onUndo: () => void): void {
  last++
  const id = last
  const end = () => {
    clearTimeout(timer)
    waiting.delete(actNow)
    dismiss(id)
  }
  const actNow = async () => {
    end()
    await act()
  }
  const undo = () => {
    end()
    onUndo()
  }
  const timer = setTimeout(() => void actNow(), undoMs)
  waiting.add(actNow)
  toasts.value = [...toasts.value, { id, text, kind: 'plain', undo }]
}

/**
 * Does at once what could still be undone. To be called before the reader leaves the page, the partner or the session, which what
 * they have asked for is about.
 */
export async function doWhatWaits(): Promise<void> {
  await Promise.all([...waiting].map(actNow => actNow()))
}

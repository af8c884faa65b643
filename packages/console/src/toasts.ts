import { signal } from '@preact/signals'

type Toast = { id: number; text: string; kind: 'plain' | 'bad'; undo?: () => void }

export const toasts = signal<Toast[]>([])
let last = 0

function show(shown: Omit<Toast, 'id'>): number {
  last++
  toasts.value = [...toasts.value, { id: last, ...shown }]
  return last
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter(each => each.id !== id)
}

export function toast(text: string, { kind = 'plain' }: { kind?: Toast['kind'] } = {}): void {
  const id = show({ text, kind })
  setTimeout(() => dismiss(id), kind === 'bad' ? 10_000 : 4_000)
}

// Long enough to read the line and reach the button.
const undoMs = 6_000
const deferred = new Set<() => Promise<unknown>>()

/** Defers an irreversible change, so that the reader can undo it for a few seconds. See `flushDeferred`. */
export function deferWithUndo(text: string, act: () => PromiseLike<unknown>, onUndo: () => void): void {
  const end = () => {
    clearTimeout(timer)
    deferred.delete(actNow)
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
  deferred.add(actNow)
  const id = show({ text, kind: 'plain', undo })
}

/** Makes all deferred changes now. Call this before the reader leaves the page, the partner or the session. */
export async function flushDeferred(): Promise<void> {
  await Promise.all([...deferred].map(actNow => actNow()))
}

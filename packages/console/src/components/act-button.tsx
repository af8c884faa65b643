import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

/** A button that acts once: it ignores double clicks, and further presses until the first one has a response. */
export function ActButton({
  act,
  look = 'button',
  label,
  disabled = false,
  children,
}: {
  act: () => PromiseLike<unknown>
  look?: 'button' | 'button button-main' | 'text-button' | 'choice'
  /** For a screen reader, if the text alone does not say what is acted on. */
  label?: string
  disabled?: boolean
  children: ComponentChildren
}) {
  const [isBusy, setIsBusy] = useState(false)
  const onClick = async (event: MouseEvent) => {
    // The response to the first click may have put another button in this place.
    if (event.detail > 1) return
    setIsBusy(true)
    try {
      await act()
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <button type="button" class={look} aria-label={label} disabled={disabled || isBusy} onClick={onClick}>
      {children}
    </button>
  )
}

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon, type IconName } from './icon.tsx'

type ButtonProps = {
  act: () => unknown
  icon?: IconName
  /** For a screen reader, if the text alone does not say what is acted on. */
  label?: string
  disabled?: boolean
  children: ComponentChildren
}

export const Button = buttonOf('button')
export const MainButton = buttonOf('button button-main')
/** A destructive action that can be undone for a moment. */
export const BadButton = buttonOf('button button-bad')
export const TextButton = buttonOf('text-button')
export const ChoiceButton = buttonOf('choice')

type IconButtonProps = { icon: IconName; label: string; hint?: string; act: () => void }

/** A button without text. @property hint what the pointer shows if it is more than the label */
export function IconButton({ icon, label, hint = label, act }: IconButtonProps) {
  return (
    <button type="button" class="icon-button" aria-label={label} title={hint} onClick={act}>
      <Icon name={icon} />
    </button>
  )
}

/** A button that acts once: it ignores double clicks, and further presses until the first one has a response. */
function buttonOf(look: string) {
  return ({ act, icon, label, disabled = false, children }: ButtonProps) => {
    const [isBusy, setIsBusy] = useState(false)
    const onClick = async (event: MouseEvent) => {
      // The response to the first click may have put another button in this place.
      if (event.detail > 1) return
      const acting = act()
      // A button that opens a drawer stays enabled, so that it gets the focus back.
      if (!(acting instanceof Promise)) return
      setIsBusy(true)
      try {
        await acting
      } finally {
        setIsBusy(false)
      }
    }
    return (
      <button type="button" class={look} aria-label={label} disabled={disabled || isBusy} onClick={onClick}>
        {icon && <Icon name={icon} />}
        {children}
      </button>
    )
  }
}

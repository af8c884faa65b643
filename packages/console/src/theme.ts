import { effect, signal } from '@preact/signals'

type Theme = 'system' | 'light' | 'dark'

const key = 'openwage-theme'
const stored = localStorage.getItem(key)

export const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
  localStorage.setItem(key, theme.value)
})

export function nextTheme(): void {
  const isDark =
    theme.value === 'dark' || (theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches)
  theme.value = isDark ? 'light' : 'dark'
}

import { computed, effect, signal } from '@preact/signals'

type Theme = 'system' | 'light' | 'dark'

const key = 'midmonth-theme'
const stored = localStorage.getItem(key)

const theme = signal<Theme>(stored === 'light' || stored === 'dark' ? stored : 'system')

const system = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
system.addEventListener('change', ({ matches }) => {
  systemIsDark.value = matches
})

/** Whether the page is dark, for elements that do not take their colours from the style sheet. */
export const isDark = computed(() => (theme.value === 'system' ? systemIsDark.value : theme.value === 'dark'))

effect(() => {
  if (theme.value === 'system') delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
  localStorage.setItem(key, theme.value)
})

export function nextTheme(): void {
  theme.value = isDark.value ? 'light' : 'dark'
}

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { partnerId } from './api.ts'
import { IconButton, TextButton } from './components/button.tsx'
import { Icon } from './components/icon.tsx'
import { Help, helpIsOpen, Palette, paletteIsOpen, searchKey } from './components/palette.tsx'
import { enterRows } from './components/table.tsx'
import { at, groups, hrefOf, placesByKey } from './places.ts'
import { SandboxBand } from './sandbox.tsx'
import { isSandbox, session, signOut } from './session.ts'
import { nextTheme } from './theme.ts'

const menuIsOpen = signal(false)

/** The frame of every page: menu, partner, reader. */
export function Shell({ children }: { children: ComponentChildren }) {
  const { path } = useLocation()
  useKeys()
  const isFirst = useRef(true)
  // A layout effect moves the focus before the next key arrives.
  useLayoutEffect(() => {
    menuIsOpen.value = false
    // The focused element is gone with its page. The first page leaves the focus to the browser.
    if (!isFirst.current) document.getElementById('content')?.focus({ preventScroll: true })
    isFirst.current = false
  }, [path])
  return (
    <div class={`shell${menuIsOpen.value ? ' shell-menu' : ''}`}>
      <a class="skip-link" href="#content">
        Skip to the content
      </a>
      <aside class="side">
        <div class="side-head row ends">
          <a class="brand row" href={at('')}>
            <Mark />
            Midmonth
          </a>
          <button
            type="button"
            class="icon-button menu-button"
            aria-label="Menu"
            aria-expanded={menuIsOpen.value}
            onClick={() => {
              menuIsOpen.value = !menuIsOpen.value
            }}
          >
            <Icon name={menuIsOpen.value ? 'close' : 'menu'} />
          </button>
        </div>
        <div class="side-body">
          <PartnerSwitcher />
          <button
            type="button"
            class="search-button row"
            onClick={() => {
              paletteIsOpen.value = true
            }}
          >
            <Icon name="search" />
            <span>Search or go to</span>
            <kbd>{searchKey}</kbd>
          </button>
          <Menu />
          <Reader />
        </div>
      </aside>
      <div class="stage">
        {isSandbox.value && <SandboxBand />}
        <main id="content" tabIndex={-1}>
          {children}
        </main>
      </div>
      <Palette />
      <Help />
    </div>
  )
}

/** The pages that the reader may open. */
function Menu() {
  const { path } = useLocation()
  const nav = useRef<HTMLElement>(null)
  useEffect(() => nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' }), [path])
  return (
    <nav ref={nav} aria-label="Pages">
      {groups().map(group => (
        <section key={group.title}>
          <h2>{group.title}</h2>
          <ul>
            {group.places.map(place => {
              const href = hrefOf(place)
              const isHere = place.path === '' ? path === href : path === href || path.startsWith(`${href}/`)
              return (
                <li key={place.path}>
                  <a href={href} aria-current={isHere ? 'page' : undefined}>
                    <Icon name={place.icon} />
                    {place.title}
                  </a>
                </li>
              )
            })}
          </ul>
        </section>
      ))}
    </nav>
  )
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true">
      <rect width="24" height="24" rx="6" />
      <path d="M6 15.5h12M6 11.5h8M6 7.5h4" />
    </svg>
  )
}

function PartnerSwitcher() {
  const { route } = useLocation()
  const partners = session.value?.partners ?? []
  const [only] = partners
  if (partners.length === 1) return <p class="partner-name">{only?.name}</p>
  if (partners.length === 0) return null
  return (
    <label class="partner-switch">
      <span class="hidden-label">Partner</span>
      <select value={partnerId.value} onChange={event => route(`/console/${event.currentTarget.value}`)}>
        {partners.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function openHelp(): void {
  helpIsOpen.value = true
}

function Reader() {
  const user = session.value?.user
  return (
    <div class="reader">
      <a class="reader-name" href="/console/account">
        <span>{user?.name}</span>
        <span class="quiet">{user?.email}</span>
      </a>
      <div class="reader-actions row">
        <IconButton icon="sun" label="Change the theme" act={nextTheme} />
        <IconButton icon="help" label="Help" hint="Help (?)" act={openHelp} />
        <TextButton act={() => void signOut()}>Sign out</TextButton>
      </div>
    </div>
  )
}

/** Handles the keyboard shortcuts of every page, unless the reader is typing. */
function useKeys(): void {
  const { route } = useLocation()
  // A layout effect, so that the first key is not lost.
  useLayoutEffect(() => {
    let isGoing = false
    const onKey = (event: KeyboardEvent) => {
      if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        paletteIsOpen.value = !paletteIsOpen.value
        return
      }
      if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return
      const going = isGoing ? placesByKey().get(event.key) : undefined
      isGoing = event.key === 'g'
      if (going !== undefined) route(hrefOf(going))
      else if (event.key === '?') openHelp()
      else if (event.key === 'j' || event.key === 'k') enterRows(event)
      else if (event.key === 'u') document.querySelector<HTMLElement>('.back')?.click()
      else if (event.key === '/') {
        event.preventDefault()
        const search = document.querySelector<HTMLElement>('[data-search]')
        if (search === null) paletteIsOpen.value = true
        else search.focus()
      }
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [route])
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, dialog[open]') !== null
}

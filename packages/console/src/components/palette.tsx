import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useLocation } from 'preact-iso'
import { ApiError } from '../../../sdk/src/index.ts'
import { api, partnerId } from '../api.ts'
import { operators } from '../operators.ts'
import { at, groups, hrefOf, hrefOfId, idPattern, placeAt, placesByKey } from '../places.ts'
import { may, type Role, session } from '../session.ts'
import { Icon, type IconName } from './icon.tsx'
import { Dialog, Drawer } from './layout.tsx'
import { type PageAction, requestPageAction } from './page-action.ts'

/** The keyboard shortcut that opens the palette on this platform. */
export const searchKey = /mac|iphone|ipad/i.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'

export const paletteIsOpen = signal(false)
export const helpIsOpen = signal(false)

/** @property recordOf finds the record to open instead of the list at `href` */
type Opening = { href: string; recordOf?: () => Promise<string | undefined>; pageAction?: PageAction }
type PaletteEntry = { key: string; title: string; note: string; icon: IconName } & Opening

/** Finds a page or action by name, or a record by its id or a member’s name, and opens it. */
export function Palette() {
  const { route } = useLocation()
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState(0)
  const records = useRecords(text)
  const close = () => {
    paletteIsOpen.value = false
  }
  const onOpened = () => {
    setText('')
    setChosen(0)
    input.current?.focus()
  }
  const found = ranked([...records, ...pagesFor(text), ...actionsFor(text)], text)
  useEffect(() => {
    document.getElementById(`palette-${chosen}`)?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  const open = async (entry: PaletteEntry | undefined) => {
    if (entry === undefined) return
    const { href, recordOf, pageAction } = entry
    close()
    const record = await recordOf?.().catch(() => undefined)
    // On a list, the reader chooses the record first.
    requestPageAction(recordOf !== undefined && record === undefined ? undefined : pageAction)
    route(record ?? href)
  }
  return (
    <Dialog look="palette" label="Search" isOpen={paletteIsOpen.value} onOpened={onOpened} onClose={close}>
      <label class="palette-field row">
        <Icon name="search" />
        <span class="hidden-label">Search for a page or a record</span>
        <input
          ref={input}
          value={text}
          placeholder="A page, an action, an id, a name or an e-mail address"
          role="combobox"
          aria-expanded={found.length > 0}
          aria-controls="palette-list"
          aria-activedescendant={found.length > 0 ? `palette-${chosen}` : undefined}
          onInput={event => {
            setText(event.currentTarget.value)
            setChosen(0)
          }}
          onPaste={event => {
            // A pasted id opens its record at once.
            const pasted = event.clipboardData?.getData('text').trim() ?? ''
            const href = hrefOfId(pasted)
            if (href === undefined) return
            event.preventDefault()
            close()
            route(href)
          }}
          onKeyDown={event => {
            // Set now: the dialog's close event arrives later, possibly after the next key has opened the palette again.
            if (event.key === 'Escape') close()
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
            if (step !== undefined) {
              event.preventDefault()
              setChosen((chosen + step + found.length) % Math.max(found.length, 1))
            }
            if (event.key === 'Enter') void open(found[chosen])
          }}
        />
      </label>
      <div class="palette-list" id="palette-list" role="listbox" aria-label="Results">
        {found.map((entry, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the field opens the chosen entry.
          <div
            key={entry.key}
            id={`palette-${index}`}
            class="palette-entry row"
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            onClick={() => void open(entry)}
            onMouseMove={() => setChosen(index)}
          >
            <Icon name={entry.icon} />
            <span>{entry.title}</span>
            <span class="quiet">{entry.note}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && (
        <p class="palette-none quiet">
          Nothing found. Search for a record by its full id, or for a member by the beginning of the name.
        </p>
      )}
    </Dialog>
  )
}

/** Puts entries that begin with the text first. Without a text, lists every action and page. */
function ranked(entries: PaletteEntry[], text: string): PaletteEntry[] {
  const wanted = text.trim().toLowerCase()
  const isFirst = ({ title, note }: PaletteEntry) =>
    wanted === '' ? note === actionNote : title.toLowerCase().startsWith(wanted)
  return [...entries.filter(isFirst), ...entries.filter(entry => !isFirst(entry))]
}

function pagesFor(text: string): PaletteEntry[] {
  const wanted = text.trim().toLowerCase()
  return groups().flatMap(group =>
    group.places
      .filter(({ title, words = '' }) => `${title} ${words}`.toLowerCase().includes(wanted))
      .map(place => ({
        key: place.path,
        title: place.title,
        note: group.title,
        icon: place.icon,
        href: hrefOf(place),
      })),
  )
}

const actionNote = 'Action'

/** @property of the path of the place to which it belongs */
type Action = Partial<Opening> & { title: string; words: string; of: string }

const payrollActions: Action[] = [
  { title: 'Invite a member', words: 'add new', of: 'members', pageAction: 'invite-member' },
  { title: 'Import members', words: 'upload list csv excel', of: 'lists', pageAction: 'import-members' },
  { title: 'Add pay', words: 'upload pay run file', of: 'pay-runs', pageAction: 'add-pay' },
  {
    title: 'Settle a pay cycle',
    words: 'settlement deductions',
    of: 'cycles',
    recordOf: cycleToSettle,
    pageAction: 'settle',
  },
]
const createKey: Action = { title: 'Create an API key', words: 'new secret', of: 'keys', pageAction: 'create-key' }
const inviteUser: Action = { title: 'Invite a person', words: 'user colleague', of: 'users', pageAction: 'invite-user' }
const toApprove = { href: '/console/operator/batches?status=building', recordOf: batchToApprove }
const newPartner = { href: '/console/operator/new-partner' }
const operatorActions: Action[] = [
  { title: 'Approve payouts', words: 'batch', of: 'operator/batches', ...toApprove },
  { title: 'Create a partner', words: 'new', of: 'operator/partners', ...newPartner },
  { title: 'Invite an operator', words: 'user', of: 'operator/operators', pageAction: 'invite-operator' },
]
const fundFloat: Action = {
  title: 'Fund float',
  words: 'deposit money',
  of: 'operator/partners',
  pageAction: 'fund-float',
}

/** Actions that open a drawer or dialog directly. */
function actionsFor(text: string): PaletteEntry[] {
  const wanted = text.trim().toLowerCase()
  const shown = partnerId.value
  const ofPartner = (role: Role, actions: Action[]) => (shown !== undefined && may(role) ? actions : [])
  const isOperator = session.value?.isOperator === true
  const actions = [
    ...ofPartner('payroll', payrollActions),
    ...ofPartner('developer', [createKey]),
    ...ofPartner('admin', [inviteUser]),
    ...(isOperator ? operatorActions : []),
    ...(isOperator && shown !== undefined ? [{ ...fundFloat, href: `/console/operator/partners/${shown}` }] : []),
  ]
  return actions
    .filter(({ title, words }) => `${title} ${words}`.toLowerCase().includes(wanted))
    .flatMap(({ words: _, of, ...action }) => {
      const place = placeAt(of)
      if (place === undefined) return []
      return { key: `do ${action.title}`, note: actionNote, icon: place.icon, href: hrefOf(place), ...action }
    })
}

/** Returns the batch that awaits approval; undefined if there is none or more than one. */
async function batchToApprove(): Promise<string | undefined> {
  const { batches } = await operators.listPayoutBatches({ statuses: ['building'], take: 50 })
  const waiting = batches.filter(({ needsApproval, held }) => needsApproval && !held)
  return waiting.length === 1 ? hrefOfId(waiting[0]?.id ?? '') : undefined
}

/** Returns the latest closed cycle without a settlement. */
async function cycleToSettle(): Promise<string | undefined> {
  const { payCycles } = await api.payCycles.list({ statuses: ['Closed'], take: 12 })
  for (const { id } of payCycles) {
    const isSettled = await api.payCycles.listSettlementLines(id, { take: 1 }).then(
      () => true,
      (error: unknown) => !(error instanceof ApiError && error.status === 404),
    )
    if (!isSettled) return hrefOfId(id)
  }
  return undefined
}

/** Finds records by their full id at once, and members by name, e-mail address or worker id after a request. */
function useRecords(text: string): PaletteEntry[] {
  const wanted = text.trim()
  const isId = idPattern.test(wanted)
  const [found, setFound] = useState<{ wanted: string; entries: PaletteEntry[] }>({ wanted: '', entries: [] })
  useEffect(() => {
    if (isId || wanted.length < 2) return
    let isCurrent = true
    // Waits until the reader pauses.
    const timer = setTimeout(async () => {
      const members = may('payroll', 'support', 'viewer') ? await membersFor(wanted) : []
      if (isCurrent) setFound({ wanted, entries: [...members, ...entriesOfKey(wanted)] })
    }, 150)
    return () => {
      isCurrent = false
      clearTimeout(timer)
    }
  }, [isId, wanted])
  if (isId) return entriesOfId(wanted)
  // Enter must not open a result for an earlier text.
  return found.wanted === wanted ? found.entries : []
}

/** The page of a record and the lists that mention it. */
function entriesOfId(id: string): PaletteEntry[] {
  const prefix = idPattern.exec(id)?.[1] ?? ''
  const kind = kinds[prefix] ?? 'Record'
  const href = hrefOfId(id)
  const mentions: [boolean, string, IconName, string][] = [
    [may('support', 'developer') && emitting.has(prefix), 'Its events', 'events', at(`events?resource=${id}`)],
    [may('support', 'developer'), 'Requests about it', 'requests', at(`requests?resource=${id}`)],
    [session.value?.isOperator === true, 'Its changes', 'audit', `/console/operator/audit-log?resource=${id}`],
  ]
  return [
    ...(href === undefined ? [] : [{ key: id, title: id, note: kind, icon: 'search' as const, href }]),
    ...mentions.flatMap(([isAllowed, words, icon, address]) =>
      isAllowed ? [{ key: address, title: words, note: kind, icon, href: address }] : [],
    ),
  ]
}

/** A text with a digit and without spaces may be a request id or an idempotency key. */
function entriesOfKey(text: string): PaletteEntry[] {
  if (!may('support', 'developer') || !/^(?=.*\d)\S{8,}$/.test(text)) return []
  const query = encodeURIComponent(text)
  return [
    { key: 'idempotency', title: 'Idempotency key', note: text, icon: 'requests', href: at(`requests?key=${query}`) },
    { key: 'request', title: 'Request', note: text, icon: 'requests', href: at(`requests?request=${query}`) },
  ]
}

async function membersFor(search: string): Promise<PaletteEntry[]> {
  const { members } = await api.members.list({ search, take: 5 }).catch(() => ({ members: [] }))
  return members.map(({ memberId, firstName, lastName, email }) => ({
    ...{ key: memberId, title: `${firstName} ${lastName}`, note: email, icon: 'members' as const },
    href: at(`members/${memberId}`),
  }))
}

const kinds: Record<string, string> = {
  ...{
    w: 'Withdrawal',
    wi: 'Intent',
    mem: 'Member',
    pr: 'Pay run',
    pc: 'Pay cycle',
    maj: 'Member import',
    we: 'Webhook',
  },
  ...{ req: 'Request', par: 'Partner', bat: 'Batch', pex: 'Exception', key: 'API key', evt: 'Event', usr: 'User' },
  ...{ opk: 'Operator key', lv: 'Verification', ses: 'Member session', tr: 'Transfer', fm: 'Float movement' },
  ...{ aud: 'Audit entry', cm: 'Clock move', bf: 'Bank file', uss: 'Session', inv: 'Invitation' },
}

/** The kinds of records that events are about. */
const emitting = new Set(['w', 'wi', 'mem', 'pr', 'pc', 'maj', 'we'])

const keys: [string, string][] = [
  [searchKey, 'Search pages and records'],
  ['/', 'Search in this list'],
  ['J and K, or ↓ and ↑', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['U', 'Back to the list'],
]

export function Help() {
  const pages = [...placesByKey()].map(([key, { title }]) => [`G then ${key.toUpperCase()}`, title])
  return (
    <Drawer
      title="Help"
      isOpen={helpIsOpen.value}
      onClose={() => {
        helpIsOpen.value = false
      }}
    >
      <dl class="keys">
        {[...keys, ...pages, ['Esc', 'Close the drawer or dialog']].map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p>
        The console uses the same API as your server. See <a href="/docs">the documentation</a>.
      </p>
    </Drawer>
  )
}

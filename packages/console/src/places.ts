import { partnerId } from './api.ts'
import type { IconName } from './components/icon.tsx'
import { may, type Role, session } from './session.ts'

/** The address of a page of the partner shown. It includes the partner, so that links work for other readers. */
export function at(path: string): string {
  return `/console/${partnerId.value ?? ''}${path === '' ? '' : `/${path}`}`
}

/** The page that shows a record, by the prefix of its id. */
const pagesByPrefix: Record<string, string> = {
  w: 'withdrawals',
  wi: 'intents',
  mem: 'members',
  pr: 'pay-runs',
  pc: 'cycles',
  maj: 'lists',
  we: 'webhooks',
  req: 'requests',
}

export const idPattern = /^([a-z]+)_[0-9a-z]{6,}$/

/** The list that shows a record that has no separate page, by the prefix of its id. */
const listsByPrefix: Record<string, (id: string) => string> = {
  key: id => `keys?id=${id}`,
  evt: id => `events?after=${id}`,
}

/** The operators' pages that show a record, by the prefix of its id. */
const operatorPagesByPrefix: Record<string, string> = { par: 'partners', bat: 'batches', pex: 'exceptions' }

export function hrefOfId(id: string): string | undefined {
  const prefix = idPattern.exec(id)?.[1] ?? ''
  const page = pagesByPrefix[prefix]
  if (page !== undefined) return at(`${page}/${id}`)
  const list = listsByPrefix[prefix]
  if (list !== undefined) return may('developer') ? at(list(id)) : undefined
  const ofOperator = operatorPagesByPrefix[prefix]
  return ofOperator === undefined || !session.value?.isOperator ? undefined : `/console/operator/${ofOperator}/${id}`
}

export const hrefOfRecord = ({ id }: { id: string }): string | undefined => hrefOfId(id)

export type Place = {
  title: string
  path: string
  icon: IconName
  /** Defaults to the roles of the group. */
  roles?: Role[]
  /** Pressing `g` and then this key opens the page. */
  key?: string
  /** Further search words. */
  words?: string
}
type Group = { title: string; roles: Role[]; places: Place[] }

const staff: Role[] = ['payroll', 'support', 'viewer']
const anyone: Role[] = [...staff, 'developer']

const ofPartner: Group[] = [
  {
    title: 'Money',
    roles: anyone,
    places: [
      { title: 'Overview', path: '', key: 'o', icon: 'overview' },
      { title: 'Withdrawals', path: 'withdrawals', key: 'w', icon: 'withdrawals' },
      { title: 'Members', path: 'members', key: 'm', icon: 'members', roles: staff },
    ],
  },
  {
    title: 'Payroll',
    roles: anyone,
    places: [
      {
        title: 'Imports',
        path: 'lists',
        key: 'l',
        icon: 'lists',
        roles: staff,
        words: 'lists of members upload csv excel',
      },
      { title: 'Pay runs', path: 'pay-runs', key: 'p', icon: 'payRuns' },
      { title: 'Pay cycles', path: 'cycles', key: 'c', icon: 'cycles', words: 'deductions settlement' },
    ],
  },
  {
    title: 'Developers',
    roles: ['support', 'developer'],
    places: [
      {
        title: 'API keys',
        path: 'keys',
        key: 'k',
        icon: 'keys',
        roles: ['developer'],
        words: 'secret scopes rotate revoke',
      },
      {
        title: 'Webhooks',
        path: 'webhooks',
        key: 'h',
        icon: 'webhooks',
        roles: ['developer'],
        words: 'deliveries replay',
      },
      { title: 'Requests', path: 'requests', key: 'r', icon: 'requests', words: 'log curl errors idempotency' },
      { title: 'Events', path: 'events', key: 'e', icon: 'events' },
    ],
  },
  {
    title: 'People',
    roles: ['admin'],
    places: [
      { title: 'Users', path: 'users', icon: 'users', words: 'invite roles' },
      { title: 'Settings', path: 'settings', icon: 'settings', words: 'logo picture employer' },
    ],
  },
]

const ofOperators: Group = {
  title: 'Operator',
  roles: [],
  places: [
    { title: 'Partners', path: 'operator/partners', icon: 'partners', words: 'tiers float fund pause' },
    { title: 'Payouts', path: 'operator/batches', icon: 'payouts', words: 'batches approve files' },
    { title: 'Rails', path: 'operator/rails', icon: 'payRuns', words: 'banks hold release' },
    { title: 'Exceptions', path: 'operator/exceptions', icon: 'exceptions', words: 'bank answers decide' },
    { title: 'Invoices', path: 'operator/invoices', icon: 'lists', words: 'fees revenue journal employers' },
    { title: 'Float history', path: 'operator/float', icon: 'cycles', words: 'bank account difference' },
    { title: 'Health', path: 'operator/health', icon: 'health', words: 'workers queue verify books findings' },
    { title: 'Operators', path: 'operator/operators', icon: 'users', words: 'invite people users' },
    { title: 'Audit log', path: 'operator/audit-log', icon: 'audit', words: 'who changed what' },
  ],
}

/** The address of a place in the menu. */
export function hrefOf({ path }: Place): string {
  return path.startsWith('operator/') ? `/console/${path}` : at(path)
}

const allPlaces = [...ofPartner, ofOperators].flatMap(({ places }) => places)

export function placeAt(path: string): Place | undefined {
  return allPlaces.find(place => place.path === path)
}

/** The list of the menu whose records have addresses such as this one. */
export function listAbove(path: string): { href: string; title: string } | undefined {
  return allPlaces
    .filter(place => place.path !== '')
    .map(place => ({ href: hrefOf(place), title: place.title }))
    .find(({ href }) => path.startsWith(`${href}/`))
}

/** The pages that have a keyboard shortcut, by key. */
export function placesByKey(): Map<string, Place> {
  const places = groups().flatMap(group => group.places)
  return new Map(places.flatMap(place => (place.key === undefined ? [] : [[place.key, place]])))
}

export function groups(): Group[] {
  if (session.value == null) return []
  const operators = session.value.isOperator ? [ofOperators] : []
  if (partnerId.value === undefined) return operators
  return [...ofPartner, ...operators]
    .map(group => ({ ...group, places: group.places.filter(({ roles = group.roles }) => may(...roles)) }))
    .filter(({ places }) => places.length > 0)
}

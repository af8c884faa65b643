import { partnerId } from './api.ts'
import type { IconName } from './components/icon.tsx'
import { isSandbox, may, type Role, session } from './session.ts'

/** The address of a page of the partner shown, so that a link names the partner too. */
export function at(path: string): string {
  return `/console/${partnerId.value ?? ''}${path === '' ? '' : `/${path}`}`
}

export const ofOperator = (path: string): string => `/console/operator/${path}`

/** Which page shows the record of an id, by the id's prefix. */
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

export function hrefOfId(id: string): string | undefined {
  const page = pagesByPrefix[idPattern.exec(id)?.[1] ?? '']
  return page === undefined ? undefined : at(`${page}/${id}`)
}

export type Place = { title: string; path: string; icon: IconName; roles: Role[]; isSandbox?: boolean; words?: string }
export type Group = { title: string; places: Place[] }

const anyone: Role[] = ['payroll', 'support', 'developer', 'viewer']
const staff: Role[] = ['payroll', 'support', 'viewer']

const ofPartner: Group[] = [
  {
    title: 'Money',
    places: [
      { title: 'Overview', path: '', icon: 'overview', roles: anyone },
      { title: 'Withdrawals', path: 'withdrawals', icon: 'withdrawals', roles: anyone },
      { title: 'Members', path: 'members', icon: 'members', roles: staff },
    ],
  },
  {
    title: 'Payroll',
    places: [
      { title: 'Lists of members', path: 'lists', icon: 'lists', roles: staff, words: 'import upload csv excel' },
      { title: 'Pay runs', path: 'pay-runs', icon: 'payRuns', roles: anyone },
      { title: 'Pay cycles', path: 'cycles', icon: 'cycles', roles: anyone, words: 'deductions settlement' },
    ],
  },
  {
    title: 'Developers',
    places: [
      { title: 'Webhooks', path: 'webhooks', icon: 'webhooks', roles: ['developer'], words: 'deliveries replay' },
      {
        title: 'Requests',
        path: 'requests',
        icon: 'requests',
        roles: ['support', 'developer'],
        words: 'log curl errors idempotency',
      },
      { title: 'Events', path: 'events', icon: 'events', roles: ['support', 'developer'] },
    ],
  },
]

export function groups(): Group[] {
  if (session.value == null || partnerId.value === undefined) return []
  return ofPartner
    .map(({ title, places }) => ({
      title,
      places: places.filter(place => may(...place.roles) && (!place.isSandbox || isSandbox.value)),
    }))
    .filter(({ places }) => places.length > 0)
}

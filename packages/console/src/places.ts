import { partnerId } from './api.ts'
import type { IconName } from './components/icon.tsx'
import { isSandbox, may, type Role, session } from './session.ts'

/** The address of a page of the partner shown, so that a link names the partner too. */
export function at(path: string): string {
  return `/console/${partnerId.value ?? ''}${path === '' ? '' : `/${path}`}`
}

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

/** The pages of records that belong to the operator. */
const operatorPagesByPrefix: Record<string, string> = { par: 'partners', bat: 'batches', pex: 'exceptions' }

export function hrefOfId(id: string): string | undefined {
  const prefix = idPattern.exec(id)?.[1] ?? ''
  const page = pagesByPrefix[prefix]
  if (page !== undefined) return at(`${page}/${id}`)
  const ofOperator = operatorPagesByPrefix[prefix]
  return ofOperator === undefined || !session.value?.isOperator ? undefined : `/console/operator/${ofOperator}/${id}`
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
  {
    title: 'People',
    places: [{ title: 'Users', path: 'users', icon: 'users', roles: ['admin'], words: 'invite roles' }],
  },
]

const ofOperators: Group = {
  title: 'Operator',
  places: [
    { title: 'Partners', path: 'operator/partners', icon: 'partners', roles: [], words: 'tiers float fund pause' },
    { title: 'Payouts', path: 'operator/batches', icon: 'payouts', roles: [], words: 'batches approve files' },
    { title: 'Rails', path: 'operator/rails', icon: 'payRuns', roles: [], words: 'banks hold release' },
    { title: 'Exceptions', path: 'operator/exceptions', icon: 'exceptions', roles: [], words: 'bank answers decide' },
    { title: 'Float by day', path: 'operator/float', icon: 'cycles', roles: [], words: 'bank account difference' },
    {
      title: 'Health',
      path: 'operator/health',
      icon: 'health',
      roles: [],
      words: 'workers queue verify books findings',
    },
    { title: 'Audit log', path: 'operator/audit-log', icon: 'audit', roles: [], words: 'who changed what' },
  ],
}

/** The address of a place in the menu. */
export function hrefOf({ path }: Place): string {
  return path.startsWith('operator/') ? `/console/${path}` : at(path)
}

export function groups(): Group[] {
  if (session.value == null) return []
  const operators = session.value.isOperator ? [ofOperators] : []
  if (partnerId.value === undefined) return operators
  return [...ofPartner, ...operators]
    .map(({ title, places }) => ({
      title,
      places: places.filter(place => may(...place.roles) && (!place.isSandbox || isSandbox.value)),
    }))
    .filter(({ places }) => places.length > 0)
}

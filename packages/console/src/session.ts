import { computed, signal } from '@preact/signals'
import { isWithoutSession, partnerId, send, sessionEnded } from './api.ts'
import { messageOf } from './problems.ts'
import { forget } from './query.ts'
import { flushDeferred, toast } from './toasts.ts'

export type Role = 'admin' | 'payroll' | 'support' | 'developer' | 'viewer'
type PartnerOfUser = { id: string; name: string; timeZone: string; roles: Role[] }
export type Session = {
  user: { id: string; name: string; email: string; hasTotp: boolean }
  mode: 'sandbox' | 'live'
  isOperator: boolean
  partners: PartnerOfUser[]
  idleExpiresAt: string
  expiresAt: string
}

/** Null until the reader has signed in. */
export const session = signal<Session | null>(null)

const partner = computed(() => session.value?.partners.find(({ id }) => id === partnerId.value))
/** The time zone of the partner shown, which defines its calendar days. */
export const timeZone = computed(() => partner.value?.timeZone ?? 'UTC')
export const isSandbox = computed(() => session.value?.mode === 'sandbox')

/** Whether the reader has one of the roles for the partner shown. The server decides; this only hides what it would reject. */
export function may(...roles: Role[]): boolean {
  if (session.value?.isOperator) return true
  const own = partner.value?.roles ?? []
  // In a sandbox, developers have an admin's permissions.
  const isAdmin = own.includes('admin') || (isSandbox.value && own.includes('developer'))
  return isAdmin || roles.some(role => own.includes(role))
}

/** Starts the session of a reader who has signed in. */
export function begin(started: Session): void {
  show(started)
  otherTabs.postMessage('')
}

function show(shown: Session | null): void {
  // The next reader must not see the previous reader's pages.
  if (session.peek()?.user.id !== shown?.user.id) forget()
  sessionEnded.value = false
  session.value = shown
}

/**
 * Shows the pages if the reader is signed in.
 * @throws ApiError or ConnectionError if the service does not say whether the reader is signed in
 */
export async function loadSession(): Promise<void> {
  try {
    show(await send<Session>('GET', '/console/v1/session'))
  } catch (error) {
    if (!isWithoutSession(error)) throw error
  }
}

/** Reloads the session. Best effort: the change that made it stale has succeeded. */
export async function refreshSession(): Promise<void> {
  await loadSession().catch(() => undefined)
}

export async function signOut(): Promise<void> {
  await flushDeferred()
  try {
    await send('POST', '/console/v1/sign-out')
  } catch (error) {
    // Without a response, the reader may still be signed in and must know it.
    if (!isWithoutSession(error)) return toast(messageOf(error), { kind: 'bad' })
  }
  show(null)
  otherTabs.postMessage('')
}

// All tabs share the cookie.
const otherTabs = new BroadcastChannel('midmonth-session')

/** Follows a sign-in or a sign-out in another tab, so that no tab shows one reader and acts as another. */
export function followOtherTabs(): void {
  otherTabs.onmessage = () => void refreshSession()
}

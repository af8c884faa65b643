import { computed, signal } from '@preact/signals'
import { partnerId, send, sessionEnded } from './api.ts'

export type Role = 'admin' | 'payroll' | 'support' | 'developer' | 'viewer'
type PartnerOfUser = { id: string; name: string; roles: Role[] }
export type Session = {
  user: { id: string; name: string; email: string; hasTotp: boolean }
  mode: 'sandbox' | 'live'
  isOperator: boolean
  partners: PartnerOfUser[]
  idleExpiresAt: string
  expiresAt: string
}

/** Undefined until the first answer, null if the reader is not signed in. */
export const session = signal<Session | null | undefined>(undefined)

const partner = computed(() => session.value?.partners.find(({ id }) => id === partnerId.value))
export const isSandbox = computed(() => session.value?.mode === 'sandbox')

/** Whether the reader has one of the roles for the partner shown. The server decides; this only hides what it would refuse. */
export function may(...roles: Role[]): boolean {
  if (session.value?.isOperator) return true
  const own = partner.value?.roles ?? []
  // On a sandbox, developers may do what an admin may.
  const isAdmin = own.includes('admin') || (isSandbox.value && own.includes('developer'))
  return isAdmin || roles.some(role => own.includes(role))
}

export function begin(started: Session): void {
  sessionEnded.value = false
  session.value = started
}

export async function loadSession(): Promise<void> {
  try {
    begin(await send<Session>('GET', '/console/v1/session'))
  } catch {
    session.value = null
  }
}

export async function signOut(): Promise<void> {
  await send('POST', '/console/v1/sign-out').catch(() => undefined)
  session.value = null
}

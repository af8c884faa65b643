import { randomBytes } from 'node:crypto'
import type { Role } from '../../src/users/roles.ts'
import { createSession } from '../../src/users/sessions.ts'
import { addRoles, createUser } from '../../src/users/users.ts'
import type { Harness } from '../harness.ts'

/** Modules of the console are loaded once, so this is the address of each of them. */
const origin = 'https://console.example'

export type Browser = {
  /** Signs a new user in, whose cookie later requests have. */
  signIn(reader: { roles?: readonly Role[]; partnerId?: string; isOperator?: boolean }): Promise<{ userId: string }>
  signOut(): void
  /** Lets the next requests take effect and loses their answers, the SDK’s second attempt included. */
  loseAnswers(count?: number): void
  /** Requests that were sent, such as `POST /v1/members`. */
  sent: { request: string; partner: string | null; isKeptAlive: boolean }[]
  close(): void
}

/** Stands in for a browser: its globals, as far as the logic of the console needs them, with requests to the real service. */
export function openBrowser(harness: Harness, address: string): Browser {
  const real = { fetch: globalThis.fetch }
  const storage = new Map<string, string>()
  const globals = {
    location: { origin, pathname: '/console' },
    sessionStorage: {
      getItem: (name: string) => storage.get(name) ?? null,
      setItem: (name: string, value: string) => storage.set(name, value),
      removeItem: (name: string) => storage.delete(name),
    },
    fetch: send,
  }
  const before = new Map(Object.keys(globals).map(name => [name, Object.getOwnPropertyDescriptor(globalThis, name)]))
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })

  let cookie = ''
  let lost = 0
  const sent: Browser['sent'] = []

  async function send(input: string, init: RequestInit = {}): Promise<Response> {
    const { pathname, search } = new URL(input, origin)
    const headers = new Headers(init.headers)
    const partner = headers.get('openwage-partner')
    sent.push({ request: `${init.method} ${pathname}`, partner, isKeptAlive: init.keepalive === true })
    headers.set('cookie', cookie)
    headers.set('origin', address)
    headers.set('sec-fetch-site', 'same-origin')
    const response = await real.fetch(address + pathname + search, { ...init, headers })
    if (lost === 0) return response
    lost--
    await response.arrayBuffer()
    throw new TypeError('Failed to fetch')
  }

  return {
    sent,
    async signIn({ roles = [], partnerId = harness.partner.id, isOperator = false }) {
      const { db, mode, clock } = harness
      const now = clock.now()
      const { token, userId } = await db.transaction().execute(async tx => {
        const email = `${randomBytes(4).toString('hex')}@console.example`
        const { id } = await createUser(tx, { email, name: 'Dana Reyes', isOperator, now })
        if (roles.length > 0) await addRoles(tx, { userId: id, partnerId, roles })
        const from = { address: '127.0.0.1', userAgent: 'Chromium' }
        const { token } = await createSession(tx, { userId: id, mode, method: 'password', ...from, now })
        return { token, userId: id }
      })
      cookie = `openwage-console=${token}`
      return { userId }
    },
    signOut() {
      cookie = ''
    },
    loseAnswers(count = 2) {
      lost = count
    },
    close() {
      for (const [name, descriptor] of before) {
        if (descriptor === undefined) Reflect.deleteProperty(globalThis, name)
        else Object.defineProperty(globalThis, name, descriptor)
      }
    },
  }
}

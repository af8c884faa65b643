import { signIn } from '../harness/console.ts'
import type { Harness } from '../harness/harness.ts'

/** The console's modules read the origin once when they are loaded, so every browser has the same. */
const origin = 'https://console.example'

export type Browser = {
  /** Signs in a new user. Later requests send the cookie. */
  signIn(reader: Parameters<typeof signIn>[1]): Promise<void>
  signOut(): void
  /** Lets the next requests take effect but loses their responses, including those of the SDK’s second attempts. */
  loseAnswers(count?: number): void
  /** The requests that were sent, such as `POST /v1/members`. */
  sent: { request: string; partner: string | null; isKeptAlive: boolean }[]
  close(): void
}

/** Simulates a browser: provides the globals that the console's logic needs, and sends requests to the real service. */
export function openBrowser(harness: Harness, address: string): Browser {
  const realFetch = globalThis.fetch
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
    const partner = headers.get('midmonth-partner')
    sent.push({ request: `${init.method} ${pathname}`, partner, isKeptAlive: init.keepalive === true })
    headers.set('cookie', cookie)
    headers.set('origin', address)
    headers.set('sec-fetch-site', 'same-origin')
    const response = await realFetch(address + pathname + search, { ...init, headers })
    if (lost === 0) return response
    lost--
    await response.arrayBuffer()
    throw new TypeError('Failed to fetch')
  }

  return {
    sent,
    async signIn(reader) {
      const { token } = await signIn(harness, reader)
      cookie = `midmonth-console=${token}`
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

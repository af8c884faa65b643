import { hashPassword } from '../../src/users/passwords.ts'
import type { Role } from '../../src/users/roles.ts'
import { createSession } from '../../src/users/sessions.ts'
import { addRoles, createUser, type User } from '../../src/users/users.ts'
import type { ApiResponse, Call } from './api-response.ts'
import type { Harness } from './harness.ts'

/** A user who is signed in to the console of a harness. */
export type ConsoleUser = {
  user: User
  /** The value of the session cookie. */
  token: string
  /** Calls the server like a page of the console: with the cookie, from the server's own origin, for a partner. */
  call(method: string, path: string, options?: Omit<Call, 'key'> & { partner?: string | null }): Promise<ApiResponse>
}

/** The origin of requests that a harness injects. */
export const ownOrigin = 'http://localhost'
let count = 0

/**
 * Creates a user and signs them in.
 * @param options.partnerId the partner of `roles`, and of requests that do not name another; by default the harness's partner
 */
export async function signIn(
  harness: Harness,
  {
    isOperator = false,
    roles = [],
    partnerId = harness.partner.id,
    password,
  }: { isOperator?: boolean; roles?: readonly Role[]; partnerId?: string; password?: string } = {},
): Promise<ConsoleUser> {
  const { db, mode, clock } = harness
  const now = clock.now()
  count += 1
  const passwordHash = password === undefined ? null : await hashPassword(password)
  const { user, token } = await db.transaction().execute(async tx => {
    const email = `user-${count}@console.example`
    const user = await createUser(tx, { email, name: `User ${count}`, isOperator, passwordHash, now })
    await addRoles(tx, { userId: user.id, partnerId, roles })
    const from = { address: '127.0.0.1', userAgent: 'a test' }
    return { user, ...(await createSession(tx, { userId: user.id, mode, method: 'password', ...from, now })) }
  })
  return {
    user,
    token,
    call: (method, path, { partner = partnerId, headers, ...rest } = {}) =>
      harness.call(method, path, {
        key: null,
        headers: { ...pageHeaders(token), ...(partner === null ? {} : { 'midmonth-partner': partner }), ...headers },
        ...rest,
      }),
  }
}

/** The headers that a browser sends with a request from a page of the console. */
export function pageHeaders(token?: string): Record<string, string> {
  return {
    host: new URL(ownOrigin).host,
    origin: ownOrigin,
    'sec-fetch-site': 'same-origin',
    ...(token === undefined ? {} : { cookie: `midmonth-console=${token}` }),
  }
}

/** A browser that calls a harness and keeps its cookies. */
export class Browser {
  readonly #harness: Harness
  readonly #address: string
  readonly cookies = new Map<string, string>()

  constructor(harness: Harness, { address = '127.0.0.1' }: { address?: string } = {}) {
    this.#harness = harness
    this.#address = address
  }

  async call(
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    url: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await this.#harness.app.inject({
      method,
      url,
      remoteAddress: this.#address,
      headers: {
        ...pageHeaders(),
        ...(cookie === '' ? {} : { cookie }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    const given = [response.headers['set-cookie'] ?? []].flat()
    for (const each of given) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    const { statusCode: status, headers: answered } = response
    const isJson = /json/.test(String(answered['content-type']))
    return { status, headers: answered, setCookies: given, body: isJson ? response.json() : response.body }
  }
}

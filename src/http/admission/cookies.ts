import type { FastifyRequest } from 'fastify'

/**
 * The names of a cookie. Over https, the name has the prefix that browsers accept only if no other host or path could have set the
 * cookie. Over plain http, which is allowed only on this machine, browsers refuse the prefix.
 */
type CookieName = { secure: string; loopback: string }

type Connection = Pick<FastifyRequest, 'protocol' | 'headers'>

/** Holds the token of a user's session. */
export const sessionCookie: CookieName = { secure: '__Host-midmonth', loopback: 'midmonth-console' }

/** Holds the token of a browser that a user has signed in with before. */
export const browserCookie: CookieName = { secure: '__Host-midmonth-browser', loopback: 'midmonth-browser' }

/** Whether the browser reached this server over https, as far as the server can tell. */
export function isSecure(request: Connection, publicUrl: string | undefined): boolean {
  return publicUrl === undefined ? request.protocol === 'https' : publicUrl.startsWith('https:')
}

/** The value of a cookie. Over https only the prefixed name counts, because another host could have set any other cookie. */
export function readCookie(
  request: Connection,
  { secure, loopback }: CookieName,
  publicUrl: string | undefined,
): string | undefined {
  const name = isSecure(request, publicUrl) ? secure : loopback
  const { cookie = '' } = request.headers
  for (const pair of cookie.split(';')) {
    const at = pair.indexOf('=')
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim()
  }
  return undefined
}

type NewCookie = {
  name: CookieName
  value: string
  seconds?: number
  sameSite?: 'Strict' | 'Lax'
  publicUrl: string | undefined
}

/**
 * The value of a `set-cookie` header.
 * @param options.seconds when the browser drops the cookie; by default, when the browser closes
 */
export function cookieOf(
  request: Connection,
  { name, value, seconds, sameSite = 'Strict', publicUrl }: NewCookie,
): string {
  const secure = isSecure(request, publicUrl)
  const attributes = ['Path=/', 'HttpOnly', `SameSite=${sameSite}`]
  if (secure) attributes.push('Secure')
  if (seconds !== undefined) attributes.push(`Max-Age=${seconds}`)
  return [`${secure ? name.secure : name.loopback}=${value}`, ...attributes].join('; ')
}

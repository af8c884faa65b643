import { isIP } from 'node:net'
import { problem } from '../../kernel/errors.ts'
import { browserLifeMs } from '../../users/browsers.ts'
import type { NewSession, Origin } from '../../users/sign-in.ts'
import { browserCookie, cookieOf, isSecure, readCookie, sessionCookie } from '../admission/cookies.ts'
import type { Call } from '../operation.ts'
import { networkOf } from '../server/rate-limit.ts'

/** A call from a browser. */
type BrowserCall = Pick<Call, 'browser' | 'context'>

/** The origin of a console request, for sessions and the audit log. */
export function originOf({ browser, context: { publicUrl, sealer } }: BrowserCall): Origin {
  return {
    address: browser.ip,
    network: networkOf(browser.ip),
    requestId: browser.id,
    userAgent: browser.headers['user-agent'],
    browserToken: readCookie(browser, browserCookie, publicUrl),
    browserKey: sealer.browserKey,
  }
}

/**
 * The cookies that sign the browser in. The browser drops the session's cookie when it closes; the server ends the session at its
 * expiry.
 */
export function sessionCookies(
  { browser, context: { publicUrl } }: BrowserCall,
  { token, browserToken }: Pick<NewSession, 'token' | 'browserToken'>,
): string[] {
  return [
    cookieOf(browser, { name: sessionCookie, value: token, publicUrl }),
    cookieOf(browser, {
      name: browserCookie,
      value: browserToken,
      seconds: browserLifeMs / 1_000,
      // Also sent with the navigation back from an OpenID provider, which would otherwise have a stranger's limit. Grants no access.
      sameSite: 'Lax',
      publicUrl,
    }),
  ]
}

/** The cookie that signs the browser out. */
export function endedSessionCookie({ browser, context: { publicUrl } }: BrowserCall): string {
  return cookieOf(browser, { name: sessionCookie, value: '', seconds: 0, publicUrl })
}

/**
 * Refuses to send a session over a connection that others can read.
 * @throws Problem `Forbidden`
 */
export function requirePrivateConnection({ browser, context: { publicUrl } }: BrowserCall): void {
  if (isSecure(browser, publicUrl)) return
  if (isLoopback(browser.ip) && isLoopback(browser.hostname.replace(/^\[|\]$/g, ''))) return
  throw problem(
    'Forbidden',
    'Signing in needs https: set MIDMONTH_PUBLIC_URL to the https address of the proxy, or open the console on this machine',
  )
}

/** Whether an address, or the host of a URL, means this machine. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^::ffff:/, '')
  return host === 'localhost' || host === '::1' || (isIP(bare) === 4 && bare.startsWith('127.'))
}

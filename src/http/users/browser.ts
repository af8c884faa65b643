import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../../kernel/errors.ts'
import { browserLifeMs } from '../../users/browsers.ts'
import type { NewSession, Origin } from '../../users/sign-in.ts'
import { browserCookie, isSecure, readCookie, sessionCookie, setCookie } from '../admission/cookies.ts'
import { networkOf } from '../server/rate-limit.ts'

/** The origin of a console request, for sessions and the audit log. */
export function originOf(request: FastifyRequest, publicUrl: string | undefined): Origin {
  return {
    address: request.ip,
    network: networkOf(request.ip),
    requestId: request.id,
    userAgent: request.headers['user-agent'],
    browserToken: readCookie(request, browserCookie, publicUrl),
    browserKey: request.server.sealer.browserKey,
  }
}

/** Signs the browser in. The browser drops the session's cookie when it closes; the server ends the session at its expiry. */
export function setSessionCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  { token, browserToken, publicUrl }: Pick<NewSession, 'token' | 'browserToken'> & { publicUrl: string | undefined },
): void {
  setCookie(request, reply, { name: sessionCookie, value: token, publicUrl })
  setCookie(request, reply, {
    name: browserCookie,
    value: browserToken,
    seconds: browserLifeMs / 1_000,
    // Also sent with the navigation back from an OpenID provider, which would otherwise have a stranger's limit. Grants no access.
    sameSite: 'Lax',
    publicUrl,
  })
}

export function removeSessionCookie(request: FastifyRequest, reply: FastifyReply, publicUrl: string | undefined): void {
  setCookie(request, reply, { name: sessionCookie, value: '', seconds: 0, publicUrl })
}

/**
 * Refuses to send a session over a connection that others can read.
 * @throws Problem `Forbidden`
 */
export function requirePrivateConnection(request: FastifyRequest, publicUrl: string | undefined): void {
  if (isSecure(request, publicUrl)) return
  if (isLoopback(request.ip) && isLoopback(request.hostname.replace(/^\[|\]$/g, ''))) return
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

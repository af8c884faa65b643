import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { problem } from '../../kernel/errors.ts'
import { hasOperator } from '../../users/accounts.ts'
import { type OidcFault, type OidcFlow, OidcProblem, OidcProvider, signInByIdentity } from '../../users/oidc.ts'
import { readCookie, setCookie } from '../admission/cookies.ts'
import { ownOrigin } from '../admission/session-admission.ts'
import type { ApiContext, App } from '../server/server.ts'
import { originOf, requirePrivateConnection, setSessionCookie } from './browser.ts'
import { hiddenOperation } from './hidden-operation.ts'

// `Lax`, because the provider sends the browser back from its own site. Useless without the provider's response.
const flowCookie = { secure: '__Host-midmonth-oidc', loopback: 'midmonth-oidc' }
// Long enough to find the second factor for the provider.
const flowSeconds = 600

/**
 * Signing in through the OpenID provider. The browser navigates to these two routes from the console and from the provider, so they
 * respond with redirects and do not require a page of this server as the origin: the state in the cookie replaces that check.
 */
export function oidcRoutes(app: App, { db, mode, publicUrl, log, console: settings }: ApiContext): void {
  const provider = settings?.oidc == null ? undefined : new OidcProvider(settings.oidc)
  const { hide } = hiddenOperation({ id: 'oidc' })
  // Each request calls the provider, so a single network could use up the provider's limit for this service.
  const config = { console: 'visitor' } as const

  // A claimed live installation stays claimed: its last operator cannot be disabled.
  let isClaimed = mode === 'sandbox'
  app.get('/console/v1/sign-in', { schema: { hide } }, async () => {
    isClaimed ||= await hasOperator(db)
    return { hasPassword: true, hasOidc: provider !== undefined, needsSetUp: !isClaimed }
  })

  app.get('/console/v1/oidc/start', { config, schema: { hide } }, async (request, reply) => {
    requirePrivateConnection(request, publicUrl)
    if (provider === undefined) throw problem('UnknownPath', 'No OpenID provider is set up')
    try {
      const { url, flow } = await provider.start({ redirectUri: redirectUri(request), now: request.receivedAt })
      const value = Buffer.from(JSON.stringify(flow)).toString('base64url')
      setCookie(request, reply, { name: flowCookie, value, seconds: flowSeconds, sameSite: 'Lax', publicUrl })
      return reply.redirect(url.href, 303)
    } catch (error) {
      return backToSignIn(reply, error)
    }
  })

  app.get(
    '/console/v1/oidc/callback',
    { config, schema: { hide, querystring: Type.Record(Type.String(), Type.Unknown()) } },
    async (request, reply) => {
      requirePrivateConnection(request, publicUrl)
      if (provider === undefined) throw problem('UnknownPath', 'No OpenID provider is set up')
      const { receivedAt: now } = request
      const flow = readFlow(readCookie(request, flowCookie, publicUrl))
      setCookie(request, reply, { name: flowCookie, value: '', seconds: 0, sameSite: 'Lax', publicUrl })
      try {
        if (flow === undefined) throw new OidcProblem('provider', 'The browser did not start this sign-in')
        const url = new URL(redirectUri(request))
        url.search = request.url.slice(request.url.indexOf('?') + 1)
        const identity = await provider.finish({ url, flow, now })
        const { rolesOfGroups } = provider.settings
        const from = originOf(request, publicUrl)
        const created = await signInByIdentity(db, { identity, rolesOfGroups, from, mode, now })
        setSessionCookie(request, reply, { ...created, publicUrl })
        return reply.redirect('/console', 303)
      } catch (error) {
        return backToSignIn(reply, error)
      }
    },
  )

  function redirectUri(request: FastifyRequest): string {
    return `${ownOrigin(request, publicUrl)}/console/v1/oidc/callback`
  }

  /** The user sees this response, so it redirects to the sign-in page, which explains the fault. */
  function backToSignIn(reply: FastifyReply, error: unknown): FastifyReply {
    if (!(error instanceof OidcProblem)) throw error
    log.warn({ err: error, requestId: reply.request.id }, 'sign-in through the OpenID provider failed')
    return reply.redirect(`/console/sign-in?fault=${error.fault satisfies OidcFault}`, 303)
  }
}

/** Returns undefined unless the cookie is one that `start` has set. */
function readFlow(cookie: string | undefined): OidcFlow | undefined {
  if (cookie === undefined || cookie.length > 1_000) return undefined
  try {
    const { state, nonce, verifier } = JSON.parse(Buffer.from(cookie, 'base64url').toString()) as Partial<OidcFlow>
    if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string') return undefined
    return { state, nonce, verifier }
  } catch {
    return undefined
  }
}

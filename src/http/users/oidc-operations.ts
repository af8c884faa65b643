import { Type } from 'typebox'
import { problem } from '../../kernel/errors.ts'
import { type OidcFault, type OidcFlow, OidcProblem, type OidcProvider, signInByIdentity } from '../../users/oidc.ts'
import { cookieOf, readCookie } from '../admission/cookies.ts'
import { type Call, named, type OperationResponse, operationsOn } from '../operation.ts'
import { originOf, requirePrivateConnection, sessionCookies } from './browser.ts'
import type { SignInContext } from './operation-context.ts'

const { consoleOperation } = operationsOn<SignInContext>()

// `Lax`, because the provider sends the browser back from its own site. Useless without the provider's response.
const flowCookie = { name: { secure: '__Host-midmonth-oidc', loopback: 'midmonth-oidc' }, sameSite: 'Lax' } as const
// Long enough to find the second factor for the provider.
const flowSeconds = 600

// A provider adds its own parameters to the addresses that it sends a browser to.
const AnyQuery = Type.Record(Type.String(), Type.Unknown())

const getSignIn = consoleOperation({
  route: 'GET /console/v1/sign-in',
  query: AnyQuery,
  isPublic: true,
  async read(_, { context: { oidc, isClaimed } }) {
    return { body: { hasPassword: true, hasOidc: oidc !== undefined, needsSetUp: !(await isClaimed()) } }
  },
})

// Each request of a `visitor` calls the provider, so a single network could use up the provider's limit for this service.
const startOidc = consoleOperation({
  route: 'GET /console/v1/oidc/start',
  console: 'visitor',
  query: AnyQuery,
  async read(_, call) {
    const provider = providerOf(call)
    const { browser, context } = call
    try {
      const { url, flow } = await provider.start({ redirectUri: redirectUri(call), now: call.receivedAt })
      const value = Buffer.from(JSON.stringify(flow)).toString('base64url')
      const { publicUrl } = context
      return redirect(url.href, [cookieOf(browser, { ...flowCookie, value, seconds: flowSeconds, publicUrl })])
    } catch (error) {
      return backToSignIn(call, error, [])
    }
  },
})

const finishOidc = consoleOperation({
  route: 'GET /console/v1/oidc/callback',
  console: 'visitor',
  query: AnyQuery,
  async read(_, call) {
    const provider = providerOf(call)
    const { browser, receivedAt: now } = call
    const { db, mode, publicUrl } = call.context
    const flow = readFlow(readCookie(browser, flowCookie.name, publicUrl))
    const endedFlow = cookieOf(browser, { ...flowCookie, value: '', seconds: 0, publicUrl })
    try {
      if (flow === undefined) throw new OidcProblem('provider', 'The browser did not start this sign-in')
      const url = new URL(redirectUri(call))
      url.search = browser.url.slice(browser.url.indexOf('?') + 1)
      const identity = await provider.finish({ url, flow, now })
      const { rolesOfGroups } = provider.settings
      const created = await signInByIdentity(db, { identity, rolesOfGroups, from: originOf(call), mode, now })
      return redirect('/console', [endedFlow, ...sessionCookies(call, created)])
    } catch (error) {
      return backToSignIn(call, error, [endedFlow])
    }
  },
})

/**
 * Signing in through the OpenID provider. The browser navigates to `start` and `callback` from the console and from the provider, so
 * they respond with redirects and do not require a page of this server as the origin: the state in the cookie replaces that check.
 */
export const oidcOperations = named({ getSignIn, startOidc, finishOidc })

type SignInCall = Pick<Call<unknown, unknown, unknown, SignInContext>, 'browser' | 'context' | 'ownOrigin'>

/** @throws Problem `Forbidden` over a connection that others can read, `UnknownPath` without a provider */
function providerOf(call: SignInCall): OidcProvider {
  requirePrivateConnection(call)
  const { oidc } = call.context
  if (oidc === undefined) throw problem('UnknownPath', 'No OpenID provider is set up')
  return oidc
}

function redirectUri({ ownOrigin }: SignInCall): string {
  return `${ownOrigin}/console/v1/oidc/callback`
}

/** The user sees this response, so it redirects to the sign-in page, which explains the fault. */
function backToSignIn({ browser, context: { log } }: SignInCall, error: unknown, cookies: string[]): OperationResponse {
  if (!(error instanceof OidcProblem)) throw error
  log.warn({ err: error, requestId: browser.id }, 'sign-in through the OpenID provider failed')
  return redirect(`/console/sign-in?fault=${error.fault satisfies OidcFault}`, cookies)
}

function redirect(location: string, cookies: string[]): OperationResponse {
  return { status: 303, body: undefined, headers: { location, 'set-cookie': cookies } }
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

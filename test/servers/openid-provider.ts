import { createHash, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

/** The claims about the next person who signs in, and a fault of the provider. */
export type Person = {
  subject: string
  claims?: JWTPayload
  /** Replaces the nonce, issuer or audience of the ID token, or signs it with a key that the provider does not publish. */
  wrong?: 'nonce' | 'issuer' | 'audience' | 'key' | 'expired'
}

/**
 * Starts an OpenID provider: discovery, keys, and the authorization code flow with PKCE. It has no pages: `authorize` acts for
 * the person.
 */
export async function startOpenIdProvider({ clientId, clientSecret }: { clientId: string; clientSecret: string }) {
  const [published, foreign] = await Promise.all([generateKeyPair('RS256'), generateKeyPair('RS256')])
  const jwk = { ...(await exportJWK(published.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }
  const codes = new Map<string, { person: Person; query: URLSearchParams }>()
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', issuer)
    let body = ''
    for await (const chunk of request) body += chunk
    const answer =
      pathname === '/.well-known/openid-configuration'
        ? { status: 200, json: configuration() }
        : pathname === '/keys'
          ? { status: 200, json: { keys: [jwk] } }
          : await token(new URLSearchParams(body), request.headers.authorization)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.json))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  function configuration() {
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
    }
  }

  async function token(form: URLSearchParams, authorization: string | undefined) {
    const found = codes.get(form.get('code') ?? '')
    codes.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isClient = authorization === `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    const { person, query } = found ?? {}
    if (person === undefined || !isClient || challenge !== query?.get('code_challenge'))
      return { status: 400, json: { error: 'invalid_grant' } }
    const { wrong } = person
    const idToken = await new SignJWT({
      ...person.claims,
      nonce: wrong === 'nonce' ? 'another' : (query.get('nonce') ?? ''),
    })
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .setIssuer(wrong === 'issuer' ? 'http://evil.example' : issuer)
      .setAudience(wrong === 'audience' ? 'another-client' : clientId)
      .setSubject(person.subject)
      .setIssuedAt(wrong === 'expired' ? '2 hours ago' : undefined)
      .setExpirationTime(wrong === 'expired' ? '1 hour ago' : '5 minutes')
      .sign(wrong === 'key' ? foreign.privateKey : published.privateKey)
    return { status: 200, json: { access_token: randomUUID(), token_type: 'Bearer', id_token: idToken } }
  }

  return {
    issuer,
    /** Signs the person in at the address that the browser was sent to. @returns where the provider sends the browser */
    authorize(location: string, person: Person): URL {
      const { searchParams: query } = new URL(location)
      const code = randomUUID()
      codes.set(code, { person, query })
      const back = new URL(query.get('redirect_uri') ?? '')
      back.searchParams.set('code', code)
      back.searchParams.set('state', query.get('state') ?? '')
      return back
    },
    stop: () => new Promise<void>(resolve => server.close(() => resolve())),
  }
}

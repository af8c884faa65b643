import * as openid from 'openid-client'
import * as auditLog from '../audit-log/audit-log.ts'
import { type Db, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { lockByName } from '../database/named-locks.ts'
import { findPartner, type Mode } from '../partners/partners.ts'
import { findByIdentity, findLinkedByEmail, type Identity } from './identities.ts'
import { accept, invitationsOf } from './invitations.ts'
import { endAccess, endPowers } from './rights.ts'
import type { Role } from './roles.ts'
import { actorOfUser, type NewSession, type Origin, openSession, recordFailure } from './sign-in.ts'
import {
  addRoles,
  canonicalEmail,
  createUser,
  emailLengthMax,
  emailPattern,
  findByEmail,
  findUser,
  rolesByPartner,
  type User,
} from './users.ts'

/** Grants of a group: all partners, or a role with one. */
export type Grant = 'operator' | { partnerId: string; role: Role }

/**
 * The OpenID provider of the installation.
 * @property groupsClaim the claim of the ID token that lists the user's groups
 * @property rolesOfGroups decides about all roles at each sign-in; null if roles are given in the console
 */
export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret: string
  groupsClaim: string
  rolesOfGroups: ReadonlyMap<string, readonly Grant[]> | null
}

/** The values that the browser keeps while the user is at the provider. */
export type OidcFlow = { state: string; nonce: string; verifier: string }

/** Why a sign-in through the provider failed, as reported to the console. */
export const oidcFaults = ['provider', 'no_account', 'no_role', 'last_operator', 'other_identity'] as const
export type OidcFault = (typeof oidcFaults)[number]

export class OidcProblem extends Error {
  readonly fault: OidcFault
  constructor(fault: OidcFault, message: string, cause?: unknown) {
    super(message, { cause })
    this.fault = fault
  }
}

const timeoutSeconds = 5
// How long the provider's metadata is used before it is read again.
const discoveredForMs = 3_600_000

/** Talks to the provider: authorization code flow with PKCE, state and nonce. */
export class OidcProvider {
  readonly settings: OidcSettings
  #discovered: { at: number; configuration: Promise<openid.Configuration> } | undefined

  constructor(settings: OidcSettings) {
    this.settings = settings
  }

  /** Starts a sign-in. @returns the URL of the provider to send the browser to */
  async start({ redirectUri, now }: { redirectUri: string; now: Date }): Promise<{ url: URL; flow: OidcFlow }> {
    const flow = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
    }
    const url = openid.buildAuthorizationUrl(await this.#discover(now), {
      redirect_uri: redirectUri,
      scope: 'openid email profile',
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: 'S256',
    })
    return { url, flow }
  }

  /**
   * Exchanges the code for the ID token, and checks its signature, issuer, audience, times and nonce.
   * @param url the URL of the callback, with the parameters that the provider added
   * @throws OidcProblem
   */
  async finish({ url, flow, now }: { url: URL; flow: OidcFlow; now: Date }): Promise<Identity> {
    try {
      const tokens = await openid.authorizationCodeGrant(await this.#discover(now), url, {
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        pkceCodeVerifier: flow.verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) throw new Error('The provider sent no ID token')
      return identityOf(claims, this.settings.groupsClaim)
    } catch (error) {
      throw new OidcProblem('provider', 'The OpenID provider did not confirm the sign-in', error)
    }
  }

  async #discover(now: Date): Promise<openid.Configuration> {
    const known = this.#discovered
    if (known !== undefined && Math.abs(now.getTime() - known.at) < discoveredForMs) return await known.configuration
    const { issuer, clientId, clientSecret } = this.settings
    // Plain http is accepted from the settings of a sandbox only.
    const insecure = new URL(issuer).protocol === 'http:' ? [openid.allowInsecureRequests] : []
    const configuration = openid.discovery(new URL(issuer), clientId, undefined, clientAuthOf(clientSecret), {
      timeout: timeoutSeconds,
      // The signature is also checked, although the token comes straight from the provider.
      execute: [openid.enableNonRepudiationChecks, ...insecure],
    })
    this.#discovered = { at: now.getTime(), configuration }
    try {
      return await configuration
    } catch (error) {
      this.#discovered = undefined
      throw new OidcProblem('provider', 'The OpenID provider cannot be reached', error)
    }
  }
}

// A client without a secret is public, and proves itself only by PKCE.
function clientAuthOf(secret: string): openid.ClientAuth {
  return secret === '' ? openid.None() : openid.ClientSecretBasic(secret)
}

function identityOf(claims: openid.IDToken, groupsClaim: string): Identity {
  const { iss, sub, email, email_verified: isVerified, name } = claims
  if (!subjectForm.test(sub)) throw new Error('The subject of the ID token has no form that OpenID Connect allows')
  const groups = claims[groupsClaim]
  const address = isVerified === true && isEmail(email) ? canonicalEmail(email) : null
  const shown = typeof name === 'string' ? name.replaceAll(/[\p{Cc}\p{Cs}\u2028-\u202e\u2066-\u2069]/gu, '').trim() : ''
  return {
    issuer: iss,
    subject: sub,
    email: address,
    name: shown === '' ? (address ?? sub) : [...shown].slice(0, 200).join(''),
    groups: Array.isArray(groups) ? groups.filter(group => typeof group === 'string') : [],
  }
}

// Source: OpenID Connect Core 1.0, section 2, "sub": at most 255 ASCII characters.
const subjectForm = /^[\x20-\x7e]{1,255}$/
const emailForm = new RegExp(emailPattern, 'u')

function isEmail(claim: unknown): claim is string {
  return typeof claim === 'string' && claim.length <= emailLengthMax && emailForm.test(claim)
}

type IdentitySignIn = {
  identity: Identity
  rolesOfGroups: OidcSettings['rolesOfGroups']
  from: Origin
  mode: Mode
  now: Date
}

/**
 * Signs in the user of an identity. A first sign-in finds the user by the verified e-mail address, or creates one; open
 * invitations to that address are accepted. A linked user is found only by the identity: an employer may give the address of a
 * person who has left to another.
 * @throws OidcProblem
 */
export async function signInByIdentity(
  db: Db,
  { identity, rolesOfGroups, from, mode, now }: IdentitySignIn,
): Promise<NewSession> {
  const grants = rolesOfGroups === null ? null : identity.groups.flatMap(group => rolesOfGroups.get(group) ?? [])
  const outcome = await db.transaction().execute(async tx => {
    // Two first sign-ins of one person create one user, even if the address has changed between them.
    await lockByName(tx, 'user', `${identity.issuer} ${identity.subject}`)
    if (identity.email !== null) await lockByName(tx, 'user', identity.email)
    const userId = await findByIdentity(tx, identity)
    if (userId === undefined && identity.email !== null) {
      const linked = await findLinkedByEmail(tx, identity.email)
      if (linked !== undefined) return { refusedFor: linked }
    }
    const mayCreate = grants !== null && grants.length > 0
    const user = await (userId === undefined
      ? linkOrCreate(tx, { identity, mayCreate, from, now })
      : requireEnabled(tx, userId))
    if (grants !== null) await applyGrants(tx, { user, grants, from, now })
    else await acceptInvitations(tx, { user, identity, from, now })
    const { isOperator } = (await findUser(tx, user.id)) ?? user
    if (!isOperator && (await rolesByPartner(tx, user.id)).size === 0)
      throw new OidcProblem('no_role', 'The user has no role here')
    return await openSession(tx, { userId: user.id, method: 'oidc', mode, from, now })
  })
  if (!('refusedFor' in outcome)) return outcome
  await recordFailure(db, { userId: outcome.refusedFor, reason: 'identity', from, now })
  throw new OidcProblem(
    'other_identity',
    'The user with this e-mail address is linked to another subject of the provider',
  )
}

/** @throws OidcProblem */
async function requireEnabled(tx: Tx, userId: string): Promise<User> {
  const user = await findUser(tx, userId)
  if (user === undefined) throw new OidcProblem('no_account', 'The user is disabled')
  return user
}

/** @throws OidcProblem */
async function linkOrCreate(
  tx: Tx,
  { identity, mayCreate, from, now }: { identity: Identity; mayCreate: boolean; from: Origin; now: Date },
): Promise<User> {
  const { issuer, subject, email, name } = identity
  if (email === null) throw new OidcProblem('no_account', 'The provider has not verified the e-mail address')
  const found = await findByEmail(tx, email)
  if (found === undefined && !mayCreate && !(await isInvited(tx, { email, now })))
    throw new OidcProblem('no_account', 'There is no user with this e-mail address')
  const user = found ?? (await create(tx, { email, name, from, now }))
  // The address is proved only now: until then, the user may have belonged to a person who merely knew the address.
  if (found !== undefined) {
    await sql`
      update users set password_hash = null, totp_secret = null, totp_confirmed_at = null, totp_last_step = null
       where id = ${user.id}`.execute(tx)
    await sql`delete from user_recovery_codes where user_id = ${user.id}`.execute(tx)
    await endAccess(tx, { userId: user.id, wasOperator: found.isOperator })
  }
  await tx.insertInto('userIdentities').values({ issuer, subject, userId: user.id, linkedAt: now }).execute()
  const change = { action: 'user.add_identity', resourceId: user.id, details: { issuer } } as const
  await auditLog.record(tx, { partnerId: null, actor: actorOfUser(user.id, from), change, now })
  return user
}

async function create(
  tx: Tx,
  { email, name, from, now }: { email: string; name: string; from: Origin; now: Date },
): Promise<User> {
  const user = await createUser(tx, { email, name, isOperator: false, now }).catch(error => {
    throw brokenConstraint(error) === 'one_user_per_email'
      ? new OidcProblem('no_account', 'The user is disabled')
      : error
  })
  const change = { action: 'user.create', resourceId: user.id, details: { by: 'oidc' } } as const
  await auditLog.record(tx, { partnerId: null, actor: actorOfUser(user.id, from), change, now })
  return user
}

/** Gives the user exactly what the groups grant. Sessions end if that changes anything. */
async function applyGrants(
  tx: Tx,
  { user, grants, from, now }: { user: User; grants: readonly Grant[]; from: Origin; now: Date },
): Promise<void> {
  const isOperator = grants.includes('operator')
  const before = await rolesByPartner(tx, user.id)
  const after = new Map<string, Role[]>()
  for (const grant of grants) {
    // The settings may name a partner of another installation.
    if (grant === 'operator' || (await findPartner(tx, grant.partnerId)) === undefined) continue
    after.set(grant.partnerId, [...new Set([...(after.get(grant.partnerId) ?? []), grant.role])].sort())
  }
  const inText = (held: Map<string, Role[]>) => Object.fromEntries([...held].sort())
  const changed = auditLog.differences(
    { isOperator: user.isOperator, roles: inText(before) },
    { isOperator, roles: inText(after) },
  )
  if (changed === null) return
  await sql`update users set is_operator = ${isOperator} where id = ${user.id}`.execute(tx).catch(error => {
    throw brokenConstraint(error) === 'an_operator_remains'
      ? new OidcProblem('last_operator', 'The groups would take the last operator away')
      : error
  })
  await tx.deleteFrom('userRoles').where('userId', '=', user.id).execute()
  for (const [partnerId, roles] of after) await addRoles(tx, { userId: user.id, partnerId, roles })
  await endPowers(tx, { userId: user.id, wasOperator: user.isOperator && !isOperator })
  const change = { action: 'user.set_roles', resourceId: user.id, details: { by: 'oidc', ...changed } } as const
  await auditLog.record(tx, { partnerId: null, actor: actorOfUser(user.id, from), change, now })
}

async function isInvited(tx: Tx, { email, now }: { email: string; now: Date }): Promise<boolean> {
  return (await invitationsOf(tx, { email, now })).length > 0
}

async function acceptInvitations(
  tx: Tx,
  { user, identity, from, now }: { user: User; identity: Identity; from: Origin; now: Date },
): Promise<void> {
  if (identity.email === null) return
  for (const invitation of await invitationsOf(tx, { email: identity.email, now }))
    await accept(tx, { invitation, userId: user.id, actor: actorOfUser(user.id, from), now })
}

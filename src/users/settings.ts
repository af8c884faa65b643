import { type Settings, SettingsProblem } from '../config.ts'
import type { OidcSettings } from './oidc.ts'
import { type Role, roles } from './roles.ts'

/** @property oidc null if users sign in with a password only */
export type ConsoleSettings = { oidc: OidcSettings | null }

/**
 * Reads the settings of signing in.
 * @throws SettingsProblem
 */
export function readConsoleSettings(settings: Settings): ConsoleSettings {
  return { oidc: readOidc(settings) }
}

function readOidc(settings: Settings): OidcSettings | null {
  const { MIDMONTH_OIDC_ISSUER: issuer, MIDMONTH_OIDC_CLIENT_ID: clientId } = settings
  if (issuer === '') return null
  if (clientId === '') throw new SettingsProblem('MIDMONTH_OIDC_ISSUER requires MIDMONTH_OIDC_CLIENT_ID')
  if (new URL(issuer).protocol === 'http:' && settings.MIDMONTH_MODE === 'live')
    throw new SettingsProblem('MIDMONTH_OIDC_ISSUER must begin with https:// in live mode')
  return {
    issuer,
    clientId,
    clientSecret: settings.MIDMONTH_OIDC_CLIENT_SECRET,
    groupsClaim: settings.MIDMONTH_OIDC_GROUPS_CLAIM,
    rolesOfGroups: settings.MIDMONTH_OIDC_ROLES === '' ? null : readGroups(settings.MIDMONTH_OIDC_ROLES),
  }
}

type Groups = NonNullable<OidcSettings['rolesOfGroups']>

function readGroups(text: string): Groups {
  const found = parse(text)
  if (typeof found !== 'object' || found === null || Array.isArray(found)) throw wrongGroups()
  return new Map(
    Object.entries(found).map(([group, given]: [string, unknown]) => {
      if (!Array.isArray(given)) throw wrongGroups()
      return [group, given.map(readGrant)]
    }),
  )
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw wrongGroups()
  }
}

function readGrant(text: unknown): 'operator' | { partnerId: string; role: Role } {
  if (text === 'operator') return text
  const [, name, partnerId] = /^([a-z]+)@(par_[0-9a-z]+)$/.exec(String(text)) ?? []
  const role = roles.find(each => each === name)
  if (role === undefined || partnerId === undefined) throw wrongGroups()
  return { partnerId, role }
}

function wrongGroups(): SettingsProblem {
  return new SettingsProblem(
    'MIDMONTH_OIDC_ROLES must be a JSON object of groups, like {"payroll-team":["payroll@par_…"],"operations":["operator"]}',
  )
}

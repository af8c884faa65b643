import { type Static, Type } from 'typebox'
import { strictObject } from '../../../kernel/schemas.ts'
import type { Mode } from '../../../partners/partners.ts'
import { Approval, type AutomaticApproval, faultsOfApproval, toAutomatic } from '../../books/automatic-approval.ts'
import { AbsolutePath } from '../../delivery/delivery.ts'
import { epcName } from '../../formats/sepa/names.ts'
import { RailName } from '../../payments/rail-name.ts'

const priorities = ['instant', 'fast', 'regular', 'wire'] as const
type Priority = (typeof priorities)[number]

/** A rail of Adyen's Transfers API in the file that MIDMONTH_RAILS names. Secrets are in files, never in the settings. */
export const AdyenRail = strictObject({
  name: RailName,
  type: Type.Literal('adyen'),
  currency: Type.Unsafe<'EUR' | 'GBP'>({ type: 'string', enum: ['EUR', 'GBP'] }),
  /** The account that pays for all partners. */
  balanceAccountId: Type.String({ pattern: '^[A-Za-z0-9]{1,64}$' }),
  apiKeyFile: AbsolutePath,
  approval: Approval,
  /** The priorities to try, in this order. */
  priorities: Type.Optional(
    Type.Array(Type.Unsafe<Priority>({ type: 'string', enum: [...priorities] }), {
      minItems: 1,
      maxItems: priorities.length,
      uniqueItems: true,
    }),
  ),
  /** Replaces the address of the vendor's service for the mode. */
  baseUrl: Type.Optional(Type.String({ pattern: '^https?://[^\\s?#@]+$', maxLength: 300 })),
  /** How the vendor's notifications are authenticated. Without it, none are accepted, and only polling finds returns. */
  notifications: Type.Optional(
    strictObject({
      /** Two keys during a rotation. */
      hmacKeyFiles: Type.Array(AbsolutePath, { minItems: 1, maxItems: 3 }),
      basicAuth: Type.Optional(
        strictObject({ username: Type.String({ pattern: '^[^:\\s]{1,100}$' }), passwordFile: AbsolutePath }),
      ),
    }),
  ),
})
export type AdyenRail = Static<typeof AdyenRail>

/** One configured rail of Adyen's Transfers API. */
export type AdyenSettings = {
  name: string
  currency: 'EUR' | 'GBP'
  balanceAccountId: string
  /** Without a trailing slash. */
  baseUrl: string
  /** The environment that notifications must name. */
  environment: 'test' | 'live'
  priorities: readonly Priority[]
  apiKeyFile: string
  /** Null: two people approve every batch. */
  automatic: AutomaticApproval | null
  /** The time zone of the days that the limits for automatic approval count. */
  timeZone: string
  notifications: NotificationSettings | null
  /** Writes the name of a payee in the characters that the vendor takes. */
  payeeName(accountHolder: string): string
}

export type NotificationSettings = {
  hmacKeyFiles: readonly string[]
  basicAuth: { username: string; passwordFile: string } | null
}

// Source: the OpenAPI document of the Transfers API, version 4.
const services: Record<Mode, string> = {
  sandbox: 'https://balanceplatform-api-test.adyen.com/btl/v4',
  live: 'https://balanceplatform-api-live.adyen.com/btl/v4',
}

// The time zones of the payment schemes: TARGET and the UK.
const timeZones = { EUR: 'Europe/Berlin', GBP: 'Europe/London' } as const

/** Only SEPA has instant payments; in the UK, `fast` is Faster Payments. The vendor falls back to the next priority. */
const defaultPriorities = { EUR: ['instant', 'regular'], GBP: ['fast', 'regular'] } as const

/** What the schema cannot say, and what does not fit the mode, a sentence each. */
export function faultsOf({ name, currency, priorities = [], baseUrl, approval }: AdyenRail, mode: Mode): string[] {
  return [
    ...(currency === 'GBP' && priorities.includes('instant')
      ? [`${name}: the priority instant is for euros; use fast`]
      : []),
    ...faultsOfApproval(name, approval),
    ...(baseUrl === undefined ? [] : faultsOfUrl(baseUrl, mode).map(fault => `${name}: baseUrl ${fault}`)),
  ]
}

/** The API key is sent to this address, and a sandbox must not move real money. */
function faultsOfUrl(text: string, mode: Mode): string[] {
  if (!URL.canParse(text)) return ['is not a URL']
  const { protocol, hostname } = new URL(text)
  const isAllowed = protocol === 'https:' || (mode === 'sandbox' && isLoopback(hostname))
  const other = new URL(services[mode === 'live' ? 'sandbox' : 'live']).hostname
  return [
    ...(isAllowed ? [] : [mode === 'live' ? 'must be https' : 'must be https, or http on this machine']),
    ...(hostname === other ? [`is not the service for a ${mode} installation`] : []),
  ]
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.[0-9]+\.[0-9]+\.[0-9]+$/.test(hostname)
}

export function toAdyenSettings(given: AdyenRail, mode: Mode): AdyenSettings {
  const { name, currency, balanceAccountId, apiKeyFile, approval, priorities, baseUrl, notifications } = given
  return {
    ...{ name, currency, balanceAccountId, apiKeyFile },
    baseUrl: (baseUrl ?? services[mode]).replace(/\/+$/, ''),
    environment: mode === 'live' ? 'live' : 'test',
    priorities: priorities ?? defaultPriorities[currency],
    automatic: toAutomatic(approval),
    timeZone: timeZones[currency],
    // The vendor's names allow what the EPC allows, and some more.
    payeeName: epcName,
    notifications:
      notifications === undefined
        ? null
        : { hmacKeyFiles: notifications.hmacKeyFiles, basicAuth: notifications.basicAuth ?? null },
  }
}

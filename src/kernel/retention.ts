import { Type } from 'typebox'

/**
 * What the worker removes, how many days after the fact, and why then. Settings, tasks, findings and the table in
 * docs/reference/retention.md derive from it. A kind without a setting is part of the contract with partners.
 */
export const retentionKinds = {
  unusedIntents: {
    what: 'withdrawal intents that never became a withdrawal',
    holds: 'amounts, the bank account at that time',
    after: 'they are created',
    days: 90,
    setting: { name: 'MIDMONTH_UNUSED_INTENT_DAYS', min: 7, max: 3_650 },
    reason: 'A pay cycle and its settlement are over by then, so no question about a refused withdrawal is left.',
  },
  memberImports: {
    what: 'the rows and results of member imports',
    holds: 'the whole profile of each row',
    after: 'the import ends',
    days: 30,
    setting: { name: 'MIDMONTH_MEMBER_IMPORT_DAYS', min: 1, max: 365 },
    reason: 'The next monthly list shows what the last one got wrong.',
  },
  replays: {
    what: 'responses that are stored for idempotency keys',
    holds: 'whatever the response has; sealed',
    after: 'the first request',
    days: 7,
    setting: null,
    reason: 'Partners may repeat a request for as long.',
  },
  requests: {
    what: 'the request log',
    holds: 'no personal data: method, path, status and ids',
    after: 'the request',
    days: 7,
    setting: { name: 'MIDMONTH_REQUEST_LOG_DAYS', min: 1, max: 90 },
    reason: 'An integration error is noticed within days, and a busy partner fills gigabytes a day.',
  },
  events: {
    what: 'the event feed',
    holds: 'no personal data, unless the partner puts it into metadata: ids, states and amounts',
    after: 'the event',
    days: 30,
    setting: null,
    reason: 'Partners may read the feed for as long. A month of events is dropped once all of it is older.',
  },
  webhookDeliveries: {
    what: 'webhook deliveries',
    holds: 'what the partner’s server responded, up to 16 KiB of each attempt',
    after: 'the event',
    days: 30,
    setting: { name: 'MIDMONTH_WEBHOOK_DELIVERY_DAYS', min: 7, max: 30 },
    reason: 'Retries last 5 days, and an event can be replayed for 30.',
  },
  auditAddresses: {
    what: 'the addresses in the audit log that changes and sign-ins came from',
    holds: 'IP addresses of users and servers',
    after: 'the entry',
    days: 90,
    setting: { name: 'MIDMONTH_AUDIT_ADDRESS_DAYS', min: 7, max: 3_650 },
    reason: 'An incident is followed up by then. The rest of an entry is kept for ever; see docs/operations/audit.md.',
  },
  disclosures: {
    what: 'entries of the audit log about reading bank accounts and dates of birth',
    holds: 'ids of keys, users and members, IP addresses',
    after: 'the entry',
    days: 180,
    setting: { name: 'MIDMONTH_DISCLOSURE_DAYS', min: 30, max: 3_650 },
    reason: 'A leak is often noticed months later, and a busy partner leaves a million entries a day.',
  },
  bankTexts: {
    what: 'the text of banks in payout exceptions',
    holds: 'whatever the bank wrote, such as names and accounts; sealed',
    after: 'the exception is closed',
    days: 400,
    setting: { name: 'MIDMONTH_BANK_TEXT_DAYS', min: 30, max: 3_650 },
    reason:
      'A payer can have a debit refunded as unauthorised for 13 months, and the bank then writes again. Amounts and references are kept for ever.',
  },
  archivedBankFiles: {
    what: 'the keys of bank files in the archives of rails',
    holds: 'names, accounts and amounts of payers and payees; sealed',
    after: 'the file is archived',
    days: 400,
    setting: { name: 'MIDMONTH_BANK_FILE_DAYS', min: 30, max: 3_650 },
    reason:
      'The same period as for the text of banks. Files that can no longer be opened stay in the folder until you delete them, and the bank has its own copies.',
  },
  paymentEvidence: {
    what: 'the keys that show to which accounts erased members were paid',
    holds: 'the bank account of each withdrawal; sealed',
    after: 'the last withdrawal',
    days: 2_192,
    setting: { name: 'MIDMONTH_PAYMENT_EVIDENCE_DAYS', min: 365, max: 7_305 },
    reason:
      'Tax authorities want records of payments for 6 years, the rules against money laundering for 5. A receipt of an erasure names the day that follows from the setting at that time.',
  },
} as const satisfies Record<string, Rule>

type Rule = {
  what: string
  holds: string
  after: string
  days: number
  setting: { name: `MIDMONTH_${string}_DAYS`; min: number; max: number } | null
  reason: string
}

export type RetentionKind = keyof typeof retentionKinds

/** How many days each kind is kept. */
export type Retention = { readonly [Kind in RetentionKind]: number }

const entries = Object.entries<Rule>(retentionKinds)

export const defaultRetention = Object.fromEntries(entries.map(([kind, { days }]) => [kind, days])) as Retention

type Setting = NonNullable<(typeof retentionKinds)[RetentionKind]['setting']>['name']
const settingOf = ({ what, after, days, setting, reason }: Rule) =>
  setting === null
    ? []
    : [
        [
          setting.name,
          Type.Integer({
            default: days,
            minimum: setting.min,
            maximum: setting.max,
            description: `How many days to keep ${what} after ${after}. ${reason}`,
          }),
        ] as const,
      ]

/** The settings, for the schema of all settings. */
export const retentionSettings = Object.fromEntries(entries.flatMap(([, rule]) => settingOf(rule))) as Record<
  Setting,
  ReturnType<typeof Type.Integer>
>

export function retentionOf(settings: { readonly [name in Setting]: number }): Retention {
  const days = ({ setting, days }: Rule) => (setting === null ? days : settings[setting.name as Setting])
  return Object.fromEntries(entries.map(([kind, rule]) => [kind, days(rule)])) as Retention
}

/** Data from before this instant is removed. */
export function keptSince(days: number, now: Date): Date {
  return new Date(now.getTime() - days * 86_400_000)
}

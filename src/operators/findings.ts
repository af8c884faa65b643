import type { Archiving } from '../database/durability.ts'
import type * as float from '../float/float.ts'
import { inWords } from '../money.ts'
import type { listValidKeys } from '../partners/api-keys.ts'
import type { Mode, PartnerState } from '../partners/partners.ts'
import type { RailHold } from '../payouts/rail-holds.ts'
import type { AdyenSettings } from '../payouts/rails/adyen/settings.ts'
import { daysLeft } from '../payouts/rails/calendars/calendar.ts'
import type { Batch } from '../payouts/rails/file/batches.ts'
import type { FileRailSettings } from '../payouts/rails/file/format.ts'
import { countOf } from '../text.ts'
import type { listInstant } from '../tiers/tiers.ts'
import { addDays, dayIn } from '../time.ts'
import type { listHealth } from '../webhooks/webhooks.ts'

const limits = {
  // A new version with the next list of bank holidays can be planned, tested and installed in a quarter.
  calendarDaysMin: 90,
  // A partner that rotates keys by hand needs a sprint or two.
  keyDaysMin: 30,
  // The slowest answers, Bacs returns, come two working days after the value date; a long weekend may lie between.
  answerDaysMax: 5,
}

/** `missing`: live mode cannot pay, or not every partner's members, until it is done. `hint`: what this program cannot see. */
type Level = 'missing' | 'warning' | 'hint' | 'ok'

/** A sentence for the operator, and the command that does it or says more. Capitals in a command are to be filled in. */
export type Finding = { check: string; level: Level; sentence: string; command: string | null }

type Found = Omit<Finding, 'check'>

/** What the environment says. */
export type SettingsFacts = {
  now: Date
  mode: Mode
  /** The path in OPENWAGE_RAILS; empty if it is not set. */
  railsFile: string
  /** Why the file cannot be used, or the rails in it. */
  rails: string | readonly FileRailSettings[]
  /** The rails of Adyen’s API, and why secrets of each cannot be used. */
  adyenRails: readonly (AdyenSettings & { faults: readonly string[] })[]
}

/** What the database says, as of one moment. */
export type DatabaseFacts = {
  isEmbedded: boolean
  /** What the role of the program may do beyond what it needs. */
  excess: string | undefined
  archiving: Archiving
  partners: readonly PartnerState[]
  floats: readonly Awaited<ReturnType<typeof float.listAll>>[number][]
  /** The tiers that ask for instant payouts. */
  instantTiers: Awaited<ReturnType<typeof listInstant>>
  keys: Awaited<ReturnType<typeof listValidKeys>>
  endpoints: Awaited<ReturnType<typeof listHealth>>
  workersAlive: number
  /** Batches that are not settled, newest first. */
  batches: readonly Batch[]
  heldRails: readonly RailHold[]
  openExceptions: number
}

/** Why the database cannot be looked at, and what to do. */
export type DatabaseFault = Pick<Finding, 'sentence' | 'command'>

type Facts = SettingsFacts & DatabaseFacts

/** One thing that live mode needs. `fine` is said if nothing is found. */
type Check<Needed> = { name: string; find: (facts: Needed) => Found[]; fine: (facts: Needed) => string }

/** Everything that is missing, might go wrong or is fine, most pressing first. */
export function diagnose(settings: SettingsFacts, database: DatabaseFacts | DatabaseFault): Finding[] {
  const findings =
    'sentence' in database
      ? [...settingsChecks.flatMap(check => run(check, settings)), { check: 'database', ...missing(database) }]
      : [
          ...settingsChecks.flatMap(check => run(check, settings)),
          ...databaseChecks.flatMap(check => run(check, { ...settings, ...database })),
        ]
  return levels.flatMap(level => findings.filter(each => each.level === level))
}

const levels = ['missing', 'warning', 'hint', 'ok'] as const

function run<Needed>({ name, find, fine }: Check<Needed>, facts: Needed): Finding[] {
  const found = find(facts)
  const all: Found[] = found.length > 0 ? found : [{ level: 'ok', sentence: fine(facts), command: null }]
  return all.map(each => ({ check: name, ...each }))
}

const missing = ({ sentence, command }: DatabaseFault): Found => ({ level: 'missing', sentence, command })
const warning = ({ sentence, command }: DatabaseFault): Found => ({ level: 'warning', sentence, command })
const hint = ({ sentence, command }: DatabaseFault): Found => ({ level: 'hint', sentence, command })

const settingsChecks: Check<SettingsFacts>[] = [
  {
    name: 'mode',
    find: ({ mode }) =>
      mode === 'live'
        ? []
        : [
            missing({
              sentence:
                'OPENWAGE_MODE is sandbox; live mode needs a separate database, because a database keeps its mode',
              command: 'export OPENWAGE_MODE=live',
            }),
          ],
    fine: () => 'OPENWAGE_MODE is live',
  },
  {
    name: 'rails',
    find: ({ railsFile, rails }) => {
      if (railsFile === '')
        return [
          missing({
            sentence: 'No bank is connected: OPENWAGE_RAILS names no file; see docs/guides/go-live.md',
            command: 'export OPENWAGE_RAILS=/etc/openwage/rails.json',
          }),
        ]
      return typeof rails === 'string' ? [missing({ sentence: rails, command: edit(railsFile) })] : []
    },
    fine: ({ rails, adyenRails }) =>
      [...railsOf({ rails }).map(railInWords), ...adyenRails.map(adyenInWords)].join('; '),
  },
  {
    name: 'calendars',
    find: ({ now, ...facts }) =>
      railsOf(facts).flatMap(({ name, calendar, timeZone }) => {
        if (calendar === null) return []
        const left = daysLeft(calendar, dayIn(timeZone, now))
        const command = 'git pull && npm install --omit=dev'
        const ends = `the ${calendar.name} calendar of the rail ${name}`
        if (left < 0)
          return [
            missing({
              sentence: `${capitalised(ends)} ended on ${calendar.validUntil}: update Openwage, or set closedDaysUntil`,
              command,
            }),
          ]
        if (left >= limits.calendarDaysMin) return []
        const sentence = `${capitalised(ends)} ends on ${calendar.validUntil}, in ${countOf(left, 'day')}: update Openwage, or set closedDaysUntil`
        return [warning({ sentence, command })]
      }),
    fine: facts => {
      const ends = railsOf(facts).flatMap(({ name, calendar }) =>
        calendar === null ? [] : [`the rail ${name} knows the banking days until ${calendar.validUntil}`],
      )
      return ends.length === 0 ? 'No rail needs banking days' : capitalised(ends.join('; '))
    },
  },
  {
    name: 'bank API',
    find: ({ adyenRails, railsFile }) =>
      adyenRails.flatMap(({ name, faults, notifications }) => [
        ...faults.map(fault =>
          missing({ sentence: `The rail ${name} cannot pay: ${fault}`, command: edit(railsFile) }),
        ),
        ...(notifications === null
          ? [
              warning({
                sentence: `The rail ${name} receives no notifications, so a returned payment is noticed hours later`,
                command: edit(railsFile),
              }),
            ]
          : []),
        hint({
          sentence: `The rail ${name} has not been run against Adyen’s live service by its authors; pay one cent first`,
          command: 'npx openwage payouts exceptions list',
        }),
      ]),
    fine: () => 'No rail uses an API',
  },
  {
    name: 'returns',
    find: ({ railsFile, ...facts }) =>
      railsOf(facts)
        .filter(({ format }) => !format.readsReturns)
        .map(({ name }) =>
          warning({
            sentence: `The rail ${name} has no setting returns, so a payment that comes back stays paid, and the member does not get the money again`,
            command: edit(railsFile),
          }),
        ),
    fine: () => 'Every rail reads which payments came back',
  },
  {
    name: 'approval',
    find: facts =>
      [...railsOf(facts), ...facts.adyenRails]
        .filter(({ automatic }) => automatic === null)
        .map(({ name }) =>
          hint({
            sentence: `The rail ${name} has no limits for automatic approval, so two people approve every batch`,
            command: 'npx openwage payouts list --status building',
          }),
        ),
    fine: facts =>
      [...railsOf(facts), ...facts.adyenRails]
        .flatMap(({ name, currency, automatic }) =>
          automatic === null
            ? []
            : [`Batches of ${name} up to ${inWords({ amount: automatic.batchMax, currency })} need no person`],
        )
        .join('; ') || 'No rail needs it',
  },
]

const databaseChecks: Check<Facts>[] = [
  {
    name: 'database',
    find: ({ isEmbedded }) =>
      isEmbedded
        ? [
            warning({
              sentence:
                'The database is the PostgreSQL that comes with Openwage, on this machine alone; use a server that you back up',
              command: 'export DATABASE_URL=postgres://openwage_app:PASSWORD@HOST/openwage',
            }),
          ]
        : [],
    fine: () => 'The server is durable, and the schema is up to date',
  },
  {
    name: 'role',
    find: ({ excess }) =>
      excess === undefined
        ? []
        : [
            warning({
              sentence: excess,
              command: 'DATABASE_OWNER_URL=postgres://openwage_owner:PASSWORD@HOST/openwage npx openwage migrate',
            }),
          ],
    fine: () => 'The program’s database role has no more rights than it needs',
  },
  { name: 'backups', find: ({ archiving }) => backupsOf(archiving), fine: backupsInWords },
  {
    name: 'partners',
    find: ({ partners, floats }) => {
      if (partners.length === 0)
        return [missing({ sentence: 'There is no partner', command: 'npx openwage partner create NAME' })]
      return served(partners).flatMap(partner => [
        ...(floats.some(each => each.partnerId === partner.id)
          ? []
          : [
              missing({
                sentence: `${labelOf(partner)} has no tier, so it cannot have members`,
                command: `npx openwage tier set ${partner.id} NAME --currency CURRENCY --fee AMOUNT --lower-limit AMOUNT --upper-limit AMOUNT`,
              }),
            ]),
        ...(partner.paused
          ? [
              warning({
                sentence: `${labelOf(partner)} is paused, so its members cannot withdraw`,
                command: `npx openwage partner resume ${partner.id}`,
              }),
            ]
          : []),
      ])
    },
    fine: ({ partners }) => `${countOf(served(partners).length, 'partner')} with tiers, none paused`,
  },
  {
    name: 'currencies',
    find: facts => {
      const paid = new Set<string>([...railsOf(facts), ...facts.adyenRails].map(({ currency }) => currency))
      const command = facts.railsFile === '' ? 'export OPENWAGE_RAILS=/etc/openwage/rails.json' : edit(facts.railsFile)
      return floatsOfServed(facts)
        .filter(({ currency }) => !paid.has(currency))
        .map(({ partner, currency }) =>
          missing({ sentence: `${labelOf(partner)} has a tier in ${currency}, but no rail pays ${currency}`, command }),
        )
    },
    fine: () => 'Every currency that a partner has a tier in has a rail',
  },
  {
    name: 'speeds',
    find: ({ partners, instantTiers, ...facts }) =>
      instantTiers.flatMap(({ partnerId, name, currency }) => {
        const partner = served(partners).find(({ id }) => id === partnerId)
        const rail = railsOf(facts).find(each => each.currency === currency)
        if (partner === undefined || rail === undefined || rail.canBeInstant) return []
        return [
          warning({
            sentence: `The tier ${name} of ${labelOf(partner)} asks for instant payouts, but the rail ${rail.name} cannot make them and pays at its own speed`,
            command: `npx openwage tier set ${partnerId} ${JSON.stringify(name)} --payout-speed standard`,
          }),
        ]
      }),
    fine: ({ instantTiers }) =>
      instantTiers.length === 0
        ? 'No tier asks for instant payouts'
        : 'Every tier that asks for instant payouts has a rail that can make them',
  },
  {
    name: 'accounts',
    find: ({ partners, railsFile, ...facts }) => {
      const known = new Set(partners.map(({ id }) => id))
      return railsOf(facts).flatMap(({ name, debtors }) =>
        Object.keys(debtors)
          .filter(owner => owner !== 'default' && !known.has(owner))
          .map(owner =>
            warning({
              sentence: `The rail ${name} has an account for ${owner}, which is no partner here; the default account pays for all others`,
              command: edit(railsFile),
            }),
          ),
      )
    },
    fine: facts => accountsInWords(facts).join('; ') || 'No account pays for a partner yet',
  },
  {
    name: 'float',
    find: facts =>
      floatsOfServed(facts).flatMap(({ partner, currency, free, floor }) => {
        const fund = `npx openwage float fund ${partner.id} ${currency} AMOUNT --reference REFERENCE`
        const has = `${labelOf(partner)} has ${inWords({ amount: free, currency })} free`
        return [
          ...(free <= 0n
            ? [missing({ sentence: `${has}: transfer money to the account that pays, then record it`, command: fund })]
            : floor !== null && free < floor
              ? [
                  missing({
                    sentence: `${has}, less than its floor of ${inWords({ amount: floor, currency })}, so withdrawals are refused`,
                    command: fund,
                  }),
                ]
              : []),
          ...(floor === null
            ? [
                warning({
                  sentence: `${labelOf(partner)} has no floor in ${currency}, so withdrawals go on when the float is used up`,
                  command: `npx openwage float floor ${partner.id} ${currency} AMOUNT`,
                }),
              ]
            : []),
        ]
      }),
    fine: () => 'Every float has free money and a floor',
  },
  {
    name: 'keys',
    find: ({ now, mode, partners, keys }) => {
      const soon = new Date(now.getTime() + limits.keyDaysMin * 86_400_000)
      return served(partners).flatMap(partner => {
        const own = keys.filter(({ partnerId }) => partnerId === partner.id)
        const command = `npx openwage key create ${partner.id}`
        if (own.length === 0)
          return [missing({ sentence: `${labelOf(partner)} has no valid ${mode} API key`, command })]
        return own.flatMap(({ hint: key, expiresAt }) =>
          expiresAt === null || expiresAt > soon
            ? []
            : [
                warning({
                  sentence: `The key ${key} of ${labelOf(partner)} expires ${expiresAt.toISOString()}`,
                  command,
                }),
              ],
        )
      })
    },
    fine: () => `Every partner has an API key that is valid for ${limits.keyDaysMin} days or more`,
  },
  {
    name: 'webhooks',
    find: ({ partners, endpoints }) =>
      served(partners).flatMap(partner => {
        const own = endpoints.filter(({ partnerId }) => partnerId === partner.id)
        if (own.length === 0)
          return [
            hint({
              sentence: `${labelOf(partner)} has no webhook endpoint, so it learns of payments only by polling events`,
              command: `curl -H "x-api-key: $OPENWAGE_API_KEY" "$OPENWAGE_URL/v1/webhooks"`,
            }),
          ]
        return own.flatMap(({ id, enabled, disabledReason, failingSince }) => {
          if (enabled && failingSince === null) return []
          const state = enabled ? `is failing since ${failingSince?.toISOString()}` : `is disabled (${disabledReason})`
          return [
            warning({
              sentence: `The webhook endpoint ${id} of ${labelOf(partner)} ${state}; the partner can enable it again`,
              command: `curl -H "x-api-key: $OPENWAGE_API_KEY" "$OPENWAGE_URL/v1/webhooks/${id}/deliveries"`,
            }),
          ]
        })
      }),
    fine: () => 'Every partner has webhook endpoints, and all work',
  },
  {
    name: 'workers',
    find: ({ workersAlive }) =>
      workersAlive > 0
        ? []
        : [missing({ sentence: 'No worker is running, so nothing is paid', command: 'npx openwage start --worker' })],
    fine: ({ workersAlive }) => `${countOf(workersAlive, 'worker')} running`,
  },
  {
    name: 'batches',
    find: facts => [
      ...facts.heldRails.map(({ rail, heldAt, heldBy }) =>
        warning({
          sentence: `The rail ${rail} is held since ${heldAt.toISOString()} by ${heldBy}, so nothing is sent through it`,
          command: `npx openwage payouts release ${rail} --as PERSON`,
        }),
      ),
      ...facts.batches.flatMap(batch => batchOf(batch, facts)),
    ],
    fine: () => 'No batch waits for a person or is late',
  },
  {
    name: 'exceptions',
    find: ({ openExceptions }) =>
      openExceptions === 0
        ? []
        : [
            warning({
              sentence: `${countOf(openExceptions, 'answer')} of a bank did not fit and ${openExceptions === 1 ? 'needs' : 'need'} a decision`,
              command: 'npx openwage payouts exceptions list',
            }),
          ],
    fine: () => 'No payout exception is open',
  },
  {
    name: 'books',
    find: () => [
      hint({
        sentence: 'When the books were last verified is not recorded; verify them daily',
        command: 'npx openwage ledger verify',
      }),
    ],
    fine: () => '',
  },
]

function backupsOf({ isOn, archivedAt, failedAt }: Archiving): Found[] {
  if (!isOn)
    return [
      hint({
        sentence:
          'The server archives no WAL, and dumps cannot be seen from here; take one daily, and restore one before going live',
        command: 'pg_dump --format=custom --file=openwage.dump "$DATABASE_OWNER_URL"',
      }),
    ]
  const isFailing = failedAt !== null && (archivedAt === null || failedAt > archivedAt)
  if (!isFailing && archivedAt !== null) return []
  return [
    warning({
      sentence: isFailing
        ? `The server’s last attempt to archive its WAL, at ${failedAt.toISOString()}, failed`
        : 'The server is set to archive its WAL, but has archived nothing yet',
      command: 'psql "$DATABASE_OWNER_URL" --command "select * from pg_stat_archiver"',
    }),
  ]
}

function backupsInWords({ archiving: { archivedAt } }: Facts): string {
  return `The server archives its WAL, last at ${archivedAt?.toISOString()}; whether base backups are taken cannot be seen from here`
}

function batchOf(batch: Batch, { now, ...facts }: SettingsFacts): Found[] {
  const { id, status, held, cutOffAt, closedAt, valueDate, sentAt } = batch
  const rail = railsOf(facts).find(({ name }) => name === batch.rail)
  const what = `${id} (${countOf(batch.paymentCount, 'payment')}, ${inWords({ amount: batch.controlTotal, currency: batch.currency })})`
  const today = dayIn(rail?.timeZone ?? 'UTC', now)
  if (status === 'building' || status === 'approved') {
    const late = valueDate < today ? `, and its value date ${valueDate} has passed` : ''
    if (held)
      return [
        warning({ sentence: `${what} is held${late}`, command: `npx openwage payouts release ${id} --as PERSON` }),
      ]
    // It still takes payments.
    if (closedAt === null && cutOffAt > now) return []
    if (status === 'building') {
      const command = `npx openwage payouts approve ${id} --as PERSON`
      return [warning({ sentence: `${what} waits for approval${late}`, command })]
    }
    if (rail?.delivery === null) {
      const command = `npx openwage payouts export ${id} --folder FOLDER`
      return [warning({ sentence: `${what} waits to be exported and carried to the bank${late}`, command })]
    }
    return late === '' ? [] : [warning({ sentence: `${what} was not sent${late}`, command: 'npx openwage status' })]
  }
  if (addDays(valueDate, limits.answerDaysMax) >= today) return []
  const since = sentAt === null ? '' : ` on ${sentAt.toISOString()}`
  return [
    warning({
      sentence: `${what} was sent${since}, and the bank has not answered for all of it`,
      command: `npx openwage payouts show ${id}`,
    }),
  ]
}

/** Partners whose requests are accepted. */
function served(partners: readonly PartnerState[]): PartnerState[] {
  return partners.filter(({ suspendedAt }) => suspendedAt === null)
}

function floatsOfServed({ partners, floats }: Pick<DatabaseFacts, 'partners' | 'floats'>) {
  return served(partners).flatMap(partner =>
    floats.filter(({ partnerId }) => partnerId === partner.id).map(each => ({ ...each, partner })),
  )
}

function accountsInWords({
  partners,
  floats,
  adyenRails,
  ...facts
}: Pick<Facts, 'rails' | 'adyenRails' | 'partners' | 'floats'>): string[] {
  const rails = railsOf(facts)
  return floatsOfServed({ partners, floats }).flatMap(({ partner, currency }) => [
    ...adyenRails
      .filter(rail => rail.currency === currency)
      .map(
        ({ balanceAccountId }) =>
          `${currency} of ${labelOf(partner)} is paid by the balance account …${balanceAccountId.slice(-4)} at Adyen`,
      ),
    ...rails
      .filter(rail => rail.currency === currency)
      .map(({ debtors }) => {
        const { name, account } = debtors[partner.id] ?? debtors.default
        const number = 'iban' in account ? account.iban : account.accountNumber
        return `${currency} of ${labelOf(partner)} is paid by ${name}, account …${number.slice(-4)}`
      }),
  ])
}

function railsOf({ rails }: Pick<SettingsFacts, 'rails'>): readonly FileRailSettings[] {
  return typeof rails === 'string' ? [] : rails
}

function railInWords({ name, currency, format, delivery }: FileRailSettings): string {
  return `${currency} by ${name} (${format.name}, ${delivery === null ? 'carried by hand' : 'delivered by the worker'})`
}

function adyenInWords({ name, currency, notifications }: AdyenSettings): string {
  return `${currency} by ${name} (Adyen Transfers, ${notifications === null ? 'polled' : 'with notifications'})`
}

function labelOf({ id, name }: PartnerState): string {
  return `${name} (${id})`
}

function edit(file: string): string {
  return `\${EDITOR:-vi} '${file}'`
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

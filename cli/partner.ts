import { Command, InvalidArgumentError, Option } from 'commander'
import type { Partner, PartnerId } from '../packages/console/src/generated/operator.ts'
import { stopInWords } from '../src/operators/partner-view.ts'
import { cycleSchedules, defaultSettings, shortfallPolicies } from '../src/partners/partners.ts'
import { isCountry, isRemittanceText, isTimeZone, remittanceAdvice, settingBounds } from '../src/partners/settings.ts'
import { day, name, whole } from './arguments.ts'
import { inTable } from './float.ts'
import { examples } from './help.ts'
import { addServerOptions, allOf, withOperators } from './operator-client.ts'
import { takeMax } from './paging.ts'
import { printResult, sheet, table } from './print.ts'

const operations = () => import('../src/operators/partner-operations.ts')

export const partnerCommand = new Command('partner')

const createCommand = partnerCommand
  .command('create')
  .description('Create a partner with an open pay cycle. Next, add its tiers (tier set) and an API key (key create).')
  .argument('<name>', 'display name, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner create "Acme Couriers" --cycle-schedule weekly --cycle-anchor 2026-01-05'))
  .action(async (partnerName: string, { json, url, key, ...settings }) => {
    const partner = await withOperators({ url, key }, operations, api =>
      api.createPartner({ name: partnerName, settings }),
    )
    printResult({ json }, { value: partner, text: () => table([{ id: partner.id, name: partner.name }]) })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner list'))
  .action(async options => {
    const partners = await withOperators(options, operations, api => allOf(api.listPartners({ take: takeMax })))
    printResult(options, {
      value: partners,
      text: () =>
        table(
          partners.map(({ id, name, country, timeZone, state }) => ({
            id,
            name,
            country,
            'time zone': timeZone,
            state,
          })),
        ),
    })
  })

partnerCommand
  .command('show')
  .description('Show a partner’s state, settings, open pay cycle, float, and numbers of keys and members.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner show par_…'))
  .action(async (partnerId: PartnerId, options) => {
    const partner = await withOperators(options, operations, api => api.getPartner(partnerId))
    printResult(options, { value: partner, text: () => inWords(partner) })
  })

const setCommand = partnerCommand
  .command('set')
  .description(
    'Change a partner’s settings. Options that you leave out do not change. A change applies to what starts afterwards, for example to the next pay cycle.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner set par_… --grace-minutes 30 --auto-activate'))
  .action(async (partnerId: PartnerId, { json, url, key, ...settings }) => {
    if (Object.keys(settings).length === 0) setCommand.error('error: specify at least one setting to change')
    const { before, after } = await withOperators({ url, key }, operations, async api => ({
      before: await api.getPartner(partnerId),
      after: await api.updatePartner(partnerId, settings),
    }))
    printResult({ json }, { value: after, text: () => changesInWords(before, after) })
  })

// Both commands have the same options: create uses defaults for omitted options, set keeps the current values.
for (const command of [createCommand, setCommand]) {
  const withDefault = (text: string, setting: keyof typeof defaultSettings) =>
    command === createCommand ? `${text} (default: ${defaultSettings[setting]})` : text
  command
    .option('--country <code>', withDefault('country of phone numbers without a country code', 'country'), country)
    .option('--time-zone <zone>', withDefault('time zone of the partner’s calendar days', 'timeZone'), timeZone)
    .option('--auto-activate', 'activate new members when they are invited')
    .option(
      '--no-auto-activate',
      `leave new members invited until they are activated${command === createCommand ? ' (default)' : ''}`,
    )
    .option(
      '--grace-minutes <n>',
      withDefault('how long a pay run can be reverted', 'graceMinutes'),
      whole(settingBounds.graceMinutes),
    )
    .option(
      '--intent-minutes <n>',
      withDefault('how long an intent is valid', 'intentMinutes'),
      whole(settingBounds.intentMinutes),
    )
    .option(
      '--hold-seconds <n>',
      withDefault('how long a withdrawal can be cancelled', 'holdSeconds'),
      whole(settingBounds.holdSeconds),
    )
    .addOption(
      new Option('--cycle-schedule <name>', withDefault('length of a pay cycle', 'cycleSchedule')).choices(
        cycleSchedules,
      ),
    )
    .option('--cycle-anchor <day>', withDefault('a day on which a pay cycle starts', 'cycleAnchor'), day)
    .addOption(
      new Option(
        '--shortfall-policy <name>',
        withDefault('carry what payroll could not deduct to the next cycle, or write it off', 'shortfallPolicy'),
      ).choices(shortfallPolicies),
    )
    .option(
      '--offboard-review-percent <n>',
      withDefault('hold a file for approval if it offboards more than this share of members', 'offboardReviewPercent'),
      whole(settingBounds.offboardReviewPercent),
    )
    .option(
      '--review-days <n>',
      withDefault('reject a job that has waited for approval for this many days', 'reviewDays'),
      whole(settingBounds.reviewDays),
    )
    .option(
      '--remittance-text <text>',
      'what members read on their bank statement beside a SEPA payment; "" for none',
      remittanceText,
    )
    .option('--metadata-in-events', 'show the metadata of their objects in events')
    .option('--no-metadata-in-events', `leave metadata out of events${command === createCommand ? ' (default)' : ''}`)
    .option(
      '--requests-per-second <n>',
      withDefault('sustained rate limit', 'requestsPerSecond'),
      whole(settingBounds.requestsPerSecond),
    )
    .option(
      '--requests-burst <n>',
      withDefault('requests allowed in a burst', 'requestsBurst'),
      whole(settingBounds.requestsBurst),
    )
}

for (const { verb, description, isDone, done, unchanged } of [
  {
    verb: 'pause',
    description: 'Stop all members from withdrawing. Pay runs and payouts continue.',
    isDone: ({ paused }: Partner) => paused !== null,
    done: 'is paused',
    unchanged: 'is already paused',
  },
  {
    verb: 'resume',
    description: 'Let members of a paused partner withdraw again.',
    isDone: ({ paused }: Partner) => paused === null,
    done: 'is no longer paused',
    unchanged: 'is not paused',
  },
  {
    verb: 'suspend',
    description: 'Reject all API requests of the partner.',
    isDone: ({ suspended }: Partner) => suspended !== null,
    done: 'is suspended',
    unchanged: 'is already suspended',
  },
  {
    verb: 'restore',
    description: 'Lift a suspension: accept API requests of the partner again.',
    isDone: ({ suspended }: Partner) => suspended === null,
    done: 'is no longer suspended',
    unchanged: 'is not suspended',
  },
] as const) {
  partnerCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`partner ${verb} par_… --reason "bank outage"`))
    .action(async (partnerId: PartnerId, { reason, ...options }) => {
      const { before, after } = await withOperators(options, operations, async api => ({
        before: await api.getPartner(partnerId),
        after: await api[`${verb}Partner`](partnerId, { reason }),
      }))
      const text = () => `${after.name} ${isDone(before) ? unchanged : done}.`
      printResult(options, { value: after, text })
    })
}

addServerOptions(partnerCommand)

function inWords({
  id,
  name,
  createdAt,
  paused,
  suspended,
  settings,
  openCycle,
  floats,
  keys,
  members,
}: Partner): string {
  const stop = (stopped: Partner['paused']) =>
    stopped === null
      ? 'no'
      : stopInWords({ ...stopped, since: stopped.since === null ? null : new Date(stopped.since) })
  return [
    sheet({
      id,
      name,
      created: createdAt,
      paused: stop(paused),
      suspended: stop(suspended),
      'open cycle': openCycle === null ? null : `${openCycle.id}, ${openCycle.startDate} to ${openCycle.endDate}`,
      members: `${members.active} active, ${members.invited} invited, ${members.inactive} inactive`,
      keys: `${keys.valid} valid, ${keys.expired} expired, ${keys.revoked} revoked`,
    }),
    '',
    sheet(settings),
    '',
    inTable(floats),
  ].join('\n')
}

function changesInWords({ settings: before }: Partner, { name, settings: after }: Partner): string {
  const names = Object.keys(after) as (keyof typeof after)[]
  const changes = names.filter(each => after[each] !== before[each])
  return changes.length === 0
    ? `No change: ${name} already has these settings.`
    : sheet(Object.fromEntries(changes.map(each => [each, `${before[each]} → ${after[each]}`])))
}

function remittanceText(text: string): string {
  if (!isRemittanceText(text)) throw new InvalidArgumentError(`${remittanceAdvice}.`)
  return text
}

function country(text: string): string {
  if (!isCountry(text)) throw new InvalidArgumentError('Use a two-letter country code in capitals, for example GB.')
  return text
}

function timeZone(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('Use an IANA time zone, for example Europe/London.')
}

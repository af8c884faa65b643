import { Command, InvalidArgumentError, Option } from 'commander'
import { type Action, differences } from '../src/audit-log/audit-log.ts'
import type { Tx } from '../src/database/database.ts'
import { systemClock } from '../src/main.ts'
import { readPartner } from '../src/operators/partner-view.ts'
import {
  createPartner,
  cycleSchedules,
  defaultSettings,
  isSameState,
  listStates,
  type PartnerChange,
  pausePartner,
  restorePartner,
  resumePartner,
  settingsOf,
  shortfallPolicies,
  suspendPartner,
  updatePartner,
} from '../src/partners/partners.ts'
import { isCountry, isRemittanceText, isTimeZone, remittanceAdvice, settingBounds } from '../src/partners/settings.ts'
import * as payCycles from '../src/pay-cycles/pay-cycles.ts'
import { recordChange } from './actor.ts'
import { day, name, whole } from './arguments.ts'
import { examples } from './help.ts'
import { partnerNow } from './partner-clock.ts'
import { partnerInWords, partnerOnWire } from './partner-show.ts'
import { printResult, sheet, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const partnerCommand = new Command('partner')

const createCommand = partnerCommand
  .command('create')
  .description('Create a partner with an open pay cycle. Next, add its tiers (tier set) and an API key (key create).')
  .argument('<name>', 'display name, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner create "Acme Couriers" --cycle-schedule weekly --cycle-anchor 2026-01-05'))
  .action(async (partnerName: string, { json, ...settings }) => {
    const now = systemClock()
    const partner = await withTransaction(async tx => {
      const created = await createPartner(tx, { name: partnerName, settings, now })
      await payCycles.openFirst(tx, { partner: created, now })
      const details = { before: null, after: { name: partnerName, ...settingsOf(created) } }
      const change = { action: 'partner.create', resourceId: created.id, details } as const
      await recordChange(tx, { partnerId: created.id, change, now })
      return created
    })
    const { suspendedAt: _, ...value } = partner
    printResult({ json }, { value, text: () => table([{ id: partner.id, name: partner.name }]) })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner list'))
  .action(async options => {
    const partners = await withDatabase(db => listStates(db))
    printResult(options, {
      value: partners,
      text: () =>
        table(
          partners.map(({ id, name, country, timeZone, paused, suspendedAt }) => ({
            id,
            name,
            country,
            'time zone': timeZone,
            state: suspendedAt !== null ? 'suspended' : paused ? 'paused' : 'open',
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
  .action(async (partnerId: string, options) => {
    const found = await withDatabase(async db => {
      return await readPartner(db, { partnerId, now: await partnerNow(db, partnerId) })
    })
    printResult(options, { value: partnerOnWire(found), text: () => partnerInWords(found) })
  })

const setCommand = partnerCommand
  .command('set')
  .description(
    'Change a partner’s settings. Options that you leave out do not change. A change applies to what starts afterwards, for example to the next pay cycle.',
  )
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner set par_… --grace-minutes 30 --auto-activate'))
  .action(async (partnerId: string, { json, ...settings }) => {
    if (Object.keys(settings).length === 0) setCommand.error('error: specify at least one setting to change')
    const now = systemClock()
    const { before, after } = await withTransaction(async tx => {
      const changed = await updatePartner(tx, { partnerId, settings })
      const details = differences(settingsOf(changed.before), settingsOf(changed.after))
      const change = { action: 'partner.set', resourceId: partnerId, details: details ?? {} } as const
      if (details !== null) await recordChange(tx, { partnerId, change, now })
      return changed
    })
    const changes = differences(settingsOf(before), settingsOf(after))
    const { id, name: partnerName } = after
    printResult(
      { json },
      {
        value: { id, name: partnerName, ...settingsOf(after), changed: Object.keys(changes?.after ?? {}) },
        text: () =>
          changes === null
            ? `No change: ${partnerName} already has these settings.`
            : sheet(
                Object.fromEntries(
                  Object.keys(changes.after).map(each => [each, `${changes.before[each]} → ${changes.after[each]}`]),
                ),
              ),
      },
    )
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

type StateChange = {
  verb: string
  action: Action
  description: string
  change: (tx: Tx, partnerId: string) => Promise<PartnerChange>
  done: string
  unchanged: string
}

for (const { verb, action, description, change, done, unchanged } of [
  {
    verb: 'pause',
    action: 'partner.pause',
    description: 'Stop all members from withdrawing. Pay runs and payouts continue.',
    change: (tx, id) => pausePartner(tx, id),
    done: 'is paused',
    unchanged: 'is already paused',
  },
  {
    verb: 'resume',
    action: 'partner.resume',
    description: 'Let members of a paused partner withdraw again.',
    change: (tx, id) => resumePartner(tx, id),
    done: 'is no longer paused',
    unchanged: 'is not paused',
  },
  {
    verb: 'suspend',
    action: 'partner.suspend',
    description: 'Reject all API requests of the partner.',
    change: (tx, id) => suspendPartner(tx, { partnerId: id, now: systemClock() }),
    done: 'is suspended',
    unchanged: 'is already suspended',
  },
  {
    verb: 'restore',
    action: 'partner.restore',
    description: 'Lift a suspension: accept API requests of the partner again.',
    change: (tx, id) => restorePartner(tx, id),
    done: 'is no longer suspended',
    unchanged: 'is not suspended',
  },
] satisfies StateChange[] as StateChange[]) {
  partnerCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .option('--reason <text>', 'reason for the audit log; must not contain personal data', name({ lengthMax: 200 }))
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`partner ${verb} par_… --reason "bank outage"`))
    .action(async (partnerId: string, { reason, json }) => {
      const { after, hasChanged } = await withTransaction(async tx => {
        const changed = await change(tx, partnerId)
        const now = await partnerNow(tx, partnerId)
        const isDifferent = !isSameState(changed.before, changed.after)
        const details = { reason: reason ?? null }
        if (isDifferent) await recordChange(tx, { partnerId, change: { action, resourceId: partnerId, details }, now })
        return { after: changed.after, hasChanged: isDifferent }
      })
      const { id, name: partnerName, paused, suspendedAt } = after
      printResult(
        { json },
        {
          value: { id, name: partnerName, paused, suspendedAt, hasChanged },
          text: () => `${partnerName} ${hasChanged ? done : unchanged}.`,
        },
      )
    })
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

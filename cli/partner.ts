import { Command, InvalidArgumentError, Option } from 'commander'
import { isSupportedCountry } from 'libphonenumber-js'
import { type Action, type Details, differences } from '../src/audit-log/audit-log.ts'
import { brokenConstraint, type Tx } from '../src/db.ts'
import { systemClock } from '../src/main.ts'
import {
  createPartner,
  cycleSchedules,
  defaultSettings,
  listStates,
  type Partner,
  type PartnerChange,
  pausePartner,
  restorePartner,
  resumePartner,
  shortfallPolicies,
  suspendPartner,
  updatePartner,
} from '../src/partners/partners.ts'
import * as payCycles from '../src/pay-cycles/pay-cycles.ts'
import { addDays } from '../src/time.ts'
import { name, whole } from './arguments.ts'
import { examples } from './help.ts'
import { recordChange } from './operator.ts'
import { partnerInWords, partnerOnWire, readPartner } from './partner-show.ts'
import { answer, sheet, table } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const partnerCommand = new Command('partner').description('Partners: employers, gig platforms, payroll bureaus.')

const createCommand = partnerCommand
  .command('create')
  .description('Make a partner, with an open pay cycle. Then give it tiers (tier set) and a key (key create).')
  .argument('<name>', 'for people, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner create "Acme Couriers" --cycle-schedule weekly --cycle-anchor 2026-01-05'))
  .action(async (partnerName: string, { json, ...settings }) => {
    const now = systemClock()
    const partner = await withTransaction(async tx => {
      const created = await createPartner(tx, { name: partnerName, settings, now }).catch(refuseAnchor)
      await payCycles.openFirst(tx, { partner: created, now })
      const details = { before: null, after: { name: partnerName, ...settingsOf(created) } }
      const change = { action: 'partner.create', resourceId: created.id, details } as const
      await recordChange(tx, { partnerId: created.id, change, now })
      return created
    })
    const { suspendedAt: _, ...value } = partner
    answer({ json }, { value, text: () => table([{ id: partner.id, name: partner.name }]) })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner list'))
  .action(async options => {
    const partners = await withDatabase(db => listStates(db))
    answer(options, {
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
  .description('Show a partner: its rules, its state and since when, its open pay cycle, float, keys and members.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner show par_…'))
  .action(async (partnerId: string, options) => {
    const found = await withDatabase(db => readPartner(db, { partnerId, now: systemClock() }))
    answer(options, { value: partnerOnWire(found), text: () => partnerInWords(found) })
  })

const setCommand = partnerCommand
  .command('set')
  .description('Change settings of a partner; what is not given stays. They hold for what begins from now on.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .addHelpText('after', examples('partner set par_… --grace-minutes 30 --auto-activate'))
  .action(async (partnerId: string, { json, ...settings }) => {
    if (Object.keys(settings).length === 0) setCommand.error('error: name at least one setting')
    const now = systemClock()
    const { before, after } = await withTransaction(async tx => {
      const changed = await updatePartner(tx, { partnerId, settings }).catch(refuseAnchor)
      const details = differences(settingsOf(changed.before), settingsOf(changed.after))
      const change = { action: 'partner.set', resourceId: partnerId, details: details ?? {} } as const
      if (details !== null) await recordChange(tx, { partnerId, change, now })
      return changed
    })
    const changes = differences(settingsOf(before), settingsOf(after))
    const { id, name: partnerName } = after
    answer(
      { json },
      {
        value: { id, name: partnerName, ...settingsOf(after), changed: Object.keys(changes?.after ?? {}) },
        text: () =>
          changes === null
            ? `Nothing changes: ${partnerName} has these settings already.`
            : sheet(
                Object.fromEntries(
                  Object.keys(changes.after).map(each => [each, `${changes.before[each]} → ${changes.after[each]}`]),
                ),
              ),
      },
    )
  })

// One declaration for both: making a partner fills in what is left out, changing one leaves it.
for (const command of [createCommand, setCommand]) {
  const standard = (setting: keyof typeof defaultSettings) => `(when created: ${defaultSettings[setting]})`
  command
    .option('--country <code>', `country of phone numbers that are written without one ${standard('country')}`, country)
    .option('--time-zone <zone>', `where the partner’s days begin ${standard('timeZone')}`, timeZone)
    .option('--auto-activate', 'invited members are active at once')
    .option('--no-auto-activate', 'invited members wait to be activated (when created)')
    .option(
      '--grace-minutes <n>',
      `how long a pay run can be taken back ${standard('graceMinutes')}`,
      whole({ min: 0, max: 10_080 }),
    )
    .option(
      '--intent-minutes <n>',
      `how long a quote holds ${standard('intentMinutes')}`,
      whole({ min: 1, max: 1_440 }),
    )
    .option(
      '--hold-seconds <n>',
      `how long a withdrawal can be cancelled ${standard('holdSeconds')}`,
      whole({ min: 0, max: 86_400 }),
    )
    .addOption(
      new Option('--cycle-schedule <name>', `how long a pay cycle is ${standard('cycleSchedule')}`).choices(
        cycleSchedules,
      ),
    )
    .option('--cycle-anchor <day>', `a day on which a pay cycle starts ${standard('cycleAnchor')}`, day)
    .addOption(
      new Option(
        '--shortfall-policy <name>',
        `what payroll cannot take is carried to the next cycle or written off ${standard('shortfallPolicy')}`,
      ).choices(shortfallPolicies),
    )
    .option(
      '--offboard-review-percent <n>',
      `a file that would offboard more than this share of the members waits for approval ${standard('offboardReviewPercent')}`,
      whole({ min: 0, max: 100 }),
    )
    .option(
      '--review-days <n>',
      `days after which a job that waits for approval is rejected ${standard('reviewDays')}`,
      whole({ min: 1, max: 365 }),
    )
    .option(
      '--requests-per-second <n>',
      `rate limit over time ${standard('requestsPerSecond')}`,
      whole({ min: 1, max: 1_000_000 }),
    )
    .option(
      '--requests-burst <n>',
      `rate limit at once ${standard('requestsBurst')}`,
      whole({ min: 1, max: 1_000_000 }),
    )
}

type StateChange = {
  verb: string
  action: Action
  description: string
  change: (tx: Tx, partnerId: string) => Promise<PartnerChange>
  done: string
}

for (const { verb, action, description, change, done } of [
  {
    verb: 'pause',
    action: 'partner.pause',
    description: 'Let no member withdraw for the while. Pay runs and payouts go on.',
    change: (tx, id) => pausePartner(tx, id),
    done: 'is paused',
  },
  {
    verb: 'resume',
    action: 'partner.resume',
    description: 'Let members withdraw again.',
    change: (tx, id) => resumePartner(tx, id),
    done: 'is not paused',
  },
  {
    verb: 'suspend',
    action: 'partner.suspend',
    description: 'Refuse every request of the partner.',
    change: (tx, id) => suspendPartner(tx, { partnerId: id, now: systemClock() }),
    done: 'is suspended',
  },
  {
    verb: 'restore',
    action: 'partner.restore',
    description: 'Let a suspended partner in again.',
    change: (tx, id) => restorePartner(tx, id),
    done: 'is not suspended',
  },
] satisfies StateChange[] as StateChange[]) {
  partnerCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .option('--reason <text>', 'why; kept in the audit log, so name no person', name({ lengthMax: 200 }))
    .option('--json', 'print JSON')
    .addHelpText('after', examples(`partner ${verb} par_… --reason "bank outage"`))
    .action(async (partnerId: string, { reason, json }) => {
      const now = systemClock()
      const { after, hasChanged } = await withTransaction(async tx => {
        const changed = await change(tx, partnerId)
        const isDifferent = stateOf(changed.before) !== stateOf(changed.after)
        const details = { reason: reason ?? null }
        if (isDifferent) await recordChange(tx, { partnerId, change: { action, resourceId: partnerId, details }, now })
        return { after: changed.after, hasChanged: isDifferent }
      })
      const { id, name: partnerName, paused, suspendedAt } = after
      answer(
        { json },
        {
          value: { id, name: partnerName, paused, suspendedAt, hasChanged },
          text: () => `${partnerName} ${done}${hasChanged ? '' : ' already'}.`,
        },
      )
    })
}

function stateOf({ paused, suspendedAt }: PartnerChange['after']): string {
  return JSON.stringify({ paused, suspendedAt })
}

/** The settings of a partner, which `partner set` can change. */
function settingsOf(partner: Partner): Details {
  return Object.fromEntries(
    Object.keys(defaultSettings).map(each => [each, partner[each as keyof typeof defaultSettings]]),
  )
}

// The one rule that no setting breaks by itself.
function refuseAnchor(error: unknown): never {
  if (brokenConstraint(error) !== 'monthly_anchor_is_in_every_month') throw error
  throw new Error(
    'A monthly pay cycle must start on a day that every month has: choose an anchor from the 1st to the 28th',
  )
}

function day(text: string): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(Date.parse(text)) || addDays(text, 0) !== text)
    throw new InvalidArgumentError('It must be a day, for example 2026-03-31.')
  return text
}

function country(text: string): string {
  if (!isSupportedCountry(text))
    throw new InvalidArgumentError('It must be the two capital letters of a country, for example GB.')
  return text
}

function timeZone(text: string): string {
  try {
    // Not by the list of zones: that leaves out their other names, such as Asia/Kolkata.
    const { timeZone: zone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions()
    if (/^[A-Z]/.test(text) && zone !== '') return text
  } catch {
    // Refused below.
  }
  throw new InvalidArgumentError('It must be an IANA time zone, for example Europe/London.')
}

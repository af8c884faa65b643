import { Command, InvalidArgumentError, Option } from 'commander'
import { isSupportedCountry } from 'libphonenumber-js'
import { brokenConstraint, type Tx } from '../src/db.ts'
import { systemClock } from '../src/main.ts'
import {
  createPartner,
  cycleSchedules,
  defaultSettings,
  listPartners,
  type Partner,
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
import { print } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const partnerCommand = new Command('partner').description('Partners: employers, gig platforms, payroll bureaus.')

const createCommand = partnerCommand
  .command('create')
  .description('Make a partner, with an open pay cycle. Then give it tiers (tier set) and a key (key create).')
  .argument('<name>', 'for people, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .option('--json', 'print JSON')
  .action(async (partnerName: string, { json, ...settings }) => {
    const now = systemClock()
    const partner = await withTransaction(async tx => {
      const created = await createPartner(tx, { name: partnerName, settings, now }).catch(refuseAnchor)
      await payCycles.openFirst(tx, { partner: created, now })
      return created
    })
    print({ id: partner.id, name: partner.name }, { json })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .option('--json', 'print JSON')
  .action(async ({ json }) => {
    const partners = await withDatabase(db => listPartners(db))
    print(
      partners.map(({ id, name, country, timeZone, suspendedAt }) => ({
        id,
        name,
        country,
        timeZone,
        suspended: suspendedAt !== null,
      })),
      { json },
    )
  })

const setCommand = partnerCommand
  .command('set')
  .description('Change settings of a partner; what is not given stays. They hold for what begins from now on.')
  .argument('<partner>', 'the partner’s id, par_…')
  .option('--json', 'print JSON')
  .action(async (partnerId: string, { json, ...settings }) => {
    if (Object.keys(settings).length === 0) setCommand.error('Name at least one setting.')
    const { suspendedAt: _, ...partner } = await withTransaction(tx =>
      updatePartner(tx, { partnerId, settings }).catch(refuseAnchor),
    )
    print([partner], { json })
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

for (const [verb, description, change] of [
  ['pause', 'Let no member withdraw for the while. Pay runs and payouts go on.', (tx, id) => pausePartner(tx, id)],
  ['resume', 'Let members withdraw again.', (tx, id) => resumePartner(tx, id)],
  [
    'suspend',
    'Refuse every request of the partner.',
    (tx, id) => suspendPartner(tx, { partnerId: id, now: systemClock() }),
  ],
  ['restore', 'Let a suspended partner in again.', (tx, id) => restorePartner(tx, id)],
] satisfies [string, string, (tx: Tx, partnerId: string) => Promise<Partner>][]) {
  partnerCommand
    .command(verb)
    .description(description)
    .argument('<partner>', 'the partner’s id, par_…')
    .action(async (partnerId: string) => {
      const partner = await withTransaction(tx => change(tx, partnerId))
      console.log(`${partner.name}: ${verb} is done.`)
    })
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

import { Command, InvalidArgumentError } from 'commander'
import { isSupportedCountry } from 'libphonenumber-js'
import { systemClock } from '../src/main.ts'
import { createPartner, listPartners } from '../src/partners/partners.ts'
import * as payCycles from '../src/pay-cycles/pay-cycles.ts'
import { name, whole } from './arguments.ts'
import { print } from './print.ts'
import { withDatabase, withTransaction } from './with-database.ts'

export const partnerCommand = new Command('partner').description('Partners: employers, gig platforms, payroll bureaus.')

partnerCommand
  .command('create')
  .description('Make a partner, with an open pay cycle. Then give it tiers (tier set) and a key (key create).')
  .argument('<name>', 'for people, for example "Acme Couriers"', name({ lengthMax: 140 }))
  .option('--country <code>', 'country of phone numbers that are written without one', country, 'GB')
  .option('--time-zone <zone>', 'where the partner’s days begin', timeZone, 'Europe/London')
  .option('--auto-activate', 'invited members are active at once', false)
  .option('--grace-minutes <n>', 'how long a pay run can be taken back', whole({ min: 0, max: 10_080 }), 10)
  .option('--intent-minutes <n>', 'how long a quote holds', whole({ min: 1, max: 1_440 }), 15)
  .option('--requests-per-second <n>', 'rate limit over time', whole({ min: 1, max: 1_000_000 }), 100)
  .option('--requests-burst <n>', 'rate limit at once', whole({ min: 1, max: 1_000_000 }), 200)
  .option('--json', 'print JSON')
  .action(async (partnerName: string, { json, ...settings }) => {
    const now = systemClock()
    const partner = await withTransaction(async tx => {
      const created = await createPartner(tx, { name: partnerName, settings, now })
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

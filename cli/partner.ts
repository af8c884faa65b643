import { Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../src/main.ts'
import { createPartner, listPartners } from '../src/partners/partners.ts'
import * as payCycles from '../src/pay-cycles/pay-cycles.ts'
import { whole } from './arguments.ts'
import { print, withDatabase, withTransaction } from './with-database.ts'

export const partnerCommand = new Command('partner').description('Partners: employers, gig platforms, payroll bureaus.')

partnerCommand
  .command('create')
  .description('Make a partner, with an open pay cycle. Then give it tiers (tier set) and a key (key create).')
  .argument('<name>', 'for people, for example "Acme Couriers"')
  .option('--country <code>', 'country of phone numbers that are written without one', country, 'GB')
  .option('--time-zone <zone>', 'where the partner’s days begin', timeZone, 'Europe/London')
  .option('--auto-activate', 'invited members are active at once', false)
  .option('--grace-minutes <n>', 'how long a pay run can be taken back', whole({ min: 0, max: 10_080 }), 10)
  .option('--intent-minutes <n>', 'how long a quote holds', whole({ min: 1, max: 1_440 }), 15)
  .option('--requests-per-second <n>', 'rate limit over time', whole({ min: 1, max: 1_000_000 }), 100)
  .option('--requests-burst <n>', 'rate limit at once', whole({ min: 1, max: 1_000_000 }), 200)
  .option('--json', 'print JSON')
  .action(async (name: string, { json, ...settings }) => {
    const now = systemClock()
    const partner = await withTransaction(async tx => {
      const created = await createPartner(tx, { name, settings, now })
      await payCycles.openFirst(tx, { partner: created, now })
      return created
    })
    print([{ id: partner.id, name: partner.name }], { json })
  })

partnerCommand
  .command('list')
  .description('List all partners, newest first.')
  .option('--json', 'print JSON')
  .action(async ({ json }) => {
    const partners = await withDatabase(({ db }) => listPartners(db))
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
  if (!/^[A-Z]{2}$/.test(text)) throw new InvalidArgumentError('It must be a two-letter country code, for example GB.')
  return text
}

function timeZone(text: string): string {
  if (!Intl.supportedValuesOf('timeZone').includes(text) && text !== 'UTC') {
    throw new InvalidArgumentError('It must be an IANA time zone, for example Europe/London.')
  }
  return text
}

import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import type { Settings } from './config.ts'
import type { Db } from './database/database.ts'
import type { ApiContext } from './http/server/server.ts'
import { currencies } from './kernel/money.ts'
import type { Clock } from './kernel/time.ts'
import type { FileRailSettings } from './payouts/books/file-rail-settings.ts'
import type { Channel } from './payouts/channels/channel.ts'
import { fileRailsOf, type Rail } from './payouts/channels/rail.ts'
import { openSimulatedBank } from './payouts/registry.ts'

/**
 * The bank that pays withdrawals in each currency. Depends only on the settings, so that an API process refuses withdrawals that
 * no worker could pay. The simulated bank moves no money, so live mode never uses it.
 */
export function banksOf(
  { MIDMONTH_MODE: mode }: Pick<Settings, 'MIDMONTH_MODE'>,
  rails: readonly Pick<Rail, 'currency'>[],
): ApiContext['bankOf'] {
  const paid = new Set(rails.map(({ currency }) => currency))
  return currency => (paid.has(currency) ? 'connected' : mode === 'sandbox' ? 'simulated' : null)
}

type RailSettings = Pick<Settings, 'MIDMONTH_RAILS' | 'MIDMONTH_MODE'> & Partial<Pick<Settings, 'DATABASE_URL'>>

/**
 * Returns the path of the file with the rails; empty if no bank is connected. A sandbox without settings, as a newcomer starts it,
 * uses the demo's file rail. A sandbox with `DATABASE_URL` is for partners: the simulated bank pays in every currency, without an
 * operator.
 */
function railsFileOf({ MIDMONTH_RAILS: file, MIDMONTH_MODE: mode, DATABASE_URL: database }: RailSettings): string {
  return file === '' && mode === 'sandbox' && database === '' ? demoRails : file
}

const demoRails = fileURLToPath(new URL('sandbox/demo-rails.json', import.meta.url))

/** Reads the rail that the demo fills; undefined if the installation has other rails. */
export async function readDemoRail(settings: RailSettings): Promise<FileRailSettings | undefined> {
  return railsFileOf(settings) === demoRails ? fileRailsOf(await readRails(settings))[0] : undefined
}

/**
 * Reads the rails in MIDMONTH_RAILS, or the demo's.
 * @throws SettingsProblem that names every fault of the file, and every rail that does not fit the mode
 */
export async function readRails(settings: RailSettings): Promise<Rail[]> {
  const file = railsFileOf(settings)
  // Loaded late: every command loads this module.
  return file === '' ? [] : await (await import('./payouts/read-rails.ts')).readRails(file, settings.MIDMONTH_MODE)
}

/** Opens the channels of the rails, and on a sandbox the simulated bank for all other currencies. */
export async function openChannels(
  { MIDMONTH_MODE: mode }: Settings,
  { db, log, now, rails }: { db: Db; log: Logger; now: Clock; rails: readonly Rail[] },
): Promise<Channel[]> {
  const channels = await Promise.all(rails.map(rail => rail.openChannel({ db, now })))
  if (mode === 'sandbox') {
    const unpaid = currencies.filter(currency => !rails.some(each => each.currency === currency))
    return [...channels, await openSimulatedBank({ db, now, currencies: rails.length === 0 ? 'rest' : unpaid })]
  }
  if (rails.length === 0)
    log.warn(
      'No bank is connected: withdrawals are refused, held ones can only be cancelled, and no money is paid out; see docs/guides/go-live.md',
    )
  return channels
}

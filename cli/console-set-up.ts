import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Logger } from 'pino'
import { systemClock } from '../src/clock.ts'
import type { Settings } from '../src/config.ts'
import type { Database } from '../src/open-database.ts'
import { hasOperator } from '../src/users/accounts.ts'
import { createLink, linkTo } from '../src/users/links.ts'

// As long as a link may live: the operator may open the console days after the installation.
const lifeMs = 7 * 86_400_000

/**
 * On a live installation without an operator, creates a one-time link that creates the first operator, and shows the link in the log and in
 * the file beside the data. Until it is used, the console is closed. There is no default password.
 */
export async function offerSetUp(
  { db, dataDir }: Pick<Database, 'db' | 'dataDir'>,
  { settings, address, log }: { settings: Settings; address: string | undefined; log: Logger },
): Promise<void> {
  if (address === undefined || (await hasOperator(db))) return
  const now = systemClock()
  const token = await db.transaction().execute(tx => createLink(tx, { purpose: 'set_up', userId: null, lifeMs, now }))
  const link = linkTo('set-up', token, settings.MIDMONTH_PUBLIC_URL || address)
  log.warn({ link }, 'the console has no operator: open this link once to create one, or run midmonth operator create')
  const folder = dataDir ?? (settings.MIDMONTH_DATA_DIR || undefined)
  if (folder !== undefined) await writeFile(path.join(folder, 'console-set-up-link'), `${link}\n`, { mode: 0o600 })
}

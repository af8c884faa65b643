import type { Logger } from 'pino'
import type { Db } from '../../../database/database.ts'
import type { Clock } from '../../../time.ts'
import { cursorOf, setCursor } from '../../payouts.ts'
import { recordTransfers } from './books.ts'
import type { AdyenClient } from './client.ts'
import type { AdyenSettings } from './settings.ts'

const hourMs = 3_600_000

const limits = {
  // How late a return is noticed of which no notification came.
  everyMs: 6 * hourMs,
  // Banks return within days; a recall may take ten banking days.
  backMs: 15 * 24 * hourMs,
  // Per run, which is one a minute: 10,000 transfers.
  pagesMax: 100,
  // The whole of a run.
  msMax: 5 * 60_000,
}

/**
 * Lists the payouts of the last weeks, every few hours, and records what no notification has told. Goes on from page to page,
 * also after a restart. Safe to run twice: what is known changes nothing.
 */
export async function catchUp({
  db,
  log,
  now,
  settings,
  client,
}: {
  db: Db
  log: Logger
  now: Clock
  settings: AdyenSettings
  client: AdyenClient
}): Promise<void> {
  const feed = `${settings.name}-catch-up`
  const before = readProgress(await cursorOf(db, feed))
  if (before !== null && before.cursor === null && now().getTime() - before.until.getTime() < limits.everyMs) return
  const isUnfinished = before !== null && before.cursor !== null
  const until = isUnfinished ? before.until : now()
  const since = new Date(until.getTime() - limits.backMs)
  const signal = AbortSignal.timeout(limits.msMax)
  let cursor = isUnfinished ? before.cursor : null
  for (let page = 0; page < limits.pagesMax; page++) {
    const { transfers, faults, next } = await client.list({ since, until, cursor }, signal)
    if (faults.length > 0) log.error({ rail: settings.name, faults }, 'transfers in a listing cannot be read')
    await db.transaction().execute(async tx => {
      await recordTransfers(tx, { settings, transfers, now: now() })
      await setCursor(tx, { rail: feed, cursor: writeProgress({ until, cursor: next }), now: now() })
    })
    if (next === null) return
    cursor = next
  }
}

/** How far a listing has come. A cursor of null: to its end. */
type Progress = { until: Date; cursor: string | null }

function writeProgress({ until, cursor }: Progress): string {
  return `${until.toISOString()} ${cursor ?? ''}`
}

function readProgress(stored: string | null): Progress | null {
  if (stored === null) return null
  const [until = '', cursor = ''] = stored.split(' ')
  return { until: new Date(until), cursor: cursor === '' ? null : cursor }
}

import type { Logger } from 'pino'
import type { Db, Reader } from '../../../database/database.ts'
import type { Clock } from '../../../kernel/time.ts'
import { SecretFileProblem } from '../../../secret-file.ts'
import { cursorOf, setCursor } from '../../books/cursors.ts'
import { closeListing } from '../../books/exceptions.ts'
import { findRestore } from '../../books/restores.ts'
import { findOldestOpen, openListing, openUnreadable, recordTransfers } from './books.ts'
import { type AdyenClient, NoAnswer, Refused } from './client.ts'
import type { AdyenSettings } from './settings.ts'
import { UnexpectedShape } from './transfer.ts'

const hourMs = 3_600_000

const limits = {
  // The delay after which a return without a notification is noticed.
  everyMs: 6 * hourMs,
  // Banks return within days; a recall may take ten banking days.
  backMs: 15 * 24 * hourMs,
  // A clock may differ from the bank's.
  clockMsMax: 24 * hourMs,
  // The vendor lists at most six months.
  periodMsMax: 150 * 24 * hourMs,
  // An outage of this length is not left to retries alone: a day's returns may be missing.
  outageMsMax: 12 * hourMs,
  // Per run, which is one a minute: 10,000 transfers.
  pagesMax: 100,
  // The whole of a run.
  msMax: 5 * 60_000,
}

type Context = { db: Db; log: Logger; now: Clock; settings: AdyenSettings; client: AdyenClient }

/**
 * Lists the payouts of the last weeks every few hours, and records the changes that no notification has reported. Continues from
 * the last page after a restart. Safe to run twice: known changes have no effect.
 */
export async function catchUp(context: Context): Promise<void> {
  const { db, now, settings } = context
  const feed = feedOf(settings)
  const restore = await findRestore(db)
  const known = readProgress(await cursorOf(db, feed))
  // Listed before the restore, by the books of then.
  const before = known !== null && restore !== undefined && known.until < restore.detectedAt ? null : known
  if (before !== null && before.cursor === null && now().getTime() - before.until.getTime() < limits.everyMs) return
  try {
    await listAll(context, { feed, before })
  } catch (error) {
    await raiseAlarm(context, { error, listedUntil: before?.until ?? null })
    throw error
  }
}

/** When the last listing began that has ended; null if none has. */
export async function readListedUntil(db: Reader, settings: Pick<AdyenSettings, 'name'>): Promise<Date | null> {
  const progress = readProgress(await cursorOf(db, feedOf(settings)))
  return progress === null || progress.cursor !== null ? null : progress.until
}

function feedOf({ name }: Pick<AdyenSettings, 'name'>): string {
  return `${name}-catch-up`
}

async function listAll(context: Context, { feed, before }: { feed: string; before: Progress | null }): Promise<void> {
  const { db, log, now, settings } = context
  const { name: rail } = settings
  const signal = AbortSignal.timeout(limits.msMax)
  let progress: Progress = before?.cursor == null ? await begin(context) : before
  let hasBegunAnew = false
  for (let page = 0; page < limits.pagesMax; page++) {
    const { transfers, unreadable, next } = await listPage(context, progress, signal).catch(async error => {
      if (progress.cursor === null || hasBegunAnew || !(error instanceof Refused)) throw error
      // Cursors expire. Listing the same transfers again changes nothing.
      log.warn({ rail, err: error }, 'a listing cannot go on where it was, and starts anew')
      hasBegunAnew = true
      progress = await begin(context)
      return await listPage(context, progress, signal)
    })
    if (unreadable.length > 0) log.error({ rail, unreadable }, 'transfers in a listing cannot be read')
    progress = { ...progress, cursor: next }
    await db.transaction().execute(async tx => {
      await recordTransfers(tx, { settings, transfers, now: now() })
      await openUnreadable(tx, { rail, what: 'transfer in a listing', all: unreadable, now: now() })
      await setCursor(tx, { rail: feed, cursor: writeProgress(progress), now: now() })
      if (next === null) await closeListing(tx, { rail, now: now() })
    })
    if (next === null) return
  }
}

/** Starts a listing that reaches back at least to the oldest open payment, and to the backup that was restored. */
async function begin({ db, now, settings }: Context): Promise<Progress> {
  const until = now()
  const oldest = (await findOldestOpen(db, settings.name)) ?? until
  const restore = await findRestore(db)
  const lostSince = restore === undefined ? until : (restore.recoveredUntil ?? new Date(0))
  const back = Math.min(
    until.getTime() - limits.backMs,
    oldest.getTime() - limits.clockMsMax,
    lostSince.getTime() - limits.clockMsMax,
  )
  return { since: new Date(Math.max(back, until.getTime() - limits.periodMsMax)), until, cursor: null }
}

async function listPage({ client }: Context, { since, until, cursor }: Progress, signal: AbortSignal) {
  return await client.list({ since, until, cursor }, signal)
}

/** Opens an exception at once for a refusal, but only after hours for an outage, since every minute retries. */
async function raiseAlarm(
  { db, now, settings }: Context,
  { error, listedUntil }: { error: unknown; listedUntil: Date | null },
): Promise<void> {
  const { name: rail } = settings
  const isOutage = error instanceof NoAnswer
  const lastAt = listedUntil ?? (await findOldestOpen(db, rail))
  if (isOutage && (lastAt === null || now().getTime() - lastAt.getTime() < limits.outageMsMax)) return
  const isKnown =
    isOutage || error instanceof Refused || error instanceof UnexpectedShape || error instanceof SecretFileProblem
  if (!isKnown) return
  const since = lastAt === null ? '' : ` since ${lastAt.toISOString()}`
  const reason = `Payments have not been listed${since}, so returns may be missed: ${error.message}`
  await db.transaction().execute(tx => openListing(tx, { rail, reason, now: now() }))
}

/** The progress of a listing. A null cursor means that it has ended or not begun. */
type Progress = { since: Date; until: Date; cursor: string | null }

function writeProgress({ since, until, cursor }: Progress): string {
  return `${until.toISOString()} ${encodeURIComponent(cursor ?? '')} ${since.toISOString()}`
}

function readProgress(stored: string | null): Progress | null {
  if (stored === null) return null
  const [until = '', cursor = '', since] = stored.split(' ')
  const end = new Date(until)
  return {
    since: since === undefined ? new Date(end.getTime() - limits.backMs) : new Date(since),
    until: end,
    cursor: cursor === '' ? null : decodeURIComponent(cursor),
  }
}

import type { Db, Reader } from '../database/database.ts'
import * as events from '../events/events.ts'
import { openLatestReplays } from '../idempotency/idempotency.ts'
import { openLatestKeys } from '../members/key-checks.ts'
import { listPartners } from '../partners/partners.ts'
import { verify } from '../verification/verify.ts'

const limits = {
  partnersMax: 100,
  eventsMax: 1_000,
  pageSize: 500,
  replaysMax: 100,
  membersMax: 100,
}

/** What a restored database was found to hold. @property broken the rules of the books that do not hold */
export type Inspection = { broken: string[]; rules: number; events: number; replays: number; memberKeys: number }

/**
 * Looks through a restored database as partners would use it: recomputes the books from the first transfer on, reads the feeds, and opens
 * stored responses and the keys of members.
 * @throws Error if a feed gives an event twice, or something sealed cannot be opened
 */
export async function inspectRestored(db: Db, { now }: { now: Date }): Promise<Inspection> {
  const checks = await verify(db, { isWhole: true })
  return {
    broken: checks.filter(({ disagreement }) => disagreement !== null).map(({ rule }) => rule),
    rules: checks.length,
    events: await readFeeds(db, now),
    replays: await openLatestReplays(db, { take: limits.replaysMax }),
    memberKeys: await openLatestKeys(db, { take: limits.membersMax }),
  }
}

/** @returns how many events were read */
async function readFeeds(db: Reader, now: Date): Promise<number> {
  let count = 0
  for (const { id: partnerId } of (await listPartners(db)).slice(0, limits.partnersMax)) {
    const seen = new Set<string>()
    let after: string | null = null
    while (seen.size < limits.eventsMax) {
      const page: events.Event[] = await events.read(db, {
        partnerId,
        after,
        types: [],
        countMax: limits.pageSize,
        now,
      })
      for (const { id } of page) {
        if (seen.has(id)) throw new Error(`The feed of ${partnerId} has the event ${id} twice`)
        seen.add(id)
      }
      after = page.at(-1)?.id ?? null
      if (after === null) break
    }
    count += seen.size
  }
  return count
}

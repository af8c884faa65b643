import { setTimeout as pause } from 'node:timers/promises'
import type { CallOptions } from '../../packages/sdk/src/call.ts'
import { ApiError, ConnectionError } from '../../packages/sdk/src/errors.ts'
import type { Event, EventId, Events, EventType } from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'

const limits = {
  // Between two reads of the feed. Events show within this time.
  pollMs: 500,
  eventsPerRead: 100,
  // Wait before another attempt while the service is away; doubles.
  reconnectMs: { first: 250, longest: 5_000 },
}

type Following = {
  types?: EventType[] | undefined
  /** The event after which to read; null for the beginning. */
  after: EventId | null
  /** Called when the service no longer answers, and when it does again. */
  onConnection?: (isConnected: boolean) => void
  signal?: AbortSignal
}

/** The current end of the feed. */
export async function endOfFeed(midmonth: Midmonth): Promise<EventId | null> {
  return (await midmonth.events.list({ from: 'now' })).lastEventId
}

/** Yields the events of the feed after an event, endlessly and without gaps: after a lost connection, it continues after the last event. */
export async function* follow(
  midmonth: Midmonth,
  { types, after, onConnection = () => undefined, signal }: Following,
): AsyncGenerator<Event> {
  let lastEventId = after
  let failures = 0
  while (!signal?.aborted) {
    try {
      // The loop does the retrying.
      const options = { signal, retriesMax: 0 }
      const page = await readAfter(midmonth, { after: lastEventId, types, take: limits.eventsPerRead, options })
      if (failures > 0) onConnection(true)
      failures = 0
      for (const event of page.events) {
        yield event
        lastEventId = event.id
      }
      // With filtered types, the position can be further than the last event that was printed.
      lastEventId = page.lastEventId
      if (!page.hasMore) await pause(limits.pollMs, undefined, { signal })
    } catch (error) {
      if (signal?.aborted) return
      if (!isPassing(error)) throw error
      if (failures === 0) onConnection(false)
      const { first, longest } = limits.reconnectMs
      await pause(Math.min(longest, first * 2 ** failures), undefined, { signal }).catch(() => undefined)
      failures += 1
    }
  }
}

type Reading = {
  after: EventId | null
  types?: EventType[] | undefined
  take: number
  options?: CallOptions
}

/** Reads the feed after an event; from its beginning if a reset or a move of the clock has taken that event out of the feed. */
export async function readAfter(midmonth: Midmonth, { after, types, take, options }: Reading): Promise<Events> {
  const read = async (position: EventId | null) =>
    await midmonth.events.list({ types, take, ...(position === null ? {} : { after: position }) }, options)
  if (after === null) return await read(null)
  try {
    return await read(after)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    return await read(null)
  }
}

function isPassing(error: unknown): boolean {
  return (
    error instanceof ConnectionError || (error instanceof ApiError && (error.status >= 500 || error.status === 429))
  )
}

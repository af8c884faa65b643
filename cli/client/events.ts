import { Command } from 'commander'
import type { Event, EventId, EventType } from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { examples } from '../help.ts'
import { writeErrorLine } from '../terminal.ts'
import { idOf } from './arguments.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { endOfFeed, follow } from './event-feed.ts'
import { typesOption } from './event-type.ts'
import { printStream } from './output.ts'

export const eventsCommand = new Command('events')

type Tail = Address & { types?: EventType[]; after?: EventId; fromStart?: boolean; json?: boolean }

addConnectionOptions(eventsCommand.command('tail'))
  .description('Print each event as it happens. After a lost connection, printing continues where it stopped.')
  .addOption(typesOption())
  .option('--after <event>', 'begin after this event, for example the last one of an earlier run', idOf('evt'))
  .option('--from-start', 'begin with the oldest event that the feed has, up to 30 days old')
  .option('--json', 'print each event as a line of JSON')
  .addHelpText(
    'after',
    examples(
      'events tail',
      'events tail --types withdrawal.paid withdrawal.failed --json',
      'events tail --after evt_…',
    ),
  )
  .action(async (options: Tail) => {
    const { types, after, fromStart, json } = options
    const midmonth = await connect(options)
    // An event that the feed does not have is refused here, and not mistaken for the end.
    if (after !== undefined) await midmonth.events.list({ after, take: 1 })
    const start = after ?? (fromStart ? null : await endOfFeed(midmonth))
    writeErrorLine('Following the events. Press Ctrl-C to stop.')
    const following = { types, after: start }
    await printFeed(midmonth, following, events => linesOf(events, { json }))
  })

/** Prints lines about the events that happen, until the reader of the output has gone. */
export async function printFeed(
  midmonth: Midmonth,
  following: { types: EventType[] | undefined; after: EventId | null },
  linesOf: (events: AsyncIterable<Event>) => AsyncIterable<string>,
): Promise<void> {
  const stop = new AbortController()
  try {
    await printStream(linesOf(follow(midmonth, { ...following, onConnection: reportConnection, signal: stop.signal })))
  } finally {
    stop.abort()
  }
}

/** A line for people, or of JSON. */
export function lineOf(event: Event, { json }: { json?: boolean | undefined }): string {
  const { timestamp, type, id, data } = event
  return json ? JSON.stringify(event) : `${timestamp}  ${type}  ${id}  ${JSON.stringify(data)}`
}

function reportConnection(isConnected: boolean): void {
  writeErrorLine(isConnected ? 'Connected again.' : 'The connection is lost; retrying until it is back.')
}

async function* linesOf(events: AsyncIterable<Event>, options: { json?: boolean | undefined }): AsyncGenerator<string> {
  for await (const event of events) yield `${lineOf(event, options)}\n`
}

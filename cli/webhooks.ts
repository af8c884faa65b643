import { setTimeout as pause } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import { readSettings, SettingsProblem } from '../src/config.ts'
import { type EventType, eventTypes } from '../src/events/catalogue.ts'
import { reasonOf, systemClock } from '../src/main.ts'
import { keyOf, newSecret, sign } from '../src/webhooks/signing.ts'
import { Api, Refusal } from './api.ts'
import { examples } from './help.ts'
import { terminal, writeErrorLine, writeLine } from './terminal.ts'
import { triggers } from './webhook-triggers.ts'

const limits = {
  // Between two reads of the feed. Events show within this time.
  pollMs: 500,
  // As for deliveries of the service.
  attemptMsMax: 15_000,
  eventsPerRead: 100,
  // How long to wait for an event that the worker makes happen. It takes a second, the simulated bank a few.
  triggerMsMax: 15_000,
}

export const webhooksCommand = new Command('webhooks')

const listenCommand = webhooksCommand
  .command('listen')
  .description('Print each event as it happens and, with --forward, send it to a URL, signed like a delivery.')
  .option('--forward <url>', 'where to send each event, for example http://127.0.0.1:3000/hook', address)
  .option('--types <types...>', 'only these types (default: all)', (type: string, types: string[] = []) => [
    ...types,
    eventType(type),
  ])
  .option('--secret <secret>', 'the secret that signs, whsec_… (default: a new one, which is printed)', secretOf)
  .option('--json', 'print each event as a line of JSON')
  .addHelpText('after', examples('webhooks listen', 'webhooks listen --forward http://127.0.0.1:3000/hook'))
  .action(async ({ forward, types = [], secret = newSecret(), json, ...options }: Listen) => {
    const api = openApi(options)
    const { lastEventId } = await api.read<Feed>({ path: '/v1/events?from=now' })
    const forwarding = forward === undefined ? '' : ` Forwarding to ${forward}, signed with ${secret}.`
    writeErrorLine(`Listening.${forwarding} Press Ctrl-C to stop.`)
    for await (const event of follow(api, { types, lastEventId })) {
      const { timestamp, type, id } = event
      writeLine(json ? JSON.stringify(event) : `${timestamp}  ${type}  ${id}  ${JSON.stringify(event.data)}`)
      if (forward === undefined) continue
      const outcome = await send(event, { url: forward, secret })
      writeErrorLine(`  → ${outcome}`)
    }
  })

const triggerCommand = webhooksCommand
  .command('trigger')
  .description('Make something happen in a sandbox, so that an event of this type follows.')
  .argument('<type>', 'a type of docs/reference/events.md, for example withdrawal.paid', triggerable)
  .option('--json', 'print each event as a line of JSON')
  .addHelpText('after', examples('webhooks trigger withdrawal.paid', 'webhooks trigger pay_cycle.closed'))
  .action(async ({ type, act }: Triggerable, { json, ...options }: Address & { json?: boolean }) => {
    const api = openApi(options)
    const { lastEventId: after } = await api.read<Feed>({ path: '/v1/events?from=now' })
    await act(api)
    const readNew = async () => (await readAfter(api, { after, query: 'take=1000' })).events
    const happened = (events: Event[]) => events.some(event => event.type === type)
    const deadlineMs = performance.now() + limits.triggerMsMax
    let events = await readNew()
    while (!happened(events) && performance.now() < deadlineMs) {
      await pause(limits.pollMs)
      events = await readNew()
    }
    for (const event of events) writeLine(json ? JSON.stringify(event) : `${event.type}  ${event.id}`)
    if (!happened(events))
      writeErrorLine(`${type} follows when the worker and the simulated bank get to it, within a few minutes`)
  })

for (const command of [listenCommand, triggerCommand]) {
  command
    .option('--url <url>', 'address of the service (default: OPENWAGE_URL, then http://127.0.0.1:8080)', address)
    .option('--key <key>', 'API key; prefer OPENWAGE_API_KEY, which process listings don’t show')
}

type Address = { url?: string; key?: string }
type Listen = Address & { forward?: string; types?: EventType[]; secret?: string; json?: boolean }
type Event = { id: string; type: EventType; timestamp: string; createdAt: string; sequence: number; data: object }
type Feed = { events: Event[]; lastEventId: string | null; hasMore: boolean }

/** The events of the feed after one, without an end. */
async function* follow(
  api: Api,
  { types, lastEventId: first }: { types: EventType[]; lastEventId: string | null },
): AsyncGenerator<Event> {
  let lastEventId = first
  const query = [`take=${limits.eventsPerRead}`, ...types.map(type => `types=${type}`)].join('&')
  for (;;) {
    const page = await readAfter(api, { after: lastEventId, query })
    yield* page.events
    lastEventId = page.lastEventId
    if (!page.hasMore) await pause(limits.pollMs)
  }
}

/** Reads the feed after an event; from its beginning if a move of the clock has taken that event out of the feed. */
async function readAfter(api: Api, { after, query }: { after: string | null; query: string }): Promise<Feed> {
  if (after === null) return await api.read<Feed>({ path: `/v1/events?${query}` })
  try {
    return await api.read<Feed>({ path: `/v1/events?${query}&after=${after}` })
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error
    return await readAfter(api, { after: null, query })
  }
}

async function send(event: Event, { url, secret }: { url: string; secret: string }): Promise<string> {
  const { createdAt: _, ...delivered } = event
  const body = JSON.stringify(delivered)
  const sentAt = Math.floor(systemClock().getTime() / 1_000)
  try {
    const { status } = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(limits.attemptMsMax),
      headers: {
        'content-type': 'application/json',
        'webhook-id': event.id,
        'webhook-timestamp': String(sentAt),
        'webhook-signature': sign([keyOf(secret)], { id: event.id, sentAt, body }),
      },
      body,
    })
    return String(status)
  } catch (error) {
    return reasonOf(error instanceof Error && error.cause !== undefined ? error.cause : error)
  }
}

function openApi(options: Address): Api {
  const settings = readSettings(terminal().env)
  const key = (options.key ?? settings.OPENWAGE_API_KEY).trim()
  if (key === '') throw new SettingsProblem('No API key: set OPENWAGE_API_KEY; create a key with openwage key create')
  return new Api({ url: options.url ?? settings.OPENWAGE_URL, key })
}

function address(text: string): string {
  if (!/^https?:\/\/[^\s#]+$/.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('Use a URL, for example http://127.0.0.1:3000/hook.')
  return text
}

function eventType(text: string): EventType {
  const type = eventTypes.find(each => each === text)
  if (type === undefined) throw new InvalidArgumentError('There is no such type; docs/reference/events.md lists them.')
  return type
}

type Triggerable = { type: EventType; act(api: Api): Promise<unknown> }

function triggerable(text: string): Triggerable {
  const type = eventType(text)
  const act = triggers[type]
  if (typeof act !== 'function') throw new InvalidArgumentError(`It cannot be triggered. ${act.reason}`)
  return { type, act }
}

function secretOf(text: string): string {
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(text)) throw new InvalidArgumentError('Use a secret such as whsec_….')
  return text
}

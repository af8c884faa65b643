import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Command, InvalidArgumentError } from 'commander'
import { ApiError } from '../../packages/sdk/src/errors.ts'
import type { Event, EventType } from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'
import { webhookTestHeaders } from '../../packages/sdk/src/webhooks.ts'
import { examples } from '../help.ts'
import { writeErrorLine, writeLine } from '../terminal.ts'
import { type Address, addConnectionOptions, connect } from './connection.ts'
import { endOfFeed, readAfter } from './event-feed.ts'
import { oneEventType, typesOption } from './event-type.ts'
import { lineOf, printFeed } from './events.ts'
import { defaultProfile, listeningSecret } from './profiles.ts'
import { type Trigger, triggers } from './webhook-triggers.ts'

const limits = {
  pollMs: 500,
  // As for deliveries of the service.
  attemptMsMax: 15_000,
  // How long to wait for an event that the worker causes. The worker takes a second, the simulated bank a few.
  triggerMsMax: 15_000,
}

export const webhooksCommand = new Command('webhooks')

type Listen = Address & { forward?: string; types?: EventType[]; secret?: string; json?: boolean }

addConnectionOptions(webhooksCommand.command('listen'))
  .description('Print each event as it happens and, with --forward, send it to a URL, signed like a delivery.')
  .option('--forward <url>', 'where to send each event, for example http://127.0.0.1:3000/hook', receiverAddress)
  .addOption(typesOption())
  .option(
    '--secret <secret>',
    'the signing secret, whsec_… (default: a secret that is kept for the profile and printed)',
    secretOf,
  )
  .option('--json', 'print each event as a line of JSON')
  .addHelpText('after', examples('webhooks listen', 'webhooks listen --forward http://127.0.0.1:3000/hook'))
  .action(async ({ forward, types, secret: given, json, ...address }: Listen) => {
    const midmonth = await connect(address)
    const kept = async () => await listeningSecret(address.profile ?? defaultProfile, newSecret)
    const secret = given ?? (forward === undefined ? '' : await kept())
    const after = await endOfFeed(midmonth)
    const forwarding = forward === undefined ? '' : ` Forwarding to ${forward}, signed with ${secret}.`
    writeErrorLine(`Listening.${forwarding} Press Ctrl-C to stop.`)
    const receiver = forward === undefined ? undefined : { url: forward, secret }
    await printFeed(midmonth, { types, after }, events => forwarded(events, { receiver, json }))
  })

addConnectionOptions(webhooksCommand.command('trigger'))
  .description('Make an event of this type happen in a sandbox.')
  .argument('<type>', 'a type of docs/reference/events.md, for example withdrawal.paid', triggerable)
  .option('--json', 'print each event as a line of JSON')
  .addHelpText('after', examples('webhooks trigger withdrawal.paid', 'webhooks trigger pay_cycle.closed'))
  .action(async ({ type, act }: Triggerable, { json, ...address }: Address & { json?: boolean }) => {
    const midmonth = await connect(address)
    await requireSandbox(midmonth)
    const after = await endOfFeed(midmonth)
    await act(midmonth)
    const readNew = async () => (await readAfter(midmonth, { after, take: 1_000 })).events
    const happened = (events: Event[]) => events.some(event => event.type === type)
    const deadlineMs = performance.now() + limits.triggerMsMax
    let events = await readNew()
    while (!happened(events) && performance.now() < deadlineMs) {
      await pause(limits.pollMs)
      events = await readNew()
    }
    for (const event of events) writeLine(json ? JSON.stringify(event) : `${event.type}  ${event.id}`)
    if (!happened(events))
      writeErrorLine(`${type} follows within a few minutes, when the worker and the simulated bank get to it`)
  })

/** @throws Error in live mode, where a triggered withdrawal would pay real money */
async function requireSandbox(midmonth: Midmonth): Promise<void> {
  try {
    // Every key may read it.
    await midmonth.sandbox.clock.get()
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    throw new Error('Only a sandbox can trigger events; nothing was done. This service is in live mode', {
      cause: error,
    })
  }
}

type Receiver = { url: string; secret: string }

/** The line of each event; the event is forwarded once its line is printed. */
async function* forwarded(
  events: AsyncIterable<Event>,
  { receiver, json }: { receiver: Receiver | undefined; json: boolean | undefined },
): AsyncGenerator<string> {
  for await (const event of events) {
    yield `${lineOf(event, { json })}\n`
    if (receiver !== undefined) writeErrorLine(`  → ${await send(event, receiver)}`)
  }
}

async function send(event: Event, { url, secret }: Receiver): Promise<string> {
  const { createdAt: _, ...delivered } = event
  const body = JSON.stringify(delivered)
  try {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(limits.attemptMsMax),
      headers: await webhookTestHeaders(body, secret, { id: event.id }),
      body,
    })
    await answer.body?.cancel()
    return String(answer.status)
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    return cause instanceof Error ? cause.message : String(cause)
  }
}

function receiverAddress(text: string): string {
  if (!/^https?:\/\/[^\s#]+$/.test(text) || !URL.canParse(text))
    throw new InvalidArgumentError('Use a URL, for example http://127.0.0.1:3000/hook.')
  return text
}

type Triggerable = { type: EventType; act: Trigger }

function triggerable(text: string): Triggerable {
  const type = oneEventType(text)
  const act = triggers[type]
  if (typeof act !== 'function') throw new InvalidArgumentError(`It cannot be triggered. ${act.reason}`)
  return { type, act }
}

function secretOf(text: string): string {
  if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(text)) throw new InvalidArgumentError('Use a secret such as whsec_….')
  return text
}

function newSecret(): string {
  return `whsec_${randomBytes(24).toString('base64')}`
}

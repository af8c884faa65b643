import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'

/** What a client wrote down about one request, before it sent it and when it heard something definite. */
export type Asked = {
  partnerId: string
  key: string
  request: Request
  attempts: number
  /** Answers that said 500: that something broke is 503, and 500 a fault of the program. */
  faults: number
  /** Definite answers: the first, and those to asking again under the same key. */
  answers: Answer[]
  /** Whether an answer said that an attempt which nobody heard of had been the one that did it. */
  replayed: boolean
}

/** `subject` is the id of what is changed. `serial` is told by the amount, so that an effect shows whose it is. */
export type Request =
  | { action: 'pay run'; serial: number; lines: { memberId: string; amount: number }[] }
  | { action: 'revert'; subject: string }
  | { action: 'intent'; serial: number; memberId: string; amount: number }
  | { action: 'complete'; subject: string }
  | { action: 'cancel intent'; subject: string }
  | { action: 'cancel withdrawal'; subject: string }

type Answer = { status: number; body: string; location: string | null }

/** Acknowledged: it is done. Refused: it is not, for good. Unknown: the client gave up before it heard either. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

export function outcomeOf({ answers: [first] }: Asked): Outcome {
  if (first === undefined) return 'unknown'
  return first.status < 300 ? 'acknowledged' : 'refused'
}

export function amountOfIntent(serial: number): number {
  return 1_000 + serial
}

// Enough for several withdrawals; as telling as the amount of an intent.
export function amountOfFirstLine(serial: number): number {
  return 12 * amountOfIntent(serial)
}

/** A partner as its clients see it: what they share, so that several of them turn to the same thing at once. */
export type Shop = {
  partnerId: string
  apiKey: string
  clients: number
  memberIds: string[]
  /** Who may have money: the members of the latest pay runs. */
  paidMemberIds: string[]
  payRuns: string[]
  intents: string[]
  withdrawals: string[]
}

/** What all clients have in common. */
export type Town = {
  /** Where the APIs listen that are running, as far as anybody knows. */
  addresses(): string[]
  nextSerial(): number
  /** No new requests from then on. */
  isOver(): boolean
  /** Nor any further attempts of old ones. */
  hasGoneHome(): boolean
  note(asked: Asked): void
}

const patience = { ordinaryMs: 5_000, shortMs: 15, shortAttemptsMax: 2 }
// Of requests whose first attempt broke: like a phone that has left the network for good.
const givesUp = 0.05
const asksAgain = 0.05

/** One client: a request at a time, each of them again and again until it has an answer. */
export async function live(name: string, shop: Shop, town: Town, random: Random): Promise<void> {
  for (let count = 1; !town.isOver(); count++) {
    await sleep(random.between(5, 80))
    const asked: Asked = {
      partnerId: shop.partnerId,
      key: `${name}/${count}`,
      request: choose(shop, town, random),
      attempts: 0,
      faults: 0,
      answers: [],
      replayed: false,
    }
    town.note(asked)
    const answer = await ask(asked, shop, town, random)
    if (answer !== undefined && answer.status < 300) {
      remember(shop, asked.request, answer)
      if (random.chance(asksAgain)) await ask(asked, shop, town, random)
    }
  }
}

function choose(shop: Shop, town: Town, random: Random): Request {
  const die = random.between(1, 100)
  if (die <= 15 || shop.payRuns.length === 0) return payRun(shop, town.nextSerial(), random)
  if (die <= 18) return { action: 'revert', subject: random.pick(shop.payRuns) }
  if (die <= 55 || shop.intents.length === 0) {
    const serial = town.nextSerial()
    return { action: 'intent', serial, memberId: random.pick(shop.paidMemberIds), amount: amountOfIntent(serial) }
  }
  // Mostly the latest, which others may just be completing too.
  const intent = shop.intents[random.chance(0.8) ? shop.intents.length - 1 : random.between(0, shop.intents.length - 1)]
  if (die <= 90 && intent !== undefined) return { action: 'complete', subject: intent }
  if (die <= 93 && intent !== undefined) return { action: 'cancel intent', subject: intent }
  const withdrawal = shop.withdrawals.at(-1)
  if (withdrawal !== undefined) return { action: 'cancel withdrawal', subject: withdrawal }
  return payRun(shop, town.nextSerial(), random)
}

function payRun({ memberIds }: Shop, serial: number, random: Random): Request {
  const lines = random
    .shuffled(memberIds)
    .slice(0, random.between(1, memberIds.length))
    .map((memberId, index) => ({
      memberId,
      // Every eighth further line is a correction.
      amount: index === 0 ? amountOfFirstLine(serial) : random.between(1, 30_000) * (random.chance(0.125) ? -1 : 1),
    }))
  return { action: 'pay run', serial, lines }
}

/** @returns the first definite answer; undefined when the client has given up */
async function ask(asked: Asked, shop: Shop, town: Town, random: Random): Promise<Answer | undefined> {
  const isHurried = random.chance(0.1)
  const willGiveUp = random.chance(givesUp)
  for (let attempt = 1; !town.hasGoneHome(); attempt++) {
    const address = town.addresses().length > 0 ? random.pick(town.addresses()) : undefined
    if (address !== undefined) {
      asked.attempts++
      const isShort = isHurried && attempt <= patience.shortAttemptsMax
      const waitMs = isShort ? random.between(1, patience.shortMs) : patience.ordinaryMs
      const answer = await send(asked, shop, { address, waitMs })
      if (answer !== undefined) {
        asked.answers.push(answer)
        return answer
      }
      if (willGiveUp) return undefined
    }
    await sleep(random.between(5, 150))
  }
  return undefined
}

async function send(
  asked: Asked,
  { apiKey }: Shop,
  { address, waitMs }: { address: string; waitMs: number },
): Promise<Answer | undefined> {
  const { method, path, body } = onWire(asked.request)
  try {
    const response = await fetch(address + path, {
      method,
      headers: {
        'x-api-key': apiKey,
        'x-idempotency-key': asked.key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(waitMs),
    })
    const answer = { status: response.status, body: await response.text(), location: response.headers.get('location') }
    if (response.status === 500) asked.faults++
    if (!isDefinite(response)) return undefined
    if (response.headers.has('idempotency-replayed') && asked.answers.length === 0) asked.replayed = true
    return answer
  } catch {
    // Nobody knows what became of it.
    return undefined
  }
}

// The key is being processed just now (409 with retry-after), too many requests, too slow, or a fault of the server's:
// the same request may be done yet.
function isDefinite({ status, headers }: Response): boolean {
  if (status >= 500 || status === 408 || status === 429) return false
  return !(status === 409 && headers.has('retry-after'))
}

function onWire(request: Request): { method: string; path: string; body?: unknown } {
  switch (request.action) {
    case 'pay run': {
      const payDetails = request.lines.map(({ memberId, amount }) => ({ memberId, money: pounds(amount) }))
      return { method: 'POST', path: '/v1/pay/run', body: { payDetails } }
    }
    case 'revert':
      return { method: 'POST', path: `/v1/pay/runs/${request.subject}/revert` }
    case 'intent': {
      const { memberId, amount } = request
      return { method: 'POST', path: '/v1/pay/withdrawals/intent', body: { memberId, amount: pounds(amount) } }
    }
    case 'complete':
      return { method: 'POST', path: '/v1/pay/withdrawals/complete', body: { withdrawalIntentId: request.subject } }
    case 'cancel intent':
      return { method: 'DELETE', path: `/v1/pay/withdrawals/intent/${request.subject}` }
    case 'cancel withdrawal':
      return { method: 'POST', path: `/v1/pay/withdrawals/${request.subject}/cancel` }
    default:
      return request satisfies never
  }
}

function pounds(amount: number) {
  return { amount, currency: 'GBP' }
}

function remember(shop: Shop, request: Request, { body, location }: Answer): void {
  if (request.action === 'pay run') {
    shop.payRuns.push(idAt(location))
    shop.paidMemberIds.push(...request.lines.map(({ memberId }) => memberId))
    shop.paidMemberIds.splice(0, shop.paidMemberIds.length - paidMembersMax)
  }
  if (request.action === 'intent') shop.intents.push(JSON.parse(body).withdrawalIntentId)
  if (request.action === 'complete') shop.withdrawals.push(idAt(location))
}

// Some rounds of pay; older ones are mostly spent.
const paidMembersMax = 30

/** The id of what a `location` header names. */
export function idAt(location: string | null): string {
  return location?.split('/').at(-1) ?? 'none'
}

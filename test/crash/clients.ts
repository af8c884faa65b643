import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from './random.ts'

/** A client's record of one request, written before the request is sent and updated with each definite response. */
export type RequestRecord = {
  partnerId: string
  currency: Partner['currency']
  key: string
  request: Request
  attempts: number
  /** The responses that say when to retry an outage: 503 with retry-after. */
  unavailable: number
  /** The other responses from 500 up, which are bugs in the service. */
  serverErrors: number
  /** The definite responses: the first, and the responses to repetitions with the same key. */
  answers: Answer[]
  /** Whether the response was a replay, so that an earlier attempt without a response took effect. */
  replayed: boolean
}

/** `subject` is the id of the changed resource. The amount encodes `serial`, which identifies the request of an effect. */
export type Request =
  | { action: 'pay run'; serial: number; lines: { memberId: string; amount: number }[] }
  | { action: 'revert'; subject: string }
  | { action: 'intent'; serial: number; memberId: string; amount: number }
  | { action: 'complete'; subject: string }
  | { action: 'cancel intent'; subject: string }
  | { action: 'cancel withdrawal'; subject: string }

type Answer = { status: number; body: string; location: string | null }

/** An acknowledged request took effect, a refused one never will, and an unknown one had an attempt without a response. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown'

export function outcomeOf({ attempts, answers: [first] }: RequestRecord): Outcome {
  if (first === undefined) return 'unknown'
  if (first.status < 300) return 'acknowledged'
  // Refusals are not stored under the key, so an earlier attempt without a response may arrive later and take effect.
  return attempts === 1 ? 'refused' : 'unknown'
}

export function amountOfIntent(serial: number): number {
  return 1_000 + serial
}

// Enough for several withdrawals, and unique like the amount of an intent.
export function amountOfFirstLine(serial: number): number {
  return 12 * amountOfIntent(serial)
}

/** The shared state of a partner's clients, so that several of them use the same resource concurrently. */
export type Partner = {
  partnerId: string
  /** The currency in which its members are paid. */
  currency: 'GBP' | 'EUR'
  apiKey: string
  clients: number
  memberIds: string[]
  /** The members of the latest pay runs, who probably have an available balance. */
  paidMemberIds: string[]
  payRuns: string[]
  intents: string[]
  withdrawals: string[]
}

/** The shared state of all clients. */
export type Simulation = {
  /** The addresses of the APIs that were last seen running. */
  addresses(): string[]
  nextSerial(): number
  /** Whether clients must stop making new requests. */
  isOver(): boolean
  /** Whether clients must also stop retrying. */
  hasStopped(): boolean
  add(record: RequestRecord): void
}

const timeouts = { ordinaryMs: 5_000, shortMs: 15, shortAttemptsMax: 2 }
// The share of clients that never retry, like a phone that has permanently lost its network.
const giveUpProbability = 0.05
const repeatProbability = 0.05

/** Runs one client: sends one request at a time, and retries each until it has a definite response. */
export async function runClient(name: string, partner: Partner, simulation: Simulation, random: Random): Promise<void> {
  for (let count = 1; !simulation.isOver(); count++) {
    await sleep(random.between(5, 80))
    const record = newRecord(partner, `${name}/${count}`, choose(partner, simulation, random))
    simulation.add(record)
    const answer = await sendUntilAnswered(record, partner, simulation, random)
    if (answer !== undefined && answer.status < 300) {
      remember(partner, record.request, answer)
      if (random.chance(repeatProbability)) await sendUntilAnswered(record, partner, simulation, random)
    }
  }
}

export function newRecord(
  { partnerId, currency }: Pick<Partner, 'partnerId' | 'currency'>,
  key: string,
  request: Request,
): RequestRecord {
  const counts = { attempts: 0, unavailable: 0, serverErrors: 0 }
  return { partnerId, currency, key, request, ...counts, answers: [], replayed: false }
}

function choose(partner: Partner, simulation: Simulation, random: Random): Request {
  const die = random.between(1, 100)
  if (die <= 15 || partner.payRuns.length === 0) return payRun(partner, simulation.nextSerial(), random)
  if (die <= 18) return { action: 'revert', subject: random.pick(partner.payRuns) }
  if (die <= 55 || partner.intents.length === 0) {
    const serial = simulation.nextSerial()
    return { action: 'intent', serial, memberId: random.pick(partner.paidMemberIds), amount: amountOfIntent(serial) }
  }
  // Mostly the latest one, which other clients may be completing at the same time.
  const intent =
    partner.intents[random.chance(0.8) ? partner.intents.length - 1 : random.between(0, partner.intents.length - 1)]
  if (die <= 90 && intent !== undefined) return { action: 'complete', subject: intent }
  if (die <= 93 && intent !== undefined) return { action: 'cancel intent', subject: intent }
  const withdrawal = partner.withdrawals.at(-1)
  if (withdrawal !== undefined) return { action: 'cancel withdrawal', subject: withdrawal }
  return payRun(partner, simulation.nextSerial(), random)
}

function payRun({ memberIds }: Partner, serial: number, random: Random): Request {
  const lines = random
    .shuffled(memberIds)
    .slice(0, random.between(1, memberIds.length))
    .map((memberId, index) => ({
      memberId,
      // One in eight of the other lines is a correction.
      amount: index === 0 ? amountOfFirstLine(serial) : random.between(1, 30_000) * (random.chance(0.125) ? -1 : 1),
    }))
  return { action: 'pay run', serial, lines }
}

/** @returns the first definite response; undefined if the client gave up */
async function sendUntilAnswered(
  record: RequestRecord,
  partner: Partner,
  simulation: Simulation,
  random: Random,
): Promise<Answer | undefined> {
  const isHurried = random.chance(0.1)
  const willGiveUp = random.chance(giveUpProbability)
  for (let attempt = 1; !simulation.hasStopped(); attempt++) {
    const address = simulation.addresses().length > 0 ? random.pick(simulation.addresses()) : undefined
    if (address !== undefined) {
      record.attempts++
      const isShort = isHurried && attempt <= timeouts.shortAttemptsMax
      const waitMs = isShort ? random.between(1, timeouts.shortMs) : timeouts.ordinaryMs
      const answer = await send(record, partner, { address, waitMs })
      if (answer !== undefined) {
        record.answers.push(answer)
        return answer
      }
      if (willGiveUp) return undefined
    }
    await sleep(random.between(5, 150))
  }
  return undefined
}

/** Sends a request once. @returns its definite response; undefined if the outcome is unknown */
export async function send(
  record: RequestRecord,
  { apiKey, currency }: Partner,
  { address, waitMs }: { address: string; waitMs: number },
): Promise<Answer | undefined> {
  const { method, path, body } = onWire(record.request, currency)
  try {
    const response = await fetch(address + path, {
      method,
      headers: {
        'x-api-key': apiKey,
        'x-idempotency-key': record.key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(waitMs),
    })
    const answer = { status: response.status, body: await response.text(), location: response.headers.get('location') }
    if (response.status === 503 && response.headers.has('retry-after')) record.unavailable++
    else if (response.status >= 500) record.serverErrors++
    if (!isDefinite(response)) return undefined
    if (response.headers.has('idempotency-replayed') && record.answers.length === 0) record.replayed = true
    return answer
  } catch {
    // The outcome is unknown.
    return undefined
  }
}

// These are not definite: a request with the same key in progress (409 with retry-after), the rate limit, a timeout, a
// server error. The request may still take effect.
function isDefinite({ status, headers }: Response): boolean {
  if (status >= 500 || status === 408 || status === 429) return false
  return !(status === 409 && headers.has('retry-after'))
}

function onWire(request: Request, currency: Partner['currency']): { method: string; path: string; body?: unknown } {
  switch (request.action) {
    case 'pay run': {
      const payDetails = request.lines.map(({ memberId, amount }) => ({ memberId, money: { amount, currency } }))
      return { method: 'POST', path: '/v1/pay/run', body: { payDetails } }
    }
    case 'revert':
      return { method: 'POST', path: `/v1/pay/runs/${request.subject}/revert` }
    case 'intent': {
      const { memberId, amount } = request
      return { method: 'POST', path: '/v1/pay/withdrawals/intent', body: { memberId, amount: { amount, currency } } }
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

function remember(partner: Partner, request: Request, { body, location }: Answer): void {
  if (request.action === 'pay run') {
    partner.payRuns.push(idAt(location))
    partner.paidMemberIds.push(...request.lines.map(({ memberId }) => memberId))
    partner.paidMemberIds.splice(0, partner.paidMemberIds.length - paidMembersMax)
  }
  if (request.action === 'intent') partner.intents.push(JSON.parse(body).withdrawalIntentId)
  if (request.action === 'complete') partner.withdrawals.push(idAt(location))
}

// A few pay runs' worth; older pay is mostly spent.
const paidMembersMax = 30

/** The id of the resource in a `location` header. */
export function idAt(location: string | null): string {
  return location?.split('/').at(-1) ?? 'none'
}

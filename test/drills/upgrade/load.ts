import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'

type Sent = { atMs: number; ms: number; status: number; what: string }

// A tenth of what one process serves on two idle cores.
const perSecond = Number(process.env.DRILL_RATE ?? 40)
const timeoutMs = 20_000

/**
 * Requests of a partner at a steady rate, whether or not the earlier ones have been answered, so that a stall delays all that are due in
 * it. Each member has plenty to withdraw.
 */
export class Load {
  readonly #agent = new Agent({ connections: 256, bodyTimeout: timeoutMs, headersTimeout: timeoutMs })
  readonly #sent: Sent[] = []
  readonly #intents: string[] = []
  readonly #running = new Set<Promise<void>>()
  readonly #key: string
  readonly #members: number
  #addresses: string[]
  #phase: { name: string; fromMs: number; first: number }
  #isStopping = false
  #loop: Promise<void>

  /** @param addresses the processes that are ready, which take turns */
  constructor({
    key,
    members,
    addresses,
    phase,
  }: { key: string; members: number; addresses: string[]; phase: string }) {
    this.#key = key
    this.#members = members
    this.#addresses = addresses
    this.#phase = { name: phase, fromMs: performance.now(), first: 0 }
    this.#loop = this.#send()
  }

  /** Sends to these processes from now on, like a load balancer. */
  sendTo(addresses: string[]): void {
    this.#addresses = addresses
  }

  /** Waits for the responses of a phase and begins the next. @returns the figures of the phase */
  async endPhase(next: string): Promise<Figures> {
    const { name, fromMs, first } = this.#phase
    const untilMs = performance.now()
    await Promise.all(this.#running)
    const figures = figuresOf(
      name,
      this.#sent.slice(first).filter(({ atMs }) => atMs < untilMs),
      { fromMs, untilMs },
    )
    this.#phase = { name: next, fromMs: performance.now(), first: this.#sent.length }
    return figures
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#loop
    await Promise.all(this.#running)
    if (!this.#agent.closed) await this.#agent.close()
  }

  async #send(): Promise<void> {
    const beganMs = performance.now()
    for (let count = 0; !this.#isStopping; count++) {
      const dueMs = beganMs + (count * 1_000) / perSecond
      const earlyMs = dueMs - performance.now()
      if (earlyMs > 0) await pause(earlyMs)
      const running = this.#sendOne(count, dueMs).finally(() => this.#running.delete(running))
      this.#running.add(running)
    }
  }

  async #sendOne(count: number, dueMs: number): Promise<void> {
    const { method, path, body, isIntent } = this.#next(count)
    const address = this.#addresses[count % this.#addresses.length] ?? ''
    const what = `${method} ${path.replace(/\/mem_\w+/, '/…')}`
    let status = 0
    try {
      const response = await request(address + path, {
        dispatcher: this.#agent,
        method,
        headers: { 'x-api-key': this.#key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
      })
      status = response.statusCode
      const answer = await response.body.json()
      if (isIntent && status === 201) this.#intents.push((answer as { withdrawalIntentId: string }).withdrawalIntentId)
    } catch {
      // A response that never came is counted with status 0.
    }
    // From when it was due: a request that could not even be sent has waited too.
    this.#sent.push({ atMs: dueMs, ms: performance.now() - dueMs, status, what })
  }

  #next(count: number): { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: object; isIntent?: true } {
    const member = `mem_${String(Math.floor(Math.random() * this.#members)).padStart(26, '0')}`
    const turn = count % 20
    const withdrawalIntentId = turn < 10 ? undefined : turn < 14 ? this.#intents.shift() : undefined
    if (withdrawalIntentId !== undefined)
      return { method: 'POST', path: '/v1/pay/withdrawals/complete', body: { withdrawalIntentId } }
    if (turn < 14) {
      const body = { memberId: member, amount: { amount: 5_000, currency: 'GBP' } }
      return { method: 'POST', path: '/v1/pay/withdrawals/intent', body, isIntent: true }
    }
    if (turn < 16) return { method: 'GET', path: `/v1/pay/members/${member}/balance` }
    if (turn < 18) return { method: 'GET', path: '/v1/events?take=20' }
    if (turn < 19) return { method: 'PATCH', path: `/v1/members/${member}`, body: { lastName: `Okafor-${count}` } }
    const email = `new-${count}-${Math.random().toString(36).slice(2)}@example.com`
    return { method: 'POST', path: '/v1/members', body: { email, firstName: 'Ada', lastName: 'Obi', tier: 'Bronze' } }
  }
}

export type Figures = {
  phase: string
  seconds: number
  requests: number
  /** By status and operation; 0 means that no response came. */
  failures: Record<string, number>
  /** Seconds in which requests were due and none was answered well. */
  silentSeconds: number
  p50: number
  p99: number
  max: number
}

function figuresOf(phase: string, sent: Sent[], { fromMs, untilMs }: { fromMs: number; untilMs: number }): Figures {
  const isGood = ({ status }: Sent) => status >= 200 && status < 300
  const answered = new Set(sent.filter(isGood).map(({ atMs, ms }) => Math.floor((atMs + ms - fromMs) / 1_000)))
  const seconds = Math.floor((untilMs - fromMs) / 1_000)
  const waits = sent.map(({ ms }) => ms).toSorted((one, other) => one - other)
  const quantile = (share: number) =>
    Math.round(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? 0)
  const failures: Record<string, number> = {}
  for (const { status, what } of sent.filter(each => !isGood(each)))
    failures[`${status} ${what}`] = (failures[`${status} ${what}`] ?? 0) + 1
  return {
    ...{ phase, seconds, requests: sent.length, failures },
    silentSeconds: Array.from({ length: seconds }, (_, second) => second).filter(second => !answered.has(second))
      .length,
    ...{ p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) },
  }
}

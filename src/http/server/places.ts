import type { FastifyRequest } from 'fastify'
import { type Problem, problem } from '../../kernel/errors.ts'

/** The owner of the places of callers who are not identified without a query: sessions, operators, and keys that are not cached. */
export const others = 'others'

type Limits = {
  /** Places of all partners. More make batches larger, but every response later. */
  placesMax: number
  /** Of one partner, while another is active: enough to keep two cores busy, few enough that the other is served within milliseconds. */
  shareMax: number
  othersMax: number
  /** What a request takes unless it shares statements with others in a batch: it keeps a connection to the database busy. */
  unbatchedPlaces: number
  /** Requests that wait for places of one owner. A client may send thousands over one connection without awaiting responses. */
  waitingMax: number
  /** A request that has waited this long is refused while its caller still has time to retry. */
  waitMsMax: number
}

export const limits: Limits = {
  placesMax: 256,
  shareMax: 64,
  othersMax: 128,
  unbatchedPlaces: 4,
  waitingMax: 4_096,
  waitMsMax: 2_000,
}

// A partner that was last seen longer ago no longer counts as active.
const activeMsMax = 2_000
// Work ends within its deadline of five seconds, also if its caller has disconnected.
const workMsMax = 10_000
const sweepEveryMs = 50

type Waiting = { request: FastifyRequest; sinceMs: number; enter(): void; refuse(reason: Problem): void }

/** A partner, or `others`. */
export type Owner = { readonly name: string; inUse: number; waiting: Waiting[]; seenMs: number }

/**
 * Bounds the requests that are worked on at a time. The others wait, unread, in one queue per partner, and places that become free go
 * round the partners, so that a partner that floods the service delays only itself.
 */
export class Places {
  readonly #limits: Limits
  readonly #owners = new Map<string, Owner>()
  readonly #sweeping: NodeJS.Timeout
  /** The requests that have places, and since when. */
  readonly #holders = new Map<FastifyRequest, number>()
  #inUse = 0
  #waiting = 0

  constructor(given: Partial<Limits> = {}) {
    this.#limits = { ...limits, ...given }
    this.#sweeping = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  }

  /**
   * Takes the places of a request, which keeps them until `leave`: the work of a caller who disconnects goes on.
   * @returns undefined if places were free; otherwise resolves when the request's turn has come
   * @throws Problem `ServiceUnavailable` if too many wait, or later, if no place becomes free in time
   */
  enter(request: FastifyRequest, name: string): Promise<void> | undefined {
    const owner = this.#ownerOf(name)
    owner.seenMs = performance.now()
    if (owner.waiting.length === 0 && this.#isFree(owner)) {
      this.#take(owner, request, owner.seenMs)
      return undefined
    }
    if (owner.waiting.length >= this.#limits.waitingMax) throw tooBusy()
    this.#waiting += 1
    return new Promise<void>((resolve, reject) => {
      const enter = () => {
        // The response would reach no one.
        if (request.raw.socket.destroyed) reject(problem('BadRequest', 'The caller has disconnected'))
        else resolve(this.#take(owner, request, performance.now()))
      }
      owner.waiting.push({ request, sinceMs: owner.seenMs, enter, refuse: reject })
    })
  }

  /** Gives the request's places to the next in turn, if it has any. */
  leave(request: FastifyRequest): void {
    const { placeOf: owner } = request
    if (owner === undefined) return
    request.placeOf = undefined
    this.#holders.delete(request)
    const places = this.#placesOf(request)
    owner.inUse -= places
    if (owner.name !== others) this.#inUse -= places
    if (this.#waiting > 0) this.#admitNext()
  }

  close(): void {
    clearInterval(this.#sweeping)
  }

  #ownerOf(name: string): Owner {
    const known = this.#owners.get(name)
    if (known !== undefined) return known
    const owner: Owner = { name, inUse: 0, waiting: [], seenMs: performance.now() }
    this.#owners.set(name, owner)
    return owner
  }

  // The last request may take more places than are free, so that any limit lets one in.
  #isFree({ name, inUse }: Owner): boolean {
    const { placesMax, shareMax, othersMax } = this.#limits
    if (name === others) return inUse < othersMax
    const partners = this.#owners.size - (this.#owners.has(others) ? 1 : 0)
    return this.#inUse < placesMax && inUse < (partners > 1 ? shareMax : placesMax)
  }

  #placesOf({ route }: FastifyRequest): number {
    return route.config.isBatched ? 1 : this.#limits.unbatchedPlaces
  }

  #take(owner: Owner, request: FastifyRequest, sinceMs: number): void {
    const places = this.#placesOf(request)
    owner.inUse += places
    if (owner.name !== others) this.#inUse += places
    request.placeOf = owner
    this.#holders.set(request, sinceMs)
  }

  /** Admits waiting requests, one of each owner in turn, as long as places are free. */
  #admitNext(): void {
    for (let hasAdmitted = true; hasAdmitted; ) {
      hasAdmitted = false
      for (const owner of [...this.#owners.values()].filter(({ waiting }) => waiting.length > 0)) {
        if (!this.#isFree(owner)) continue
        const next = owner.waiting.shift()
        this.#waiting -= 1
        hasAdmitted = true
        // Last in turn from now on.
        this.#owners.delete(owner.name)
        this.#owners.set(owner.name, owner)
        next?.enter()
      }
    }
  }

  #sweep(): void {
    const nowMs = performance.now()
    // A fence: a place that is never given up would be lost until the service is restarted.
    for (const [request, sinceMs] of this.#holders) {
      if (nowMs - sinceMs < workMsMax) break
      if (request.raw.socket.destroyed) this.leave(request)
    }
    for (const owner of this.#owners.values()) {
      for (let first = owner.waiting[0]; first !== undefined; first = owner.waiting[0]) {
        if (nowMs - first.sinceMs < this.#limits.waitMsMax) break
        owner.waiting.shift()
        this.#waiting -= 1
        first.refuse(tooBusy())
      }
      const isActive = owner.inUse > 0 || owner.waiting.length > 0 || nowMs - owner.seenMs < activeMsMax
      if (!isActive) this.#owners.delete(owner.name)
    }
    // A partner whose neighbour has become idle may use more places.
    if (this.#waiting > 0) this.#admitNext()
  }
}

function tooBusy(): Problem {
  const headers = { 'retry-after': '1' }
  return problem('ServiceUnavailable', 'The service is busy, so nothing was done; try again', {}, headers)
}

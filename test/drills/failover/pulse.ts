import { setTimeout as sleep } from 'node:timers/promises'
import { amountOfFirstLine, newRecord, type Partner, type Simulation, send } from '../../crash/clients.ts'
import type { Process } from '../../crash/program.ts'

const everyMs = 250
// Longer than the deadline of a request, so that the service answers first.
const waitMsMax = 10_000

/** Writes at a steady rate over one API, whether or not earlier writes were answered, and remembers when writes were acknowledged. */
export class Pulse {
  readonly way: string
  readonly ended: Promise<void>
  readonly #beats: { sentAt: number; answeredAt: number }[] = []

  constructor(way: string, run: { api: Process; partner: Partner; simulation: Simulation }) {
    this.way = way
    this.ended = this.#run(run)
  }

  hasBeatenSince(at: number): boolean {
    return this.#beats.some(({ sentAt }) => sentAt > at)
  }

  /** The longest time without an acknowledged write, from the last one before `at` until now, in milliseconds. */
  longestPauseSince(at: number): number {
    const answered = this.#beats.map(({ answeredAt }) => answeredAt).toSorted((a, b) => a - b)
    const first = answered.findLastIndex(each => each <= at)
    const times = [...answered.slice(Math.max(first, 0)), Date.now()]
    return Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? 0)))
  }

  /** How long after an instant the first later write was acknowledged, in milliseconds; Infinity if none was. */
  firstBeatAfter(at: number): number {
    return Math.min(...this.#beats.flatMap(({ sentAt, answeredAt }) => (sentAt > at ? [answeredAt - at] : [])))
  }

  async #run({ api, partner, simulation }: { api: Process; partner: Partner; simulation: Simulation }): Promise<void> {
    const beating: Promise<void>[] = []
    for (let count = 1; !simulation.isOver(); count++) {
      const address = api.address()
      if (address !== undefined) beating.push(this.#beat(`${this.way}/${count}`, { address, partner, simulation }))
      await sleep(everyMs)
    }
    await Promise.all(beating)
  }

  async #beat(
    key: string,
    { address, partner, simulation }: { address: string; partner: Partner; simulation: Simulation },
  ): Promise<void> {
    const serial = simulation.nextSerial()
    const [memberId = ''] = partner.memberIds
    const lines = [{ memberId, amount: amountOfFirstLine(serial) }]
    const record = { ...newRecord(partner, key, { action: 'pay run', serial, lines }), attempts: 1 }
    simulation.add(record)
    const sentAt = Date.now()
    const answer = await send(record, partner, { address, waitMs: waitMsMax })
    if (answer === undefined) return
    record.answers.push(answer)
    if (answer.status < 300) this.#beats.push({ sentAt, answeredAt: Date.now() })
  }
}

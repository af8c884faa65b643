import type { Tx } from '../database/database.ts'
import { outageOutcome } from '../database/errors.ts'
import { lockByNameIfFree } from '../database/named-locks.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { partnerOf, scheduleTask, type TaskContext, type Tasks } from '../worker/task.ts'
import * as closing from './closing.ts'

// Per run of the task. High, because the months of many partners end at the same midnight.
const partnersMax = 10_000

// A run that takes longer makes way for other tasks, and for the end of the process. The rest follows in the next run, which has to
// find its place: reading a million balances takes up to a second.
const runMsMax = 10_000

export const closingTasks = {
  // One transaction for the end of a cycle, and then one for each chunk of its members, the partners in turns. After days of
  // downtime, closes overdue cycles one by one until today's is open. Safe to run twice: a cycle ends only while it is open and
  // over, and pay is released only once, each under its lock.
  async 'close-pay-cycles'(context) {
    const { db, now, scope } = context
    const found = await payCycles.findOver(db, { now: now(), countMax: partnersMax, scope })
    const closings = found.map(partnerId => new Closing(context, partnerId))
    // First of all partners: an ended cycle stops withdrawals of its pay, however long its members take.
    for (const each of closings) await each.step()
    const until = performance.now() + (partnerOf(scope) === undefined ? runMsMax : Infinity)
    let left = closings.filter(each => !each.isDone)
    while (left.length > 0 && performance.now() < until) {
      for (const each of left) if (performance.now() < until) await each.step()
      left = left.filter(each => !each.isDone)
    }
    if (left.length > 0) {
      await db.transaction().execute(tx => scheduleTask(tx, { task: 'close-pay-cycles', at: now() }))
    }
    const failed = closings.find(({ failure }) => failure !== undefined)
    if (failed !== undefined) throw failed.failure
  },
} satisfies Partial<Tasks>

/** Closes the overdue cycles of a partner, step by step. */
class Closing {
  isDone = false
  failure: unknown
  readonly #context: TaskContext
  readonly #partnerId: string
  #progress: closing.Progress = closing.start

  constructor(context: TaskContext, partnerId: string) {
    this.#context = context
    this.#partnerId = partnerId
  }

  async step(): Promise<void> {
    const { db, log, now } = this.#context
    const of = { partnerId: this.#partnerId, now: now() }
    try {
      const outcome = await db.transaction().execute(async tx => await this.#stepIn(tx, of))
      this.#progress = typeof outcome === 'object' && 'after' in outcome ? outcome : closing.start
      this.isDone = outcome === undefined
      if (typeof outcome === 'object' && 'closed' in outcome) {
        log.info({ partnerId: of.partnerId, ended: outcome.closed.id, opened: outcome.opened.id }, 'pay cycle ended')
      }
      if (outcome === 'closed') log.info({ partnerId: of.partnerId }, 'pay cycle closed')
    } catch (error) {
      // One partner's failure must not keep other cycles open. A locked cycle is retried in the next run.
      log.warn({ err: error, partnerId: of.partnerId }, 'pay cycle not closed yet')
      if (outageOutcome(error) === undefined) this.failure = error
      this.isDone = true
    }
  }

  /** @returns undefined if nothing is left to do, or another run is doing it */
  async #stepIn(tx: Tx, of: { partnerId: string; now: Date }) {
    // Moving a partner's clock waits until the cycle is closed. Otherwise, a concurrent attempt, which can wait for half a minute,
    // would only take up a second worker slot.
    const isPatient = partnerOf(this.#context.scope) !== undefined
    if (!isPatient && !(await lockByNameIfFree(tx, 'closing of the pay cycle of', of.partnerId))) return undefined
    const released = await closing.releaseSome(tx, { ...of, progress: this.#progress, isPatient })
    return released ?? (await closing.endIfOver(tx, of))
  }
}

import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Db, lanesOf } from '../database/database.ts'
import { type Attempt, record } from './attempts.ts'

const limits = {
  // A statement of some ten milliseconds, with at most 16 KiB of response each.
  recordedAtOnceMax: 200,
  // How long attempts are collected. A commit costs as much as recording dozens of them, and no request waits for it.
  collectMs: 20,
}

type Waiting = { attempt: Attempt; recorded: PromiseWithResolvers<void> }

/** Records attempts. Attempts that end while a statement is running are recorded together by the next one. */
export class Recorder {
  private readonly context: { db: Db; log: Logger }
  private waiting: Waiting[] = []
  private isRecording = false

  constructor(context: { db: Db; log: Logger }) {
    this.context = context
  }

  /** Resolves once the attempt is recorded. */
  async add(attempt: Attempt): Promise<void> {
    const recorded = Promise.withResolvers<void>()
    this.waiting.push({ attempt, recorded })
    if (!this.isRecording) void this.recordAll()
    await recorded.promise
  }

  private async recordAll(): Promise<void> {
    this.isRecording = true
    while (this.waiting.length > 0) {
      if (this.waiting.length < limits.recordedAtOnceMax) await pause(limits.collectMs)
      const next = this.takeNext()
      try {
        const { db, log } = this.context
        const changes = await db.transaction().execute(tx =>
          record(
            tx,
            next.map(({ attempt }) => attempt),
          ),
        )
        for (const { event, ...change } of changes) log.warn(change, event)
        for (const { recorded } of next) recorded.resolve()
      } catch (error) {
        for (const { recorded } of next) recorded.reject(error)
      }
    }
    this.isRecording = false
  }

  /** Takes the oldest attempts; where lanes are per partner, those of one partner. */
  private takeNext(): Waiting[] {
    if (lanesOf(this.context.db) === 'shared') return this.waiting.splice(0, limits.recordedAtOnceMax)
    const partnerId = this.waiting[0]?.attempt.partnerId
    const next = this.waiting
      .filter(({ attempt }) => attempt.partnerId === partnerId)
      .slice(0, limits.recordedAtOnceMax)
    const taken = new Set(next)
    this.waiting = this.waiting.filter(each => !taken.has(each))
    return next
  }
}

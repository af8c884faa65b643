import { setTimeout as pause } from 'node:timers/promises'
import type { Reader } from '../database/database.ts'
import { keyCacheMs } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { ApiContext, App } from '../http/server.ts'
import { read, withStartedWork } from '../http/with-idempotency.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import type { Tasks } from '../tasks.ts'
import { parseDuration, parseInstant } from '../time.ts'
import { ClockDriver } from './clock-driver.ts'
import * as moves from './moves.ts'
import { ClockMove, SandboxClock } from './schema.ts'

const tag = 'Sandbox'

const limits = {
  // A move that takes longer is answered 202, and goes on.
  moveMsMax: 20_000,
  // The move, the wait for caches of keys, and the answer.
  answerMsMax: 30_000,
}

/**
 * The operations of a sandbox, for the partner of the key. They move the partner's clock and make the simulated bank speak;
 * what follows is done by the tasks that do it in production.
 */
export function sandboxRoutes(app: App, { db, log, now }: ApiContext, tasks: Partial<Tasks>): void {
  const driver = new ClockDriver({ db, log, now, tasks })
  app.addHook('preClose', async () => driver.stop())

  app.get(
    '/v1/sandbox/clock',
    {
      config: { scope: 'any' },
      schema: operation({
        id: 'getSandboxClock',
        tag,
        summary: 'Get the sandbox clock',
        description: 'The time by which everything of this partner happens, and the last time that it was moved.',
        success: { status: 200, description: 'The clock.', schema: SandboxClock },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({ status: 200, body: await clockBody(reader, request.partner.id) })),
  )

  app.post(
    '/v1/sandbox/clock',
    {
      config: { scope: 'pay:write', answerMsMax: limits.answerMsMax },
      schema: operation({
        id: 'moveSandboxClock',
        tag,
        summary: 'Move the sandbox clock',
        description:
          'Moves the partner’s clock forward: `to` an instant, `by` a time, or to what falls due `next`; at most 400 days ahead of real time. The clock stops at each instant at which something falls due, that work is done as in production, and the answer lists it. Expiry of intents, grace periods, pay cycles, holds, the bank, reviews, idempotency keys and API keys follow the clock; rate limits, time-outs and logs do not. A move that takes longer than 20 seconds is answered 202 and goes on. While the clock is moving, another move is a `Conflict`.',
        body: ClockMove,
        success: {
          status: 202,
          description: 'The clock is still moving. `getSandboxClock` says when it has arrived.',
          schema: SandboxClock,
        },
        alternative: {
          status: 200,
          description: 'The clock has arrived, and all work that fell due is done.',
          schema: SandboxClock,
        },
      }),
    },
    async (request, reply) => {
      const { partner, body, idempotencyKey } = request
      const partnerId = partner.id
      return await withStartedWork(db, request, reply, {
        async start(tx) {
          const { moveId, isFirst } = await moves.start(tx, {
            partnerId,
            destination: destinationOf(body),
            ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
            now: request.now,
            realNow: now(),
          })
          return async () => {
            // Other processes may still take the partner for one without a clock.
            const cachesEnd = isFirst ? pause(keyCacheMs) : undefined
            await driver.drive({ partnerId, moveId }, { msMax: limits.moveMsMax })
            await cachesEnd
            app.forgetKeys(partnerId)
            // The idempotency key lives from where the clock is now.
            request.now = new Date(now().getTime() + (await readOffsetMs(db, partnerId)))
          }
        },
        async answer(tx) {
          const clock = await clockBody(tx, partnerId)
          return { status: clock.status === 'Still' ? 200 : 202, body: clock }
        },
      })
    },
  )

  async function clockBody(reader: Reader, partnerId: string) {
    const offsetMs = await readOffsetMs(reader, partnerId)
    const move = await moves.findLatest(reader, partnerId)
    return {
      now: new Date(now().getTime() + offsetMs).toISOString(),
      aheadSeconds: Math.floor(offsetMs / 1_000),
      status: move === undefined || move.isComplete ? ('Still' as const) : ('Moving' as const),
      lastMove: move === undefined ? null : moveBody(move),
    }
  }
}

function moveBody({ startsAt, target, ran }: moves.Move) {
  return {
    from: startsAt.toISOString(),
    to: target.toISOString(),
    ran: ran.map(({ due, from, to, count }) => ({ due, from: from.toISOString(), to: to.toISOString(), count })),
  }
}

function destinationOf({ to, by, next }: ClockMove): moves.Destination {
  if (next !== undefined) return { next }
  return to === undefined ? { byMs: parseDuration(by ?? 'PT0S') } : { to: parseInstant(to, { decimals: 'up' }) }
}

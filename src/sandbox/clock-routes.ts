import { setTimeout as pause } from 'node:timers/promises'
import { keyCacheMs } from '../http/admission/auth.ts'
import type { App } from '../http/server/server.ts'
import { read, withStartedWork } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { parseDuration, parseInstant } from '../kernel/time.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import { clockOnWire } from './clock.ts'
import { ClockDriver } from './clock-driver.ts'
import * as moves from './moves.ts'
import { answerMsMax, type SandboxContext, sandboxOperation } from './operation.ts'
import { ClockMove, SandboxClock } from './schema.ts'

/** @param limits.moveMsMax how long a request waits for a move; after that, the response is 202 and the move continues */
export function clockRoutes(app: App, context: SandboxContext, limits: { moveMsMax: number }): void {
  const { db, now } = context
  const driver = new ClockDriver(context)
  app.addHook('preClose', async () => driver.stop())

  app.get(
    '/v1/sandbox/clock',
    {
      config: { scope: 'any' },
      schema: sandboxOperation({
        id: 'getSandboxClock',
        summary: 'Get the sandbox clock',
        description: 'The time by which everything of this partner happens, and the last move of the clock.',
        success: { status: 200, description: 'The clock.', schema: SandboxClock },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: await clockOnWire(reader, { partnerId: request.partner.id, realNow: now() }),
      })),
  )

  app.post(
    '/v1/sandbox/clock',
    {
      config: { scope: 'pay:write', answerMsMax },
      schema: sandboxOperation({
        id: 'moveSandboxClock',
        summary: 'Move the sandbox clock',
        description:
          'Moves the partner’s clock forward: `to` an instant, `by` a time, or to what falls due `next`; at most 400 days ahead of real time. The clock stops at each instant at which something falls due, the work is done as in production, and the response lists it. Expiry of intents, grace periods, pay cycles, holds, the bank, reviews, idempotency keys and API keys follow the clock; rate limits, time-outs and logs do not. A move that takes longer than 20 seconds is answered with 202 and continues. While the clock is moving, another move is a `Conflict`.',
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
      const { partner, body } = request
      const partnerId = partner.id
      let moveId = ''
      return await withStartedWork(db, request, reply, {
        async start(tx, claim) {
          const started = await moves.start(tx, {
            partnerId,
            destination: destinationOf(body),
            claim,
            now: request.now,
            realNow: now(),
          })
          const { isFirst } = started
          moveId = started.moveId
          return async () => {
            // Other processes may still treat the partner as one without a clock.
            const cachesEnd = isFirst ? pause(keyCacheMs) : undefined
            await driver.drive({ partnerId, moveId }, { msMax: limits.moveMsMax })
            await cachesEnd
            app.forgetKeys(partnerId)
            // The lifetime of the idempotency key starts at the clock's new time.
            request.now = new Date(now().getTime() + (await readOffsetMs(db, partnerId)))
          }
        },
        async answer(tx) {
          if ((await moves.find(tx, { partnerId, moveId })) === undefined) {
            throw problem('Conflict', 'The sandbox was reset before its clock had arrived')
          }
          const clock = await clockOnWire(tx, { partnerId, realNow: now() })
          return { status: clock.status === 'Still' ? 200 : 202, body: clock }
        },
      })
    },
  )
}

function destinationOf({ to, by, next }: ClockMove): moves.Destination {
  if (next !== undefined) return { next }
  return to === undefined ? { byMs: parseDuration(by ?? 'PT0S') } : { to: parseInstant(to, { decimals: 'up' }) }
}

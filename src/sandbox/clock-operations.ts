import { setTimeout as pause } from 'node:timers/promises'
import { keyCacheMs } from '../http/admission/auth.ts'
import { named } from '../http/operation.ts'
import { conflict } from '../kernel/errors.ts'
import { parseDuration, parseInstant } from '../kernel/time.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import { readers } from '../users/roles.ts'
import { readClock } from './clock.ts'
import * as moves from './moves.ts'
import { answerMsMax, sandboxOperation } from './operation.ts'
import { ClockMove, SandboxClock } from './schema.ts'

const getSandboxClock = sandboxOperation({
  route: 'GET /v1/sandbox/clock',
  scope: 'any',
  roles: readers,
  sdk: 'sandbox.clock.get',
  summary: 'Get the sandbox clock',
  description: 'The time by which everything of this partner happens, and the last move of the clock.',
  success: { description: 'The clock.', schema: SandboxClock },
  async read(reader, { partner, context }) {
    return { body: await readClock(reader, { partnerId: partner.id, realNow: context.now() }) }
  },
})

const moveSandboxClock = sandboxOperation({
  route: 'POST /v1/sandbox/clock',
  scope: 'pay:write',
  answerMsMax,
  sdk: 'sandbox.clock.move',
  summary: 'Move the sandbox clock',
  description:
    'Moves the partner’s clock forward: `to` an instant, `by` a time, or to what falls due `next`; at most 400 days ahead of real time. The clock stops at each instant at which something falls due, the work is done as in production, and the response lists it. Expiry of intents, grace periods, pay cycles, holds, the bank, reviews, idempotency keys and API keys follow the clock; rate limits, time-outs and logs do not. A move that takes longer than 20 seconds is answered with 202 and continues. While the clock is moving, another move is a `Conflict`.',
  body: ClockMove,
  success: {
    status: 202,
    description: 'The clock is still moving. `getSandboxClock` says when it has arrived.',
    schema: SandboxClock,
  },
  alternative: { description: 'The clock has arrived, and all work that fell due is done.', schema: SandboxClock },
  async start(tx, call, claim) {
    const { partner, body, now, context } = call
    const { db, clockDriver, moveMsMax } = context
    const partnerId = partner.id
    const destination = destinationOf(body)
    const { moveId, isFirst } = await moves.start(tx, { partnerId, destination, claim, now, realNow: context.now() })
    return async () => {
      // Other processes may still treat the partner as one without a clock.
      const cachesEnd = isFirst ? pause(keyCacheMs) : undefined
      await clockDriver.drive({ partnerId, moveId }, { msMax: moveMsMax })
      await cachesEnd
      context.forgetKeys(partnerId)
      // The lifetime of the idempotency key starts at the clock's new time.
      call.moveTo(new Date(context.now().getTime() + (await readOffsetMs(db, partnerId))))
      return moveId
    }
  },
  async respond(tx, { partner, context }, moveId) {
    const partnerId = partner.id
    if ((await moves.find(tx, { partnerId, moveId })) === undefined)
      throw conflict('The sandbox was reset before its clock had arrived')
    const clock = await readClock(tx, { partnerId, realNow: context.now() })
    return { status: clock.status === 'Still' ? 200 : 202, body: clock }
  },
})

export const clockOperations = named({ getSandboxClock, moveSandboxClock })

function destinationOf({ to, by, next }: ClockMove): moves.Destination {
  if (next !== undefined) return { next }
  return to === undefined ? { byMs: parseDuration(by ?? 'PT0S') } : { to: parseInstant(to, { decimals: 'up' }) }
}

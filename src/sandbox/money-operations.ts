import * as float from '../float/float.ts'
import { named, type Words } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { amountMax, fromWire, toWire } from '../kernel/money.ts'
import * as partners from '../partners/partners.ts'
import { sandboxOperation } from './operation.ts'
import { FloatFunded, MoneyToAdd, Paused } from './schema.ts'

const fundSandboxFloat = sandboxOperation({
  route: 'POST /v1/sandbox/float',
  scope: 'pay:write',
  sdk: 'sandbox.fundFloat',
  summary: 'Fund the float',
  description: 'Adds money to the partner’s float in one of its currencies, as the operator does after a transfer.',
  body: MoneyToAdd,
  success: {
    status: 201,
    description: 'The float, and the part of it that is not on its way to members.',
    schema: FloatFunded,
  },
  problems: ['UnprocessableEntity'],
  async write(tx, { partner, body, now }) {
    const amount = fromWire(body.amount)
    const { currency } = amount
    const before = (await float.read(tx, partner.id)).find(each => each.currency === currency)
    if (before === undefined)
      throw problem('UnprocessableEntity', `The partner has no tier in ${currency}, so nothing is paid out in it`)
    if (before.float + amount.amount > BigInt(amountMax))
      throw problem('UnprocessableEntity', 'The float would be larger than a JSON number can be')
    const { movementId } = await float.fund(tx, { partnerId: partner.id, amount, now })
    const after = (await float.read(tx, partner.id)).find(each => each.currency === currency) ?? before
    return {
      body: {
        float: toWire({ amount: after.float, currency }),
        free: toWire({ amount: after.free, currency }),
      },
      resourceId: currency,
      audit: { action: 'float.fund', details: { amount: body.amount, reference: null, movementId } },
    }
  },
})

const pauseSandbox = pausing('pause', {
  summary: 'Pause withdrawals',
  description: 'Intents and completions are refused with `UnprocessableEntity`, and balances say so. Idempotent.',
})

const resumeSandbox = pausing('resume', {
  summary: 'Resume withdrawals',
  description: 'Ends a pause. Idempotent.',
})

/** Pauses or resumes withdrawals, as the operator does in production. */
function pausing(verb: 'pause' | 'resume', words: Words) {
  const isPaused = verb === 'pause'
  return sandboxOperation({
    route: `POST /v1/sandbox/${verb}`,
    scope: 'pay:write',
    sdk: `sandbox.${verb}`,
    ...words,
    success: { description: 'Whether withdrawals are paused.', schema: Paused },
    async write(tx, { partner }) {
      const { before } = await (isPaused ? partners.pausePartner : partners.resumePartner)(tx, partner.id)
      const details = { before: { paused: before.paused }, after: { paused: isPaused } }
      const audit = before.paused === isPaused ? undefined : ({ action: `partner.${verb}`, details } as const)
      return { body: { paused: isPaused }, resourceId: partner.id, audit }
    },
  })
}

export const moneyOperations = named({ fundSandboxFloat, pauseSandbox, resumeSandbox })

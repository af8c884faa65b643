import { Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import * as float from '../float/float.ts'
import { named, operationsOn, type Words } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { CurrencyCode, fromWire, SignedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, strictObject } from '../kernel/schemas.ts'
import { partnerNow } from '../partners/clocks.ts'
import { findState } from '../partners/partners.ts'
import { listBalances } from '../payouts/books/balances.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { fileRailNamed, fileRailsOf } from '../payouts/channels/rail.ts'
import * as dues from '../settlements/dues.ts'
import {
  AccountDays,
  AccountDifferences,
  accountDayOnWire,
  dueOnWire,
  Floats,
  FloatsAfterMovement,
  floatOnWire,
  movementOnWire,
} from './float-schema.ts'
import type { RailsContext } from './operation-context.ts'
import { line } from './partner-schema.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Float', isForOperators: true })

const limits = {
  // As many as fit on a screen.
  daysDefault: 31,
  // A year, to compare with an annual statement.
  daysMax: 366,
  differencesMax: 100,
}

const days = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: limits.daysMax,
    default: limits.daysDefault,
    description: 'How many days to list per account.',
  }),
)

const Movement = namedObject('FloatMovement', {
  amount: WireMoney,
  reference: Type.Optional(
    line(140, {
      description: 'Your reference, for example the bank’s. A second movement with it does nothing.',
      examples: ['bank transfer 2026-03-31'],
    }),
  ),
})

const getFloat = operation({
  route: 'GET /operator/v1/partners/:partnerId/float',
  summary: 'Get the float of a partner',
  description:
    'The balance, the pending and the free amount in each currency; the settlements whose money has not arrived; and the balance of the account that holds the float, by day, as the bank states it and by the books.',
  query: strictObject({ days }),
  success: { description: 'The floats.', schema: Floats },
  async read(reader, { context, params: { partnerId }, query }) {
    const { days: daysMax = limits.daysDefault } = query
    return { body: await floatsOf(reader, context, { partnerId, daysMax }) }
  },
})

const fundFloat = movement('fund', {
  summary: 'Fund a float',
  description: 'Records money that was paid into the float.',
  move: float.fund,
})

const withdrawFloat = movement('withdraw', {
  summary: 'Withdraw from a float',
  description: 'Records money that was taken out of the float: at most the free amount.',
  move: float.withdraw,
})

const coverFloat = movement('cover', {
  summary: 'Cover the operator’s costs',
  description:
    'Records money that the operator has paid into the float to cover its costs, which are write-offs and charges: at most the uncovered amount.',
  move: float.cover,
})

const receiveFloat = operation({
  route: 'POST /operator/v1/partners/:partnerId/float/receive',
  summary: 'Receive the money of a settlement',
  description:
    'Records money that has arrived for a settlement if no bank file reports it. If the employer is owed money, records that the employer was paid.',
  body: namedObject('SettlementReceived', {
    payCycleId: Id('payCycle'),
    currency: CurrencyCode,
    amount: Type.Optional(
      described(SignedMoney, 'By default, the whole amount due; negative if it was paid to the employer.'),
    ),
  }),
  success: { description: 'The movement, and the floats after it.', schema: FloatsAfterMovement },
  async write(tx, call) {
    const { partnerId } = call.params
    const { payCycleId, currency, amount } = call.body
    if (amount !== undefined && amount.currency !== currency)
      throw problem('BodyValidation', `The amount must be in ${currency}`, { path: 'amount.currency' })
    await findState(tx, partnerId)
    const now = await partnerNow(tx, call, partnerId)
    const due = (await dues.listOfCycle(tx, { partnerId, payCycleId })).find(each => each.currency === currency)
    const left = due === undefined ? 0n : due.amount - due.received
    const received = { amount: amount === undefined ? left : BigInt(amount.amount), currency }
    const asked = { partnerId, payCycleId, amount: received, isByHand: true, now }
    const { movementId } = await dues.receive(tx, asked)
    const details = { amount: toWire(received), payCycleId, movementId }
    const movement = movementOnWire(
      { movementId, at: now, isRepeated: false },
      { amount: received, reference: dues.referenceOf(payCycleId) },
    )
    return {
      body: { movement, ...(await floatsOf(tx, call.context, { partnerId })) },
      resourceId: movementId,
      audit: { action: 'float.receive', resourceId: currency, details, partnerId, now },
    }
  },
})

const setFloatFloor = operation({
  route: 'PUT /operator/v1/partners/:partnerId/float/floor',
  summary: 'Set the floor of a float',
  description: 'Members cannot withdraw while less than the floor is free.',
  body: namedObject('FloatFloor', {
    currency: CurrencyCode,
    floor: nullable(WireMoney, 'Null disables the floor.'),
  }),
  success: { description: 'The floats.', schema: Floats },
  async write(tx, call) {
    const { partnerId } = call.params
    const { currency, floor } = call.body
    if (floor !== null && floor.currency !== currency)
      throw problem('BodyValidation', `The floor must be in ${currency}`, { path: 'floor.currency' })
    const now = await partnerNow(tx, call, partnerId)
    const units = floor && fromWire(floor).amount
    const before = await float.setFloor(tx, { partnerId, currency, floor: units, now })
    const floorBefore = before === null ? null : toWire({ amount: before, currency })
    const details = { before: { floor: floorBefore }, after: { floor } }
    return {
      body: await floatsOf(tx, call.context, { partnerId }),
      resourceId: currency,
      audit: before === units ? undefined : { action: 'float.floor', details, partnerId, now },
    }
  },
})

const listAccountDays = operation({
  route: 'GET /operator/v1/account-days',
  summary: 'Compare the accounts that pay with the books',
  description: 'The balance that the bank states, the sum of the floats on the account, and the difference, by day.',
  query: strictObject({
    rail: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'Only accounts of this rail.', examples: ['sepa'] }),
    ),
    days,
  }),
  success: {
    description: 'All accounts.',
    schema: namedObject('AccountDays', { accountDays: AccountDays, differences: AccountDifferences }),
  },
  problems: ['NotFound'],
  async read(reader, { context, query }) {
    const { rail, days: daysMax = limits.daysDefault } = query
    const listed = rail === undefined ? fileRailsOf(context.rails) : [fileRailNamed(context.rails, rail)]
    const asked = { rails: listed.map(({ name }) => name), take: limits.differencesMax }
    const differences = await exceptions.listDifferences(reader, asked)
    return { body: { accountDays: await accountDaysOf(reader, listed, { daysMax }), differences } }
  },
})

export const floatOperations = named({
  getFloat,
  fundFloat,
  withdrawFloat,
  coverFloat,
  receiveFloat,
  setFloatFloor,
  listAccountDays,
})

function movement(verb: 'fund' | 'withdraw' | 'cover', { move, ...words }: Words & { move: typeof float.fund }) {
  return operation({
    route: `POST /operator/v1/partners/:partnerId/float/${verb}`,
    ...words,
    body: Movement,
    success: { description: 'The movement, and the floats after it.', schema: FloatsAfterMovement },
    problems: ['UnprocessableEntity'],
    async write(tx, call) {
      const { partnerId } = call.params
      const { reference } = call.body
      const amount = fromWire(call.body.amount)
      const now = await partnerNow(tx, call, partnerId)
      const moved = await move(tx, { partnerId, amount, reference, now })
      const { movementId, isRepeated } = moved
      const details = { amount: toWire(amount), reference: reference ?? null, movementId }
      const audit = { action: `float.${verb}`, resourceId: amount.currency, details, partnerId, now } as const
      const movement = movementOnWire(moved, { amount, reference })
      return {
        body: { movement, ...(await floatsOf(tx, call.context, { partnerId })) },
        resourceId: movementId,
        audit: isRepeated ? undefined : audit,
      }
    },
  })
}

/** @throws Problem `NotFound` */
async function floatsOf(
  reader: Reader,
  { rails }: Pick<RailsContext, 'rails'>,
  { partnerId, daysMax = limits.daysDefault }: { partnerId: string; daysMax?: number },
) {
  await findState(reader, partnerId)
  const floats = await float.read(reader, partnerId)
  const settlements = await dues.listOpen(reader, partnerId)
  const paying = fileRailsOf(rails).filter(rail => floats.some(({ currency }) => currency === rail.currency))
  return {
    floats: floats.map(floatOnWire),
    settlements: settlements.map(dueOnWire),
    accountDays: await accountDaysOf(reader, paying, { partnerId, daysMax }),
  }
}

async function accountDaysOf(
  reader: Reader,
  rails: readonly FileRailSettings[],
  asked: { partnerId?: string; daysMax: number },
) {
  const found: ReturnType<typeof accountDayOnWire>[] = []
  for (const rail of rails) found.push(...(await listBalances(reader, rail, asked)).map(accountDayOnWire))
  return found
}

import { type Static, Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import * as float from '../float/float.ts'
import { operation } from '../http/described-route.ts'
import { partnerNow, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { CurrencyCode, fromWire, SignedMoney, toWire, WireMoney } from '../kernel/money.ts'
import { findState } from '../partners/partners.ts'
import { listBalances } from '../payouts/books/balances.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import * as dues from '../settlements/dues.ts'
import { AccountDays, AccountDifferences, accountDayOnWire, dueOnWire, Floats, floatOnWire } from './float-schema.ts'
import { line } from './partner-schema.ts'

const tag = 'Float'
const strict = { additionalProperties: false }
const config = { isForOperators: true } as const
const params = Type.Object({ partnerId: Id('partner') })

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

const Movement = Type.Object(
  {
    amount: WireMoney,
    reference: Type.Optional(
      line(140, {
        description: 'Your reference, for example the bank’s. A second movement with it does nothing.',
        examples: ['bank transfer 2026-03-31'],
      }),
    ),
  },
  { title: 'FloatMovement', ...strict },
)

export function floatRoutes(app: App, { db }: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  app.get(
    '/operator/v1/partners/:partnerId/float',
    {
      config,
      schema: operation({
        id: 'getFloat',
        tag,
        summary: 'Get the float of a partner',
        description:
          'The balance, the pending and the free amount in each currency; the settlements whose money has not arrived; and the balance of the account that holds the float, by day, as the bank states it and by the books.',
        params,
        query: Type.Object({ days }, strict),
        success: { status: 200, description: 'The floats.', schema: Floats },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partnerId } = request.params
        const { days: daysMax = limits.daysDefault } = request.query
        return { status: 200, body: await floatsOf(reader, { partnerId, daysMax }) }
      }),
  )

  for (const { verb, action, summary, description, move } of [
    {
      verb: 'fund',
      action: 'float.fund',
      summary: 'Fund a float',
      description: 'Records money that was paid into the float.',
      move: float.fund,
    },
    {
      verb: 'withdraw',
      action: 'float.withdraw',
      summary: 'Withdraw from a float',
      description: 'Records money that was taken out of the float: at most the free amount.',
      move: float.withdraw,
    },
    {
      verb: 'cover',
      action: 'float.cover',
      summary: 'Cover the operator’s costs',
      description:
        'Records money that the operator has paid into the float to cover its costs, which are write-offs and charges: at most the uncovered amount.',
      move: float.cover,
    },
  ] as const) {
    app.post(
      `/operator/v1/partners/:partnerId/float/${verb}`,
      {
        config,
        schema: operation({
          id: `${verb}Float`,
          tag,
          summary,
          description,
          params,
          body: Movement,
          success: { status: 200, description: 'The floats.', schema: Floats },
          problems: ['NotFound', 'UnprocessableEntity'],
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { partnerId } = request.params
          const { reference } = request.body
          const amount = fromWire(request.body.amount)
          const now = await partnerNow(tx, request, partnerId)
          const moved = await move(tx, { partnerId, amount, reference, now })
          const details = { amount: toWire(amount), reference: reference ?? null, movementId: moved.movementId }
          const change = { action, resourceId: amount.currency, details }
          if (!moved.isRepeated) await recordOperatorChange(tx, request, { partnerId, change, now })
          const body = await floatsOf(tx, { partnerId, daysMax: limits.daysDefault })
          return { status: 200, body, resourceId: moved.movementId }
        }),
    )
  }

  app.post(
    '/operator/v1/partners/:partnerId/float/receive',
    {
      config,
      schema: operation({
        id: 'receiveFloat',
        tag,
        summary: 'Receive the money of a settlement',
        description:
          'Records money that has arrived for a settlement if no bank file reports it. If the employer is owed money, records that the employer was paid.',
        params,
        body: Type.Object(
          {
            payCycleId: Id('payCycle'),
            currency: CurrencyCode,
            amount: Type.Optional(
              Type.Unsafe<Static<typeof SignedMoney>>({
                ...SignedMoney,
                description: 'By default, the whole amount due; negative if it was paid to the employer.',
              }),
            ),
          },
          { title: 'SettlementReceived', ...strict },
        ),
        success: { status: 200, description: 'The floats.', schema: Floats },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const { payCycleId, currency, amount } = request.body
        if (amount !== undefined && amount.currency !== currency)
          throw problem('BodyValidation', `The amount must be in ${currency}`, { path: 'amount.currency' })
        await findState(tx, partnerId)
        const now = await partnerNow(tx, request, partnerId)
        const due = (await dues.listOfCycle(tx, { partnerId, payCycleId })).find(each => each.currency === currency)
        const left = due === undefined ? 0n : due.amount - due.received
        const received = { amount: amount === undefined ? left : BigInt(amount.amount), currency }
        const asked = { partnerId, payCycleId, amount: received, isByHand: true, now }
        const { movementId } = await dues.receive(tx, asked)
        const details = { amount: toWire(received), payCycleId, movementId }
        const change = { action: 'float.receive', resourceId: currency, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        const body = await floatsOf(tx, { partnerId, daysMax: limits.daysDefault })
        return { status: 200, body, resourceId: movementId }
      }),
  )

  app.put(
    '/operator/v1/partners/:partnerId/float/floor',
    {
      config,
      schema: operation({
        id: 'setFloatFloor',
        tag,
        summary: 'Set the floor of a float',
        description: 'Members cannot withdraw while less than the floor is free.',
        params,
        body: Type.Object(
          {
            currency: CurrencyCode,
            floor: Type.Union([WireMoney, Type.Null()], { description: 'Null disables the floor.' }),
          },
          { title: 'FloatFloor', ...strict },
        ),
        success: { status: 200, description: 'The floats.', schema: Floats },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const { currency, floor } = request.body
        if (floor !== null && floor.currency !== currency)
          throw problem('BodyValidation', `The floor must be in ${currency}`, { path: 'floor.currency' })
        const now = await partnerNow(tx, request, partnerId)
        const units = floor && fromWire(floor).amount
        const before = await float.setFloor(tx, { partnerId, currency, floor: units, now })
        const moneyOrNull = (amount: bigint | null) => (amount === null ? null : toWire({ amount, currency }))
        const details = { before: { floor: moneyOrNull(before) }, after: { floor } }
        const change = { action: 'float.floor', resourceId: currency, details } as const
        if (before !== units) await recordOperatorChange(tx, request, { partnerId, change, now })
        const body = await floatsOf(tx, { partnerId, daysMax: limits.daysDefault })
        return { status: 200, body, resourceId: currency }
      }),
  )

  app.get(
    '/operator/v1/account-days',
    {
      config,
      schema: operation({
        id: 'listAccountDays',
        tag,
        summary: 'Compare the accounts that pay with the books',
        description:
          'The balance that the bank states, the sum of the floats on the account, and the difference, by day.',
        query: Type.Object(
          {
            rail: Type.Optional(
              Type.String({
                minLength: 1,
                maxLength: 64,
                description: 'Only accounts of this rail.',
                examples: ['sepa'],
              }),
            ),
            days,
          },
          strict,
        ),
        success: {
          status: 200,
          description: 'All accounts.',
          schema: Type.Object(
            { accountDays: AccountDays, differences: AccountDifferences },
            { title: 'AccountDays', ...strict },
          ),
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { rail, days: daysMax = limits.daysDefault } = request.query
        const listed = fileRailsOf(rails).filter(({ name }) => rail === undefined || name === rail)
        const asked = { rails: listed.map(({ name }) => name), take: limits.differencesMax }
        const differences = await exceptions.listDifferences(reader, asked)
        return { status: 200, body: { accountDays: await accountDaysOf(reader, listed, { daysMax }), differences } }
      }),
  )

  /** @throws Problem `NotFound` */
  async function floatsOf(reader: Reader, { partnerId, daysMax }: { partnerId: string; daysMax: number }) {
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

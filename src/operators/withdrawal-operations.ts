import assert from 'node:assert/strict'
import { Type } from 'typebox'
import { hasMoreField, nextQuery, readPage } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { type Call, named, operationsOn } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { namedObject, nullable, strictObject } from '../kernel/schemas.ts'
import * as members from '../members/members.ts'
import { partnerNow } from '../partners/clocks.ts'
import { findState } from '../partners/partners.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import { readHistory } from '../payouts/history.ts'
import { detailsBody } from '../withdrawals/bodies.ts'
import * as inspection from '../withdrawals/inspection.ts'
import { statuses } from '../withdrawals/lifecycle.ts'
import { WithdrawalDetails, WithdrawalStatus, WithdrawalTimeline } from '../withdrawals/schema.ts'
import { readTimeline } from '../withdrawals/timeline.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import type { RailsContext } from './operation-context.ts'
import { Payout, payoutView } from './payout-schema.ts'
import { InspectedWithdrawal, inspectedFields, inspectedView } from './withdrawal-schema.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Withdrawals', isForOperators: true })

const listWithdrawals = operation({
  route: 'GET /operator/v1/withdrawals',
  summary: 'List withdrawals',
  description: 'Of all partners, newest first.',
  query: strictObject({
    partnerId: Type.Optional(Id('partner', 'Only withdrawals of this partner.')),
    memberId: Type.Optional(Id('member', 'Only withdrawals of this member.')),
    statuses: Type.Optional(
      Type.Array(WithdrawalStatus, { maxItems: statuses.length, description: 'Only with one of these statuses.' }),
    ),
    isStuck: Type.Optional(
      Type.Boolean({
        description:
          'If true, only withdrawals that need attention: by the partner’s clock with `partnerId` or `memberId`, otherwise by real time.',
      }),
    ),
    ...nextQuery('withdrawal', 'withdrawal'),
  }),
  success: {
    description: 'One page of withdrawals.',
    schema: namedObject('InspectedWithdrawals', {
      withdrawals: Type.Array(InspectedWithdrawal),
      ...hasMoreField,
    }),
  },
  problems: ['NotFound'],
  async read(reader, call) {
    const { after, take: _, ...filter } = call.query
    const { partnerId, memberId } = filter
    if (partnerId !== undefined) await findState(reader, partnerId)
    const owner = partnerId ?? (memberId === undefined ? undefined : await members.findPartnerOf(reader, memberId))
    const now = owner === undefined ? call.now : await partnerNow(reader, call, owner)
    const { rows, hasMore } = await readPage(call.query, take =>
      inspection.list(reader, { filter, before: after, take, now }),
    )
    return { body: { withdrawals: rows.map(inspectedView), hasMore } }
  },
})

const inspectWithdrawal = operation({
  route: 'GET /operator/v1/withdrawals/:withdrawalId',
  summary: 'Get a withdrawal of any partner',
  success: {
    description: 'The withdrawal.',
    schema: namedObject('InspectedWithdrawalDetails', { ...WithdrawalDetails.properties, ...inspectedFields }),
  },
  async read(reader, call) {
    const { withdrawalId } = call.params
    const { partnerId, now } = await ownerOf(reader, call)
    const inspected = await inspection.find(reader, { withdrawalId, now })
    assert(inspected !== undefined)
    const details = await withdrawals.find(reader, { partnerId, withdrawalId })
    return { body: { ...detailsBody(details, call.context), ...inspectedView(inspected) } }
  },
})

const getWithdrawalHistory = operation({
  route: 'GET /operator/v1/withdrawals/:withdrawalId/timeline',
  summary: 'Get the timeline of a withdrawal',
  description:
    'Everything that happened to a withdrawal: its statuses with what was booked for each, the decision on its intent, the requests, the deliveries of its events to webhooks, and the payment with the bank’s answers.',
  success: {
    description: 'The timeline.',
    schema: namedObject('WithdrawalHistory', {
      ...WithdrawalTimeline.properties,
      partnerId: Id('partner'),
      payout: nullable(Payout, 'Null until the withdrawal is submitted.'),
    }),
  },
  async read(reader, call) {
    const { withdrawalId } = call.params
    const { partnerId, now } = await ownerOf(reader, call)
    const sees = { requests: true, deliveries: true, lines: true, operators: true }
    const asked = { partnerId, withdrawalId, now, receivedAt: call.receivedAt, sees }
    const timeline = await readTimeline(reader, asked)
    const isSubmitted = timeline.steps.some(({ status }) => status === 'submitted')
    const rails = fileRailsOf(call.context.rails)
    const payout = isSubmitted ? payoutView(await readHistory(reader, withdrawalId), rails) : null
    return { body: { ...timeline, partnerId, payout } }
  },
})

export const operatorWithdrawalOperations = named({ listWithdrawals, inspectWithdrawal, getWithdrawalHistory })

/** The partner of a withdrawal, and its time. @throws Problem `NotFound` */
async function ownerOf(
  db: Reader,
  call: Pick<Call<{ withdrawalId: string }>, 'params' | 'now' | 'receivedAt'>,
): Promise<{ partnerId: string; now: Date }> {
  const { withdrawalId } = call.params
  const known = await inspection.find(db, { withdrawalId, now: call.now })
  if (known === undefined) throw problem('NotFound', `There is no withdrawal ${withdrawalId}; the list shows the ids`)
  return { partnerId: known.partnerId, now: await partnerNow(db, call, known.partnerId) }
}

import assert from 'node:assert/strict'
import { Type } from 'typebox'
import { check, lastFour } from '../bank-accounts/rules.ts'
import type { Reader } from '../database/database.ts'
import { carryOut } from '../erasure/carry-out.ts'
import { EraseQuery, MemberErasure } from '../erasure/schema.ts'
import { named, operationsOn } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { toWire, WireMoney } from '../kernel/money.ts'
import { namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import * as members from '../members/members.ts'
import { release } from '../members/restrictions.ts'
import { MemberStatus } from '../members/schema.ts'
import { partnerNow } from '../partners/clocks.ts'
import * as inspection from '../withdrawals/inspection.ts'
import type { RailsContext } from './operation-context.ts'
import { ReasonGiven } from './partner-schema.ts'
import { InspectedWithdrawal, inspectedView } from './withdrawal-schema.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Members', isForOperators: true })

// Enough to answer "what happened to my money?"; the list of withdrawals has the rest.
const withdrawalsShown = 5

const TextOrNull = nullable(Type.String())
const InspectedMember = namedObject('InspectedMember', {
  id: Id('member'),
  partnerId: Id('partner'),
  status: MemberStatus,
  email: Type.String(),
  firstName: Type.String(),
  lastName: Type.String(),
  workerId: TextOrNull,
  enablePayroll: Type.Boolean(),
  tier: Type.String({ examples: ['Bronze'] }),
  tierVersion: Type.Integer({ minimum: 1 }),
  bankAccount: nullable(
    namedObject('CheckedAccount', {
      lastFour: Type.String({ examples: ['4958'] }),
      check: wordOf(['valid', 'invalid', 'unknown'], { description: 'Whether the number can exist.' }),
    }),
  ),
  available: WireMoney,
  canWithdraw: Type.Boolean({ description: 'Whether the member could withdraw the lowest amount now.' }),
  refusal: nullable(Type.String(), 'Why the member could not.'),
  accountRefused: nullable(
    Type.String(),
    'Why the bank refused a payment to the account; null once the account is changed.',
  ),
  reviewReason: nullable(Type.String(), 'Why the member cannot withdraw until an operator releases them.'),
  withdrawalsToday: Type.Integer({ minimum: 0 }),
  withdrawalsThisCycle: Type.Integer({ minimum: 0 }),
  withdrawals: Type.Array(InspectedWithdrawal, { description: `The latest ${withdrawalsShown}.` }),
})

const inspectMember = operation({
  route: 'GET /operator/v1/members/:memberId',
  summary: 'Get a member of any partner',
  description: 'With the latest withdrawals, and why a withdrawal would be refused.',
  success: { description: 'The member.', schema: InspectedMember },
  async read(reader, call) {
    const { memberId } = call.params
    const asked = { partnerId: await ownerOf(reader, memberId), memberId }
    const now = await partnerNow(reader, call, asked.partnerId)
    const { status, email, firstName, lastName, workerId, accountDetails, enablePayroll } = await members.find(
      reader,
      asked,
    )
    const eligibility = await inspection.findEligibility(reader, { ...asked, ...call.context.banks, now })
    // A foreign key gives every member a tier.
    assert(eligibility !== undefined)
    const { tier, available, refusal, cause: _, ...rest } = eligibility
    const latest = await inspection.list(reader, { filter: asked, take: withdrawalsShown, now })
    return {
      body: {
        ...{ id: memberId, partnerId: asked.partnerId, status, email, firstName, lastName, workerId, enablePayroll },
        ...{
          tier: tier.name,
          tierVersion: tier.version,
          available: toWire({ amount: available, currency: tier.currency }),
        },
        bankAccount:
          accountDetails === null ? null : { lastFour: lastFour(accountDetails), check: check(accountDetails) },
        ...{ canWithdraw: refusal === null, refusal, ...rest },
        withdrawals: latest.map(inspectedView),
      },
    }
  },
})

const releaseMember = operation({
  route: 'POST /operator/v1/members/:memberId/release',
  summary: 'Release a member',
  description:
    'Lets a member withdraw again after a hold for review, or after a bank account was refused although it is correct. Idempotent.',
  body: ReasonGiven,
  success: {
    description: 'The member is released.',
    schema: namedObject('ReleasedMember', {
      id: Id('member'),
      released: Type.Boolean({ description: 'False if there was nothing to release the member from.' }),
    }),
  },
  async write(tx, { params: { memberId }, body: { reason = null } }) {
    const partnerId = await ownerOf(tx, memberId)
    const before = await release(tx, { partnerId, memberId })
    const released = before.accountRefused !== null || before.reviewReason !== null
    const details = { before, after: { accountRefused: null, reviewReason: null }, reason }
    const audit = released ? ({ action: 'member.release', details, partnerId } as const) : undefined
    return { body: { id: memberId, released }, resourceId: memberId, audit }
  },
})

const eraseMemberOfPartner = operation({
  route: 'POST /operator/v1/members/:memberId/erase',
  summary: 'Erase a member of any partner',
  description: 'As the partner does with `POST /v1/members/{memberId}/erase`. Idempotent.',
  query: EraseQuery,
  success: { description: 'What was destroyed and what is kept, with a signed receipt.', schema: MemberErasure },
  async run(call, steps) {
    const { params, query, context } = call
    const partnerId = await ownerOf(context.db, params.memberId)
    const now = await partnerNow(context.db, call, partnerId)
    return await carryOut(context, { partnerId, ...params, ...query, now }, steps)
  },
})

export const operatorMemberOperations = named({ inspectMember, releaseMember, eraseMemberOfPartner })

/** The partner of a member. @throws Problem `MemberNotFound` */
async function ownerOf(db: Reader, memberId: string): Promise<string> {
  const owner = await members.findPartnerOf(db, memberId)
  if (owner === undefined)
    throw problem('MemberNotFound', `There is no member ${memberId}; GET /v1/members lists the ids`, { memberId })
  return owner
}

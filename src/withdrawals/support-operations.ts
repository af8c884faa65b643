import * as events from '../events/events.ts'
import { operationsOn } from '../http/operation.ts'
import { memberNotFound } from '../members/rules.ts'
import * as requests from '../requests/requests.ts'
import { staff } from '../users/roles.ts'
import { findEligibility } from './inspection.ts'
import { statuses } from './lifecycle.ts'
import type { WithdrawalContext } from './operation-context.ts'
import * as withdrawals from './withdrawals.ts'

const { consoleOperation } = operationsOn<WithdrawalContext>()

// As much as a person looks through. The lists of the partner API have the rest.
const refusedMax = 10
// More than `refusedMax`, because refused requests of other kinds also name the member.
const requestsReadMax = 50
const withdrawalsMax = 20
const eventsMax = 200

/** The first questions of support about a member: why they cannot withdraw, what was refused lately, and what happened. */
export const getMemberSupport = consoleOperation({
  route: 'GET /console/v1/members/:memberId/support',
  scope: 'pay:read',
  roles: staff,
  async read(reader, { partner, params, now, context }) {
    const of = { partnerId: partner.id, memberId: params.memberId }
    const eligibility = await findEligibility(reader, { ...of, ...context.banks, now })
    if (eligibility === undefined) throw memberNotFound(params.memberId)
    const { refusal, cause } = eligibility
    const page = {
      partnerId: partner.id,
      // Refunded withdrawals matter most here, and a list leaves them out unless their statuses are named.
      filter: { memberId: of.memberId, statuses: [...statuses] },
      page: { skip: 0, take: withdrawalsMax },
      cursor: undefined,
    }
    const made = await withdrawals.list(reader, page)
    const [refused, happened] = await Promise.all([
      requests.list(reader, {
        partnerId: partner.id,
        filter: { resourceId: of.memberId, status: { from: 400, to: 499 }, method: 'POST' },
        take: requestsReadMax,
        cursor: undefined,
      }),
      events.listOfResources(reader, {
        partnerId: partner.id,
        resourceIds: [of.memberId, ...made.map(({ id }) => id)],
        countMax: eventsMax,
        now,
      }),
    ])
    return {
      body: {
        refusal: refusal === null ? null : { cause, message: refusal },
        refused: refused
          .filter(({ route }) => route !== null && /\/withdrawals\/(intent|complete)$/.test(route))
          .slice(0, refusedMax)
          .map(({ id, createdAt, errorCodes }) => ({ id, createdAt, errorCodes })),
        events: happened.map(({ createdAt, ...event }) => ({ ...event, timestamp: createdAt })),
      },
    }
  },
})

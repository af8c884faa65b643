import { Type } from 'typebox'
import { consoleOperation, named } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { toWire } from '../kernel/money.ts'
import { strictObject } from '../kernel/schemas.ts'
import { readers } from '../users/roles.ts'
import { listAuthors } from '../users/users.ts'
import * as payRuns from './pay-runs.ts'

/** What the console shows of pay runs in addition to `getPayRuns`: total, number of members, file and author. */
const getPayRunSummaries = consoleOperation({
  route: 'GET /console/v1/pay-runs',
  scope: 'pay:read',
  roles: readers,
  query: strictObject({ ids: Type.Array(Id('payRun'), { minItems: 1, maxItems: 100 }) }),
  async read(reader, { partner, query: { ids }, user }) {
    const summaries = await payRuns.listSummaries(reader, { partnerId: partner.id, payRunIds: ids })
    const authors = await listAuthors(reader, {
      partnerId: partner.id,
      resourceIds: ids,
      actions: ['pay_run.create'],
      seesOperators: user?.user.isOperator === true,
    })
    const bodyOf = ({ totals, ...summary }: payRuns.PayRunSummary) => {
      const author = authors.find(({ resourceId }) => resourceId === summary.id)
      return {
        ...summary,
        totals: totals.map(toWire),
        author: author === undefined ? null : { kind: author.kind, name: author.name },
      }
    }
    return { body: { payRuns: summaries.map(bodyOf) } }
  },
})

export const payRunSummaryOperations = named({ getPayRunSummaries })

import { Type } from 'typebox'
import type { ApiContext, App } from '../http/server/server.ts'
import { hiddenOperation } from '../http/users/hidden-operation.ts'
import { Id } from '../kernel/ids.ts'
import { toWire } from '../kernel/money.ts'
import { listAuthors } from '../users/users.ts'
import * as payRuns from './pay-runs.ts'

/** What the console shows of pay runs in addition to `getPayRuns`: total, number of members, file and author. */
export function payRunSummaryRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/console/v1/pay-runs',
    {
      config: { scope: 'pay:read' },
      schema: hiddenOperation({
        id: 'getPayRunSummaries',
        query: Type.Object(
          { ids: Type.Array(Id('payRun'), { minItems: 1, maxItems: 100 }) },
          { additionalProperties: false },
        ),
      }),
    },
    async ({ partner, query: { ids }, user }) => {
      const [summaries, authors] = await Promise.all([
        payRuns.listSummaries(db, { partnerId: partner.id, payRunIds: ids }),
        listAuthors(db, {
          ...{ partnerId: partner.id, resourceIds: ids, action: 'pay_run.create' },
          seesOperators: user?.user.isOperator === true,
        }),
      ])
      return {
        payRuns: summaries.map(({ createdAt, totals, ...summary }) => {
          const author = authors.find(({ resourceId }) => resourceId === summary.id)
          return {
            ...summary,
            createdAt: createdAt.toISOString(),
            totals: totals.map(toWire),
            author: author === undefined ? null : { kind: author.kind, name: author.name },
          }
        }),
      }
    },
  )
}

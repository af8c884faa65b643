import { Type } from 'typebox'
import { readers } from '../../users/roles.ts'
import { listAuthors } from '../../users/users.ts'
import type { ApiContext, App } from '../server/server.ts'
import { hiddenOperation } from './hidden-operation.ts'

const actions = ['pay_cycle.settle', 'withdrawal.cancel', 'pay_run.revert'] as const

/** The authors of settlements, cancelled withdrawals and reverted pay runs, with the time of each change. */
export function authorRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/console/v1/authors',
    {
      config: { scope: 'pay:read', roles: readers },
      schema: hiddenOperation({
        id: 'getAuthors',
        query: Type.Object(
          {
            action: Type.Enum(actions, { type: 'string' }),
            ids: Type.Array(Type.String({ maxLength: 60 }), { maxItems: 100 }),
          },
          { additionalProperties: false },
        ),
      }),
    },
    async ({ partner, query, user }) => {
      const asked = { partnerId: partner.id, resourceIds: query.ids, action: query.action }
      const authors = await listAuthors(db, { ...asked, seesOperators: user?.user.isOperator === true })
      return { authors: authors.map(({ at, ...author }) => ({ ...author, at: at.toISOString() })) }
    },
  )
}

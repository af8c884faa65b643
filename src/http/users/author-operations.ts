import { Type } from 'typebox'
import { strictObject, wordOf } from '../../kernel/schemas.ts'
import { readers } from '../../users/roles.ts'
import { listAuthors } from '../../users/users.ts'
import { consoleOperation } from '../operation.ts'

const actions = ['pay_cycle.settle', 'pay_run.revert'] as const

/** The authors of settlements and reverted pay runs, with the time of each change. */
export const getAuthors = consoleOperation({
  route: 'GET /console/v1/authors',
  scope: 'pay:read',
  roles: readers,
  query: strictObject({
    action: wordOf(actions),
    ids: Type.Array(Type.String({ maxLength: 60 }), { maxItems: 100 }),
  }),
  async read(reader, { partner, query: { action, ids }, user }) {
    const seesOperators = user?.user.isOperator === true
    const asked = { partnerId: partner.id, resourceIds: ids, actions: [action], seesOperators }
    return { body: { authors: await listAuthors(reader, asked) } }
  },
})

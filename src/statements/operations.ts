import { Type } from 'typebox'
import { cursorOf, cursorQuery, pageOf, pageQuery } from '../contract/list.ts'
import { named, operation } from '../http/operation.ts'
import { allToWire, CurrencyCode } from '../kernel/money.ts'
import { described, strictObject } from '../kernel/schemas.ts'
import { GivenInstant, parseInstant } from '../kernel/time.ts'
import * as members from '../members/members.ts'
import { staff } from '../users/roles.ts'
import { lineBody, MemberStatement } from './schema.ts'
import { readStatement } from './statement.ts'

const getMemberStatement = operation({
  route: 'GET /v1/pay/members/:memberId/statement',
  scope: 'pay:read',
  mayReadReplica: true,
  roles: staff,
  sdk: 'members.listStatementLines',
  tag: 'Members',
  summary: 'Get a member’s statement',
  description:
    'Lists the ledger lines that changed what the member has available or owes, newest first, up to an instant. Pay that was not withdrawn is in it until it is released, which may be a minute or two after the end of its pay cycle for a partner with very many members. When paging with `skip`, pass the `asOf` of the first page, so that new lines do not shift the pages. If `after` or `before` is not a line of the statement, the response is `NotFound`.',
  query: strictObject({
    asOf: Type.Optional(described(GivenInstant, 'Lines up to and including this instant. Default: now.')),
    currency: Type.Optional(described(CurrencyCode, 'Default: the member’s currency.')),
    ...pageQuery,
    ...cursorQuery('transfer'),
  }),
  success: { description: 'One page of the statement.', schema: MemberStatement },
  problems: ['NotFound'],
  async read(reader, { partner, now, params, query }) {
    const about = { partnerId: partner.id, memberId: params.memberId }
    const page = pageOf(query)
    const cursor = cursorOf(query)
    const asOf = query.asOf === undefined ? now : parseInstant(query.asOf, { decimals: 'down' })
    const paidIn = await members.currencyOf(reader, about)
    const currency = query.currency ?? paidIn
    const { opening, closing, lines, hasMore } = await readStatement(reader, { ...about, currency, asOf, page, cursor })
    return {
      body: {
        memberId: params.memberId,
        asOf,
        opening: allToWire(opening, currency),
        closing: allToWire(closing, currency),
        lines: lines.map(line => lineBody(line, currency)),
        hasMore,
        ...page,
      },
    }
  },
})

export const statementOperations = named({ getMemberStatement })

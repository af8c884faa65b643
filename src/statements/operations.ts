import { Type } from 'typebox'
import { cursorOf, cursorQuery, pageFields, pageOf, pageQuery } from '../contract/list.ts'
import { strict } from '../contract/strict.ts'
import { operation } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { type Currency, CurrencyCode, SignedMoney, toWire } from '../kernel/money.ts'
import { GivenInstant, Instant, parseInstant } from '../kernel/time.ts'
import * as members from '../members/members.ts'
import { staff } from '../users/roles.ts'
import { type MemberBalance, readStatement, type StatementLine } from './statement.ts'

const StandingBody = Type.Object(
  {
    available: Type.Unsafe({ ...SignedMoney, description: 'The available balance.' }),
    owed: Type.Unsafe({
      ...SignedMoney,
      description:
        'What the member owes: the part of a correction that exceeded the available balance. The next pay run repays it first.',
    }),
  },
  { title: 'MemberStanding', ...strict },
)

const MemberStatement = Type.Object(
  {
    memberId: Id('member'),
    asOf: Instant,
    opening: Type.Unsafe({ ...StandingBody, description: 'Balance before the oldest line of this page.' }),
    closing: Type.Unsafe({
      ...StandingBody,
      description: 'Balance after the newest line of this page. On the first page, the balance at `asOf`.',
    }),
    lines: Type.Array(
      Type.Object(
        {
          id: Id('transfer'),
          movementId: Type.String({
            description: 'The pay run, withdrawal or pay cycle that the line belongs to.',
            examples: ['w_01kah4pzc5e4r8v2m6t0x9y3bd'],
          }),
          reason: Type.String({ examples: ['withdrawal.held', 'pay_run.available'] }),
          createdAt: Instant,
          change: StandingBody,
          balanceAfter: StandingBody,
        },
        { title: 'MemberStatementLine', ...strict },
      ),
    ),
    hasMore: Type.Boolean(),
    ...pageFields,
  },
  { title: 'MemberStatement', ...strict },
)

const getMemberStatement = operation({
  id: 'getMemberStatement',
  method: 'GET',
  path: '/v1/pay/members/:memberId/statement',
  scope: 'pay:read',
  roles: staff,
  sdk: 'members.listStatementLines',
  tag: 'Members',
  summary: 'Get a member’s statement',
  description:
    'Lists the ledger lines that changed what the member has available or owes, newest first, up to an instant. When paging with `skip`, pass the `asOf` of the first page, so that new lines do not shift the pages. If `after` or `before` is not a line of the statement, the response is `NotFound`.',
  params: Type.Object({ memberId: Id('member') }),
  query: Type.Object(
    {
      asOf: Type.Optional(
        Type.Unsafe<string>({
          ...GivenInstant,
          description: 'Lines up to and including this instant. Default: now.',
        }),
      ),
      currency: Type.Optional(
        Type.Unsafe<Currency>({ ...CurrencyCode, description: 'Default: the member’s currency.' }),
      ),
      ...pageQuery,
      ...cursorQuery('transfer'),
    },
    strict,
  ),
  success: { description: 'One page of the statement.', schema: MemberStatement },
  problems: ['MemberNotFound', 'NotFound'],
  async read(reader, { partner, now, params, query }) {
    const about = { partnerId: partner.id, memberId: params.memberId }
    const page = pageOf(query)
    const cursor = cursorOf(query)
    const asOf = query.asOf === undefined ? now : parseInstant(query.asOf, { decimals: 'down' })
    const paidIn = await members.currencyOf(reader, about)
    const currency = query.currency ?? paidIn
    const { opening, closing, lines, hasMore } = await readStatement(reader, {
      ...about,
      currency,
      asOf,
      page,
      cursor,
    })
    const body = {
      memberId: params.memberId,
      asOf,
      opening: balanceBody(opening, currency),
      closing: balanceBody(closing, currency),
      lines: lines.map(line => lineBody(line, currency)),
      hasMore,
      ...page,
    }
    return { body }
  },
})

export const statementOperations = [getMemberStatement]

function lineBody({ id, movementId, reason, createdAt, change, after }: StatementLine, currency: Currency) {
  return {
    id,
    movementId,
    reason,
    createdAt,
    change: balanceBody(change, currency),
    balanceAfter: balanceBody(after, currency),
  }
}

function balanceBody({ available, owed }: MemberBalance, currency: Currency) {
  return { available: toWire({ amount: available, currency }), owed: toWire({ amount: owed, currency }) }
}

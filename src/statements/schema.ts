import { Type } from 'typebox'
import { pageFields } from '../contract/list.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, type Currency, signedMoney } from '../kernel/money.ts'
import { described, namedObject } from '../kernel/schemas.ts'
import { Instant } from '../kernel/time.ts'
import type { StatementLine } from './statement.ts'

const StandingBody = namedObject('MemberStanding', {
  available: signedMoney('The available balance.'),
  owed: signedMoney(
    'What the member owes: the part of a correction that exceeded the available balance. The next pay run repays it first.',
  ),
})

export const MemberStatementLine = namedObject('MemberStatementLine', {
  id: Id('transfer'),
  movementId: Type.String({
    description: 'The pay run, withdrawal or pay cycle that the line belongs to.',
    examples: ['w_01kah4pzc5e4r8v2m6t0x9y3bd'],
  }),
  reason: Type.String({ examples: ['withdrawal.held', 'pay_run.available'] }),
  createdAt: Instant,
  change: StandingBody,
  balanceAfter: StandingBody,
})

export const MemberStatement = namedObject('MemberStatement', {
  memberId: Id('member'),
  asOf: Instant,
  opening: described(StandingBody, 'Balance before the oldest line of this page.'),
  closing: described(
    StandingBody,
    'Balance after the newest line of this page. On the first page, the balance at `asOf`.',
  ),
  lines: Type.Array(MemberStatementLine),
  hasMore: Type.Boolean(),
  ...pageFields,
})

export function lineBody({ change, balanceAfter, ...line }: StatementLine, currency: Currency) {
  return { ...line, change: allToWire(change, currency), balanceAfter: allToWire(balanceAfter, currency) }
}

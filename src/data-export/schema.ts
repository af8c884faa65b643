import { type Static, Type } from 'typebox'
import { AccountDetails } from '../bank-accounts/schema.ts'
import { Id } from '../kernel/ids.ts'
import { SignedMoney, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { Day, Instant } from '../kernel/time.ts'
import { Member } from '../members/schema.ts'
import { Metadata } from '../metadata/schema.ts'
import { sessionScopes } from '../partners/member-sessions.ts'
import { MemberStatementLine } from '../statements/schema.ts'
import { intentStatuses } from '../withdrawals/lifecycle.ts'
import { WithdrawalDetails } from '../withdrawals/schema.ts'

const accountDetails = nullable(AccountDetails, 'Null in a member session, which shows only `lastFour`.')
const lastFour = TextOrNull

/** Everything about one person, by section. Sections that grow are streamed in pages. */
export const DataExport = namedObject('MemberDataExport', {
  generatedAt: Instant,
  employer: Type.String({ description: 'The name of the partner, who decides why the data is processed.' }),
  profile: namedObject('ExportedProfile', {
    ...Member.properties,
    lastFour,
    metadata: Metadata,
    createdAt: Instant,
    updatedAt: Instant,
    accountRefused: nullable(Type.String(), 'Why the bank refuses the account; null if it does not.'),
    reviewReason: nullable(
      Type.String(),
      'Why the member’s withdrawals are held for review; null if they are not, and in a member session.',
    ),
  }),
  statementSince: nullable(
    Instant,
    'Start of the statement and pay cycles, if earlier transfers are detached; null if complete. Pay cycles that began before are left out.',
  ),
  payCycles: Type.Array(
    namedObject('ExportedPayCycle', {
      payCycleId: Id('payCycle'),
      startDate: Day,
      endDate: Day,
      reason: Type.String({ examples: ['pay_run.available'] }),
      available: described(SignedMoney, 'How much it changed the available balance in this cycle, in all.'),
      owed: described(SignedMoney, 'How much it changed what the member owes.'),
    }),
    { description: 'The balances by pay cycle and reason, oldest first.' },
  ),
  statement: Type.Array(MemberStatementLine, {
    description:
      'Every change of the balance, newest first: pay, corrections, withdrawals, fees and what was given back.',
  }),
  intents: Type.Array(
    namedObject('ExportedIntent', {
      withdrawalIntentId: Id('withdrawalIntent'),
      status: wordOf(intentStatuses),
      amount: WireMoney,
      netAmount: WireMoney,
      fee: WireMoney,
      tier: Type.String(),
      accountDetails,
      lastFour,
      createdAt: Instant,
      expiresAt: Instant,
    }),
    { description: 'Quotes that did not become withdrawals, as long as they are kept; oldest first.' },
  ),
  withdrawals: Type.Array(namedObject('ExportedWithdrawal', { withdrawal: WithdrawalDetails, accountDetails }), {
    description: 'Each with its timeline, and the account and reference of the payment; newest first.',
  }),
  imports: Type.Array(
    namedObject('ExportedImport', {
      jobId: Id('memberJob'),
      createdAt: Instant,
      action: Type.String({ examples: ['Update'] }),
      fault: TextOrNull,
    }),
    { description: 'The changes of this person in lists of members, as long as their results are kept.' },
  ),
  auditEntries: Type.Array(
    namedObject('ExportedAuditEntry', {
      at: Instant,
      action: Type.String({ examples: ['member.update'] }),
      by: wordOf(['api_key', 'operator_key', 'user', 'cli', 'worker'], { description: 'What kind of actor it was.' }),
      details: Type.Object({}, { additionalProperties: true }),
    }),
    { description: 'What was done to the profile, and when it was shown; newest first.' },
  ),
  sessions: Type.Array(
    namedObject('ExportedSession', {
      id: Id('memberSession'),
      scope: wordOf(sessionScopes),
      origin: TextOrNull,
      createdAt: Instant,
      expiresAt: Instant,
    }),
    { description: 'The member’s sessions of the last hours.' },
  ),
})
export type DataExport = Static<typeof DataExport>

import { Type } from 'typebox'
import { actorKinds, type Details, type Entry } from '../audit-log/audit-log.ts'
import { Id } from '../kernel/ids.ts'
import { CurrencyCode, SignedMoney, WireMoney } from '../kernel/money.ts'
import { Instant } from '../kernel/time.ts'
import { csvLines } from '../tabular/tabular.ts'
import type { Verification } from '../verification/verifications.ts'
import { AccountDifferences } from './float-schema.ts'
import { ImportingFile } from './payout-schema.ts'
import { type Status as FoundStatus, statusOnWire } from './status.ts'

const strict = { additionalProperties: false }
const count = Type.Integer({ minimum: 0 })
const InstantOrNull = Type.Union([Instant, Type.Null()])
const TextOrNull = Type.Union([Type.String(), Type.Null()])

const Unfinished = Type.Object(
  { count, oldest: InstantOrNull, stuck: count },
  { title: 'UnfinishedWithdrawals', ...strict },
)

export const Status = Type.Object(
  {
    state: Type.Enum(['fine', 'needsAttention'], { type: 'string' }),
    attention: Type.Array(Type.String(), { description: 'Everything that needs attention, one sentence each.' }),
    at: Instant,
    database: Type.Object({ postgres: Type.String(), schema: Type.String() }, { title: 'StatusDatabase', ...strict }),
    mode: Type.Enum(['sandbox', 'live'], { type: 'string' }),
    bank: Type.Union([Type.Enum(['simulated', 'connected'], { type: 'string' }), Type.Null()]),
    rails: Type.Array(Type.Object({ name: Type.String(), currency: CurrencyCode }, { title: 'StatusRail', ...strict })),
    workers: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          host: Type.String(),
          processId: Type.Integer(),
          startedAt: Instant,
          lastSeenAt: Instant,
          isAlive: Type.Boolean(),
        },
        { title: 'StatusWorker', ...strict },
      ),
      { description: 'Counts of the last 7 days.' },
    ),
    queue: Type.Object(
      {
        due: count,
        oldestDueAt: InstantOrNull,
        givenUp: Type.Array(Type.Object({ task: Type.String(), count }, { title: 'GivenUpTask', ...strict })),
      },
      { title: 'StatusQueue', ...strict },
    ),
    batchesToApprove: count,
    openExceptions: count,
    lastBackupAt: Type.Union([Instant, Type.Null()], { description: 'When the last recorded backup was taken.' }),
    importing: Type.Array(ImportingFile, { description: 'Bank files that are partly imported.' }),
    differences: AccountDifferences,
    payouts: Type.Object({ held: Unfinished, submitted: Unfinished }, { title: 'StatusPayouts', ...strict }),
    lowFloats: Type.Array(
      Type.Object(
        { partnerId: Id('partner'), lowSince: InstantOrNull, free: SignedMoney, floor: WireMoney },
        { title: 'LowFloat', ...strict },
      ),
    ),
    partners: count,
    stopped: Type.Array(
      Type.Object(
        { id: Id('partner'), name: Type.String(), isPaused: Type.Boolean(), isSuspended: Type.Boolean() },
        { title: 'StoppedPartner', ...strict },
      ),
    ),
  },
  { title: 'Status', ...strict },
)

export const Findings = Type.Object(
  {
    state: Type.Enum(['ready', 'notReady'], { type: 'string', description: '`ready`: nothing is missing.' }),
    at: Instant,
    findings: Type.Array(
      Type.Object(
        {
          check: Type.String(),
          level: Type.Enum(['missing', 'warning', 'hint', 'ok'], {
            type: 'string',
            description: '`missing`: live mode cannot pay until it is done. `hint`: the program cannot check it.',
          }),
          sentence: Type.String(),
          command: Type.Union([Type.String(), Type.Null()], { description: 'The command that does it or says more.' }),
        },
        { title: 'Finding', ...strict },
      ),
      { description: 'Most urgent first.' },
    ),
  },
  { title: 'Findings', ...strict },
)

export const LedgerVerification = Type.Object(
  {
    id: Id('ledgerVerification'),
    state: Type.Enum(['waiting', 'running', 'agrees', 'disagrees', 'interrupted'], {
      type: 'string',
      description: '`interrupted`: the verification could not end; `problem` says why. Request another.',
    }),
    requestedBy: Type.String(),
    requestedAt: Instant,
    startedAt: InstantOrNull,
    endedAt: InstantOrNull,
    checksDone: count,
    checksTotal: count,
    checks: Type.Union([
      Type.Array(
        Type.Object(
          {
            name: Type.String(),
            rule: Type.String(),
            disagreement: Type.Union([
              Type.Object(
                {
                  partnerId: Type.String(),
                  subject: Type.String(),
                  expected: Type.String(),
                  found: Type.String(),
                },
                { title: 'Disagreement', description: 'The first row that breaks the rule.', ...strict },
              ),
              Type.Null(),
            ]),
          },
          { title: 'LedgerCheck', ...strict },
        ),
      ),
      Type.Null(),
    ]),
    problem: TextOrNull,
  },
  { title: 'LedgerVerification', ...strict },
)

export const LedgerVerifications = Type.Object(
  { verifications: Type.Array(LedgerVerification) },
  { title: 'LedgerVerifications', ...strict },
)

export const AuditEntries = Type.Object(
  {
    entries: Type.Array(
      Type.Object(
        {
          id: Id('auditEntry'),
          at: Instant,
          partnerId: Type.Union([Id('partner'), Type.Null()], { description: 'Null if it concerns no partner.' }),
          actorKind: Type.Enum([...actorKinds, 'operator'], {
            type: 'string',
            description: '`operator`: users of a partner see no more than this of an operator.',
          }),
          actor: Type.String({ description: 'The id of a key or user, or user@host of a command.' }),
          action: Type.String({ examples: ['tier.set'] }),
          resourceKind: Type.String({ examples: ['tier'] }),
          resourceId: Type.String({ examples: ['Bronze'] }),
          details: Type.Object({}, { additionalProperties: true }),
          address: TextOrNull,
          requestId: TextOrNull,
        },
        { title: 'AuditEntry', ...strict },
      ),
    ),
    hasMore: Type.Boolean({ description: 'Whether there are more after the last of these.' }),
  },
  { title: 'AuditEntries', ...strict },
)

export function statusBody(status: FoundStatus) {
  const { stopped, at, workers, queue, payouts, lowFloats, attention, ...rest } = statusOnWire(status)
  return {
    state: attention.length === 0 ? 'fine' : 'needsAttention',
    attention,
    at: at.toISOString(),
    workers: workers.map(({ startedAt, lastSeenAt, ...worker }) => ({
      ...worker,
      startedAt: startedAt.toISOString(),
      lastSeenAt: lastSeenAt.toISOString(),
    })),
    queue: { ...queue, oldestDueAt: queue.oldestDueAt?.toISOString() ?? null },
    payouts: { held: unfinishedOnWire(payouts.held), submitted: unfinishedOnWire(payouts.submitted) },
    lowFloats: lowFloats.map(({ lowSince, ...low }) => ({ ...low, lowSince: lowSince?.toISOString() ?? null })),
    stopped: stopped.map(({ id, name, paused, suspended }) => ({
      id,
      name,
      isPaused: paused !== null,
      isSuspended: suspended !== null,
    })),
    ...rest,
  }
}

function unfinishedOnWire({ count, oldest, stuck }: FoundStatus['payouts']['held']) {
  return { count, oldest: oldest?.toISOString() ?? null, stuck }
}

export function verificationOnWire({ requestedAt, startedAt, endedAt, ...rest }: Verification) {
  return {
    ...rest,
    state: stateOf({ ...rest, startedAt, endedAt }),
    requestedAt: requestedAt.toISOString(),
    startedAt: startedAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
  }
}

function stateOf({ startedAt, endedAt, checks }: Pick<Verification, 'startedAt' | 'endedAt' | 'checks'>) {
  if (endedAt === null) return startedAt === null ? 'waiting' : 'running'
  if (checks === null) return 'interrupted'
  return checks.every(({ disagreement }) => disagreement === null) ? 'agrees' : 'disagrees'
}

/** @param isForPartner whether a user of the partner reads it, who must not see operators' names and addresses */
export function entryOnWire(
  { at, actorKind, actor, address, ...entry }: Entry,
  { isForPartner, users }: { isForPartner: boolean; users: ReadonlySet<string> },
) {
  const isOperator = actorKind === 'operator_key' || actorKind === 'cli' || (actorKind === 'user' && !users.has(actor))
  const shown =
    isForPartner && isOperator
      ? { actorKind: 'operator' as const, actor: 'operator', address: null }
      : { actorKind, actor, address }
  const details = isForPartner ? withoutOperators(entry.details, users) : entry.details
  return { ...entry, details, at: at.toISOString(), ...shown }
}

/** The fields of details that name people: who decided about a batch, and who sent an invitation. */
const namesOfPeople = ['person', 'invitedBy']

function withoutOperators(details: Details, users: ReadonlySet<string>): Details {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      namesOfPeople.includes(name) && !(typeof value === 'string' && users.has(value)) ? 'operator' : value,
    ]),
  )
}

const csvColumns = [
  'at',
  'partnerId',
  'actorKind',
  'actor',
  'action',
  'resourceId',
  'details',
  'address',
  'requestId',
  'id',
] as const

/** Streams entries as a CSV file. */
export async function* auditFileOf(
  pieces: AsyncIterable<Entry[]>,
  reader: Parameters<typeof entryOnWire>[1],
): AsyncGenerator<string> {
  yield csvLines([[...csvColumns]])
  for await (const entries of pieces) {
    const rows = entries.map(each => {
      const shown = entryOnWire(each, reader)
      const entry = { ...shown, details: JSON.stringify(shown.details) }
      return csvColumns.map(name => entry[name])
    })
    yield csvLines(rows)
  }
}

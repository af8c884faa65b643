import { Type } from 'typebox'
import { Count } from '../contract/fields.ts'
import { strict } from '../contract/strict.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, SignedMoney, WireMoney } from '../kernel/money.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import { AccountDifferences } from './float-schema.ts'
import { stops } from './partner-schema.ts'
import { ImportingFile } from './payout-schema.ts'
import { bankOf, type Status as FoundStatus } from './status.ts'

const Unfinished = Type.Object(
  { count: Count, oldest: InstantOrNull, stuck: Count },
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
        due: Count,
        oldestDueAt: InstantOrNull,
        givenUp: Type.Array(Type.Object({ task: Type.String(), count: Count }, { title: 'GivenUpTask', ...strict })),
      },
      { title: 'StatusQueue', ...strict },
    ),
    batchesToApprove: Count,
    openExceptions: Count,
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
    partners: Count,
    stopped: Type.Array(
      Type.Object({ id: Id('partner'), name: Type.String(), ...stops }, { title: 'StoppedPartner', ...strict }),
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

/** The status as JSON. Brakes, costs to cover and overdue addresses are among what needs attention. */
export function statusOnWire({
  now,
  postgres,
  mode,
  rails,
  workers,
  lowFloats,
  attention,
  brakes: _brakes,
  uncovered: _uncovered,
  oldestAuditAddressAt: _oldestAuditAddressAt,
  ...status
}: FoundStatus) {
  return {
    state: attention.length === 0 ? 'fine' : 'needsAttention',
    attention,
    at: now,
    database: { postgres, schema: 'up to date' },
    mode,
    bank: bankOf({ mode, rails }),
    rails: rails.map(({ name, currency }) => ({ name, currency })),
    workers: workers.map(({ workerId: id, beatAt: lastSeenAt, ...worker }) => ({ id, ...worker, lastSeenAt })),
    lowFloats: lowFloats.map(({ currency, free, floor, ...low }) => ({
      ...low,
      ...allToWire({ free, floor }, currency),
    })),
    ...status,
  }
}

import { Type } from 'typebox'
import { bankOf, type Status as FoundStatus } from '../diagnosis/status.ts'
import { Id } from '../kernel/ids.ts'
import { allToWire, CurrencyCode, SignedMoney, WireMoney } from '../kernel/money.ts'
import { Count, namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import { removedKinds } from '../retention/retention.ts'
import { AccountDifferences } from './float-schema.ts'
import { stops } from './partner-schema.ts'
import { ImportingFile } from './payout-schema.ts'

const Unfinished = namedObject('UnfinishedWithdrawals', { count: Count, oldest: InstantOrNull, stuck: Count })

export const Status = namedObject('Status', {
  state: wordOf(['fine', 'needsAttention']),
  attention: Type.Array(Type.String(), { description: 'Everything that needs attention, one sentence each.' }),
  at: Instant,
  database: namedObject('StatusDatabase', {
    postgres: Type.String(),
    schema: Type.String({ description: 'Names migrations whose last steps wait for `midmonth migrate --contract`.' }),
  }),
  mode: wordOf(['sandbox', 'live']),
  bank: nullable(wordOf(['simulated', 'connected'])),
  rails: Type.Array(namedObject('StatusRail', { name: Type.String(), currency: CurrencyCode })),
  workers: Type.Array(
    namedObject('StatusWorker', {
      id: Type.String(),
      host: Type.String(),
      processId: Type.Integer(),
      startedAt: Instant,
      lastSeenAt: Instant,
      isAlive: Type.Boolean(),
    }),
    { description: 'Counts of the last 7 days.' },
  ),
  queue: namedObject('StatusQueue', {
    due: Count,
    oldestDueAt: InstantOrNull,
    givenUp: Type.Array(namedObject('GivenUpTask', { task: Type.String(), count: Count })),
  }),
  batchesToApprove: Count,
  openExceptions: Count,
  lastBackupAt: nullable(Instant, 'When the last recorded backup was taken.'),
  removals: Type.Array(namedObject('Removal', { kind: wordOf(removedKinds), at: Instant, count: Count }), {
    description:
      'The last day on which the worker removed data at the end of its retention: how much until when, by kind.',
  }),
  importing: Type.Array(ImportingFile, { description: 'Bank files that are partly imported.' }),
  differences: AccountDifferences,
  payouts: namedObject('StatusPayouts', { held: Unfinished, submitted: Unfinished }),
  lowFloats: Type.Array(
    namedObject('LowFloat', { partnerId: Id('partner'), lowSince: InstantOrNull, free: SignedMoney, floor: WireMoney }),
  ),
  partners: Count,
  stopped: Type.Array(namedObject('StoppedPartner', { id: Id('partner'), name: Type.String(), ...stops })),
})

export const Findings = namedObject('Findings', {
  state: wordOf(['ready', 'notReady'], { description: '`ready`: nothing is missing.' }),
  at: Instant,
  findings: Type.Array(
    namedObject('Finding', {
      check: Type.String(),
      level: wordOf(['missing', 'warning', 'hint', 'ok'], {
        description: '`missing`: live mode cannot pay until it is done. `hint`: the program cannot check it.',
      }),
      sentence: Type.String(),
      command: nullable(Type.String(), 'The command that does it or says more.'),
    }),
    { description: 'Most urgent first.' },
  ),
})

const schemaInWords = (toContract: string[]) =>
  ['up to date', ...(toContract.length > 0 ? [`to contract: ${toContract.join(', ')}`] : [])].join('; ')

/** The status as JSON. Its other facts are among what needs attention. */
export function statusOnWire({ now, attention, postgres, toContract, mode, rails, ...status }: FoundStatus) {
  const { workers, queue, batchesToApprove, openExceptions, lastBackupAt, removals } = status
  const { importing, differences, payouts, lowFloats, partners, stopped } = status
  return {
    state: attention.length === 0 ? 'fine' : 'needsAttention',
    attention: attention.map(({ sentence }) => sentence),
    at: now,
    database: { postgres, schema: schemaInWords(toContract) },
    mode,
    bank: bankOf({ mode, rails }),
    rails: rails.map(({ name, currency }) => ({ name, currency })),
    workers: workers.map(({ workerId: id, host, processId, startedAt, beatAt: lastSeenAt, isAlive }) => ({
      ...{ id, host, processId, startedAt, lastSeenAt, isAlive },
    })),
    queue: {
      ...{ due: queue.due, oldestDueAt: queue.oldestDueAt },
      givenUp: queue.givenUp.map(({ task, count }) => ({ task, count })),
    },
    ...{ batchesToApprove, openExceptions, lastBackupAt },
    removals: removals.map(({ kind, at, count }) => ({ kind, at, count })),
    importing: importing.map(({ fileId, rail, name, status: state, records, applied, receivedAt }) => ({
      ...{ fileId, rail, name, status: state, records, applied, receivedAt },
    })),
    differences: differences.map(({ id, rail, kind, reason }) => ({ id, rail, kind, reason })),
    payouts: { held: unfinishedOnWire(payouts.held), submitted: unfinishedOnWire(payouts.submitted) },
    lowFloats: lowFloats.map(({ partnerId, lowSince, free, floor, currency }) => ({
      ...{ partnerId, lowSince },
      ...allToWire({ free, floor }, currency),
    })),
    partners: partners.length,
    stopped: stopped.map(({ id, name, paused, suspended }) => ({
      ...{ id, name, paused: stopOnWire(paused), suspended: stopOnWire(suspended) },
    })),
  }
}

function unfinishedOnWire({ count, oldest, stuck }: FoundStatus['payouts']['held']) {
  return { count, oldest, stuck }
}

function stopOnWire(stop: FoundStatus['stopped'][number]['paused']) {
  return stop === null ? null : { since: stop.since, by: stop.by, reason: stop.reason }
}

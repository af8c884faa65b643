import type { Reader } from '../database/database.ts'
import * as requests from '../requests/requests.ts'
import { requestBody } from '../requests/schema.ts'
import { lineBody } from '../statements/schema.ts'
import { readStatement, type StatementLine } from '../statements/statement.ts'
import { listAuthors } from '../users/users.ts'
import * as deliveries from '../webhooks/deliveries.ts'
import { explanationBody } from './bodies.ts'
import { explain } from './explanation.ts'
import * as withdrawals from './withdrawals.ts'

const limits = {
  // Per intent and withdrawal, including reads, which are left out.
  requestsMax: 100,
  // Two events of the intent and up to six of the withdrawal, at 16 endpoints.
  deliveriesMax: 128,
  // A state is entered with three lines at most.
  linesMax: 50,
}

/** What the reader of a timeline may see besides the steps. */
export type Sight = { requests: boolean; deliveries: boolean; lines: boolean; operators: boolean }

type TimelineAsked = { partnerId: string; withdrawalId: string; now: Date; receivedAt: Date; sees: Sight }

/**
 * Reads what happened to a withdrawal: its states, the decision on its intent, the requests, and the webhooks.
 * @param receivedAt real time, which requests are logged by
 * @throws Problem `NotFound`, also for another partner's withdrawal
 */
export async function readTimeline(db: Reader, { now, receivedAt, sees, ...asked }: TimelineAsked) {
  const { partnerId, withdrawalId } = asked
  const withdrawal = await withdrawals.find(db, asked)
  const { withdrawalIntentId: intentId } = withdrawal
  const ofBoth = { partnerId, resourceIds: [intentId, withdrawalId] }
  return {
    withdrawalId,
    steps: await stepsOf(db, withdrawal, { partnerId, now, sees }),
    explanation: explanationBody(await explain(db, { partnerId, intentId })),
    requests: sees.requests ? await listChanging(db, ofBoth) : null,
    deliveries: sees.deliveries
      ? await deliveries.listOfResources(db, { ...ofBoth, countMax: limits.deliveriesMax })
      : null,
  }
}

async function stepsOf(
  db: Reader,
  { id, memberId, currency, timeline, reference }: withdrawals.Details,
  { partnerId, now, sees }: { partnerId: string; now: Date; sees: Sight },
) {
  const [author] = await listAuthors(db, {
    ...{ partnerId, resourceIds: [id], seesOperators: sees.operators },
    actions: ['withdrawal.cancel', 'payout.remove'],
  })
  const actor = author === undefined ? null : { kind: author.kind, name: author.name }
  const movements = sees.lines
    ? await listMovements(db, { partnerId, memberId, currency, movementId: id, asOf: now })
    : []
  return timeline.map(entry => {
    const isDecision = entry.status === 'cancelled' || entry.status === 'failed'
    const lines = isBookedBy(movements[0], entry) ? (movements.shift() ?? []) : []
    return {
      ...entry,
      actor: isDecision ? actor : null,
      paymentReference: entry.status === 'submitted' ? reference : null,
      lines: lines.map(line => lineBody(line, currency)),
    }
  })
}

/** The lines of a withdrawal in a member's statement, by the state that each was booked for, in their order. */
async function listMovements(
  db: Reader,
  of: Omit<Parameters<typeof readStatement>[1], 'page'>,
): Promise<StatementLine[][]> {
  const { lines } = await readStatement(db, { ...of, page: { skip: 0, take: limits.linesMax } })
  const movements: StatementLine[][] = []
  for (const line of lines.toReversed()) {
    const last = movements.at(-1)
    if (last?.[0]?.reason === line.reason) last.push(line)
    else movements.push([line])
  }
  return movements
}

/** Whether a movement is that of entering a state. Being submitted and the first payment change no member's balance. */
function isBookedBy(lines: StatementLine[] | undefined, { status }: withdrawals.Details['timeline'][number]): boolean {
  const reason = lines?.[0]?.reason
  return reason !== undefined && withdrawals.statusBookedAs(reason) === status
}

/** The requests that created or changed some resources, oldest first for each. */
async function listChanging(
  db: Reader,
  { partnerId, resourceIds }: { partnerId: string; resourceIds: string[] },
): Promise<ReturnType<typeof requestBody>[]> {
  const lists = await Promise.all(
    resourceIds.map(resourceId =>
      requests.list(db, { partnerId, filter: { resourceId }, take: limits.requestsMax, cursor: undefined }),
    ),
  )
  const oldestFirst = lists.flatMap(list => list.toReversed())
  return oldestFirst.filter(({ method }) => method !== 'GET').map(requestBody)
}

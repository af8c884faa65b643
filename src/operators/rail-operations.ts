import { Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import { named, operationsOn, type Words } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { type Brake, brakeInWords, listBrakes } from '../payouts/books/brakes.ts'
import { listBegun } from '../payouts/books/import.ts'
import * as railHolds from '../payouts/books/rail-holds.ts'
import type { Rail as ConfiguredRail } from '../payouts/channels/rail.ts'
import type { RailsContext } from './operation-context.ts'
import { ReasonGiven } from './partner-schema.ts'
import { Rail, Rails } from './payout-schema.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Payouts', isForOperators: true })

export const railName = Type.String({ minLength: 1, maxLength: 64, examples: ['sepa'] })

const listRails = operation({
  route: 'GET /operator/v1/rails',
  summary: 'List the rails',
  description: 'The connected banks, as configured. A sandbox without a rail pays through the simulated bank.',
  success: { description: 'All rails.', schema: Rails },
  async read(reader, { context }) {
    return { body: { rails: await view(reader, context.rails) } }
  },
})

type HoldChange = Words & { change: typeof railHolds.hold }

const changeOfHold = (verb: 'hold' | 'release', { change, ...words }: HoldChange) =>
  operation({
    route: `POST /operator/v1/rails/:rail/${verb}`,
    ...words,
    params: Type.Object({ rail: railName }),
    body: Type.Optional(ReasonGiven),
    success: { description: 'The rail.', schema: Rail },
    async write(
      tx,
      { operator: { person }, params: { rail }, body: { reason = null }, receivedAt, context: { rails } },
    ) {
      // The rail is the installation's, so its holds follow the real time, not a partner's clock.
      const now = receivedAt
      await requireRail(tx, { name: rail, rails, isForRelease: verb === 'release' })
      const hasChanged = await change(tx, { rail, person, now })
      const body = (await view(tx, rails)).find(({ name }) => name === rail) ?? {
        ...unconfigured(rail),
        hold: null,
        importing: [],
        brake: null,
      }
      if (!hasChanged) return { body, resourceId: rail }
      // The reason of a hold is read from the audit log, where this one is not yet.
      const hold = verb === 'hold' ? { since: now, by: person, reason } : null
      const audit = { action: `rail.${verb}`, details: { person, reason }, partnerId: null, now } as const
      return { body: { ...body, hold }, resourceId: rail, audit }
    },
  })

const holdRail = changeOfHold('hold', {
  change: railHolds.hold,
  summary: 'Hold a rail',
  description:
    'Nothing is sent through a held rail until it is released: no file is delivered, and no request is made. The bank’s answers are still read, and payments that have been sent cannot be stopped. Idempotent.',
})

const releaseRail = changeOfHold('release', {
  change: railHolds.release,
  summary: 'Release a held rail',
  description: 'Also releases a rail that is no longer configured. Idempotent.',
})

export const railOperations = named({ listRails, holdRail, releaseRail })

/**
 * A hold outlives the rail in the settings, so a rail that is no longer configured can be released, but not held.
 * @throws Problem `NotFound`
 */
async function requireRail(
  db: Reader,
  { name, rails, isForRelease }: { name: string; rails: readonly ConfiguredRail[]; isForRelease: boolean },
): Promise<void> {
  if (rails.some(each => each.name === name)) return
  if (isForRelease && (await railHolds.wasEverHeld(db, name))) return
  throw problem('NotFound', `There is no rail ${name}; list the rails`)
}

/** The configured rails, then those that are held and no longer configured. */
async function view(db: Reader, rails: readonly ConfiguredRail[]) {
  const holds = new Map<string, { since: Date; by: string; reason: string | null }>()
  for (const { rail, heldAt, heldBy } of await railHolds.list(db)) {
    const filter = { resourceId: rail, actions: ['rail.hold'] }
    const [entry] = await auditLog.list(db, { filter, take: 1 })
    holds.set(rail, { since: heldAt, by: heldBy, reason: reasonOf(entry?.details) })
  }
  const configured = rails.map(({ name, currency, files }) => ({
    name,
    isConfigured: true,
    currency,
    kind: files === null ? 'api' : 'files',
    isByHand: files !== null && files.delivery === null,
  }))
  const brakes = await listBrakes(db)
  const others = [...holds.keys()].filter(name => !configured.some(each => each.name === name)).map(unconfigured)
  const importing = Map.groupBy(await listBegun(db), ({ rail }) => rail)
  return [...configured, ...others].map(rail => ({
    ...rail,
    hold: holds.get(rail.name) ?? null,
    brake: brakeView(brakes.find(each => each.rail === rail.name)),
    importing: importing.get(rail.name) ?? [],
  }))
}

/** Why batches of a rail await approval by people; null if nothing stops their automatic approval. */
export function brakeView(brake: Brake | undefined) {
  if (brake === undefined) return null
  const { batchId, since, awaits } = brake
  return { batchId, since, awaits, reason: brakeInWords(brake) }
}

function unconfigured(name: string) {
  return { name, isConfigured: false, currency: null, kind: null, isByHand: false }
}

/** The reason in the details of an entry of the audit log. */
export function reasonOf(details: auditLog.Details | undefined): string | null {
  return typeof details?.reason === 'string' ? details.reason : null
}

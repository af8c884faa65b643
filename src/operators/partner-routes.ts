import { type Static, Type } from 'typebox'
import { differences } from '../audit-log/audit-log.ts'
import { afterQuery, cursorOf, pageOf, pageQuery } from '../contract/list.ts'
import type { Db, Tx } from '../database/database.ts'
import { operation } from '../http/described-route.ts'
import { partnerNow, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import * as partners from '../partners/partners.ts'
import { faultOf, SomeSettings } from '../partners/settings.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { floatOnWire } from './float-schema.ts'
import { NewPartner, Partner, PartnerState, Partners, ReasonGiven } from './partner-schema.ts'
import { type PartnerView, readPartner, type Stop } from './partner-view.ts'

const tag = 'Partners'
const config = { isForOperators: true } as const
const params = Type.Object({ partnerId: Id('partner') })
const location = { location: Type.String({ description: 'Path of the resource.' }) }

export function partnerRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/operator/v1/partners',
    {
      config,
      schema: operation({
        id: 'listPartners',
        tag,
        summary: 'List partners',
        description: 'Newest first.',
        query: Type.Object(
          {
            search: Type.Optional(
              Type.String({
                minLength: 1,
                maxLength: 140,
                description: 'Only partners whose name contains this text, in any letter case, or with this id.',
                examples: ['acme'],
              }),
            ),
            state: Type.Optional(PartnerState),
            ...pageQuery,
            ...afterQuery('partner'),
          },
          { additionalProperties: false },
        ),
        success: { status: 200, description: 'One page of partners.', schema: Partners },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const page = pageOf(request.query)
        const { search, state } = request.query
        const found = await partners.search(reader, {
          ...{ filter: { search, state }, page },
          cursor: cursorOf(request.query),
        })
        return { status: 200, body: { partners: found.partners.map(summaryOf), total: found.total, ...page } }
      }),
  )

  app.post(
    '/operator/v1/partners',
    {
      config,
      schema: operation({
        id: 'createPartner',
        tag,
        summary: 'Create a partner',
        description: 'Opens its first pay cycle. Next, create its tiers and an API key.',
        body: NewPartner,
        success: { status: 201, description: 'The partner.', schema: Partner, headers: location },
      }),
    },
    async (request, reply) => {
      const { name, settings = {} } = request.body
      judge(settings, 'settings.')
      return await withIdempotency(db, request, reply, async tx => {
        const { now } = request
        const created = await partners.createPartner(tx, { name, settings, now })
        await payCycles.openFirst(tx, { partner: created, now })
        const details = { before: null, after: { name, ...partners.settingsOf(created) } }
        const change = { action: 'partner.create', resourceId: created.id, details } as const
        await recordOperatorChange(tx, request, { partnerId: created.id, change, now })
        return {
          status: 201,
          body: onWire(await readPartner(tx, { partnerId: created.id, now })),
          headers: { location: `/operator/v1/partners/${created.id}` },
          resourceId: created.id,
        }
      })
    },
  )

  app.get(
    '/operator/v1/partners/:partnerId',
    {
      config,
      schema: operation({
        id: 'getPartner',
        tag,
        summary: 'Get a partner',
        params,
        success: { status: 200, description: 'The partner.', schema: Partner },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partnerId } = request.params
        const now = await partnerNow(reader, request, partnerId)
        return { status: 200, body: onWire(await readPartner(reader, { partnerId, now })) }
      }),
  )

  app.patch(
    '/operator/v1/partners/:partnerId',
    {
      config,
      schema: operation({
        id: 'updatePartner',
        tag,
        summary: 'Change the settings of a partner',
        description:
          'Omitted settings stay as they are. A change applies to what starts afterwards, for example to the next pay cycle.',
        params,
        body: SomeSettings,
        success: { status: 200, description: 'The changed partner.', schema: Partner },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      judge(request.body)
      return await withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const settings = request.body
        const now = await partnerNow(tx, request, partnerId)
        if (Object.keys(settings).length > 0) {
          const { before, after } = await partners.updatePartner(tx, { partnerId, settings })
          const details = differences(partners.settingsOf(before), partners.settingsOf(after))
          const change = { action: 'partner.set', resourceId: partnerId, details: details ?? {} } as const
          if (details !== null) await recordOperatorChange(tx, request, { partnerId, change, now })
        }
        return { status: 200, body: onWire(await readPartner(tx, { partnerId, now })), resourceId: partnerId }
      })
    },
  )

  for (const declared of stateChanges) stateRoute(app, db, declared)
}

type StateChange = {
  verb: 'pause' | 'resume' | 'suspend' | 'restore'
  summary: string
  description: string
  change: (tx: Tx, asked: { partnerId: string; now: Date }) => Promise<partners.PartnerChange>
}

const stateChanges: StateChange[] = [
  {
    verb: 'pause',
    summary: 'Pause a partner',
    description: 'Members of a paused partner cannot withdraw. Pay runs and payouts continue. Idempotent.',
    change: (tx, { partnerId }) => partners.pausePartner(tx, partnerId),
  },
  {
    verb: 'resume',
    summary: 'Resume a paused partner',
    description: 'Its members can withdraw again. Idempotent.',
    change: (tx, { partnerId }) => partners.resumePartner(tx, partnerId),
  },
  {
    verb: 'suspend',
    summary: 'Suspend a partner',
    description: 'Every request of the partner is refused with `Forbidden`. Pending payouts continue. Idempotent.',
    change: partners.suspendPartner,
  },
  {
    verb: 'restore',
    summary: 'Restore a suspended partner',
    description: 'Its requests are accepted again. Idempotent.',
    change: (tx, { partnerId }) => partners.restorePartner(tx, partnerId),
  },
]

function stateRoute(app: App, db: Db, { verb, summary, description, change }: StateChange): void {
  app.post(
    `/operator/v1/partners/:partnerId/${verb}`,
    {
      config,
      schema: operation({
        id: `${verb}Partner`,
        tag,
        summary,
        description,
        params,
        body: ReasonGiven,
        success: { status: 200, description: 'The partner.', schema: Partner },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partnerId } = request.params
        const now = await partnerNow(tx, request, partnerId)
        const { before, after } = await change(tx, { partnerId, now: request.receivedAt })
        const entry = {
          action: `partner.${verb}`,
          resourceId: partnerId,
          details: { reason: request.body.reason ?? null },
        } as const
        if (!partners.isSameState(before, after))
          await recordOperatorChange(tx, request, { partnerId, change: entry, now })
        return { status: 200, body: onWire(await readPartner(tx, { partnerId, now })), resourceId: partnerId }
      }),
  )
}

/** @throws Problem `BodyValidation` */
function judge(settings: Static<typeof SomeSettings>, prefix = ''): void {
  const fault = faultOf(settings)
  if (fault !== undefined) throw problem('BodyValidation', fault.message, { path: prefix + fault.path })
}

function summaryOf({ id, name, paused, suspendedAt, createdAt }: partners.PartnerState) {
  const state = suspendedAt !== null ? 'suspended' : paused ? 'paused' : 'open'
  return { id, name, state, createdAt: createdAt.toISOString() }
}

function onWire({ state, stops, openCycle, floats, keys, members }: PartnerView) {
  const cycle = openCycle && { id: openCycle.id, startDate: openCycle.startDate, endDate: openCycle.endDate }
  return {
    ...summaryOf(state),
    paused: stopOnWire(stops.paused),
    suspended: stopOnWire(stops.suspended),
    settings: partners.settingsOf(state),
    openCycle: cycle,
    floats: floats.map(floatOnWire),
    keys,
    members,
  }
}

function stopOnWire(stop: Stop | null) {
  return stop && { ...stop, since: stop.since?.toISOString() ?? null }
}

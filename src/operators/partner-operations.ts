import { type Static, Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { afterQuery, cursorOf, pageOf, pageQuery } from '../contract/list.ts'
import type { Tx } from '../database/database.ts'
import { named, operationWith, type Words } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { strictObject } from '../kernel/schemas.ts'
import { partnerNow } from '../partners/clocks.ts'
import * as partners from '../partners/partners.ts'
import { faultOf, SomeSettings } from '../partners/settings.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { floatOnWire } from './float-schema.ts'
import { NewPartner, Partner, PartnerState, Partners, ReasonGiven } from './partner-schema.ts'
import { type PartnerView, readPartner } from './partner-view.ts'

const operation = operationWith({ tag: 'Partners', isForOperators: true })
const location = { location: Type.String({ description: 'Path of the resource.' }) }

export const listPartners = operation({
  route: 'GET /operator/v1/partners',
  summary: 'List partners',
  description: 'Newest first.',
  query: strictObject({
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
  }),
  success: { description: 'One page of partners.', schema: Partners },
  problems: ['NotFound'],
  async read(reader, { query }) {
    const page = pageOf(query)
    const { search, state } = query
    const found = await partners.search(reader, { filter: { search, state }, page, cursor: cursorOf(query) })
    return { body: { partners: found.partners.map(listed), total: found.total, ...page } }
  },
})

export const createPartner = operation({
  route: 'POST /operator/v1/partners',
  summary: 'Create a partner',
  description: 'Opens its first pay cycle. Next, create its tiers and an API key.',
  body: NewPartner,
  success: { status: 201, description: 'The partner.', schema: Partner, headers: location },
  async run({ body: { name, settings = {} }, now }, { write }) {
    judge(settings, 'settings.')
    return await write(async tx => {
      const created = await partners.createPartner(tx, { name, settings, now })
      const { id: partnerId } = created
      await payCycles.openFirst(tx, { partner: created, now })
      const details = { before: null, after: { name, ...partners.settingsOf(created) } }
      return {
        body: onWire(await readPartner(tx, { partnerId, now })),
        headers: { location: `/operator/v1/partners/${partnerId}` },
        resourceId: partnerId,
        audit: { action: 'partner.create', details, partnerId, now },
      }
    })
  },
})

export const getPartner = operation({
  route: 'GET /operator/v1/partners/:partnerId',
  summary: 'Get a partner',
  success: { description: 'The partner.', schema: Partner },
  async read(reader, call) {
    const { partnerId } = call.params
    const now = await partnerNow(reader, call, partnerId)
    return { body: onWire(await readPartner(reader, { partnerId, now })) }
  },
})

export const updatePartner = operation({
  route: 'PATCH /operator/v1/partners/:partnerId',
  summary: 'Change the settings of a partner',
  description:
    'Omitted settings stay as they are. A change applies to what starts afterwards, for example to the next pay cycle.',
  body: SomeSettings,
  success: { description: 'The changed partner.', schema: Partner },
  async run(call, { write }) {
    const { partnerId } = call.params
    const settings = call.body
    judge(settings)
    return await write(async tx => {
      const now = await partnerNow(tx, call, partnerId)
      const details = await update(tx, { partnerId, settings })
      return {
        body: onWire(await readPartner(tx, { partnerId, now })),
        resourceId: partnerId,
        audit: details === null ? undefined : { action: 'partner.set', details, partnerId, now },
      }
    })
  },
})

export const pausePartner = stateChange('pause', {
  summary: 'Pause a partner',
  description: 'Members of a paused partner cannot withdraw. Pay runs and payouts continue. Idempotent.',
  change: (tx, { partnerId }) => partners.pausePartner(tx, partnerId),
})

export const resumePartner = stateChange('resume', {
  summary: 'Resume a paused partner',
  description: 'Its members can withdraw again. Idempotent.',
  change: (tx, { partnerId }) => partners.resumePartner(tx, partnerId),
})

export const suspendPartner = stateChange('suspend', {
  summary: 'Suspend a partner',
  description: 'Every request of the partner is refused with `Forbidden`. Pending payouts continue. Idempotent.',
  change: partners.suspendPartner,
})

export const restorePartner = stateChange('restore', {
  summary: 'Restore a suspended partner',
  description: 'Its requests are accepted again. Idempotent.',
  change: (tx, { partnerId }) => partners.restorePartner(tx, partnerId),
})

export const partnerOperations = named({
  listPartners,
  createPartner,
  getPartner,
  updatePartner,
  pausePartner,
  resumePartner,
  suspendPartner,
  restorePartner,
})

type StateChange = Words & {
  change: (tx: Tx, asked: { partnerId: string; now: Date }) => Promise<partners.PartnerChange>
}

function stateChange(verb: 'pause' | 'resume' | 'suspend' | 'restore', { change, ...words }: StateChange) {
  return operation({
    route: `POST /operator/v1/partners/:partnerId/${verb}`,
    ...words,
    body: ReasonGiven,
    success: { description: 'The partner.', schema: Partner },
    async write(tx, call) {
      const { partnerId } = call.params
      const { reason = null } = call.body
      const now = await partnerNow(tx, call, partnerId)
      const { before, after } = await change(tx, { partnerId, now: call.receivedAt })
      const entry = { action: `partner.${verb}`, resourceId: partnerId, details: { reason } } as const
      // Recorded before the response is read, because the response says by whom and why the partner is stopped.
      if (!partners.isSameState(before, after))
        await auditLog.record(tx, { partnerId, actor: call.actor, change: entry, now })
      return { body: onWire(await readPartner(tx, { partnerId, now })), resourceId: partnerId }
    },
  })
}

/** Changes settings. Returns the details for the audit log; null if nothing changed. */
async function update(
  tx: Tx,
  { partnerId, settings }: { partnerId: string; settings: Static<typeof SomeSettings> },
): Promise<auditLog.Details | null> {
  if (Object.keys(settings).length === 0) return null
  const { before, after } = await partners.updatePartner(tx, { partnerId, settings })
  return auditLog.differences(partners.settingsOf(before), partners.settingsOf(after))
}

/** @throws Problem `BodyValidation` */
function judge(settings: Static<typeof SomeSettings>, prefix = ''): void {
  const fault = faultOf(settings)
  if (fault !== undefined) throw problem('BodyValidation', fault.message, { path: prefix + fault.path })
}

function listed(partner: partners.PartnerState) {
  const { country, timeZone } = partner
  return { ...summaryOf(partner), country, timeZone }
}

function summaryOf({ id, name, paused, suspendedAt, createdAt }: partners.PartnerState) {
  const state = suspendedAt !== null ? 'suspended' : paused ? 'paused' : 'open'
  return { id, name, state, createdAt }
}

function onWire({ state, stops, openCycle, floats, keys, members }: PartnerView) {
  const cycle = openCycle && { id: openCycle.id, startDate: openCycle.startDate, endDate: openCycle.endDate }
  return {
    ...summaryOf(state),
    ...stops,
    settings: partners.settingsOf(state),
    openCycle: cycle,
    floats: floats.map(floatOnWire),
    keys,
    members,
  }
}

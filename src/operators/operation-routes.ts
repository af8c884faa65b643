import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import * as auditLog from '../audit-log/audit-log.ts'
import { cutPage, pageOf, pageQuery } from '../contract/list.ts'
import { prefersCsv, sendCsv } from '../http/bodies/csv.ts'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { Id } from '../kernel/ids.ts'
import { GivenDayOrInstant, parseInstant } from '../kernel/time.ts'
import { findState } from '../partners/partners.ts'
import type { Rail } from '../payouts/channels/rail.ts'
import { usersOf } from '../users/users.ts'
import * as verifications from '../verification/verifications.ts'
import { readBooks } from './books.ts'
import { checkRails } from './finding.ts'
import { diagnose } from './findings.ts'
import {
  AuditEntries,
  auditFileOf,
  entryOnWire,
  Findings,
  LedgerVerification,
  LedgerVerifications,
  Status,
  statusBody,
  verificationOnWire,
} from './operation-schema.ts'
import { readStatus } from './status.ts'

const tag = 'Operations'
const strict = { additionalProperties: false }
const config = { isForOperators: true } as const

/** The facts about the environment for the findings. */
export type Installation = {
  /** The path in MIDMONTH_RAILS; empty if it is not set. */
  railsFile: string
  /** Empty if it is not set. */
  publicUrl: string
  isEmbedded: boolean
  /** How long the audit log keeps addresses. */
  auditAddressDays: number
  /** Where the installation’s key is. */
  keyPlace: string
}

const auditFilter = {
  actor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only changes by this actor: the id of a key or user, or user@host.',
      examples: ['key_01kah4pzc5e4r8v2m6t0x9y3bd'],
    }),
  ),
  actions: Type.Optional(
    Type.Array(Type.Enum([...auditLog.actions], { type: 'string' }), {
      maxItems: auditLog.actions.length,
      description: 'Only changes by these actions.',
    }),
  ),
  resourceId: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only changes of this resource: an id, or the name of a tier.',
    }),
  ),
  fromDate: Type.Optional(
    Type.Unsafe<string>({ ...GivenDayOrInstant, description: 'Only changes at or after this instant.' }),
  ),
  toDate: Type.Optional(
    Type.Unsafe<string>({ ...GivenDayOrInstant, description: 'Only changes before this instant.' }),
  ),
  after: Type.Optional(Id('auditEntry', 'The id of the last entry of this page, to get the next page.')),
  take: pageQuery.take,
}
const OfPartner = Type.Object(auditFilter, strict)
const OfAll = Type.Object(
  { partnerId: Type.Optional(Id('partner', 'Only changes that concern this partner.')), ...auditFilter },
  strict,
)
const csv = {
  description: 'One line per entry; `details` is JSON.',
  example: 'at,partnerId,actorKind,actor,action,resourceId,details,address,requestId,id\r\n',
}
const newestFirst =
  'Newest first. With `accept: text/csv`, all matching entries as a file, ignoring `after` and `take`. Entries hold no names, e-mails, account numbers or secrets.'

export function operationRoutes(
  app: App,
  { db, mode, now }: ApiContext,
  { rails, railsFile, publicUrl, isEmbedded, auditAddressDays, keyPlace }: { rails: readonly Rail[] } & Installation,
): void {
  app.get(
    '/operator/v1/status',
    {
      config,
      schema: operation({
        id: 'getStatus',
        tag,
        summary: 'Get the health of the service',
        description: 'The state of workers, queue, payouts, floats and partners, and everything that needs attention.',
        success: { status: 200, description: 'The health.', schema: Status },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        return {
          status: 200,
          body: statusBody(await readStatus(reader, { mode, rails, auditAddressDays, now: request.receivedAt })),
        }
      }),
  )

  app.get(
    '/operator/v1/findings',
    {
      config,
      schema: operation({
        id: 'getFindings',
        tag,
        summary: 'Check what is missing before this installation can pay',
        success: {
          status: 200,
          description: 'Everything that is missing, might go wrong or is fine.',
          schema: Findings,
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const at = request.receivedAt
        const settings = {
          now: at,
          mode,
          railsFile,
          publicUrl,
          auditAddressDays,
          rails: await checkRails(rails),
        }
        const findings = diagnose(settings, {
          isEmbedded,
          // Without its key this process would not have started.
          installationKey: { place: keyPlace, fault: undefined },
          ...(await readBooks(reader, { mode, now: at })),
        })
        const state = findings.some(({ level }) => level === 'missing') ? 'notReady' : 'ready'
        return { status: 200, body: { state, at: at.toISOString(), findings } }
      }),
  )

  app.post(
    '/operator/v1/ledger-verifications',
    {
      config,
      schema: operation({
        id: 'verifyLedger',
        tag,
        summary: 'Verify the books',
        description:
          'A worker recomputes every balance from its rows; poll the verification for its progress. `Conflict` while another verification waits or runs.',
        success: { status: 202, description: 'The verification.', schema: LedgerVerification },
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const asked = { requestedBy: operatorOf(request).id, now: now() }
        const verification = await verifications.request(tx, asked)
        const change = { action: 'ledger.verify', resourceId: verification.id, details: {} } as const
        await recordOperatorChange(tx, request, { partnerId: null, change, now: asked.now })
        return { status: 202, body: verificationOnWire(verification), resourceId: verification.id }
      }),
  )

  app.get(
    '/operator/v1/ledger-verifications',
    {
      config,
      schema: operation({
        id: 'listLedgerVerifications',
        tag,
        summary: 'List verifications of the books',
        description: 'The last 50, newest first.',
        success: { status: 200, description: 'The verifications.', schema: LedgerVerifications },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const found = await verifications.list(reader)
        return { status: 200, body: { verifications: found.map(verificationOnWire) } }
      }),
  )

  app.get(
    '/operator/v1/ledger-verifications/:verificationId',
    {
      config,
      schema: operation({
        id: 'getLedgerVerification',
        tag,
        summary: 'Get a verification of the books',
        params: Type.Object({ verificationId: Id('ledgerVerification') }),
        success: { status: 200, description: 'The verification.', schema: LedgerVerification },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: verificationOnWire(await verifications.find(reader, request.params.verificationId)),
      })),
  )

  app.get(
    '/operator/v1/audit-log',
    {
      config,
      schema: operation({
        id: 'listAuditEntries',
        tag,
        summary: 'Search the audit log',
        description: newestFirst,
        query: OfAll,
        success: { status: 200, description: 'One page of entries, or all as a file.', schema: AuditEntries, csv },
      }),
    },
    async (request, reply) => {
      const { partnerId, ...query } = request.query
      const filter = { partnerId, ...filterOf(query) }
      return await sendAuditLog(request, reply, { filter, query, who: { isForPartner: false, users: new Set() } })
    },
  )

  app.get(
    '/operator/v1/partners/:partnerId/audit-log',
    {
      config: { ...config, partnerRoles: ['admin'] },
      schema: operation({
        id: 'listPartnerAuditEntries',
        tag: 'Partners',
        summary: 'Search the audit log of a partner',
        description: newestFirst,
        params: Type.Object({ partnerId: Id('partner') }),
        query: OfPartner,
        success: { status: 200, description: 'One page of entries, or all as a file.', schema: AuditEntries, csv },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) => {
      const { partnerId } = request.params
      await findState(db, partnerId)
      const isForPartner = operatorOf(request).isOfPartner === true
      const who = { isForPartner, users: isForPartner ? await usersOf(db, partnerId) : new Set<string>() }
      const { actor } = request.query
      // Searching by an operator must not reveal that operator's entries.
      const isOfStranger = isForPartner && actor !== undefined && !who.users.has(actor)
      const actorKinds = isOfStranger ? (['api_key', 'worker'] as const) : undefined
      const filter = { partnerId, actorKinds, ...filterOf(request.query) }
      return await sendAuditLog(request, reply, { filter, query: request.query, who })
    },
  )

  /** Sends a page of the audit log or, if the caller prefers CSV, all of it. */
  async function sendAuditLog(
    request: FastifyRequest,
    reply: FastifyReply,
    { filter, query, who }: { filter: auditLog.Filter; query: Query; who: Parameters<typeof entryOnWire>[1] },
  ): Promise<FastifyReply> {
    reply.header('vary', 'accept')
    if (prefersCsv(request.headers.accept)) {
      const parts = auditFileOf(auditLog.listAll(db, filter), who)
      return sendCsv(request, reply, { name: 'audit-log.csv', parts })
    }
    return await read(db, request, reply, async reader => {
      const { take } = pageOf(query)
      const found = await auditLog.list(reader, { filter, before: query.after, take: take + 1 })
      const { rows, hasMore } = cutPage(found, { take })
      return { status: 200, body: { entries: rows.map(each => entryOnWire(each, who)), hasMore } }
    })
  }
}

type Query = Static<typeof OfPartner>

function filterOf({ actor, actions, resourceId, fromDate, toDate }: Query): auditLog.Filter {
  return {
    actor,
    actions,
    resourceId,
    from: fromDate === undefined ? undefined : parseInstant(fromDate, { decimals: 'up' }),
    to: toDate === undefined ? undefined : parseInstant(toDate, { decimals: 'up' }),
  }
}

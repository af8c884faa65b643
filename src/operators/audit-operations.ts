import { type Static, Type } from 'typebox'
import { actions } from '../audit-log/actions.ts'
import * as auditLog from '../audit-log/audit-log.ts'
import { hasMoreField, nextQuery, readPage } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import { named, operationWith } from '../http/operation.ts'
import { Id } from '../kernel/ids.ts'
import { described, namedObject, nullable, strictObject, TextOrNull, wordOf } from '../kernel/schemas.ts'
import { GivenDayOrInstant, Instant, parseInstant } from '../kernel/time.ts'
import { findState } from '../partners/partners.ts'
import { csvLines } from '../tabular/tabular.ts'
import { usersOf } from '../users/users.ts'

const operation = operationWith({ isForOperators: true })

const filters = {
  actor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Only changes by this actor: the id of a key or user, or user@host.',
      examples: ['key_01kah4pzc5e4r8v2m6t0x9y3bd'],
    }),
  ),
  actions: Type.Optional(
    Type.Array(wordOf(actions), {
      maxItems: actions.length,
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
  fromDate: Type.Optional(described(GivenDayOrInstant, 'Only changes at or after this instant.')),
  toDate: Type.Optional(described(GivenDayOrInstant, 'Only changes before this instant.')),
  ...nextQuery('auditEntry', 'entry'),
}
const OfPartner = strictObject(filters)
type Query = Static<typeof OfPartner>

const newestFirst =
  'Newest first. With `accept: text/csv`, all matching entries as a file, ignoring `after` and `take`. Entries hold no names, e-mails, account numbers or secrets.'

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

const success = {
  description: 'One page of entries, or all as a file.',
  schema: namedObject('AuditEntries', {
    entries: Type.Array(
      namedObject('AuditEntry', {
        id: Id('auditEntry'),
        at: Instant,
        partnerId: nullable(Id('partner'), 'Null if it concerns no partner.'),
        actorKind: wordOf([...auditLog.actorKinds, 'operator'], {
          description: '`operator`: users of a partner see no more than this of an operator.',
        }),
        actor: Type.String({ description: 'The id of a key or user, or user@host of a command.' }),
        action: Type.String({ examples: ['tier.set'] }),
        resourceKind: Type.String({ examples: ['tier'] }),
        resourceId: Type.String({ examples: ['Bronze'] }),
        details: Type.Object({}, { additionalProperties: true }),
        address: TextOrNull,
        requestId: TextOrNull,
      }),
    ),
    ...hasMoreField,
  }),
  csv: {
    description: 'One line per entry; `details` is JSON.',
    example: `${csvColumns.join(',')}\r\n`,
  },
} as const

const listAuditEntries = operation({
  route: 'GET /operator/v1/audit-log',
  tag: 'Operations',
  summary: 'Search the audit log',
  description: newestFirst,
  query: strictObject({
    partnerId: Type.Optional(Id('partner', 'Only changes that concern this partner.')),
    ...filters,
  }),
  success,
  async run(call, { read, download }) {
    const { partnerId, ...query } = call.query
    const filter = { partnerId, ...filterOf(query) }
    const viewer = { isForPartner: false, users: new Set<string>() }
    if (call.prefersCsv) return download(fileOf(call.context.db, { filter, viewer }))
    return await read(async reader => ({ body: await pageBody(reader, { filter, query, viewer }) }))
  },
})

const listPartnerAuditEntries = operation({
  route: 'GET /operator/v1/partners/:partnerId/audit-log',
  partnerRoles: ['admin'],
  tag: 'Partners',
  summary: 'Search the audit log of a partner',
  description: newestFirst,
  query: OfPartner,
  success,
  async run({ params: { partnerId }, query, operator, prefersCsv, context: { db } }, { read, download }) {
    await findState(db, partnerId)
    const isForPartner = operator.isOfPartner === true
    const viewer = { isForPartner, users: isForPartner ? await usersOf(db, partnerId) : new Set<string>() }
    const { actor } = query
    // Searching by an operator must not reveal that operator's entries.
    const isOfStranger = isForPartner && actor !== undefined && !viewer.users.has(actor)
    const actorKinds = isOfStranger ? (['api_key', 'worker'] as const) : undefined
    const filter = { partnerId, actorKinds, ...filterOf(query) }
    if (prefersCsv) return download(fileOf(db, { filter, viewer }))
    return await read(async reader => ({ body: await pageBody(reader, { filter, query, viewer }) }))
  },
})

export const auditOperations = named({ listAuditEntries, listPartnerAuditEntries })

/** Who reads: a user of a partner must not see operators' names and addresses. */
type Viewer = { isForPartner: boolean; users: ReadonlySet<string> }

function filterOf({ actor, actions, resourceId, fromDate, toDate }: Query): auditLog.Filter {
  return {
    actor,
    actions,
    resourceId,
    from: fromDate === undefined ? undefined : parseInstant(fromDate, { decimals: 'up' }),
    to: toDate === undefined ? undefined : parseInstant(toDate, { decimals: 'up' }),
  }
}

async function pageBody(
  reader: Reader,
  { filter, query, viewer }: { filter: auditLog.Filter; query: Query; viewer: Viewer },
) {
  const { rows, hasMore } = await readPage(query, take => auditLog.list(reader, { filter, before: query.after, take }))
  return { entries: rows.map(each => shownTo(viewer, each)), hasMore }
}

function fileOf(db: Reader, { filter, viewer }: { filter: auditLog.Filter; viewer: Viewer }) {
  return { headers: csvHeaders('audit-log.csv'), parts: csvOf(auditLog.listAll(db, filter), viewer) }
}

async function* csvOf(pieces: AsyncIterable<auditLog.Entry[]>, viewer: Viewer): AsyncGenerator<string> {
  yield csvLines([[...csvColumns]])
  for await (const entries of pieces) {
    const rows = entries.map(each => {
      const shown = shownTo(viewer, each)
      const cells = { ...shown, at: shown.at.toISOString(), details: JSON.stringify(shown.details) }
      return csvColumns.map(name => cells[name])
    })
    yield csvLines(rows)
  }
}

function shownTo({ isForPartner, users }: Viewer, entry: auditLog.Entry) {
  if (!isForPartner) return entry
  const { actorKind, actor } = entry
  const isOperator = actorKind === 'operator_key' || actorKind === 'cli' || (actorKind === 'user' && !users.has(actor))
  return {
    ...entry,
    details: withoutOperators(entry.details, users),
    ...(isOperator ? { actorKind: 'operator' as const, actor: 'operator', address: null } : {}),
  }
}

/** The fields of details that name people: who decided about a batch, and who sent an invitation. */
const namesOfPeople = ['person', 'invitedBy']

function withoutOperators(details: auditLog.Details, users: ReadonlySet<string>): auditLog.Details {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [
      name,
      namesOfPeople.includes(name) && !(typeof value === 'string' && users.has(value)) ? 'operator' : value,
    ]),
  )
}

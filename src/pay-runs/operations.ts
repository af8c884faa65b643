import { type Static, Type } from 'typebox'
import { cursorOf, cursorQuery, pageFields, pageOf, pageQuery, totalField } from '../contract/list.ts'
import type { Tx } from '../database/database.ts'
import { metadataOperations } from '../http/metadata-operations.ts'
import { type Call, named, operationWith } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { Id } from '../kernel/ids.ts'
import { fromWire, SignedMoney, toWire } from '../kernel/money.ts'
import { mapInSlices } from '../kernel/pace.ts'
import { namedObject, nullable, strictObject, wordOf } from '../kernel/schemas.ts'
import * as metadata from '../metadata/metadata.ts'
import { Metadata, metadataQuery } from '../metadata/schema.ts'
import { payroll, readers } from '../users/roles.ts'
import * as payRuns from './pay-runs.ts'
import { linesMax } from './rules.ts'

const tag = 'Pay runs'
const operation = operationWith({ tag })
const Status = wordOf(['Scheduled', 'Available', 'Reverted'], { title: 'PayRunStatus' })
const instant = { format: 'date-time', examples: ['2026-03-10T09:10:00.000Z'] }
const InstantOrNull = (description: string) => nullable(Type.String(instant), description)

// All lines, at up to 160 bytes each. Without white space, a line has about 90.
const bodyBytesMax = 16 * 1024 * 1024
// The largest body over a 2 Mbit/s connection.
const arrivalMsMax = 70_000

const NewPayRun = namedObject('NewPayRun', {
  payDetails: Type.Array(namedObject('PayDetail', { memberId: Id('member'), money: SignedMoney }), {
    maxItems: linesMax,
    description:
      'Earnings per member. A negative amount corrects an earlier pay run; 0 changes nothing. A member may have several lines.',
  }),
})

const createdFields = { id: Id('payRun'), payCycleId: Id('payCycle') }
const ScheduledPayRun = namedObject('ScheduledPayRun', {
  ...createdFields,
  status: Type.Literal('Scheduled', { type: 'string' }),
  scheduledFor: Type.String({
    ...instant,
    description: 'When the money becomes available. Nothing moves until then.',
  }),
})
const AvailablePayRun = namedObject('AvailablePayRun', {
  ...createdFields,
  status: Type.Literal('Available', { type: 'string' }),
})

/** The response of `POST /v1/pay/run`. Existing clients expect one closed shape per status, so no field may be added. */
const PayRunCreated = Type.Unsafe<Static<typeof ScheduledPayRun | typeof AvailablePayRun>>({
  title: 'PayRunCreated',
  type: 'object',
  required: ['id', 'payCycleId', 'status'],
  discriminator: { propertyName: 'status' },
  oneOf: [ScheduledPayRun, AvailablePayRun],
})

const payRunFields = {
  ...createdFields,
  status: Status,
  scheduledFor: Type.String({
    format: 'date-time',
    description: 'When the grace period ends and the money becomes available (ISO 8601, UTC).',
  }),
  metadata: Metadata,
}
const PayRun = namedObject('PayRun', payRunFields)

const PayRunDetails = namedObject('PayRunDetails', {
  ...payRunFields,
  createdAt: Type.String(instant),
  availableAt: InstantOrNull('When the money became available; null if it has not.'),
  revertedAt: InstantOrNull('When the pay run was reverted; null if it was not.'),
  lineCount: Type.Integer({ minimum: 0, description: 'Number of lines in the pay run.' }),
  totals: Type.Array(SignedMoney, { description: 'Sum of the lines, one entry per currency.' }),
})

const uploadPayRun = operation({
  route: 'POST /v1/pay/run',
  bodyBytesMax,
  scope: 'pay:write',
  arrivalMsMax,
  // 100,000 lines take seconds on a busy machine.
  answerMsMax: 30_000,
  roles: payroll,
  sdk: 'payRuns.create',
  summary: 'Upload a pay run',
  description:
    'Makes pay available to members in the open pay cycle, once the partner’s grace period is over. Either all lines are accepted or none. Send an idempotency key, so that a retry does not pay twice.',
  body: NewPayRun,
  success: {
    status: 201,
    description:
      'The pay run; `location` has more about it. `Available` if the partner has no grace period, otherwise `Scheduled`. Treat an unknown status as `Scheduled`, and read the pay run.',
    schema: PayRunCreated,
    headers: { location: Type.String({ description: 'Path of the pay run.' }) },
  },
  problems: ['UnprocessableEntity', 'PayRunMemberNotEligible'],
  async write(tx, call) {
    const { partner, now, body } = call
    const lines = await mapInSlices(body.payDetails, ({ memberId, money }) => ({ memberId, ...fromWire(money) }))
    const payRun = await payRuns.create(tx, { partner, lines, fileName: fileNameOf(call), now })
    const details = await detailsOf(tx, { partnerId: partner.id, payRun })
    const headers = { location: `/v1/pay/runs/${payRun.id}` }
    return { body: createdBody(payRun), headers, resourceId: payRun.id, audit: { action: 'pay_run.create', details } }
  },
})

const getPayRuns = operation({
  route: 'GET /v1/pay/runs',
  scope: 'pay:read',
  roles: readers,
  sdk: 'payRuns.list',
  summary: 'List pay runs',
  description: 'Newest first. If `after` or `before` is unknown, the response is `NotFound`.',
  query: strictObject({
    statuses: Type.Optional(Type.Array(Status, { maxItems: 3 })),
    payCycleId: Type.Optional(Id('payCycle')),
    ...metadataQuery,
    ...pageQuery,
    ...cursorQuery('payRun'),
  }),
  success: {
    description: 'One page of pay runs.',
    schema: namedObject('PayRuns', { payRuns: Type.Array(PayRun), ...totalField, ...pageFields }),
  },
  problems: ['NotFound'],
  async read(reader, { partner, query }) {
    const { skip: _skip, take: _take, after: _after, before: _before, ...filter } = query
    const partnerId = partner.id
    const page = pageOf(query)
    const found = await payRuns.list(reader, { partnerId, ...filter, page, cursor: cursorOf(query) })
    const asked = found.payRuns.map(({ id }) => ({ partnerId, resourceId: id }))
    const all = await metadata.findAll(reader, asked)
    const listed = found.payRuns.map(payRun => ({ ...payRun, metadata: all.get(payRun.id) ?? {} }))
    return { body: { payRuns: listed, total: found.total, ...page } }
  },
})

const getPayRun = operation({
  route: 'GET /v1/pay/runs/:payRunId',
  scope: 'pay:read',
  roles: readers,
  sdk: 'payRuns.get',
  summary: 'Get a pay run',
  success: { description: 'The pay run.', schema: PayRunDetails },
  async read(reader, { partner, params: { payRunId } }) {
    const { totals, ...payRun } = await payRuns.find(reader, { partnerId: partner.id, payRunId })
    const found = await metadata.find(reader, { partnerId: partner.id, resourceId: payRunId })
    return { body: { ...payRun, metadata: found, totals: totals.map(toWire) } }
  },
})

const revertPayRun = operation({
  route: 'POST /v1/pay/runs/:payRunId/revert',
  scope: 'pay:write',
  // 100,000 lines take seconds on a busy machine.
  answerMsMax: 30_000,
  roles: payroll,
  sdk: 'payRuns.revert',
  summary: 'Revert a pay run',
  description:
    'A `Scheduled` pay run is reverted without moving money. For an `Available` one, the reverse of every line is booked; whatever members have already withdrawn is owed and deducted from their next pay. Possible until the pay cycle closes. Idempotent: reverting it again returns the same response.',
  success: { description: 'The reverted pay run.', schema: PayRun },
  async write(tx, { partner, params, now }) {
    const { isRepeated, ...payRun } = await payRuns.revert(tx, { partnerId: partner.id, ...params, now })
    const details = isRepeated ? undefined : await detailsOf(tx, { partnerId: partner.id, payRun })
    const audit = details && ({ action: 'pay_run.revert', details } as const)
    const found = await metadata.find(tx, { partnerId: partner.id, resourceId: payRun.id })
    return { body: { ...payRun, metadata: found }, resourceId: payRun.id, audit }
  },
})

const metadataOfPayRuns = metadataOperations({
  kind: 'pay_run',
  names: { id: 'PayRun', summary: 'a pay run', sdk: { resource: 'payRuns', of: '' } },
  tag,
  path: '/v1/pay/runs/:payRunId',
  scopes: { read: 'pay:read', write: 'pay:write' },
  roles: { read: readers, write: payroll },
  requireKnown: (reader, { partnerId, resourceId: payRunId }) => payRuns.find(reader, { partnerId, payRunId }),
})

export const payRunOperations = [...metadataOfPayRuns, ...named({ uploadPayRun, getPayRuns, getPayRun, revertPayRun })]

// The console sends the file name, percent-encoded; a partner's server has no file.
const fileNameHeader = 'midmonth-file-name'

/** @throws Problem `HeaderValidation` */
function fileNameOf({ headers, user }: Pick<Call, 'headers' | 'user'>): string | null {
  const sent = headers[fileNameHeader]
  if (sent === undefined || user === undefined) return null
  try {
    const name = decodeURIComponent(String(sent)).trim()
    if (/^[^\x00-\x1f\x7f]{1,200}$/.test(name)) return name
  } catch {
    // The name is not percent-encoded.
  }
  throw problem('HeaderValidation', `${fileNameHeader} must be a file name of at most 200 characters`, {
    path: fileNameHeader,
  })
}

function createdBody({ id, payCycleId, status, scheduledFor }: payRuns.PayRun) {
  switch (status) {
    case 'Scheduled':
      return { id, payCycleId, status, scheduledFor }
    case 'Available':
      return { id, payCycleId, status }
    case 'Reverted':
      throw new Error('A new pay run cannot be reverted')
    default:
      return status satisfies never
  }
}

/** Returns the audit details of a pay run: totals and line count only, since the lines are kept with the pay run. */
async function detailsOf(tx: Tx, { partnerId, payRun }: { partnerId: string; payRun: payRuns.PayRun }) {
  const { status, payCycleId, lineCount, totals } = await payRuns.find(tx, { partnerId, payRunId: payRun.id })
  return { status, payCycleId, lineCount, totals: totals.map(toWire) }
}

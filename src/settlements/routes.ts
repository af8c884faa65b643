import { Type } from 'typebox'
import { afterQuery, cursorOf, lastMember, pageOf, pageQuery } from '../contract/list.ts'
import { disconnectSignal } from '../http/bodies/body-timeouts.ts'
import { acceptUploads } from '../http/bodies/upload.ts'
import { UploadedFile } from '../http/bodies/uploaded-file.ts'
import { operation } from '../http/described-route.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { hiddenOperation } from '../http/users/hidden-operation.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { type Currency, fromWire, toWire } from '../kernel/money.ts'
import { mapInSlices } from '../kernel/pace.ts'
import { readFile } from './reading.ts'
import type { Line } from './rules.ts'
import { NewSettlement, Settlement, SettlementSummary } from './schema.ts'
import * as settlements from './settlements.ts'

const tag = 'Pay cycles'
const params = Type.Object({ payCycleId: Id('payCycle') })

// The largest settlement as JSON or CSV, with headroom.
const bodyBytesMax = 32 * 1024 * 1024

// As many differences as a person reviews before settling.
const previewLinesMax = 2_000

/** @param reportsArrivals whether the bank reports money that arrives on the float's account in a currency */
export function settlementRoutes(
  app: App,
  { db }: ApiContext,
  { reportsArrivals }: { reportsArrivals: (currency: Currency) => boolean },
): void {
  // In its own scope, because only this operation accepts a file.
  app.register(async (scope: App) => {
    acceptUploads(scope, { kinds: ['csv'], fileBytesMax: bodyBytesMax })
    scope.post(
      '/v1/pay/cycles/:payCycleId/settlement',
      {
        bodyLimit: bodyBytesMax,
        // A file of 250,000 lines takes seconds on a busy machine.
        config: { scope: 'pay:write', answerMsMax: 30_000 },
        schema: operation({
          id: 'createSettlement',
          tag,
          summary: 'Settle a pay cycle',
          description:
            'Reports what payroll actually took, once per closed cycle. A shortfall is carried to the open cycle or written off, depending on the partner’s setting; an excess is given back in the open cycle. Either all lines are accepted or none; every error names its row or path.',
          params,
          body: NewSettlement,
          csvBody: {
            description:
              'One line per member: `member_id`, `currency`, and `amount_decimal` such as 50.00, or `amount_minor` in minor units. If both are present, they must agree. The delimiter is a comma, semicolon or tab. Case and spacing of the header do not matter. The other columns of the deductions file are allowed and ignored.',
            example: `member_id,amount_decimal,currency\r\n${exampleId('member')},50.00,GBP\r\n`,
          },
          success: { status: 201, description: 'The result of the settlement.', schema: SettlementSummary },
          problems: ['NotFound', 'UnprocessableEntity', 'FileContent'],
        }),
      },
      async (request, reply) => {
        // The schema types only the JSON body; the scope's parser can also produce an uploaded file.
        const report = await readReport(request.body as NewSettlement | UploadedFile, disconnectSignal(reply))
        return await withIdempotency(db, request, reply, async tx => {
          const { partner, params, now } = request
          const { payCycleId } = params
          const summary = await settlements.create(tx, {
            ...{ partnerId: partner.id, payCycleId, report, reportsArrivals, now },
          })
          const { payCycleId: _, settledAt: __, ...details } = onWire(summary)
          const audit = { action: 'pay_cycle.settle', details } as const
          return { status: 201, body: onWire(summary), resourceId: payCycleId, audit }
        })
      },
    )
  })

  // Lets a person review what a file would settle, because settling is final.
  app.register(async (scope: App) => {
    acceptUploads(scope, { kinds: ['csv'], fileBytesMax: bodyBytesMax })
    scope.post(
      '/console/v1/pay-cycles/:payCycleId/settlement-files',
      {
        config: { scope: 'pay:write' },
        schema: hiddenOperation({ id: 'checkSettlementFile', params, takesFile: true }),
      },
      async (request, reply) => {
        // The scope's content type parser always produces an UploadedFile.
        const report = await readReport(request.body as UploadedFile, disconnectSignal(reply))
        const { payCycleId } = request.params
        const asked = { partnerId: request.partner.id, payCycleId, report, linesMax: previewLinesMax }
        const { lines, totals, ...preview } = await settlements.preview(db, asked)
        return { ...preview, totals: totals.map(amountsOnWire), lines: lines.map(lineOnWire) }
      },
    )
  })

  app.get(
    '/v1/pay/cycles/:payCycleId/settlement',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getSettlement',
        tag,
        summary: 'Get the settlement of a pay cycle',
        description:
          'Lines are ordered by member. Without `skip`, a page never splits a member, so it may have a few entries more than `take`.',
        params,
        query: Type.Object({ ...pageQuery, ...afterQuery('member', lastMember) }, { additionalProperties: false }),
        success: {
          status: 200,
          description: 'The result of the settlement, and one page of its lines.',
          schema: Settlement,
        },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const cycle = { partnerId: request.partner.id, payCycleId: request.params.payCycleId }
        const page = pageOf(request.query)
        const summary = await settlements.find(reader, cycle)
        const lines = await settlements.listLines(reader, {
          ...{ ...cycle, page },
          ...{ skip: request.query.skip, cursor: cursorOf(request.query) },
        })
        const { matched, short, over, unknown } = summary
        const total = matched + short + over + unknown
        return { status: 200, body: { ...onWire(summary), lines: lines.map(lineOnWire), total, ...page } }
      }),
  )
}

async function readReport(body: NewSettlement | UploadedFile, signal: AbortSignal): Promise<settlements.PayrollReport> {
  if (body instanceof UploadedFile) {
    return { ...(await body.lend(fd => readFile(fd, { signal }))), naming: byRow }
  }
  const taken = await mapInSlices(body.deductions, ({ memberId, taken }, at) => ({ memberId, ...fromWire(taken), at }))
  return { taken, faults: [], naming: byPath }
}

const byRow: settlements.Naming = { problem: 'FileContent', placeOf: ({ at }) => ({ row: String(at) }) }

const fieldPaths = { memberId: 'memberId', amount: 'taken.amount', currency: 'taken.currency' }
const byPath: settlements.Naming = {
  problem: 'BodyValidation',
  placeOf: ({ at, field = 'memberId' }) => ({ path: `deductions.${at}.${fieldPaths[field]}` }),
}

function onWire({ settledAt, totals, ...summary }: settlements.Summary) {
  return { ...summary, settledAt: settledAt.toISOString(), totals: totals.map(totalOnWire) }
}

function lineOnWire({ memberId, outcome, ...amounts }: Line) {
  return { memberId, outcome, ...amountsOnWire(amounts) }
}

function totalOnWire({ due, ...amounts }: settlements.Summary['totals'][number]) {
  return { ...amountsOnWire(amounts), due: toWire({ amount: due, currency: amounts.currency }) }
}

type Amounts = Pick<Line, 'currency' | 'deducted' | 'taken' | 'carried' | 'writtenOff'>

function amountsOnWire({ currency, deducted, taken, carried, writtenOff }: Amounts) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return { deducted: money(deducted), taken: money(taken), carried: money(carried), writtenOff: money(writtenOff) }
}

import { afterQuery, cursorOf, lastMember, pageOf, pageQuery } from '../contract/list.ts'
import { UploadedFile } from '../http/bodies/uploaded-file.ts'
import { named, operationsOn } from '../http/operation.ts'
import { issuesMax } from '../kernel/errors.ts'
import { exampleId } from '../kernel/ids.ts'
import { allToWire, fromWire } from '../kernel/money.ts'
import { mapInSlices } from '../kernel/pace.ts'
import { strictObject } from '../kernel/schemas.ts'
import { readLines } from '../tabular/reading.ts'
import { payroll, staff } from '../users/roles.ts'
import { settlementFile } from './file.ts'
import type { SettlementContext } from './operation-context.ts'
import type { LineFault, SettlementLine, Taken } from './rules.ts'
import { NewSettlement, Settlement, SettlementSummary } from './schema.ts'
import * as settlements from './settlements.ts'

const { operationWith, consoleOperation } = operationsOn<SettlementContext>()
const operation = operationWith({ tag: 'Pay cycles' })

// The largest settlement as JSON or CSV, with headroom.
const bodyBytesMax = 32 * 1024 * 1024

// As many differences as a person reviews before settling.
const previewLinesMax = 2_000

const createSettlement = operation({
  route: 'POST /v1/pay/cycles/:payCycleId/settlement',
  bodyBytesMax,
  fileBytesMax: bodyBytesMax,
  // A file of 250,000 lines takes seconds on a busy machine.
  scope: 'pay:write',
  answerMsMax: 30_000,
  roles: payroll,
  sdk: 'payCycles.settle',
  summary: 'Settle a pay cycle',
  description:
    'Reports what payroll actually took, once per closed cycle. A shortfall is carried to the open cycle or written off, depending on the partner’s setting; an excess is given back in the open cycle. Either all lines are accepted or none; every error names its row or path.',
  body: NewSettlement,
  csvBody: {
    description:
      'One line per member: `member_id`, `currency`, and `amount_decimal` such as 50.00, or `amount_minor` in minor units. If both are present, they must agree. The delimiter is a comma, semicolon or tab. Case and spacing of the header do not matter. The other columns of the deductions file are allowed and ignored.',
    example: `member_id,amount_decimal,currency\r\n${exampleId('member')},50.00,GBP\r\n`,
  },
  success: { status: 201, description: 'The result of the settlement.', schema: SettlementSummary },
  problems: ['UnprocessableEntity', 'FileContent'],
  async run({ partner, params, body, now, signal, context }, { write }) {
    const report = await readReport(body, signal)
    return await write(async tx => {
      const { payCycleId } = params
      const { reportsArrivals } = context
      const summary = await settlements.create(tx, { partnerId: partner.id, payCycleId, report, reportsArrivals, now })
      const body = onWire(summary)
      const { payCycleId: _, settledAt: __, ...details } = body
      return { body, resourceId: payCycleId, audit: { action: 'pay_cycle.settle', details } }
    })
  },
})

// Lets a person review what a file would settle, because settling is final.
const checkSettlementFile = consoleOperation({
  route: 'POST /console/v1/pay-cycles/:payCycleId/settlement-files',
  scope: 'pay:write',
  roles: payroll,
  csvBody: { description: 'As for `createSettlement`.', example: '' },
  fileBytesMax: bodyBytesMax,
  async run({ partner, params, file, signal, context }, { read }) {
    const report = await readReport(file, signal)
    const asked = { partnerId: partner.id, payCycleId: params.payCycleId, report, linesMax: previewLinesMax }
    const { lines, ...preview } = await settlements.preview(context.db, asked)
    return await read(async () => ({ body: { ...onWire(preview), lines: lines.map(lineOnWire) } }))
  },
})

const getSettlement = operation({
  route: 'GET /v1/pay/cycles/:payCycleId/settlement',
  scope: 'pay:read',
  roles: staff,
  sdk: 'payCycles.listSettlementLines',
  summary: 'Get the settlement of a pay cycle',
  description:
    'Lines are ordered by member. Without `skip`, a page never splits a member, so it may have a few entries more than `take`.',
  query: strictObject({ ...pageQuery, ...afterQuery('member', lastMember) }),
  success: { description: 'The result of the settlement, and one page of its lines.', schema: Settlement },
  async read(reader, { partner, params, query }) {
    const cycle = { partnerId: partner.id, payCycleId: params.payCycleId }
    const page = pageOf(query)
    const summary = await settlements.find(reader, cycle)
    const lines = await settlements.listLines(reader, { ...cycle, page, skip: query.skip, cursor: cursorOf(query) })
    const { matched, short, over, unknown } = summary
    const total = matched + short + over + unknown
    return { body: { ...onWire(summary), lines: lines.map(lineOnWire), total, ...page } }
  },
})

export const settlementOperations = named({ createSettlement, checkSettlementFile, getSettlement })

async function readReport(body: NewSettlement | UploadedFile, signal: AbortSignal): Promise<settlements.PayrollReport> {
  if (body instanceof UploadedFile) {
    const taken: Taken[] = []
    const faults: LineFault[] = []
    let faultsMore = 0
    const onFault = (at: number, message: string) => {
      // One more than a response names, which says where the others begin.
      if (faults.length <= issuesMax) faults.push({ at, message })
      else faultsMore += 1
    }
    const onLines = (lines: Taken[]) => {
      for (const line of lines) taken.push(line)
    }
    await body.lend(fd => readLines({ fd, kind: 'csv' }, settlementFile, { signal, onLines, onFault }))
    return { taken, faults, faultsMore, naming: byRow }
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

function onWire<Summary extends { totals: settlements.Totals[] }>({ totals, ...summary }: Summary) {
  return { ...summary, totals: totals.map(({ currency, ...amounts }) => allToWire(amounts, currency)) }
}

function lineOnWire({ memberId, outcome, currency, ...amounts }: SettlementLine) {
  return { memberId, outcome, ...allToWire(amounts, currency) }
}

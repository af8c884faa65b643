import { Type } from 'typebox'
import { afterQuery, cursorOf, lastMember, pageFields, pageOf, pageQuery, totalField } from '../contract/list.ts'
import type { Reader } from '../database/database.ts'
import { csvHeaders } from '../http/bodies/csv.ts'
import { named, operation } from '../http/operation.ts'
import { exampleId, Id } from '../kernel/ids.ts'
import { signedMoney, toWire } from '../kernel/money.ts'
import { namedObject, strictObject } from '../kernel/schemas.ts'
import { Day } from '../kernel/time.ts'
import { readers, staff } from '../users/roles.ts'
import * as deductions from './deductions.ts'
import { deductionLines, deductionsHeader } from './file.ts'
import * as payCycles from './pay-cycles.ts'

const tag = 'Pay cycles'
const Status = Type.Union([Type.Literal('Open'), Type.Literal('Closed')], { title: 'PayCycleStatus' })

const PayCycle = namedObject('PayCycle', { id: Id('payCycle'), startDate: Day, endDate: Day, status: Status })

const Deductions = namedObject('Deductions', {
  deductions: Type.Array(
    namedObject('Deduction', {
      memberId: Id('member'),
      total: signedMoney('Amount to deduct from the member’s pay. Negative if payroll is to give money back.'),
    }),
  ),
  ...totalField,
  ...pageFields,
})

const getPayCycles = operation({
  route: 'GET /v1/pay/cycles',
  scope: 'pay:read',
  roles: readers,
  sdk: 'payCycles.list',
  tag,
  summary: 'List pay cycles',
  description: 'Newest first.',
  query: strictObject({
    statuses: Type.Optional(Type.Array(Status, { maxItems: 2 })),
    ...pageQuery,
    ...afterQuery('payCycle'),
  }),
  success: {
    description: 'One page of pay cycles.',
    schema: namedObject('PayCycles', { payCycles: Type.Array(PayCycle), ...totalField, ...pageFields }),
  },
  problems: ['NotFound'],
  async read(reader, { partner, query }) {
    const page = pageOf(query)
    const found = await payCycles.list(reader, {
      ...{ partnerId: partner.id, statuses: query.statuses ?? [] },
      ...{ page, cursor: cursorOf(query) },
    })
    return { body: { ...found, ...page } }
  },
})

const getPayCycle = operation({
  route: 'GET /v1/pay/cycles/:payCycleId',
  scope: 'pay:read',
  roles: readers,
  sdk: 'payCycles.get',
  tag,
  summary: 'Get a pay cycle',
  success: { description: 'The pay cycle.', schema: PayCycle },
  async read(reader, { partner, params: { payCycleId } }) {
    const cycle = await payCycles.find(reader, { partnerId: partner.id, payCycleId })
    const { id, startDate, endDate, status } = cycle
    return { body: { id, startDate, endDate, status } }
  },
})

const getPayCycleDeductions = operation({
  route: 'GET /v1/pay/cycles/:payCycleId/deductions',
  mayReadReplica: true,
  scope: 'pay:read',
  roles: staff,
  sdk: { json: 'payCycles.listDeductions', file: 'payCycles.exportDeductions' },
  tag,
  summary: 'List the deductions of a pay cycle',
  description:
    'Lists what payroll has to deduct from each member’s pay: withdrawals, the fees that members pay, and amounts carried over from an earlier cycle. Members without a deduction are left out. Ordered by member; a member whose currency has changed may have two deductions. Without `skip`, a page never splits a member, so it may have a few entries more than `take`. Provisional while the cycle is open, and final from `pay_cycle.closed` on. In between, which takes a moment or, for a million members, a minute or two, the answer is a `Conflict` with `retry-after`. With `accept: text/csv` the response is the whole list as a file, and `skip` and `take` are ignored.',
  query: strictObject({ ...pageQuery, ...afterQuery('member', lastMember) }),
  success: {
    description: 'One page of deductions, or all of them as a file.',
    schema: Deductions,
    csv: {
      description:
        'One line per deduction; `amount_decimal` is the amount with decimals. Spreadsheets do not read any cell as a formula. To settle the cycle, replace the amounts with what payroll actually took and upload the file.',
      example: `member_id,worker_id,email,amount_decimal,currency\r\n${exampleId('member')},AC-1001,sam.okafor@example.com,50.00,GBP\r\n`,
    },
  },
  async run({ partner, params, query, prefersCsv }, { read, source, download }) {
    const of = { partnerId: partner.id, payCycleId: params.payCycleId }
    if (prefersCsv) {
      const db = await source()
      const { startDate, endDate } = await payCycles.findWithDeductions(db, of)
      return download({ headers: csvHeaders(`deductions-${startDate}-${endDate}.csv`), parts: fileOf(db, of) })
    }
    return await read(async reader => {
      await payCycles.findWithDeductions(reader, of)
      const page = pageOf(query)
      const total = await deductions.count(reader, of)
      const { skip } = query
      const found = await deductions.list(reader, { ...of, page, skip, cursor: cursorOf(query) })
      const onWire = found.map(({ memberId, ...money }) => ({ memberId, total: toWire(money) }))
      return { body: { deductions: onWire, total, ...page } }
    })
  },
})

export const payCycleOperations = named({ getPayCycles, getPayCycle, getPayCycleDeductions })

async function* fileOf(db: Reader, of: payCycles.OfCycle): AsyncGenerator<string> {
  yield deductionsHeader
  for await (const piece of deductions.listAll(db, of)) yield deductionLines(piece)
}

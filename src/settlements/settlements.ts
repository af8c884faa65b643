import { type Cursor, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import * as fees from '../fees/fees.ts'
import { issue, issuesMax, Problem, type ProblemName, problem } from '../kernel/errors.ts'
import { byMemberRange } from '../kernel/member-ranges.ts'
import { type Currency, sumsByCurrency } from '../kernel/money.ts'
import { mapInSlices, piecesOf } from '../kernel/pace.ts'
import * as ledger from '../ledger/ledger.ts'
import { currenciesOf, lockMembers } from '../members/locks.ts'
import type { ShortfallPolicy } from '../partners/partners.ts'
import * as deductions from '../pay-cycles/deductions.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'
import * as dues from './dues.ts'
import {
  type LineFault,
  type LineOutcome,
  lineCheck,
  type SettlementLine,
  settle,
  type Taken,
  transfersOf,
} from './rules.ts'

/**
 * Payroll's report of actual deductions: the readable lines, and the errors of the others. `faultsMore` counts errors beyond
 * those listed. `naming` locates an error in the input: a row of a file, or a path of a body.
 */
export type PayrollReport = { taken: Taken[]; faults: LineFault[]; faultsMore?: number; naming: Naming }
export type Naming = { problem: ProblemName; placeOf(fault: LineFault): Record<string, string> }

export type Summary = Record<LineOutcome, number> & {
  payCycleId: string
  settledAt: Date
  /** The reference of the transfer to the float's account; null if no transfer is, or was, expected. */
  paymentReference: string | null
  /** `due`: what payroll took and has not transferred. */
  totals: (Totals & { due: bigint })[]
}

const summed = ['deducted', 'taken', 'carried', 'writtenOff'] as const
export type Totals = Pick<SettlementLine, 'currency' | (typeof summed)[number]>

const noLines: Record<LineOutcome, number> = { matched: 0, short: 0, over: 0, unknown: 0 }

type ReportsArrivals = (currency: Currency) => boolean

type Reported = payCycles.OfCycle & { report: PayrollReport }

// Keeps each statement well below a second, and its cost on the main thread low.
const linesPerStatement = 2_000
// Further errors are only counted. The listed errors are then not always those of the first thousand faulty rows.
const faultsMax = 20_000

type NewSettlement = Reported & { reportsArrivals?: ReportsArrivals; now: Date }

/**
 * Settles a closed cycle with what payroll actually took. Afterwards, the cycle's earned pay is zero for every member.
 * @param reportsArrivals whether the bank reports money that arrives on the float's account in a currency. The money is a
 * receivable until then; otherwise, it is in the float at once
 * @throws Problem, with nothing booked: `NotFound`; `Conflict` if the cycle is open, closing or already settled;
 * `UnprocessableEntity` without an open cycle to carry to; or all errors of the lines at once
 */
export async function create(
  tx: Tx,
  { partnerId, payCycleId, report, reportsArrivals = () => false, now }: NewSettlement,
): Promise<Summary> {
  const cycle = await findClosed(tx, { partnerId, payCycleId })
  const next = await payCycles.holdOpen(tx, partnerId)
  await payCycles.markSettled(tx, { partnerId, cycle, now })
  if (next === undefined) throw noOpenCycle()
  const groups = await compare(tx, { partnerId, cycle, report })
  const charged = await fees.listMembersWithFees(tx, { partnerId, payCycleId })
  for (const { lines, withFees } of withMembers(
    groups.flatMap(lines => piecesOf(lines, linesPerStatement)),
    charged,
  )) {
    await book(tx, { partnerId, cycle, next, lines, withFees, reportsArrivals, now })
  }
  for (const amount of sumsByCurrency(groups.flat().map(({ taken, currency }) => ({ amount: taken, currency })))) {
    if (reportsArrivals(amount.currency) && amount.amount !== 0n)
      await dues.record(tx, { partnerId, payCycleId, amount, now })
  }
  await fees.collectSettled(tx, { partnerId, payCycleId, now })
  const summary = await summarise(tx, { partnerId, payCycleId, settledAt: now })
  const { matched, short, over, unknown } = summary
  const { startDate, endDate } = cycle
  const data = { payCycleId, startDate, endDate, matched, short, over, unknown }
  // After it opened and closed; a cycle is settled once.
  await events.emit(tx, { partnerId, type: 'pay_cycle.settled', resourceId: payCycleId, sequence: 3, data, now })
  return summary
}

/** The effect of a settlement. `lines` are the first lines with a difference. */
export type Preview = Pick<Summary, LineOutcome> & {
  shortfallPolicy: ShortfallPolicy
  totals: Totals[]
  lines: SettlementLine[]
}

/**
 * Compares what payroll actually took with the deductions of a closed cycle, as `create` does, and books nothing.
 * @throws Problem like `create`
 */
export async function preview(
  db: Reader,
  { partnerId, payCycleId, report, linesMax }: Reported & { linesMax: number },
): Promise<Preview> {
  const cycle = await findClosed(db, { partnerId, payCycleId })
  if (cycle.settledAt !== null) throw payCycles.alreadySettled()
  const lines = (await compare(db, { partnerId, cycle, report })).flat()
  const [counts, totals] = [{ ...noLines }, new Map<Currency, Totals>()]
  for (const { outcome, currency, ...line } of lines) {
    counts[outcome] += 1
    const sums = totals.get(currency) ?? { currency, deducted: 0n, taken: 0n, carried: 0n, writtenOff: 0n }
    for (const column of summed) sums[column] += line[column]
    totals.set(currency, sums)
  }
  return {
    ...counts,
    shortfallPolicy: await readPolicy(db, partnerId),
    totals: [...totals.values()],
    lines: lines.filter(({ outcome }) => outcome !== 'matched').slice(0, linesMax),
  }
}

/** @throws Problem `NotFound`, including if the cycle is not settled */
export async function find(db: Reader, { partnerId, payCycleId }: payCycles.OfCycle): Promise<Summary> {
  const { settledAt } = await payCycles.find(db, { partnerId, payCycleId })
  if (settledAt === null) throw problem('NotFound', 'The pay cycle has not been settled yet')
  return await summarise(db, { partnerId, payCycleId, settledAt })
}

type LinesAsked = payCycles.OfCycle & { page: Page; skip: number | undefined; cursor: Cursor | undefined }

/**
 * Lists lines by member, and by currency if a member's currency has changed.
 * @param options.skip given if the caller counts entries; otherwise a page ends with the last entry of a member
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function listLines(
  db: Reader,
  { partnerId, payCycleId, page, skip, cursor }: LinesAsked,
): Promise<SettlementLine[]> {
  await requireKnown(db, 'members', { partnerId, cursor })
  const lines = await db
    .selectFrom('settlementLines')
    .select(['memberId', 'currency', 'deducted', 'taken', 'outcome', 'carried', 'writtenOff'])
    .where('partnerId', '=', partnerId)
    .where('payCycleId', '=', payCycleId)
    .where('memberId', '>', cursor?.id ?? '')
    .orderBy('memberId')
    .$if(skip === undefined, query => query.fetch(page.take, 'with ties'))
    .$if(skip !== undefined, query => query.orderBy('currency').offset(page.skip).limit(page.take))
    .execute()
  return lines.toSorted((a, b) => (a.memberId + a.currency < b.memberId + b.currency ? -1 : 1))
}

async function findClosed(db: Reader, which: payCycles.OfCycle) {
  const cycle = await payCycles.findWithDeductions(db, which)
  if (cycle.status === 'Open') throw problem('Conflict', 'The pay cycle is still open; settle it once it has closed')
  return cycle
}

/** @returns all lines in member order, in groups that never split a member */
async function compare(
  db: Reader,
  { partnerId, cycle, report }: { partnerId: string; cycle: payCycles.PayCycle; report: PayrollReport },
): Promise<SettlementLine[][]> {
  const all: deductions.Deduction[] = []
  for await (const piece of deductions.listAll(db, { partnerId, payCycleId: cycle.id })) all.push(...piece)
  const groups = await groupsByMember(report.taken, all)
  const faults = [...report.faults]
  let faultsMore = report.faultsMore ?? 0
  const totals = new Map<Currency, bigint>()
  for (const { taken, deductions } of groups) {
    const memberIds = [...new Set(taken.map(line => line.memberId))]
    const check = lineCheck({ deductions, currencyOf: await currenciesOf(db, { partnerId, memberIds }), totals })
    await mapInSlices(taken, line => {
      for (const fault of check(line)) {
        if (faults.length < faultsMax) faults.push(fault)
        else faultsMore += 1
      }
    })
  }
  if (faults.length > 0) throw refusalOf(faults, { ...report, faultsMore })
  const policy = await readPolicy(db, partnerId)
  return await mapInSlices(groups, ({ taken, deductions }) => inMemberOrder(settle(taken, { deductions, policy })))
}

// A member's settlement depends only on that member's lines and deductions, so each group can be decided on its own.
async function groupsByMember(taken: Taken[], deducted: deductions.Deduction[]) {
  const all: ({ memberId: string; line: Taken } | { memberId: string; deduction: deductions.Deduction })[] = []
  for (const line of taken) all.push({ memberId: line.memberId, line })
  for (const deduction of deducted) all.push({ memberId: deduction.memberId, deduction })
  const ranges = await byMemberRange(all, { sizeAbout: linesPerStatement })
  return await mapInSlices(ranges, range => ({
    taken: range.flatMap(each => ('line' in each ? [each.line] : [])),
    deductions: range.flatMap(each => ('deduction' in each ? [each.deduction] : [])),
  }))
}

// One issue per place (row or path), for up to a thousand places.
function refusalOf(
  faults: LineFault[],
  { naming: { problem: name, placeOf }, faultsMore = 0 }: PayrollReport,
): Problem {
  const messages = new Map<string, { place: Record<string, string>; messages: string[] }>()
  for (const fault of faults.toSorted((a, b) => a.at - b.at)) {
    const place = placeOf(fault)
    const key = JSON.stringify(place)
    const entry = messages.get(key) ?? { place, messages: [] }
    entry.messages.push(fault.message)
    messages.set(key, entry)
  }
  const all = [...messages.values()]
  const issues = all.slice(0, issuesMax).map(({ place, messages }) => issue(name, messageOf(place, messages), place))
  const rest = all[issuesMax]
  if (rest === undefined) return new Problem(name, issues)
  return new Problem(name, [
    ...issues,
    issue(name, `${all.length - issuesMax + faultsMore} more errors from here on; fix the others first`, rest.place),
  ])
}

function messageOf(place: Record<string, string>, messages: string[]): string {
  const where = Object.entries(place).map(([name, value]) => (name === 'row' ? `Row ${value}` : value))
  return `${where.join()}: ${messages.join('; ')}`
}

async function readPolicy(db: Reader, partnerId: string): Promise<ShortfallPolicy> {
  const { shortfallPolicy } = await db
    .selectFrom('partners')
    .select('shortfallPolicy')
    .where('id', '=', partnerId)
    .executeTakeFirstOrThrow()
  return shortfallPolicy
}

// Prevents deadlocks between operations that lock several members.
function inMemberOrder(lines: SettlementLine[]): SettlementLine[] {
  return lines.toSorted((a, b) => (a.memberId < b.memberId ? -1 : a.memberId > b.memberId ? 1 : 0))
}

// Assigns members to the pieces so that all members are locked in order. A member without a line may also have fees, if returned
// money has paid for new withdrawals.
function withMembers(
  pieces: SettlementLine[][],
  memberIds: string[],
): { lines: SettlementLine[]; withFees: string[] }[] {
  let from = 0
  return (pieces.length === 0 ? [[]] : pieces).map((lines, at) => {
    const following = pieces[at + 1]?.[0]?.memberId
    let to = from
    while (to < memberIds.length && (following === undefined || (memberIds[to] ?? '') < following)) to += 1
    const withFees = memberIds.slice(from, to)
    from = to
    return { lines, withFees }
  })
}

type Booking = {
  partnerId: string
  cycle: payCycles.PayCycle
  next: payCycles.PayCycle
  lines: SettlementLine[]
  withFees: string[]
  reportsArrivals: ReportsArrivals
  now: Date
}

async function book(tx: Tx, { partnerId, cycle, next, lines, withFees, reportsArrivals, now }: Booking): Promise<void> {
  const column = <K extends keyof SettlementLine>(name: K) => lines.map(line => line[name])
  const memberIds = column('memberId')
  await lockMembers(tx, { partnerId, memberIds: [...memberIds, ...withFees] })
  await ledger.post(tx, {
    partnerId,
    movementId: cycle.id,
    reason: 'pay_cycle.settled',
    transfers: lines.flatMap(line => {
      const takenTo = reportsArrivals(line.currency) ? 'payroll_receivable' : 'float'
      return transfersOf(line, { settledCycleId: cycle.id, openCycleId: next.id, takenTo })
    }),
    now,
  })
  await sql`
    insert into settlement_lines
           (partner_id, pay_cycle_id, member_id, currency, deducted, taken, outcome, carried, written_off)
    select ${partnerId}, ${cycle.id}, line.*
      from unnest(${memberIds}::text[], ${column('currency')}::text[], ${column('deducted')}::bigint[],
                  ${column('taken')}::bigint[], ${column('outcome')}::text[], ${column('carried')}::bigint[],
                  ${column('writtenOff')}::bigint[]) as line`.execute(tx)
  await fees.cover(tx, { partnerId, payCycleId: cycle.id, carriedTo: next.id, memberIds: withFees })
}

async function summarise(
  db: Reader,
  { partnerId, payCycleId, settledAt }: payCycles.OfCycle & { settledAt: Date },
): Promise<Summary> {
  const { rows } = await sql<Totals & Record<LineOutcome, number>>`
    select currency, sum(deducted)::bigint as deducted, sum(taken)::bigint as taken,
           sum(carried)::bigint as carried, sum(written_off)::bigint as written_off,
           (count(*) filter (where outcome = 'matched'))::integer as matched,
           (count(*) filter (where outcome = 'short'))::integer as short,
           (count(*) filter (where outcome = 'over'))::integer as over,
           (count(*) filter (where outcome = 'unknown'))::integer as unknown
      from settlement_lines
     where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}
     group by currency order by currency`.execute(db)
  const expected = await dues.listOfCycle(db, { partnerId, payCycleId })
  const dueIn = (currency: Currency) => expected.find(due => due.currency === currency) ?? { amount: 0n, received: 0n }
  const counts = { ...noLines }
  const totals = rows.map(({ matched, short, over, unknown, ...sums }) => {
    for (const [outcome, count] of Object.entries({ matched, short, over, unknown }))
      counts[outcome as LineOutcome] += count
    const { amount, received } = dueIn(sums.currency)
    return { ...sums, due: amount - received }
  })
  const paymentReference = expected.length === 0 ? null : dues.referenceOf(payCycleId)
  return { payCycleId, settledAt, ...counts, paymentReference, totals }
}

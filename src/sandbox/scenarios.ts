import type { Tx } from '../database/database.ts'
import * as invoices from '../fees/invoices.ts'
import { readRevenue } from '../fees/revenue.ts'
import { listLines } from '../fees/statement.ts'
import * as float from '../float/float.ts'
import { dayIn } from '../kernel/time.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as members from '../members/members.ts'
import type { Partner } from '../partners/partners.ts'
import * as deductions from '../pay-cycles/deductions.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import * as settlements from '../settlements/settlements.ts'
import { complete } from '../withdrawals/completions.ts'
import * as intents from '../withdrawals/intents.ts'
import { type InstructionName, instructBank } from './bank.ts'
import { buildPreviousCycle, cyclesUntil, inviteAll, payTwice, setUp, type Team, withdrawAll, within } from './demo.ts'

/** The scenarios with which a sandbox can be seeded. A change here needs a change of docs/guides/sandbox.md. */
export const scenarios = {
  fresh: 'Tiers, a funded float and an open pay cycle; no members.',
  mid_cycle: '25 members with pay and withdrawals in the open pay cycle.',
  after_payroll: 'The previous pay cycle is closed and settled; its members have pay in the open one.',
  returned_payments: 'Like `mid_cycle`, with withdrawals that failed, were returned, or have no answer from the bank.',
  ten_thousand_members: '10,000 members with pay, and no withdrawals.',
} as const
export type Scenario = keyof typeof scenarios

const manyMembers = 10_000
const payOfMany = 50_000n

/** Work that is left to the bank or the worker after seeding. */
export type Seeded = { importId: string | null }

/** Builds a scenario for a partner that has just been reset, with the operations that partners use. */
export async function build(
  tx: Tx,
  { partner, scenario, now }: { partner: Partner; scenario: Scenario; now: Date },
): Promise<Seeded> {
  const { startsAt, turnsAt } = cyclesUntil(now, partner)
  switch (scenario) {
    case 'fresh':
      await open(tx, { partner, now })
      return { importId: null }
    case 'mid_cycle':
      await buildMidCycle(tx, { partner, at: within(turnsAt, now) })
      return { importId: null }
    case 'returned_payments': {
      const at = within(turnsAt, now)
      const team = await buildMidCycle(tx, { partner, at })
      await instructAll(tx, { partner, team, now })
      return { importId: null }
    }
    case 'after_payroll': {
      const before = await payCyclesOf(tx, { partner, startsAt, turnsAt })
      await settle(tx, { partner, payCycleId: before.payCycleId, now: turnsAt })
      await bill(tx, { partner, from: startsAt, now: turnsAt })
      await payTwice(tx, { partner, team: before.team, at: within(turnsAt, now) })
      return { importId: null }
    }
    case 'ten_thousand_members': {
      await open(tx, { partner, now })
      return { importId: await inviteMany(tx, { partner, now }) }
    }
    default:
      return scenario satisfies never
  }
}

async function open(tx: Tx, { partner, now }: { partner: Partner; now: Date }): Promise<void> {
  await payCycles.openFirst(tx, { partner, now })
  await setUp(tx, { partner, now })
}

async function buildMidCycle(
  tx: Tx,
  { partner, at }: { partner: Partner; at: (share: number) => Date },
): Promise<Team> {
  await open(tx, { partner, now: at(0) })
  const team = await inviteAll(tx, { partner, now: at(0.05) })
  await payTwice(tx, { partner, team, at })
  await withdrawAll(tx, { partner, team, amountsOf: ({ withdrawn }) => withdrawn, at })
  return team
}

async function payCyclesOf(
  tx: Tx,
  { partner, startsAt, turnsAt }: { partner: Partner; startsAt: Date; turnsAt: Date },
): Promise<{ team: Team; payCycleId: string }> {
  const team = await buildPreviousCycle(tx, { partner, startsAt, turnsAt })
  const { payCycles: closed } = await payCycles.list(tx, {
    partnerId: partner.id,
    statuses: ['Closed'],
    page: { skip: 0, take: 1 },
  })
  const [cycle] = closed
  if (cycle === undefined) throw new Error('The previous pay cycle did not close')
  return { team, payCycleId: cycle.id }
}

// Payroll takes exactly what was deducted.
async function settle(
  tx: Tx,
  { partner, payCycleId, now }: { partner: Partner; payCycleId: string; now: Date },
): Promise<void> {
  const owed = await deductions.list(tx, { partnerId: partner.id, payCycleId, page: { skip: 0, take: 1_000 } })
  const taken = owed.map(({ memberId, amount, currency }, at) => ({ memberId, amount, currency, at }))
  const naming = { problem: 'BodyValidation', placeOf: () => ({ path: 'deductions' }) } as const
  await settlements.create(tx, { partnerId: partner.id, payCycleId, report: { taken, faults: [], naming }, now })
}

// Half of the members' fees are taken out of the float, and the employer pays an invoice. The partner may have tiers without fees.
async function bill(
  tx: Tx,
  { partner: { id: partnerId, timeZone }, from, now }: { partner: Partner; from: Date; now: Date },
): Promise<void> {
  for (const { currency, inFloat } of await readRevenue(tx, partnerId)) {
    const amount = { amount: inFloat / 2n, currency }
    if (inFloat > 1n) await float.withdrawRevenue(tx, { partnerId, amount, reference: `fees in ${currency}`, now })
  }
  const fees = await listLines(tx, { partnerId, from, to: now })
  for (const currency of new Set(fees.filter(({ employerFees }) => employerFees > 0n).map(line => line.currency))) {
    const { id: invoiceId } = await invoices.issue(tx, { partnerId, currency, now })
    const payment = { reference: `transfer in ${currency}`, paidOn: dayIn(timeZone, now) }
    await invoices.pay(tx, { partnerId, invoiceId, ...payment, now })
  }
}

const stories: InstructionName[] = ['fail', 'return', 'return', 'submit']

// The bank is instructed now, and the withdrawals are due immediately.
async function instructAll(tx: Tx, { partner, team, now }: { partner: Partner; team: Team; now: Date }): Promise<void> {
  const candidates = team.filter(
    ({ demo }) => demo.account !== null && demo.pay > 50_000n && demo.withdrawn === undefined,
  )
  for (const [index, name] of stories.entries()) {
    const memberId = candidates[index]?.memberId
    if (memberId === undefined) throw new Error('There are too few members for the payments to return')
    const currency = await members.currencyOf(tx, { partnerId: partner.id, memberId })
    const intent = await intents.create(tx, { partner, memberId, amount: { amount: 5_000n, currency }, now })
    const { withdrawalId } = await complete(tx, { partner, intentId: intent.id, now, clockOffsetMs: 0 })
    await instructBank(tx, {
      partnerId: partner.id,
      withdrawalId,
      name,
      reason: undefined,
      isSimulated: () => true,
      now,
    })
  }
}

// The worker invites them, as it does for any long list.
async function inviteMany(tx: Tx, { partner, now }: { partner: Partner; now: Date }): Promise<string> {
  const actions = Array.from({ length: manyMembers }, (_, index) => {
    const number = String(index + 1).padStart(5, '0')
    return {
      type: 'Add' as const,
      email: `member.${number}@example.com`,
      firstName: 'Member',
      lastName: number,
      tier: 'Silver',
      workerId: `M-${number}`,
      accountDetails: {
        accountHolder: `Member ${number}`,
        sortCode: '000001',
        accountNumber: `00${number}0`.slice(-8),
      },
    }
  })
  const { importId } = await memberImports.createFromActions(tx, {
    partner: { ...partner, autoActivate: true },
    actions,
    now,
  })
  return importId
}

/** Pays the members of the scenario with many members, once they are invited. Idempotent. */
export async function payMany(tx: Tx, { partner, now }: { partner: Partner; now: Date }): Promise<void> {
  const runs = await payRuns.list(tx, { partnerId: partner.id, page: { skip: 0, take: 1 }, cursor: undefined })
  if (runs.total > 0) return
  const lines: { memberId: string; amount: bigint; currency: 'GBP' }[] = []
  for (let skip = 0; ; skip += 1_000) {
    const page = await members.list(tx, { partnerId: partner.id, filter: {}, page: { skip, take: 1_000 } })
    for (const { id, status } of page) {
      if (status === 'invited') await members.change(tx, { partner, command: { type: 'Activate', memberId: id }, now })
      lines.push({ memberId: id, amount: payOfMany, currency: 'GBP' })
    }
    if (page.length < 1_000) break
  }
  await payRuns.create(tx, { partner: { id: partner.id, graceMinutes: 0 }, lines, now })
}

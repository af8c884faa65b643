import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../src/database/database.ts'
import { invoiceStatuses } from '../src/fees/invoices.ts'
import type { MemberImport } from '../src/member-imports/member-imports.ts'
import { MemberStatus } from '../src/members/schema.ts'
import type { PayCycleStatus } from '../src/pay-cycles/pay-cycles.ts'
import type { PayRun } from '../src/pay-runs/pay-runs.ts'
import { batchStatuses, batchTransitions } from '../src/payouts/books/batch-lifecycle.ts'
import {
  canTransition,
  intentStatuses,
  returnsFunds,
  statuses,
  type WithdrawalStatus,
  transitions as withdrawalTransitions,
} from '../src/withdrawals/lifecycle.ts'
import { type Harness, startHarness } from './harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const importStatuses: Record<MemberImport['status'], true> = {
  NotReady: true,
  AwaitingReview: true,
  Processing: true,
  Completed: true,
  Rejected: true,
}
const cycleStatuses: Record<PayCycleStatus, true> = { Open: true, Closed: true }
const payRunStatuses: Record<PayRun['status'], true> = { Scheduled: true, Available: true, Reverted: true }

/** The states that the program knows, by the entity's name in state_transitions. */
const states: Record<string, readonly string[]> = {
  invoices: invoiceStatuses,
  member_imports: Object.keys(importStatuses),
  members: MemberStatus.enum,
  pay_cycles: Object.keys(cycleStatuses),
  pay_runs: Object.keys(payRunStatuses),
  payout_batches: batchStatuses,
  withdrawal_intents: intentStatuses,
  withdrawals: statuses,
}

/** The transitions that the program decides by. */
const transitions: Record<string, Record<string, readonly string[]>> = {
  payout_batches: batchTransitions,
  withdrawals: withdrawalTransitions,
}

/** The entities as docs/reference/states.md calls them. */
const documented: Record<string, string> = {
  Member: 'members',
  Intent: 'withdrawal_intents',
  Withdrawal: 'withdrawals',
  'Payout batch': 'payout_batches',
  'Pay run': 'pay_runs',
  'Pay cycle': 'pay_cycles',
  'Member job': 'member_imports',
}

test('the states and transitions in the database, the program and the documentation are the same', async () => {
  const rows = await harness.db.selectFrom('stateTransitions').selectAll().execute()
  const inDatabase = (entity: string) => rows.filter(row => row.entity === entity)
  const changesIn = (entity: string) =>
    inDatabase(entity).flatMap(({ fromState, toState }) => (fromState === 'new' ? [] : [`${fromState} → ${toState}`]))

  expect([...new Set(rows.map(({ entity }) => entity))].toSorted()).toEqual(Object.keys(states).toSorted())
  for (const [entity, known] of Object.entries(states)) {
    const found = inDatabase(entity).flatMap(({ fromState, toState }) => [fromState, toState])
    expect([...new Set(found)].filter(state => state !== 'new').toSorted(), entity).toEqual(known.toSorted())
  }
  for (const [entity, table] of Object.entries(transitions)) {
    const known = Object.entries(table).flatMap(([from, next]) => next.map(to => `${from} → ${to}`))
    expect(changesIn(entity).toSorted(), entity).toEqual(known.toSorted())
  }

  const text = readFileSync(new URL('../docs/reference/states.md', import.meta.url), 'utf8')
  for (const [name, entity] of Object.entries(documented)) {
    const line = text.split('\n').find(each => each.startsWith(`| ${name} |`)) ?? ''
    const written = [...line.matchAll(/`([^`]+)`/g)].flatMap(([, chain = '']) => {
      const path = chain.split(' → ')
      return path.slice(1).map((to, index) => `${path[index]} → ${to}`)
    })
    expect([...new Set(written)].toSorted(), name).toEqual(changesIn(entity).toSorted())
  }
})

test('the database allows a withdrawal the listed transitions, and its trigger refuses every other', async () => {
  const { ownerDb: db } = harness
  await harness.addWithdrawal()
  const dueAt = (status: WithdrawalStatus) => (status === 'held' || status === 'submitted' ? new Date(0) : null)
  const pairs = statuses.flatMap(from => statuses.filter(to => to !== from).map(to => ({ from, to })))
  for (const { from, to } of pairs) {
    const taken = db.transaction().execute(async tx => {
      // Disabled only to set the first state, because most states cannot be reached in one transition.
      for (const trigger of ['withdrawals_transitions', 'withdrawals_recoveries'])
        await sql`alter table withdrawals disable trigger ${sql.ref(trigger)}`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: from, dueAt: dueAt(from) })
        .execute()
      for (const trigger of ['withdrawals_transitions', 'withdrawals_recoveries'])
        await sql`alter table withdrawals enable trigger ${sql.ref(trigger)}`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: to, dueAt: dueAt(to) })
        .execute()
    })
    // Only an operator's decision makes a refunded withdrawal paid.
    if (to === 'paid' && returnsFunds(from) && canTransition(from, to))
      await expect(taken).rejects.toMatchObject({ constraint: 'recovered_by_a_decision' })
    else if (canTransition(from, to)) await expect(taken).resolves.toBeUndefined()
    else await expect(taken).rejects.toMatchObject({ constraint: 'only_listed_transitions' })
  }
})

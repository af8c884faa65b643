import { expect, test } from 'vitest'
import { issue, Problem, problem } from '../kernel/errors.ts'
import { absentValues } from '../members/fields.ts'
import {
  actionOf,
  countSteps,
  emptyPlan,
  faultsOf,
  faultyFile,
  type ImportRow,
  mustBeReviewed,
  planOfSteps,
  updateOf,
} from './rules.ts'

const row: ImportRow = {
  ...{ row: 2, email: 'ann@example.com', firstName: 'Ann', lastName: 'Ito', phone: null, tier: 'Silver' },
  ...{ workerId: null, accountDetails: null, dob: null, gender: null, enablePayroll: null },
}
const newMember = { ...absentValues, email: 'ann@example.com', firstName: 'Ann', lastName: 'Ito', tier: 'Silver' }
const minimal = ['email', 'first_name', 'last_name', 'phone', 'tier'] as const

test('rows without a step have the rest action, and offboarded members have no row', () => {
  const steps = { invite: 1, update: 2, reinstate: 3, offboard: 50, unchanged: 4 }
  expect(planOfSteps(steps, { rowCount: 100, restAction: 'Invite' })).toEqual({ ...steps, invite: 91 })
  expect(planOfSteps(steps, { rowCount: 100, restAction: 'Unchanged' })).toEqual({ ...steps, unchanged: 94 })
})

test('an unchanged row of a file is nothing to do; an unchanged action is reported', () => {
  const plan = { invite: 1, update: 2, reinstate: 3, offboard: 4, unchanged: 5 }
  expect(countSteps('file', plan)).toBe(10)
  expect(countSteps('actions', plan)).toBe(15)
})

test('a decision is classified by what it does to the member', () => {
  const active = { ...newMember, id: 'mem_1', status: 'active', enablePayroll: true } as const
  const inactive = { ...active, status: 'inactive' } as const
  expect(actionOf({ before: undefined, after: active })).toBe('Invite')
  expect(actionOf({ before: active, after: inactive })).toBe('Offboard')
  expect(actionOf({ before: inactive, after: { ...active, phone: '+447700900123' } })).toBe('Reinstate')
  expect(actionOf({ before: active, after: { ...active, phone: '+447700900123' } })).toBe('Update')
  expect(actionOf({ before: active, after: active })).toBe('Unchanged')
})

test('a list is reviewed above the partner’s share, above the agreed number, and if it is empty', () => {
  const of = (offboard: number, unchanged: number, limits: { percent: number; offboardMax?: number }) =>
    mustBeReviewed(
      { ...emptyPlan, offboard, unchanged },
      { membersBefore: 100, offboardReviewPercent: limits.percent, offboardMax: limits.offboardMax ?? null },
    )
  expect(of(10, 90, { percent: 10 })).toBe(false)
  expect(of(11, 89, { percent: 10 })).toBe(true)
  expect(of(5, 95, { percent: 10, offboardMax: 4 })).toBe(true)
  expect(of(100, 0, { percent: 100 })).toBe(true)
  expect(of(0, 0, { percent: 100 })).toBe(false)
})

test('an absent column changes nothing, an empty cell removes the value, and an unread one is left out', () => {
  const terms = { columns: [...minimal], removesAccounts: true, hasIban: () => false }
  const { email, firstName, lastName, tier } = row
  expect(updateOf(row, terms)).toEqual({ email, firstName, lastName, tier, phone: null })
  expect(updateOf({ ...row, email: '' }, terms)).toEqual({ firstName, lastName, tier, phone: null })
  const withDob = { ...terms, columns: [...minimal, 'dob' as const, 'enable_payroll' as const] }
  expect(updateOf(row, withDob)).toEqual({ email, firstName, lastName, tier, phone: null, dob: null })
})

test('an empty account removes only an account that the columns could hold, and only if the upload says so', () => {
  const columns = [...minimal, 'sort_code' as const]
  expect(updateOf(row, { columns, removesAccounts: true, hasIban: () => false })).toHaveProperty('accountDetails', null)
  expect(updateOf(row, { columns, removesAccounts: true, hasIban: () => true })).not.toHaveProperty('accountDetails')
  expect(updateOf(row, { columns, removesAccounts: false, hasIban: () => false })).not.toHaveProperty('accountDetails')
})

test('faults of one row from different checks make one issue, each fault once, in the order of the file', () => {
  const read = { faults: [{ row: 9, messages: ['a', 'b'] }], faultsMore: 0, rowCount: 20, readTo: 21 }
  const planned = {
    faults: [
      { row: 9, messages: ['b', 'c'] },
      { row: 3, messages: ['d'] },
    ],
    faultsMore: 2,
  }
  expect(faultyFile(read, planned).issues).toEqual([
    expect.objectContaining({ row: '3', message: 'd' }),
    expect.objectContaining({ row: '9', message: 'a; b; c' }),
    expect.objectContaining({ row: '21', message: 'at least 2 more of the 20 rows checked are invalid' }),
  ])
})

test('a clash names the other member, and another refusal gives every reason', () => {
  expect(faultsOf(problem('MemberAlreadyInvited', 'text', { memberId: 'mem_7' }))).toEqual([
    'another member, mem_7, has the e-mail or the worker_id',
  ])
  const issues = ['one', 'two'].map(message => issue('InvalidUpdateMemberPayload', message))
  expect(faultsOf(new Problem('InvalidUpdateMemberPayload', issues))).toEqual(['one', 'two'])
})

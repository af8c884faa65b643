import { expect, test } from 'vitest'
import { canTransition, deductedStatuses, expectedAt, returnsFunds, statuses, transitionsFor } from './lifecycle.ts'

test('bank reports cause only listed transitions, and repeated reports change nothing', () => {
  for (const from of statuses) {
    for (const outcome of ['paid', 'failed', 'returned'] as const) {
      const steps = transitionsFor(from, outcome) ?? []
      for (const [index, to] of steps.entries()) expect(canTransition(steps[index - 1] ?? from, to)).toBe(true)
      const arrived = steps.at(-1)
      if (arrived !== undefined) {
        expect(arrived).toBe(outcome)
        expect(transitionsFor(arrived, outcome)).toEqual([])
      }
    }
  }
})

test.each([
  ['submitted', 'paid', ['paid']],
  ['submitted', 'failed', ['failed']],
  ['submitted', 'returned', ['paid', 'returned']],
  ['paid', 'paid', []],
  ['paid', 'failed', null],
  ['paid', 'returned', ['returned']],
  ['failed', 'failed', []],
  ['failed', 'paid', null],
  ['failed', 'returned', null],
  ['returned', 'returned', []],
  ['returned', 'paid', []],
  ['returned', 'failed', null],
  ['held', 'paid', null],
  ['held', 'failed', null],
  ['held', 'returned', null],
  ['cancelled', 'paid', null],
  ['cancelled', 'failed', null],
  ['cancelled', 'returned', null],
] as const)('%s, and the bank reports %s: %j', (status, outcome, steps) => {
  expect(transitionsFor(status, outcome)).toEqual(steps)
})

test('the money returns to the member when a withdrawal fails, is returned or is cancelled', () => {
  expect(statuses.filter(returnsFunds)).toEqual(['failed', 'returned', 'cancelled'])
  expect(statuses.filter(status => !returnsFunds(status))).toEqual(deductedStatuses)
})

test('a sandbox expects the money at the end of the hold; without an estimate from the bank, no time is promised', () => {
  const dueAt = new Date('2026-03-10T09:00:30Z')
  for (const status of statuses) {
    const withdrawal = { status, dueAt, expectedAt: null }
    expect(expectedAt(withdrawal, { isSimulated: true })).toEqual(status === 'held' ? dueAt : null)
    expect(expectedAt(withdrawal, { isSimulated: false })).toBeNull()
  }
})

test('a rail with a calendar says when the money is expected, until it is known that it will not arrive', () => {
  const byRail = new Date('2026-03-11T22:59:59.999Z')
  for (const status of statuses) {
    const said = expectedAt({ status, dueAt: null, expectedAt: byRail }, { isSimulated: false })
    expect(said).toEqual(status === 'submitted' || status === 'paid' ? byRail : null)
  }
})

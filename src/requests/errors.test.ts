import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('the partner’s own errors are counted by code and hour or day, for as long as the log keeps them', async () => {
  const refuse = (path: string, key = harness.key) => harness.call('GET', path, { key })
  await refuse('/v1/members/mem_123')
  await refuse('/v1/members?take=0')
  await refuse('/v1/members?take=0', harness.other.key)
  harness.clock.advance({ minutes: 90 })
  await refuse('/v1/members/mem_123')
  await refuse('/v1/members')
  await harness.flushRequestLog()
  const count = async (query = '') => (await harness.call('GET', `/v1/request-errors${query}`)).body
  const at = (from: string, errorCode: string, count: number) => ({ from: `${from}:00.000Z`, errorCode, count })
  expect(await count()).toEqual({
    counts: [
      at('2026-03-10T09:00', 'MemberNotFound', 1),
      at('2026-03-10T09:00', 'QueryValidation', 1),
      at('2026-03-10T10:00', 'MemberNotFound', 1),
    ],
    isComplete: true,
  })
  expect((await count('?by=day')).counts).toEqual([
    at('2026-03-10T00:00', 'MemberNotFound', 2),
    at('2026-03-10T00:00', 'QueryValidation', 1),
  ])
  expect((await count('?fromDate=2026-03-10T10:00:00Z')).counts).toHaveLength(1)
  harness.clock.advance({ days: 7, minutes: 2 })
  await harness.runTask('remove-old-data')
  expect((await count()).counts).toEqual([])
})

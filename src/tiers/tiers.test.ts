import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { bronze } from '../../test/harness/samples.ts'
import { changeTier, findTier, listVersions } from './tiers.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const change = (terms: Parameters<typeof changeTier>[1]['change'], version: number) =>
  harness.db.transaction().execute(tx =>
    changeTier(tx, {
      partnerId: harness.partner.id,
      name: 'Bronze',
      change: terms,
      version,
      now: harness.clock.now(),
    }),
  )

test('a change keeps all other terms, and of two changes to the same version only one succeeds', async () => {
  const { before, after } = await change({ upperLimit: 15_000n }, 1)
  expect(before).toMatchObject({ ...bronze, version: 1 })
  expect(after).toMatchObject({ ...bronze, version: 2, upperLimit: 15_000n })
  const both = await Promise.allSettled([change({ feeFixed: 10n }, 2), change({ feeFixed: 20n }, 2)])
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  const refused = both.find(each => each.status === 'rejected')
  expect(String(refused?.reason)).toContain('was changed to version 3 in the meantime, so nothing was done')
  expect(await listVersions(harness.db, { partnerId: harness.partner.id, name: 'Bronze' })).toHaveLength(3)
})

test('a change to contradictory terms is rejected, and an unknown tier is not found', async () => {
  const current = await findTier(harness.db, { partnerId: harness.partner.id, name: 'Bronze' })
  await expect(change({ upperLimit: 1n }, current?.version ?? 0)).rejects.toThrow(
    'The upper limit must not be below the lower limit',
  )
  expect(await findTier(harness.db, { partnerId: harness.other.partner.id, name: 'None' })).toBeUndefined()
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { claimingAt } from '../../test/payouts/claims.ts'
import { sql } from '../database/database.ts'
import { pausePartner, resumePartner } from '../partners/partners.ts'
import { countUnfinished, find, findEligibility, list } from './inspection.ts'
import * as withdrawals from './withdrawals.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const stuck = async () =>
  (await list(harness.db, { filter: { isStuck: true }, take: 100, now: harness.clock.now() })).map(each => [
    each.id,
    each.stuck,
  ])

test('a withdrawal is stuck when its step is five minutes overdue or polling the bank has failed, and says why', async () => {
  const { id: withdrawalId } = await harness.addWithdrawal()
  harness.clock.advance({ minutes: 5, seconds: 29 })
  expect(await stuck()).toEqual([])
  harness.clock.advance({ seconds: 2 })
  expect(await stuck()).toEqual([[withdrawalId, 'no worker submits it']])
  expect((await countUnfinished(harness.db, harness.clock.now())).held).toMatchObject({ count: 1, stuck: 1 })

  const now = harness.clock.now()
  await harness.inTx(tx => withdrawals.submitDue(tx, claimingAt(now, harness.partner.id)))
  expect(await stuck()).toEqual([])
  expect((await countUnfinished(harness.db, now)).submitted).toMatchObject({ count: 1, stuck: 0 })
  harness.clock.advance({ minutes: 15 })
  expect(await stuck()).toEqual([[withdrawalId, 'no worker polls the bank']])
  for (let round = 0; round < 8; round++) {
    harness.clock.advance({ minutes: 60 })
    await harness.inTx(tx => withdrawals.claimUnresolved(tx, claimingAt(harness.clock.now(), harness.partner.id)))
  }
  expect(await stuck()).toEqual([[withdrawalId, 'the bank gives no final report']])

  const about = { partnerId: harness.partner.id, withdrawalId, outcome: 'paid', reason: null } as const
  await harness.inTx(tx => withdrawals.applyBankReport(tx, { ...about, now: harness.clock.now() }))
  expect(await stuck()).toEqual([])
})

test('a list across all partners pages by id and respects its filter', async () => {
  const made = [
    await harness.addWithdrawal({ net: 2_000 }),
    await harness.addWithdrawal({ net: 3_000 }),
    await harness.addWithdrawal({ net: 4_000 }),
  ]
  const [oldest, middle, newest] = made.map(({ id }) => id)
  const now = harness.clock.now()
  const page = async (filter: Parameters<typeof list>[1]['filter'], before?: string) =>
    (await list(harness.db, { filter, before, take: 2, now })).map(({ id }) => id)
  expect(await page({ statuses: ['held'] })).toEqual([newest, middle])
  expect((await page({ statuses: ['held'] }, middle))[0]).toBe(oldest)
  expect(await page({ memberId: made[1]?.memberId ?? '' })).toEqual([middle])
  expect(await page({ partnerId: harness.other.partner.id })).toEqual([])
  expect(await find(harness.db, { withdrawalId: 'w_none', now })).toBeUndefined()
})

test('the reasons against a member’s withdrawal come from the rules that decide it', async () => {
  const { memberId } = await harness.addWithdrawal({ available: 12_050 })
  const partnerId = harness.partner.id
  const eligibility = (hasRail = true) =>
    findEligibility(harness.db, { partnerId, memberId, hasRail: () => hasRail, now: harness.clock.now() })
  expect(await eligibility()).toMatchObject({ available: 7_000n, refusal: null })
  expect(await eligibility(false)).toMatchObject({ refusal: expect.stringContaining('no bank is connected') })
  await harness.inTx(tx => pausePartner(tx, partnerId))
  expect(await eligibility()).toMatchObject({ refusal: expect.stringContaining('temporarily unavailable') })
  await harness.inTx(tx => resumePartner(tx, partnerId))
  await sql`update members set status = 'inactive' where id = ${memberId}`.execute(harness.db)
  expect(await eligibility()).toMatchObject({ refusal: 'The member is inactive; only active members can withdraw' })
})

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { lockByName } from '../database/named-locks.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('a job goes through its transition even if another was requested at the same time', async () => {
  const { partner, key } = await harness.addPartner('Jobs at once')
  const provoke = (to: string) => harness.call('POST', '/v1/sandbox/members/jobs', { key, body: { from: 'new', to } })
  const asked: ReturnType<typeof provoke>[] = []
  await harness.inTx(async tx => {
    // The lock that the insert of a job takes.
    await lockByName(tx, 'queue of member imports of', partner.id)
    asked.push(provoke('AwaitingReview'))
    await whenWaiting(harness.db)
    asked.push(provoke('Processing'))
    await whenWaiting(harness.db, { count: 2 })
  })
  const [file, actions] = await Promise.all(asked)
  expect(file?.status, file?.text).toBe(201)
  expect(actions, actions?.text).toMatchObject({ status: 201, body: { status: 'Completed' } })
})

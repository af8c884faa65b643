import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Midmonth } from '../../packages/sdk/src/index.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'

let harness: Harness
let address: string
beforeAll(async () => {
  harness = await startHarness()
  address = await harness.app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(() => harness.stop())

const clientOf = ({ key }: TestPartner) => new Midmonth({ apiKey: key, baseUrl: address, retriesMax: 0 })

async function addMembers(of: TestPartner, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < count; index += 1) ids.push(await harness.addMember({ key: of.key }))
  return ids
}

describe('a loop of the SDK over a list', () => {
  test('offboards all 30 active members, though each leaves the filter inside the loop', async () => {
    const mine = await harness.addPartner('Leavers')
    const client = clientOf(mine)
    const added = await addMembers(mine, 30)
    const offboarded: string[] = []
    for await (const { memberId } of client.members.list({ statuses: ['active'], take: 4 })) {
      await client.members.offboard(memberId)
      offboarded.push(memberId)
    }
    expect(offboarded.toSorted()).toEqual(added.toSorted())
    expect((await client.members.list({ statuses: ['active'] })).members).toEqual([])
  })

  test('deletes all webhook endpoints, and the position of one that is gone still holds', async () => {
    const mine = await harness.addPartner('Endpoints')
    const client = clientOf(mine)
    for (let count = 0; count < 5; count += 1)
      await client.webhooks.create({ url: `https://example.com/${count}`, types: ['withdrawal.paid'] })
    let count = 0
    for await (const { id } of client.webhooks.list({ take: 2 })) {
      await client.webhooks.delete(id)
      count += 1
    }
    expect([count, (await client.webhooks.list()).webhooks]).toEqual([5, []])
  })
})

describe('a cursor', () => {
  let lists: { path: string; cursor: string }[]
  let unknown: Record<string, string>
  beforeAll(async () => {
    const [memberId = ''] = await addMembers(harness, 2)
    const { id } = (await harness.call('POST', '/v1/webhooks', { body: { url: 'https://example.com', types: ['*'] } }))
      .body
    lists = [
      { path: '/v1/members', cursor: memberId },
      { path: '/v1/pay/cycles', cursor: harness.payCycle.id },
      { path: `/v1/pay/cycles/${harness.other.payCycle.id}/deductions`, cursor: memberId },
      { path: '/v1/webhooks', cursor: id },
    ]
    unknown = { mem: '', pc: '', we: '' }
    for (const prefix of Object.keys(unknown)) unknown[prefix] = `${prefix}_01kah4pzc5e4r8v2m6t0x9y3bd`
  })

  const ofMine = (path: string) => path.replace(harness.other.payCycle.id, harness.payCycle.id)

  test('of another partner is answered exactly like an unknown one', async () => {
    for (const { path, cursor } of lists) {
      const { key } = harness.other
      const missing = unknown[cursor.split('_')[0] ?? '']
      const foreign = await harness.call('GET', `${path}?after=${cursor}`, { key })
      const absent = await harness.call('GET', `${path}?after=${missing}`, { key })
      expect([foreign.status, foreign.text], path).toEqual([404, absent.text])
    }
  })

  test('is refused together with skip, and as an id of another kind', async () => {
    for (const { path, cursor } of lists) {
      const both = await harness.call('GET', `${ofMine(path)}?after=${cursor}&skip=0`)
      expect([both.status, both.body.issues[0].path], path).toEqual([400, 'skip'])
      const odd = await harness.call('GET', `${ofMine(path)}?after=evt_01kah4pzc5e4r8v2m6t0x9y3bd`)
      expect([odd.status, odd.body.issues[0].path], path).toEqual([400, 'after'])
    }
  })

  test('of the results of a job is their step', async () => {
    const memberId = await harness.addMember()
    const actions = Array.from({ length: 5 }, () => ({ type: 'Update', memberId }))
    const { jobId } = (await harness.call('POST', '/v1/members/jobs', { body: { actions } })).body
    const steps = []
    for await (const { step } of clientOf(harness).memberJobs.listResults(jobId, { take: 2 })) steps.push(step)
    expect(steps).toEqual([1, 2, 3, 4, 5])
    const both = await harness.call('GET', `/v1/members/jobs/${jobId}/results?after=1&skip=0`)
    expect([both.status, both.body.issues[0].path]).toEqual([400, 'skip'])
  })

  test('is not taken by the deprecated list', async () => {
    const memberId = await harness.addMember()
    const { status, body } = await harness.call('GET', `/v1/pay/members/${memberId}/withdrawals?after=${memberId}`)
    expect([status, body.issues[0].path]).toEqual([400, 'after'])
  })
})

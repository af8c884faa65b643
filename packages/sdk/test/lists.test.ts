import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../../test/harness/harness.ts'
import { gbp, id, type MemberId, Midmonth } from '../src/index.ts'

let harness: Harness
let baseUrl: string
let partner: TestPartner
let midmonth: Midmonth
beforeAll(async () => {
  harness = await startHarness()
  baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(() => harness.stop())
beforeEach(async () => {
  partner = await harness.addPartner('Lister')
  midmonth = new Midmonth({ apiKey: partner.key, baseUrl })
})

const addMember = async (available = 0): Promise<MemberId> =>
  id('mem', await harness.addMember({ key: partner.key, available }))

async function withdraw(memberId: MemberId) {
  const { withdrawalIntentId } = await midmonth.withdrawals.createIntent({ memberId, amount: gbp('10.00') })
  return (await midmonth.withdrawals.complete({ withdrawalIntentId })).id
}

async function idsOf<T>(list: AsyncIterable<T>, idOf: (entry: T) => string): Promise<string[]> {
  const found: string[] = []
  for await (const entry of list) found.push(idOf(entry))
  return found
}

test('iterating a list reads every page with the same filters; awaiting it reads one', async () => {
  const active = [await addMember(), await addMember(), await addMember(), await addMember(), await addMember()]
  const [left = 'mem_none'] = active
  await midmonth.members.offboard(left)
  const list = midmonth.members.list({ statuses: ['active', 'invited'], take: 2 })
  expect(await idsOf(list, each => each.memberId)).toEqual(active.slice(1).reverse())
  const page = await midmonth.members.list({ statuses: ['inactive'], take: 2 })
  expect(page).toMatchObject({ total: 1, skip: 0, take: 2, members: [{ memberId: left }] })
  // Starts at the second entry.
  expect(await idsOf(midmonth.members.list({ skip: 1, take: 2 }), each => each.memberId)).toEqual(
    active.slice(0, -1).reverse(),
  )
})

test('pages by cursor neither repeat nor skip an entry while others are added', async () => {
  const memberId = await addMember(50_000)
  const before = []
  for (let count = 0; count < 5; count++) before.push(await withdraw(memberId))
  const seen: string[] = []
  for await (const withdrawal of midmonth.withdrawals.list({ memberId, take: 2 })) {
    // The fuller representation.
    expect(withdrawal.status).toBe('held')
    seen.push(withdrawal.id)
    if (seen.length < 3) await withdraw(memberId)
  }
  expect(seen).toEqual(before.reverse())
})

test('the pages of a list can be iterated, and leaving the loop stops reading', async () => {
  for (let count = 0; count < 5; count++) await addMember()
  const sizes: number[] = []
  for await (const { members } of midmonth.members.list({ take: 2 }).pages()) sizes.push(members.length)
  expect(sizes).toEqual([2, 2, 1])
  let requests = 0
  const counting = new Midmonth({ apiKey: partner.key, baseUrl, log: () => requests++ })
  for await (const _ of counting.members.list({ take: 2 })) break
  expect(requests).toBe(1)
})

test('entries before a cursor are a single page', async () => {
  const memberId = await addMember(50_000)
  const withdrawals = []
  for (let count = 0; count < 4; count++) withdrawals.unshift(await withdraw(memberId))
  const [, , , oldest] = withdrawals
  const list = midmonth.withdrawals.list({ take: 2, before: id('w', oldest ?? '') })
  expect(await idsOf(list, each => each.id)).toEqual(withdrawals.slice(1, 3))
})

test('the feed continues after the last event', async () => {
  const { lastEventId } = await midmonth.events.list({ from: 'now' })
  expect(await idsOf(midmonth.events.list({ from: 'now' }), each => each.id)).toEqual([])
  const memberId = await addMember(5_000)
  const types: string[] = []
  let position = lastEventId
  for await (const event of midmonth.events.list({ ...(position === null ? {} : { after: position }), take: 1 })) {
    types.push(event.type)
    position = event.id
    if (event.type === 'member.invited') expect(event.data.memberId).toBe(memberId)
  }
  expect(types).toEqual(['member.invited', 'member.activated', 'pay_run.scheduled', 'pay_run.available'])
})

test('a list without a total or a cursor is read to its end', async () => {
  expect(await idsOf(midmonth.sandbox.bankFiles.list({ take: 1 }), each => each.batchId)).toEqual([])
})

test('an export is a stream of the whole list', async () => {
  for (let count = 0; count < 3; count++) await addMember()
  const file = await midmonth.members.export({ statuses: ['active'] })
  expect(file.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect((await file.text()).trim().split('\r\n')).toHaveLength(4)
})

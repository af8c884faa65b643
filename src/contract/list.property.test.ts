import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'

let harness: Harness
let memberId: string
beforeAll(async () => {
  harness = await startHarness()
  memberId = await harness.addMember({ available: 10_000_000 })
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const post = (path: string, body: unknown) => harness.call('POST', path, { body })
const pay = (payDetails: object[]) => post('/v1/pay/run', { payDetails })

/** A list that takes a cursor, and how to add an entry to it. */
type List = { path: () => string; field: string; add: () => Promise<unknown> }

const lists = {
  withdrawals: {
    path: () => '/v1/pay/withdrawals?',
    field: 'withdrawals',
    async add() {
      const { body } = await post('/v1/pay/withdrawals/intent', { memberId, amount: gbp(1_000) })
      return await post('/v1/pay/withdrawals/complete', { withdrawalIntentId: body.withdrawalIntentId })
    },
  },
  'pay runs': { path: () => '/v1/pay/runs?', field: 'payRuns', add: () => pay([]) },
  'member jobs': {
    path: () => '/v1/members/jobs?',
    field: 'jobs',
    async add() {
      await post('/v1/members/jobs', { actions: [{ type: 'Update', memberId }] })
      // Nothing applies the jobs here, and only so many may wait.
      await harness.db
        .updateTable('memberImports')
        .set({ status: 'Completed', endedAt: harness.clock.now() })
        .where('partnerId', '=', harness.partner.id)
        .where('endedAt', 'is', null)
        .execute()
    },
  },
  'lines of a statement': {
    path: () => `/v1/pay/members/${memberId}/statement?currency=GBP&`,
    field: 'lines',
    add: () => pay([{ memberId, money: gbp(1_000) }]),
  },
} satisfies Record<string, List>

async function idsOf({ path, field }: List, query: string): Promise<string[]> {
  const { status, body, text } = await harness.call('GET', `${path()}${query}`)
  if (status !== 200) throw new Error(text)
  return body[field].map((entry: { id: string }) => entry.id)
}

describe.each(Object.entries(lists))('the list of %s', (_, list) => {
  test('by cursor, forwards and back, has each entry once and in order while entries are added', async () => {
    for (let count = 0; count < 5; count += 1) await list.add()
    const step = fc.record({ take: fc.integer({ min: 1, max: 4 }), adds: fc.integer({ min: 0, max: 1 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), fc.boolean(), async (steps, isSameInstant) => {
        const atStart = await idsOf(list, 'take=1000')
        const seen: string[] = []
        for (let turn = 0; seen.length < atStart.length; turn += 1) {
          const { take = 1, adds = 0 } = steps[turn % steps.length] ?? {}
          const cursor = seen.length === 0 ? '' : `&after=${seen.at(-1)}`
          const page = await idsOf(list, `take=${take}${cursor}`)
          expect(page.length).toBe(Math.min(take, atStart.length - seen.length))
          seen.push(...page)
          if (!isSameInstant) harness.clock.advance({ seconds: 1 })
          if (adds > 0 && turn < 2) await list.add()
        }
        expect(seen).toEqual(atStart)
        expect(await idsOf(list, `after=${seen.at(-1)}`)).toEqual([])

        const [oldest = ''] = seen.slice(-1)
        const back = [oldest]
        for (let turn = 0; ; turn += 1) {
          const { take = 1 } = steps[turn % steps.length] ?? {}
          const page = await idsOf(list, `take=${take}&before=${back[0]}`)
          if (page.length === 0) break
          back.unshift(...page)
        }
        expect(back).toEqual(await idsOf(list, 'take=1000'))
      }),
      { numRuns: 5 },
    )
  })

  test('refuses a cursor with skip, two cursors, and an id of another kind', async () => {
    const [id = ''] = await idsOf(list, 'take=1')
    const issues = async (query: string) => {
      const { status, body } = await harness.call('GET', `${list.path()}${query}`)
      return [status, body.issues[0].code, body.issues[0].path]
    }
    expect(await issues(`after=${id}&skip=0`)).toEqual([400, 'QueryValidation', 'skip'])
    expect(await issues(`before=${id}&skip=1`)).toEqual([400, 'QueryValidation', 'skip'])
    expect(await issues(`after=${id}&before=${id}`)).toEqual([400, 'QueryValidation', 'before'])
    expect(await issues('after=evt_01kah4pzc5e4r8v2m6t0x9y3bd')).toEqual([400, 'QueryValidation', 'after'])
    expect(await issues('before=')).toEqual([400, 'QueryValidation', 'before'])
  })

  test('does not tell another partner’s cursor from one that does not exist', async () => {
    const [id = ''] = await idsOf(list, 'take=1')
    const { key } = harness.other
    const payee = await harness.addMember({ key })
    const path = list.path().replace(memberId, payee)
    const prefix = id.split('_')[0]
    for (const side of ['after', 'before']) {
      const foreign = await harness.call('GET', `${path}${side}=${id}`, { key })
      const missing = await harness.call('GET', `${path}${side}=${prefix}_01kah4pzc5e4r8v2m6t0x9y3bd`, { key })
      expect([foreign.status, foreign.text]).toEqual([404, missing.text])
      expect(foreign.headers['x-should-retry']).toBe('false')
    }
  })
})

test('a page by cursor says whether there is more in its direction', async () => {
  const { path } = lists.withdrawals
  const ids = await idsOf(lists.withdrawals, 'take=4')
  const page = async (query: string) => (await harness.call('GET', `${path()}${query}`)).body
  expect(await page(`before=${ids[2]}&take=2`)).toMatchObject({ hasMore: false, skip: 0, take: 2 })
  const one = await page(`before=${ids[2]}&take=1`)
  expect([one.hasMore, one.withdrawals[0].id]).toEqual([true, ids[1]])
  expect(await page(`after=${ids[1]}&take=1`)).toMatchObject({ hasMore: true })
  const prefer = { headers: { prefer: 'return=representation' } }
  const fuller = (await harness.call('GET', `${path()}before=${ids[2]}&take=2`, prefer)).body
  expect(fuller.withdrawals.map((each: { id: string }) => each.id)).toEqual(ids.slice(0, 2))
})

test('a cursor whose entry has left the filter still marks its place', async () => {
  const { body } = await post('/v1/pay/withdrawals/intent', { memberId, amount: gbp(1_000) })
  const completed = await post('/v1/pay/withdrawals/complete', { withdrawalIntentId: body.withdrawalIntentId })
  const id = locatedId(completed)
  await harness.call('POST', `/v1/pay/withdrawals/${id}/cancel`)
  const list = lists.withdrawals
  expect(await idsOf(list, `after=${id}&take=1`)).toEqual(await idsOf(list, 'take=1'))
})

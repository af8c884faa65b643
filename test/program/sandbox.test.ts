import { afterEach, expect, test, vi } from 'vitest'
import { midmonth, newDatabase, type Served, serve, start, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

test('two real processes share a moved clock, which expires an intent', async () => {
  const database = await newDatabase({ hasDemo: true })
  // One of them is the process of this test.
  const first = await serve(database)
  const second = await start(database, ['--api'])
  const aheadOf = async (service: Served) =>
    Number((await ask(service, first.key, 'GET', '/v1/sandbox/clock')).body.aheadSeconds) / 86_400

  expect(await aheadOf(second)).toBe(0)
  for (const days of [1, 3]) {
    const moved = await ask(first, first.key, 'POST', '/v1/sandbox/clock', { by: `P${days === 1 ? 1 : 2}D` })
    expect(moved.status).toBe(200)
    // A move ends at a fixed instant, but real time passed in the meantime.
    expect(await aheadOf(second)).toBeCloseTo(days, 3)
  }

  const { members } = (await ask(second, first.key, 'GET', '/v1/members?emails=sam.okafor@example.com')).body as {
    members: { memberId: string }[]
  }
  const memberId = members[0]?.memberId
  await ask(second, first.key, 'POST', `/v1/sandbox/members/${memberId}/fund`, {
    amount: { amount: 50_000, currency: 'GBP' },
  })
  const quoted = await ask(second, first.key, 'POST', '/v1/pay/withdrawals/intent', {
    memberId,
    amount: { amount: 5_000, currency: 'GBP' },
  })
  expect(quoted.status).toBe(201)
  const expired = await ask(second, first.key, 'POST', '/v1/sandbox/clock', { next: 'intent_expiry' })
  expect(expired.status).toBe(200)
  const intent = await ask(first, first.key, 'GET', `/v1/pay/withdrawals/intent/${quoted.body.withdrawalIntentId}`)
  expect(intent.body.status).toBe('expired')
})

test('commands about a partner use its clock', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve(database)
  const [partner] = await tamper(database, 'select id from partners')
  const partnerId = String(partner?.id)
  const json = async (...args: string[]) => JSON.parse((await midmonth([...args, '--json'], database)).stdout)
  await ask(service, service.key, 'POST', '/v1/sandbox/clock', { by: 'P40D' })
  const aheadMs = (at: string) => Date.parse(at) - Date.now()
  const dayMs = 86_400_000

  const created = await json('key', 'create', partnerId, '--expires-in-days', '30')
  expect(aheadMs(created.expiresAt) / dayMs).toBeCloseTo(70, 2)
  expect((await ask(service, created.secret, 'GET', '/v1/tiers')).status).toBe(200)
  const expiring = async () =>
    (await json('key', 'list', partnerId)).find(({ id }: { id: string }) => id === created.id)
  expect((await expiring()).state).toBe('valid')
  const { movement } = await json('float', 'fund', partnerId, 'GBP', '1000')
  expect(aheadMs(movement.at) / dayMs).toBeCloseTo(40, 2)

  await ask(service, service.key, 'POST', '/v1/sandbox/clock', { by: 'P30D' })
  expect((await expiring()).state).toBe('expired')
  expect((await json('partner', 'show', partnerId)).keys).toMatchObject({ expired: 1 })
  expect((await ask(service, created.secret, 'GET', '/v1/tiers')).status).toBe(401)
})

test('a move interrupted by a kill continues after the restart, and everything due is done once', async () => {
  const database = await newDatabase({ hasDemo: true })
  let service = await start(database)
  const call = async (method: string, path: string, body?: object, headers = {}) =>
    await ask(service, service.key, method, path, body, headers)
  // biome-ignore lint/suspicious/noExplicitAny: the tests of each operation check the schema of its response.
  const read = async (path: string) => (await call('GET', path)).body as any
  const { members } = await read('/v1/members?emails=sam.okafor@example.com')
  const [{ memberId }] = members
  const amount = { amount: 5_000, currency: 'GBP' }
  const newIntent = async () => (await call('POST', '/v1/pay/withdrawals/intent', { memberId, amount })).body
  const newWithdrawal = async () => {
    const { withdrawalIntentId } = await newIntent()
    await call('POST', '/v1/pay/withdrawals/complete', { withdrawalIntentId })
    const { withdrawals } = await read(`/v1/pay/withdrawals?memberId=${memberId}`)
    return withdrawals[0].id as string
  }
  const moveBy = async (by: string, headers = {}) => await call('POST', '/v1/sandbox/clock', { by }, headers)
  await call('POST', `/v1/sandbox/members/${memberId}/fund`, { amount: { amount: 50_000, currency: 'GBP' } })
  const before = await eventCounts(database)
  // The first payment is reported twice. The call for the second one takes two seconds, during which the process is killed.
  for (const next of ['duplicate', 'timeout']) await call('POST', '/v1/sandbox/bank/faults', { next })
  const first = await newWithdrawal()
  await moveBy('PT10S')
  const second = await newWithdrawal()
  const { withdrawalIntentId } = await newIntent()
  const { aheadSeconds: startsAheadSeconds } = await read('/v1/sandbox/clock')
  const headers = { 'x-idempotency-key': 'seventy days' }
  const moving = moveBy('P70D', headers).catch((error: Error) => error.message)
  await vi.waitFor(async () => expect(await submissionsOf(database, second)).toEqual([{ submissions: 1 }]), {
    interval: 20,
    timeout: 45_000,
  })
  service.child.kill('SIGKILL')
  await service.ended
  expect(await moving).toBe('fetch failed')
  expect(await tamper(database, 'select from sandbox_clock_moves where ended_at is null')).toHaveLength(1)

  service = await start(database)
  expect((await read('/v1/sandbox/clock')).status).toBe('Moving')
  const again = await moveBy('P70D', headers)
  expect([again.status, again.body.status]).toEqual([200, 'Still'])
  const clock = await read('/v1/sandbox/clock')
  expect(clock.aheadSeconds - startsAheadSeconds).toBe(70 * 86_400)

  for (const id of [first, second]) {
    const { status, timeline } = await read(`/v1/pay/withdrawals/${id}`)
    expect(status).toBe('paid')
    expect(timeline.map((entry: { status: string }) => entry.status)).toEqual(['held', 'submitted', 'paid'])
    expect(await submissionsOf(database, id)).toEqual([{ submissions: 1 }])
  }
  expect((await read(`/v1/pay/withdrawals/intent/${withdrawalIntentId}`)).status).toBe('expired')
  const after = await eventCounts(database)
  const countOf = (type: string) => (after.get(type) ?? 0) - (before.get(type) ?? 0)
  const { ran } = clock.lastMove
  // The bank does not report one of the demo's payments, so the move polls it between the two closings.
  const closings = ran.filter(({ due }: { due: string }) => due === 'cycle_close')
  const closedCount = closings.reduce((sum: number, { count }: { count: number }) => sum + count, 0)
  expect(closedCount).toBeGreaterThanOrEqual(2)
  // The demo held one withdrawal besides the two.
  expect({
    held: countOf('withdrawal.held'),
    submitted: countOf('withdrawal.submitted'),
    paid: countOf('withdrawal.paid'),
    expired: countOf('intent.expired'),
    closed: countOf('pay_cycle.closed'),
  }).toEqual({ held: 2, submitted: 3, paid: 3, expired: 1, closed: closedCount })
  const verified = await midmonth(['ledger', 'verify', '--json'], database)
  expect([verified.code, JSON.parse(verified.stdout).agree]).toEqual([0, true])
})

async function ask(
  service: Served,
  key: string,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
) {
  const answer = await fetch(`${service.address}${path}`, {
    method,
    headers: { 'x-api-key': key, ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

async function eventCounts(database: { DATABASE_URL: string }): Promise<Map<string, number>> {
  const rows = await tamper(
    database,
    // The worker drops events that are older than 30 days, of which the demo has some.
    `select type, count(*)::integer as count from events where created_at > now() - interval '25 days' group by type`,
  )
  return new Map(rows.map(({ type, count }) => [String(type), Number(count)]))
}

/** Counts how often the bank has received the payment of a withdrawal. */
async function submissionsOf(database: { DATABASE_URL: string }, withdrawalId: string) {
  return await tamper(
    database,
    `select p.submissions from payouts o join simulated_bank_payments p on p.reference = o.reference
      where o.withdrawal_id = '${withdrawalId}'`,
  )
}

import { afterEach, expect, test, vi } from 'vitest'
import { newDatabase, type Served, serve, start, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(tidyUp)

test('two real processes share a moved clock, and an intent expires by it', async () => {
  const database = await newDatabase({ hasDemo: true })
  // One is the process of this test.
  const first = await serve(database)
  const second = await start(database, ['--api'])
  const ask = async (service: Served, method: string, path: string, body?: object) => {
    const answer = await fetch(`${service.address}${path}`, {
      method,
      headers: { 'x-api-key': first.key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }
  const aheadOf = async (service: Served) =>
    Number((await ask(service, 'GET', '/v1/sandbox/clock')).body.aheadSeconds) / 86_400

  expect(await aheadOf(second)).toBe(0)
  for (const days of [1, 3]) {
    const moved = await ask(first, 'POST', '/v1/sandbox/clock', { by: `P${days === 1 ? 1 : 2}D` })
    expect(moved.status).toBe(200)
    // A move ends at an instant; real time went on while it was under way.
    expect(await aheadOf(second)).toBeCloseTo(days, 3)
  }

  const { members } = (await ask(second, 'GET', '/v1/members?emails=sam.okafor@example.com')).body as {
    members: { memberId: string }[]
  }
  const memberId = members[0]?.memberId
  await ask(second, 'POST', `/v1/sandbox/members/${memberId}/fund`, { amount: { amount: 50_000, currency: 'GBP' } })
  const quoted = await ask(second, 'POST', '/v1/pay/withdrawals/intent', {
    memberId,
    amount: { amount: 5_000, currency: 'GBP' },
  })
  expect(quoted.status).toBe(201)
  const expired = await ask(second, 'POST', '/v1/sandbox/clock', { next: 'intent_expiry' })
  expect(expired.status).toBe(200)
  const intent = await ask(first, 'GET', `/v1/pay/withdrawals/intent/${quoted.body.withdrawalIntentId}`)
  expect(intent.body.status).toBe('expired')
})

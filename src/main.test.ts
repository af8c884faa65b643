import pino from 'pino'
import { expect, test } from 'vitest'
import { startHarness } from '../test/harness.ts'
import { readSettings } from './config.ts'
import { run } from './main.ts'

const quiet = pino({ level: 'silent' })

test('an API in live mode, where no bank is connected, refuses intents and completions and says who can help', async () => {
  // Made while a bank was connected.
  const { db, batchDb, pool, clock, key, call, addMember, stop } = await startHarness({ mode: 'live', hasRail: true })
  const memberId = await addMember({ available: 12_000 })
  const amount = { amount: 5_000, currency: 'GBP' }
  const intent = () => call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
  const { withdrawalIntentId: pending } = (await intent()).body
  const { withdrawalIntentId: completed } = (await intent()).body
  await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId: completed } })

  const running = await run(
    {
      ...{ db, batchDb, pool, ownerConnection: '', appRole: { name: '' } },
      ...{ dataDir: undefined, psqlHint: undefined, close: async () => undefined },
    },
    {
      settings: readSettings({ OPENWAGE_MODE: 'live', PORT: '0' }),
      roles: { api: true, worker: false },
      log: quiet,
      now: clock.now,
    },
  )
  const send = async (method: 'GET' | 'POST', path: string, body?: object) => {
    const headers = { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const answer = await fetch(`${running.address}/v1/pay/${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return {
      status: answer.status,
      retryAfter: answer.headers.get('retry-after'),
      body: (await answer.json()) as { issues: { code: string; message: string }[] },
    }
  }
  try {
    const refused = [
      await send('POST', 'withdrawals/intent', { memberId, amount }),
      await send('POST', 'withdrawals/complete', { withdrawalIntentId: pending }),
    ]
    for (const { status, retryAfter, body } of refused) {
      expect({ status, retryAfter, code: body.issues[0]?.code }).toEqual({
        ...{ status: 422, retryAfter: null, code: 'UnprocessableEntity' },
      })
      expect(body.issues[0]?.message).toMatch(/no bank is connected .* ask its operator to connect one/)
    }
    expect(await send('GET', `members/${memberId}/balance`)).toMatchObject({
      body: { available: { amount: 7_000, currency: 'GBP' }, isTemporarilyUnavailable: true },
    })
    const repeated = await send('POST', 'withdrawals/complete', { withdrawalIntentId: completed })
    expect(repeated.status).toBe(201)
    const { rows } = await pool.query('select status from withdrawals')
    expect(rows).toEqual([{ status: 'held' }])
  } finally {
    await running.stop()
    await stop()
  }
})

test.each([
  ['live', 1],
  ['sandbox', 0],
] as const)('a worker in %s mode warns %i times that no money leaves', async (mode, count) => {
  const { db, batchDb, pool, clock, stop } = await startHarness({ mode })
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const running = await run(
    {
      ...{ db, batchDb, pool, ownerConnection: '', appRole: { name: '' } },
      ...{ dataDir: undefined, psqlHint: undefined, close: async () => undefined },
    },
    {
      settings: readSettings({ OPENWAGE_MODE: mode, OPENWAGE_HEALTH_PORT: '0' }),
      roles: { api: false, worker: true },
      log,
      now: clock.now,
    },
  )
  await running.stop()
  expect(messages.filter(message => message.includes('no money leaves'))).toHaveLength(count)
  await stop()
})

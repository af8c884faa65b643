import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { setUpAdyen } from '../../../../test/adyen/set-up.ts'
import { preparePayments } from '../../../../test/payouts/prepared-payments.ts'
import type { Payment } from '../../payments/payment.ts'

let setUp: Awaited<ReturnType<typeof setUpAdyen>>
let prepared: Payment[]
beforeAll(async () => {
  setUp = await setUpAdyen()
  prepared = await preparePayments(setUp.harness, { rail: 'adyen', count: 40 })
})
afterAll(() => setUp.stop())

const steps = [{ status: 'authorised' }, { status: 'booked' }, { status: 'returned', reason: 'unknown' }]

/** Makes a payment, and lets the bank take all its steps without telling. @returns the notifications about them */
async function payment(taking = steps): Promise<{ reference: string; notifications: string[] }> {
  const { rail, service } = setUp
  const next = prepared.pop()
  if (next === undefined) throw new Error('More payments are needed')
  service.decide(() => [...taking])
  await rail.submit([next], AbortSignal.timeout(5_000))
  const transfer = service.transferOf(next.reference)
  if (transfer === undefined) throw new Error('No transfer was made')
  const notifications = [service.notificationOf(transfer)]
  for (let body = service.step(transfer); body !== undefined; body = service.step(transfer)) notifications.push(body)
  return { reference: next.reference, notifications }
}

/** What the rail reports about a payment. */
async function outcomes(reference: string): Promise<string[]> {
  const { reports } = await setUp.rail.collect(null, 1_000, AbortSignal.timeout(5_000))
  return reports.filter(report => report.reference === reference).map(({ outcome }) => outcome)
}

const post = (body: string | Buffer, headers: Record<string, string> = {}, rail = 'adyen') =>
  fetch(`${setUp.address}/rails/${rail}/notifications`, { method: 'POST', headers, body })

const signed = (body: string) => ({ hmacsignature: setUp.service.sign(body), protocol: 'HmacSHA256' })

const recorded = async () => {
  const { db } = setUp.harness
  const [payouts, records, exceptions] = await Promise.all([
    db.selectFrom('payouts').selectAll().orderBy('reference').execute(),
    db.selectFrom('bankRecords').selectAll().execute(),
    db.selectFrom('payoutExceptions').selectAll().execute(),
  ])
  return { payouts, records, exceptions }
}

test('a notification is recorded before it is accepted', async () => {
  const { reference, notifications } = await payment()
  const answers: unknown[] = []
  for (const body of notifications) {
    const answer = await post(body, signed(body))
    answers.push([answer.status, await answer.json(), await outcomes(reference)])
  }
  const accepted = { notificationResponse: '[accepted]' }
  expect(answers).toEqual([
    [200, accepted, []],
    [200, accepted, []],
    [200, accepted, ['paid']],
    [200, accepted, ['paid', 'returned']],
  ])
})

test.each([
  ['in order', [0, 1, 2, 3]],
  ['backwards', [3, 2, 1, 0]],
  ['twice', [0, 0, 1, 2, 2, 3, 3]],
  ['with the end in the middle', [1, 3, 0, 2, 3]],
])('notifications that arrive %s report the payment as paid and then as returned, once', async (_, order) => {
  const { reference, notifications } = await payment()
  for (const index of order) {
    const body = notifications[index] ?? ''
    expect((await post(body, signed(body))).status).toBe(200)
  }
  expect(await outcomes(reference)).toEqual(['paid', 'returned'])
})

test('an older notification that arrives after the end changes nothing and contradicts nothing', async () => {
  const { reference, notifications } = await payment([{ status: 'booked' }, { status: 'failed', reason: 'unknown' }])
  for (const body of [...notifications].reverse()) expect((await post(body, signed(body))).status).toBe(200)
  expect(await outcomes(reference)).toEqual(['failed'])
  expect((await recorded()).exceptions.filter(each => each.reference === reference)).toEqual([])
})

test('notifications that arrive at the same time report the payment once', async () => {
  const { reference, notifications } = await payment()
  const all = [...notifications, ...notifications, ...notifications].reverse()
  const answers = await Promise.all(all.map(body => post(body, signed(body))))
  expect(answers.map(({ status }) => status)).toEqual(all.map(() => 200))
  expect(await outcomes(reference)).toEqual(['paid', 'returned'])
})

describe('is answered with 401 and not recorded:', () => {
  const otherKey = 'F'.repeat(64)
  const cases: [string, (body: string) => { body?: string; headers: Record<string, string> }][] = [
    ['a notification without a signature', () => ({ headers: {} })],
    ['an empty signature', () => ({ headers: { hmacsignature: '' } })],
    ['a signature that is not base64', () => ({ headers: { hmacsignature: '***' } })],
    ['a cut signature', body => ({ headers: { hmacsignature: setUp.service.sign(body).slice(0, 20) } })],
    ['a longer signature', body => ({ headers: { hmacsignature: `AAAA${setUp.service.sign(body)}` } })],
    ['a signature by another key', body => ({ headers: { hmacsignature: setUp.service.sign(body, otherKey) } })],
    ['a signature of another body', () => ({ headers: signed('{}') })],
    ['a body with one more blank', body => ({ body: `${body} `, headers: signed(body) })],
    ['another protocol', body => ({ headers: { ...signed(body), protocol: 'HmacSHA1' } })],
  ]
  test.each(cases)('%s', async (_, forge) => {
    const { notifications } = await payment()
    const original = notifications[2] ?? ''
    const { body = original, headers } = forge(original)
    const before = await recorded()
    const answer = await post(body, headers)
    expect(answer.status).toBe(401)
    expect(await answer.json()).toMatchObject({ issues: [{ code: 'HeaderValidation', path: 'hmacsignature' }] })
    expect(await recorded()).toEqual(before)
  })
})

describe('is accepted and ignored:', () => {
  type Notification = { type?: string; environment: string; data: Record<string, unknown> }
  const cases: [string, (given: Notification) => Notification][] = [
    [
      'another kind of notification',
      () => ({ type: 'balancePlatform.accountHolder.updated', environment: 'test', data: {} }),
    ],
    ['another balance account', given => ({ ...given, data: { ...given.data, balanceAccount: { id: 'BA999' } } })],
    ['money that arrives', given => ({ ...given, data: { ...given.data, direction: 'incoming' } })],
    ['another kind of transfer', given => ({ ...given, data: { ...given.data, category: 'internal' } })],
    ['the other environment', given => ({ ...given, environment: 'live' })],
  ]
  test.each(cases)('%s', async (_, change) => {
    const { reference, notifications } = await payment()
    const body = JSON.stringify(change(JSON.parse(notifications[2] ?? '')))
    const before = await recorded()
    expect((await post(body, signed(body))).status).toBe(200)
    expect(await recorded()).toEqual(before)
    expect(await outcomes(reference)).toEqual([])
  })
})

test.each([
  '',
  'no JSON',
  '[]',
  '{"environment":"test","data":{}}',
  '{"environment":"test","data":{"id":"x","status":"booked"}}',
])('a signed notification that cannot be read is refused, and left to the operator once: %s', async body => {
  const before = await recorded()
  for (let count = 0; count < 2; count++) expect((await post(body, signed(body))).status).toBe(400)
  const { exceptions, ...others } = await recorded()
  const sha256 = createHash('sha256').update(body).digest('hex')
  const added = exceptions.filter(({ id }) => !before.exceptions.some(each => each.id === id))
  expect(added).toMatchObject([{ kind: 'unreadable', reason: expect.stringContaining(sha256), closedAt: null }])
  expect(others).toEqual({ payouts: before.payouts, records: before.records })
})

test('a bank that changes its format fills no more than 100 exceptions', async () => {
  const bodies = Array.from({ length: 110 }, (_, n) => `{"environment":"test","data":{"id":"TR${n}"}}`)
  for (const body of bodies) expect((await post(body, signed(body))).status).toBe(400)
  const { exceptions } = await recorded()
  expect(exceptions.filter(({ kind }) => kind === 'unreadable')).toHaveLength(100)
})

test('a body above the limit is refused, whether it is signed or not', async () => {
  const body = ' '.repeat(64 * 1024 + 1)
  expect((await post(body, signed(body))).status).toBe(413)
})

test('a rail that receives no notifications has no address', async () => {
  expect((await post('{}', signed('{}'), 'other')).status).toBe(404)
  const { call } = setUp.harness
  // The harness has no such rail.
  expect((await call('POST', '/rails/adyen/notifications', { body: {}, key: null })).status).toBe(404)
})

test('the address takes POST alone, and is not part of the partner API', async () => {
  const answer = await fetch(`${setUp.address}/rails/adyen/notifications`)
  expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
  const document = (await (await fetch(`${setUp.address}/openapi.json`)).json()) as { paths: object }
  expect(Object.keys(document.paths).filter(path => path.includes('rails'))).toEqual([])
})

test('during a change of the key both are accepted, and basic authentication is checked as well', async () => {
  const next = '0123456789abcdef'.repeat(4)
  const { service, address, stop } = await setUpAdyen({ furtherHmacKeys: [next], password: 's3cret' })
  const body = '{"type":"balancePlatform.other","environment":"test","data":{}}'
  const send = async (authorization: string, key: string) => {
    const headers = { hmacsignature: service.sign(body, key), authorization }
    return (await fetch(`${address}/rails/adyen/notifications`, { method: 'POST', headers, body })).status
  }
  const basic = (credentials: string) => `Basic ${Buffer.from(credentials).toString('base64')}`
  expect(await send(basic('adyen:s3cret'), service.hmacKey)).toBe(200)
  expect(await send(basic('adyen:s3cret'), next)).toBe(200)
  expect(await send(basic('adyen:other'), next)).toBe(401)
  expect(await send('', next)).toBe(401)
  expect(await send(basic('adyen:s3cret'), 'F'.repeat(64))).toBe(401)
  await stop()
})

test('a key file that cannot be used accepts nothing', async () => {
  const [file = ''] = setUp.settings.notifications?.hmacKeyFiles ?? []
  await writeFile(file, 'not hexadecimal')
  try {
    const { reference, notifications } = await payment()
    const body = notifications[2] ?? ''
    expect((await post(body, signed(body))).status).toBe(500)
    expect(await outcomes(reference)).toEqual([])
  } finally {
    await writeFile(file, setUp.service.hmacKey)
  }
})

import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { deliveryOf, startReceiver } from '../../../test/servers/receiver.ts'
import { Midmonth, unwrapWebhook, WebhookVerificationError, webhookTestHeaders } from '../src/index.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const otherSecret = 'whsec_dGhpcyBpcyBhbm90aGVyIHNlY3JldCBvZiBvdXJz'
const body =
  '{"id":"evt_1","type":"withdrawal.paid","timestamp":"2026-03-31T09:30:00.000Z","sequence":3,"data":{"memberId":"mem_ä"}}'
const sentAt = new Date('2026-03-31T09:30:00.500Z')
const now = () => sentAt

/** Headers signed by the reference implementation. */
function referenceHeaders(...secrets: string[]): Record<string, string> {
  return {
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
    'webhook-signature': secrets.map(each => new Webhook(each).sign('evt_1', sentAt, body)).join(' '),
  }
}

test('a delivery that the reference implementation signs is unwrapped, from text or bytes', async () => {
  const headers = referenceHeaders(secret)
  for (const each of [body, new TextEncoder().encode(body), Buffer.from(body)]) {
    const event = await unwrapWebhook(each, headers, secret, { now })
    expect(event).toEqual(JSON.parse(body))
    // Narrowed by the event's type.
    if (event.type === 'withdrawal.paid') expect(event.data.memberId).toBe('mem_ä')
  }
})

test('the reference implementation accepts the test headers', async () => {
  const headers = await webhookTestHeaders(body, secret, { id: 'evt_1' })
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  expect(await webhookTestHeaders(body, secret, { id: 'evt_1', sentAt })).toMatchObject(referenceHeaders(secret))
})

test('one of several signatures must match, as during a rotation', async () => {
  const headers = referenceHeaders(otherSecret, secret)
  await unwrapWebhook(body, headers, secret, { now })
  await unwrapWebhook(body, headers, otherSecret, { now })
  const withOthers = { ...headers, 'webhook-signature': `v1a,AAAA v1,!!! v1 ${headers['webhook-signature']}` }
  await unwrapWebhook(body, withOthers, secret, { now })
})

test('headers can be a Headers object or Node’s headers, in any letter case', async () => {
  const headers = referenceHeaders(secret)
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]))
  await unwrapWebhook(body, new Headers(headers), secret, { now })
  await unwrapWebhook(body, { ...upper, 'x-other': ['a', 'b'], empty: undefined }, secret, { now })
})

test.each([
  ['a changed body', { text: `${body} ` }, /^webhook-signature does not match/],
  ['another secret', { secret: otherSecret }, /^webhook-signature does not match/],
  ['another id', { headers: { 'webhook-id': 'evt_2' } }, /^webhook-signature does not match/],
  ['another timestamp', { headers: { 'webhook-timestamp': '1774949401' } }, /^webhook-signature does not match/],
  ['an empty signature', { headers: { 'webhook-signature': '' } }, /^webhook-signature does not match/],
  ['a shortened signature', { headers: { 'webhook-signature': 'v1,AAAA' } }, /^webhook-signature does not match/],
  ['no signature', { headers: { 'webhook-signature': undefined } }, /^webhook-signature is missing/],
  ['two ids', { headers: { 'webhook-id': ['evt_1', 'evt_2'] } }, /^webhook-id is missing/],
  [
    'a timestamp that is not a number',
    { headers: { 'webhook-timestamp': '1e9' } },
    /^webhook-timestamp is not a number/,
  ],
])('%s is rejected', async (_, changes: object, message) => {
  const {
    text = body,
    headers = {},
    secret: used = secret,
  } = changes as { text?: string; headers?: object; secret?: string }
  const call = unwrapWebhook(text, { ...referenceHeaders(secret), ...headers }, used, { now })
  const error = await call.catch(error => error)
  expect(error).toBeInstanceOf(WebhookVerificationError)
  expect(error.message).toMatch(message)
})

test('a timestamp outside the tolerance before or after the clock is rejected', async () => {
  const at = (seconds: number, toleranceMs?: number) =>
    unwrapWebhook(body, referenceHeaders(secret), secret, {
      now: () => new Date(Math.floor(sentAt.getTime() / 1_000) * 1_000 + seconds * 1_000),
      toleranceMs,
    })
  await at(300)
  await at(-300)
  await expect(at(301)).rejects.toThrow('webhook-timestamp is 301 seconds from the clock')
  await expect(at(-301)).rejects.toThrow(WebhookVerificationError)
  await at(900, 900_000)
  await expect(at(11, 10_000)).rejects.toThrow(WebhookVerificationError)
  await expect(at(Number.NaN)).rejects.toThrow(WebhookVerificationError)
})

test.each([
  ['a parsed body', JSON.parse(body), secret, /^body is a parsed object; pass the text or the bytes as they arrived/],
  ['no body', undefined, secret, /^body is undefined; pass the text or the bytes/],
  ['an array of bytes', [123, 125], secret, /^body is a parsed array; pass/],
  ['no secret', body, undefined, /^secret is missing; pass the secret that was returned when the endpoint was created/],
  ['an empty secret', body, '', /^secret is missing/],
  ['a secret without its prefix', body, secret.replace('whsec_', ''), /^secret must begin with whsec_/],
  ['an API key as the secret', body, 'mm_test_1', /^secret must begin with whsec_; an API key/],
  ['only the prefix', body, 'whsec_', /^secret must be whsec_ followed by base64; copy the complete secret/],
  ['a secret that is not base64', body, 'whsec_ä', /^secret must be whsec_ followed by base64/],
])('%s is rejected with a message that names the mistake', async (_, given, used, message) => {
  const error = await unwrapWebhook(given as string, referenceHeaders(secret), used as string, { now }).catch(
    error => error,
  )
  expect(error).toBeInstanceOf(WebhookVerificationError)
  expect(error.message).toMatch(message)
  expect(error.message).not.toContain(secret)
})

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('the service’s deliveries are unwrapped before, during and after a rotation of the secret', async () => {
  const { key } = await harness.addPartner('Receiver')
  const baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  const midmonth = new Midmonth({ apiKey: key, baseUrl })
  const receiver = await startReceiver()
  const delivery = deliveryOf(harness)
  try {
    const { id, secret: first } = await midmonth.webhooks.create({ url: receiver.url, types: ['member.invited'] })
    const deliver = async () => {
      const memberId = await harness.addMember({ key })
      await delivery.deliverDue()
      const last = receiver.received.at(-1)
      if (last === undefined) return expect.fail('There was no delivery')
      return { ...last, memberId }
    }
    const before = await deliver()
    const event = await midmonth.webhooks.unwrap(before.body, before.headers, first)
    expect(event).toMatchObject({ type: 'member.invited', data: { memberId: before.memberId } })
    const { secret: second } = await midmonth.webhooks.rotateSecret(id, {})
    const during = await deliver()
    await midmonth.webhooks.unwrap(during.body, during.headers, first)
    await midmonth.webhooks.unwrap(during.body, during.headers, second)
    await expect(midmonth.webhooks.unwrap(before.body, before.headers, second)).rejects.toThrow(
      WebhookVerificationError,
    )
  } finally {
    await delivery.stop()
    await receiver.stop()
  }
})

test('webhooks use the client’s clock', async () => {
  const midmonth = new Midmonth({ apiKey: 'mm_test_1', baseUrl: 'http://127.0.0.1:1', now })
  await midmonth.webhooks.unwrap(body, referenceHeaders(secret), secret)
  const headers = await midmonth.webhooks.testHeaders(body, secret, { sentAt })
  await midmonth.webhooks.unwrap(body, headers, secret)
})

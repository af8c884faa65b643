import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { type Receiver, startReceiver } from '../../test/servers/receiver.ts'
import { readSettings } from '../config.ts'
import { sql } from '../database/database.ts'
import { defaultRetention } from '../kernel/retention.ts'
import { openSimulatedBank } from '../payouts/registry.ts'
import { payoutTasks } from '../tasks.ts'
import { Sender } from '../webhooks/send.ts'
import { keyOf, newSecret } from '../webhooks/signing.ts'
import { startWorker } from '../worker.ts'
import { openTracing, Tracing } from './tracing.ts'

const exporter = new InMemorySpanExporter()
const lines: Record<string, unknown>[] = []
let harness: Harness
let receiver: Receiver
let tracing: Tracing
beforeAll(async () => {
  // What an operator's SDK registers.
  api.trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  tracing = new Tracing(api)
  const log = pino({ mixin: () => tracing.logFields() }, { write: line => lines.push(JSON.parse(line)) })
  harness = await startHarness({ tracing, log })
  receiver = await startReceiver()
})
afterAll(async () => {
  await harness.stop()
  await receiver.stop()
  for (const each of [api.trace, api.context, api.propagation]) each.disable()
})
beforeEach(() => {
  exporter.reset()
  lines.length = 0
})

const traceId = '0af7651916cd43dd8448eb211c80319c'
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
const spans = () => exporter.getFinishedSpans()
const spanNamed = (name: string) => spans().find(span => span.name === name)

test('a request continues the trace of its caller, which is in the response, the log and the links of its batch', async () => {
  const memberId = await harness.addMember({ available: 9_000 })
  const amount = { amount: 5_000, currency: 'GBP' }
  // The body comes after the headers, with events of the socket.
  const address = await harness.app.listen({ port: 0, host: '127.0.0.1' })
  const body = JSON.stringify({ memberId, amount })
  const outgoing = request(`${address}/v1/pay/withdrawals/intent`, {
    method: 'POST',
    headers: {
      ...headers,
      'x-api-key': harness.key,
      'content-type': 'application/json',
      'content-length': body.length,
    },
  })
  outgoing.flushHeaders()
  await once(harness.app.server, 'request')
  outgoing.end(body)
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.resume()
  expect([response.statusCode, response.headers['x-trace-id']]).toEqual([201, traceId])
  await expect.poll(() => spanNamed('POST /v1/pay/withdrawals/intent')).toBeDefined()
  const span = spanNamed('POST /v1/pay/withdrawals/intent')
  expect(span).toMatchObject({
    kind: api.SpanKind.SERVER,
    parentSpanContext: { spanId: 'b7ad6b7169203331' },
    attributes: {
      ...{
        'http.request.method': 'POST',
        'http.route': '/v1/pay/withdrawals/intent',
        'http.response.status_code': 201,
      },
      ...{ 'midmonth.partner_id': harness.partner.id, 'midmonth.request_id': response.headers['x-request-id'] },
    },
  })
  const batch = spans().find(
    ({ name, links }) => name === 'batch intents' && links.some(({ context }) => context.traceId === traceId),
  )
  expect(batch?.links).toMatchObject([{ context: { spanId: span?.spanContext().spanId } }])
  expect(lines.find(({ msg, route }) => msg === 'request' && route === '/v1/pay/withdrawals/intent')).toMatchObject({
    traceId,
  })
})

test('a fault of the service is an error of its span, and its log line names the trace; the body does not', async () => {
  await sql`alter table members add constraint broken check (last_name <> 'Quuxtrace') not valid`.execute(
    harness.ownerDb,
  )
  const member = { firstName: 'Ada', lastName: 'Quuxtrace', email: 'ada@quuxtrace.example', tier: 'Silver' }
  const { status, body } = await harness.call('POST', '/v1/members', { body: member, headers })
  await sql`alter table members drop constraint broken`.execute(harness.ownerDb)
  expect([status, Object.keys(body)]).toEqual([500, ['issues']])
  expect(spanNamed('POST /v1/members')?.status).toEqual({ code: api.SpanStatusCode.ERROR })
  expect(lines.find(({ msg }) => msg === 'request failed')).toMatchObject({ traceId })
})

test('a refusal is not an error, and spans have neither queries nor values', async () => {
  await harness.call('GET', '/v1/members?search=ada%40quuxtrace.example', { headers })
  const { status } = await harness.call('POST', '/v1/members', { body: { email: 'ada@quuxtrace.example' }, headers })
  expect(status).toBe(400)
  expect(spanNamed('POST /v1/members')?.status).toEqual({ code: api.SpanStatusCode.UNSET })
  expect(JSON.stringify(spans().map(({ name, attributes, events }) => [name, attributes, events]))).not.toContain(
    'quuxtrace',
  )
})

test('tasks, calls of the bank and attempts of webhooks have spans', async () => {
  const { db, clock, pool, fence } = harness
  const bank = await openSimulatedBank({ db, now: clock.now, currencies: 'rest' })
  const sender = new Sender(fence, { clockMs: Date.now, tracing })
  const context = { db, log: pino({ level: 'silent' }), now: clock.now, tracing }
  const memberId = await harness.addMember({ available: 9_000 })
  const amount = { amount: 5_000, currency: 'GBP' }
  const { withdrawalIntentId } = (
    await harness.call('POST', '/v1/pay/withdrawals/intent', { body: { memberId, amount } })
  ).body
  await harness.call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  clock.advance({ minutes: 10 })
  await payoutTasks([bank])['submit-withdrawals'](context)
  expect(spanNamed('bank submit')).toMatchObject({
    kind: api.SpanKind.CLIENT,
    attributes: { 'midmonth.rail': bank.name },
  })

  const options = { channels: [], sender, realNow: () => new Date(), retention: defaultRetention }
  const worker = await startWorker(context, pool, options)
  try {
    await expect.poll(() => spanNamed('task expire-intents')?.kind).toBe(api.SpanKind.INTERNAL)
  } finally {
    await worker.stop()
  }
  await sender.send({ url: receiver.url, headers: {}, keys: [keyOf(newSecret())], id: 'evt_1', body: '{}' })
  await sender.close()
  expect(spanNamed('webhook attempt')).toMatchObject({
    kind: api.SpanKind.CLIENT,
    attributes: { 'midmonth.webhook_id': 'evt_1' },
  })
})

test('work that throws ends its span as an error with the type, without the message', async () => {
  const fail = () => Promise.reject(new TypeError('ada@quuxtrace.example'))
  await expect(tracing.inSpan('work', {}, fail)).rejects.toThrow(TypeError)
  expect(spanNamed('work')).toMatchObject({
    status: { code: api.SpanStatusCode.ERROR },
    attributes: { 'error.type': 'TypeError' },
    events: [],
  })
})

test('traces are off by default, and then nothing is loaded', async () => {
  expect(await openTracing(readSettings({}))).toBeUndefined()
  expect((await openTracing(readSettings({ MIDMONTH_TRACES: 'on' })))?.hasReceiver).toBe(true)
})

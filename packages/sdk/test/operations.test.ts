import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Document, operationsOf } from '../../../scripts/sdk.ts'
import { sdkNames } from '../../../src/site/docs/sdk-names.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { ApiError, type Call, Midmonth } from '../src/index.ts'

const document: Document = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8'))
const operations = operationsOf(document).map(({ operation, ...each }) => ({ ...each, ...operation }))

let harness: Harness
let midmonth: Midmonth
beforeAll(async () => {
  harness = await startHarness()
  const baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  midmonth = new Midmonth({ apiKey: harness.key, baseUrl })
})
afterAll(() => harness.stop())

test('every operation of openapi.json for partners has a name in the SDK, and every name is an operation', () => {
  expect(operations.length).toBeGreaterThan(70)
  expect(Object.keys(sdkNames).sort()).toEqual(operations.map(({ operationId }) => operationId).sort())
})

test('every method reaches its operation on the service', async () => {
  const expected = new Map<string, string>()
  // The operation that empties the request log comes first.
  const order = operations.toSorted((a, b) => Number(b.path.endsWith('/reset')) - Number(a.path.endsWith('/reset')))
  for (const { operationId, method, path, security, requestBody } of order) {
    const names = sdkNames[operationId] ?? ''
    for (const name of typeof names === 'string' ? [names] : Object.values(names)) {
      const requestId = await call(name, { path, hasBody: requestBody !== undefined })
      // An operation without a key does not belong to a partner, so it is not in the log.
      if (security?.length !== 0) expected.set(requestId, `${name}: ${method} ${path}`)
    }
  }
  await harness.flushRequestLog()
  const reached = new Map<string, string>()
  for await (const { requestId, method, route } of midmonth.requests.list({ take: 1_000 })) {
    const name = expected.get(requestId)?.split(':')[0]
    if (name !== undefined) reached.set(requestId, `${name}: ${method} ${route}`)
  }
  expect([...reached.values()].sort()).toEqual([...expected.values()].sort())
})

/** Calls a method with unknown ids and an empty body. The service must respond, even if it rejects the call. */
async function call(name: string, { path, hasBody }: { path: string; hasBody: boolean }): Promise<string> {
  const ids = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter = '']) => `${prefixes[parameter] ?? ''}none`)
  const method = name.split('.').reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], midmonth)
  const answer = (method as (...given: unknown[]) => Call<unknown>)(...ids, ...(hasBody ? [{}] : []))
  return await answer.withResponse().then(
    ({ requestId }) => requestId,
    error => {
      if (error instanceof ApiError && error.issues.length > 0) return error.requestId
      throw error
    },
  )
}

const prefixes: Record<string, string> = {
  memberId: 'mem_',
  withdrawalIntentId: 'wi_',
  withdrawalId: 'w_',
  payRunId: 'pr_',
  payCycleId: 'pc_',
  jobId: 'maj_',
  webhookId: 'we_',
  deliveryId: 'evt_',
  requestId: 'req_',
  batchId: 'bat_',
}

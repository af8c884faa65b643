import type { App } from '../http/server/server.ts'
import { withIdempotency } from '../http/with-idempotency.ts'
import { problem, problems } from '../kernel/errors.ts'
import { testAccounts } from '../payouts/channels/simulated/simulated-bank.ts'
import { createFixture, tierOf } from './fixtures.ts'
import { answerMsMax, type SandboxContext, sandboxOperation } from './operation.ts'
import { TestValues } from './schema.ts'
import { provocable, provokeHeader, type Reaches, rows } from './test-values.ts'

/** Lists the requests that reach every error and transition, and provokes the errors that no single request can cause. */
export function testValueRoutes(app: App, { db, sealer }: SandboxContext): void {
  app.get(
    '/v1/sandbox/test-values',
    {
      config: { scope: 'pay:write', answerMsMax, showsAccounts: true },
      schema: sandboxOperation({
        id: 'getSandboxTestValues',
        summary: 'Get test values',
        description:
          'Returns the complete request that provokes each error code and each transition of a state. Each request can be sent once, unchanged, with your key: this call creates the members, intents and withdrawals that it needs. Send a text body unchanged and any other body as JSON. Also lists bank accounts by the reaction of the simulated bank.',
        success: { status: 200, description: 'The test values.', schema: TestValues },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, now, clockOffsetMs } = request
        const tier = await tierOf(tx, partner.id)
        const values: object[] = []
        for (const row of rows) {
          const made = await createFixture(tx, row.needs, { partner, tier, sealer, now, clockOffsetMs })
          values.push({ reaches: reachesOnWire(row.reaches), request: row.request(made, tier), note: row.note })
        }
        // Records all created objects as one change: each member, intent and withdrawal belongs to one of the requests.
        const audit = { action: 'partner.test_values', details: { requests: values.length } } as const
        return { status: 200, body: { accounts: testAccounts, values }, resourceId: partner.id, audit }
      }),
  )

  // Only a sandbox knows the header, and only after the key was accepted.
  app.addHook('preHandler', async request => {
    const name = request.headers[provokeHeader]
    if (name === undefined || request.partner === undefined) return
    const provoked = provocable.find(each => each === name)
    if (provoked === undefined) {
      const message = `${provokeHeader} is one of ${provocable.join(', ')}`
      throw problem('HeaderValidation', message, { path: provokeHeader })
    }
    if (provoked === 'InternalServerError') throw new Error(`Provoked by ${provokeHeader}`)
    const isRetried = provoked === 'RateLimitExceeded' || provoked === 'ServiceUnavailable'
    throw problem(provoked, problems[provoked].message, {}, isRetried ? { 'retry-after': '1' } : {})
  })
}

function reachesOnWire(reaches: Reaches) {
  if (!('problem' in reaches)) return { transition: reaches }
  const { code, status } = problems[reaches.problem]
  return { code, status }
}

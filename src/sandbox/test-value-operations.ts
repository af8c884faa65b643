import type { IncomingHttpHeaders } from 'node:http'
import { named } from '../http/operation.ts'
import { problem, problems } from '../kernel/errors.ts'
import { testAccounts } from '../payouts/channels/simulated/simulated-bank.ts'
import { readers } from '../users/roles.ts'
import { createFixture, tierOf } from './fixtures.ts'
import { answerMsMax, sandboxOperation } from './operation.ts'
import { TestValues } from './schema.ts'
import { provocable, provokeHeader, type Reaches, rows } from './test-values.ts'

const getSandboxTestValues = sandboxOperation({
  route: 'GET /v1/sandbox/test-values',
  scope: 'pay:write',
  roles: readers,
  answerMsMax,
  showsAccounts: true,
  sdk: 'sandbox.getTestValues',
  summary: 'Get test values',
  description:
    'Returns the complete request that provokes each error code and each transition of a state. Each request can be sent once, unchanged, with your key: this call creates the members, intents and withdrawals that it needs. Send a text body unchanged and any other body as JSON. Also lists bank accounts by the reaction of the simulated bank.',
  success: { description: 'The test values.', schema: TestValues },
  problems: ['UnprocessableEntity'],
  async write(tx, { partner, now, clockOffsetMs }) {
    const tier = await tierOf(tx, partner.id)
    const values: object[] = []
    for (const row of rows) {
      const made = await createFixture(tx, row.needs, { partner, tier, now, clockOffsetMs })
      values.push({ reaches: reachesOnWire(row.reaches), request: row.request(made, tier), note: row.note })
    }
    return {
      body: { accounts: testAccounts, values },
      resourceId: partner.id,
      // Records all created objects as one change: each member, intent and withdrawal belongs to one of the requests.
      audit: { action: 'partner.test_values', details: { requests: values.length } },
    }
  },
})

export const testValueOperations = named({ getSandboxTestValues })

function reachesOnWire(reaches: Reaches) {
  if (!('problem' in reaches)) return { transition: reaches }
  const { code, status } = problems[reaches.problem]
  return { code, status }
}

/**
 * Refuses a request with the problem that its header names. Only a sandbox knows the header.
 * @throws Problem the one that is named; `HeaderValidation` if it cannot be provoked
 */
export function refuseProvoked(headers: IncomingHttpHeaders): void {
  const name = headers[provokeHeader]
  if (name === undefined) return
  const provoked = provocable.find(each => each === name)
  if (provoked === undefined) {
    const message = `${provokeHeader} is one of ${provocable.join(', ')}`
    throw problem('HeaderValidation', message, { path: provokeHeader })
  }
  if (provoked === 'InternalServerError') throw new Error(`Provoked by ${provokeHeader}`)
  const isRetried = provoked === 'RateLimitExceeded' || provoked === 'ServiceUnavailable'
  throw problem(provoked, problems[provoked].message, {}, isRetried ? { 'retry-after': '1' } : {})
}

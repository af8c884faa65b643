import { keepOpenFor } from '../http/server/connections.ts'
import type { App } from '../http/server/server.ts'
import { withIdempotency, withStartedWork } from '../http/with-idempotency.ts'
import { Problem, problem } from '../kernel/errors.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as members from '../members/members.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { bankTasks } from './bank.ts'
import { clockOnWire } from './clock.ts'
import { type SandboxContext, sandboxOperation } from './operation.ts'
import { resetPartner } from './reset.ts'
import { build, payMany, scenarios } from './scenarios.ts'
import { SandboxClock, Seed, Seeded } from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'

// Ten thousand members are deleted, or invited and paid. On a busy machine either takes minutes.
const answerMsMax = 10 * 60_000

/** Empties the sandbox, and fills it with a scenario. */
export function resetRoutes(app: App, context: SandboxContext): void {
  const { db, now } = context

  app.post(
    '/v1/sandbox/seed',
    {
      config: { scope: 'pay:write', answerMsMax },
      preHandler: async request => keepOpenFor(request, answerMsMax),
      schema: sandboxOperation({
        id: 'seedSandbox',
        summary: 'Seed the sandbox',
        description: `Resets the sandbox, which is a \`Conflict\` while its clock is moving, and fills it with a scenario. ${Object.entries(
          scenarios,
        )
          .map(([name, what]) => `\`${name}\`: ${what}`)
          .join(' ')}`,
        body: Seed,
        success: { status: 201, description: 'The contents of the sandbox.', schema: Seeded },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) => {
      const { partner, body } = request
      const partnerId = partner.id
      const { scenario } = body
      return await withStartedWork(db, request, reply, {
        async start(tx) {
          await resetPartner(tx, { partnerId })
          request.now = now()
          const { importId } = await build(tx, { partner, scenario, now: request.now })
          if (importId === null && scenario !== 'returned_payments') return async () => undefined
          const names = importId === null ? bankTasks : (['apply-member-imports'] as const)
          const isDone = async () => importId === null || (await isApplied({ partnerId, importId }))
          return async () => await runAtOnce(context, { partnerId, names, isDone })
        },
        async answer(tx) {
          if (scenario === 'ten_thousand_members') await payMany(tx, { partner, now: request.now })
          const count = await members.count(tx, { partnerId, filter: {} })
          const details = { scenario }
          return {
            status: 201,
            body: { scenario, members: count },
            resourceId: partnerId,
            audit: { action: 'partner.reset', details },
          }
        },
      })
    },
  )

  app.post(
    '/v1/sandbox/reset',
    {
      config: { scope: 'pay:write', answerMsMax },
      preHandler: async request => keepOpenFor(request, answerMsMax),
      schema: sandboxOperation({
        id: 'resetSandbox',
        summary: 'Reset the sandbox',
        description:
          'Deletes everything of this partner: members, pay, withdrawals, the books, events, and responses to idempotency keys. Settings, tiers, API keys, webhook endpoints, the audit log and the request log stay. The clock shows real time again, and a pay cycle is open. The sequence of events continues, so a reader of the feed starts again with `from=now`. While the clock is moving, a reset is a `Conflict`.',
        success: { status: 200, description: 'The sandbox is empty.', schema: SandboxClock },
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner } = request
        await resetPartner(tx, { partnerId: partner.id })
        request.now = now()
        await payCycles.openFirst(tx, { partner, now: request.now })
        return {
          status: 200,
          body: await clockOnWire(tx, { partnerId: partner.id, realNow: now() }),
          resourceId: partner.id,
          audit: { action: 'partner.reset', details: { scenario: null } },
        }
      }),
  )

  async function isApplied(memberImport: { partnerId: string; importId: string }): Promise<boolean> {
    const { endedAt } = await memberImports.find(db, memberImport).catch(error => {
      throw error instanceof Problem
        ? problem('Conflict', 'The sandbox was reset by another request while it was seeded')
        : error
    })
    return endedAt !== null
  }
}

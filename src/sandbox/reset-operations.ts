import type { Db } from '../database/database.ts'
import { named } from '../http/operation.ts'
import { conflict, Problem } from '../kernel/errors.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as members from '../members/members.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { bankTasks } from './bank.ts'
import { readClock } from './clock.ts'
import { sandboxOperation } from './operation.ts'
import { resetPartner } from './reset.ts'
import { build, payMany, scenarios } from './scenarios.ts'
import { SandboxClock, Seed, Seeded } from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'

// Ten thousand members are deleted, or invited and paid. On a busy machine either takes minutes.
const answerMsMax = 10 * 60_000

const seedSandbox = sandboxOperation({
  route: 'POST /v1/sandbox/seed',
  scope: 'pay:write',
  answerMsMax,
  sdk: 'sandbox.seed',
  summary: 'Seed the sandbox',
  description: `Resets the sandbox, which is a \`Conflict\` while its clock is moving, and fills it with a scenario. ${Object.entries(
    scenarios,
  )
    .map(([name, what]) => `\`${name}\`: ${what}`)
    .join(' ')}`,
  body: Seed,
  success: { status: 201, description: 'The contents of the sandbox.', schema: Seeded },
  problems: ['UnprocessableEntity'],
  async start(tx, call) {
    const { partner, body, context } = call
    const { scenario } = body
    const partnerId = partner.id
    await resetPartner(tx, { partnerId })
    call.moveTo(context.now())
    const { importId } = await build(tx, { partner, scenario, now: call.now })
    if (importId === null && scenario !== 'returned_payments') return async () => undefined
    const names = importId === null ? bankTasks : (['apply-member-imports'] as const)
    const isDone = async () => importId === null || (await isApplied(context.db, { partnerId, importId }))
    return async () => await runAtOnce(context, { partnerId, names, isDone })
  },
  async respond(tx, { partner, body, now }) {
    const { scenario } = body
    if (scenario === 'ten_thousand_members') await payMany(tx, { partner, now })
    return {
      body: { scenario, members: await members.count(tx, { partnerId: partner.id, filter: {} }) },
      resourceId: partner.id,
      audit: { action: 'partner.reset', details: { scenario } },
    }
  },
})

const resetSandbox = sandboxOperation({
  route: 'POST /v1/sandbox/reset',
  scope: 'pay:write',
  answerMsMax,
  sdk: 'sandbox.reset',
  summary: 'Reset the sandbox',
  description:
    'Deletes everything of this partner: members, pay, withdrawals, the books, events, and responses to idempotency keys. Settings, tiers, API keys, webhook endpoints, the audit log and the request log stay. The clock shows real time again, and a pay cycle is open. The sequence of events continues, so a reader of the feed starts again with `from=now`. While the clock is moving, a reset is a `Conflict`.',
  success: { description: 'The sandbox is empty.', schema: SandboxClock },
  async write(tx, call) {
    const { partner, context } = call
    const partnerId = partner.id
    await resetPartner(tx, { partnerId })
    call.moveTo(context.now())
    await payCycles.openFirst(tx, { partner, now: call.now })
    return {
      body: await readClock(tx, { partnerId, realNow: context.now() }),
      resourceId: partnerId,
      audit: { action: 'partner.reset', details: { scenario: null } },
    }
  },
})

export const resetOperations = named({ seedSandbox, resetSandbox })

async function isApplied(db: Db, memberImport: { partnerId: string; importId: string }): Promise<boolean> {
  const { endedAt } = await memberImports.find(db, memberImport).catch(error => {
    throw error instanceof Problem ? conflict('The sandbox was reset by another request while it was seeded') : error
  })
  return endedAt !== null
}

import type { Static } from 'typebox'
import { openNameless } from '../http/bodies/uploaded-file.ts'
import { named } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { fromWire, toWire } from '../kernel/money.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import { auditOf } from '../members/audit.ts'
import * as members from '../members/members.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import { readBalance } from '../withdrawals/balance.ts'
import { tierOf } from './fixtures.ts'
import { importTransitions, isImportTransition, provokeImportTransition } from './import-transitions.ts'
import { answerMsMax, sandboxOperation } from './operation.ts'
import { ImportTransition, JobProvoked, MemberActivated, MemberFunded, MoneyToAdd } from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'

const fundSandboxMember = sandboxOperation({
  route: 'POST /v1/sandbox/members/:memberId/fund',
  scope: 'pay:write',
  sdk: 'sandbox.members.fund',
  summary: 'Give a member pay',
  description: 'Uploads a pay run with one line for the member, which is available immediately.',
  body: MoneyToAdd,
  success: {
    status: 201,
    description: 'The pay run, and the amount that the member can withdraw.',
    schema: MemberFunded,
  },
  problems: ['UnprocessableEntity', 'PayRunMemberNotEligible'],
  async write(tx, { partner, params, body, now }) {
    const { memberId } = params
    await members.requireMember(tx, { partnerId: partner.id, memberId })
    const amount = fromWire(body.amount)
    const lines = [{ memberId, ...amount }]
    const { id, status, payCycleId } = await payRuns.create(tx, {
      partner: { id: partner.id, graceMinutes: 0 },
      lines,
      now,
    })
    const { available } = await readBalance(tx, { partner, memberId, hasRail: () => true, now })
    const details = { status, payCycleId, lineCount: 1, totals: [body.amount] }
    return {
      body: { payRunId: id, status, available: toWire({ amount: available, currency: amount.currency }) },
      headers: { location: `/v1/pay/runs/${id}` },
      resourceId: id,
      audit: { action: 'pay_run.create', details },
    }
  },
})

const activateSandboxMember = sandboxOperation({
  route: 'POST /v1/sandbox/members/:memberId/activate',
  scope: 'members:write',
  sdk: 'sandbox.members.activate',
  summary: 'Activate a member',
  description: 'Activates an invited member, as if the member had accepted. Idempotent.',
  success: { description: 'The member is active.', schema: MemberActivated },
  async write(tx, { partner, params, now }) {
    const { memberId } = params
    const activated = await members.change(tx, { partner, command: { type: 'Activate', memberId }, now })
    const audit = auditOf('member.activate', activated)
    return { body: { memberId, status: activated.after.status }, resourceId: memberId, audit }
  },
})

const provokeSandboxJob = sandboxOperation({
  route: 'POST /v1/sandbox/members/jobs',
  scope: 'members:write',
  answerMsMax,
  sdk: 'sandbox.memberJobs.provoke',
  summary: 'Take a member job through a transition',
  description: `Takes a member job from one status to another, with a member created for the purpose: actions, or a file of all members as they are except for that one. Jobs that are queued or wait for a review are rejected first; while a job is being applied, the response is a \`Conflict\`. ${Object.entries(
    importTransitions,
  )
    .map(([name, what]) => `\`${name}\`: ${what}`)
    .join(' ')}`,
  body: ImportTransition,
  success: { status: 201, description: 'The job, and the status that it has now.', schema: JobProvoked },
  problems: ['UnprocessableEntity'],
  async start(_tx, { partner, body, now, context }) {
    const { db, withCopying } = context
    const partnerId = partner.id
    const transition = transitionOf(body)
    return async () => {
      const importId = await withCopying((copyingDb, copyInto) =>
        copyingDb.transaction().execute(async tx => {
          const tier = await tierOf(tx, partnerId)
          const upload = { openFile: openNameless, copyInto }
          return await provokeImportTransition(tx, { partner, tier, transition, upload, now })
        }),
      )
      const isDone = async () => {
        const { status } = await memberImports.find(db, { partnerId, importId })
        return body.to === 'NotReady' || (status !== 'NotReady' && status !== 'Processing')
      }
      await runAtOnce(context, { partnerId, names: ['apply-member-imports'], isDone })
      return importId
    }
  },
  async respond(tx, { partner, body }, importId) {
    const { id, status, plan } = await memberImports.find(tx, { partnerId: partner.id, importId })
    return {
      body: { jobId: id, status },
      headers: { location: `/v1/members/jobs/${id}` },
      resourceId: id,
      audit: { action: 'member_job.create', details: { transition: transitionOf(body), plan } },
    }
  },
})

export const memberOperations = named({ fundSandboxMember, activateSandboxMember, provokeSandboxJob })

function transitionOf({ from, to }: Static<typeof ImportTransition>) {
  const transition = `${from} > ${to}`
  if (isImportTransition(transition)) return transition
  const known = Object.keys(importTransitions).join(', ')
  throw problem('BodyValidation', `No member job goes from ${from} to ${to}; use one of ${known}`, { path: 'to' })
}

import { setTimeout as pause } from 'node:timers/promises'
import { type TSchema, Type } from 'typebox'
import type { Reader } from '../database/database.ts'
import { Problem, type ProblemName, problem, problems } from '../errors.ts'
import * as float from '../float/float.ts'
import { keyCacheMs } from '../http/auth.ts'
import { operation } from '../http/operation.ts'
import type { ApiContext, App } from '../http/server.ts'
import { openNameless } from '../http/uploaded-file.ts'
import { read, withIdempotency, withStartedWork } from '../http/with-idempotency.ts'
import { Id } from '../ids.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import { auditOf } from '../members/audit.ts'
import * as members from '../members/members.ts'
import { amountMax, fromWire, toWire } from '../money.ts'
import { readOffsetMs } from '../partners/clocks.ts'
import * as partners from '../partners/partners.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import { addFault, listFaults, testAccounts } from '../payouts/simulated-bank.ts'
import type { Tasks } from '../tasks.ts'
import { parseDuration, parseInstant } from '../time.ts'
import { readBalance } from '../withdrawals/balance.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import { hasArrived, type InstructionName, instructBank } from './bank.ts'
import { ClockDriver } from './clock-driver.ts'
import { make, tierOf } from './fixtures.ts'
import { isJobTransition, jobTransitions, provokeJobTransition } from './job-transitions.ts'
import * as moves from './moves.ts'
import { resetPartner } from './reset.ts'
import { build, payMany, scenarios } from './scenarios.ts'
import {
  BankFaults,
  BankReason,
  ClockMove,
  FloatFunded,
  JobProvoked,
  JobTransition,
  MemberActivated,
  MemberFunded,
  MoneyToAdd,
  NewBankFault,
  Paused,
  SandboxClock,
  SandboxWithdrawal,
  Seed,
  Seeded,
  TestValues,
} from './schema.ts'
import { runAtOnce } from './tasks-at-once.ts'
import { provocable, provokeHeader, type Reaches, rows } from './test-values.ts'

const limits = {
  // A move that takes longer is answered 202, and goes on.
  moveMsMax: 20_000,
  // The move, the wait for caches of keys, and the answer.
  answerMsMax: 30_000,
  // Ten thousand members are deleted, or invited and paid.
  seedMsMax: 120_000,
}

/**
 * The operations of a sandbox, for the partner of the key. They move the partner's clock and make the simulated bank speak;
 * what follows is done by the tasks that do it in production.
 */
export function sandboxRoutes(app: App, { db, withCopying, log, now }: ApiContext, tasks: Partial<Tasks>): void {
  const context = { db, log, now, tasks }
  const driver = new ClockDriver(context)
  app.addHook('preClose', async () => driver.stop())

  app.get(
    '/v1/sandbox/clock',
    {
      config: { scope: 'any' },
      schema: sandboxOperation({
        id: 'getSandboxClock',
        summary: 'Get the sandbox clock',
        description: 'The time by which everything of this partner happens, and the last time that it was moved.',
        success: { status: 200, description: 'The clock.', schema: SandboxClock },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({ status: 200, body: await clockBody(reader, request.partner.id) })),
  )

  app.post(
    '/v1/sandbox/clock',
    {
      config: { scope: 'pay:write', answerMsMax: limits.answerMsMax },
      schema: sandboxOperation({
        id: 'moveSandboxClock',
        summary: 'Move the sandbox clock',
        description:
          'Moves the partner’s clock forward: `to` an instant, `by` a time, or to what falls due `next`; at most 400 days ahead of real time. The clock stops at each instant at which something falls due, that work is done as in production, and the answer lists it. Expiry of intents, grace periods, pay cycles, holds, the bank, reviews, idempotency keys and API keys follow the clock; rate limits, time-outs and logs do not. A move that takes longer than 20 seconds is answered 202 and goes on. While the clock is moving, another move is a `Conflict`.',
        body: ClockMove,
        success: {
          status: 202,
          description: 'The clock is still moving. `getSandboxClock` says when it has arrived.',
          schema: SandboxClock,
        },
        alternative: {
          status: 200,
          description: 'The clock has arrived, and all work that fell due is done.',
          schema: SandboxClock,
        },
      }),
    },
    async (request, reply) => {
      const { partner, body } = request
      const partnerId = partner.id
      let moveId = ''
      return await withStartedWork(db, request, reply, {
        async start(tx, claim) {
          const started = await moves.start(tx, {
            partnerId,
            destination: destinationOf(body),
            claim,
            now: request.now,
            realNow: now(),
          })
          const { isFirst } = started
          moveId = started.moveId
          return async () => {
            // Other processes may still take the partner for one without a clock.
            const cachesEnd = isFirst ? pause(keyCacheMs) : undefined
            await driver.drive({ partnerId, moveId }, { msMax: limits.moveMsMax })
            await cachesEnd
            app.forgetKeys(partnerId)
            // The idempotency key lives from where the clock is now.
            request.now = new Date(now().getTime() + (await readOffsetMs(db, partnerId)))
          }
        },
        async answer(tx) {
          if ((await moves.find(tx, { partnerId, moveId })) === undefined) {
            throw problem('Conflict', 'The sandbox was reset before its clock had arrived')
          }
          const clock = await clockBody(tx, partnerId)
          return { status: clock.status === 'Still' ? 200 : 202, body: clock }
        },
      })
    },
  )

  for (const [name, { summary, description }] of Object.entries(bankOperations)) {
    app.post(
      `/v1/sandbox/withdrawals/:withdrawalId/${name}`,
      {
        config: { scope: 'pay:write', answerMsMax: limits.answerMsMax },
        schema: sandboxOperation({
          id: `${name}SandboxWithdrawal`,
          summary,
          description,
          params: Type.Object({ withdrawalId: Id('withdrawal') }),
          body: BankReason,
          success: {
            status: 200,
            description: 'The withdrawal. It is in an earlier status if the bank did not get that far.',
            schema: SandboxWithdrawal,
          },
          problems: ['NotFound'],
        }),
      },
      async (request, reply) => {
        const { partner, params, body, now: at } = request
        const asked = { partnerId: partner.id, withdrawalId: params.withdrawalId, name: name as InstructionName }
        return await withStartedWork(db, request, reply, {
          async start(tx) {
            await instructBank(tx, { ...asked, reason: body.reason, now: at })
            return async () =>
              await runAtOnce(context, {
                partnerId: partner.id,
                names: bankTasks,
                isDone: () => hasArrived(db, asked),
              })
          },
          async answer(tx) {
            const { id, status, timeline } = await withdrawals.find(tx, asked)
            const entries = timeline.map(entry => ({ ...entry, at: entry.at.toISOString() }))
            return { status: 200, body: { id, status, timeline: entries }, resourceId: id }
          },
        })
      },
    )
  }

  app.post(
    '/v1/sandbox/bank/faults',
    {
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'addSandboxBankFault',
        summary: 'Make the bank fail',
        description:
          'Makes the simulated bank treat the next `count` payments of this partner (1 unless given) with a fault, after those that were asked for earlier. A payment that was instructed one by one keeps its instruction.',
        body: NewBankFault,
        success: { status: 201, description: 'The faults that the next payments will meet.', schema: BankFaults },
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body } = request
        await addFault(tx, { partnerId: partner.id, fault: body.next, count: body.count ?? 1 })
        return { status: 201, body: { faults: await listFaults(tx, partner.id) } }
      }),
  )

  app.post(
    '/v1/sandbox/members/:memberId/fund',
    {
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'fundSandboxMember',
        summary: 'Give a member pay',
        description: 'Uploads a pay run with one line for the member, which is available at once.',
        params: Type.Object({ memberId: Id('member') }),
        body: MoneyToAdd,
        success: { status: 201, description: 'The pay run, and what the member can withdraw.', schema: MemberFunded },
        problems: ['MemberNotFound', 'UnprocessableEntity', 'PayRunMemberNotEligible'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, body, now } = request
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
          status: 201,
          body: { payRunId: id, status, available: toWire({ amount: available, currency: amount.currency }) },
          headers: { location: `/v1/pay/runs/${id}` },
          resourceId: id,
          audit: { action: 'pay_run.create', details },
        }
      }),
  )

  app.post(
    '/v1/sandbox/members/:memberId/activate',
    {
      config: { scope: 'members:write' },
      schema: sandboxOperation({
        id: 'activateSandboxMember',
        summary: 'Activate a member',
        description: 'Makes an invited member active, as if the member had accepted. Idempotent.',
        params: Type.Object({ memberId: Id('member') }),
        success: { status: 200, description: 'The member is active.', schema: MemberActivated },
        problems: ['MemberNotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, params, now } = request
        const { memberId } = params
        const activated = await members.change(tx, { partner, command: { type: 'Activate', memberId }, now })
        const audit = auditOf('member.activate', activated)
        return { status: 200, body: { memberId, status: activated.after.status }, resourceId: memberId, audit }
      }),
  )

  app.post(
    '/v1/sandbox/members/jobs',
    {
      config: { scope: 'members:write', answerMsMax: limits.answerMsMax },
      schema: sandboxOperation({
        id: 'provokeSandboxJob',
        summary: 'Take a member job through a transition',
        description: `Makes a member job go from one status to another, with a member that is made for it: actions, or a file of all members as they are without that one. Jobs that are queued or wait for a review are rejected first; while one is being applied, the answer is a \`Conflict\`. ${Object.entries(
          jobTransitions,
        )
          .map(([name, what]) => `\`${name}\`: ${what}`)
          .join(' ')}`,
        body: JobTransition,
        success: { status: 201, description: 'The job, and the status that it has now.', schema: JobProvoked },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) => {
      const { partner, body, now: at } = request
      const partnerId = partner.id
      const transition = `${body.from} > ${body.to}`
      if (!isJobTransition(transition)) {
        const known = Object.keys(jobTransitions).join(', ')
        throw problem('BodyValidation', `No member job goes from ${body.from} to ${body.to}; use one of ${known}`, {
          path: 'to',
        })
      }
      let jobId = ''
      return await withStartedWork(db, request, reply, {
        async start() {
          return async () => {
            jobId = await withCopying((copyingDb, copyInto) =>
              copyingDb.transaction().execute(async tx => {
                const tier = await tierOf(tx, partnerId)
                const upload = { openFile: openNameless, copyInto }
                return await provokeJobTransition(tx, { partner, tier, transition, upload, now: at })
              }),
            )
            const isDone = async () => {
              const { status } = await memberImports.find(db, { partnerId, jobId })
              return body.to === 'NotReady' || (status !== 'NotReady' && status !== 'Processing')
            }
            await runAtOnce(context, { partnerId, names: ['apply-member-jobs'], isDone })
          }
        },
        async answer(tx) {
          const { id, status, plan } = await memberImports.find(tx, { partnerId, jobId })
          const details = { transition, plan }
          return {
            status: 201,
            body: { jobId: id, status },
            headers: { location: `/v1/members/jobs/${id}` },
            resourceId: id,
            audit: { action: 'member_job.create', details },
          }
        },
      })
    },
  )

  app.post(
    '/v1/sandbox/float',
    {
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'fundSandboxFloat',
        summary: 'Fund the float',
        description:
          'Adds money to the partner’s float in one of its currencies, as the operator does after a transfer.',
        body: MoneyToAdd,
        success: {
          status: 201,
          description: 'The float, and what of it is not on its way to members.',
          schema: FloatFunded,
        },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body, now } = request
        const amount = fromWire(body.amount)
        const { currency } = amount
        const before = (await float.read(tx, partner.id)).find(each => each.currency === currency)
        if (before === undefined) {
          throw problem('UnprocessableEntity', `The partner has no tier in ${currency}, so nothing is paid out in it`)
        }
        if (before.float + amount.amount > BigInt(amountMax)) {
          throw problem('UnprocessableEntity', 'The float would be larger than a JSON number can be')
        }
        const { movementId } = await float.fund(tx, { partnerId: partner.id, amount, now })
        const after = (await float.read(tx, partner.id)).find(each => each.currency === currency) ?? before
        const details = { amount: body.amount, reference: null, movementId }
        return {
          status: 201,
          body: {
            float: toWire({ amount: after.float, currency }),
            free: toWire({ amount: after.free, currency }),
          },
          resourceId: currency,
          audit: { action: 'float.fund', details },
        }
      }),
  )

  for (const { verb, isPaused, summary, description } of pauses) {
    app.post(
      `/v1/sandbox/${verb}`,
      {
        config: { scope: 'pay:write' },
        schema: sandboxOperation({
          id: `${verb}Sandbox`,
          summary,
          description,
          success: { status: 200, description: 'Whether withdrawals are paused.', schema: Paused },
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { id } = request.partner
          const { before } = await (isPaused ? partners.pausePartner : partners.resumePartner)(tx, id)
          const details = { before: { paused: before.paused }, after: { paused: isPaused } }
          const audit = before.paused === isPaused ? undefined : ({ action: `partner.${verb}`, details } as const)
          return { status: 200, body: { paused: isPaused }, resourceId: id, audit }
        }),
    )
  }

  app.post(
    '/v1/sandbox/seed',
    {
      config: { scope: 'pay:write', answerMsMax: limits.seedMsMax },
      schema: sandboxOperation({
        id: 'seedSandbox',
        summary: 'Seed the sandbox',
        description: `Resets the sandbox, which is a \`Conflict\` while its clock is moving, and fills it with a scenario. ${Object.entries(
          scenarios,
        )
          .map(([name, what]) => `\`${name}\`: ${what}`)
          .join(' ')}`,
        body: Seed,
        success: { status: 201, description: 'What the sandbox has now.', schema: Seeded },
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
          const { jobId } = await build(tx, { partner, scenario, now: request.now })
          if (jobId === null && scenario !== 'returned_payments') return async () => undefined
          const names = jobId === null ? bankTasks : (['apply-member-jobs'] as const)
          const isDone = async () => jobId === null || (await isApplied({ partnerId, jobId }))
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
      config: { scope: 'pay:write', answerMsMax: limits.seedMsMax },
      schema: sandboxOperation({
        id: 'resetSandbox',
        summary: 'Reset the sandbox',
        description:
          'Deletes everything of this partner: members, pay, withdrawals, the books, events, and answers to idempotency keys. Settings, tiers, API keys, webhook endpoints, the audit log and the request log stay. The clock shows real time again, and a pay cycle is open. New events go on after the old ones, so a reader of the feed starts again with `from=now`. While the clock is moving, a reset is a `Conflict`.',
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
          body: await clockBody(tx, partner.id),
          resourceId: partner.id,
          audit: { action: 'partner.reset', details: { scenario: null } },
        }
      }),
  )

  app.get(
    '/v1/sandbox/test-values',
    {
      config: { scope: 'pay:write', answerMsMax: limits.answerMsMax },
      schema: sandboxOperation({
        id: 'getSandboxTestValues',
        summary: 'Get test values',
        description:
          'For every error code and every transition of a state, the complete request that provokes it. Each can be sent as it stands, with your key, once: the members, intents and withdrawals that it needs are made by this call. A body that is a text is sent as it is, any other one as JSON. Also lists the bank accounts by what the simulated bank does with them.',
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
          const made = await make(tx, row.needs, { partner, tier, now, clockOffsetMs })
          values.push({ reaches: reachesOnWire(row.reaches), request: row.request(made, tier), note: row.note })
        }
        // What it has made, as one change: each member, intent and withdrawal belongs to one of the requests.
        const audit = { action: 'partner.test_values', details: { requests: values.length } } as const
        return { status: 200, body: { accounts: testAccounts, values }, resourceId: partner.id, audit }
      }),
  )

  // Known to a sandbox only, and only after the key was accepted.
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
    throw problem(provoked, `Provoked by ${provokeHeader}`, {}, isRetried ? { 'retry-after': '1' } : {})
  })

  async function isApplied(job: { partnerId: string; jobId: string }): Promise<boolean> {
    const { endedAt } = await memberImports.find(db, job).catch(error => {
      throw error instanceof Problem
        ? problem('Conflict', 'The sandbox was reset by another request while it was seeded')
        : error
    })
    return endedAt !== null
  }

  async function clockBody(reader: Reader, partnerId: string) {
    const offsetMs = await readOffsetMs(reader, partnerId)
    const move = await moves.findLatest(reader, partnerId)
    return {
      now: new Date(now().getTime() + offsetMs).toISOString(),
      aheadSeconds: Math.floor(offsetMs / 1_000),
      status: move === undefined || move.isComplete ? ('Still' as const) : ('Moving' as const),
      lastMove: move === undefined ? null : moveBody(move),
    }
  }
}

const bankTasks = ['submit-withdrawals', 'ask-about-withdrawals', 'read-rail-reports'] as const

const bankOperations = {
  submit: {
    summary: 'Submit a withdrawal',
    description:
      'Ends the hold: the withdrawal is submitted, and the bank stays silent about it until it is told to pay, fail or return it.',
  },
  pay: { summary: 'Pay a withdrawal', description: 'The bank reports the withdrawal as paid; it is submitted first.' },
  fail: {
    summary: 'Fail a withdrawal',
    description: 'The bank refuses the withdrawal, and the member has the money back; it is submitted first.',
  },
  return: {
    summary: 'Return a withdrawal',
    description:
      'The bank sends the withdrawal back, and the member has the money back; it is submitted and paid first.',
  },
  hold: {
    summary: 'Keep the bank silent about a withdrawal',
    description: 'The bank takes the payment when its hold ends, and says nothing about it until it is told to.',
  },
} as const satisfies Record<InstructionName, { summary: string; description: string }>

const pauses = [
  {
    verb: 'pause',
    isPaused: true,
    summary: 'Pause withdrawals',
    description: 'Intents and completions are refused with `UnprocessableEntity`, and balances say so. Idempotent.',
  },
  { verb: 'resume', isPaused: false, summary: 'Resume withdrawals', description: 'Ends a pause. Idempotent.' },
] as const

function reachesOnWire(reaches: Reaches) {
  if (!('problem' in reaches)) return { transition: reaches }
  const { code, status } = problems[reaches.problem]
  return { code, status }
}

function moveBody({ startsAt, target, ran }: moves.Move) {
  return {
    from: startsAt.toISOString(),
    to: target.toISOString(),
    ran: ran.map(({ due, from, to, count }) => ({ due, from: from.toISOString(), to: to.toISOString(), count })),
  }
}

function destinationOf({ to, by, next }: ClockMove): moves.Destination {
  if (next !== undefined) return { next }
  return to === undefined ? { byMs: parseDuration(by ?? 'PT0S') } : { to: parseInstant(to, { decimals: 'up' }) }
}

type Declared<P extends TSchema | undefined, Q extends TSchema | undefined, B extends TSchema | undefined> = Omit<
  Parameters<typeof operation<P, Q, B>>[0],
  'tag'
>

/** Declares an operation of the sandbox, which a live installation answers like any unknown path. */
function sandboxOperation<
  P extends TSchema | undefined = undefined,
  Q extends TSchema | undefined = undefined,
  B extends TSchema | undefined = undefined,
>({ problems = [], ...declared }: Declared<P, Q, B>) {
  const all: ProblemName[] = ['UnknownPath', ...problems]
  return operation<P, Q, B>({ ...declared, tag: 'Sandbox', problems: all } as Parameters<typeof operation<P, Q, B>>[0])
}

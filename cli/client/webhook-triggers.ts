import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type {
  EventType,
  MemberId,
  MemberJobId,
  NewMember,
  PayCycleId,
  PayRunId,
  TierWithTerms,
  WebhookId,
  WithdrawalId,
  WithdrawalIntentId,
} from '../../packages/sdk/src/generated/schemas.ts'
import type { Midmonth } from '../../packages/sdk/src/midmonth.ts'

export type Trigger = (midmonth: Midmonth) => Promise<unknown>
/** Why an event of a type cannot be triggered, and what to do instead. */
type Impossible = { reason: string }

const limits = {
  pollMs: 200,
  // A move of the clock by a pay cycle, or the first delivery to a new endpoint, on a busy machine.
  waitMsMax: 120_000,
  // The longest time that a file can wait for review, and the farthest that a clock can be ahead.
  reviewDaysMax: 365,
}

const account = { accountHolder: 'Test Trigger', sortCode: '089999', accountNumber: '66374958' }

/**
 * How to make an event of each type happen: requests to the public API with a new member, as a partner would send them, and
 * operations of the sandbox that move the clock and provoke reports of the simulated bank.
 */
export const triggers: Record<EventType, Trigger | Impossible> = {
  'member.invited': midmonth => invite(midmonth),
  'member.activated': midmonth => invite(midmonth),
  'member.updated': async midmonth => midmonth.members.update(await invite(midmonth), { firstName: 'Updated' }),
  'member.removed': async midmonth => midmonth.members.offboard(await invite(midmonth)),
  'member.reinstated': async midmonth => {
    const member = newMember(await tierOf(midmonth))
    const { memberId } = await midmonth.members.invite(member)
    await midmonth.members.offboard(memberId)
    await midmonth.members.replace(memberId, member)
  },
  'pay_run.scheduled': async midmonth => pay(midmonth, await invite(midmonth)),
  'pay_run.available': async midmonth => pay(midmonth, await invite(midmonth)),
  'pay_run.reverted': async midmonth => midmonth.payRuns.revert(await pay(midmonth, await invite(midmonth))),
  'pay_cycle.opened': midmonth => closeCycle(midmonth),
  'pay_cycle.closed': midmonth => closeCycle(midmonth),
  'pay_cycle.settled': async midmonth => midmonth.payCycles.settle(await closeCycle(midmonth), { deductions: [] }),
  // Rejected afterwards: later jobs would wait for it, and approving it would offboard all other members.
  'job.awaiting_review': async midmonth => midmonth.memberJobs.reject(await uploadForReview(midmonth)),
  'job.rejected': async midmonth => midmonth.memberJobs.reject(await uploadForReview(midmonth)),
  'job.queued': async midmonth => {
    const jobId = await uploadForReview(midmonth)
    await startJob(midmonth)
    await midmonth.memberJobs.reject(jobId)
  },
  'job.expired': async midmonth => {
    const jobId = await uploadForReview(midmonth)
    const isWaiting = async () => (await midmonth.memberJobs.get(jobId)).progress.type === 'AwaitingReview'
    for (let days = 0; days < limits.reviewDaysMax && (await isWaiting()); days += 7)
      await moveClock(midmonth, { by: 'P7D' })
  },
  'float.low': {
    reason:
      'Only an operator can set the floor of the float: midmonth float floor, with an amount above the free amount.',
  },
  'webhook.disabled': midmonth => withEndpoint(midmonth, disable),
  'webhook.recovered': midmonth =>
    withEndpoint(midmonth, async endpoint => {
      const { webhookId } = endpoint
      await disable(endpoint)
      endpoint.answer(200)
      await midmonth.webhooks.update(webhookId, { enabled: true })
      await invite(midmonth)
      // Recorded, and not only received: the recovery of a deleted endpoint emits no event.
      const isDelivered = async () =>
        (await midmonth.webhooks.listDeliveries(webhookId, { states: ['delivered'], take: 1 })).deliveries.length > 0
      await until(isDelivered, 'a delivery')
    }),
  'job.processing': midmonth => startJob(midmonth),
  'job.completed': midmonth => startJob(midmonth),
  'intent.created': midmonth => quote(midmonth),
  'intent.cancelled': async midmonth => midmonth.withdrawals.cancelIntent(await quote(midmonth)),
  'intent.expired': async midmonth => {
    await quote(midmonth)
    await moveClock(midmonth, { next: 'intent_expiry' })
  },
  'intent.completed': midmonth => withdraw(midmonth),
  'withdrawal.held': midmonth => withdraw(midmonth),
  'withdrawal.cancelled': async midmonth => midmonth.withdrawals.cancel(await withdraw(midmonth)),
  'withdrawal.submitted': async midmonth => midmonth.sandbox.withdrawals.submit(await withdraw(midmonth)),
  'withdrawal.paid': async midmonth => midmonth.sandbox.withdrawals.pay(await withdraw(midmonth)),
  'withdrawal.failed': async midmonth => midmonth.sandbox.withdrawals.fail(await withdraw(midmonth)),
  'withdrawal.returned': async midmonth => midmonth.sandbox.withdrawals.return(await withdraw(midmonth)),
}

async function withdraw(midmonth: Midmonth): Promise<WithdrawalId> {
  const withdrawalIntentId = await quote(midmonth)
  return (await midmonth.withdrawals.complete({ withdrawalIntentId })).id
}

async function quote(midmonth: Midmonth): Promise<WithdrawalIntentId> {
  const memberId = await invite(midmonth)
  await pay(midmonth, memberId)
  const { currency } = await tierOf(midmonth)
  const intent = await midmonth.withdrawals.createIntent({ memberId, amount: { amount: 5_000, currency } })
  return intent.withdrawalIntentId
}

async function pay(midmonth: Midmonth, memberId: MemberId): Promise<PayRunId> {
  const { currency } = await tierOf(midmonth)
  const run = { payDetails: [{ memberId, money: { amount: 20_000, currency } }] }
  const { id } = await midmonth.payRuns.create(run)
  return id
}

/** @returns the id of the pay cycle that was open */
async function closeCycle(midmonth: Midmonth): Promise<PayCycleId> {
  const { payCycles } = await midmonth.payCycles.list({ statuses: ['Open'] })
  const [open] = payCycles
  if (open === undefined) throw new Error('The partner has no open pay cycle')
  await moveClock(midmonth, { next: 'cycle_close' })
  return open.id
}

type Move = Parameters<Midmonth['sandbox']['clock']['move']>[0]

/** Moves the clock, and waits until the work that has fallen due is done. */
async function moveClock(midmonth: Midmonth, move: Move): Promise<void> {
  await midmonth.sandbox.clock.move(move)
  await until(async () => (await midmonth.sandbox.clock.get()).status === 'Still', 'the clock')
}

/** Uploads a list with one new member. It would offboard all others, so it waits for review. */
async function uploadForReview(midmonth: Midmonth): Promise<MemberJobId> {
  await invite(midmonth)
  const { email, firstName, lastName, tier } = newMember(await tierOf(midmonth))
  const csv = `email,first_name,last_name,phone,tier\r\n${email},${firstName},${lastName},,${tier}\r\n`
  return (await midmonth.memberJobs.createFromFileV2(csv)).jobId
}

type Endpoint = { midmonth: Midmonth; webhookId: WebhookId; answer(status: number): void }

/**
 * Creates an endpoint for the events of members, which this process receives, and deletes it afterwards. The sandbox must be
 * on this machine and deliver to it.
 */
async function withEndpoint(midmonth: Midmonth, act: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  let status = 200
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { id: webhookId } = await midmonth.webhooks.create({ url, types: ['member.*'] })
    const answer = (next: number) => {
      status = next
    }
    try {
      await act({ midmonth, webhookId, answer })
    } finally {
      await midmonth.webhooks.delete(webhookId)
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function disable({ midmonth, webhookId, answer }: Endpoint): Promise<void> {
  answer(410)
  await invite(midmonth)
  await until(async () => (await midmonth.webhooks.get(webhookId)).status === 'disabled', 'the delivery')
}

async function until(isDone: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + limits.waitMsMax
  while (!(await isDone())) {
    if (performance.now() > deadlineMs) throw new Error(`Waited ${limits.waitMsMax / 1_000} s for ${what}`)
    await pause(limits.pollMs)
  }
}

async function startJob(midmonth: Midmonth): Promise<void> {
  const { workerId: _, ...member } = newMember(await tierOf(midmonth))
  await midmonth.memberJobs.create({ actions: [{ type: 'Add', ...member }] })
}

async function invite(midmonth: Midmonth): Promise<MemberId> {
  return (await midmonth.members.invite(newMember(await tierOf(midmonth)))).memberId
}

async function tierOf(midmonth: Midmonth): Promise<TierWithTerms> {
  const [tier] = await midmonth.tiers.list()
  if (tier === undefined) throw new Error('The partner has no tier; add one with midmonth tier set')
  return tier
}

function newMember({ name: tier }: TierWithTerms): NewMember {
  const random = randomBytes(4).toString('hex')
  const email = `trigger-${random}@example.com`
  return { email, firstName: 'Trigger', lastName: 'Test', tier, workerId: `trigger-${random}`, accountDetails: account }
}

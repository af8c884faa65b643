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
import type { Openwage } from '../../packages/sdk/src/openwage.ts'

export type Trigger = (openwage: Openwage) => Promise<unknown>
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
  'member.invited': openwage => invite(openwage),
  'member.activated': openwage => invite(openwage),
  'member.updated': async openwage => openwage.members.update(await invite(openwage), { firstName: 'Updated' }),
  'member.removed': async openwage => openwage.members.offboard(await invite(openwage)),
  'member.reinstated': async openwage => {
    const member = newMember(await tierOf(openwage))
    const { memberId } = await openwage.members.invite(member)
    await openwage.members.offboard(memberId)
    await openwage.members.replace(memberId, member)
  },
  'pay_run.scheduled': async openwage => pay(openwage, await invite(openwage)),
  'pay_run.available': async openwage => pay(openwage, await invite(openwage)),
  'pay_run.reverted': async openwage => openwage.payRuns.revert(await pay(openwage, await invite(openwage))),
  'pay_cycle.opened': openwage => closeCycle(openwage),
  'pay_cycle.closed': openwage => closeCycle(openwage),
  'pay_cycle.settled': async openwage => openwage.payCycles.settle(await closeCycle(openwage), { deductions: [] }),
  // Rejected afterwards: later jobs would wait for it, and approving it would offboard all other members.
  'job.awaiting_review': async openwage => openwage.memberJobs.reject(await uploadForReview(openwage)),
  'job.rejected': async openwage => openwage.memberJobs.reject(await uploadForReview(openwage)),
  'job.queued': async openwage => {
    const jobId = await uploadForReview(openwage)
    await startJob(openwage)
    await openwage.memberJobs.reject(jobId)
  },
  'job.expired': async openwage => {
    const jobId = await uploadForReview(openwage)
    const isWaiting = async () => (await openwage.memberJobs.get(jobId)).progress.type === 'AwaitingReview'
    for (let days = 0; days < limits.reviewDaysMax && (await isWaiting()); days += 7)
      await moveClock(openwage, { by: 'P7D' })
  },
  'float.low': {
    reason: 'Only an operator can set the floor of the float: openwage float floor, with an amount above what is free.',
  },
  'webhook.disabled': openwage => withEndpoint(openwage, disable),
  'webhook.recovered': openwage =>
    withEndpoint(openwage, async endpoint => {
      const { webhookId } = endpoint
      await disable(endpoint)
      endpoint.answer(200)
      await openwage.webhooks.update(webhookId, { enabled: true })
      await invite(openwage)
      // Recorded, and not only received: once the endpoint is deleted, its recovery is no event.
      const isDelivered = async () =>
        (await openwage.webhooks.listDeliveries(webhookId, { states: ['delivered'], take: 1 })).deliveries.length > 0
      await until(isDelivered, 'a delivery')
    }),
  'job.processing': openwage => startJob(openwage),
  'job.completed': openwage => startJob(openwage),
  'intent.created': openwage => quote(openwage),
  'intent.cancelled': async openwage => openwage.withdrawals.cancelIntent(await quote(openwage)),
  'intent.expired': async openwage => {
    await quote(openwage)
    await moveClock(openwage, { next: 'intent_expiry' })
  },
  'intent.completed': openwage => withdraw(openwage),
  'withdrawal.held': openwage => withdraw(openwage),
  'withdrawal.cancelled': async openwage => openwage.withdrawals.cancel(await withdraw(openwage)),
  'withdrawal.submitted': async openwage => openwage.sandbox.withdrawals.submit(await withdraw(openwage)),
  'withdrawal.paid': async openwage => openwage.sandbox.withdrawals.pay(await withdraw(openwage)),
  'withdrawal.failed': async openwage => openwage.sandbox.withdrawals.fail(await withdraw(openwage)),
  'withdrawal.returned': async openwage => openwage.sandbox.withdrawals.return(await withdraw(openwage)),
}

async function withdraw(openwage: Openwage): Promise<WithdrawalId> {
  const withdrawalIntentId = await quote(openwage)
  return (await openwage.withdrawals.complete({ withdrawalIntentId })).id
}

async function quote(openwage: Openwage): Promise<WithdrawalIntentId> {
  const memberId = await invite(openwage)
  await pay(openwage, memberId)
  const { currency } = await tierOf(openwage)
  const intent = await openwage.withdrawals.createIntent({ memberId, amount: { amount: 5_000, currency } })
  return intent.withdrawalIntentId
}

async function pay(openwage: Openwage, memberId: MemberId): Promise<PayRunId> {
  const { currency } = await tierOf(openwage)
  const run = { payDetails: [{ memberId, money: { amount: 20_000, currency } }] }
  const { id } = await openwage.payRuns.create(run)
  return id
}

/** @returns the id of the pay cycle that was open */
async function closeCycle(openwage: Openwage): Promise<PayCycleId> {
  const { payCycles } = await openwage.payCycles.list({ statuses: ['Open'] })
  const [open] = payCycles
  if (open === undefined) throw new Error('The partner has no open pay cycle')
  await moveClock(openwage, { next: 'cycle_close' })
  return open.id
}

type Move = Parameters<Openwage['sandbox']['clock']['move']>[0]

/** Moves the clock, and waits until the work that has fallen due is done. */
async function moveClock(openwage: Openwage, move: Move): Promise<void> {
  await openwage.sandbox.clock.move(move)
  await until(async () => (await openwage.sandbox.clock.get()).status === 'Still', 'the clock')
}

/** Uploads a list with one new member. It would offboard all others, so it waits for review. */
async function uploadForReview(openwage: Openwage): Promise<MemberJobId> {
  await invite(openwage)
  const { email, firstName, lastName, tier } = newMember(await tierOf(openwage))
  const csv = `email,first_name,last_name,phone,tier\r\n${email},${firstName},${lastName},,${tier}\r\n`
  return (await openwage.memberJobs.createFromFileV2(csv)).jobId
}

type Endpoint = { openwage: Openwage; webhookId: WebhookId; answer(status: number): void }

/**
 * Creates an endpoint for the events of members, which this process receives, and deletes it afterwards. The sandbox must be
 * on this machine and deliver to it.
 */
async function withEndpoint(openwage: Openwage, act: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  let status = 200
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { id: webhookId } = await openwage.webhooks.create({ url, types: ['member.*'] })
    const answer = (next: number) => {
      status = next
    }
    try {
      await act({ openwage, webhookId, answer })
    } finally {
      await openwage.webhooks.delete(webhookId)
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

async function disable({ openwage, webhookId, answer }: Endpoint): Promise<void> {
  answer(410)
  await invite(openwage)
  await until(async () => (await openwage.webhooks.get(webhookId)).status === 'disabled', 'the delivery')
}

async function until(isDone: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + limits.waitMsMax
  while (!(await isDone())) {
    if (performance.now() > deadlineMs) throw new Error(`Waited ${limits.waitMsMax / 1_000} s for ${what}`)
    await pause(limits.pollMs)
  }
}

async function startJob(openwage: Openwage): Promise<void> {
  const { workerId: _, ...member } = newMember(await tierOf(openwage))
  await openwage.memberJobs.create({ actions: [{ type: 'Add', ...member }] })
}

async function invite(openwage: Openwage): Promise<MemberId> {
  return (await openwage.members.invite(newMember(await tierOf(openwage)))).memberId
}

async function tierOf(openwage: Openwage): Promise<TierWithTerms> {
  const [tier] = await openwage.tiers.list()
  if (tier === undefined) throw new Error('The partner has no tier; add one with openwage tier set')
  return tier
}

function newMember({ name: tier }: TierWithTerms): NewMember {
  const random = randomBytes(4).toString('hex')
  const email = `trigger-${random}@example.com`
  return { email, firstName: 'Trigger', lastName: 'Test', tier, workerId: `trigger-${random}`, accountDetails: account }
}

import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { EventType } from '../src/events/catalogue.ts'
import type { Api, Call } from './api.ts'

type Trigger = (api: Api) => Promise<unknown>
/** Why an event of a type cannot be triggered, and what to do instead. */
type Impossible = { reason: string }
type Tier = { name: string; currency: string }

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
  'member.invited': api => invite(api),
  'member.activated': api => invite(api),
  'member.updated': async api => {
    const memberId = await invite(api)
    await write(api, 'PATCH', `/v1/members/${memberId}`, { firstName: 'Updated' })
  },
  'member.removed': async api => write(api, 'DELETE', `/v1/members/${await invite(api)}`),
  'member.reinstated': async api => {
    const member = newMember(await tierOf(api))
    const { memberId } = await write<{ memberId: string }>(api, 'POST', '/v1/members', member)
    await write(api, 'DELETE', `/v1/members/${memberId}`)
    await write(api, 'PUT', `/v1/members/${memberId}`, member)
  },
  'pay_run.scheduled': async api => pay(api, await invite(api)),
  'pay_run.available': async api => pay(api, await invite(api)),
  'pay_run.reverted': async api => {
    const payRunId = await pay(api, await invite(api))
    await write(api, 'POST', `/v1/pay/runs/${payRunId}/revert`)
  },
  'pay_cycle.opened': api => closeCycle(api),
  'pay_cycle.closed': api => closeCycle(api),
  'pay_cycle.settled': async api => {
    const payCycleId = await closeCycle(api)
    await write(api, 'POST', `/v1/pay/cycles/${payCycleId}/settlement`, { deductions: [] })
  },
  // Rejected afterwards: later jobs would wait for it, and approving it would offboard all other members.
  'job.awaiting_review': async api => reject(api, await uploadForReview(api)),
  'job.rejected': async api => reject(api, await uploadForReview(api)),
  'job.queued': async api => {
    const jobId = await uploadForReview(api)
    await startJob(api)
    await reject(api, jobId)
  },
  'job.expired': async api => {
    const jobId = await uploadForReview(api)
    const isWaiting = async () => {
      const job = await api.read<{ progress: { type: string } }>({ path: `/v1/members/jobs/${jobId}` })
      return job.progress.type === 'AwaitingReview'
    }
    for (let days = 0; days < limits.reviewDaysMax && (await isWaiting()); days += 7)
      await moveClock(api, { by: 'P7D' })
  },
  'float.low': {
    reason: 'Only an operator can set the floor of the float: openwage float floor, with an amount above what is free.',
  },
  'webhook.disabled': api => withEndpoint(api, disable),
  'webhook.recovered': api =>
    withEndpoint(api, async endpoint => {
      await disable(endpoint)
      endpoint.answer(200)
      await write(api, 'PATCH', endpoint.path, { enabled: true })
      await invite(api)
      // Recorded, and not only received: once the endpoint is deleted, its recovery is no event.
      const query = new URLSearchParams({ states: 'delivered', take: '1' })
      const isDelivered = async () => {
        const { deliveries } = await api.read<{ deliveries: object[] }>({
          path: `${endpoint.path}/deliveries?${query}`,
        })
        return deliveries.length > 0
      }
      await until(isDelivered, 'a delivery')
    }),
  'job.processing': api => startJob(api),
  'job.completed': api => startJob(api),
  'intent.created': api => quote(api),
  'intent.cancelled': async api => {
    const intentId = await quote(api)
    await write(api, 'DELETE', `/v1/pay/withdrawals/intent/${intentId}`)
  },
  'intent.expired': async api => {
    await quote(api)
    await moveClock(api, { next: 'intent_expiry' })
  },
  'intent.completed': api => withdraw(api),
  'withdrawal.held': api => withdraw(api),
  'withdrawal.cancelled': async api => write(api, 'POST', `${await withdraw(api)}/cancel`),
  'withdrawal.submitted': api => instructBank(api, 'submit'),
  'withdrawal.paid': api => instructBank(api, 'pay'),
  'withdrawal.failed': api => instructBank(api, 'fail'),
  'withdrawal.returned': api => instructBank(api, 'return'),
}

/** @returns the path of the withdrawal */
async function withdraw(api: Api): Promise<string> {
  return await create(api, '/v1/pay/withdrawals/complete', { withdrawalIntentId: await quote(api) })
}

async function instructBank(api: Api, instruction: 'submit' | 'pay' | 'fail' | 'return'): Promise<void> {
  const withdrawalId = (await withdraw(api)).split('/').at(-1)
  await write(api, 'POST', `/v1/sandbox/withdrawals/${withdrawalId}/${instruction}`)
}

async function quote(api: Api): Promise<string> {
  const memberId = await invite(api)
  await pay(api, memberId)
  const { currency } = await tierOf(api)
  const body = { memberId, amount: { amount: 5_000, currency } }
  const intent = await write<{ withdrawalIntentId: string }>(api, 'POST', '/v1/pay/withdrawals/intent', body)
  return intent.withdrawalIntentId
}

/** @returns the id of the pay run */
async function pay(api: Api, memberId: string): Promise<string> {
  const { currency } = await tierOf(api)
  const json = { payDetails: [{ memberId, money: { amount: 20_000, currency } }] }
  return (await create(api, '/v1/pay/run', json)).split('/').at(-1) ?? ''
}

/** @returns the id of the pay cycle that was open */
async function closeCycle(api: Api): Promise<string> {
  const { payCycles } = await api.read<{ payCycles: { id: string; status: string }[] }>({ path: '/v1/pay/cycles' })
  const open = payCycles.find(({ status }) => status === 'Open')
  if (open === undefined) throw new Error('The partner has no open pay cycle')
  await moveClock(api, { next: 'cycle_close' })
  return open.id
}

/** Moves the clock, and waits until the work that has fallen due is done. */
async function moveClock(api: Api, move: { by: string } | { next: string }): Promise<void> {
  await write(api, 'POST', '/v1/sandbox/clock', move)
  const isStill = async () => (await api.read<{ status: string }>({ path: '/v1/sandbox/clock' })).status === 'Still'
  await until(isStill, 'the clock')
}

/** Uploads a list with one new member. It would offboard all others, so it waits for review. @returns the id of the job */
async function uploadForReview(api: Api): Promise<string> {
  await invite(api)
  const { email, firstName, lastName, tier } = newMember(await tierOf(api))
  const csv = `email,first_name,last_name,phone,tier\r\n${email},${firstName},${lastName},,${tier}\r\n`
  const headers = idempotencyHeader()
  const { jobId } = await api.read<{ jobId: string }>({ method: 'PUT', path: '/v2/members/jobs/csv', headers, csv })
  return jobId
}

async function reject(api: Api, jobId: string): Promise<void> {
  await write(api, 'POST', `/v1/members/jobs/${jobId}/reject`)
}

type Endpoint = { api: Api; path: string; answer(status: number): void }

/**
 * Creates an endpoint for the events of members, which this process receives, and deletes it afterwards. The sandbox must be
 * on this machine and deliver to it.
 */
async function withEndpoint(api: Api, act: (endpoint: Endpoint) => Promise<void>): Promise<void> {
  let status = 200
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const endpoint: Endpoint = {
    api,
    path: '',
    answer(next) {
      status = next
    },
  }
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const { id } = await write<{ id: string }>(api, 'POST', '/v1/webhooks', { url, types: ['member.*'] })
    endpoint.path = `/v1/webhooks/${id}`
    await act(endpoint)
  } finally {
    if (endpoint.path !== '') await send(api, { method: 'DELETE', path: endpoint.path })
    server.closeAllConnections()
    server.close()
  }
}

async function disable({ api, path, answer }: Endpoint): Promise<void> {
  answer(410)
  await invite(api)
  const isDisabled = async () => (await api.read<{ status: string }>({ path })).status === 'disabled'
  await until(isDisabled, 'the delivery')
}

async function until(isDone: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadlineMs = performance.now() + limits.waitMsMax
  while (!(await isDone())) {
    if (performance.now() > deadlineMs) throw new Error(`Waited ${limits.waitMsMax / 1_000} s for ${what}`)
    await pause(limits.pollMs)
  }
}

async function startJob(api: Api): Promise<void> {
  const { workerId: _, ...member } = newMember(await tierOf(api))
  await write(api, 'POST', '/v1/members/jobs', { actions: [{ type: 'Add', ...member }] })
}

async function invite(api: Api): Promise<string> {
  const { memberId } = await write<{ memberId: string }>(api, 'POST', '/v1/members', newMember(await tierOf(api)))
  return memberId
}

async function tierOf(api: Api): Promise<Tier> {
  const [tier] = await api.read<Tier[]>({ path: '/v1/tiers', headers: { prefer: 'return=representation' } })
  if (tier === undefined) throw new Error('The partner has no tier; add one with openwage tier set')
  return tier
}

function newMember({ name: tier }: Tier) {
  const random = randomBytes(4).toString('hex')
  const email = `trigger-${random}@example.com`
  return { email, firstName: 'Trigger', lastName: 'Test', tier, workerId: `trigger-${random}`, accountDetails: account }
}

async function write<T>(
  api: Api,
  method: 'POST' | 'PATCH' | 'PUT' | 'DELETE',
  path: string,
  json?: object,
): Promise<T> {
  return await api.read<T>({ method, path, headers: idempotencyHeader(), ...(json === undefined ? {} : { json }) })
}

/** @returns the path of what was created */
async function create(api: Api, path: string, json: object): Promise<string> {
  return String((await send(api, { method: 'POST', path, json })).location)
}

/** Sends a request whose answer has no body that matters. */
async function send(api: Api, call: Call): Promise<IncomingHttpHeaders> {
  const answer = await api.open({ ...call, headers: idempotencyHeader() })
  // An unread answer would keep its connection open, and the process running, for half a minute.
  answer.resume()
  return answer.headers
}

// The client retries, so each request has a key.
function idempotencyHeader() {
  return { 'x-idempotency-key': randomUUID() }
}

import { randomBytes, randomUUID } from 'node:crypto'
import type { EventType } from '../src/events/catalogue.ts'
import type { Api } from './api.ts'

type Trigger = (api: Api) => Promise<unknown>
type Tier = { name: string; currency: string }

const account = { accountHolder: 'Test Trigger', sortCode: '089999', accountNumber: '66374958' }

/**
 * How to make an event of each type happen: requests to the public API with a new member, as a partner would send them, and
 * operations of the sandbox that move time and make the simulated bank speak. A type that is missing cannot be triggered by requests alone.
 */
export const triggers: Partial<Record<EventType, Trigger>> = {
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
  'job.processing': api => startJob(api),
  'job.completed': api => startJob(api),
  'intent.created': api => quote(api),
  'intent.cancelled': async api => {
    const intentId = await quote(api)
    await write(api, 'DELETE', `/v1/pay/withdrawals/intent/${intentId}`)
  },
  'intent.expired': async api => {
    await quote(api)
    await write(api, 'POST', '/v1/sandbox/clock', { next: 'intent_expiry' })
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
  const { headers } = await api.open({
    ...{ method: 'POST', path: '/v1/pay/withdrawals/complete', headers: idempotencyHeader() },
    json: { withdrawalIntentId: await quote(api) },
  })
  return String(headers.location)
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

async function pay(api: Api, memberId: string): Promise<void> {
  const { currency } = await tierOf(api)
  await write(api, 'POST', '/v1/pay/run', { payDetails: [{ memberId, money: { amount: 20_000, currency } }] })
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

// The client retries, so each request has a key.
function idempotencyHeader() {
  return { 'x-idempotency-key': randomUUID() }
}

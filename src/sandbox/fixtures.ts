import { randomBytes } from 'node:crypto'
import type { Tx } from '../database/database.ts'
import * as idempotency from '../idempotency/idempotency.ts'
import { problem } from '../kernel/errors.ts'
import * as members from '../members/members.ts'
import type { Partner } from '../partners/partners.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import { lowestAmount, type Tier } from '../tiers/rules.ts'
import * as tiers from '../tiers/tiers.ts'
import { complete } from '../withdrawals/completions.ts'
import * as intents from '../withdrawals/intents.ts'
import type { CreatedFixture, Fixture } from './test-values.ts'

// An account whose modulus check cannot be done, and an IBAN that passes its check.
const ukAccount = { accountHolder: 'Sam Okafor', sortCode: '000001', accountNumber: '12345678' }
const iban = { accountHolder: 'Sam Okafor', iban: 'DE89370400440532013000' }

const scheduledMinutes = 60

/**
 * The tier whose members the requests are about.
 * @throws Problem `UnprocessableEntity` if the partner has none
 */
export async function tierOf(tx: Tx, partnerId: string): Promise<Tier> {
  const all = await tiers.listTerms(tx, partnerId)
  const tier = all.find(({ currency }) => currency === 'GBP') ?? all[0]
  if (tier === undefined)
    throw problem('UnprocessableEntity', 'The partner has no tier; the operator creates one with midmonth tier set')
  return tier
}

type FixtureOptions = { partner: Partner; tier: Tier; now: Date; clockOffsetMs: number }

/** Creates the objects that one request needs, by the operations that partners use. */
export async function createFixture(
  tx: Tx,
  fixture: Fixture,
  { partner, tier, now, clockOffsetMs }: FixtureOptions,
): Promise<CreatedFixture> {
  const email = `test-value-${randomBytes(6).toString('hex')}@example.com`
  const partnerId = partner.id
  const account = tier.currency === 'GBP' ? ukAccount : iban

  const member = async (options: { isActive?: boolean; hasAccount?: boolean } = {}): Promise<string> => {
    const { isActive = true, hasAccount = true } = options
    const accountDetails = hasAccount ? account : null
    const body = { email, firstName: 'Sam', lastName: 'Okafor', tier: tier.name, accountDetails }
    const { id } = await members.invite(tx, { partner: { ...partner, autoActivate: isActive }, body, now })
    return id
  }
  const pay = async (memberId: string, graceMinutes = 0): Promise<string> => {
    const lines = [{ memberId, amount: tier.upperLimit * 2n, currency: tier.currency }]
    const { id } = await payRuns.create(tx, { partner: { id: partnerId, graceMinutes }, lines, now })
    return id
  }
  const paidMember = async (): Promise<string> => {
    const memberId = await member()
    await pay(memberId)
    return memberId
  }
  const intent = async (): Promise<string> => {
    const amount = { amount: lowestAmount(tier), currency: tier.currency }
    return (await intents.create(tx, { partner, memberId: await paidMember(), amount, now })).id
  }

  switch (fixture) {
    case 'nothing':
      return { id: '', email }
    case 'member':
      return { id: await member(), email }
    case 'paidMember':
      return { id: await paidMember(), email }
    case 'invitedMember':
      return { id: await member({ isActive: false }), email }
    case 'inactiveMember': {
      const memberId = await member()
      await members.change(tx, { partner, command: { type: 'Offboard', memberId }, now })
      return { id: memberId, email }
    }
    case 'accountlessMember': {
      const memberId = await member({ hasAccount: false })
      await pay(memberId)
      return { id: memberId, email }
    }
    case 'intent':
      return { id: await intent(), email }
    case 'cancelledIntent': {
      const intentId = await intent()
      await intents.cancel(tx, { partnerId, intentId, now })
      return { id: intentId, email }
    }
    case 'withdrawal': {
      const { withdrawalId } = await complete(tx, { partner, intentId: await intent(), now, clockOffsetMs })
      return { id: withdrawalId, email }
    }
    case 'scheduledPayRun':
      return { id: await pay(await member(), scheduledMinutes), email }
    case 'availablePayRun':
      return { id: await pay(await member()), email }
    case 'usedKey': {
      const request = { partnerId, key: `used-${email}`, fingerprint: randomBytes(32), operation: 'getTiers' }
      const claim = { ...request, now }
      await idempotency.claim(tx, claim)
      await idempotency.complete(tx, claim, { status: 200, text: '[]', headers: {}, resourceId: null })
      return { id: claim.key, email }
    }
    default:
      return fixture satisfies never
  }
}

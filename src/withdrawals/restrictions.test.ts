import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { euAccount, goodAccount } from '../../test/harness/samples.ts'
import { sql } from '../database/database.ts'
import { release } from '../members/restrictions.ts'
import { findEligibility } from './inspection.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const otherAccount = { accountHolder: 'Sam Okafor', sortCode: '107999', accountNumber: '88837491' }

const change = (memberId: string, body: object) => harness.call('PATCH', `/v1/members/${memberId}`, { body })
const tell = (withdrawalId: string, name: string, reason?: string) =>
  harness.call('POST', `/v1/sandbox/withdrawals/${withdrawalId}/${name}`, {
    body: reason === undefined ? {} : { reason },
  })

describe('an account that the bank refused', () => {
  const refused = {
    status: 422,
    body: {
      issues: [
        {
          code: 'BankAccountInvalid',
          message: 'The bank refused the member’s bank account (AC04 The account is closed); change the account first',
        },
      ],
    },
  }

  test.each(['fail', 'return'])('takes no withdrawal after a %s until it is changed', async name => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    const pending = await harness.createIntent({ memberId })
    expect((await tell(withdrawalId, name, 'AC04')).status).toBe(200)
    expect(await harness.requestIntent({ memberId })).toMatchObject(refused)
    expect(await harness.requestCompletion(pending)).toMatchObject(refused)
    await change(memberId, { lastName: 'Ade', accountDetails: goodAccount })
    expect(await harness.requestIntent({ memberId })).toMatchObject(refused)
    await change(memberId, { accountDetails: otherAccount })
    await harness.withdraw({ memberId })
    await change(memberId, { accountDetails: goodAccount })
    await harness.withdraw({ memberId })
  })

  test('is no longer refused once only the holder’s name has changed', async () => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    await tell(withdrawalId, 'fail', 'AC01')
    await change(memberId, { accountDetails: { ...goodAccount, accountHolder: 'Samuel Okafor' } })
    await harness.withdraw({ memberId })
  })

  test('does not affect an account that the member has had since', async () => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    await tell(withdrawalId, 'hold')
    await change(memberId, { accountDetails: otherAccount })
    await tell(withdrawalId, 'fail', 'AC04')
    await harness.withdraw({ memberId })
  })

  test('is no longer refused after any change of the account, and keeps its reason otherwise', async () => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    await tell(withdrawalId, 'fail', 'AC04')
    await sql`update members set account = account, account_details_fingerprint = account_details_fingerprint where id = ${memberId}`.execute(
      harness.db,
    )
    expect(await harness.requestIntent({ memberId })).toMatchObject(refused)
    await harness.setUncheckedAccount({ memberId, account: otherAccount })
    await harness.withdraw({ memberId })
  })

  test('can be released by the operator if it is correct', async () => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    await tell(withdrawalId, 'fail', 'AC03')
    const { db } = harness
    const partnerId = harness.partner.id
    const asked = { partnerId, memberId, hasRail: () => true, now: harness.clock.now() }
    expect((await findEligibility(db, asked))?.refusal).toMatch(/^The bank refused the member’s bank account \(AC03 /)
    const before = await db.transaction().execute(tx => release(tx, { partnerId, memberId }))
    expect(before).toEqual({ accountRefused: expect.stringMatching(/^AC03 /), reviewReason: null })
    await harness.withdraw({ memberId })
  })
})

describe('a member held for review', () => {
  test.each(['AC06', 'AG01', 'MD07', 'MS03', 'BE01'])('after %s cannot withdraw until released', async code => {
    const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
    const pending = await harness.createIntent({ memberId })
    await tell(withdrawalId, 'return', code)
    const held = {
      status: 422,
      body: { issues: [{ code: 'MemberNotEligible', memberId, message: expect.stringContaining(`(${code} `) }] },
    }
    expect(await harness.requestIntent({ memberId })).toMatchObject(held)
    expect(await harness.requestCompletion(pending)).toMatchObject(held)
    await change(memberId, { accountDetails: otherAccount })
    expect(await harness.requestIntent({ memberId })).toMatchObject(held)
    await harness.inTx(tx => release(tx, { partnerId: harness.partner.id, memberId }))
    await harness.withdraw({ memberId })
  })
})

test('a payment that fails on a sandbox without a given reason restricts nothing', async () => {
  const { memberId, id: withdrawalId } = await harness.addWithdrawal({ available: 100_000 })
  await tell(withdrawalId, 'fail')
  const second = await harness.withdraw({ memberId })
  await tell(second, 'return')
  await harness.withdraw({ memberId })
})

test('an account in euros is refused and changed like one in pounds', async () => {
  const memberId = await harness.addMember({
    ...{ available: 20_000, account: euAccount, tier: 'Silver EU', currency: 'EUR' },
  })
  const euros = { body: { memberId, amount: { amount: 5_000, currency: 'EUR' } } }
  const { withdrawalIntentId } = (await harness.call('POST', '/v1/pay/withdrawals/intent', euros)).body
  await tell(locatedId(await harness.requestCompletion(withdrawalIntentId)), 'fail', 'RC01')
  const answer = await harness.call('POST', '/v1/pay/withdrawals/intent', euros)
  expect(answer.body.issues[0].code).toBe('BankAccountInvalid')
  await change(memberId, { accountDetails: { ...euAccount, iban: 'GB33BUKB20201555555555' } })
  expect((await harness.call('POST', '/v1/pay/withdrawals/intent', euros)).status).toBe(201)
})

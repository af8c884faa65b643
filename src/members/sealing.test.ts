import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { euAccount, goodAccount } from '../../test/harness/samples.ts'
import { absentValues } from './fields.ts'
import { Fingerprints, openAll, type Sealed, sealNew } from './sealing.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const profile = {
  ...{ ...absentValues, email: 'ada@example.com', firstName: 'Ada', lastName: 'Okafor', tier: 'Silver' },
  ...{ phone: '+447700900123', workerId: 'E-1', dob: '1990-06-24', gender: 'Female' as const },
  accountDetails: goodAccount,
}
const ada = { partnerId: 'par_1', memberId: 'mem_1' }
const stored = ({ profile = null, account = null, profile_key = null, payment_key = null }: Sealed) => ({
  ...{ profile, account, profileKey: profile_key, paymentKey: payment_key },
})

test('the sealed fields of a member are opened as they were, and not without the profile’s key', () => {
  const sealed = stored(sealNew(harness.sealer, profile, ada))
  const { firstName: _first, lastName: _last, tier: _tier, enablePayroll: _payroll, ...fields } = profile
  expect(openAll(harness.sealer, sealed, ada)).toEqual(fields)
  expect(openAll(harness.sealer, { ...sealed, profileKey: null }, ada)).toBeUndefined()
  expect(openAll(harness.sealer, { ...sealed, paymentKey: null }, ada)).toEqual({ ...fields, accountDetails: null })
})

test('a value or a key of another member, partner or kind is refused, and so is one that was cut off', () => {
  const { sealer } = harness
  const own = stored(sealNew(sealer, profile, ada))
  const ben = { ...ada, memberId: 'mem_2' }
  const other = stored(sealNew(sealer, { ...profile, accountDetails: euAccount }, ben))
  for (const wrong of [
    { ...own, account: other.account },
    { ...own, profile: other.profile },
    { ...own, profile: own.account },
    { ...own, profileKey: own.paymentKey },
    { ...own, paymentKey: other.paymentKey },
    { ...own, account: own.account?.subarray(0, -1) ?? null },
    { ...own, profileKey: own.profileKey?.subarray(0, -1) ?? null },
  ])
    expect(() => openAll(sealer, wrong, ada)).toThrow('cannot be opened')
  expect(() => openAll(sealer, own, ben)).toThrow('cannot be opened')
  expect(() => openAll(sealer, own, { ...ada, partnerId: 'par_2' })).toThrow('cannot be opened')
})

test('fingerprints find e-mails in any case, and tell nothing about members with the same phone, birthday or gender', () => {
  const fingerprints = new Fingerprints(harness.sealer, 'par_1')
  expect(fingerprints.ofEmail('ADA@example.com')).toEqual(fingerprints.ofEmail('ada@example.com'))
  expect(fingerprints.ofEmail('ada@example.com')).not.toEqual(fingerprints.ofEmail('ada@example.org'))
  expect(fingerprints.ofEmail('a')).not.toEqual(fingerprints.ofWorkerId('a'))
  expect(fingerprints.ofEmail('a')).not.toEqual(new Fingerprints(harness.sealer, 'par_2').ofEmail('a'))
  const [one, two] = ['ada@example.com', 'ben@example.com'].map(email =>
    sealNew(harness.sealer, { ...profile, email }, ada),
  )
  for (const name of ['phone_fingerprint', 'dob_fingerprint', 'gender_fingerprint'])
    expect(one?.[name], name).not.toEqual(two?.[name])
  expect(one?.account_details_fingerprint).toEqual(two?.account_details_fingerprint)
})

test('an account that does not change keeps its ciphertext, and an intent has a copy of it', async () => {
  const memberId = await harness.addMember({ available: 20_000 })
  const read = async () => {
    const columns = ['account', 'profile'] as const
    return await harness.db.selectFrom('members').select(columns).where('id', '=', memberId).executeTakeFirstOrThrow()
  }
  const before = await read()
  await harness.call('PATCH', `/v1/members/${memberId}`, {
    body: { phone: '+447700900123', accountDetails: goodAccount },
  })
  const after = await read()
  expect(after.account).toEqual(before.account)
  expect(after.profile).not.toEqual(before.profile)
  const { body } = await harness.requestIntent({ memberId })
  const intents = harness.db.selectFrom('withdrawalIntents').select('account')
  const intent = await intents.where('id', '=', body.withdrawalIntentId).executeTakeFirst()
  expect(intent?.account).toEqual(before.account)
})

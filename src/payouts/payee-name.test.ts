import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { euroRail, FileBank } from '../../test/banks/file-bank.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { euAccount, goodAccount } from '../../test/harness/samples.ts'
import type { Currency } from '../kernel/money.ts'
import { updatePartner } from '../partners/partners.ts'
import { cutOffOf, leadTimes } from './calendars/cut-off.ts'
import { uk } from './calendars/uk.ts'
import { sepaFormat } from './formats/sepa/format.ts'
import { standard18Format } from './formats/standard18/format.ts'

const euros = new FileBank()
const pounds = new FileBank()
const rails = [
  euroRail({ format: sepaFormat(), delivery: async () => euros }),
  euroRail({
    name: 'bacs',
    currency: 'GBP',
    format: standard18Format({ scheme: 'bacs', serviceUserNumber: '123456' }, null),
    debtors: { default: { name: 'Acme', account: { ...goodAccount, accountHolder: 'Acme' } } },
    schedule: now => cutOffOf({ now, cutOff: '15:00', timeZone: 'Europe/London', calendar: uk, ...leadTimes.bacs }),
    delivery: async () => pounds,
  }),
]

let harness: Harness
beforeAll(async () => {
  harness = await startHarness({ bankOf: () => 'connected', rails })
})
afterAll(() => harness.stop())

let day = new Date('2026-03-10T09:00:00.000Z')
beforeEach(() => {
  // A week later, before the cut-off, so that each test has its own batch.
  day = new Date(day.getTime() + 7 * 86_400_000)
  harness.clock.set(day)
})

const fuller = { prefer: 'return=representation' }
async function quote(to: Harness, currency: Currency, accountHolder: string) {
  const account = { ...(currency === 'EUR' ? euAccount : goodAccount), accountHolder }
  const tier = currency === 'EUR' ? { tier: 'Silver EU' } : {}
  const memberId = await to.addMember({ available: 20_000, currency, account, ...tier })
  const body = { memberId, amount: { amount: 5_000, currency } }
  const answer = await to.call('POST', '/v1/pay/withdrawals/intent', { body, headers: fuller })
  expect(answer.status, answer.text).toBe(201)
  return answer.body
}

test.each([
  { currency: 'EUR', holder: 'Łukasz Müller & Søn', payeeName: 'Lukasz Muller + Son', bank: euros },
  { currency: 'EUR', holder: '李小龙', payeeName: 'NOTPROVIDED', bank: euros },
  { currency: 'GBP', holder: 'Seán O’Shaughnessy-Weiß', payeeName: 'SEAN OSHAUGHNESSY-', bank: pounds },
] as const)('an intent in $currency shows that the bank will read $holder as $payeeName', async given => {
  const { currency, holder, payeeName, bank } = given
  const quoted = await quote(harness, currency, holder)
  expect(quoted).toMatchObject({ payeeName, accountDetails: { accountHolder: holder } })
  const { withdrawalIntentId } = quoted
  const intent = (await harness.call('GET', `/v1/pay/withdrawals/intent/${withdrawalIntentId}`)).body
  expect(intent).toEqual(quoted)

  await harness.call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  await harness.sendBatches({ hours: 7 })
  const file = [...bank.outbox.values()].at(-1)
  expect(file).toContain(currency === 'EUR' ? `<Cdtr><Nm>${payeeName}</Nm></Cdtr>` : payeeName)
})

test('a payment keeps the text of its partner from the time at which it joined its batch', async () => {
  const setText = (remittanceText: string) =>
    harness.inTx(tx => updatePartner(tx, { partnerId: harness.partner.id, settings: { remittanceText } }))
  const withdraw = async () => {
    await harness.addWithdrawal({ currency: 'EUR' })
    harness.clock.advance({ minutes: 1 })
    await harness.runTask('submit-withdrawals')
  }
  await setText('Wages on demand')
  await withdraw()
  await setText('')
  await withdraw()
  await setText('Another text')
  await harness.sendBatches({ hours: 7 })
  const file = [...euros.outbox.values()].at(-1)
  expect(file?.match(/<CdtTrfTxInf>/g)).toHaveLength(2)
  expect(file?.match(/<Ustrd>[^<]*/g)).toEqual(['<Ustrd>Wages on demand'])
})

test('the published answer to a new intent does not change', async () => {
  const account = { ...euAccount, accountHolder: 'Zoë' }
  const memberId = await harness.addMember({ available: 20_000, currency: 'EUR', account, tier: 'Silver EU' })
  const body = { memberId, amount: { amount: 5_000, currency: 'EUR' } }
  const created = (await harness.call('POST', '/v1/pay/withdrawals/intent', { body })).body
  expect(Object.keys(created)).toEqual(['withdrawalIntentId', 'netAmount', 'fee', 'accountDetails', 'bankAccount'])
})

test('a simulated bank reads every name as it is', async () => {
  const sandbox = await startHarness()
  try {
    expect(await quote(sandbox, 'GBP', 'Zoë 李')).toMatchObject({ payeeName: 'Zoë 李' })
  } finally {
    await sandbox.stop()
  }
})

const outside = [
  ['Turkey', 'TR330006100519786457841326'],
  ['the United Arab Emirates', 'AE070331234567890123456'],
  ['Brazil', 'BR1800360305000010009795493C1'],
  ['Ukraine', 'UA213223130000026007233566001'],
] as const

test.each(outside)(
  'an IBAN of %s, which SEPA does not reach, is refused at the intent, not at the bank',
  async (_, iban) => {
    const account = { accountHolder: 'Ada', iban }
    const memberId = await harness.addMember({ available: 20_000, currency: 'EUR', tier: 'Silver EU', account })
    const intent = () =>
      harness.call('POST', '/v1/pay/withdrawals/intent', {
        body: { memberId, amount: { amount: 5_000, currency: 'EUR' } },
      })
    const country = iban.slice(0, 2)
    const message = `SEPA payments do not reach accounts in ${country}; change the member’s bank account first`
    expect(await intent()).toMatchObject({ status: 422, body: { issues: [{ code: 'BankAccountInvalid', message }] } })
    await harness.call('PATCH', `/v1/members/${memberId}`, { body: { accountDetails: euAccount } })
    expect((await intent()).status).toBe(201)
  },
)

test('a sort code of zeros is refused at the intent', async () => {
  const account = { ...goodAccount, sortCode: '000000' }
  const memberId = await harness.addMember({ available: 20_000, account: null })
  await harness.setUncheckedAccount({ memberId, account })
  const answer = await harness.call('POST', '/v1/pay/withdrawals/intent', {
    body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
  })
  expect(answer).toMatchObject({ status: 422, body: { issues: [{ code: 'BankAccountInvalid' }] } })
})

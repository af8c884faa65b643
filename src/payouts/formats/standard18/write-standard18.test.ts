import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { BatchToWrite, PaymentOrder } from '../bank-files.ts'
import { isField, toBacsName } from './characters.ts'
import { type Standard18Options, standard18Writer } from './write-standard18.ts'

const debtor = {
  name: 'Acme Couriers Ltd',
  account: { accountHolder: 'Acme Couriers Ltd', sortCode: '401234', accountNumber: '12345678' },
}
const sam: PaymentOrder = {
  reference: 'MMABCDEFGHIJ2345',
  amount: 12_345n,
  account: { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' },
}
const zoe: PaymentOrder = {
  reference: 'MMKLMNOPQRST6723',
  amount: 7n,
  account: { accountHolder: 'Zoë O’Brien-Müller & Sons', sortCode: '200000', accountNumber: '00012345' },
}

function batchOf(payments: PaymentOrder[], changed: Partial<BatchToWrite> = {}): BatchToWrite {
  return {
    messageId: 'MMB20260310AB12CD',
    // Tuesday the 69th day of the year; processing on Wednesday.
    createdAt: new Date('2026-03-10T09:00:00Z'),
    valueDate: '2026-03-11',
    currency: 'GBP',
    debtor,
    paymentCount: payments.length,
    controlTotal: payments.reduce((sum, { amount }) => sum + amount, 0n),
    isInstant: false,
    payments: (async function* () {
      yield* payments
    })(),
    ...changed,
  }
}

const bacs: Standard18Options = { scheme: 'bacs', serviceUserNumber: '123456' }

async function write(batch: BatchToWrite, options: Partial<Standard18Options> = {}): Promise<string> {
  let file = ''
  for await (const chunk of standard18Writer({ ...bacs, ...options })(batch)) file += chunk
  return file
}

const linesOf = (file: string) => file.split('\r\n').slice(0, -1)

describe('a file is written byte for byte:', () => {
  // Column ruler:  1        10        20        30        40        50        60        70        80        90       100
  //                |---+----|----+----|----+----|----+----|----+----|----+----|----+----|----+----|----+----|----+----|
  test('single processing day', async () => {
    expect(linesOf(await write(batchOf([sam, zoe])))).toEqual([
      // VOL1 | 5–10 serial AB12CD | 11–41 blank | 42–47 service user number | 48–79 blank | 80 level 1.
      `VOL1AB12CD${' '.repeat(31)}123456${' '.repeat(32)}1`,
      // HDR1 | A | SUN | S | 13–14 blank | 15 '1' | 16–21 SUN | 22–27 serial | 28–31 section | 32–35 sequence | 36–41 blank
      // | 42–47 created ' 26069' | 48–53 expires seven days after processing ' 26077' | 54 blank | 55–60 blocks | blank.
      `HDR1A123456S  1123456AB12CD00010001       26069 26077 000000${' '.repeat(20)}`,
      // HDR2 | F | 6–10 block length | 11–15 record length | 16–50 blank | 51–52 offset | 53–80 blank.
      `HDR2F0200000100${' '.repeat(35)}00${' '.repeat(28)}`,
      // UHL1 | 5–10 processing day ' 26070' | 11–16 receiver | 17–20 blank | 21–22 currency | 23–28 country
      // | 29–37 work code | 38–40 file number | 41–80 blank.
      `UHL1 26070999999    000000001 DAILY  001${' '.repeat(40)}`,
      // 1–6 sort code | 7–14 account | 15 type | 16–17 code | 18–23, 24–31 originator | 32–35 free | 36–46 pence
      // | 47–64 user's name | 65–82 reference | 83–100 payee.
      '08999966374958099' + '40123412345678    00000012345' + 'ACME COURIERS LTD MMABCDEFGHIJ2345  SAM OKAFOR        ',
      // The name has 25 characters: Ë, Ü lose their dots, the apostrophe goes, and it is cut at 18.
      '20000000012345099' + '40123412345678    00000000007' + 'ACME COURIERS LTD MMKLMNOPQRST6723  ZOE OBRIEN-MULLER ',
      // Contra: code 17, both accounts the originator's, the sum of 12345 and 7.
      '40123412345678017' + '40123412345678    00000012352' + 'ACME COURIERS LTD CONTRA            ACME COURIERS LTD ',
      `EOF1A123456S  1123456AB12CD00010001       26069 26077 000000${' '.repeat(20)}`,
      `EOF2F0200000100${' '.repeat(35)}00${' '.repeat(28)}`,
      // UTL1 | 5–17 debit pence | 18–30 credit pence | 31–37 debits | 38–44 credits | 45–80 blank.
      `UTL10000000012352000000001235200000010000002${' '.repeat(36)}`,
    ])
  })

  test('multiple processing days, with every variance of a bank', async () => {
    const options: Partial<Standard18Options> = {
      processing: 'multi',
      hdr1Column15: ' ',
      receivingParty: 'service-user-number',
      blockCount: 'counted',
    }
    expect(linesOf(await write(batchOf([sam]), options))).toEqual([
      `VOL1AB12CD${' '.repeat(31)}123456${' '.repeat(32)}1`,
      // Column 15 is blank.
      `HDR1A123456S   123456AB12CD00010001       26069 26077 000000${' '.repeat(20)}`,
      // Records of 106.
      `HDR2F0200000106${' '.repeat(35)}00${' '.repeat(28)}`,
      `UHL1 26070123456    000000004 MULTI  001${' '.repeat(40)}`,
      // 101–106: the processing day.
      '0899996637495809940123412345678    00000012345ACME COURIERS LTD MMABCDEFGHIJ2345  SAM OKAFOR         26070',
      '4012341234567801740123412345678    00000012345ACME COURIERS LTD CONTRA            ACME COURIERS LTD  26070',
      // Two records are one block.
      `EOF1A123456S   123456AB12CD00010001       26069 26077 000001${' '.repeat(20)}`,
      `EOF2F0200000106${' '.repeat(35)}00${' '.repeat(28)}`,
      `UTL10000000012345000000001234500000010000001${' '.repeat(36)}`,
    ])
  })

  test('without labels', async () => {
    expect(linesOf(await write(batchOf([sam]), { hasLabels: false }))).toEqual([
      '0899996637495809940123412345678    00000012345ACME COURIERS LTD MMABCDEFGHIJ2345  SAM OKAFOR        ',
      '4012341234567801740123412345678    00000012345ACME COURIERS LTD CONTRA            ACME COURIERS LTD ',
    ])
  })

  test('Faster Payments on the day of the file', async () => {
    const batch = batchOf([sam], { valueDate: '2026-03-10' })
    const lines = linesOf(await write(batch, { scheme: 'faster-payments' }))
    expect(lines[3]).toBe(`UHL1 26069999999    000000001 DAILY  001${' '.repeat(40)}`)
    expect(lines).toHaveLength(9)
  })
})

test('days count from 001 to 366, in London, whatever the day is in UTC', async () => {
  const dates = async (createdAt: string, valueDate: string) => {
    const lines = linesOf(await write(batchOf([sam], { createdAt: new Date(createdAt), valueDate })))
    return [lines[1]?.slice(41, 53), lines[3]?.slice(4, 10)]
  }
  expect(await dates('2028-12-30T12:00:00Z', '2028-12-31')).toEqual([' 28365 29007', ' 28366'])
  expect(await dates('2026-12-31T12:00:00Z', '2027-01-01')).toEqual([' 26365 27008', ' 27001'])
  // Half past midnight on 11 June in London.
  expect(await dates('2026-06-10T23:30:00Z', '2026-06-12')).toEqual([' 26162 26170', ' 26163'])
})

describe('a batch that does not fit is refused, and its trailer is never written:', () => {
  const pay = (changed: Partial<PaymentOrder>): PaymentOrder => ({ ...sam, ...changed })
  const euAccount = { accountHolder: 'Mia', iban: 'DE89370400440532013000' }
  test.each<[string, BatchToWrite, RegExp, Partial<Standard18Options>?]>([
    ['another currency', batchOf([sam], { currency: 'EUR' }), /its currency is EUR/],
    ['no payment', batchOf([]), /it has 0 payments/],
    ['a payment of zero', batchOf([pay({ amount: 0n })]), /£0\.00, outside/],
    ['a negative payment', batchOf([pay({ amount: -1n })]), /-0\.01, outside/],
    ['more than £20,000,000', batchOf([pay({ amount: 2_000_000_001n })]), /£20000000\.01, outside/],
    [
      ...(['more than £1,000,000 by Faster Payments', batchOf([pay({ amount: 100_000_001n })]), /outside/] as const),
      { scheme: 'faster-payments' },
    ],
    [
      'a contra above £999,999,999.99',
      batchOf(Array.from({ length: 50 }, () => pay({ amount: 2_000_000_000n }))),
      /its total is above £999999999\.99/,
    ],
    ['a wrong count', batchOf([sam, zoe], { paymentCount: 1 }), /are 2 over £123\.52, not 1 over £123\.52/],
    ['a wrong total', batchOf([sam], { controlTotal: 12_346n }), /are 1 over £123\.45, not 1 over £123\.46/],
    ['an IBAN', batchOf([pay({ account: euAccount })]), /has an IBAN/],
    ['a debtor with an IBAN', batchOf([sam], { debtor: { name: 'Mia', account: euAccount } }), /needs a sort code/],
    ['a reference in lower case', batchOf([pay({ reference: 'mm_1' })]), /does not fit/],
    ['a long reference', batchOf([pay({ reference: 'A'.repeat(19) })]), /does not fit/],
    ['a short account', batchOf([pay({ account: { ...debtor.account, accountNumber: '1234567' } })]), /six digits/],
    ['a processing day of today', batchOf([sam], { valueDate: '2026-03-10' }), /0 days ahead, not 1 to 30/],
    ['a processing day 31 days ahead', batchOf([sam], { valueDate: '2026-04-10' }), /31 days ahead/],
    ['a service user number of letters', batchOf([sam]), /not six digits/, { serviceUserNumber: 'ABCDEF' }],
  ])('%s', async (_, batch, message, options = {}) => {
    let file = ''
    const written = (async () => {
      for await (const chunk of standard18Writer({ ...bacs, ...options })(batch)) file += chunk
    })()
    await expect(written).rejects.toThrow(message)
    expect(file).not.toMatch(/CONTRA|UTL1/)
  })
})

test.each([
  ['Sam Okafor', 'SAM OKAFOR'],
  ['Zoë O’Brien', 'ZOE OBRIEN'],
  ["D'Arcy", 'DARCY'],
  ['Straße Weiß', 'STRASSE WEISS'],
  ['Søren Æbelø', 'SOREN AEBELO'],
  ['Łukasz Đorđević', 'LUKASZ DORDEVIC'],
  ['Þór Ýmir', 'THOR YMIR'],
  ['İpek Şahin', 'IPEK SAHIN'],
  ['Ｆｕｌｌ ｗｉｄｔｈ', 'FULL WIDTH'],
  ['Smith & Sons (Leeds), Ltd.', 'SMITH & SONS LEEDS'],
  ['  two   spaces  ', 'TWO SPACES'],
  ['ends with a space here', 'ENDS WITH A SPACE'],
  ['李小龍', 'PAYEE'],
  ['\u202e\u0000😀', 'PAYEE'],
])('the name %j is written as %j', (name, written) => {
  expect(toBacsName(name)).toBe(written)
})

test('any name becomes a field, and every record has exactly 100 columns', async () => {
  const name = fc.string({ unit: 'grapheme', maxLength: 140 })
  const amount = fc.bigInt({ min: 1n, max: 2_000_000_000n })
  await fc.assert(
    fc.asyncProperty(name, amount, async (accountHolder, amount) => {
      expect(isField(toBacsName(accountHolder))).toBe(true)
      const payment = { ...sam, amount, account: { ...sam.account, accountHolder } as typeof sam.account }
      const file = await write(batchOf([payment], { debtor: { ...debtor, name: accountHolder } }))
      const lengths = linesOf(file).map(line => line.length)
      expect(lengths).toEqual([80, 80, 80, 80, 100, 100, 80, 80, 80])
      expect(file).toMatch(/^[A-Z0-9.&/ \r\n-]*$/)
    }),
  )
})

test('a large batch is written in small pieces, from payments that are read once', async () => {
  const paymentCount = 20_000
  let read = 0
  async function* payments() {
    for (; read < paymentCount; read++) yield { ...sam, amount: 1n }
  }
  const batch = batchOf([], { paymentCount, controlTotal: 20_000n, payments: payments() })
  let length = 0
  let readAtFirst = 0
  for await (const chunk of standard18Writer(bacs)(batch)) {
    readAtFirst ||= read
    expect(chunk.length).toBeLessThan(70_000)
    length += chunk.length
  }
  expect(readAtFirst).toBeLessThan(1_000)
  expect(length).toBe(7 * 82 + 20_001 * 102)
})

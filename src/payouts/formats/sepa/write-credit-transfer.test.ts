import fc from 'fast-check'
import { SaxesParser } from 'saxes'
import SEPA from 'sepa'
import { expect, test } from 'vitest'
import { anyText } from '../../../../test/runner/any-text.ts'
import { inDecimals } from '../../../kernel/money.ts'
import type { BatchToWrite, PaymentOrder, WriteBatch } from '../bank-files.ts'
import { batchOf, each, someOrder, someUkOrder, textOf, ukBatchOf } from './files.fixture.ts'
import { epcName } from './names.ts'
import { writeSepaCreditTransfer, writeUkCreditTransfer } from './write-credit-transfer.ts'

const write = async (batch: BatchToWrite, writer: WriteBatch = writeSepaCreditTransfer()) => await textOf(writer(batch))

/** The texts of a file in order, each with its path and currency, as a parser with namespaces reads them. */
function fieldsOf(file: string): string[] {
  const fields: string[] = []
  const open: string[] = []
  const parser = new SaxesParser({ xmlns: true })
  parser.on('error', error => {
    throw error
  })
  parser.on('opentag', ({ local, attributes }) =>
    open.push(`${local}${attributes.Ccy ? ` ${attributes.Ccy.value}` : ''}`),
  )
  parser.on('text', text => {
    if (text.trim() !== '') fields.push(`${open.slice(2).join('/')}: ${text}`)
  })
  parser.on('closetag', () => open.pop())
  parser.write(file).close()
  return fields
}

test('payments are marked as salaries only if the rail says so', async () => {
  const purposesOf = async (options: { isSalary?: boolean }, isInstant: boolean) =>
    fieldsOf(await write(batchOf([someOrder], { isInstant }), writeSepaCreditTransfer(options))).filter(field =>
      /PmtTpInf/.test(field),
    )
  const salary = 'PmtInf/PmtTpInf/CtgyPurp/Cd: SALA'
  const standard = ['PmtInf/PmtTpInf/SvcLvl/Cd: SEPA']
  expect(await purposesOf({}, false)).toEqual(standard)
  expect(await purposesOf({ isSalary: false }, false)).toEqual(standard)
  expect(await purposesOf({ isSalary: true }, false)).toEqual([...standard, salary])
  // The order of the schema.
  expect(await purposesOf({ isSalary: true }, true)).toEqual([
    ...standard,
    'PmtInf/PmtTpInf/LclInstrm/Cd: INST',
    salary,
  ])
})

test('a payment has its text after the account, but not in pounds, where it could take the place of the reference', async () => {
  const text = { remittanceText: "Wages: 'May' + more" }
  const fields = fieldsOf(await write(batchOf([{ ...someOrder, ...text }, someOrder])))
  expect(fields.filter(field => /RmtInf/.test(field))).toEqual(["PmtInf/CdtTrfTxInf/RmtInf/Ustrd: Wages: 'May' + more"])
  const pounds = await write(ukBatchOf([{ ...someUkOrder, ...text }]), writeUkCreditTransfer())
  expect(pounds).not.toContain('RmtInf')
})

test('a batch has its ids, sums, date, payer and payments in the fields of pain.001.001.09', async () => {
  const file = await write(batchOf([someOrder, { ...someOrder, reference: 'MM22222222222222', amount: 5n }]))
  expect(file).toMatch(
    /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain\.001\.001\.09">/,
  )
  expect(fieldsOf(file)).toEqual([
    'GrpHdr/MsgId: MMB7Q2ZKD3',
    'GrpHdr/CreDtTm: 2026-03-02T08:30:15Z',
    'GrpHdr/NbOfTxs: 2',
    'GrpHdr/CtrlSum: 123.50',
    'GrpHdr/InitgPty/Nm: Backerei Suss + Sohne',
    'PmtInf/PmtInfId: MMB7Q2ZKD3',
    'PmtInf/PmtMtd: TRF',
    'PmtInf/NbOfTxs: 2',
    'PmtInf/CtrlSum: 123.50',
    'PmtInf/PmtTpInf/SvcLvl/Cd: SEPA',
    'PmtInf/ReqdExctnDt/Dt: 2026-03-03',
    'PmtInf/Dbtr/Nm: Backerei Suss + Sohne',
    'PmtInf/DbtrAcct/Id/IBAN: DE75512108001245126199',
    'PmtInf/DbtrAcct/Ccy: EUR',
    'PmtInf/DbtrAgt/FinInstnId/Othr/Id: NOTPROVIDED',
    'PmtInf/ChrgBr: SLEV',
    'PmtInf/CdtTrfTxInf/PmtId/InstrId: MMABCDEFGHIJKLMN',
    'PmtInf/CdtTrfTxInf/PmtId/EndToEndId: MMABCDEFGHIJKLMN',
    'PmtInf/CdtTrfTxInf/Amt/InstdAmt EUR: 123.45',
    'PmtInf/CdtTrfTxInf/Cdtr/Nm: Zoe Muller',
    'PmtInf/CdtTrfTxInf/CdtrAcct/Id/IBAN: DE89370400440532013000',
    'PmtInf/CdtTrfTxInf/PmtId/InstrId: MM22222222222222',
    'PmtInf/CdtTrfTxInf/PmtId/EndToEndId: MM22222222222222',
    'PmtInf/CdtTrfTxInf/Amt/InstdAmt EUR: 0.05',
    'PmtInf/CdtTrfTxInf/Cdtr/Nm: Zoe Muller',
    'PmtInf/CdtTrfTxInf/CdtrAcct/Id/IBAN: DE89370400440532013000',
  ])
})

test('instant payment, BIC and batch booking are written where they are requested', async () => {
  const debtor = { ...batchOf([]).debtor, bic: 'COBADEFFXXX' }
  const batch = batchOf([someOrder], { isInstant: true, debtor })
  expect(fieldsOf(await write(batch, writeSepaCreditTransfer({ isBatchBooked: true })))).toEqual(
    expect.arrayContaining([
      'PmtInf/BtchBookg: true',
      'PmtInf/PmtTpInf/SvcLvl/Cd: SEPA',
      'PmtInf/PmtTpInf/LclInstrm/Cd: INST',
      'PmtInf/DbtrAgt/FinInstnId/BICFI: COBADEFFXXX',
    ]),
  )
})

test('a payment in pounds names sort codes and account numbers', async () => {
  const plain = fieldsOf(await write(ukBatchOf([someUkOrder]), writeUkCreditTransfer()))
  expect(plain.slice(9)).toEqual([
    'PmtInf/PmtTpInf/SvcLvl/Cd: NURG',
    'PmtInf/ReqdExctnDt/Dt: 2026-03-03',
    'PmtInf/Dbtr/Nm: Baker + Sons',
    'PmtInf/DbtrAcct/Id/Othr/Id: 55779911',
    'PmtInf/DbtrAcct/Id/Othr/SchmeNm/Cd: BBAN',
    'PmtInf/DbtrAcct/Ccy: GBP',
    'PmtInf/DbtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd: GBDSC',
    'PmtInf/DbtrAgt/FinInstnId/ClrSysMmbId/MmbId: 200000',
    'PmtInf/ChrgBr: SHAR',
    'PmtInf/CdtTrfTxInf/PmtId/InstrId: MMZYXWVUTSRQPONM',
    'PmtInf/CdtTrfTxInf/PmtId/EndToEndId: MMZYXWVUTSRQPONM',
    'PmtInf/CdtTrfTxInf/Amt/InstdAmt GBP: 50.00',
    'PmtInf/CdtTrfTxInf/CdtrAgt/FinInstnId/ClrSysMmbId/ClrSysId/Cd: GBDSC',
    'PmtInf/CdtTrfTxInf/CdtrAgt/FinInstnId/ClrSysMmbId/MmbId: 089999',
    "PmtInf/CdtTrfTxInf/Cdtr/Nm: Ada O'Neill",
    'PmtInf/CdtTrfTxInf/CdtrAcct/Id/Othr/Id: 66374958',
    'PmtInf/CdtTrfTxInf/CdtrAcct/Id/Othr/SchmeNm/Cd: BBAN',
  ])
  const instant = fieldsOf(await write(ukBatchOf([someUkOrder], { isInstant: true }), writeUkCreditTransfer()))
  expect(instant).toContain('PmtInf/PmtTpInf/SvcLvl/Cd: URNS')
})

const order = fc.record({
  reference: fc.stringMatching(/^MM[A-Z2-7]{14}$/),
  amount: fc.bigInt({ min: 1n, max: 99_999_999_999n }),
  account: fc.record({
    accountHolder: anyText({ maxLength: 140 }),
    iban: fc.constantFrom('DE89370400440532013000', 'MT84MALT011000012345MTLCAST001S', 'NO9386011117947'),
  }),
})

test('any names and amounts are read back as they were given, and the sums match', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(order, { minLength: 1, maxLength: 5 }), async orders => {
      const batch = batchOf(orders)
      const fields = fieldsOf(await write(batch))
      const values = (path: string) =>
        fields.filter(field => field.startsWith(`${path}: `)).map(field => field.slice(path.length + 2))
      const transfer = 'PmtInf/CdtTrfTxInf'
      expect(values(`${transfer}/PmtId/EndToEndId`)).toEqual(orders.map(({ reference }) => reference))
      expect(values(`${transfer}/Cdtr/Nm`)).toEqual(orders.map(({ account }) => epcName(account.accountHolder)))
      expect(values(`${transfer}/CdtrAcct/Id/IBAN`)).toEqual(orders.map(({ account }) => account.iban))
      const cents = values(`${transfer}/Amt/InstdAmt EUR`).map(amount => BigInt(amount.replace('.', '')))
      expect(cents).toEqual(orders.map(({ amount }) => amount))
      expect(values('GrpHdr/CtrlSum')).toEqual([inDecimals({ amount: batch.controlTotal, currency: 'EUR' })])
    }),
    { numRuns: 100 },
  )
})

test('another writer produces the same file from the same batch', async () => {
  const amounts = [1n, 1_999n, 100n, 12_345n, 99_999_999_999n]
  const names = ['Zoe Muller', "O'Neill (Ada), c/o B.", 'X']
  const orders = amounts.map((amount, index) => ({
    reference: `MMAAAAAAAAAAAAA${'ABCDE'[index]}`,
    amount,
    account: { accountHolder: names[index % 3] ?? '', iban: 'DE89370400440532013000' },
  }))
  const debtor = { ...batchOf([]).debtor, name: 'Backerei Suss', bic: 'COBADEFFXXX' }
  const batch = batchOf(orders, { debtor })
  const ours = fieldsOf(await write(batch, writeSepaCreditTransfer({ isBatchBooked: true })))
  // The other writer makes its own ids, writes no zone and does not repeat the currency.
  const ownIds = /PmtInfId: |InstrId: |DbtrAcct\/Ccy: /
  const same = (fields: string[]) =>
    fields.filter(field => !ownIds.test(field)).map(field => field.replace(/(CreDtTm: .*)Z$/, '$1'))
  expect(same(ours)).toEqual(same(fieldsOf(writtenByOther(batch, orders))))
})

function writtenByOther(batch: BatchToWrite, orders: PaymentOrder[]): string {
  const { debtor } = batch
  if (!('iban' in debtor.account)) throw new Error('The batch is not of SEPA')
  const file = new SEPA.Document('pain.001.001.09')
  Object.assign(file.grpHdr, { id: batch.messageId, created: batch.createdAt, initiatorName: debtor.name })
  const information = file.createPaymentInfo()
  Object.assign(information, {
    ...{ requestedExecutionDate: new Date(batch.valueDate), batchBooking: true, debtorName: debtor.name },
    ...{ debtorIBAN: debtor.account.iban, debtorBIC: debtor.bic },
  })
  file.addPaymentInfo(information)
  for (const { reference, amount, account } of orders) {
    const payment = information.createTransaction()
    Object.assign(payment, {
      ...{ creditorName: account.accountHolder, creditorIBAN: 'iban' in account ? account.iban : '' },
      ...{ amount: Number(amount) / 100, end2endId: reference },
    })
    information.addTransaction(payment)
  }
  return file.toString()
}

const uk = writeUkCreditTransfer()
const withAmount = (amount: bigint) => batchOf([{ ...someOrder, amount }])
const withIban = (iban: string) => batchOf([{ ...someOrder, account: { accountHolder: 'A', iban } }])
const withSortCode = (sortCode: string) =>
  ukBatchOf([{ ...someUkOrder, account: { accountHolder: 'A', sortCode, accountNumber: '66374958' } }])

test.each<[string, BatchToWrite, WriteBatch?]>([
  ['has count 1 and total 12345 instead of 2 and 12345', batchOf([someOrder], { paymentCount: 2 })],
  ['has count 1 and total 12345 instead of 1 and 12346', batchOf([someOrder], { controlTotal: 12_346n })],
  ['is empty', batchOf([])],
  ['the amount 0 is not allowed', withAmount(0n)],
  ['the amount -1 is not allowed', withAmount(-1n)],
  ['the amount 100000000000 is not allowed', withAmount(100_000_000_000n)],
  ['not in EUR', batchOf([someOrder], { currency: 'GBP' })],
  ['The message id bat_1 is malformed', batchOf([someOrder], { messageId: 'bat_1' })],
  ['The reference wd_1 is malformed', batchOf([{ ...someOrder, reference: 'wd_1' }])],
  ['needs an IBAN', batchOf([{ ...someOrder, account: someUkOrder.account }])],
  ['The IBAN is malformed', withIban('DE89 3704')],
  ['The IBAN is malformed', withIban('de89370400440532013000')],
  ['The BIC is malformed', batchOf([someOrder], { debtor: { ...batchOf([]).debtor, bic: '<' } })],
  ['not in GBP', batchOf([someOrder]), uk],
  ['needs a sort code', ukBatchOf([someOrder]), uk],
  ['The sort code is malformed', withSortCode('08-99-99'), uk],
  ['the amount 2000000001 is not allowed', ukBatchOf([{ ...someUkOrder, amount: 2_000_000_001n }]), uk],
])('a batch is refused: %s', async (message, batch, writer) => {
  await expect(write(batch, writer)).rejects.toThrow(message)
})

test('a payment is read only when the payments before it are written', async () => {
  let asked = 0
  const count = 2_000
  async function* payments() {
    for await (const payment of each(Array<PaymentOrder>(count).fill(someOrder))) {
      asked += 1
      yield payment
    }
  }
  const sums = { paymentCount: count, controlTotal: BigInt(count) * someOrder.amount }
  const chunks = writeSepaCreditTransfer()(batchOf([], { ...sums, payments: payments() }))
  const first = await chunks.next()
  expect(first.value.length).toBeLessThan(70_000)
  expect(asked).toBeLessThan(500)
  await chunks.return(undefined)
})

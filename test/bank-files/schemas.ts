import assert from 'node:assert/strict'
import { createReadStream, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { validateXML } from 'xmllint-wasm'
import type { Answer } from '../../src/payouts/formats/answers.ts'
import { batchLevels } from '../../src/payouts/formats/bank-files.ts'
import {
  answersOf,
  batchOf,
  someOrder,
  someUkOrder,
  textOf,
  ukBatchOf,
} from '../../src/payouts/formats/sepa/files.fixture.ts'
import { readBankFile } from '../../src/payouts/formats/sepa/read-bank-file.ts'
import { writeNotification, writeStatusReport } from '../../src/payouts/formats/sepa/write-answers.ts'
import { writeSepaCreditTransfer, writeUkCreditTransfer } from '../../src/payouts/formats/sepa/write-credit-transfer.ts'

// Validates every kind of file that Midmonth writes against the ISO 20022 schemas, and reads two files of a real bank. The
// schemas and files are not part of this repository: the first argument is their folder.
const folder = process.argv[2] ?? fileURLToPath(new URL('../../../shared/iso20022', import.meta.url))

const accountHolder = `</Nm>&"<'😀 ÆØÅ ΠΑΠΑΔΟΠΟΥΛΟΣ Щерев ${'long '.repeat(30)}`
const withAmount = (amount: bigint) => ({ ...someOrder, amount })
const oddlyNamed = { ...someOrder, account: { ...someOrder.account, accountHolder } }
const debtor = { ...batchOf([]).debtor, bic: 'COBADEFFXXX' }
const foreign = { ...someOrder, account: { accountHolder: 'Li', iban: 'MT84MALT011000012345MTLCAST001S' } }
const orders = [someOrder, withAmount(1n), withAmount(99_999_999_999n), oddlyNamed, foreign]

const none = { reasonCode: null, reasonText: null }
const reason = { reasonCode: 'AC04', reasonText: `<&'">\u0000 ${'ü'.repeat(200)}` }
const { reference, amount } = someOrder
const outcomes = (states: Answer['state'][]): Answer[] =>
  states.flatMap(state => [none, reason].map(given => ({ reference, amount, state, ...given })))
const ukAccount = ukBatchOf([]).debtor.account

const written: { name: string; schema: string; file: AsyncIterable<string> }[] = [
  { name: 'SEPA', file: writeSepaCreditTransfer()(batchOf(orders)) },
  { name: 'SEPA instant', file: writeSepaCreditTransfer()(batchOf(orders, { isInstant: true })) },
  { name: 'SEPA with BIC', file: writeSepaCreditTransfer()(batchOf(orders, { debtor })) },
  { name: 'SEPA booked as a batch', file: writeSepaCreditTransfer({ isBatchBooked: true })(batchOf(orders)) },
  { name: 'SEPA booked payment by payment', file: writeSepaCreditTransfer({ isBatchBooked: false })(batchOf(orders)) },
  { name: 'SEPA, 5,000 payments', file: writeSepaCreditTransfer()(batchOf(Array(5_000).fill(someOrder))) },
  {
    name: 'SEPA salaries with remittance text',
    file: writeSepaCreditTransfer({ isSalary: true })(
      batchOf([{ ...someOrder, remittanceText: "Wages on demand, (1/2) + 'x': ?" }], { isInstant: true }),
    ),
  },
  { name: 'UK', file: writeUkCreditTransfer()(ukBatchOf([someUkOrder])) },
  { name: 'UK instant', file: writeUkCreditTransfer()(ukBatchOf([someUkOrder], { isInstant: true })) },
]
  .map(each => ({ ...each, schema: 'pain.001.001.09' }))
  .concat([
    {
      name: 'status report',
      schema: 'pain.002.001.10',
      file: writeStatusReport(answersOf(outcomes(['accepted', 'pending', 'paid', 'failed']))),
    },
    ...batchLevels.map(level => ({
      name: `status report of a batch, ${level}`,
      schema: 'pain.002.001.10',
      file: writeStatusReport(
        answersOf([], { batch: { level, state: 'rejected', reasonCode: 'NARR', reasonText: 'DUPLICATE FILE' } }),
      ),
    })),
    {
      name: 'notification',
      schema: 'camt.054.001.08',
      file: writeNotification(answersOf(outcomes(['paid', 'returned']))),
    },
    {
      name: 'UK notification',
      schema: 'camt.054.001.08',
      file: writeNotification(answersOf(outcomes(['paid', 'returned']), { currency: 'GBP', account: ukAccount })),
    },
  ])

for (const { name, schema, file } of written) {
  const contents = await textOf(file)
  assert.ok(await isValid(contents, schema), `${name} is not a valid ${schema}`)
  // A validator that accepts everything would prove nothing.
  assert.ok(!(await isValid(contents.replace('</MsgId>', '</MsgId><Odd/>'), schema)), `${schema} accepts anything`)
  console.log(`${name}: a valid ${schema}`)
}
console.log(`${written.length} files are valid`)

async function isValid(contents: string, schema: string): Promise<boolean> {
  const { valid, errors } = await validateXML({
    xml: [{ fileName: 'file.xml', contents }],
    schema: [{ fileName: `${schema}.xsd`, contents: readFileSync(path.join(folder, `${schema}.xsd`), 'utf8') }],
  })
  if (!valid && !contents.includes('<Odd/>')) console.error(errors.slice(0, 5))
  return valid
}

assert.deepEqual(await partsOfSample('camt.054.001.04-returns.xml'), [
  {
    type: 'head',
    head: {
      message: 'camt.054',
      messageId: '20201124375204228763929',
      createdAt: new Date('2020-11-25T00:29:29Z'),
      account: 'CH5109000000250092291',
      currency: null,
    },
  },
  {
    type: 'payment',
    line: 56,
    reference: 'EndToEndId-001-03-04',
    state: 'returned',
    amount: { amount: 50_000n, currency: 'CHF' },
    entryReference: '190520CH02ZZTJR1',
    reasonCodes: ['AC01'],
    reasonText: 'Kontonummer falsch',
    booking: {
      ...{ day: '2020-11-24', bankReference: '190520CH02ZZTJR1', isReversal: true, isReturn: true, charges: null },
      texts: ['Kontouebertrag', 'EndToEndId-001-03-04 RETOUR TRANSAKTION NICHT AUSFÜHRBAR Kontouebertrag'],
    },
  },
])
assert.deepEqual(await partsOfSample('pain.002.001.03-rejected.xml'), [
  {
    type: 'head',
    head: {
      ...{ message: 'pain.002', messageId: '20180315375204222822452' },
      ...{ createdAt: new Date('2018-03-15T11:25:12Z'), account: null },
    },
  },
  {
    ...{ type: 'batch', line: 2, messageId: 'MsgId-001', level: 'payment-information', state: 'partly' },
    ...{ reasonCodes: [], reasonText: null },
  },
  {
    type: 'payment',
    line: 2,
    reference: 'EndToEndId-001-03-04',
    state: 'failed',
    amount: null,
    entryReference: null,
    reasonCodes: ['AC01'],
    reasonText: '1301813;Konto ungültig',
  },
])
console.log('both files of the bank were read')

async function partsOfSample(name: string): Promise<unknown[]> {
  const parts: unknown[] = []
  const file = createReadStream(path.join(folder, 'samples', name))
  for await (const part of readBankFile(file, { bytesMax: 1_000_000, recordsMax: 10 })) parts.push(part)
  return parts
}

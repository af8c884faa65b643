import { expect, test } from 'vitest'
import type { Answer } from '../answers.ts'
import { answersOf, textOf } from '../sepa/files.fixture.ts'
import { type ArucsOptions, arucsReader } from './read-arucs.ts'
import { arucsCsvWriter } from './write-arucs.ts'

const columns = { reference: 'User Ref', amount: 'Amount', reasonCode: 'Code' }
const returned: Answer[] = [
  { reference: 'MMAAAAAAAAAAAAAA', amount: 1n, state: 'returned', reasonCode: '0', reasonText: null },
  {
    ...{ reference: 'MMBBBBBBBBBBBBBB', amount: 2_000_000_000n, state: 'returned', reasonCode: 'B' },
    reasonText: 'Closed; "for good",\tsays the bank',
  },
]
const inGbp = { currency: 'GBP' } as const

async function recordsOf(text: string, options: ArucsOptions) {
  async function* bytes() {
    yield Buffer.from(text)
  }
  const records: unknown[] = []
  for await (const each of arucsReader(options)(bytes(), { bytesMax: 10_000, recordsMax: 100 })) records.push(each)
  return records
}

test.each<[string, ArucsOptions & { format: 'csv' }]>([
  ['in pounds, separated by commas', { format: 'csv', columns }],
  ['in pence, separated by tabs', { format: 'csv', columns, amountIn: 'pence', delimiter: '\t' }],
  [
    'with a text and the currency, separated by semicolons',
    { format: 'csv', columns: { ...columns, reasonText: 'Text', currency: 'Ccy' }, delimiter: ';' },
  ],
])('a written ARUCS %s reads back as the same returns', async (_, options) => {
  const text = await textOf(arucsCsvWriter(options)(answersOf(returned, inGbp)))
  const [head, ...records] = await recordsOf(text, options)
  expect(head).toMatchObject({ type: 'head' })
  const hasText = options.columns.reasonText !== undefined
  expect(records).toEqual(
    returned.map(({ amount, reasonCode, reasonText, ...rest }) =>
      expect.objectContaining({
        ...rest,
        amount: { amount, currency: 'GBP' },
        reasonCodes: [reasonCode],
        reasonText: hasText ? (reasonText?.replace('\t', ' ') ?? null) : null,
      }),
    ),
  )
})

test('ARUCS says only that a payment in pounds was returned', async () => {
  const write = arucsCsvWriter({ format: 'csv', columns })
  await expect(textOf(write(answersOf(returned)))).rejects.toThrow('ARUCS is in GBP, not in EUR')
  const paid = returned.map(each => ({ ...each, state: 'paid' as const }))
  await expect(textOf(write(answersOf(paid, inGbp)))).rejects.toThrow('cannot say that a payment is paid')
})

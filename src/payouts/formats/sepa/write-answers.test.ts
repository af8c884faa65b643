import { expect, test } from 'vitest'
import type { Answer } from '../answers.ts'
import { batchLevels } from '../bank-files.ts'
import { answersOf, partsOf, textOf } from './files.fixture.ts'
import { writeNotification, writeStatusReport } from './write-answers.ts'

const none = { reasonCode: null, reasonText: null }
const accepted: Answer = { reference: 'MMAAAAAAAAAAAAAA', amount: 1n, state: 'accepted', ...none }
const pending: Answer = { reference: 'MMBBBBBBBBBBBBBB', amount: 10n, state: 'pending', ...none }
const paid: Answer = { reference: 'MMCCCCCCCCCCCCCC', amount: 100n, state: 'paid', ...none }
const failed: Answer = {
  ...{ reference: 'MMDDDDDDDDDDDDDD', amount: 99_999_999_999n, state: 'failed' },
  ...{ reasonCode: 'AC04', reasonText: 'Konto <geschlossen> & gelöscht' },
}
const returned: Answer = {
  ...{ reference: 'MMEEEEEEEEEEEEEE', amount: 1_999n, state: 'returned' },
  ...{ reasonCode: 'AC01', reasonText: null },
}

/** The reader's records of an answer, without the line and the bank's reference. */
function recordOf({ amount, reasonCode, ...rest }: Answer) {
  const reasonCodes = reasonCode === null ? [] : [reasonCode]
  return expect.objectContaining({ type: 'payment', ...rest, reasonCodes, amount: { amount, currency: 'EUR' } })
}

test('a written status report reads back as the same answers', async () => {
  const answers = [accepted, pending, paid, failed]
  const [head, ...records] = await partsOf(await textOf(writeStatusReport(answersOf(answers))))
  expect(head).toEqual({
    type: 'head',
    head: {
      message: 'pain.002',
      messageId: 'BANK000001',
      createdAt: new Date('2026-03-03T09:00:00.000Z'),
      account: null,
    },
  })
  expect(records).toEqual(answers.map(recordOf))
})

test.each(batchLevels)(
  'a batch that is rejected as a whole reads back with its reason, at the level %s',
  async level => {
    const why = { reasonCode: 'NARR', reasonText: 'DUPLICATE FILE: message id <1> already processed' }
    const file = writeStatusReport(answersOf([pending], { batch: { level, state: 'rejected', ...why } }))
    const [, ...records] = await partsOf(await textOf(file))
    const { reasonCode, reasonText } = why
    expect(records).toEqual([
      expect.objectContaining({ type: 'batch', level, state: 'rejected', reasonCodes: [reasonCode], reasonText }),
      recordOf(pending),
    ])
  },
)

test('a written notification reads back as the same payments and returns', async () => {
  const answers = [paid, returned]
  const [head, ...records] = await partsOf(await textOf(writeNotification(answersOf(answers))))
  expect(head).toMatchObject({
    head: { message: 'camt.054', messageId: 'BANK000001', account: 'DE75512108001245126199' },
  })
  expect(records).toEqual(answers.map(recordOf))
})

test('a status report cannot say returned, and a notification says only booked outcomes', async () => {
  await expect(textOf(writeStatusReport(answersOf([returned])))).rejects.toThrow(
    'cannot say that a payment was returned',
  )
  await expect(textOf(writeNotification(answersOf([failed])))).rejects.toThrow(
    'Nothing is booked for a payment that is failed',
  )
})

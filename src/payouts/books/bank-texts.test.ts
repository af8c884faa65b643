import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { sql } from '../../database/database.ts'
import type { EntryRecord } from './entries.ts'
import * as exceptions from './exceptions.ts'
import { readStaged, stage } from './staging.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const told = { rail: 'sepa', kind: 'money_in', reason: 'Money arrived' } as const
const open = (changes: Partial<exceptions.NewException> & { fingerprint: string }) =>
  harness.inTx(tx => exceptions.open(tx, [{ ...told, ...changes }], harness.clock.now()))
const read = async (fingerprint: string) => {
  const { rows } = await sql<{ id: string; text: string }>`
    select id, e::text as text from payout_exceptions e where fingerprint = ${fingerprint}`.execute(harness.db)
  const [row] = rows
  if (row === undefined) throw new Error(`There is no exception ${fingerprint}`)
  return row
}
const textOf = async (fingerprint: string) =>
  (await exceptions.list(harness.db, { id: (await read(fingerprint)).id, take: 1 }))[0]?.bankText

test('the bank’s words are sealed in the database, and operators read them', async () => {
  await open({ fingerprint: 'of no payment', bankText: 'MIA SCHULZ\0 \ud800 schuldet mir Geld' })
  await open({ fingerprint: 'silent' })
  const { text } = await read('of no payment')
  expect(text).not.toMatch(new RegExp(`SCHULZ|${Buffer.from('SCHULZ').toString('hex')}`))
  expect(await textOf('of no payment')).toBe('MIA SCHULZ \ufffd schuldet mir Geld')
  expect(await textOf('silent')).toBeNull()
})

test('words about a payment are lost with the payment key of its member', async () => {
  const memberId = await harness.addMember({ available: 10_000 })
  const payout = { partnerId: harness.partner.id, withdrawalId: await harness.withdraw({ memberId }) }
  await open({ fingerprint: 'of a member', bankText: 'MIA SCHULZ', payout })
  expect(await textOf('of a member')).toBe('MIA SCHULZ')
  await harness.db.updateTable('memberKeys').set({ paymentKey: null }).where('memberId', '=', memberId).execute()
  expect(await textOf('of a member')).toBeNull()
  // Nothing could open it.
  await open({ fingerprint: 'too late', bankText: 'MIA SCHULZ', payout })
  expect(await textOf('too late')).toBeNull()
})

test('words cannot be moved to another rail or payment', async () => {
  const payout = async () => {
    const memberId = await harness.addMember({ available: 10_000 })
    return { partnerId: harness.partner.id, withdrawalId: await harness.withdraw({ memberId }) }
  }
  await open({ fingerprint: 'one', bankText: 'MIA SCHULZ' })
  await open({ fingerprint: 'on another rail', rail: 'bacs', bankText: 'Other' })
  await open({ fingerprint: 'about a payment', bankText: 'MIA SCHULZ', payout: await payout() })
  await open({ fingerprint: 'about another', bankText: 'Other', payout: await payout() })
  for (const [from, to] of [
    ['one', 'on another rail'],
    ['about a payment', 'about another'],
  ]) {
    await sql`
      update payout_exceptions e set bank_text = o.bank_text, bank_text_about_member = o.bank_text_about_member
        from payout_exceptions o where o.fingerprint = ${from} and e.fingerprint = ${to}`.execute(harness.db)
    await expect(textOf(String(to))).rejects.toThrow('cannot be opened: it was changed or belongs elsewhere')
  }
})

test('the records of a bank file are sealed while they wait to be applied', async () => {
  const record: EntryRecord = {
    ...{ type: 'entry', line: 3, key: 'k', entryReference: null, amount: { amount: -5n, currency: 'EUR' } },
    ...{ reference: null, reasonCodes: [], reasonText: null },
    booking: {
      ...{ day: '2026-03-10', bankReference: 'B1', isReversal: false, isReturn: false },
      ...{ texts: ['MIA SCHULZ'], charges: null },
    },
  }
  const head = { message: 'camt.053', messageId: 'M1', createdAt: null, account: 'DE1' } as const
  const staged = [{ step: 0, partnerId: '', place: 1, said: { head, record } }]
  await harness.inTx(tx => stage(tx, { fileId: 'bf_1', staged }))
  const { rows } = await sql<{ text: string }>`select s::text as text from staged_bank_records s`.execute(harness.db)
  expect(rows[0]?.text).not.toMatch(new RegExp(`SCHULZ|${Buffer.from('SCHULZ').toString('hex')}`))
  const read = await readStaged(harness.db, { fileId: 'bf_1', after: undefined })
  expect(read).toEqual([{ step: 0, partnerId: '', place: 1, head, records: [record] }])
})

import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { KyselyPlugin } from 'kysely'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { euroRail, FileBank, ownIban } from '../../../../test/banks/file-bank.ts'
import { accountReport, transaction } from '../../../../test/banks/iso20022.ts'
import { type Harness, startHarness } from '../../../../test/harness/harness.ts'
import { goodAccount, silver } from '../../../../test/harness/samples.ts'
import { closeException } from '../../../../test/payouts/two-person-decisions.ts'
import { sql, type Tx } from '../../../database/database.ts'
import * as float from '../../../float/float.ts'
import { zipOf } from '../../../tabular/zip.fixture.ts'
import type { TaskContext, TaskName } from '../../../worker/task.ts'
import { approve } from '../../books/approvals.ts'
import { listBalances } from '../../books/balances.ts'
import { claimForSending, toWrite } from '../../books/batches.ts'
import * as exceptions from '../../books/exceptions.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { importBankFile } from '../../books/import.ts'
import { lockRail } from '../../books/rail-lock.ts'
import { remove, setHeld } from '../../books/unsent-batches.ts'
import { putByHand } from '../../delivery/by-hand.ts'
import { type Delivery, NotDelivered } from '../../delivery/delivery.ts'
import { FolderDelivery } from '../../delivery/folder.ts'
import { sepaFormat } from '../../formats/sepa/format.ts'
import type { Channel } from '../channel.ts'
import { fileChannel } from './channel.ts'
import { exportBatch, markExported } from './export.ts'

// 11:00 in Berlin, on a Tuesday.
const tuesday = new Date('2026-03-10T10:00:00.000Z')

let harness: Harness
let context: TaskContext
let bank: FileBank
let settings: FileRailSettings
let rails: Channel[]
beforeAll(async () => {
  harness = await startHarness({ bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated') })
  const { db, clock } = harness
  context = { db, log: pino({ level: 'silent' }), now: clock.now }
})
afterAll(() => harness.stop())

let named = 0
beforeEach(() => {
  harness.clock.set(tuesday)
  useRail({})
})

/** Each test has its own rail, so that none sees another's batches. */
function useRail(changes: Partial<FileRailSettings>): void {
  named += 1
  bank = new FileBank()
  settings = euroRail({ name: `euro-${named}`, delivery: async () => bank, ...changes })
  rails = [fileChannel({ db: harness.db, now: harness.clock.now, settings })]
}

/** The bank, with another way to take files. */
const deliveryWith = (put: FileBank['put']): Delivery => ({
  put,
  list: () => bank.list(),
  get: name => bank.get(name),
  archive: name => bank.archive(name),
  reject: (name, report) => bank.reject(name, report),
})

const run = (task: TaskName) => harness.runTask(task, { channels: rails })

const statusOf = async (id: string) => (await harness.getWithdrawal(id)).status
const referenceOf = async (id: string): Promise<string> => (await harness.getWithdrawal(id)).paymentReference
const batches = () =>
  harness.db.selectFrom('payoutBatches').selectAll().where('rail', '=', settings.name).orderBy('id').execute()
const openExceptions = () =>
  harness.db
    .selectFrom('payoutExceptions')
    .select(['kind', 'reference', 'line', 'outcome'])
    .where('rail', '=', settings.name)
    .orderBy('id')
    .execute()

/** Withdraws and submits: the payments are in the open batch. */
async function submitted(...nets: number[]): Promise<{ id: string; reference: string }[]> {
  const ids: string[] = []
  for (const net of nets) ids.push((await harness.addWithdrawal({ currency: 'EUR', net })).id)
  harness.clock.advance({ seconds: 30 })
  await run('submit-withdrawals')
  return await Promise.all(ids.map(async id => ({ id, reference: await referenceOf(id) })))
}

/** … and the file is at the bank. */
async function sent(...nets: number[]) {
  const payments = await submitted(...nets)
  harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
  await run('send-payout-batches')
  return payments
}

const answer = (...lines: string[]) => harness.bankAnswers(bank, lines, { channels: rails })

const restrictionsOf = async (id: string) =>
  await harness.db
    .selectFrom('members')
    .select(['accountRefused', 'reviewReason'])
    .where('id', '=', (await harness.getWithdrawal(id)).memberId)
    .executeTakeFirstOrThrow()

test('a code about the member restricts the member; one about a whole batch or file does not', async () => {
  const codes = ['AC04', 'AG01', 'ZZ99', '']
  const [paid, ...payments] = await sent(4_000, 5_000, 5_100, 5_200, 5_300)
  await answer(
    ...['head;M1', `paid;${paid?.reference};4000EUR`],
    ...payments.map(({ reference }, index) => `failed;${reference};5${index}00EUR;${codes[index]}`),
  )
  expect(await Promise.all(payments.map(({ id }) => restrictionsOf(id)))).toEqual([
    { accountRefused: 'AC04 The account is closed', reviewReason: null },
    { accountRefused: null, reviewReason: 'AG01 Payments to this account are not allowed' },
    { accountRefused: null, reviewReason: 'ZZ99' },
    { accountRefused: null, reviewReason: 'The bank gave no reason' },
  ])

  useRail({})
  harness.clock.set(tuesday)
  const [other] = await sent(6_000)
  await answer('head;M1', `batch;${(await batches())[0]?.messageId};rejected;AC01;payment-information`)
  expect(await statusOf(other?.id ?? '')).toBe('failed')
  expect(await restrictionsOf(other?.id ?? '')).toEqual({ accountRefused: null, reviewReason: null })
})

test('a payment that is returned after it was paid restricts the member, also if the bank is asked first', async () => {
  const [payment] = await sent(5_000)
  const { id = '', reference = '' } = payment ?? {}
  bank.inbox.set('failed.txt', `head;M1\nfailed;${reference};5000EUR;AC01\nend`)
  await run('read-bank-files')
  harness.clock.advance({ days: 2 })
  await run('ask-about-withdrawals')
  expect(await restrictionsOf(id)).toEqual({ accountRefused: 'AC01 The account number is wrong', reviewReason: null })
})

test('a withdrawal goes to the bank in a file, is paid when the bank says so, and can be returned days later', async () => {
  const [first, second] = await sent(5_000, 7_000)
  const [batch] = await batches()
  expect(batch).toMatchObject({ status: 'sent', paymentCount: 2, controlTotal: 12_000n, valueDate: '2026-03-10' })
  expect([...bank.outbox.keys()]).toEqual([`${batch?.messageId}.txt`])
  expect(bank.payments()).toEqual(
    new Map([
      [first?.reference, [5_000n]],
      [second?.reference, [7_000n]],
    ]),
  )
  expect(await harness.getWithdrawal(first?.id ?? '')).toMatchObject({
    status: 'submitted',
    // The next banking day, until midnight in Berlin.
    expectedAt: '2026-03-11T22:59:59.999Z',
  })

  await answer('head;M1', `batch;${batch?.messageId};acknowledged`)
  expect((await batches())[0]).toMatchObject({ status: 'acknowledged' })
  await answer('head;M2', `paid;${first?.reference};5000EUR`, `failed;${second?.reference};7000EUR;AC04`)
  expect([await statusOf(first?.id ?? ''), await statusOf(second?.id ?? '')]).toEqual(['paid', 'failed'])
  expect((await harness.getWithdrawal(second?.id ?? '')).timeline.at(-1).reason).toBe('AC04 The account is closed')
  expect((await batches())[0]).toMatchObject({ status: 'settled' })

  harness.clock.advance({ days: 3 })
  await answer('head;M3', `returned;${first?.reference};5000EUR;MS03`)
  expect(await statusOf(first?.id ?? '')).toBe('returned')
  expect(await openExceptions()).toEqual([])
  expect(await harness.disagreements()).toEqual([])
})

test('ledger verify notices a batch whose sums are not those of its payments', async () => {
  await sent(5_000, 6_000)
  const [batch] = await batches()
  const set = (tx: Tx, controlTotal: bigint) =>
    tx
      .updateTable('payoutBatches')
      .set({ controlTotal })
      .where('id', '=', batch?.id ?? '')
      .execute()
  const rule = async (controlTotal: bigint) => {
    // The database refuses to add to a closed batch.
    await harness.ownerDb.transaction().execute(async tx => {
      await sql`alter table payout_batches disable trigger payout_batches_stay_closed`.execute(tx)
      await set(tx, controlTotal)
      await sql`alter table payout_batches enable trigger payout_batches_stay_closed`.execute(tx)
    })
    return (await harness.disagreements()).map(({ name, disagreement }) => [name, disagreement?.found])
  }
  await expect(harness.inTx(tx => set(tx, 11_001n))).rejects.toThrow('a closed batch takes no payments')
  expect(await rule(11_001n)).toEqual([['payout batches', '2 payments, 11001']])
  expect(await rule(11_000n)).toEqual([])
})

describe('a batch', () => {
  test('takes payments until its cut-off; later ones go on the next banking day, and their withdrawals say so', async () => {
    const [early] = await sent(5_000)
    // 15:00 in Berlin, on the Friday before.
    harness.clock.set(new Date('2026-03-13T14:00:00.000Z'))
    const [late] = await submitted(6_000)
    await run('send-payout-batches')
    expect((await batches()).map(({ valueDate, status }) => [valueDate, status])).toEqual([
      ['2026-03-10', 'sent'],
      ['2026-03-16', 'building'],
    ])
    expect((await harness.getWithdrawal(early?.id ?? '')).expectedAt).toBe('2026-03-11T22:59:59.999Z')
    expect((await harness.getWithdrawal(late?.id ?? '')).expectedAt).toBe('2026-03-17T22:59:59.999Z')
  })

  describe('has one speed', () => {
    const terms = { ...silver, payoutSpeed: 'instant' as const }
    const inBatches = async () =>
      (await batches()).map(({ isInstant, paymentCount, valueDate }) => [isInstant, paymentCount, valueDate])
    beforeEach(async () => {
      await harness.addTier('Fast EU', terms, { currency: 'EUR' })
      await harness.addTier('Slow EU', { ...silver, payoutSpeed: 'standard' }, { currency: 'EUR' })
    })

    test('which the tier decides as it was when the withdrawal was quoted, and expectedAt follows', async () => {
      useRail({ format: { ...settings.format, write: sepaFormat().write } })
      const { id: usual } = await harness.addWithdrawal({ currency: 'EUR', net: 5_000 })
      const { id: instant } = await harness.addWithdrawal({ currency: 'EUR', net: 6_000, tier: 'Fast EU' })
      await harness.addTier('Fast EU', { ...terms, payoutSpeed: 'standard' }, { currency: 'EUR' })
      const { id: later } = await harness.addWithdrawal({ currency: 'EUR', net: 7_000, tier: 'Fast EU' })
      // A Tuesday after the cut-off: the next day is the value date, but not of instant payments.
      harness.clock.set(new Date('2026-03-10T15:00:00.000Z'))
      await run('submit-withdrawals')
      expect((await inBatches()).sort()).toEqual([
        [false, 2, '2026-03-11'],
        [true, 1, '2026-03-10'],
      ])
      const expected = await Promise.all(
        [usual, instant, later].map(async id => (await harness.getWithdrawal(id)).expectedAt),
      )
      expect(expected).toEqual(['2026-03-12T22:59:59.999Z', '2026-03-10T22:59:59.999Z', '2026-03-12T22:59:59.999Z'])
      await run('send-payout-batches')
      const [file, ...others] = bank.outbox.values()
      expect(others).toEqual([])
      expect(file).toContain('<LclInstrm><Cd>INST</Cd></LclInstrm>')
      expect(file).toContain(await referenceOf(instant))
    })

    test('which is that of the rail unless the tier asks for one, and standard if the rail cannot pay instantly', async () => {
      useRail({ isInstant: true, schedule: (now, isInstant = true) => euroRail().schedule(now, isInstant) })
      await harness.addWithdrawal({ currency: 'EUR', net: 5_000 })
      await harness.addWithdrawal({ currency: 'EUR', net: 6_000, tier: 'Slow EU' })
      harness.clock.advance({ seconds: 30 })
      await run('submit-withdrawals')
      expect((await inBatches()).map(([isInstant, count]) => [isInstant, count]).sort()).toEqual([
        [false, 1],
        [true, 1],
      ])
      useRail({ canBeInstant: false })
      await harness.addWithdrawal({ currency: 'EUR', net: 7_000, tier: 'Fast EU' })
      harness.clock.advance({ seconds: 30 })
      await run('submit-withdrawals')
      expect((await inBatches()).map(([isInstant, count]) => [isInstant, count])).toEqual([[false, 1]])
    })
  })

  test('of a partner with an own account is paid from that', async () => {
    const own = { name: 'Own', account: { accountHolder: 'Own', iban: 'DE02120300000000202051' } }
    useRail({ debtors: { default: settings.debtors.default, [harness.partner.id]: own } })
    await sent(5_000)
    expect((await batches()).map(({ debtor }) => debtor)).toEqual([harness.partner.id])
  })

  test('is sent once, however often and concurrently the task runs', async () => {
    await sent(5_000, 6_000)
    await Promise.all([run('send-payout-batches'), run('send-payout-batches')])
    expect(bank.outbox.size).toBe(1)
    expect([...bank.payments().values()].map(amounts => amounts.length)).toEqual([1, 1])
  })

  test.each(['before the file is delivered', 'after the file was delivered, but before that is recorded'])(
    'whose worker is killed %s is in one file, and can no longer be changed',
    async when => {
      let isKilled = false
      const put: FileBank['put'] = async (name, bytes) => {
        if (isKilled) return await bank.put(name, bytes)
        isKilled = true
        if (when.startsWith('after')) await bank.put(name, bytes)
        throw new Error('killed')
      }
      useRail({ delivery: async () => deliveryWith(put) })
      const [payment] = await submitted(5_000, 6_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await expect(run('send-payout-batches')).rejects.toThrow('killed')
      const removal = harness.inTx(tx =>
        remove(tx, { payment: payment?.id ?? '', reason: 'Too late', now: harness.clock.now() }),
      )
      await expect(removal).rejects.toThrow('is being delivered')
      harness.clock.advance({ minutes: 1 })
      await run('send-payout-batches')
      expect((await batches())[0]).toMatchObject({ status: 'sent' })
      expect([bank.deliveries, bank.outbox.size]).toEqual([1, 1])
      expect([...bank.payments().values()]).toEqual([[expect.any(BigInt)], [expect.any(BigInt)]])
    },
  )

  test('that cannot be written is not sent, and can still be changed', async () => {
    const write = async function* () {
      yield 'half a file'
      throw new Error('This payment does not fit')
    }
    useRail({ format: { ...settings.format, write } })
    await submitted(5_000)
    harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
    await expect(run('send-payout-batches')).rejects.toThrow('does not fit')
    expect(bank.outbox.size).toBe(0)
    expect((await batches())[0]).toMatchObject({ status: 'approved', sendingAt: null })
  })

  describe('that is sent after the day of its cut-off', () => {
    const friday = new Date('2026-03-13T09:00:00.000Z')
    const monday = new Date('2026-03-16T22:59:59.999Z')

    test.each([
      ['as it was held', { held: true, status: 'approved' as const }],
      ['as it was approved late', { held: false, status: 'building' as const }],
    ])('%s takes the next possible value date, and its withdrawals say so', async (_, { held, status }) => {
      useRail(status === 'building' ? { automatic: null } : {})
      const [payment] = await submitted(5_000)
      const [batch] = await batches()
      const batchId = batch?.id ?? ''
      if (held) await harness.inTx(tx => setHeld(tx, { batchId, held: true }))
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await run('send-payout-batches')
      expect(bank.outbox.size).toBe(0)
      harness.clock.set(friday)
      if (held) await harness.inTx(tx => setHeld(tx, { batchId, held: false }))
      else {
        for (const person of ['Ada', 'Bob'])
          await harness.inTx(tx => approve(tx, { batchId, person, now: harness.clock.now() }))
      }
      await run('send-payout-batches')
      expect((await batches())[0]).toMatchObject({ status: 'sent', valueDate: '2026-03-13' })
      expect(bank.outbox.get(`${batch?.messageId}.txt`)).toContain(`batch;${batch?.messageId};2026-03-13;1;5000`)
      expect((await harness.getWithdrawal(payment?.id ?? '')).expectedAt).toBe(monday.toISOString())
    })

    test('keeps its value date and its bytes if its file may be with the bank', async () => {
      let isKilled = false
      const put: FileBank['put'] = async (name, bytes) => {
        const delivered = await bank.put(name, bytes)
        if (isKilled) return delivered
        isKilled = true
        throw new Error('killed')
      }
      useRail({ delivery: async () => deliveryWith(put), format: { ...settings.format } })
      const [payment] = await submitted(5_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await expect(run('send-payout-batches')).rejects.toThrow('killed')
      harness.clock.set(friday)
      // A sender that cannot write it, either, does not free it: an earlier one has delivered it.
      const { write } = settings.format
      settings.format.write = async function* () {
        yield 'half a file'
        throw new Error('cannot be read now')
      }
      await expect(run('send-payout-batches')).rejects.toThrow('cannot be read now')
      expect((await batches())[0]).toMatchObject({ status: 'approved', sendingAt: expect.any(Date) })
      settings.format.write = write
      await run('send-payout-batches')
      expect((await batches())[0]).toMatchObject({ status: 'sent', valueDate: '2026-03-10' })
      expect([bank.deliveries, bank.outbox.size]).toEqual([1, 1])
      expect((await harness.getWithdrawal(payment?.id ?? '')).expectedAt).toBe('2026-03-11T22:59:59.999Z')
    })
  })

  describe('of a bank that confirms no payments, whose delivery is recorded after the day of its cut-off,', () => {
    async function lateBatch() {
      let isKilled = false
      const put: FileBank['put'] = async (name, bytes) => {
        if (isKilled) return await bank.put(name, bytes)
        isKilled = true
        throw new Error('killed')
      }
      useRail({ delivery: async () => deliveryWith(put), countsAsPaid: (valueDate, today) => today > valueDate })
      const [payment] = await submitted(5_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await expect(run('send-payout-batches')).rejects.toThrow('killed')
      // The machine is down for three days.
      harness.clock.set(new Date('2026-03-13T16:00:00.000Z'))
      await run('send-payout-batches')
      expect((await batches())[0]).toMatchObject({ status: 'sent', valueDate: '2026-03-10' })
      for (let minute = 0; minute < 2; minute++) {
        harness.clock.advance({ minutes: 1 })
        await run('send-payout-batches')
        await run('read-rail-reports')
      }
      const open = harness.db.selectFrom('payoutExceptions').select(['id', 'kind', 'reference', 'reason'])
      const [exception, ...others] = await open.where('rail', '=', settings.name).execute()
      expect(others).toEqual([])
      expect(exception).toMatchObject({
        ...{ kind: 'blocked', reference: (await batches())[0]?.messageId },
        reason: expect.stringContaining('recorded as sent on 2026-03-13, but its cut-off was on 2026-03-10'),
      })
      expect(await statusOf(payment?.id ?? '')).toBe('submitted')
      return { id: payment?.id ?? '', exceptionId: exception?.id ?? '' }
    }
    const close = async (exceptionId: string, decision: 'ignore' | 'give_back') => {
      const common = { exceptionId, person: 'Ada', note: 'the bank says so', now: harness.clock.now() }
      await harness.inTx(tx => closeException(tx, { ...common, decision }))
    }

    test('is paid once the operator knows that the bank executes the file, and not before its next value date is over', async () => {
      const { id, exceptionId } = await lateBatch()
      await close(exceptionId, 'ignore')
      // The next value date after the cut-off of Friday is Monday.
      for (const [now, status] of [
        ['2026-03-16T12:00:00.000Z', 'submitted'],
        ['2026-03-17T12:00:00.000Z', 'paid'],
      ] as const) {
        harness.clock.set(new Date(now))
        await run('send-payout-batches')
        await run('read-rail-reports')
        expect(await statusOf(id)).toBe(status)
      }
      expect((await batches())[0]).toMatchObject({ status: 'settled' })
      expect(await harness.disagreements()).toEqual([])
    })

    test('gives the money back if the bank has refused the file', async () => {
      const { id, exceptionId } = await lateBatch()
      await close(exceptionId, 'give_back')
      await run('send-payout-batches')
      await run('read-rail-reports')
      expect(await statusOf(id)).toBe('failed')
      expect((await batches())[0]).toMatchObject({ status: 'settled' })
    })
  })

  test('that is full is closed, and the next one is opened', async () => {
    useRail({ format: { ...settings.format, paymentsMax: 2 } })
    await sent(5_000, 6_000, 7_000)
    expect((await batches()).map(({ paymentCount }) => paymentCount).sort()).toEqual([1, 2])
    expect(bank.payments().size).toBe(3)
  })

  test.each([
    ['a payment', { paymentMax: 6_999n, batchMax: 1_000_000n, dayMax: 1_000_000n }],
    ['its sum', { paymentMax: 7_000n, batchMax: 11_999n, dayMax: 1_000_000n }],
    ['the sum of the day', { paymentMax: 7_000n, batchMax: 12_000n, dayMax: 11_999n }],
  ])('waits for people if %s is above the limit for automatic approval', async (_, automatic) => {
    useRail({ automatic })
    await sent(5_000, 7_000)
    expect((await batches())[0]).toMatchObject({ status: 'building', closedAt: harness.clock.now() })
    expect(bank.outbox.size).toBe(0)
  })
})

test('a payment that the format cannot write fails at once, and the member has the money back', async () => {
  const { id } = await harness.addWithdrawal({ currency: 'EUR', account: goodAccount })
  harness.clock.advance({ seconds: 30 })
  await run('submit-withdrawals')
  expect(await harness.getWithdrawal(id)).toMatchObject({ status: 'failed' })
  expect((await harness.getWithdrawal(id)).timeline.at(-1).reason).toBe('This bank pays only to IBANs')
  expect(await batches()).toEqual([])
})

describe('a bank file', () => {
  test('counts once, under any name, and so does each record of a message', async () => {
    const [payment] = await sent(5_000)
    const lines = ['head;M1', `paid;${payment?.reference};5000EUR`]
    await answer(...lines)
    await answer(...lines)
    expect(bank.archived).toHaveLength(2)
    // The same message, with one record more.
    await answer(...lines, 'entry;700EUR;;E1')
    await answer(...lines, 'entry;700EUR;;E1', 'entry;800EUR;;E2')
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['money_in', 'money_in'])
    const records = await harness.db
      .selectFrom('bankRecords')
      .select('entryKey')
      .where('rail', '=', settings.name)
      .execute()
    expect(records).toHaveLength(3)
    expect(await statusOf(payment?.id ?? '')).toBe('paid')
  })

  test('of a bank that uses a message id and an entry number again counts by its amount and day', async () => {
    const entries = ['entry;700EUR;;1;2026-03-09', 'entry;800EUR;;1;2026-03-10', 'entry;800EUR;;1;2026-03-11']
    for (const entry of entries) await answer('head;STATEMENT', entry)
    // The same messages, in other bytes.
    for (const entry of entries) await answer('head;STATEMENT', `${entry};repeated`)
    const { rows } = await sql`
      select kind, amount from payout_exceptions where rail = ${settings.name} order by id`.execute(harness.db)
    expect(rows).toEqual([
      { kind: 'money_in', amount: 700n },
      { kind: 'money_in', amount: 800n },
      { kind: 'money_in', amount: 800n },
    ])
  })

  test('that is cut off half way changes nothing, and counts once it is whole', async () => {
    const [first, second] = await sent(5_000, 6_000)
    const whole = ['head;M1', `paid;${first?.reference};5000EUR`, `paid;${second?.reference};6000EUR`]
    bank.inbox.set('half.txt', whole.slice(0, 2).join('\n'))
    await run('read-bank-files')
    await run('read-rail-reports')
    expect(bank.rejected.get('half.txt')).toBe(
      'Line 2: The file ends before its last line.\nNothing of this file was booked.\n',
    )
    expect(await statusOf(first?.id ?? '')).toBe('submitted')
    await answer(...whole)
    expect(await statusOf(first?.id ?? '')).toBe('paid')
  })

  test.each([
    ['another account’s statement', [`head;M1;DE02120300000000202051`], /…2051, which is not one of this rail/],
    ['a balance in another currency', [`head;M1;${ownIban}`, 'balance;2026-03-10;5GBP'], /Line 2: .* GBP, but .* EUR/],
    ['a record that is none', ['head;M1', 'nonsense'], /Line 2: "nonsense"/],
    ['no message', [], /holds no message/],
  ])('with %s is refused whole, with its line and reason', async (_, lines, problem) => {
    const [payment] = await sent(5_000)
    await answer(
      ...lines.slice(0, 1),
      ...(lines.length > 0 ? [`paid;${payment?.reference};5000EUR`] : []),
      ...lines.slice(1),
    )
    const [report] = bank.rejected.values()
    expect(report?.replace('Line 3', 'Line 2')).toMatch(problem)
    expect(await statusOf(payment?.id ?? '')).toBe('submitted')
    expect(await openExceptions()).toEqual([])
    const files = await harness.db
      .selectFrom('bankFiles')
      .select(['status', 'problem'])
      .where('rail', '=', settings.name)
      .execute()
    expect(files).toEqual([{ status: 'rejected', problem: expect.stringMatching(/./) }])
  })

  test('opens an exception for each answer that does not fit, and the other answers count', async () => {
    const [first, second, third] = await sent(5_000, 6_000, 7_000)
    await answer(
      'head;M1',
      'paid;MMAAAAAAAAAAAAAA;5000EUR',
      `paid;${first?.reference};5001EUR`,
      `paid;${second?.reference};6000GBP`,
      `failed;${second?.reference};6000EUR;DUPL`,
      `failed;${second?.reference};6000EUR;AM04`,
      `paid;${third?.reference};7000EUR`,
      `failed;${third?.reference};7000EUR;AC04`,
      'batch;MMBAAAAAAAAAAAAAA;rejected',
      'entry;-250EUR;fees;E1',
    )
    expect((await openExceptions()).map(({ line, kind }) => [line, kind])).toEqual([
      // What is about no partner comes first.
      [2, 'unmatched'],
      [3, 'amount'],
      [4, 'amount'],
      [5, 'duplicate'],
      [6, 'float'],
      [8, 'contradiction'],
      [9, 'unmatched'],
      [10, 'money_out'],
    ])
    expect([
      await statusOf(first?.id ?? ''),
      await statusOf(second?.id ?? ''),
      await statusOf(third?.id ?? ''),
    ]).toEqual([...['submitted', 'submitted', 'paid']])
    expect(await harness.disagreements()).toEqual([])
  })

  test('about a payment that is in no sent batch is a contradiction', async () => {
    const [payment] = await submitted(5_000)
    await answer('head;M1', `paid;${payment?.reference};5000EUR`)
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['contradiction'])
    expect(await statusOf(payment?.id ?? '')).toBe('submitted')
    // Its file would still pay it.
    const { id: exceptionId } = await harness.db
      .selectFrom('payoutExceptions')
      .select('id')
      .where('rail', '=', settings.name)
      .executeTakeFirstOrThrow()
    const common = { exceptionId, person: 'Ada', note: 'not sent', now: harness.clock.now() }
    const giveBack = harness.inTx(tx => closeException(tx, { ...common, decision: 'give_back' }))
    await expect(giveBack).rejects.toThrow('has not been sent; take it out of its batch')
  })

  test('that rejects a batch gives the money of each payment back', async () => {
    const [first, second] = await sent(5_000, 6_000)
    const [batch] = await batches()
    await answer('head;M1', `batch;${batch?.messageId};rejected;FF01`)
    expect([await statusOf(first?.id ?? ''), await statusOf(second?.id ?? '')]).toEqual(['failed', 'failed'])
    expect((await batches())[0]).toMatchObject({ status: 'rejected' })
    await answer('head;M2', `batch;${batch?.messageId};rejected;FF01`)
    expect(await openExceptions()).toEqual([])
    expect(await harness.disagreements()).toEqual([])
  })

  test('that rejects a batch and its payments keeps the reasons of the payments, which restrict their members', async () => {
    const [first, second] = await sent(5_000, 6_000)
    const [batch] = await batches()
    await answer('head;M1', `batch;${batch?.messageId};rejected;FF01`, `failed;${first?.reference};5000EUR;AC04`)
    expect((await harness.getWithdrawal(first?.id ?? '')).timeline.at(-1).reason).toBe('AC04 The account is closed')
    expect(await restrictionsOf(first?.id ?? '')).toMatchObject({ accountRefused: 'AC04 The account is closed' })
    expect((await harness.getWithdrawal(second?.id ?? '')).timeline.at(-1).reason).toMatch(/^FF01/)
    expect((await batches())[0]).toMatchObject({ status: 'rejected' })
  })

  test('that rejects a batch whose payments have all failed contradicts nothing', async () => {
    const [payment] = await sent(5_000)
    const [batch] = await batches()
    await answer('head;M1', `failed;${payment?.reference};5000EUR;AC04`)
    await answer('head;M2', `batch;${batch?.messageId};rejected;FF01`)
    expect(await openExceptions()).toEqual([])
    expect((await batches())[0]).toMatchObject({ status: 'settled' })
  })

  test.each([
    ['acknowledges', 'acknowledged', 'acknowledged'],
    ['rejects', 'rejected;FF01', 'rejected'],
    ['answers each payment of', null, 'settled'],
  ])('that %s a batch before its delivery is recorded has the same effect as after it', async (_, said, status) => {
    let isKilled = false
    const put: FileBank['put'] = async (name, bytes) => {
      const delivered = await bank.put(name, bytes)
      if (isKilled) return delivered
      isKilled = true
      throw new Error('killed')
    }
    useRail({ delivery: async () => deliveryWith(put) })
    const [payment] = await submitted(5_000)
    harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
    await expect(run('send-payout-batches')).rejects.toThrow('killed')
    const [batch] = await batches()
    await answer('head;M1', said === null ? `paid;${payment?.reference};5000EUR` : `batch;${batch?.messageId};${said}`)
    expect((await batches())[0]).toMatchObject({ status: 'approved' })
    await run('send-payout-batches')
    await run('send-payout-batches')
    expect((await batches())[0]).toMatchObject({ status, sentAt: harness.clock.now(), fileSha256: expect.any(String) })
    expect(bank.deliveries).toBe(1)
  })

  describe('that answers a batch whose export was killed before it was recorded: the next export', () => {
    let folder: string
    beforeEach(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'midmonth-export-'))
    })
    afterEach(() => rm(folder, { recursive: true }))

    test.each([
      ['accepts the batch', (_: string, batch: string) => `batch;${batch};acknowledged`, 'acknowledged'],
      ['rejects the batch', (_: string, batch: string) => `batch;${batch};rejected;FF01`, 'rejected'],
      ['pays a payment', (payment: string) => `paid;${payment};5000EUR`, 'sent'],
      ['has yet to decide about a payment', (payment: string) => `pending;${payment};5000EUR`, 'sent'],
      ['books another sum', (_: string, batch: string) => `entry;-1EUR;${batch}`, 'sent'],
    ])('writes no second file if the bank %s, and the batch counts as sent', async (_, say, status) => {
      useRail({ delivery: null })
      const [payment] = await submitted(5_000, 6_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await run('send-payout-batches')
      const [batch] = await batches()
      const batchId = batch?.id ?? ''
      // What an export leaves that is killed after it wrote the file.
      const now = harness.clock.now()
      const leaves = { kind: 'export', person: 'Ada' } as const
      const claiming = { rail: settings, batchId, leaves, now }
      const claim = await harness.inTx(tx => claimForSending(tx, claiming))
      if (claim === undefined) throw new Error('The batch was not claimed')
      const bytes = settings.format.write(toWrite(harness.db, { rail: settings, batch: claim }))
      await putByHand(path.join(folder, claim.fileName), bytes)
      expect(await readdir(folder)).toEqual([`${batch?.messageId}.txt`])

      const lines = ['head;M1', say(payment?.reference ?? '', batch?.messageId ?? ''), 'end'].join('\n')
      const imported = await importBankFile(harness.db, {
        ...{ rail: settings, name: 'answer.txt', size: lines.length, now: harness.clock.now() },
        bytes: () => Readable.from([Buffer.from(lines)]),
      })
      expect(imported).toMatchObject({ result: 'imported' })
      // The operator has carried it to the bank.
      await rm(path.join(folder, `${batch?.messageId}.txt`))
      const again = await exportBatch(context, { rail: settings, batchId, folder, person: 'Ada' })
      expect(again).toMatchObject({ path: null, name: `${batch?.messageId}.txt` })
      expect(await readdir(folder)).toEqual([])
      expect((await batches())[0]).toMatchObject({ status, fileSha256: again?.sha256, sentAt: harness.clock.now() })
      expect(await exportBatch(context, { rail: settings, batchId, folder, person: 'Ada' })).toBeUndefined()
    })
  })

  describe('an export that was killed before it was recorded', () => {
    let folder: string
    let other: string
    beforeEach(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'midmonth-export-'))
      other = await mkdtemp(path.join(tmpdir(), 'midmonth-export-'))
    })
    afterEach(async () => {
      for (const each of [folder, other]) await rm(each, { recursive: true })
    })

    /** Leaves its file in `folder`. */
    async function killedExport() {
      useRail({ delivery: null })
      await submitted(5_000, 6_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await run('send-payout-batches')
      const [batch] = await batches()
      const asked = { rail: settings, batchId: batch?.id ?? '', person: 'Ada' }
      let asksForTime = 0
      const now = () => {
        // The claim asks first, then the record that the file was sent.
        if (asksForTime++ > 0) throw new Error('killed')
        return harness.clock.now()
      }
      await expect(exportBatch({ ...context, now }, { ...asked, folder })).rejects.toThrow('killed')
      const name = `${batch?.messageId}.txt`
      expect(await readdir(folder)).toEqual([name])
      return { asked, name, file: path.join(folder, name) }
    }

    test('can be finished where its file is, which is not written again', async () => {
      const { asked, name, file } = await killedExport()
      const before = await stat(file)
      expect(await exportBatch(context, { ...asked, folder })).toMatchObject({ name, path: file, isNew: false })
      expect((await stat(file)).mtimeMs).toBe(before.mtimeMs)
      expect((await batches())[0]).toMatchObject({ status: 'sent', sentAt: harness.clock.now() })
    })

    test('cannot be repeated where its file is not, unless the operator says that it was not sent', async () => {
      const { asked, name, file } = await killedExport()
      const first = await readFile(file, 'utf8')
      const refusal = `An export into ${hostname()}:${folder} broke off, so the bank may have the file.`
      for (let attempt = 0; attempt < 2; attempt++)
        await expect(exportBatch(context, { ...asked, folder: other })).rejects.toThrow(refusal)
      const marked = harness.inTx(tx => markExported(tx, { ...asked, now: harness.clock.now() }))
      await expect(marked).rejects.toThrow(/broke off.*finish it with midmonth payouts export/)
      // The operator has carried it to the bank, or it was lost.
      await rm(file)
      await expect(exportBatch(context, { ...asked, folder })).rejects.toThrow(refusal)
      expect([await readdir(folder), await readdir(other)]).toEqual([[], []])
      expect((await batches())[0]).toMatchObject({ status: 'approved' })

      const missing = { ...asked, folder: path.join(other, 'missing'), isFirstUnsent: true }
      await expect(exportBatch(context, missing)).rejects.toThrow('The file was not written')
      // What wrote nothing is forgotten.
      await expect(exportBatch(context, { ...asked, folder: other })).rejects.toThrow(refusal)
      expect(await exportBatch(context, { ...asked, folder: other, isFirstUnsent: true })).toMatchObject({
        isNew: true,
      })
      expect(await readFile(path.join(other, name), 'utf8')).toBe(first)
      expect((await batches())[0]).toMatchObject({ status: 'sent' })
    })

    test('and wrote nothing can be repeated anywhere', async () => {
      useRail({ delivery: null })
      await submitted(5_000)
      harness.clock.set(new Date('2026-03-10T14:00:00.000Z'))
      await run('send-payout-batches')
      const [batch] = await batches()
      const asked = { rail: settings, batchId: batch?.id ?? '', person: 'Ada' }
      await expect(exportBatch(context, { ...asked, folder: path.join(folder, 'missing') })).rejects.toThrow(
        NotDelivered,
      )
      expect(await exportBatch(context, { ...asked, folder: other })).toMatchObject({ isNew: true })
    })
  })

  test('that takes a batch for a duplicate gives nothing back', async () => {
    const [payment] = await sent(5_000)
    const [batch] = await batches()
    await answer('head;M1', `batch;${batch?.messageId};rejected;AM05`)
    expect(await statusOf(payment?.id ?? '')).toBe('submitted')
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['duplicate'])
  })

  test('that books a batch as a whole pays its payments, except those that had failed', async () => {
    const [first, second] = await sent(5_000, 6_000)
    const [batch] = await batches()
    await answer('head;M1', `failed;${second?.reference};6000EUR;AC04`)
    await answer('head;M2', `entry;-11000EUR;${batch?.messageId};E1`)
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['paid_after_give_back'])
    expect(await statusOf(first?.id ?? '')).toBe('submitted')
    await answer('head;M3', `entry;-5000EUR;${batch?.messageId};E1`)
    expect(await statusOf(first?.id ?? '')).toBe('paid')
    expect((await batches())[0]).toMatchObject({ status: 'settled' })
  })

  describe('that books the net sum of a batch before it reports which payments failed', () => {
    const debit = (messageId: string, bankReference = 'E1') => `entry;-5000EUR;${messageId};${bankReference}`

    test('is matched again once the bank has reported that, and the statement repeats the debit without effect', async () => {
      const [first, second] = await sent(5_000, 6_000)
      const messageId = (await batches())[0]?.messageId ?? ''
      await answer('head;M1', debit(messageId))
      await answer('head;M2', debit(messageId))
      expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['amount'])
      expect(await statusOf(first?.id ?? '')).toBe('submitted')
      await answer('head;M3', `batch;${messageId};partly`, `failed;${second?.reference};6000EUR;AC04`)
      expect([await statusOf(first?.id ?? ''), await statusOf(second?.id ?? '')]).toEqual(['paid', 'failed'])
      expect((await batches())[0]).toMatchObject({ status: 'settled' })
      await answer('head;M4', debit(messageId))
      const { rows } = await sql`
        select kind, decision, closed_by from payout_exceptions where rail = ${settings.name}`.execute(harness.db)
      expect(rows).toEqual([{ kind: 'amount', decision: 'applied', closedBy: 'system' }])
      expect(await harness.disagreements()).toEqual([])
    })

    test('twice keeps the exception of the second debit, as money that left', async () => {
      const [, second] = await sent(5_000, 6_000)
      const messageId = (await batches())[0]?.messageId ?? ''
      await answer('head;M1', debit(messageId), debit(messageId, 'E2'))
      await answer('head;M2', `failed;${second?.reference};6000EUR;AC04`)
      const { rows } = await sql`
        select kind, decision from payout_exceptions where rail = ${settings.name} order by id`.execute(harness.db)
      expect(rows).toEqual([
        { kind: 'amount', decision: 'applied' },
        { kind: 'money_out', decision: null },
      ])
    })

    test('is matched again within a minute if the operator gives the payments back', async () => {
      const [first, second] = await sent(5_000, 6_000)
      const messageId = (await batches())[0]?.messageId ?? ''
      await answer('head;M1', debit(messageId), `failed;${second?.reference};6000EUR;AM04`)
      const exceptionId = await harness.db
        .selectFrom('payoutExceptions')
        .select('id')
        .where('rail', '=', settings.name)
        .where('kind', '=', 'float')
        .executeTakeFirstOrThrow()
      const common = { exceptionId: exceptionId.id, person: 'Ada', note: 'not paid', now: harness.clock.now() }
      await harness.inTx(tx => closeException(tx, { ...common, decision: 'give_back' }))
      await run('send-payout-batches')
      await run('read-rail-reports')
      expect([await statusOf(first?.id ?? ''), await statusOf(second?.id ?? '')]).toEqual(['paid', 'failed'])
    })
  })

  test('with a check of the names changes no payment; the result stays with the batch', async () => {
    const [payment] = await sent(5_000)
    const [batch] = await batches()
    await answer('head;M1', `name-check;${batch?.messageId};RCVC`, `name-check;${batch?.messageId};RVNM`)
    expect(await statusOf(payment?.id ?? '')).toBe('submitted')
    expect((await batches())[0]).toMatchObject({ status: 'sent', nameCheck: 'RVNM' })
  })

  test.each([
    [['RVMC', 'RVNM', 'RVMC'], 'RVNM'],
    [['RVNA', 'RVMC', 'RVNA'], 'RVMC'],
    [['RVNA', 'RCVC'], 'RVNA'],
    [['RVNC', 'RVCM', 'RVMC'], 'RVCM'],
  ])('with the checks of names %j leaves the worst one with the batch', async (codes, worst) => {
    await sent(5_000)
    const [batch] = await batches()
    await answer('head;M1', ...codes.map(code => `name-check;${batch?.messageId};${code}`))
    expect((await batches())[0]).toMatchObject({ nameCheck: worst })
  })

  test('with texts of 8,000 characters is imported, and its message counts once', async () => {
    const [first, second, third] = await sent(5_000, 6_000, 7_000)
    const { messageId } = (await batches())[0] ?? {}
    // Characters that PostgreSQL cannot compress.
    const long = () => randomBytes(4_000).toString('hex')
    const [message, reference, bankReference, code] = [long(), long(), long(), long()]
    const lines = [
      `head;${message}`,
      `failed;${first?.reference};5000EUR;${code};${bankReference}`,
      `paid;${second?.reference};6000EUR;;${bankReference};2026-03-12`,
      `returned;${reference};1EUR;${code};${bankReference};2026-03-12`,
      `entry;700EUR;${reference};${bankReference};2026-03-12;${long()}`,
      `entry;-700EUR;${messageId};${bankReference};2026-03-12`,
      `name-check;${messageId};${code}`,
      `batch;${reference};rejected;${code}`,
    ]
    await answer(...lines)
    await answer(...lines, `paid;${third?.reference};7000EUR`)
    expect(bank.archived).toHaveLength(2)
    expect(await Promise.all([first, second, third].map(each => statusOf(each?.id ?? '')))).toEqual([
      ...['failed', 'paid', 'paid'],
    ])
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['unmatched', 'money_in', 'amount', 'unmatched'])
  })

  test('about an account with a number of 101 characters is refused', async () => {
    await answer(`head;M1;${ownIban.padEnd(101, ' ')}`, 'balance;2026-03-12;5EUR')
    expect([...bank.rejected.values()].join()).toMatch(/^The number of the account has more than 100 characters/)
  })
})

describe('an exception', () => {
  const close = async (exceptionId: string, decision: 'ignore' | 'give_back', tx?: Tx) => {
    const common = { exceptionId, person: 'Ada', note: 'decided', now: harness.clock.now() }
    if (tx !== undefined) return await closeException(tx, { ...common, decision })
    return await harness.inTx(each => closeException(each, { ...common, decision }))
  }
  const newest = async () =>
    await harness.db
      .selectFrom('payoutExceptions')
      .select(['id', 'closedBy'])
      .where('rail', '=', settings.name)
      .orderBy('id', 'desc')
      .executeTakeFirstOrThrow()

  test('that an importer and an operator close at once is closed once, without a deadlock', async () => {
    const [payment] = await sent(5_000)
    const { reference = '' } = payment ?? {}
    const blocked = { rail: settings.name, kind: 'blocked', fingerprint: 'blocked', reason: 'wait', reference } as const
    const now = harness.clock.now()
    await harness.inTx(tx => exceptions.open(tx, [blocked], now))
    const { id } = await newest()
    let closing: Promise<unknown> | undefined
    await harness.inTx(async tx => {
      await lockRail(tx, { rail: settings.name, for: 'records' })
      closing = close(id, 'ignore').then(
        () => 'closed',
        error => String(error),
      )
      await vi.waitFor(
        async () => {
          const { rows } = await sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
            harness.db,
          )
          expect(rows).toHaveLength(1)
        },
        { timeout: 15_000 },
      )
      await exceptions.closeBlocked(tx, { rail: settings.name, reference, now })
    })
    expect(await closing).toBe('Conflict: The exception is closed already')
    expect(await newest()).toMatchObject({ closedBy: 'system' })
  })

  test.each<[string, (reference: string) => string, boolean]>([
    ['that the bank paid another amount', reference => `paid;${reference};4900EUR`, true],
    ['about a payment that had not been sent', reference => `failed;${reference};5000EUR;AC04`, false],
  ])('%s gives nothing back once the bank has paid the payment', async (_, said, isSent) => {
    const [payment] = isSent ? await sent(5_000) : await submitted(5_000)
    const { id = '', reference = '' } = payment ?? {}
    await answer('head;M1', said(reference))
    harness.clock.set(new Date('2026-03-10T14:01:00.000Z'))
    await run('send-payout-batches')
    await answer('head;M2', `paid;${reference};5000EUR`)
    const exception = await newest()
    await expect(close(exception.id, 'give_back')).rejects.toThrow(`The bank has paid ${reference}`)
    await close(exception.id, 'ignore')
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('paid')
  })

  test('that contradicts a payment gives it back, even if the same file says that it was paid', async () => {
    const [payment] = await sent(5_000)
    const { id = '', reference = '' } = payment ?? {}
    await answer('head;M1', `paid;${reference};5000EUR`, `failed;${reference};5000EUR;AC04`)
    await close((await newest()).id, 'give_back')
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('returned')
  })

  test('about the debit of a batch gives nothing back, since the bank made some of the payments', async () => {
    const payments = await sent(5_000, 6_000)
    const [batch] = await batches()
    await answer('head;M1', `entry;-5000EUR;${batch?.messageId};E1`)
    await expect(close((await newest()).id, 'give_back')).rejects.toThrow('The bank has debited the batch')
    await answer('head;M2', `failed;${payments[1]?.reference};6000EUR;AC04`)
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'failed'])
  })

  test('about a debit of too little gives back the payments that are named, if they explain it exactly, and pays the others', async () => {
    const payments = await sent(5_000, 6_000, 7_000)
    const [batch] = await batches()
    await answer('head;M1', `entry;-5000EUR;${batch?.messageId};E1`)
    const { id: exceptionId } = await newest()
    const [first = '', second = '', third = ''] = payments.map(({ reference }) => reference)
    const giveBack = async (...references: string[]) => {
      const decided = { decision: 'give_back', references, person: 'Ada', note: 'by phone' } as const
      const asked = { exceptionId, ...decided, now: harness.clock.now() }
      await harness.inTx(tx => closeException(tx, asked))
    }
    await expect(giveBack(second)).rejects.toThrow(
      'The payments add up to 60.00 EUR, but the bank debited 130.00 EUR less than the batch',
    )
    await expect(giveBack(first, second, third)).rejects.toThrow('add up to 180.00 EUR')
    await expect(giveBack(second, 'MMAAAAAAAAAAAAAA')).rejects.toThrow('There is no payment MMAAAAAAAAAAAAAA')
    await giveBack(third, second, second)
    await run('read-rail-reports')
    expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['paid', 'failed', 'failed'])
    expect(await newest()).toMatchObject({ id: exceptionId, closedBy: 'Ada' })
    expect((await batches())[0]).toMatchObject({ status: 'settled' })
    await expect(giveBack(first)).rejects.toThrow('The exception is closed already')
    expect(await harness.disagreements()).toEqual([])
  })

  test('about a debit of too much, or about one payment, takes no names of payments', async () => {
    const payments = await sent(5_000, 6_000)
    const [batch] = await batches()
    const references = [payments[0]?.reference ?? '']
    const giveBack = async () => {
      const { id: exceptionId } = await newest()
      const decided = { decision: 'give_back', references, person: 'Ada', note: 'by phone' } as const
      const asked = { exceptionId, ...decided, now: harness.clock.now() }
      await harness.inTx(tx => closeException(tx, asked))
    }
    await answer('head;M1', `entry;-16000EUR;${batch?.messageId};E1`)
    await expect(giveBack()).rejects.toThrow('The bank did not debit less than the payments of')
    await answer('head;M2', `failed;${payments[1]?.reference};1EUR;AC04`)
    await expect(giveBack()).rejects.toThrow('Payments are named only if the bank has debited their batch')
  })

  test('about a batch is given back by as many statements for three payments as for one', async () => {
    const statements: number[] = []
    for (const nets of [[5_000], [5_000, 6_000, 7_000]]) {
      useRail({})
      harness.clock.set(tuesday)
      const payments = await sent(...nets)
      const [batch] = await batches()
      await answer(`head;M${nets.length}`, `batch;${batch?.messageId};rejected;AM05`)
      const { id } = await newest()
      let count = 0
      const counting: KyselyPlugin = {
        transformQuery({ node }) {
          count += 1
          return node
        },
        transformResult: async ({ result }) => result,
      }
      await harness.inTx(tx => close(id, 'give_back', tx.withPlugin(counting)))
      statements.push(count)
      await run('read-rail-reports')
      expect(await Promise.all(payments.map(each => statusOf(each.id)))).toEqual(nets.map(() => 'failed'))
      expect((await batches())[0]).toMatchObject({ status: 'settled' })
    }
    expect(statements[0]).toBeGreaterThan(0)
    expect(statements[1]).toBe(statements[0])
    expect(await harness.disagreements()).toEqual([])
  })
})

describe('a file about several accounts', () => {
  const ownDebtor = { name: 'Acme Two', account: { accountHolder: 'Acme Two', iban: 'DE02120300000000202051' } }
  const lines = [
    `head;M1;${ownIban}`,
    'entry;700EUR;a;1;2026-03-12',
    'head;M1;DE89370400440532013000',
    // In another currency, as accounts that are not ours can be.
    'entry;800USD;b;1;2026-03-12',
    'balance;2026-03-12;1USD',
    'head;M1;DE02120300000000202051',
    'entry;700EUR;c;1;2026-03-12',
    'end',
  ]
  const importLines = (all: string[]) =>
    importBankFile(harness.db, {
      ...{ rail: settings, name: 'statement.txt', size: 1, now: harness.clock.now() },
      bytes: () => Readable.from([Buffer.from(all.join('\n'))]),
    })
  const booked = async () =>
    (
      await harness.db
        .selectFrom('bankRecords')
        .select(['account', 'amount'])
        .where('rail', '=', settings.name)
        .execute()
    )
      .map(({ account, amount }) => `${account} ${amount}`)
      .sort()

  test('is booked to each account of the rail, and the others are counted', async () => {
    useRail({ debtors: { ...settings.debtors, [harness.partner.id]: ownDebtor } })
    expect(await importLines(lines)).toMatchObject({ result: 'imported', records: 2, skippedAccounts: 1 })
    expect(await booked()).toEqual(['DE02120300000000202051 700', `${ownIban} 700`])
    expect((await openExceptions()).map(({ reference }) => reference).sort()).toEqual(['a', 'c'])
  })

  test('is read again for an account that the rail has got since, and books nothing twice', async () => {
    expect(await importLines(lines)).toMatchObject({ result: 'imported', records: 1, skippedAccounts: 2 })
    expect(await importLines(lines)).toMatchObject({ result: 'repeated', records: 1, skippedAccounts: 2 })
    settings = { ...settings, debtors: { ...settings.debtors, [harness.partner.id]: ownDebtor } }
    expect(await importLines(lines)).toMatchObject({ result: 'imported', records: 2, skippedAccounts: 1 })
    expect(await booked()).toEqual(['DE02120300000000202051 700', `${ownIban} 700`])
    expect(await openExceptions()).toHaveLength(2)
  })

  test('none of which is of the rail is refused, and books nothing', async () => {
    expect(await importLines(lines.slice(2, 5).concat('head;M1;DE02100100100006820101', 'end'))).toEqual({
      ...{ result: 'rejected', line: null },
      problem: 'The file is about the accounts …3000, …0101, none of which is of this rail',
    })
    expect(await booked()).toEqual([])
  })

  describe('with one IBAN in several currencies', () => {
    const statementIn = (currency: string, { says }: { says: 'account' | 'balance' }) => {
      const [ofAccount, ofBalance] = says === 'account' ? [`<Ccy>${currency}</Ccy>`, ''] : ['', balanceIn(currency)]
      const entry = `<Ntry><Amt Ccy="${currency}">7.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts>BOOK</Sts><BookgDt><Dt>2026-03-12</Dt></BookgDt></Ntry>`
      return `<Stmt><Acct><Id><IBAN>${ownIban}</IBAN></Id>${ofAccount}</Acct>${ofBalance}${entry}</Stmt>`
    }
    const balanceIn = (currency: string) =>
      `<Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="${currency}">1.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-12</Dt></Dt></Bal>`
    beforeEach(() => useRail({ format: { ...settings.format, read: sepaFormat().read } }))
    const importStatements = (...statements: string[]) => {
      const head = '<Document><BkToCstmrStmt><GrpHdr><MsgId>M1</MsgId></GrpHdr>'
      return importLines([`${head}${statements.join('')}</BkToCstmrStmt></Document>`])
    }

    test.each(['account', 'balance'] as const)('is booked in that of the rail only, as the %s says', async says => {
      const statements = (['USD', 'EUR'] as const).map(currency => statementIn(currency, { says }))
      expect(await importStatements(...statements)).toMatchObject({ result: 'imported', skippedAccounts: 1 })
      expect(await booked()).toEqual([`${ownIban} 700`])
      expect(await importStatements(...statements)).toMatchObject({ result: 'repeated', skippedAccounts: 1 })
    })

    test('none of which is that of the rail is refused, and says so', async () => {
      expect(await importStatements(statementIn('USD', { says: 'account' }))).toMatchObject({
        problem: 'The file is about the account …6199 in USD, which is not one of this rail',
      })
    })
  })

  test('and none of them, as on a day without entries, is imported', async () => {
    expect(await importLines(['head;M2;', 'end'])).toMatchObject({ result: 'imported', records: 0 })
  })
})

describe('an archive of bank files', () => {
  const entry = { bank: 'E1', amount: 700n, direction: 'CRDT', bookedOn: '2026-03-12', details: '' } as const
  const statement = accountReport(
    { id: 'S1', at: tuesday },
    { kind: 'camt.053', iban: ownIban, entries: [entry, { ...entry, bank: 'E2' }] },
  )
  const importArchive = (...contents: string[]) => {
    useRail({ format: { ...settings.format, read: sepaFormat().read } })
    const bytes = zipOf(contents.map((content, index) => ({ name: `${index}.xml`, content })))
    return importBankFile(harness.db, {
      ...{ rail: settings, name: 'camt.zip', size: bytes.length, now: harness.clock.now() },
      bytes: () => Readable.from([bytes]),
    })
  }

  test('is imported as one file, and a message that is in two of its files counts once', async () => {
    expect(await importArchive(statement, `${statement}\n`)).toMatchObject({ result: 'imported', records: 4 })
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['money_in', 'money_in'])
  })

  test('books nothing if one of its files cannot be read', async () => {
    expect(await importArchive(statement, '<Document>')).toMatchObject({
      ...{ result: 'rejected', problem: expect.stringContaining('1.xml in the archive: Line 1: The XML is broken') },
    })
    expect(await openExceptions()).toEqual([])
  })
})

describe('an interim report', () => {
  test('acknowledges a batch and books nothing, so that the statement pays it', async () => {
    const [first] = await sent(5_000, 6_000)
    const { id = '', reference = '' } = first ?? {}
    const [batch] = await batches()
    for (const message of ['R1', 'R2'])
      await answer(
        `head;${message};${ownIban};camt.052`,
        `accepted;${reference};`,
        `batch;${batch?.messageId};acknowledged`,
      )
    expect((await batches())[0]).toMatchObject({ status: 'acknowledged' })
    expect(await statusOf(id)).toBe('submitted')
    const records = harness.db.selectFrom('bankRecords').select('bookedOn').where('rail', '=', settings.name)
    // What two reports say counts once.
    expect(await records.execute()).toEqual([{ bookedOn: null }, { bookedOn: null }])
    await answer(`head;S1;${ownIban};camt.053`, `entry;-11000EUR;${batch?.messageId};E1;2026-03-12`)
    expect(await statusOf(id)).toBe('paid')
    expect(await openExceptions()).toEqual([])
  })

  test('about a payment that has failed is an early warning, which comes once', async () => {
    const [payment] = await sent(5_000)
    const reference = payment?.reference ?? ''
    await answer('head;P1', `failed;${reference};5000EUR;AC04`)
    const before = (await openExceptions()).length
    for (const message of ['R1', 'R2', 'R3'])
      await answer(`head;${message};${ownIban};camt.052`, `accepted;${reference};`)
    expect((await openExceptions()).length - before).toBeLessThanOrEqual(1)
  })
})

describe('a booking', () => {
  const kinds = async () => (await openExceptions()).map(({ kind, reference }) => [kind, reference])
  /** The account by the bank, and the floats on it, at the end of 12 March. */
  const difference = async () => {
    const [day] = await listBalances(harness.db, settings, { daysMax: 1 })
    return day && day.bank - day.book
  }

  test('of a whole batch counts once in notice and statement; a second debit is an exception, and the balances differ by it', async () => {
    const [first] = await sent(5_000, 6_000)
    const [batch] = await batches()
    await answer(`head;N1;${ownIban}`, `entry;-11000EUR;${batch?.messageId};E1;2026-03-12`)
    await answer(`head;S1;${ownIban}`, `entry;-11000EUR;${batch?.messageId};E1;2026-03-12`)
    expect(await statusOf(first?.id ?? '')).toBe('paid')
    expect(await kinds()).toEqual([])
    harness.clock.set(new Date('2026-03-13T08:00:00.000Z'))
    await answer(`head;S2;${ownIban}`, `balance;2026-03-12;0EUR`)
    const before = (await difference()) ?? 0n
    await answer(
      `head;S3;${ownIban}`,
      `entry;-11000EUR;${batch?.messageId};E2;2026-03-12`,
      'balance;2026-03-12;-11000EUR',
    )
    await answer(`head;S4;${ownIban}`, `entry;-11000EUR;${batch?.messageId};E2;2026-03-12`)
    expect(await kinds()).toEqual([['money_out', batch?.messageId]])
    expect(await difference()).toBe(before - 11_000n)
    expect((await batches())[0]).toMatchObject({ status: 'settled' })
    expect(await harness.disagreements()).toEqual([])
  })

  test('of one payment counts once in notice and statement; a second debit or return is an exception', async () => {
    const [payment] = await sent(5_000)
    const { id = '', reference = '' } = payment ?? {}
    await answer('head;P1', `paid;${reference};5000EUR`)
    await answer('head;N1', `paid;${reference};5000EUR;;E1;2026-03-12`)
    await answer('head;S1', `paid;${reference};5000EUR;;E1;2026-03-12`)
    expect(await kinds()).toEqual([])
    await answer('head;S2', `paid;${reference};5000EUR;;E2;2026-03-12`, `paid;${reference};5000EUR;;E3;2026-03-12`)
    expect(await kinds()).toEqual([
      ['money_out', reference],
      ['money_out', reference],
    ])
    // While the second and third debit are undecided, the first two credits may reverse them.
    await answer('head;S3', `returned;${reference};5000EUR;AC04;E4;2026-03-12`)
    await answer('head;S4', `returned;${reference};5000EUR;AC04;E4;2026-03-12`)
    await answer('head;S5', `returned;${reference};5000EUR;AC04;E5;2026-03-13`)
    expect((await kinds()).slice(2)).toEqual([
      ['money_in', reference],
      ['money_in', reference],
    ])
    expect(await statusOf(id)).toBe('paid')
    await answer('head;S6', `returned;${reference};5000EUR;AC04;E6;2026-03-13`)
    expect((await kinds()).length).toBe(4)
    expect(await statusOf(id)).toBe('returned')
    await answer('head;S7', `returned;${reference};5000EUR;AC04;E7;2026-03-14`)
    expect((await kinds()).at(-1)).toEqual(['money_in', reference])
    // The member keeps what was paid once and must not have it twice.
    const { id: exceptionId } = await harness.db
      .selectFrom('payoutExceptions')
      .select('id')
      .where('rail', '=', settings.name)
      .orderBy('id')
      .executeTakeFirstOrThrow()
    const common = { exceptionId, person: 'Ada', note: 'twice', now: harness.clock.now() }
    const giveBack = harness.inTx(tx => closeException(tx, { ...common, decision: 'give_back' }))
    await expect(giveBack).rejects.toThrow('is closed with book or ignore')
  })

  test('without a reference of the bank is told from the second one by its day and its place in the message', async () => {
    const [payment] = await sent(5_000)
    const reference = payment?.reference ?? ''
    await answer('head;N1', `paid;${reference};5000EUR;;;2026-03-12`)
    await answer('head;S1', `paid;${reference};5000EUR;;;2026-03-12`)
    expect(await kinds()).toEqual([])
    await answer('head;S2', `paid;${reference};5000EUR;;;2026-03-12`, `paid;${reference};5000EUR;;;2026-03-12`)
    await answer('head;S3', `paid;${reference};5000EUR;;;2026-03-13`)
    expect(await kinds()).toEqual([
      ['money_out', reference],
      ['money_out', reference],
    ])
  })

  test('counts once in a notice and a statement of different days, only under the bank’s reference and within five days', async () => {
    const [payment] = await sent(5_000)
    const reference = payment?.reference ?? ''
    const paid = (bankReference: string, day: string) => `paid;${reference};5000EUR;;${bankReference};${day}`
    await answer(`head;N1;${ownIban};camt.054`, paid('E1', '2026-03-12'))
    await answer(`head;S1;${ownIban};camt.053`, paid('E1', '2026-03-16'))
    expect(await kinds()).toEqual([])
    for (const [message, bankReference, day] of [
      // A second statement of another day, without a reference of the bank, with another one, after more than five days.
      ['camt.053', 'E1', '2026-03-13'],
      ['camt.054', '', '2026-03-17'],
      ['camt.054', 'E2', '2026-03-18'],
      ['camt.053', 'E2', '2026-03-24'],
    ]) {
      const before = (await kinds()).length
      await answer(`head;${message} ${day};${ownIban};${message}`, paid(bankReference ?? '', day ?? ''))
      expect((await kinds()).length, `${message} of ${day}`).toBe(before + 1)
    }
  })

  test('of other money counts once in a notice and a statement of different days, with the same reference of its sender', async () => {
    const entry = (reference: string, day: string) => `entry;700EUR;${reference};E1;${day}`
    await answer(`head;S1;${ownIban};camt.053`, entry('a transfer', '2026-03-12'))
    await answer(`head;N1;${ownIban};camt.054`, entry('a transfer', '2026-03-11'))
    expect((await kinds()).length).toBe(1)
    await answer(`head;N2;${ownIban};camt.054`, entry('another', '2026-03-11'))
    await answer(`head;S2;${ownIban};camt.053`, entry('a transfer', '2026-03-13'))
    expect((await kinds()).length).toBe(3)
  })

  test('on two statements of different days is two bookings', async () => {
    await answer(`head;S1;${ownIban};camt.053`, 'entry;-700EUR;rent;E1;2026-03-12')
    await answer(`head;S2;${ownIban};camt.053`, 'entry;-700EUR;rent;E1;2026-03-13')
    expect((await kinds()).length).toBe(2)
  })

  test('that no payment explains opens one exception, however many messages report it', async () => {
    await answer('head;N1', 'entry;700EUR;a transfer;E1;2026-03-12')
    await answer('head;S1', 'entry;700EUR;a transfer;E1;2026-03-12', 'entry;700EUR;a transfer;E2;2026-03-12')
    // Without the bank's reference these could be two.
    await answer('head;N2', 'entry;700EUR;;;2026-03-12')
    await answer('head;S2', 'entry;700EUR;;;2026-03-12')
    expect((await kinds()).length).toBe(4)
  })

  test('on one line with another of the same amount and day counts, and the message sent again in other bytes changes nothing', async () => {
    useRail({ format: { ...settings.format, read: sepaFormat().read } })
    const entry =
      '<Ntry><Amt Ccy="EUR">7.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-12</Dt></BookgDt></Ntry>'
    const notice = (entries: string) =>
      '<Document><BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>M1</MsgId></GrpHdr>' +
      `<Ntfctn><Acct><Id><IBAN>${ownIban}</IBAN></Id></Acct>${entries}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>`
    bank.inbox.set('one-line.xml', notice(entry + entry))
    await run('read-bank-files')
    expect((await kinds()).map(([kind]) => kind)).toEqual(['money_in', 'money_in'])
    bank.inbox.set('many-lines.xml', notice(`\n${entry}\n\n${entry}\n`))
    await run('read-bank-files')
    expect(bank.archived).toEqual(['one-line.xml', 'many-lines.xml'])
    expect((await kinds()).length).toBe(2)
  })
})

describe('a hostile file of a bank is refused whole: nothing of it is booked, and its line and reason are beside it,', () => {
  const statement = (reference: string, { iban = ownIban, charge = 'EUR' } = {}) => {
    const common = { direction: 'DBIT', bookedOn: '2026-03-10' } as const
    const entries = [
      { ...common, bank: 'E1', amount: 5_000n, details: transaction({ reference }) },
      { ...common, bank: 'E2', amount: 100n, currency: charge, details: '' },
    ]
    const text = accountReport({ id: 'M1', at: harness.clock.now() }, { kind: 'camt.053', iban, entries })
    return text.replaceAll('<Ntry>', '\n<Ntry>')
  }
  const nothingIsBooked = async (id: string) => {
    expect(await statusOf(id)).toBe('submitted')
    expect(await openExceptions()).toEqual([])
    const ofRail = (table: 'bankRecords' | 'bankStatements') =>
      harness.db.selectFrom(table).select('rail').where('rail', '=', settings.name).execute()
    expect([await ofRail('bankRecords'), await ofRail('bankStatements')]).toEqual([[], []])
    expect(await harness.disagreements()).toEqual([])
  }

  test.each<[string, (reference: string) => string, string]>([
    [
      'with entities',
      reference => statement(reference).replace('<Document', '<!DOCTYPE Document [<!ENTITY a "b">]>\n<Document'),
      'Line 1: A DOCTYPE is not allowed',
    ],
    ['with a negative amount', reference => statement(reference).replace('>1.00<', '>-1.00<'), 'Line 3: -1.00 is not'],
    ['with another currency', reference => statement(reference, { charge: 'SEK' }), 'Line 3: The entry is in SEK'],
    [
      'about another account',
      reference => statement(reference, { iban: 'DE02120300000000202051' }),
      'The file is about the account …2051, which is not one of this rail',
    ],
    ['that is cut off', reference => statement(reference).slice(0, -30), 'Line 3: The XML is broken'],
    [
      'in another encoding',
      reference => statement(reference).replace('UTF-8', 'EBCDIC'),
      'Line 1: The encoding EBCDIC is not read',
    ],
    [
      'with too many entries',
      reference => statement(reference).replace('</Stmt>', `${statement('NONE').match(/<Ntry>.*/g)?.[1]}`),
      'Line 3: The file has more than 2 records',
    ],
  ])('%s', async (_, write, problem) => {
    const { read } = sepaFormat()
    const format = {
      ...settings.format,
      read: (...[bytes, limits]: Parameters<typeof read>) => read(bytes, { ...limits, recordsMax: 2 }),
    }
    useRail({ format })
    const [payment] = await sent(5_000)
    bank.inbox.set('hostile.xml', write(payment?.reference ?? ''))
    await run('read-bank-files')
    await run('read-rail-reports')
    expect(bank.rejected.get('hostile.xml')).toMatch(/\nNothing of this file was booked.\n$/)
    expect(bank.rejected.get('hostile.xml')?.slice(0, problem.length)).toBe(problem)
    await nothingIsBooked(payment?.id ?? '')
    // It does not block the files after it.
    bank.inbox.set('true.xml', statement(payment?.reference ?? ''))
    await run('read-bank-files')
    await run('read-rail-reports')
    expect(await statusOf(payment?.id ?? '')).toBe('paid')
  })

  test('of 10 GB, of which nothing is read', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-inbox-'))
    try {
      const delivery = await FolderDelivery.open({ folder, quietMs: 0 })
      let reads = 0
      const counting: Delivery = {
        put: (name, bytes) => delivery.put(name, bytes),
        list: now => delivery.list(now),
        get(name) {
          reads += 1
          return delivery.get(name)
        },
        archive: (name, day, seal) => delivery.archive(name, day, seal),
        reject: (name, report, seal) => delivery.reject(name, report, seal),
      }
      useRail({ delivery: async () => counting })
      const [payment] = await sent(5_000)
      const file = path.join(delivery.inbox, 'large.xml')
      await writeFile(file, statement(payment?.reference ?? ''))
      // A sparse file: it takes no space on the disk.
      await truncate(file, 10_000_000_000)
      await run('read-bank-files')
      const rejected = await readdir(path.join(folder, 'rejected'))
      expect(rejected).toHaveLength(2)
      const [name = '', report = ''] = rejected.sort().map(each => path.join(folder, 'rejected', each))
      expect((await stat(name)).size).toBe(10_000_000_000)
      expect(await readFile(report, 'utf8')).toBe(
        'The file has more than 1073741824 bytes.\nNothing of this file was booked.\n',
      )
      expect(reads).toBe(0)
      await nothingIsBooked(payment?.id ?? '')
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('money that no payment explains', () => {
  const amount = { amount: 70_000n, currency: 'EUR' } as const
  const record = async (move: typeof float.fund, reference: string, units = 70_000n) =>
    await harness.inTx(tx =>
      move(tx, {
        partnerId: harness.partner.id,
        amount: { amount: units, currency: 'EUR' },
        reference,
        now: harness.clock.now(),
      }),
    )
  const balance = async () =>
    (await float.read(harness.db, harness.partner.id)).find(({ currency }) => currency === 'EUR')?.float ?? 0n
  const close = async (changes: { reference?: string; at?: number } = {}) => {
    const { at = 0, reference } = changes
    const open = harness.db.selectFrom('payoutExceptions').select('id').where('rail', '=', settings.name)
    const found = await open.where('closedAt', 'is', null).orderBy('id').execute()
    const common = { exceptionId: found[at]?.id ?? '', person: 'Ada', note: 'a transfer', now: harness.clock.now() }
    const { id: partnerId } = harness.partner
    return await harness.inTx(tx => closeException(tx, { ...common, decision: 'book', partnerId, reference }))
  }

  test('is matched to the funding of the same reference and amount, which explains one entry', async () => {
    await record(float.fund, 'top-up 1')
    const before = await balance()
    await answer('head;M1', 'entry;70000EUR;top-up 1;E1')
    expect(await openExceptions()).toEqual([])
    // It arrives a second time, and another amount arrives.
    await answer('head;M2', 'entry;70000EUR;top-up 1;E2', 'entry;70001EUR;top-up 1;E3')
    expect((await openExceptions()).map(({ kind, line }) => [kind, line])).toEqual([
      ['money_in', 2],
      ['money_in', 3],
    ])
    expect(await balance()).toBe(before)
  })

  test('is matched to a movement out of the float if it left', async () => {
    await record(float.fund, 'opening transfer', 1_000_000n)
    await record(float.fund, 'top-up 2')
    await record(float.withdraw, 'sweep 2')
    await answer('head;M1', 'entry;-70000EUR;sweep 2;E1', 'entry;70000EUR;sweep 2;E2')
    await answer('head;M2', 'entry;-70000EUR;top-up 2;E1')
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['money_in', 'money_out'])
  })

  test('is not matched to the funding of a partner that another account pays for', async () => {
    const own = { name: 'Own', account: { accountHolder: 'Own', iban: 'DE02120300000000202051' } }
    useRail({ debtors: { default: settings.debtors.default, [harness.partner.id]: own } })
    await record(float.fund, 'top-up 3')
    await answer(`head;M1;${ownIban}`, 'entry;70000EUR;top-up 3;E1')
    expect((await openExceptions()).map(({ kind }) => kind)).toEqual(['money_in'])
    await answer('head;M2;DE02120300000000202051', 'entry;70000EUR;top-up 3;E1')
    expect(await openExceptions()).toHaveLength(1)
  })

  test('is booked once by closing its exception, and each entry with the same words anew', async () => {
    const before = await balance()
    await answer('head;M1', 'entry;70000EUR;NOTPROVIDED;E1', 'entry;70000EUR;NOTPROVIDED;E2')
    expect(await close()).toMatchObject({ partnerId: harness.partner.id })
    expect(await balance()).toBe(before + 70_000n)
    await close()
    expect(await balance()).toBe(before + 140_000n)
    const { rows } = await sql`
      select from payout_exceptions where rail = ${settings.name} and decision = 'book'`.execute(harness.db)
    expect(rows).toHaveLength(2)
    expect(await harness.disagreements()).toEqual([])
  })

  test('that was recorded after it had arrived is not booked again by closing its exception', async () => {
    await answer('head;M1', 'entry;70000EUR;top-up 5;E1', 'entry;70000EUR;top-up 5;E2')
    await record(float.fund, 'top-up 5')
    const before = await balance()
    await close()
    expect(await balance()).toBe(before)
    await expect(close({ reference: 'top-up 5' })).rejects.toThrow('belongs to another entry')
    await close({ reference: 'top-up 5, again' })
    expect(await balance()).toBe(before + amount.amount)
  })

  test('is the only one that can be booked', async () => {
    await sent(5_000)
    await answer('head;M1', 'paid;MMAAAAAAAAAAAAAA;5000EUR')
    await expect(close()).rejects.toThrow('Only money that arrived or left')
  })
})

describe('the balances that a bank states', () => {
  test('are compared with the floats on the account at the end of the same day in the bank’s time zone', async () => {
    const own = { name: 'Own', account: { accountHolder: 'Own', iban: 'DE02120300000000202051' } }
    const fund = async (at: string, amount: bigint) =>
      await harness.inTx(tx =>
        float.fund(tx, { partnerId: harness.partner.id, amount: { amount, currency: 'EUR' }, now: new Date(at) }),
      )
    // Later than anything that other tests have booked. Midnight in Berlin is 22:00 in UTC.
    await fund('2026-05-04T21:59:59.999Z', 100n)
    await fund('2026-05-04T22:00:00.000Z', 30n)
    await fund('2026-05-05T22:00:00.000Z', 5n)
    const book = (await float.read(harness.db, harness.partner.id)).find(each => each.currency === 'EUR')?.float ?? 0n
    const lines = ['balance;2026-05-05;12345EUR', 'balance;2026-05-04;777EUR', 'balance;2026-05-03;1EUR']
    await answer(`head;M1;${ownIban}`, ...lines)
    const partnerId = harness.partner.id
    const shown = await listBalances(harness.db, settings, { partnerId, daysMax: 2 })
    expect(shown).toEqual([
      expect.objectContaining({
        account: ownIban,
        debtors: ['default'],
        day: '2026-05-05',
        bank: 12_345n,
        book: book - 5n,
      }),
      expect.objectContaining({ day: '2026-05-04', bank: 777n, book: book - 35n }),
    ])
    // With an own account, the partner's float is on that one, and on the other there is none.
    const apart = { ...settings, debtors: { default: settings.debtors.default, [partnerId]: own } }
    expect(await listBalances(harness.db, apart, { partnerId, daysMax: 2 })).toEqual([])
    expect((await listBalances(harness.db, apart, { daysMax: 1 })).map(each => each.book)).toEqual([0n])
  })
})

test('a report that the bank writes on one line ends each of the payments in it', async () => {
  useRail({ format: { ...settings.format, read: sepaFormat().read } })
  const payments = await sent(1_000, 2_000)
  const [batch] = await batches()
  const rejected = payments.map(
    ({ reference }) =>
      `<TxInfAndSts><OrgnlEndToEndId>${reference}</OrgnlEndToEndId><TxSts>RJCT</TxSts><StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf></TxInfAndSts>`,
  )
  bank.inbox.set(
    'one-line.xml',
    '<Document><CstmrPmtStsRpt><GrpHdr><MsgId>M1</MsgId></GrpHdr>' +
      `<OrgnlGrpInfAndSts><OrgnlMsgId>${batch?.messageId}</OrgnlMsgId><GrpSts>PART</GrpSts></OrgnlGrpInfAndSts>` +
      `<OrgnlPmtInfAndSts>${rejected.join('')}</OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`,
  )
  await run('read-bank-files')
  await run('read-rail-reports')
  expect(await Promise.all(payments.map(({ id }) => statusOf(id)))).toEqual(['failed', 'failed'])
})

import { writeFile } from 'node:fs/promises'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { refusal, someCounterparty } from '../../../../test/adyen/service.ts'
import { setUpAdyen } from '../../../../test/adyen/set-up.ts'
import { preparePayments } from '../../../../test/payouts/prepared-payments.ts'
import { closeException } from '../../../../test/payouts/two-person-decisions.ts'
import { extent } from '../../../../test/runner/extent.ts'
import { sql } from '../../../database/database.ts'
import type { TaskName } from '../../../worker/task.ts'

// 11:00 in Berlin, on a Tuesday.
const tuesday = new Date('2026-03-10T10:00:00.000Z')

let lines = ''
const log = pino({ level: 'debug' }, { write: line => (lines += line) })
let setUp: Awaited<ReturnType<typeof setUpAdyen>>
beforeAll(async () => {
  setUp = await setUpAdyen({ log, requestMsMax: 300 })
})
afterAll(() => setUp.stop())

beforeEach(() => {
  setUp.harness.clock.set(tuesday)
  setUp.service.decide(() => [{ status: 'authorised' }, { status: 'booked' }])
  setUp.service.notifyAt(`${setUp.address}/rails/adyen/notifications`)
})
afterEach(async () => {
  setUp.service.recover()
  // No test sees the payments or exceptions of another.
  await setUp.service.settle()
  await run('read-rail-reports')
  const { ownerDb } = setUp.harness
  const dueAt = new Date('2030-01-01T00:00:00.000Z')
  await ownerDb.updateTable('withdrawals').set({ dueAt }).where('status', 'in', ['held', 'submitted']).execute()
  await ownerDb.deleteFrom('payoutExceptions').execute()
})

const run = (task: TaskName) => setUp.harness.runTask(task, { channels: [setUp.rail], log })

const statusOf = async (id: string) => (await setUp.harness.getWithdrawal(id)).status
const referenceOf = async (id: string): Promise<string> => (await setUp.harness.getWithdrawal(id)).paymentReference

/** Withdraws, and submits after the hold. */
async function submitted(net?: number): Promise<{ id: string; reference: string }> {
  const { id } = await setUp.harness.addWithdrawal({ currency: 'EUR', net })
  setUp.harness.clock.advance({ seconds: 30 })
  await run('submit-withdrawals')
  return { id, reference: await referenceOf(id) }
}

/** Polls once more, after the longest back-off. */
async function pollAgain(): Promise<void> {
  setUp.harness.clock.advance({ minutes: 61 })
  await run('ask-about-withdrawals')
}

/** Lets the bank finish, and records what it reports. */
async function settle(): Promise<void> {
  await setUp.service.settle()
  await run('read-rail-reports')
}

const openExceptions = () =>
  setUp.harness.db
    .selectFrom('payoutExceptions')
    .select(['id', 'kind', 'reference', 'outcome', 'reasonCode', 'reason'])
    .where('closedAt', 'is', null)
    .orderBy('id')
    .execute()

const restrictionsOf = async (id: string) =>
  await setUp.harness.db
    .selectFrom('members')
    .select(['accountRefused', 'reviewReason'])
    .where('id', '=', (await setUp.harness.getWithdrawal(id)).memberId)
    .executeTakeFirstOrThrow()

const postsOf = (reference: string) =>
  setUp.service.exchanges.filter(({ method, headers }) => method === 'POST' && headers['idempotency-key'] === reference)

async function giveBack(exceptionId: string): Promise<void> {
  const { db, clock } = setUp.harness
  const closed = { exceptionId, person: 'Ada', note: 'test', now: clock.now(), decision: 'give_back' } as const
  await db.transaction().execute(tx => closeException(tx, closed))
  await run('read-rail-reports')
}

test('a payment is requested once, with its reference as the idempotency key', async () => {
  const { reference } = await submitted(1_234)
  const [post, ...others] = postsOf(reference)
  expect(others).toEqual([])
  expect(post?.headers).toMatchObject({ 'x-api-key': setUp.service.apiKey, 'content-type': 'application/json' })
  expect(post?.body).toEqual({
    amount: { value: 1_234, currency: 'EUR' },
    balanceAccountId: setUp.service.balanceAccountId,
    category: 'bank',
    counterparty: {
      bankAccount: {
        accountHolder: { type: 'individual', fullName: 'Mia Schulz' },
        accountIdentification: { type: 'iban', iban: 'DE89370400440532013000' },
      },
    },
    priorities: ['instant', 'regular'],
    reference,
    description: reference,
    referenceForBeneficiary: reference,
  })
})

test('a withdrawal is paid once the transfer is booked, and not before', async () => {
  const { id, reference } = await submitted()
  const transfer = setUp.service.transferOf(reference)
  if (transfer === undefined) throw new Error('No transfer was made')
  const statuses: string[] = [await statusOf(id)]
  for (let body = setUp.service.step(transfer); body !== undefined; body = setUp.service.step(transfer)) {
    await setUp.service.notify(body)
    await run('read-rail-reports')
    statuses.push(await statusOf(id))
  }
  expect(statuses).toEqual(['submitted', 'submitted', 'paid'])
})

describe('without an answer', () => {
  test.each(['cut-before', 'cut-after', 'silent', 'deaf', 'error-before', 'error-after'] as const)(
    'a payment is made once: %s',
    async fault => {
      setUp.service.fail(fault)
      const { id, reference } = await submitted()
      expect(await statusOf(id)).toBe('submitted')
      await pollAgain()
      await settle()
      expect(await statusOf(id)).toBe('paid')
      expect(setUp.service.paid(reference)).toBe(1)
      expect(await openExceptions()).toEqual([])
    },
  )

  test('a payment is made once, even if the bank is down for hours', async () => {
    setUp.service.fail('cut-after', ...Array(5).fill('error-before'))
    const { id, reference } = await submitted()
    for (let poll = 0; poll < 7; poll++) await pollAgain()
    await settle()
    expect(await statusOf(id)).toBe('paid')
    expect(setUp.service.paid(reference)).toBe(1)
  })

  test('a payment that the bank does not know for days is not requested again, but left to the operator', async () => {
    setUp.service.fail('cut-before')
    const { id, reference } = await submitted()
    setUp.harness.clock.advance({ days: 7 })
    await run('ask-about-withdrawals')
    expect(postsOf(reference)).toHaveLength(1)
    expect(await openExceptions()).toMatchObject([{ kind: 'blocked', reference, reasonCode: 'unknown' }])
    expect(await statusOf(id)).toBe('submitted')
    await giveBack((await openExceptions())[0]?.id ?? '')
    expect(await statusOf(id)).toBe('failed')
  })
})

describe('a refusal', () => {
  test('of the account gives the money back and blocks the account', async () => {
    const field = 'counterparty.bankAccount.accountIdentification.iban'
    setUp.service.fail({ status: 422, body: refusal(422, '30_081', [field]) })
    const { id, reference } = await submitted()
    expect(await statusOf(id)).toBe('failed')
    expect(await restrictionsOf(id)).toEqual({
      accountRefused: '30_081 The bank refuses the account details',
      reviewReason: null,
    })
    expect(setUp.service.transferOf(reference)).toBeUndefined()
  })

  test.each([
    { status: 401, body: { status: 401, errorCode: '000', errorType: 'security', message: 'no' } },
    { status: 403, body: refusal(403, '10_003') },
    { status: 404, body: 'not found' },
    { status: 302, body: {} },
  ])(
    'of all requests ($status) fails no payment, raises one alarm, and ends when the bank accepts again',
    async fault => {
      setUp.service.fail(fault, fault, fault, fault)
      const first = await submitted()
      const second = await submitted()
      expect([await statusOf(first.id), await statusOf(second.id)]).toEqual(['submitted', 'submitted'])
      expect(await openExceptions()).toMatchObject([{ kind: 'blocked', reference: null }])
      setUp.service.recover()
      await pollAgain()
      await settle()
      expect([await statusOf(first.id), await statusOf(second.id)]).toEqual(['paid', 'paid'])
      expect(await openExceptions()).toEqual([])
    },
  )

  test('of one payment for another reason makes it wait, and does not keep back the others', async () => {
    setUp.service.fail({ status: 422, body: refusal(422, '30_112', ['balanceAccountId']) })
    const { id: blocked } = await setUp.harness.addWithdrawal({ currency: 'EUR' })
    const { id: fine } = await setUp.harness.addWithdrawal({ currency: 'EUR' })
    setUp.harness.clock.advance({ seconds: 30 })
    await run('submit-withdrawals')
    await settle()
    const statuses = [await statusOf(blocked), await statusOf(fine)]
    expect(statuses.sort()).toEqual(['paid', 'submitted'])
    expect(await openExceptions()).toMatchObject([{ kind: 'blocked', reasonCode: '30_112' }])
    await pollAgain()
    await settle()
    expect([await statusOf(blocked), await statusOf(fine)]).toEqual(['paid', 'paid'])
    expect(await openExceptions()).toEqual([])
  })

  test('is not followed by a request if the money is given back while the payment waits for its turn', async () => {
    setUp.service.fail({ status: 422, body: refusal(422, '30_112') })
    const { id, reference } = await submitted()
    const { harness, rail } = setUp
    const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
    const payment = { partnerId: harness.partner.id, withdrawalId: id, reference, account }
    const netAmount = { amount: 5_000n, currency: 'EUR' } as const
    let submitting: Promise<unknown> | undefined
    await harness.ownerDb.transaction().execute(async tx => {
      await tx.updateTable('payouts').set({ outcome: 'failed' }).where('reference', '=', reference).execute()
      submitting = rail.submit([{ ...payment, netAmount }], AbortSignal.timeout(15_000))
      const waiting = sql<object>`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await vi.waitFor(async () => expect((await waiting.execute(harness.db)).rows).toHaveLength(1), {
        timeout: 10_000,
      })
    })
    await submitting
    expect(postsOf(reference)).toHaveLength(1)
  })

  test('can be ended by giving the money back, after which nothing is requested', async () => {
    const fault = { status: 422, body: refusal(422, '30_112') }
    setUp.service.fail(fault)
    const { id, reference } = await submitted()
    await giveBack((await openExceptions())[0]?.id ?? '')
    expect(await statusOf(id)).toBe('failed')
    expect(await restrictionsOf(id)).toEqual({ accountRefused: null, reviewReason: null })
    const { partner } = setUp.harness
    const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
    const payment = { partnerId: partner.id, withdrawalId: id, reference, account }
    const netAmount = { amount: 5_000n, currency: 'EUR' } as const
    expect(await setUp.rail.submit([{ ...payment, netAmount }], AbortSignal.timeout(5_000))).toMatchObject([
      { reference, outcome: 'failed' },
    ])
    expect(postsOf(reference)).toHaveLength(1)
  })

  test('with an answer that is not a transfer leaves the payment as unknown', async () => {
    setUp.service.fail(
      { status: 202, body: { hello: 'world' }, isOdd: true },
      { status: 200, body: '<html>', isOdd: true },
    )
    const { id, reference } = await submitted()
    await pollAgain()
    await pollAgain()
    await settle()
    expect(await statusOf(id)).toBe('paid')
    expect(setUp.service.paid(reference)).toBe(1)
  })

  test('of a request that is still being worked on says nothing about the payment', async () => {
    setUp.service.fail({ status: 422, body: refusal(422, '704') })
    const { id } = await submitted()
    expect(await statusOf(id)).toBe('submitted')
    expect(await openExceptions()).toEqual([])
    await pollAgain()
    await settle()
    expect(await statusOf(id)).toBe('paid')
  })
})

describe('while a request may have made the payment, its money is not given back', () => {
  const mayBePaid = /may have been accepted/

  test('after a refusal, if the repeated request gets no answer', async () => {
    setUp.service.fail({ status: 422, body: refusal(422, '30_112') }, 'none', 'cut-after')
    const { id, reference } = await submitted()
    await pollAgain()
    const [exception] = await openExceptions()
    await expect(giveBack(exception?.id ?? '')).rejects.toThrow(mayBePaid)
    await pollAgain()
    await settle()
    expect(await statusOf(id)).toBe('paid')
    expect(setUp.service.paid(reference)).toBe(1)
    expect(await openExceptions()).toEqual([])
  })

  test('until a look-up shows that the bank does not have it', async () => {
    const refused = { status: 422, body: refusal(422, '30_112') }
    setUp.service.fail(refused, 'none', 'cut-before')
    const { id, reference } = await submitted()
    await pollAgain()
    const [exception] = await openExceptions()
    await expect(giveBack(exception?.id ?? '')).rejects.toThrow(mayBePaid)
    setUp.service.fail('none', refused)
    await pollAgain()
    await giveBack(exception?.id ?? '')
    expect(await statusOf(id)).toBe('failed')
    expect(setUp.service.paid(reference)).toBe(0)
  })

  test('nor by a look-up that comes too soon after the request', async () => {
    setUp.service.fail({ status: 202, body: { hello: 'world' }, isOdd: true }, 'none', 'cut-before')
    const { reference } = await submitted()
    setUp.harness.clock.advance({ minutes: 2 })
    await run('ask-about-withdrawals')
    setUp.harness.clock.advance({ minutes: 4 })
    setUp.service.fail('none', { status: 422, body: refusal(422, '30_112') })
    await run('ask-about-withdrawals')
    expect(postsOf(reference)).toHaveLength(3)
    const [exception] = await openExceptions()
    await expect(giveBack(exception?.id ?? '')).rejects.toThrow(mayBePaid)
  })

  test('if its answer cannot be read', async () => {
    setUp.service.fail({ status: 202, body: { hello: 'world' }, isOdd: true })
    await submitted()
    const [exception] = await openExceptions()
    expect(exception).toMatchObject({ kind: 'blocked', reasonCode: 'shape' })
    await expect(giveBack(exception?.id ?? '')).rejects.toThrow(mayBePaid)
  })

  test('if the look-up is refused, before the bank has answered and after', async () => {
    setUp.service.fail('cut-after', { status: 422, body: refusal(422, '30_112') })
    const { id, reference } = await submitted()
    await pollAgain()
    const [exception] = await openExceptions()
    await expect(giveBack(exception?.id ?? '')).rejects.toThrow(mayBePaid)
    await pollAgain()
    setUp.service.fail({ status: 400, body: refusal(400, '30_113') })
    await pollAgain()
    const [later] = await openExceptions()
    expect(later).toMatchObject({ kind: 'blocked', reference, reasonCode: '30_113' })
    await expect(giveBack(later?.id ?? '')).rejects.toThrow(/has accepted/)
    await settle()
    expect(await statusOf(id)).toBe('paid')
    await expect(giveBack(later?.id ?? '')).rejects.toThrow(/has paid/)
  })

  test('if only its repetition is refused for the account', async () => {
    setUp.service.fail('cut-after', { status: 422, body: refusal(422, '30_081', ['counterparty.bankAccount']) })
    const { id, reference } = await submitted()
    const { partner } = setUp.harness
    const account = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
    const netAmount = { amount: 5_000n, currency: 'EUR' } as const
    const payment = { partnerId: partner.id, withdrawalId: id, reference, account, netAmount }
    await setUp.rail.submit([payment], AbortSignal.timeout(5_000))
    expect(postsOf(reference)).toHaveLength(2)
    await pollAgain()
    await settle()
    expect(await statusOf(id)).toBe('paid')
    expect(await restrictionsOf(id)).toEqual({ accountRefused: null, reviewReason: null })
  })
})

test('without its API key, payments wait and the alarm names the file', async () => {
  const { apiKeyFile } = setUp.settings
  await writeFile(apiKeyFile, 'two words')
  const { id } = await submitted()
  expect(await openExceptions()).toMatchObject([{ kind: 'blocked', reason: expect.stringContaining(apiKeyFile) }])
  await writeFile(apiKeyFile, setUp.service.apiKey)
  await pollAgain()
  await settle()
  expect(await statusOf(id)).toBe('paid')
})

describe('an outcome', () => {
  test.each([
    ['counterpartyAccountNotFound', { accountRefused: expect.stringMatching(/^counterpartyAccountNotFound /) }],
    ['refusedByCounterpartyBank', { reviewReason: expect.stringMatching(/^refusedByCounterpartyBank /) }],
    ['counterpartyBankUnavailable', { accountRefused: null, reviewReason: null }],
    ['securityViolation', { reviewReason: 'securityViolation' }],
  ])(
    'failed because of %s gives the money back, and does to the member what the reason asks',
    async (reason, expected) => {
      setUp.service.decide(() => [{ status: 'authorised' }, { status: 'failed', reason }])
      const { id } = await submitted()
      await settle()
      expect(await setUp.harness.getWithdrawal(id)).toMatchObject({ status: 'failed' })
      expect(await restrictionsOf(id)).toMatchObject(expected)
    },
  )

  test('failed after booked is a return: the money was gone and has come back', async () => {
    setUp.service.decide(() => [{ status: 'booked' }, { status: 'failed', reason: 'counterpartyAccountClosed' }])
    const { id } = await submitted()
    await settle()
    expect(await statusOf(id)).toBe('returned')
  })

  describe('refused for lack of money', () => {
    const short = [{ status: 'refused', reason: 'notEnoughBalance' }]
    const keysOf = (reference: string) =>
      setUp.service.exchanges
        .filter(({ method, headers }) => method === 'POST' && String(headers['idempotency-key']).startsWith(reference))
        .map(({ headers }) => headers['idempotency-key'])

    test('is requested again later with another key, and the operator is told once', async () => {
      setUp.service.decide(() => [...short])
      const first = await submitted()
      const second = await submitted()
      await settle()
      await pollAgain()
      await settle()
      const { reference } = first
      expect(keysOf(reference)).toEqual([reference, `${reference}R1`])
      expect(await openExceptions()).toMatchObject([{ kind: 'float', reference: null, reasonCode: 'notEnoughBalance' }])
      setUp.service.decide(() => [{ status: 'booked' }])
      await pollAgain()
      expect(keysOf(reference)).toHaveLength(2)
      await pollAgain()
      await settle()
      expect(keysOf(reference)).toEqual([reference, `${reference}R1`, `${reference}R2`])
      expect([await statusOf(first.id), await statusOf(second.id)]).toEqual(['paid', 'paid'])
      expect(setUp.service.paid(reference)).toBe(1)
      expect(await openExceptions()).toEqual([])
    })

    test.each(['cut-after', 'cut-before'] as const)(
      'is made once, even if the repetition gets no answer: %s',
      async fault => {
        setUp.service.decide(() => [...short])
        const { id, reference } = await submitted()
        await settle()
        setUp.service.decide(() => [{ status: 'booked' }])
        setUp.service.fail(fault)
        await pollAgain()
        await pollAgain()
        await settle()
        expect(await statusOf(id)).toBe('paid')
        expect(setUp.service.paid(reference)).toBe(1)
      },
    )

    test('and booked after all is paid, and not requested again', async () => {
      setUp.service.decide(() => [...short, { status: 'booked' }])
      const { id, reference } = await submitted()
      await settle()
      expect(await statusOf(id)).toBe('paid')
      await pollAgain()
      expect(keysOf(reference)).toEqual([reference])
    })

    test('and booked after another request is an exception', async () => {
      const { service } = setUp
      service.decide(() => [...short])
      const { id, reference } = await submitted()
      await settle()
      const refused = service.transferOf(reference)
      if (refused === undefined) throw new Error('No transfer was made')
      service.decide(() => [{ status: 'booked' }])
      await pollAgain()
      refused.history.push({ status: 'booked' })
      await service.notify(service.notificationOf(refused))
      await settle()
      expect(await statusOf(id)).toBe('paid')
      expect(await openExceptions()).toMatchObject([{ kind: 'duplicate', reference, outcome: 'paid' }])
    })
  })

  test('refused for lack of money again and again is left to the operator', async () => {
    setUp.service.decide(() => [{ status: 'refused', reason: 'notEnoughBalance' }])
    const { id, reference } = await submitted()
    await settle()
    for (let hour = 0; hour < 20; hour++) {
      await pollAgain()
      await settle()
    }
    expect(setUp.service.transfers().filter(({ info }) => info.reference === reference)).toHaveLength(5)
    expect(await statusOf(id)).toBe('submitted')
    const exception = (await openExceptions()).find(each => each.reference !== null)
    expect(exception).toMatchObject({ kind: 'float', reference, outcome: 'failed', reasonCode: 'notEnoughBalance' })
    await giveBack(exception?.id ?? '')
    expect(await statusOf(id)).toBe('failed')
    expect(await restrictionsOf(id)).toEqual({ accountRefused: null, reviewReason: null })
  })

  test('that no notification has told is found by polling, and a late return by listing', async () => {
    setUp.service.notifyAt(undefined)
    setUp.service.decide(() => [{ status: 'booked' }, { status: 'returned', reason: 'counterpartyAccountClosed' }])
    const { id, reference } = await submitted()
    const transfer = setUp.service.transferOf(reference)
    if (transfer === undefined) throw new Error('No transfer was made')
    setUp.service.step(transfer)
    await pollAgain()
    expect(await statusOf(id)).toBe('paid')
    setUp.service.step(transfer)
    await run('read-bank-files')
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('returned')
  })

  test('without a number is its latest state, until the payment has ended; then only a return counts', async () => {
    const { service } = setUp
    service.notifyAt(undefined)
    service.omitNumbers()
    service.decide(() => [
      { status: 'authorised' },
      { status: 'booked' },
      { status: 'pending' },
      { status: 'returned', reason: 'counterpartyAccountClosed' },
    ])
    const { id, reference } = await submitted()
    const transfer = service.transferOf(reference)
    if (transfer === undefined) throw new Error('No transfer was made')
    service.step(transfer)
    await pollAgain()
    expect(await statusOf(id)).toBe('submitted')
    service.step(transfer)
    await pollAgain()
    expect(await statusOf(id)).toBe('paid')
    for (const status of ['paid', 'returned']) {
      service.step(transfer)
      setUp.harness.clock.advance({ minutes: 6 * 60 + 1 })
      for (const task of ['read-bank-files', 'read-rail-reports'] as const) await run(task)
      expect(await statusOf(id)).toBe(status)
    }
    // The listing also has the transfers of other tests.
    expect((await openExceptions()).filter(each => each.reference === reference)).toEqual([])
    expect(await setUp.harness.disagreements()).toEqual([])
  })

  test('with another amount, of an unknown payment, or of a second transfer is an exception and changes nothing', async () => {
    const info = (reference: string, value: number) => ({
      amount: { value, currency: 'EUR' },
      balanceAccountId: setUp.service.balanceAccountId,
      counterparty: someCounterparty,
      reference,
    })
    setUp.service.decide(() => [])
    const { id, reference } = await submitted()
    const { id: another } = await setUp.harness.addWithdrawal({ currency: 'EUR', net: 6_000 })
    const stray = setUp.service.addTransfer('a', info('BY-HAND-1', 100), [{ status: 'booked' }])
    const second = setUp.service.addTransfer('b', info(reference, 5_000), [{ status: 'booked' }])
    await setUp.service.notify(stray.notification)
    await setUp.service.notify(second.notification)
    setUp.service.decide(({ reference: of }) => [{ status: 'booked', amount: { value: of.length, currency: 'EUR' } }])
    setUp.harness.clock.advance({ seconds: 30 })
    await run('submit-withdrawals')
    await settle()
    expect(await openExceptions()).toMatchObject([
      { kind: 'unmatched', reference: 'BY-HAND-1', outcome: 'paid' },
      { kind: 'duplicate', reference, outcome: 'paid' },
      { kind: 'amount', reference: await referenceOf(another), outcome: 'paid' },
    ])
    expect([await statusOf(id), await statusOf(another)]).toEqual(['submitted', 'submitted'])
  })

  test('that says a failed payment was made is an exception', async () => {
    setUp.service.decide(() => [{ status: 'failed', reason: 'counterpartyAccountClosed' }, { status: 'booked' }])
    const { id, reference } = await submitted()
    await settle()
    expect(await statusOf(id)).toBe('failed')
    expect(await openExceptions()).toMatchObject([{ kind: 'paid_after_give_back', reference, outcome: 'paid' }])
  })
})

test('listing goes through all pages, and after a failure goes on where it was', async () => {
  const { service, harness } = setUp
  const { id } = await submitted()
  service.notifyAt(undefined)
  const others = {
    amount: { value: 1, currency: 'EUR' },
    balanceAccountId: service.balanceAccountId,
    counterparty: someCounterparty,
  }
  const listedBefore = service.transfers().length
  for (let count = listedBefore; count < 230; count++)
    service.addTransfer(`other-${count}`, { ...others, reference: `OTHER-${count}` }, [])
  service.addTransfer('last', { ...others, reference: 'OTHER-LAST' }, [{ status: 'booked' }])
  await service.settle()
  harness.clock.advance({ days: 1 })
  const before = service.exchanges.length
  service.fail('none', 'error-before')
  await expect(run('read-bank-files')).rejects.toThrow('500')
  await run('read-bank-files')
  await run('read-bank-files')
  await run('read-rail-reports')
  expect(service.exchanges.slice(before).map(({ query }) => query.cursor)).toEqual([undefined, '100', '100', '200'])
  expect(await statusOf(id)).toBe('paid')
  expect(await openExceptions()).toContainEqual(
    expect.objectContaining({ kind: 'unmatched', reference: 'OTHER-LAST', outcome: 'paid' }),
  )
})

describe('a listing', () => {
  const listed = (before: number) => setUp.service.exchanges.slice(before).map(({ query }) => query)
  /** Without those about transfers that other tests have made. */
  const alarms = async () => (await openExceptions()).filter(({ kind }) => kind === 'blocked' || kind === 'unreadable')

  beforeEach(async () => {
    await setUp.harness.ownerDb.deleteFrom('railCursors').where('rail', '=', 'adyen-catch-up').execute()
  })

  const otherTransfers = (count: number) => {
    const { service } = setUp
    const info = {
      amount: { value: 1, currency: 'EUR' },
      balanceAccountId: service.balanceAccountId,
      counterparty: someCounterparty,
    }
    for (let n = 0; n < count; n++) {
      const key = `page-${service.transfers().length}`
      service.addTransfer(key, { ...info, reference: key }, [])
    }
  }

  test('starts anew if the bank refuses its cursor', async () => {
    const { service, harness } = setUp
    otherTransfers(250)
    harness.clock.advance({ minutes: 420 })
    service.fail('none', 'error-before')
    await expect(run('read-bank-files')).rejects.toThrow('500')
    harness.clock.advance({ minutes: 60 })
    const before = service.exchanges.length
    service.fail({ status: 422, body: refusal(422, '30_113') })
    await run('read-bank-files')
    expect(listed(before).map(({ cursor }) => cursor)).toEqual(['100', undefined, '100', '200', ...rest(before)])
    expect(await alarms()).toEqual([])
  })

  /** The cursors of the pages after the third, of which there are as many as other tests have made transfers. */
  const rest = (before: number) =>
    listed(before)
      .slice(4)
      .map((_, index) => String((index + 3) * 100))

  test('goes back to the oldest payment without an outcome, within what the bank lists', async () => {
    const { service, harness } = setUp
    service.notifyAt(undefined)
    service.decide(() => [])
    await submitted()
    const at = harness.clock.now().getTime()
    const dayMs = 86_400_000
    for (const [days, daysBack] of [
      [20, 21],
      [200, 150],
    ] as const) {
      harness.clock.set(new Date(at + days * dayMs))
      const before = service.exchanges.length
      await run('read-bank-files')
      const { createdSince = '', createdUntil = '' } = listed(before)[0] ?? {}
      expect(Date.parse(createdUntil) - Date.parse(createdSince)).toBe(daysBack * dayMs)
    }
  })

  test('that is refused raises an alarm once, which ends when the bank lists again', async () => {
    const { service, harness } = setUp
    harness.clock.advance({ minutes: 420 })
    const fault = { status: 403, body: refusal(403, '10_003') }
    service.fail(fault, fault)
    await expect(run('read-bank-files')).rejects.toThrow('403')
    await expect(run('read-bank-files')).rejects.toThrow('403')
    expect(await alarms()).toMatchObject([{ kind: 'blocked', reasonCode: 'listing', reference: null }])
    await run('read-bank-files')
    expect(await alarms()).toEqual([])
  })

  test('that gets no answer raises an alarm once it is 12 hours late', async () => {
    const { service, harness } = setUp
    harness.clock.advance({ minutes: 420 })
    await run('read-bank-files')
    harness.clock.advance({ minutes: 420 })
    service.fail('error-before', 'cut-before')
    await expect(run('read-bank-files')).rejects.toThrow('500')
    expect(await alarms()).toEqual([])
    harness.clock.advance({ minutes: 300 })
    await expect(run('read-bank-files')).rejects.toThrow('did not answer')
    expect(await alarms()).toMatchObject([{ kind: 'blocked', reasonCode: 'listing' }])
  })

  test('with a transfer that cannot be read leaves it to the operator once, and reads the others', async () => {
    const { service, harness } = setUp
    service.notifyAt(undefined)
    const { id, reference } = await submitted()
    const transfer = service.transferOf(reference)
    if (transfer === undefined) throw new Error('No transfer was made')
    service.step(transfer)
    service.step(transfer)
    const odd = { id: 'TR99', reference, status: 17 }
    const page = { data: [odd, JSON.parse(service.notificationOf(transfer)).data] }
    for (let count = 0; count < 2; count++) {
      harness.clock.advance({ minutes: 420 })
      service.fail({ status: 200, body: page, isOdd: true })
      await run('read-bank-files')
    }
    await run('read-rail-reports')
    expect(await statusOf(id)).toBe('paid')
    const reason = expect.stringMatching(
      /^A transfer in a listing cannot be read\. It is about the transfer TR99\..*SHA-256/,
    )
    expect(await alarms()).toMatchObject([{ kind: 'unreadable', reference, reason }])
  })
})

test('whatever fails, is repeated or arrives in another order, every payment is made exactly once', async () => {
  const { service, harness } = setUp
  const seed = Math.floor(Math.random() * 2 ** 31)
  const random = randomOf(seed)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T
  const endings = [
    [{ status: 'authorised' }, { status: 'booked' }],
    [{ status: 'booked' }],
    [{ status: 'authorised' }, { status: 'refused', reason: 'counterpartyAccountClosed' }],
    [{ status: 'booked' }, { status: 'returned', reason: 'counterpartyAccountClosed' }],
  ]
  service.decide(() => [...pick(endings)])
  const faults = ['cut-before', 'cut-after', 'error-before', 'error-after'] as const
  const ids: string[] = []
  for (let count = 0; count < extent({ short: 15, long: 150 }); count++)
    ids.push((await setUp.harness.addWithdrawal({ currency: 'EUR' })).id)
  harness.clock.advance({ seconds: 30 })
  const told: string[] = []
  for (let round = 0; round < 12; round++) {
    // Faults end, so that everything is answered in the end.
    if (round < 8) service.fail(...Array.from({ length: 10 }, () => pick(faults)))
    else service.recover()
    await Promise.all([run('submit-withdrawals'), run('ask-about-withdrawals')])
    for (const transfer of service.transfers()) {
      const body = random() < 0.5 ? service.step(transfer) : undefined
      if (body !== undefined) told.push(body)
    }
    for (const body of [...told].filter(() => random() < 0.4).reverse()) await service.notify(body)
    await run('read-rail-reports')
    harness.clock.advance({ minutes: 61 })
  }
  await service.settle()
  for (const body of told.reverse()) await service.notify(body)
  await run('read-rail-reports')
  await run('ask-about-withdrawals')
  const wrong: unknown[] = []
  for (const id of ids) {
    const [status, reference] = [await statusOf(id), await referenceOf(id)]
    const made = service.transfers().filter(({ info }) => info.reference === reference)
    const last = made[0]?.history.at(-1)?.status
    const expected = { booked: 'paid', refused: 'failed', returned: 'returned' }[last ?? '']
    if (made.length !== 1 || status !== expected) wrong.push({ reference, status, last, made: made.length })
  }
  expect(wrong, `seed ${seed}`).toEqual([])
  expect(await harness.disagreements()).toEqual([])
})

/** A small generator of random numbers from 0 to 1 (mulberry32), so that a failure can be reproduced. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

test('neither logs nor exceptions hold secrets, names or accounts', async () => {
  setUp.service.fail({ status: 422, body: refusal(422, '30_112') }, 'cut-before', {
    status: 403,
    body: refusal(403, '1'),
  })
  for (let count = 0; count < 3; count++) await submitted()
  const kept = JSON.stringify(await openExceptions())
  expect(lines).toContain('the bank did not answer')
  for (const secret of [setUp.service.apiKey, setUp.service.hmacKey, 'DE89', 'Schulz', 'is refused'])
    expect(lines + kept).not.toContain(secret)
})

test('a payment that the rail cannot make fails at once, without a request', async () => {
  const [payment] = await preparePayments(setUp.harness, { rail: 'adyen', count: 1 })
  if (payment === undefined) throw new Error('No payment')
  const account = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
  const reports = await setUp.rail.submit([{ ...payment, account }], AbortSignal.timeout(5_000))
  expect(reports).toEqual([{ reference: payment.reference, outcome: 'failed', reason: 'A SEPA payment needs an IBAN' }])
  expect(postsOf(payment.reference)).toEqual([])
})

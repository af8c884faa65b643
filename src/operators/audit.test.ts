import { readFileSync } from 'node:fs'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { euroRail, ownIban } from '../../test/banks/file-bank.ts'
import type { ApiResponse, Call } from '../../test/harness/api-response.ts'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { confirm } from '../../test/payouts/two-person-decisions.ts'
import { type Action, list } from '../audit-log/audit-log.ts'
import { closeIfOver } from '../closing/closing.ts'
import * as float from '../float/float.ts'
import { auditTasks } from '../verification/tasks.ts'

/** The recorded action of each writing operation for operators, and of a download, or why it has none. */
const recorded: Record<string, Action | { because: string }> = {
  createPartner: 'partner.create',
  updatePartner: 'partner.set',
  pausePartner: 'partner.pause',
  resumePartner: 'partner.resume',
  suspendPartner: 'partner.suspend',
  restorePartner: 'partner.restore',
  previewTier: { because: 'it changes nothing' },
  saveTier: 'tier.set',
  fundFloat: 'float.fund',
  withdrawFloat: 'float.withdraw',
  coverFloat: 'float.cover',
  receiveFloat: 'float.receive',
  setFloatFloor: 'float.floor',
  withdrawRevenue: 'revenue.withdraw',
  issueInvoice: 'invoice.issue',
  payInvoice: 'invoice.pay',
  reopenInvoice: 'invoice.reopen',
  voidInvoice: 'invoice.void',
  createApiKey: 'key.create',
  rotateApiKey: 'key.create',
  revokeApiKey: 'key.revoke',
  holdRail: 'rail.hold',
  releaseRail: 'rail.release',
  declareRestore: 'backup.restore',
  resumePayouts: 'rail.resume',
  holdPayoutBatch: 'payout_batch.hold',
  releasePayoutBatch: 'payout_batch.release',
  removePayment: 'payout.remove',
  decidePaymentOutcome: 'payout.outcome',
  approvePayoutBatch: 'payout_batch.approve',
  closePayoutBatch: 'payout_batch.close',
  withdrawPayoutBatchClosing: 'payout_batch.withdraw',
  exportPayoutBatch: 'payout_batch.export',
  importBankFile: 'bank_file.import',
  closePayoutException: 'payout_exception.close',
  withdrawPayoutDecision: 'payout_exception.withdraw',
  withdrawPayoutProposal: 'payout_exception.withdraw',
  confirmPayoutProposal: 'payout_exception.close',
  closePayoutExceptionsByText: 'payout_exception.close_all',
  createPayoutRule: 'payout_rule.create',
  pausePayoutRule: 'payout_rule.pause',
  resumePayoutRule: 'payout_rule.resume',
  endPayoutRule: 'payout_rule.end',
  verifyLedger: 'ledger.verify',
  recordBackup: 'backup.record',
  releaseMember: 'member.release',
  eraseMemberOfPartner: 'member.erase',
}

const rail = euroRail({ automatic: null })
const holder = 'Wilhelmina Secretive'
const iban = 'DE89370400440532013000'
const note = 'a note'

let harness: Harness
let key: Awaited<ReturnType<Harness['addOperator']>>
let users: ConsoleUser[]
const dues: { partnerId: string; payCycleId: string }[] = []
const batches: { id: string; references: string[] }[] = []
let openBatchId: string

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const eur = (amount: number) => ({ amount, currency: 'EUR' })
const inEuros = { account: { accountHolder: holder, iban }, tier: 'Silver EU', currency: 'EUR' } as const

/** A partner with a settlement due, whose employer pays a fee. */
async function addDue() {
  const { partner, key, payCycle } = await harness.addPartner('Settled')
  const memberId = await harness.addMember({ ...inEuros, key, available: 9_000 })
  await harness.withdraw({ key, memberId, amount: 5_000, currency: 'EUR' })
  const employed = await harness.addMember({ key, tier: 'Gold', available: 9_000 })
  await harness.withdraw({ key, memberId: employed, amount: 5_000 })
  dues.push({ partnerId: partner.id, payCycleId: payCycle.id })
  return async () => {
    await harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))
    const body = { deductions: [{ memberId, taken: eur(5_000) }] }
    const settled = await harness.call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, { key, body })
    expect(settled.status, settled.text).toBe(201)
  }
}

/** A batch of two payments that waits for approval. */
async function addBatch(day: string) {
  await addOpenBatch(day)
  harness.clock.advance({ minutes: 5 * 60 })
  await harness.runTask('send-payout-batches')
  const { id } = (await key.call('GET', '/payout-batches?take=1')).body.batches[0]
  const { payments } = (await key.call('GET', `/payout-batches/${id}/payments`)).body
  batches.push({ id, references: payments.map(({ reference }: { reference: string }) => reference) })
}

/** @returns the id of a batch that two payments have joined before its cut-off */
async function addOpenBatch(day: string): Promise<string> {
  harness.clock.set(new Date(`${day}T10:00:00.000Z`))
  for (const amount of [5_000, 6_000]) {
    const memberId = await harness.addMember({ ...inEuros, available: 20_000 })
    await harness.withdraw({ memberId, amount, currency: 'EUR' })
  }
  harness.clock.advance({ seconds: 30 })
  await harness.runTask('submit-withdrawals')
  return (await key.call('GET', '/payout-batches?take=1')).body.batches[0].id
}

beforeAll(async () => {
  harness = await startHarness({
    rails: [rail],
    bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated'),
  })
  key = await harness.addOperator()
  const settle = [await addDue(), await addDue()]
  // Puts their payments into an earlier batch than those of the tests.
  harness.clock.advance({ seconds: 30 })
  await harness.runTask('submit-withdrawals')
  harness.clock.set(new Date('2026-04-02T10:00:00.000Z'))
  for (const each of settle) await each()
  await addBatch('2026-04-14')
  await addBatch('2026-04-21')
  openBatchId = await addOpenBatch('2026-04-28')
  users = [await signIn(harness, { isOperator: true }), await signIn(harness, { isOperator: true })]
})
afterAll(() => harness.stop())

const everything = async () => await list(harness.db, { filter: {}, take: 1_000 })
let requests = 0

type Step = {
  operationId: string
  method: string
  path: string
  body?: object
  raw?: string
  /** The same request with another body. */
  other?: object
}
type By = {
  kind: 'operator_key' | 'user'
  id: string
  call: (method: string, path: string, call: Call) => Promise<ApiResponse>
}

/** Sends a request twice at once, again, and with another body, all with one idempotency key. @returns the answer and its row */
async function check(by: By, { operationId, method, path, body, raw, other }: Step) {
  requests += 1
  // An operator has so many requests a second.
  harness.clock.advance({ seconds: 1 })
  const send = (given: { body?: object; raw?: string }) =>
    by.call(method, `/operator/v1${path}`, {
      ...given,
      headers: {
        'x-idempotency-key': `${operationId}-${requests}`,
        'x-request-id': `request-${requests}`,
        ...(given.raw === undefined ? {} : { 'content-type': 'application/octet-stream' }),
      },
    })
  const given = raw !== undefined ? { raw } : body === undefined ? {} : { body }
  const before = await everything()
  const answers = [...(await Promise.all([send(given), send(given)])), await send(given)]
  for (const { status, text } of answers) expect(status, `${operationId}: ${text}`).toBeLessThan(300)
  const first = answers.find(({ headers }) => headers['idempotency-replayed'] === undefined)
  expect(answers.map(({ headers }) => headers['idempotency-replayed']).sort(), `${operationId} has one effect`).toEqual(
    ['true', 'true', undefined],
  )
  for (const { body, headers } of answers) {
    // Only the first response has the secret.
    const isReplay = headers['idempotency-replayed'] !== undefined
    expect(body).toEqual(isReplay && first?.body.secret !== undefined ? { ...first?.body, secret: null } : first?.body)
  }
  if (other !== undefined) {
    const reused = await send(raw === undefined ? { body: other } : { raw: JSON.stringify(other) })
    expect([reused.status, reused.body.issues[0].path], operationId).toEqual([422, 'x-idempotency-key'])
  }
  const added = (await everything()).filter(({ id }) => !before.some(known => known.id === id))
  const expected = recorded[operationId]
  if (typeof expected !== 'string') {
    expect(added, operationId).toEqual([])
    return { answer: first, entry: undefined }
  }
  expect(added, operationId).toMatchObject([
    {
      ...{ action: expected, actorKind: by.kind, actor: by.id, address: '127.0.0.1' },
      requestId: `request-${requests}`,
    },
  ])
  return { answer: first, entry: added[0] }
}

test('every operation that writes for operators is recorded or has a reason not to be', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi-operator.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const writing = Object.values(paths).flatMap(methods =>
    Object.entries(methods).flatMap(([method, { operationId }]) => (method === 'get' ? [] : [operationId])),
  )
  expect(writing.sort()).toEqual(Object.keys(recorded).sort())
})

test.each([
  ['operator_key', 0],
  ['user', 1],
] as const)(
  'each change by %s has one effect and leaves one row, with actor, before and after, and no secrets',
  async (kind, index) => {
    const [user, second] = users as [ConsoleUser, ConsoleUser]
    const ofUser = (each: ConsoleUser): By => ({
      ...{ kind: 'user', id: each.user.id },
      call: (method, path, call) => each.call(method, path, { ...call, partner: null }),
    })
    const by: By =
      kind === 'user'
        ? ofUser(user)
        : { kind, id: key.id, call: (...asked) => harness.call(asked[0], asked[1], { ...asked[2], key: key.secret }) }
    const seen = new Set<string>()
    const secrets: string[] = [key.secret, user.token, second.token]
    const does = async (
      operationId: string,
      request: string,
      rest: Omit<Step, 'operationId' | 'method' | 'path'> = {},
      who = by,
    ) => {
      seen.add(operationId)
      const [method = '', path = ''] = request.split(' ')
      const { answer, entry } = await check(who, { operationId, method, path, ...rest })
      if (answer?.body.secret !== undefined) secrets.push(answer.body.secret)
      return { body: answer?.body, details: entry?.details }
    }

    const created = await does('createPartner', 'POST /partners', {
      body: { name: `Audited by ${kind}` },
      other: { name: 'Another' },
    })
    const at = `/partners/${created.body.id}`
    expect(created.details).toMatchObject({ before: null, after: { name: `Audited by ${kind}` } })
    const settings = { body: { graceMinutes: 7 }, other: { graceMinutes: 8 } }
    expect((await does('updatePartner', `PATCH ${at}`, settings)).details).toMatchObject({ after: { graceMinutes: 7 } })
    for (const verb of ['pause', 'resume', 'suspend', 'restore']) {
      const given = { body: { reason: 'bank outage' }, other: {} }
      const { details } = await does(`${verb}Partner`, `POST ${at}/${verb}`, given)
      expect(details).toEqual({ reason: 'bank outage' })
    }
    const fee = { feeFixed: gbp(50), feeBps: 0, feeMin: null, feeMax: null, feePayer: 'member' }
    const counts = { withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null }
    const terms = { currency: 'GBP', ...fee, lowerLimit: gbp(1_000), upperLimit: gbp(20_000), ...counts }
    await does('previewTier', `POST ${at}/tiers/Gold/preview`, { body: { ...terms, version: null } })
    const tier = await does('saveTier', `PUT ${at}/tiers/Gold`, {
      body: { ...terms, version: null },
      other: { ...terms, version: null, feeBps: 1 },
    })
    expect(tier.details).toMatchObject({ before: null, after: { feeFixed: gbp(50) } })
    const money = (amount: number) => ({ body: { amount: gbp(amount) }, other: { amount: gbp(amount + 1) } })
    expect((await does('fundFloat', `POST ${at}/float/fund`, money(5_000))).body.floats[0].float).toEqual(gbp(5_000))
    expect((await does('withdrawFloat', `POST ${at}/float/withdraw`, money(2_000))).body.floats[0].float).toEqual(
      gbp(3_000),
    )
    const cost = { partnerId: created.body.id, amount: { amount: 500n, currency: 'GBP' as const }, exceptionId: null }
    await harness.inTx(async tx => {
      await confirm(tx, { subject: 'cost', decided: {}, now: harness.clock.now() })
      await float.bearCost(tx, { ...cost, now: harness.clock.now() })
    })
    await does('coverFloat', `POST ${at}/float/cover`, money(400))
    const floor = { body: { currency: 'GBP', floor: gbp(100) }, other: { currency: 'GBP', floor: null } }
    expect((await does('setFloatFloor', `PUT ${at}/float/floor`, floor)).details).toEqual({
      before: { floor: null },
      after: { floor: gbp(100) },
    })
    const { partnerId, payCycleId } = dues[index] as (typeof dues)[number]
    const received = { payCycleId, currency: 'EUR' }
    const receive = { body: { ...received, amount: eur(2_000) }, other: received }
    expect((await does('receiveFloat', `POST /partners/${partnerId}/float/receive`, receive)).details).toMatchObject({
      ...{ amount: eur(2_000), payCycleId },
    })
    await does('fundFloat', `POST /partners/${partnerId}/float/fund`, { body: { amount: eur(9_000) } })
    const revenue = { amount: eur(40), reference: 'fees' }
    const taken = { body: revenue, other: { ...revenue, reference: 'other fees' } }
    expect(
      (await does('withdrawRevenue', `POST /partners/${partnerId}/revenue/withdraw`, taken)).details,
    ).toMatchObject(revenue)
    const billed = { body: { currency: 'GBP' }, other: { currency: 'EUR' } }
    const { body: invoice, details } = await does('issueInvoice', `POST /partners/${partnerId}/invoices`, billed)
    expect(details).toMatchObject({ number: invoice.number, sum: gbp(50) })
    const ofInvoice = `POST /partners/${partnerId}/invoices/${invoice.id}`
    const payment = { reference: 'transfer 7', on: '2026-04-20' }
    const paid = { body: payment, other: { ...payment, reference: 'transfer 8' } }
    expect((await does('payInvoice', `${ofInvoice}/pay`, paid)).details).toEqual(payment)
    for (const verb of ['reopen', 'void'])
      expect((await does(`${verb}Invoice`, `${ofInvoice}/${verb}`, { body: { note } })).details).toEqual({ note })
    const made = await does('createApiKey', `POST ${at}/keys`, { body: { expiresInDays: 9 }, other: {} })
    await does('rotateApiKey', `POST ${at}/keys/${made.body.id}/rotate`)
    await does('revokeApiKey', `POST ${at}/keys/${made.body.id}/revoke`)
    await does('recordBackup', 'POST /backups', { body: {}, other: { at: '2026-01-01T00:00:00.000Z' } })
    const memberId = await harness.addMember()
    await harness.db.updateTable('members').set({ reviewReason: 'MD07' }).where('id', '=', memberId).execute()
    const checked = { body: { reason: 'the bank confirmed it' }, other: { reason: 'by phone' } }
    expect((await does('releaseMember', `POST /members/${memberId}/release`, checked)).details).toMatchObject({
      ...{ before: { reviewReason: 'MD07' }, reason: 'the bank confirmed it' },
    })
    await harness.call('DELETE', `/v1/members/${memberId}`)
    const erased = await does('eraseMemberOfPartner', `POST /members/${memberId}/erase`)
    expect(erased.details).toEqual({ paymentsKeptUntil: null })
    await does('declareRestore', 'POST /restores', { body: {}, other: { recoveredUntil: '2026-01-01T00:00:00.000Z' } })
    const comparison = { body: { note: 'by the portal', withoutStatements: true }, other: { note: 'by phone' } }
    await does('resumePayouts', 'POST /payouts/resume', comparison)
    await does('holdRail', 'POST /rails/euro-files/hold')
    await does('releaseRail', 'POST /rails/euro-files/release')
    const { id: batchId, references } = batches[index] as (typeof batches)[number]
    await does('holdPayoutBatch', `POST /payout-batches/${batchId}/hold`)
    await does('releasePayoutBatch', `POST /payout-batches/${batchId}/release`)
    const early = { body: { note }, other: { note: 'another' } }
    await does('closePayoutBatch', `POST /payout-batches/${openBatchId}/close`, early, ofUser(user))
    await does('withdrawPayoutBatchClosing', `POST /payout-batches/${openBatchId}/withdraw`)
    const removal = { body: { reason: 'asked for' }, other: { reason: 'another' } }
    await does('removePayment', `POST /payouts/${references[0]}/remove`, removal)
    // Only people approve.
    for (const each of [user, second])
      await does('approvePayoutBatch', `POST /payout-batches/${batchId}/approve`, {}, ofUser(each))
    await does('exportPayoutBatch', `POST /payout-batches/${batchId}/export`)
    await does('importBankFile', 'POST /rails/euro-files/files?name=statement.txt', {
      raw: `head;M-${kind}\nentry;-2500EUR;;E-${kind}\nentry;-77EUR;;F-${kind};;Fee of ${kind}\nend\n`,
      other: { bytes: 'of another file' },
    })
    const said = { body: { outcome: 'paid', note }, other: { outcome: 'paid', note: 'another' } }
    // Two people approved the payment, so two decide.
    for (const each of [user, second])
      await does('decidePaymentOutcome', `POST /payouts/${references[1]}/outcome`, said, ofUser(each))
    const feeOf = { rail: 'euro-files', text: `fee of ${kind}`, note }
    const query = new URLSearchParams({ rail: feeOf.rail, text: feeOf.text })
    const { fingerprint } = (await by.call('GET', `/operator/v1/payout-exceptions/by-text?${query}`, {})).body
    const closing = { body: { ...feeOf, fingerprint }, other: { ...feeOf, note: 'another', fingerprint } }
    const { details: closed } = await does(
      'closePayoutExceptionsByText',
      'POST /payout-exceptions/by-text/close',
      closing,
    )
    expect(closed).toMatchObject({ count: 1, sums: [{ direction: 'out', count: 1, sum: eur(77) }] })
    const rule = { body: feeOf, other: { ...feeOf, note: 'another' } }
    for (const each of [user, second]) await does('createPayoutRule', 'POST /payout-rules', rule, ofUser(each))
    const [{ id: ruleId }] = (await by.call('GET', '/operator/v1/payout-rules', {})).body.rules
    for (const verb of ['pause', 'resume', 'end'])
      await does(`${verb}PayoutRule`, `POST /payout-rules/${ruleId}/${verb}`, {}, ofUser(user))
    const [left] = (await by.call('GET', '/operator/v1/payout-exceptions', {})).body.exceptions
    const writeOff = { body: { decision: 'write_off', partnerId, note }, other: { decision: 'ignore', note } }
    await does('closePayoutException', `POST /payout-exceptions/${left.id}/close`, writeOff, ofUser(user))
    await does('withdrawPayoutDecision', `POST /payout-exceptions/${left.id}/withdraw`)
    await does('closePayoutException', `POST /payout-exceptions/${left.id}/close`, writeOff, ofUser(user))
    await does('withdrawPayoutProposal', `POST /payout-proposals/${left.id}/withdraw`, {}, ofUser(second))
    await does('closePayoutException', `POST /payout-exceptions/${left.id}/close`, writeOff, ofUser(user))
    await does('confirmPayoutProposal', `POST /payout-proposals/${left.id}/confirm`, {}, ofUser(second))
    await does('verifyLedger', 'POST /ledger-verifications')
    await auditTasks['verify-ledger']({ db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now })
    expect([...seen].sort(), 'every operation was called').toEqual(Object.keys(recorded).sort())

    const before = await everything()
    const download = await by.call('GET', `/operator/v1/payout-batches/${batchId}/file`, {})
    expect(download.text).toContain(iban)
    const [entry, ...older] = await everything()
    expect([entry?.action, entry?.actor, older.length]).toEqual(['payout_batch.download', by.id, before.length])
    const text = JSON.stringify(await everything())
    for (const secret of [...secrets, iban, ownIban, holder, 'Wilhelmina']) expect(text).not.toContain(secret)
  },
)

test('requests that change nothing leave no row: a refusal, and a repetition without an idempotency key', async () => {
  const { partner } = await harness.addPartner('Unchanged')
  // The key of the previous test has used up its requests.
  const operator = await harness.addOperator('Unchanged')
  const post = async (path: string, body: object = {}) =>
    (await operator.call('POST', `/partners/${partner.id}${path}`, { body })).status
  expect(await post('/pause')).toBe(200)
  const before = await everything()
  expect(await post('/pause')).toBe(200)
  expect(await post('/restore')).toBe(200)
  expect(await post('/float/withdraw', { amount: gbp(1) })).toBe(422)
  expect((await operator.call('PATCH', `/partners/${partner.id}`, { body: { graceMinutes: 0 } })).status).toBe(200)
  expect((await operator.call('POST', '/rails/euro-files/release')).status).toBe(200)
  expect((await operator.call('POST', '/payout-batches/bat_123/hold')).status).toBe(404)
  expect((await operator.call('POST', `/payout-batches/${batches[0]?.id}/approve`)).status).toBe(403)
  expect(await everything()).toEqual(before)
})

test('a file with an idempotency key of another request is not imported', async () => {
  const headers = { 'content-type': 'application/octet-stream', 'x-idempotency-key': 'one file' }
  const other = await harness.addOperator('Another')
  const upload = (raw: string) => other.call('POST', '/rails/euro-files/files?name=a.txt', { raw, headers })
  expect((await upload('head;M1\nend\n')).body.result).toBe('imported')
  const before = await everything()
  expect((await upload('head;M2\nentry;100EUR;;E2\nend\n')).status).toBe(422)
  expect(await everything()).toEqual(before)
})

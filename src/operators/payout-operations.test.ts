import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { euroRail, FileBank } from '../../test/banks/file-bank.ts'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { list } from '../audit-log/audit-log.ts'
import { sql } from '../database/database.ts'
import { approve as approveBatch } from '../payouts/books/approvals.ts'
import * as railHolds from '../payouts/books/rail-holds.ts'

// No batch is approved automatically, and the files are carried by hand.
const rail = euroRail({ automatic: null })

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
let users: ConsoleUser[]
beforeAll(async () => {
  harness = await startHarness({
    rails: [rail],
    bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated'),
  })
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  const { rows } = await harness.pool.query(`select max(created_at) as latest from withdrawals`)
  // 11:00 in Berlin, on the next Tuesday, so that each test has its own batch.
  const next =
    rows[0].latest === null
      ? '2026-03-10'
      : new Date(rows[0].latest.getTime() + 7 * 86_400_000).toISOString().slice(0, 10)
  harness.clock.set(new Date(`${next}T10:00:00.000Z`))
})

const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const actionsOn = async (resourceId: string) =>
  (await list(harness.db, { filter: { resourceId }, take: 100 }))
    .filter(({ action }) => action !== 'payout_batch.read')
    .map(({ action, actor }) => [action, actor])
    .toReversed()
const post = (path: string, body?: object) => operator.call('POST', path, body === undefined ? {} : { body })

/** Sessions expire when the clock moves on. */
async function signInUsers() {
  users = [await signIn(harness, { isOperator: true }), await signIn(harness, { isOperator: true })]
}

/** A batch after its cut-off with a payment of each net amount. */
async function batchOf(...nets: number[]) {
  for (const net of nets) await harness.addWithdrawal({ currency: 'EUR', net })
  await harness.sendBatches()
  await signInUsers()
  const { batches } = (await operator.call('GET', '/payout-batches?rail=euro-files&statuses=building&take=1')).body
  expect(batches).toMatchObject([{ status: 'building', needsApproval: true, paymentCount: nets.length }])
  const { payments } = (await operator.call('GET', `/payout-batches/${batches[0].id}/payments`)).body
  return { id: batches[0].id as string, payments: payments as { reference: string; withdrawalId: string }[] }
}

const approve = (id: string, user = users[0]) =>
  user?.call('POST', `/operator/v1/payout-batches/${id}/approve`, { partner: null }) as Promise<ApiResponse>
const byCommand = (batchId: string, login: string) =>
  harness.inTx(tx => approveBatch(tx, { batchId, person: login, login, now: harness.clock.now() }))

const approved = async (...nets: number[]) => {
  const batch = await batchOf(...nets)
  for (const user of users) await approve(batch.id, user)
  return batch
}

test('a batch needs the approvals of two users; one user counts once, and is recorded once', async () => {
  const { id } = await batchOf(5_000, 6_000)
  const [first, second] = users.map(({ user }) => user.id)
  expect((await approve(id)).body).toMatchObject({ status: 'building', approvals: [{ person: first }] })
  expect((await approve(id)).body).toMatchObject({ status: 'building', approvals: [{ person: first }] })
  expect((await approve(id, users[1])).body).toMatchObject({ status: 'approved', approvalsNeeded: 2 })
  expect(problemOf(await approve(id))).toEqual([409, 'Conflict', undefined])
  expect((await operator.call('GET', `/payout-batches/${id}`)).body.approvals).toMatchObject([
    { person: first },
    { person: second },
  ])
  expect(await actionsOn(id)).toEqual([
    ['payout_batch.approve', first],
    ['payout_batch.approve', second],
  ])
})

test('an operator key cannot approve a batch', async () => {
  const { id } = await batchOf(5_000)
  const refused = await post(`/payout-batches/${id}/approve`)
  expect(problemOf(refused)).toEqual([403, 'Forbidden', undefined])
  expect(refused.body.issues[0].message).toBe(
    'Two people must approve the batch, in the console or by command; an operator key cannot',
  )
  expect(await actionsOn(id)).toEqual([])
})

test('a batch that a user approved in the console cannot be approved by command, perhaps by the same person', async () => {
  const { id } = await batchOf(5_000)
  await approve(id)
  await expect(byCommand(id, '1000@host')).rejects.toThrow('another person must approve the batch in the console, too')
  expect((await approve(id, users[1])).body.status).toBe('approved')
})

test('a command that repeats an approval under another spelling of the name is recorded as a repeat', async () => {
  const { id } = await batchOf(5_000)
  for (const as of ['Ada', 'ADA']) {
    const { stdout } = await midmonthHere(['payouts', 'approve', id, '--as', as], harness.settings)
    expect(stdout).toContain('1 of 2 approvals')
  }
  const entries = await list(harness.db, { filter: { resourceId: id, actions: ['payout_batch.approve'] }, take: 10 })
  expect(entries.map(({ details }) => details).toReversed()).toEqual([
    { person: expect.stringMatching(/^Ada /) },
    { person: expect.stringMatching(/^ADA /), isRepeated: true },
  ])
})

test('a batch that was approved by command cannot be approved in the console, perhaps by the same person', async () => {
  const { id } = await batchOf(5_000)
  expect(await byCommand(id, '1000@host')).toMatchObject({ approvalCount: 1 })
  const refused = await approve(id)
  expect(problemOf(refused)).toEqual([409, 'Conflict', undefined])
  expect(refused.body.issues[0].message).toContain('another person must approve the batch by command, too')
  expect(await byCommand(id, '1001@host')).toMatchObject({ approvalCount: 2 })
})

test('the file of an approved batch is exported and downloaded once; a second copy must be requested explicitly, and has the same bytes', async () => {
  const { id, payments } = await approved(5_000, 6_000)
  const at = `/payout-batches/${id}`
  expect(problemOf(await operator.call('GET', `${at}/file`))).toEqual([409, 'Conflict', undefined])
  const exported = await post(`${at}/export`)
  expect(exported.status, exported.text).toBe(200)
  expect((await post(`${at}/export`)).body).toEqual(exported.body)
  const first = await operator.call('GET', `${at}/file`)
  const refused = await operator.call('GET', `${at}/file`)
  expect(problemOf(refused)).toEqual([409, 'Conflict', undefined])
  const downloadedAt = harness.clock.now().toISOString()
  expect(refused.body.issues[0].message).toContain(`downloaded by ${operator.id} at ${downloadedAt}`)
  expect(problemOf(await operator.call('GET', `${at}/file?again=false`))).toEqual([409, 'Conflict', undefined])
  const files = [first, await operator.call('GET', `${at}/file?again=true`)]
  for (const { text, headers } of files) {
    expect(createHash('sha256').update(text).digest('hex')).toBe(exported.body.sha256)
    expect(headers['content-disposition']).toBe(`attachment; filename="${exported.body.name}"`)
    for (const { reference } of payments) expect(text).toContain(reference)
  }
  const download = { kind: 'download', person: operator.id, at: downloadedAt }
  expect((await operator.call('GET', at)).body).toMatchObject({
    ...{ status: 'sent', fileSha256: exported.body.sha256, copies: [download, download] },
  })
  expect((await actionsOn(id)).map(([action]) => action).slice(2)).toEqual([
    'payout_batch.export',
    'payout_batch.download',
    'payout_batch.download',
  ])
})

test('the file of a batch can be downloaded until the accounts of a member are no longer kept, and then the response says so', async () => {
  const { id, payments } = await approved(5_000)
  expect((await post(`/payout-batches/${id}/export`)).status).toBe(200)
  const forget = (key: 'profile_key' | 'payment_key') =>
    sql`
      update member_keys set ${sql.ref(key)} = null
       where member_id = (select member_id from withdrawals where id = ${payments[0]?.withdrawalId})`.execute(
      harness.db,
    )
  const download = () => operator.call('GET', `/payout-batches/${id}/file?again=true`)
  const whole = await download()
  // As an erasure does at once, and at the end of the retention of payments.
  await forget('profile_key')
  expect((await download()).text).toBe(whole.text)
  await forget('payment_key')
  const refused = await download()
  expect(problemOf(refused)).toEqual([409, 'Conflict', undefined])
  expect(refused.body.issues[0].message).toMatch(
    /^The file can no longer be written: the account of MM\S+ is no longer kept\. If the file was not sent, /,
  )
})

test('the file of a batch that the worker delivered is downloaded only if a second copy is requested', async () => {
  const bank = new FileBank()
  const { id } = await batchOf(5_000)
  for (const user of users) await approve(id, user)
  const { clock } = harness
  await harness.runTask('send-payout-batches', { rails: [{ ...rail, delivery: async () => bank }] })
  const at = `/payout-batches/${id}`
  const deliveredAt = clock.now().toISOString()
  const delivery = { kind: 'delivery', person: null, at: deliveredAt }
  expect((await operator.call('GET', at)).body).toMatchObject({ status: 'sent', copies: [delivery] })
  const refused = await operator.call('GET', `${at}/file`)
  expect(problemOf(refused)).toEqual([409, 'Conflict', undefined])
  expect(refused.body.issues[0].message).toContain(`delivered by the worker at ${deliveredAt}`)
  expect((await operator.call('GET', `${at}/file?again=true`)).status).toBe(200)
  const download = { kind: 'download', person: operator.id, at: deliveredAt }
  expect((await operator.call('GET', at)).body.copies).toMatchObject([delivery, download])
})

test('a batch whose export cannot be recorded in the audit log does not count as sent', async () => {
  const { id } = await approved(5_000)
  const { ownerDb } = harness
  await sql`
    alter table audit_log
      add constraint no_exports check (action <> 'payout_batch.export') not valid`.execute(ownerDb)
  try {
    expect((await post(`/payout-batches/${id}/export`)).status).toBe(500)
  } finally {
    await sql`alter table audit_log drop constraint no_exports`.execute(ownerDb)
  }
  expect((await operator.call('GET', `/payout-batches/${id}`)).body).toMatchObject({
    status: 'approved',
    fileName: null,
  })
  expect((await post(`/payout-batches/${id}/export`)).status).toBe(200)
  expect((await actionsOn(id)).at(-1)).toEqual(['payout_batch.export', operator.id])
})

test('an export needs one connection at a time, so many at once do not wait for each other', async () => {
  const { id } = await approved(5_000, 6_000)
  // Written once a second, over the same pool.
  await harness.flushRequestLog()
  const { pool } = harness
  let [inUse, inUseMost] = [0, 0]
  const onAcquire = () => {
    inUse += 1
    inUseMost = Math.max(inUseMost, inUse)
  }
  const onRelease = () => {
    inUse -= 1
  }
  pool.on('acquire', onAcquire).on('release', onRelease)
  try {
    expect((await post(`/payout-batches/${id}/export`)).status).toBe(200)
  } finally {
    pool.off('acquire', onAcquire).off('release', onRelease)
  }
  expect(inUseMost).toBe(1)
})

test('a held batch is not exported until it is released', async () => {
  const { id } = await approved(5_000)
  const at = `/payout-batches/${id}`
  expect((await post(`${at}/hold`)).body.held).toBe(true)
  expect((await post(`${at}/hold`)).body.held).toBe(true)
  expect(problemOf(await post(`${at}/export`))).toEqual([409, 'Conflict', undefined])
  expect((await post(`${at}/release`)).body.held).toBe(false)
  expect((await post(`${at}/export`)).status).toBe(200)
  expect(problemOf(await post(`${at}/hold`))).toEqual([409, 'Conflict', undefined])
  expect((await actionsOn(id)).map(([action]) => action).slice(2)).toEqual([
    'payout_batch.hold',
    'payout_batch.release',
    'payout_batch.export',
  ])
})

test('a payment that is taken out of an unsent batch fails, and the others stay', async () => {
  const { id, payments } = await batchOf(5_000, 6_000)
  const [first] = payments
  const remove = () => post(`/payouts/${first?.reference}/remove`, { reason: 'The member asked for it' })
  expect((await remove()).body).toEqual({
    partnerId: harness.partner.id,
    withdrawalId: first?.withdrawalId,
    batchId: id,
  })
  expect(problemOf(await remove())).toEqual([409, 'Conflict', undefined])
  await harness.runTask('read-rail-reports')
  expect((await harness.call('GET', `/v1/pay/withdrawals/${first?.withdrawalId}`)).body.status).toBe('failed')
  expect((await operator.call('GET', `/payout-batches/${id}`)).body.paymentCount).toBe(1)
  expect(problemOf(await post('/payouts/MMAAAAAAAAAAAAAA/remove', { reason: 'x' }))[0]).toBe(404)
})

test('a file of the bank is streamed and imported once; a broken one is refused whole', async () => {
  const { id, payments } = await approved(5_000)
  await post(`/payout-batches/${id}/export`)
  const upload = (raw: string, name = 'answer.txt', to = 'euro-files') =>
    operator.call('POST', `/rails/${to}/files?name=${name}`, {
      raw,
      headers: { 'content-type': 'application/octet-stream' },
    })
  const broken = await upload(`head;M1\npaid;${payments[0]?.reference}\nnonsense\n`, 'broken.txt')
  expect([problemOf(broken).slice(0, 2), broken.body.issues[0].row]).toEqual([[400, 'FileContent'], '3'])
  const answer = `head;M1\npaid;${payments[0]?.reference}\nend\n`
  const imported = await upload(answer)
  expect(imported.body).toMatchObject({ result: 'imported', records: 1 })
  expect((await upload(answer)).body).toEqual({ ...imported.body, result: 'repeated' })
  const sha256 = createHash('sha256').update(answer).digest('hex')
  expect(await list(harness.db, { filter: { resourceId: imported.body.fileId }, take: 10 })).toMatchObject([
    {
      ...{ partnerId: null, action: 'bank_file.import', actor: operator.id },
      details: { person: operator.id, rail: 'euro-files', file: 'answer.txt', sha256, records: 1 },
    },
  ])
  await harness.runTask('read-rail-reports')
  expect((await harness.call('GET', `/v1/pay/withdrawals/${payments[0]?.withdrawalId}`)).body.status).toBe('paid')
  expect(problemOf(await upload(answer, 'x', 'other'))[0]).toBe(404)
  const json = await operator.call('POST', '/rails/euro-files/files?name=x', { body: {} })
  expect(problemOf(json)).toEqual([400, 'BodyValidation', 'body'])
})

test('an exception is listed, shown and closed by a decision with exactly its fields', async () => {
  const upload = await operator.call('POST', '/rails/euro-files/files?name=unknown.txt', {
    raw: 'head;M9\nentry;2500EUR;;E9\nend\n',
    headers: { 'content-type': 'application/octet-stream' },
  })
  expect(upload.status, upload.text).toBe(200)
  const [found] = (await operator.call('GET', '/payout-exceptions')).body.exceptions
  expect(found).toMatchObject({ kind: 'money_in', amount: { amount: 2_500, currency: 'EUR' }, fileName: 'unknown.txt' })
  const at = `/payout-exceptions/${found.id}`
  const details = { proposal: null, proposals: [], isBookedElsewhere: false }
  expect((await operator.call('GET', at)).body).toEqual({ ...found, ...details })
  const close = (body: object) => post(`${at}/close`, { note: 'opening transfer', ...body })
  expect(problemOf(await close({ decision: 'book' }))).toEqual([400, 'BodyValidation', 'partnerId'])
  expect(problemOf(await close({ decision: 'ignore', reference: 'x' }))).toEqual([400, 'BodyValidation', 'reference'])
  expect(problemOf(await close({ decision: 'attach' }))).toEqual([400, 'BodyValidation', 'reference'])
  for (const extra of [
    { reference: 'x' },
    { charge: { amount: { amount: 1, currency: 'EUR' }, borneBy: 'partner' } },
  ]) {
    const several = { decision: 'attach', references: ['MMAAAAAAAAAAAAAA', 'MMBBBBBBBBBBBBBB'], ...extra }
    expect(problemOf(await close(several))).toEqual([400, 'BodyValidation', Object.keys(extra)[0]])
  }
  const named = { decision: 'ignore', references: ['MMAAAAAAAAAAAAAA'] }
  expect(problemOf(await close(named))).toEqual([400, 'BodyValidation', 'references'])
  expect(problemOf(await close({ decision: 'give_back' }))).toEqual([409, 'Conflict', undefined])
  const closed = await close({ decision: 'book', partnerId: harness.partner.id })
  expect(closed.body).toMatchObject({ closedBy: operator.id, decision: 'book', note: 'opening transfer' })
  expect(problemOf(await close({ decision: 'ignore' }))).toEqual([409, 'Conflict', undefined])
  expect((await operator.call('GET', '/payout-exceptions')).body.exceptions).toEqual([])
  expect((await operator.call('GET', '/payout-exceptions?state=all')).body.exceptions[0].id).toBe(found.id)
  expect(await actionsOn(found.id)).toEqual([['payout_exception.close', operator.id]])
})

test('two people close a debit of too little by naming the payments that the bank did not make', async () => {
  const { id, payments } = await approved(5_000, 6_000)
  await post(`/payout-batches/${id}/export`)
  const { messageId } = (await operator.call('GET', `/payout-batches/${id}`)).body
  const headers = { 'content-type': 'application/octet-stream' }
  const raw = `head;M12\nentry;-5000EUR;${messageId};E13\nend\n`
  await operator.call('POST', '/rails/euro-files/files?name=debit.txt', { raw, headers })
  const [found] = (await operator.call('GET', '/payout-exceptions')).body.exceptions
  expect(found).toMatchObject({ kind: 'amount', reference: messageId, batchId: id })
  const amounts = new Map(
    (await operator.call('GET', `/payout-batches/${id}/payments`)).body.payments.map(
      ({ reference, amount }: { reference: string; amount: { amount: number } }) => [amount.amount, reference],
    ),
  )
  const at = `/payout-exceptions/${found.id}`
  const body = (of: number) => ({ decision: 'give_back', references: [amounts.get(of)], note: 'by phone' })
  const close = async (of: number, user = users[0]) =>
    (await user?.call('POST', `/operator/v1${at}/close`, { body: body(of), partner: null })) as ApiResponse
  expect(problemOf(await post(`${at}/close`, body(6_000)))).toEqual([403, 'Forbidden', undefined])
  expect(problemOf(await close(5_000))).toEqual([409, 'Conflict', undefined])
  expect((await close(6_000)).body).toMatchObject({ decision: null, closedAt: null })
  const [first, second] = users.map(({ user }) => user.id)
  expect((await operator.call('GET', at)).body.proposal).toMatchObject({ person: first })
  expect((await close(6_000, users[1])).body).toMatchObject({ decision: 'give_back', closedBy: second })
  const details = { references: [amounts.get(6_000)] }
  expect(await list(harness.db, { filter: { resourceId: found.id }, take: 10 })).toMatchObject([
    { action: 'payout_exception.close', actor: second, details },
    { action: 'payout_exception.close', actor: first, details: { ...details, isProposed: true } },
  ])
  await harness.runTask('read-rail-reports')
  const statuses = await Promise.all(
    payments.map(
      async ({ withdrawalId }) => (await harness.call('GET', `/v1/pay/withdrawals/${withdrawalId}`)).body.status,
    ),
  )
  expect(statuses.sort()).toEqual(['failed', 'paid'])
})

test('a proposed decision is listed, confirmed once by another person, withdrawn by anyone, and ends with its payment', async () => {
  const { id, payments } = await approved(5_100, 6_100)
  await post(`/payout-batches/${id}/export`)
  harness.clock.advance({ minutes: 5 * 24 * 60 })
  await signInUsers()
  const [first, second] = users
  const ask = async (user: ConsoleUser | undefined, path: string, body?: object) =>
    (await user?.call('POST', `/operator/v1${path}`, {
      partner: null,
      ...(body === undefined ? {} : { body }),
    })) as ApiResponse
  const propose = async (reference: string) =>
    await ask(first, `/payouts/${reference}/outcome`, { outcome: 'failed', note: 'seen in the portal' })
  const [one = '', other = ''] = payments.map(({ reference }) => reference).sort()
  for (const reference of [one, other]) expect((await propose(reference)).status).toBe(200)

  const listed = (await operator.call('GET', '/payout-proposals')).body
  expect(listed).toMatchObject({ hasMore: false, proposals: [{ subject: one }, { subject: other }] })
  expect(listed.proposals[0]).toMatchObject({ person: first?.user.id, note: 'seen in the portal' })
  expect((await operator.call('GET', '/payout-proposals?take=1')).body).toMatchObject({
    ...{ hasMore: true, proposals: [{ subject: one }] },
  })
  expect((await operator.call('GET', `/payout-proposals?after=${one}`)).body.proposals).toMatchObject([
    { subject: other },
  ])

  const confirm = async (user: ConsoleUser | undefined, subject = one) =>
    await ask(user, `/payout-proposals/${subject}/confirm`)
  expect(problemOf(await post(`/payout-proposals/${one}/confirm`))).toEqual([403, 'Forbidden', undefined])
  expect((await confirm(first)).status).toBe(409)
  expect((await confirm(second, 'MMAAAAAAAAAAAAAA')).status).toBe(404)
  const both = await Promise.all([confirm(second), confirm(second)])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  expect((await confirm(second)).body.issues[0].message).toContain('confirmed')

  expect((await ask(second, `/payout-proposals/${other}/withdraw`)).body).toEqual({ subject: other })
  expect((await confirm(second, other)).body.issues[0].message).toContain('withdrawn')
  expect((await propose(other)).status).toBe(200)
  await operator.call('POST', '/rails/euro-files/files?name=paid.txt', {
    raw: `head;M13\npaid;${other}\nend\n`,
    headers: { 'content-type': 'application/octet-stream' },
  })
  expect((await confirm(second, other)).status).toBe(409)
  expect((await operator.call('GET', '/payout-proposals')).body.proposals).toEqual([])
  await harness.runTask('read-rail-reports')
  const statuses = await Promise.all(
    payments.map(
      async ({ withdrawalId }) => (await harness.call('GET', `/v1/pay/withdrawals/${withdrawalId}`)).body.status,
    ),
  )
  expect(statuses.sort()).toEqual(['failed', 'paid'])
})

test('closing an exception that names no payment is in the log of the installation', async () => {
  await operator.call('POST', '/rails/euro-files/files?name=charges.txt', {
    raw: 'head;M10\nentry;-300EUR;;E10\nend\n',
    headers: { 'content-type': 'application/octet-stream' },
  })
  const [{ id }] = (await operator.call('GET', '/payout-exceptions')).body.exceptions
  await post(`/payout-exceptions/${id}/close`, { decision: 'ignore', note: 'bank charges' })
  expect(await list(harness.db, { filter: { resourceId: id }, take: 100 })).toMatchObject([
    {
      ...{ action: 'payout_exception.close', actor: operator.id, partnerId: null },
      details: { person: operator.id, decision: 'ignore', note: 'bank charges', reference: null },
    },
  ])
})

test('lists have pages, and rails are listed', async () => {
  const all = (await operator.call('GET', '/payout-batches')).body.batches
  const first = (await operator.call('GET', '/payout-batches?take=1')).body
  expect(first).toEqual({ batches: [all[0]], hasMore: true })
  const rest = (await operator.call('GET', `/payout-batches?after=${all[0].id}`)).body
  expect(rest).toEqual({ batches: all.slice(1), hasMore: false })
  const withTwo = all.find(({ paymentCount }: { paymentCount: number }) => paymentCount === 2)
  const at = `/payout-batches/${withTwo.id}/payments`
  const { payments } = (await operator.call('GET', at)).body
  const second = (await operator.call('GET', `${at}?after=${payments[0].reference}`)).body
  expect(second).toEqual({ payments: payments.slice(1), hasMore: false })
  const { rails } = (await operator.call('GET', '/rails')).body
  const euroFiles = {
    name: 'euro-files',
    isConfigured: true,
    currency: 'EUR',
    kind: 'files',
    isByHand: true,
    ...{ brake: null, importing: [] },
  }
  expect(rails).toEqual([{ ...euroFiles, hold: null }])
})

test('a held rail sends nothing until it is released; only a change is in the audit log', async () => {
  const colleague = await harness.addOperator('Colleague')
  const { id } = await approved(5_000)
  const now = harness.clock.now().toISOString()
  const euroFiles = {
    name: 'euro-files',
    isConfigured: true,
    currency: 'EUR',
    kind: 'files',
    isByHand: true,
    ...{ brake: null, importing: [] },
  }
  const held = await post('/rails/euro-files/hold', { reason: 'bank outage' })
  expect(held.body).toEqual({ ...euroFiles, hold: { since: now, by: operator.id, reason: 'bank outage' } })
  expect((await colleague.call('POST', '/rails/euro-files/hold')).body).toEqual(held.body)
  expect((await operator.call('GET', '/rails')).body.rails).toEqual([held.body])
  expect(problemOf(await post(`/payout-batches/${id}/export`))).toEqual([409, 'Conflict', undefined])

  expect((await colleague.call('POST', '/rails/euro-files/release')).body).toEqual({ ...euroFiles, hold: null })
  expect((await post('/rails/euro-files/release')).body.hold).toBeNull()
  expect((await post(`/payout-batches/${id}/export`)).status).toBe(200)
  const entries = (await list(harness.db, { filter: { resourceId: 'euro-files' }, take: 10 })).toReversed()
  expect(entries).toMatchObject([
    {
      ...{ partnerId: null, action: 'rail.hold', actor: operator.id },
      details: { person: operator.id, reason: 'bank outage' },
    },
    {
      ...{ partnerId: null, action: 'rail.release', actor: colleague.id },
      details: { person: colleague.id, reason: null },
    },
  ])
  expect(entries).toHaveLength(2)

  const unknown = await post('/rails/other/hold')
  expect(problemOf(unknown)[0]).toBe(404)
  const { rows } = await harness.pool.query(`select from payout_rail_holds where rail = 'other'`)
  expect(rows).toEqual([])
})

test('a rail that was removed from the settings while it was held is listed until it is released', async () => {
  const { db, clock } = harness
  const now = clock.now()
  await db.transaction().execute(tx => railHolds.hold(tx, { rail: 'left-bank', person: 'Ada', now }))
  const left = {
    name: 'left-bank',
    isConfigured: false,
    currency: null,
    kind: null,
    isByHand: false,
    ...{ brake: null, importing: [] },
  }
  const { rails } = (await operator.call('GET', '/rails')).body
  expect(rails[1]).toEqual({ ...left, hold: { since: now.toISOString(), by: 'Ada', reason: null } })

  const reason = 'the bank closed the account'
  expect((await post('/rails/left-bank/release', { reason })).body).toEqual({ ...left, hold: null })
  expect((await post('/rails/left-bank/release')).body).toEqual({ ...left, hold: null })
  expect((await operator.call('GET', '/rails')).body.rails).toHaveLength(1)
  expect(await list(db, { filter: { resourceId: 'left-bank' }, take: 10 })).toMatchObject([
    { action: 'rail.release', actor: operator.id, details: { person: operator.id, reason } },
  ])
  expect(problemOf(await post('/rails/left-bank/hold'))[0]).toBe(404)
  expect(problemOf(await post('/rails/never-held/release'))[0]).toBe(404)
})

test('a held batch says since when, by whom and why, until it is released', async () => {
  const { id } = await batchOf(5_000)
  const at = `/payout-batches/${id}`
  const hold = { since: harness.clock.now().toISOString(), by: operator.id, reason: 'one payee is unclear' }
  expect((await post(`${at}/hold`, { reason: hold.reason })).body).toMatchObject({ held: true, hold })
  // The first hold counts.
  expect((await post(`${at}/hold`, { reason: 'another' })).body.hold).toEqual(hold)
  expect((await operator.call('GET', at)).body.hold).toEqual(hold)
  expect((await post(`${at}/release`)).body).toMatchObject({ held: false, hold: null })
  expect((await post(`${at}/hold`)).body.hold).toMatchObject({ by: operator.id, reason: null })
  expect(problemOf(await post(`${at}/hold`, { reason: ' ' }))).toEqual([400, 'BodyValidation', 'reason'])
  expect((await post(`${at}/release`)).status).toBe(200)
})

test('a withdrawal’s payment is shown with its batch, its answers with their files, and the answers that did not fit', async () => {
  const { id, payments } = await approved(5_000, 6_000)
  const [first, second] = payments
  const at = `/payouts/${first?.withdrawalId}`
  expect((await operator.call('GET', at)).body).toMatchObject({
    ...{ reference: first?.reference, rail: 'euro-files', partnerId: harness.partner.id, outcome: null },
    ...{ withdrawalId: first?.withdrawalId, batch: { id, status: 'approved' }, answers: [], exceptions: [] },
  })
  await post(`/payout-batches/${id}/export`)
  const { messageId } = (await operator.call('GET', `/payout-batches/${id}`)).body
  const raw = `head;H1\nbatch;${messageId};acknowledged;\nfailed;${first?.reference};;AC04\npaid;${second?.reference};1EUR\nend\n`
  const headers = { 'content-type': 'application/octet-stream' }
  const upload = await operator.call('POST', '/rails/euro-files/files?name=history.txt', { raw, headers })
  expect(upload.status, upload.text).toBe(200)
  const shown = (await operator.call('GET', at)).body
  const now = harness.clock.now().toISOString()
  const reason = 'AC04 The account is closed'
  expect(shown).toMatchObject({ outcome: 'failed', reasonCode: 'AC04', reason, batch: { status: 'acknowledged' } })
  const inFile = { at: now, by: 'bank', bookedOn: null, fileName: 'history.txt' }
  expect(shown.answers).toEqual([
    { ...inFile, isAboutBatch: true, outcome: null, reason: null, line: 2 },
    { ...inFile, isAboutBatch: false, outcome: 'failed', reason, line: 3 },
  ])
  const other = (await operator.call('GET', `/payouts/${second?.reference}`)).body
  expect(other).toMatchObject({ outcome: null, exceptions: [{ kind: 'amount', fileName: 'history.txt', line: 4 }] })
  expect(problemOf(await operator.call('GET', '/payouts/w_unknown'))).toEqual([404, 'NotFound', undefined])
})

test('exceptions are listed by their state', async () => {
  await operator.call('POST', '/rails/euro-files/files?name=two.txt', {
    raw: 'head;M11\nentry;-300EUR;;E11\nentry;-400EUR;;E12\nend\n',
    headers: { 'content-type': 'application/octet-stream' },
  })
  const of = async (state: string) =>
    (await operator.call('GET', `/payout-exceptions?state=${state}&take=1000`)).body.exceptions as {
      id: string
      closedAt: string | null
    }[]
  const [newest] = await of('open')
  await post(`/payout-exceptions/${newest?.id}/close`, { decision: 'ignore', note: 'bank charges' })
  const [open, closed, all] = await Promise.all(['open', 'closed', 'all'].map(of))
  expect(closed?.[0]?.id).toBe(newest?.id)
  expect(closed?.every(({ closedAt }) => closedAt !== null)).toBe(true)
  expect(open?.every(({ closedAt }) => closedAt === null)).toBe(true)
  expect(all).toHaveLength((open?.length ?? 0) + (closed?.length ?? 0))
})

test('an unknown batch and an unknown exception are not found', async () => {
  for (const [method, path] of [
    ['GET', '/payout-batches/bat_123'],
    ['GET', '/payout-batches/bat_123/payments'],
    ['GET', '/payout-batches/bat_123/file'],
    ['POST', '/payout-batches/bat_123/hold'],
    ['POST', '/payout-batches/bat_123/export'],
    ['GET', '/payout-exceptions/pex_123'],
  ] as const)
    expect(problemOf(await operator.call(method, path))[0], path).toBe(404)
  await signInUsers()
  expect(problemOf(await approve('bat_123'))[0]).toBe(404)
})

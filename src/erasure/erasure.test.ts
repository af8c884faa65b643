import { createPublicKey, verify } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { midmonthHere } from '../../test/program/program.ts'
import { openAccount } from '../bank-accounts/sealed-account.ts'
import { closeIfOver } from '../closing/closing.ts'
import { readSettings } from '../config.ts'
import { sql } from '../database/database.ts'
import { lockByName, shareByName } from '../database/named-locks.ts'
import { run } from '../main.ts'
import { recount } from '../members/counts.ts'
import { openAll } from '../members/sealing.ts'
import { openDatabase, prepare } from '../open-database.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import { eraseAgain, erase as eraseIn, inspectJournal } from './erasure.ts'
import { append, readJournal } from './journal.ts'

const quiet = pino({ level: 'silent' })

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const march = new Date('2026-03-10T09:00:00.000Z')
const april = new Date('2026-04-02T10:00:00.000Z')
// Later than any bank returns what was paid in March.
const may = new Date('2026-05-20T10:00:00.000Z')
beforeEach(() => harness.clock.set(march))

const account = { accountHolder: 'Canary Holder', sortCode: '089999', accountNumber: '66374958' }
const person = {
  ...{ email: 'canary@example.com', firstName: 'Canaria', lastName: 'Kanari', phone: '+447700900987', tier: 'Silver' },
  ...{ workerId: 'canary-worker', dob: '1971-11-13', gender: 'Female', accountDetails: account },
}
const canaries = ['canary', 'Canaria', 'Kanari', '7700900987', '1971-11-13', '66374958', 'Canary Holder', 'likes birds']
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const unknownMember = 'mem_01kah4pzc5e4r8v2m6t0x9y3bd'

const callAs =
  ({ key }: TestPartner) =>
  (method: string, path: string, options: Parameters<Harness['call']>[2] = {}) =>
    harness.call(method, path, { key, ...options })
type Calls = ReturnType<typeof callAs>
const erase = (call: Calls, memberId: string, query = '') => call('POST', `/v1/members/${memberId}/erase${query}`)
const messagesOf = ({ body }: { body: { issues?: { message: string }[] } }) =>
  (body.issues ?? []).map(each => each.message)

const close = ({ partner }: TestPartner) =>
  harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))

async function partnerWith(
  settings: PartnerSettings = {},
): Promise<{ mine: TestPartner; call: Calls; memberId: string }> {
  const mine = await harness.addPartner('Acme', settings)
  const call = callAs(mine)
  const invited = await call('POST', '/v1/members', { body: person, headers: { 'x-idempotency-key': 'invite' } })
  expect(invited.status, invited.text).toBe(201)
  return { mine, call, memberId: invited.body.memberId }
}

/** Pays the member, and lets the member withdraw, which the bank pays. */
async function withdraw({ mine, call, memberId }: Awaited<ReturnType<typeof partnerWith>>) {
  await call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money: gbp(20_000) }] } })
  harness.clock.advance({ minutes: 11 })
  await harness.runTask('make-pay-runs-available')
  const as = { key: mine.key, headers: { 'x-idempotency-key': 'intent' } }
  const { body } = await harness.requestIntent({ memberId, ...as })
  const withdrawalId = await harness.completeIntent(body.withdrawalIntentId, { key: mine.key })
  await harness.runTask('expire-intents')
  harness.clock.advance({ seconds: 60 })
  await harness.runTask('submit-withdrawals')
  harness.clock.advance({ minutes: 5 })
  await harness.runTask('ask-about-withdrawals')
  expect(await harness.getWithdrawal(withdrawalId, mine.key)).toMatchObject({ status: 'paid' })
  return { intentId: body.withdrawalIntentId as string, withdrawalId }
}

/** A member who has withdrawn, was offboarded, and whom nothing is left to do for. */
async function leaver() {
  const made = await partnerWith()
  const { mine, call, memberId } = made
  const withdrawn = await withdraw(made)
  await call('PUT', `/v1/members/${memberId}/metadata`, { body: { hobby: 'likes birds' } })
  harness.clock.set(april)
  await close(mine)
  await call('DELETE', `/v1/members/${memberId}`)
  const body = { deductions: [{ memberId, taken: gbp(5_000) }] }
  const settled = await call('POST', `/v1/pay/cycles/${mine.payCycle.id}/settlement`, { body })
  expect(settled.status, settled.text).toBe(201)
  harness.clock.set(may)
  await close(mine)
  return { ...made, ...withdrawn }
}

test('an erased member no longer exists, and the books are complete', async () => {
  const { call, mine, memberId, withdrawalId, intentId } = await leaver()
  const counted = async () => (await call('GET', '/v1/members?statuses=inactive')).body.total
  expect(await counted()).toBe(1)
  const preview = await erase(call, memberId, '?dryRun=true')
  expect(preview.status, preview.text).toBe(200)
  expect(preview.body).toMatchObject({ memberId, erasedAt: null, obstacles: [], receipt: null })
  expect((await call('GET', `/v1/members/${memberId}`)).status).toBe(200)

  const erased = await erase(call, memberId)
  expect(erased.status, erased.text).toBe(200)
  expect(erased.body).toMatchObject({ memberId, erasedAt: may.toISOString(), kept: preview.body.kept })
  // The payments by the setting of evidence, then the backups by theirs.
  expect(erased.body.kept[0].until).toBe('2032-03-10')
  expect(erased.body.kept[1]).toMatchObject({ what: expect.stringMatching(/backups/), until: '2026-06-24' })
  for (const [method, path] of [
    ['GET', `/v1/members/${memberId}`],
    ['GET', `/v1/members/${memberId}/metadata`],
    ['GET', `/v1/members/${memberId}/data-export`],
    ['GET', `/v1/pay/members/${memberId}/balance`],
    ['DELETE', `/v1/members/${memberId}`],
    ['POST', `/v1/members/${memberId}/activate`],
  ] as const) {
    const refused = await call(method, path)
    expect([refused.status, refused.body.issues?.[0].code], path).toEqual([404, 'MemberNotFound'])
  }
  expect((await call('PUT', `/v1/members/${memberId}`, { body: person })).status).toBe(404)
  for (const query of [
    '',
    '?emails=canary@example.com',
    '?workerIds=canary-worker',
    '?search=Kanari',
    `?memberIds=${memberId}`,
  ])
    expect((await call('GET', `/v1/members${query}`)).body, query).toMatchObject({ members: [], total: 0 })
  expect(
    (await call('GET', '/v1/members', { headers: { accept: 'text/csv' } })).text.trim().split('\r\n'),
  ).toHaveLength(1)
  expect(await counted()).toBe(0)
  await harness.inTx(tx => recount(tx, mine.partner.id))
  expect(await counted()).toBe(0)

  expect((await call('GET', `/v1/pay/withdrawals/${withdrawalId}`)).body).toMatchObject({ status: 'paid', memberId })
  expect((await call('GET', `/v1/pay/withdrawals/intent/${intentId}`)).status).toBe(200)
  expect((await call('GET', `/v1/pay/members/${memberId}/statement`)).body.lines).not.toEqual([])
  const path = `/v1/pay/cycles/${mine.payCycle.id}/deductions`
  expect((await call('GET', path)).body.deductions).toEqual([{ memberId, total: gbp(5_000) }])
  const file = await call('GET', path, { headers: { accept: 'text/csv' } })
  expect(file.text.split('\r\n')[1]).toBe(`${memberId},,,50.00,GBP`)
  expect((await call('GET', `/v1/pay/cycles/${mine.payCycle.id}/settlement`)).status).toBe(200)
  expect(await harness.disagreements()).toEqual([])
})

test('nothing of the person is left in any table, and the old ciphertext cannot be opened', async () => {
  const { call, mine, memberId } = await leaver()
  const action = { type: 'Update', memberId, firstName: 'Canaria' }
  const job = await call('POST', '/v1/members/jobs', { body: { actions: [action] } })
  expect(job.status, job.text).toBe(202)
  await harness.runTask('apply-member-imports')
  const owner = { partnerId: mine.partner.id, memberId }
  const readStored = async () => {
    const { rows } = await sql<{ profile: Buffer; account: Buffer; profileKey: Buffer; paymentKey: Buffer }>`
      select m.profile, m.account, k.profile_key, k.payment_key
        from members m join member_keys k on k.partner_id = m.partner_id and k.member_id = m.id
       where m.id = ${memberId}`.execute(harness.db)
    const [row] = rows
    if (row === undefined) throw new Error('There is no member')
    return row
  }
  const before = await readStored()
  expect(openAll(harness.sealer, before, owner)).toMatchObject({ email: person.email })
  const erased = await erase(call, memberId)
  expect(erased.status, erased.text).toBe(200)
  const after = await readStored()
  expect(openAll(harness.sealer, { ...before, profileKey: after.profileKey }, owner)).toBeUndefined()
  for (const paymentKey of [after.paymentKey])
    expect(() => openAll(harness.sealer, { ...before, profileKey: paymentKey }, owner)).toThrow('cannot be opened')
  // Whom was paid is evidence until its retention ends.
  expect(openAccount(harness.sealer, { account: before.account, paymentKey: after.paymentKey }, owner)).toEqual(account)
  await harness.flushRequestLog()
  expect(await find([...canaries, before.profile, before.profileKey], mine.partner.id)).toEqual([])
  expect(await find([before.account], mine.partner.id)).toEqual(['withdrawal_intents'])
})

/** The tables that hold one of the values in a row of the partner. */
async function find(values: (string | Buffer)[], partnerId: string): Promise<string[]> {
  const { rows: tables } = await sql<{ name: string }>`
    select c.oid::regclass::text as name from pg_class c
     where relkind = 'r' and relnamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace)`.execute(
    harness.ownerDb,
  )
  const wanted = values.flatMap(value =>
    typeof value === 'string' ? [value, Buffer.from(value).toString('hex')] : [value.toString('hex')],
  )
  const found = new Set<string>()
  for (const { name } of tables) {
    const { rows } = await sql<{ text: string }>`select t::text as text from ${sql.raw(name)} t`.execute(
      harness.ownerDb,
    )
    for (const { text } of rows)
      if (text.includes(partnerId) && wanted.some(value => text.includes(value))) found.add(name)
  }
  return [...found]
}

test('the receipt is signed, is the same when the erasure is repeated, and leaves one entry in the audit log', async () => {
  const { call, memberId } = await leaver()
  const [first, other] = await Promise.all([erase(call, memberId), erase(call, memberId)])
  harness.clock.advance({ days: 1 })
  const again = await erase(call, memberId)
  expect([first.status, other.status, again.status]).toEqual([200, 200, 200])
  expect(other.body).toEqual(first.body)
  expect(again.body).toEqual(first.body)
  const { receipt, publicKey, kept } = first.body
  const [header = '', claims = '', signature = ''] = receipt.split('.')
  expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'EdDSA', kid: publicKey.kid })
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ iss: 'midmonth', memberId, kept })
  const { kid: _, ...jwk } = publicKey
  const key = createPublicKey({ key: jwk, format: 'jwk' })
  const isSigned = (text: string) => verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64url'))
  expect([isSigned(`${header}.${claims}`), isSigned(`${header}.${claims.slice(1)}`)]).toEqual([true, false])
  const { rows } = await sql<{ details: object }>`
    select details from audit_log where resource_id = ${memberId} and action = 'member.erase'`.execute(harness.db)
  expect(rows).toHaveLength(1)
})

test('erasing is refused with every reason, and changes nothing', async () => {
  const made = await partnerWith({ graceMinutes: 10 })
  const { mine, call, memberId } = made
  const { withdrawalId } = await withdraw(made)
  const intentId = await harness.createIntent({ memberId, key: mine.key })
  const heldId = await harness.withdraw({ memberId, key: mine.key })
  await call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money: gbp(100) }] } })
  const [scheduled] = (await call('GET', '/v1/pay/runs?take=1')).body.payRuns
  await sql`
    insert into payout_exceptions (id, rail, kind, fingerprint, partner_id, withdrawal_id, reason, opened_at)
    values ('pex_erasure', 'simulated', 'contradiction', 'erasure', ${mine.partner.id}, ${withdrawalId}, 'Said both', ${march})`.execute(
    harness.ownerDb,
  )
  const action = { type: 'Update', memberId, firstName: 'Canaria' }
  const job = await call('POST', '/v1/members/jobs', { body: { actions: [action] } })
  const reasons = [
    'The member is active; offboard the member with DELETE /v1/members/{memberId} first',
    `The withdrawal intent ${intentId} is pending; cancel it or let it expire`,
    `The withdrawal ${heldId} is not finished; wait for its bank`,
    `The bank may still return the withdrawal ${withdrawalId}; wait until 2026-04-1`,
    'The exception pex_erasure names a payment to the member; ask the operator to close it',
    'The member has pay in GBP available; it is released when its pay cycle closes',
    `The pay run ${scheduled.id} is scheduled and pays the member; revert it or wait`,
    `The member job ${job.body.jobId} is not finished and names the member; wait or reject it`,
    `The pay cycle ${mine.payCycle.id} has a deduction of the member and is open; wait until it has closed, then settle it`,
  ]
  const refused = await erase(call, memberId)
  expect(refused.status).toBe(409)
  const messages = messagesOf(refused)
  expect(messages).toEqual(reasons.map(reason => expect.stringContaining(reason)))
  const preview = await erase(call, memberId, '?dryRun=true')
  expect(preview.body).toMatchObject({ erasedAt: null, obstacles: messages })
  expect((await call('GET', `/v1/members/${memberId}`)).body).toMatchObject(person)
})

test('erasing waits until a closed pay cycle with a deduction of the member is settled', async () => {
  const made = await partnerWith()
  const { mine, call, memberId } = made
  await withdraw(made)
  harness.clock.set(april)
  await close(mine)
  await call('DELETE', `/v1/members/${memberId}`)
  harness.clock.set(may)
  expect(messagesOf(await erase(call, memberId))).toEqual([
    `The pay cycle ${mine.payCycle.id} has a deduction of the member and is not settled; settle it`,
  ])
})

test('a payment that a bank returns after the erasure goes to the partner, as a negative deduction', async () => {
  const { mine, call, memberId, withdrawalId } = await leaver()
  await erase(call, memberId)
  const returned = await call('POST', `/v1/sandbox/withdrawals/${withdrawalId}/return`, {
    body: { reason: 'MD07' },
  })
  expect(returned.status, returned.text).toBe(200)
  expect(await harness.getWithdrawal(withdrawalId, mine.key)).toMatchObject({ status: 'returned' })
  const [open] = (await call('GET', '/v1/pay/cycles?statuses=Open')).body.payCycles
  const deductions = await call('GET', `/v1/pay/cycles/${open.id}/deductions`)
  expect(deductions.body.deductions).toEqual([{ memberId, total: gbp(-5_000) }])
  expect(await harness.disagreements()).toEqual([])
})

test('a member of another partner, or of none, is not found', async () => {
  const { memberId } = await leaver()
  const other = callAs(await harness.addPartner('Other'))
  for (const id of [memberId, unknownMember])
    for (const query of ['', '?dryRun=true']) {
      const refused = await erase(other, id, query)
      expect([refused.status, refused.body.issues[0].code]).toEqual([404, 'MemberNotFound'])
    }
})

test('the e-mail and the worker id of an erased member can be used again, also by a file', async () => {
  const { call, memberId } = await leaver()
  expect((await erase(call, memberId)).status).toBe(200)
  const raw = `email,first_name,last_name,phone,tier,worker_id\n${person.email},Ada,Okafor,,Silver,${person.workerId}\n`
  const sent = await call('PUT', '/v1/members/jobs/csv?dryRun=true', { raw, headers: { 'content-type': 'text/csv' } })
  expect(sent.body, sent.text).toMatchObject({ plan: { invite: 1, reinstate: 0, update: 0 } })
  const invited = await call('POST', '/v1/members', { body: person })
  expect(invited.status, invited.text).toBe(201)
  expect(invited.body.memberId).not.toBe(memberId)
})

test('a repeated request about an erased member is refused, and nothing runs', async () => {
  const { mine, call, memberId } = await partnerWith()
  await call('DELETE', `/v1/members/${memberId}`)
  const list = { headers: { 'x-idempotency-key': 'list' } }
  expect((await call('GET', '/v1/members', list)).body.total).toBe(1)
  const operator = await harness.addOperator()
  const inspected = { headers: { 'x-idempotency-key': 'inspect' } }
  expect((await operator.call('GET', `/members/${memberId}`, inspected)).body.email).toBe(person.email)
  const erased = await operator.call('POST', `/members/${memberId}/erase`)
  expect([erased.status, erased.body.erasedAt]).toEqual([200, march.toISOString()])
  expect((await operator.call('GET', `/members/${memberId}`, inspected)).status).toBe(404)
  expect((await erase(call, memberId)).body).toEqual(erased.body)
  const repeated = await call('POST', '/v1/members', { body: person, headers: { 'x-idempotency-key': 'invite' } })
  expect([repeated.status, repeated.body.issues[0].code]).toEqual([409, 'Conflict'])
  expect(repeated.body.issues[0].message).toContain('is not run again')
  expect((await call('GET', '/v1/members', list)).body.total).toBe(0)
  const { rows } = await sql`select from members where partner_id = ${mine.partner.id}`.execute(harness.db)
  expect(rows).toHaveLength(1)
})

test('the look-up of a key whose response was erased says so', async () => {
  const { call, memberId } = await partnerWith()
  const lookUp = () => call('GET', '/v1/idempotency-keys/invite')
  expect((await lookUp()).body).toMatchObject({ status: 201, resourceId: memberId })
  await call('DELETE', `/v1/members/${memberId}`)
  await erase(call, memberId)
  const { status, body } = await lookUp()
  expect([status, body.issues[0].code]).toEqual([409, 'Conflict'])
  expect(body.issues[0].message).toContain('was erased, and with them the response')
  const own = { headers: { 'x-idempotency-key': 'unused' } }
  expect((await call('GET', '/v1/idempotency-keys/unused', own)).status).toBe(404)
})

const listOf = (name: string) => ({
  raw: `email,first_name,last_name,phone,tier\n${person.email},${name},Kanari,,Silver\n`,
  headers: { 'content-type': 'text/csv' },
})

test('rows of files are erased that name the member by an earlier e-mail or worker id', async () => {
  const { mine, call, memberId } = await partnerWith({ autoActivate: false })
  const upload = async (firstName: string) => {
    const raw = `email,first_name,last_name,phone,tier,worker_id\n${person.email},${firstName},Kanari,,Silver,${person.workerId}\n`
    const sent = await call('PUT', '/v1/members/jobs/csv', { raw, headers: { 'content-type': 'text/csv' } })
    expect(sent.status, sent.text).toBe(202)
    await harness.runTask('apply-member-imports')
    return sent.body.jobId as string
  }
  const resultsOf = async (jobId: string) =>
    (await call('GET', `/v1/members/jobs/${jobId}/results`, { headers: { accept: 'text/csv' } })).text
  // The second changes nothing.
  const jobs = [await upload('Canariella'), await upload('Canariella')]
  for (const jobId of jobs) expect(await resultsOf(jobId)).toContain('Canariella')
  for (const body of [{ email: 'other@example.com' }, { workerId: 'other' }, { firstName: 'Other' }])
    expect((await call('PATCH', `/v1/members/${memberId}`, { body })).status).toBe(200)
  await call('DELETE', `/v1/members/${memberId}`)
  expect((await erase(call, memberId)).status).toBe(200)
  for (const jobId of jobs) expect(await resultsOf(jobId)).not.toContain('Canariella')
  expect(await find([...canaries, 'Canariella'], mine.partner.id)).toEqual([])
  const { rows } = await sql`select from member_former_names where member_id = ${memberId}`.execute(harness.db)
  expect(rows).toEqual([])
})

test('metadata, lists and stored reads that arrive during an erasure do not outlive it', async () => {
  const { mine, call, memberId, intentId } = await leaver()
  const of = { partnerId: mine.partner.id, memberId }
  const settings = { journal: harness.erasureJournal, evidenceDays: 2_192, backupDays: 35 }
  const metadata = { body: { metadata: { hobby: 'likes birds' } } }
  const actions = [{ type: 'Update', memberId, firstName: 'Canaria' }]
  const sent = await harness.inTx(async tx => {
    const now = harness.clock.now()
    await eraseIn(tx, { ...of, settings, now, recordOutside: async () => undefined })
    const started = [
      call('PUT', `/v1/members/${memberId}/metadata`, metadata),
      call('PUT', `/v1/pay/withdrawals/intent/${intentId}/metadata`, metadata),
      call('POST', '/v1/members/jobs', { body: { actions } }),
      call('GET', `/v1/members/${memberId}`, { headers: { 'x-idempotency-key': 'read' } }),
    ]
    await whenWaiting(harness.db, { count: started.length })
    return started
  })
  const responses = await Promise.all(sent)
  expect(responses.map(({ status }) => status)).toEqual([409, 409, 400, 404])
  expect(await find(canaries, mine.partner.id)).toEqual([])
})

test('an erasure waits for a list that is being uploaded, and is refused if that takes long', async () => {
  const { mine, call, memberId } = await partnerWith()
  await call('DELETE', `/v1/members/${memberId}`)
  const partnerId = mine.partner.id
  const held = await harness.inTx(async tx => {
    // As a list that is being read does.
    await shareByName(tx, 'erasure of members of', partnerId)
    return await erase(call, memberId)
  })
  expect([held.status, held.headers['retry-after']]).toEqual([409, '5'])
  expect(messagesOf(held)).toEqual([expect.stringContaining('A list of members is being uploaded')])
  const [uploaded, erased] = await harness.inTx(async tx => {
    await lockByName(tx, 'queue of member imports of', partnerId)
    const upload = call('PUT', '/v2/members/jobs/csv', listOf('Canaria'))
    await whenWaiting(harness.db)
    const erasure = erase(call, memberId)
    await whenWaiting(harness.db, { count: 2 })
    return [upload, erasure]
  })
  const { jobId } = (await uploaded).body
  expect(messagesOf(await erased)).toEqual([expect.stringContaining(`The member job ${jobId} is not finished`)])
})

test('a repeated request for a withdrawal of an erased member is refused, and pays nothing', async () => {
  const { mine, call, memberId } = await partnerWith()
  harness.clock.set(new Date('2026-03-31T20:00:00.000Z'))
  await call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money: gbp(20_000) }] } })
  const quote = { memberId, key: mine.key, headers: { 'x-idempotency-key': 'quote' } }
  const quoted = await harness.requestIntent(quote)
  const path = `/v1/pay/withdrawals/intent/${quoted.body.withdrawalIntentId}`
  expect((await call('DELETE', path)).status).toBe(200)
  harness.clock.set(april)
  await close(mine)
  await call('DELETE', `/v1/members/${memberId}`)
  const erased = await erase(call, memberId)
  expect(erased.status, erased.text).toBe(200)
  const repeated = await harness.requestIntent(quote)
  expect([repeated.status, repeated.body.issues[0].message]).toEqual([409, expect.stringContaining('is not run again')])
  const completed = await harness.requestCompletion(quoted.body.withdrawalIntentId, { key: mine.key })
  expect(completed.status).toBe(409)
  expect((await call('GET', path)).body.accountDetails.accountHolder).toBe('(erased)')
  const { rows } = await sql<{ intents: number; withdrawals: number }>`
    select (select count(*)::integer from withdrawal_intents where member_id = ${memberId}) as intents,
           (select count(*)::integer from withdrawals where member_id = ${memberId}) as withdrawals`.execute(harness.db)
  expect(rows).toEqual([{ intents: 1, withdrawals: 0 }])
})

test('a member who never withdrew loses both keys at once; the payment key of others goes when its retention ends', async () => {
  const keysOf = async (memberId: string) => {
    const { rows } = await sql<{ profileKey: Buffer | null; paymentKey: Buffer | null }>`
      select profile_key, payment_key from member_keys where member_id = ${memberId}`.execute(harness.db)
    return [rows[0]?.profileKey === null, rows[0]?.paymentKey === null]
  }
  const { call, memberId } = await partnerWith()
  await call('DELETE', `/v1/members/${memberId}`)
  expect((await erase(call, memberId)).body.kept).not.toContainEqual(
    expect.objectContaining({ what: expect.stringMatching(/accounts that withdrawals were paid to/) }),
  )
  expect(await keysOf(memberId)).toEqual([true, true])

  const paid = await leaver()
  await erase(paid.call, paid.memberId)
  harness.clock.set(new Date('2032-03-10T08:00:00.000Z'))
  await harness.runTask('remove-old-data')
  expect(await keysOf(paid.memberId)).toEqual([true, false])
  harness.clock.advance({ days: 1 })
  await harness.runTask('remove-old-data')
  expect(await keysOf(paid.memberId)).toEqual([true, true])
  const { body } = await paid.call('GET', `/v1/pay/withdrawals/intent/${paid.intentId}`)
  expect(body.accountDetails).toEqual({ accountHolder: '(erased)', sortCode: '000000', accountNumber: '00000000' })
  expect((await paid.call('GET', `/v1/pay/withdrawals/${paid.withdrawalId}`)).body.bankAccount).toEqual({
    lastFour: '0000',
  })
  expect(await harness.disagreements()).toEqual([])
})

test('an operator sees at the command line what prevents an erasure, and erases', async () => {
  const { call, memberId } = await partnerWith()
  const settings = { ...harness.settings, MIDMONTH_ERASURE_JOURNAL: harness.erasureJournal }
  const preview = await midmonthHere(['member', 'erase', memberId, '--dry-run'], settings)
  expect(preview.stdout).toContain(`${memberId} was not erased.`)
  expect(preview.stdout).toContain('Prevents it:\n  The member is active; offboard the member')
  await call('DELETE', `/v1/members/${memberId}`)
  const { stdout } = await midmonthHere(['member', 'erase', memberId], settings)
  expect(stdout).toContain(`${memberId} was erased on `)
  expect(stdout).toContain((await erase(call, memberId)).body.receipt)
})

test('a database restored from before an erasure erases the member again before it serves anything', async () => {
  const own = await startHarness()
  const { body } = await own.call('POST', '/v1/members', { body: person })
  const { memberId } = body
  await own.call('DELETE', `/v1/members/${memberId}`)
  const staying = await own.addMember()
  const backup = `${own.database}_backup`
  onTestFinished(await own.stopWithCopy(backup))
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const journal = path.join(folder, 'erasures.jsonl')
  const addressOf = (role: string, database: string) =>
    `postgres://${role}@/${database}?host=${encodeURIComponent(own.host)}`
  const start = async (database: string) => {
    const settings = readSettings({
      ...{ ...own.settings, PORT: '0', MIDMONTH_ERASURE_JOURNAL: journal, MIDMONTH_DOCS: 'off' },
      ...{ DATABASE_URL: addressOf(own.user, database), DATABASE_OWNER_URL: addressOf(own.owner, database) },
    })
    const opened = await openDatabase(settings, quiet)
    const sealer = await prepare(opened, { mayMigrate: true, log: quiet })
    const { rows } = await sql<{ id: string }>`select id from members where erased_at is not null`.execute(opened.db)
    const roles = { api: true, worker: false }
    const running = await run(opened, { settings, roles, sealer, log: quiet, now: own.clock.now })
    onTestFinished(() => running.stop())
    const request = async (method: string, at: string) =>
      (await fetch(`${running.address}${at}`, { method, headers: { 'x-api-key': own.key } })).status
    return { erased: rows.map(({ id }) => id), request, stop: () => running.stop() }
  }
  const before = await start(own.database)
  expect(before.erased).toEqual([])
  expect(await before.request('POST', `/v1/members/${memberId}/erase`)).toBe(200)
  const lines = (await readFile(journal, 'utf8'))
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  expect(lines).toEqual([{ partnerId: own.partner.id, memberId, erasedAt: march.toISOString() }])
  const restored = await start(backup)
  expect(restored.erased).toEqual([memberId])
  expect(await restored.request('GET', `/v1/members/${memberId}`)).toBe(404)
  expect(await restored.request('GET', `/v1/members/${staying}`)).toBe(200)
  // The receipt is there again too.
  expect(await restored.request('POST', `/v1/members/${memberId}/erase`)).toBe(200)
  expect(await readFile(journal, 'utf8')).toContain(memberId)
})

test('an erasure that was rolled back is taken back from the journal, and a line that a crash cut off is skipped', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = path.join(folder, 'erasures.jsonl')
  expect(await readJournal(file)).toEqual([])
  const [one, two] = ['mem_1', 'mem_2'].map(memberId => ({
    partnerId: 'par_1',
    memberId,
    erasedAt: march.toISOString(),
  }))
  if (one === undefined || two === undefined) throw new Error('There are two')
  await append(file, one)
  await append(file, two)
  await append(file, { ...one, rolledBack: true })
  expect(await readJournal(file)).toEqual([two])
  await writeFile(file, '\n{"partnerId":"par_', { flag: 'a' })
  await append(file, one)
  expect(await readJournal(file)).toEqual([two, one])
  await writeFile(file, '\n{"partnerId":"par_1"}\n', { flag: 'a' })
  await expect(readJournal(file)).rejects.toThrow('restore the file from its backup')
})

test('a start does not erase a member who was changed after the entry, and destroys keys that a backup has restored', async () => {
  const { call, memberId } = await leaver()
  const keys = () => harness.db.selectFrom('memberKeys').select('profileKey').where('memberId', '=', memberId)
  const before = await keys().executeTakeFirstOrThrow()
  expect((await erase(call, memberId)).status).toBe(200)
  await harness.db.updateTable('memberKeys').set(before).where('memberId', '=', memberId).execute()
  const staying = await harness.addMember()
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const journal = path.join(folder, 'erasures.jsonl')
  const erasedAt = new Date(harness.clock.now().getTime() - 1_000).toISOString()
  await append(journal, { partnerId: harness.partner.id, memberId: staying, erasedAt })
  expect(await eraseAgain(harness.db, { journal, evidenceDays: 2_192, backupDays: 35 })).toBe(0)
  expect((await harness.call('GET', `/v1/members/${staying}`)).status).toBe(200)
  expect(await keys().executeTakeFirst()).toEqual({ profileKey: null })
})

test('a start erases rows and responses again that an older backup of the keys has restored', async () => {
  const { mine, call, memberId } = await partnerWith()
  const staying = await call('POST', '/v1/members', {
    body: { ...person, email: 'stays@example.com', workerId: 'stays' },
  })
  const upload = async (firstName: string) => {
    const raw = [
      'email,first_name,last_name,phone,tier',
      `${person.email},${firstName},Kanari,,Silver`,
      `stays@example.com,Staying,Okafor,,Silver`,
    ].join('\n')
    const sent = await call('PUT', '/v1/members/jobs/csv', { raw, headers: { 'content-type': 'text/csv' } })
    await harness.runTask('apply-member-imports')
    return sent.body.jobId as string
  }
  const jobs = [await upload('Canariella'), await upload('Canariella')]
  await call('DELETE', `/v1/members/${memberId}`)
  const tables = ['member_keys', 'member_import_rows', 'idempotency_keys'].map(name => sql.raw(name))
  const inDump = (table: ReturnType<typeof sql.raw>) => sql`dumped_${table}`
  for (const table of tables)
    await sql`create table ${inDump(table)} as select * from ${table} where partner_id = ${mine.partner.id}`.execute(
      harness.ownerDb,
    )
  expect((await erase(call, memberId)).status).toBe(200)
  for (const table of tables) {
    await sql`delete from ${table} where partner_id = ${mine.partner.id}`.execute(harness.ownerDb)
    await sql`insert into ${table} select * from ${inDump(table)}`.execute(harness.ownerDb)
    await sql`drop table ${inDump(table)}`.execute(harness.ownerDb)
  }
  const settings = { journal: harness.erasureJournal, evidenceDays: 2_192, backupDays: 35 }
  expect(await eraseAgain(harness.db, settings)).toBe(0)
  for (const jobId of jobs) {
    const { text } = await call('GET', `/v1/members/jobs/${jobId}/results`)
    expect(text).not.toContain(person.email)
    expect(text).toContain('stays@example.com')
  }
  expect(await find(['Canariella'], mine.partner.id)).toEqual([])
  expect((await call('GET', '/v1/idempotency-keys/invite')).status).toBe(409)
  expect((await call('GET', `/v1/members/${staying.body.memberId}`)).status).toBe(200)
})

test('a member who was last changed by a clock that was ahead is erased at that time, so that a restored database erases the member again', async () => {
  const { mine, call, memberId } = await partnerWith()
  harness.clock.advance({ minutes: 5 })
  await call('DELETE', `/v1/members/${memberId}`)
  const ahead = harness.clock.now().toISOString()
  harness.clock.set(march)
  const erased = await erase(call, memberId)
  expect(erased.body.erasedAt, erased.text).toBe(ahead)
  expect(await readJournal(harness.erasureJournal)).toContainEqual({
    ...{ partnerId: mine.partner.id, memberId, erasedAt: ahead },
  })
})

test('an erased member whom an import of a restored database has yet to create is not created', async () => {
  const mine = await harness.addPartner('Restored before its import')
  const raw = [
    'email,first_name,last_name,phone,tier',
    'ann@example.com,Ann,Ito,,Silver',
    'ben@example.com,Ben,Ito,,Silver',
  ]
  const options = { key: mine.key, raw: raw.join('\n'), headers: { 'content-type': 'text/csv' } }
  const { jobId } = (await harness.call('PUT', '/v2/members/jobs/csv', options)).body
  const ofRow = harness.ownerDb.selectFrom('memberImportRows').select('newMemberId').where('importId', '=', jobId)
  const { newMemberId: memberId } = await ofRow.where('firstName', '=', 'Ann').executeTakeFirstOrThrow()
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const journal = path.join(folder, 'erasures.jsonl')
  await append(journal, { partnerId: mine.partner.id, memberId, erasedAt: march.toISOString() })
  expect(await eraseAgain(harness.db, { journal, evidenceDays: 2_192, backupDays: 35 })).toBe(0)
  await harness.runTask('apply-member-imports')
  const { members } = (await harness.call('GET', '/v1/members', { key: mine.key })).body
  expect(members.map(({ firstName }: { firstName: string }) => firstName)).toEqual(['Ben'])
  expect((await harness.call('GET', `/v1/members/jobs/${jobId}`, { key: mine.key })).body.progress.type).toBe(
    'Completed',
  )
})

test('a lost journal is noticed, and written again from what the database knows', async () => {
  const own = await startHarness()
  onTestFinished(() => own.stop())
  const { memberId } = (await own.call('POST', '/v1/members', { body: person })).body
  await own.call('DELETE', `/v1/members/${memberId}`)
  expect((await own.call('POST', `/v1/members/${memberId}/erase`)).status).toBe(200)
  const file = own.erasureJournal
  const whole = await readJournal(file)
  expect(await inspectJournal(own.db, { journal: file })).toEqual({ place: file, unrecorded: 0, fault: undefined })
  await rm(file)
  expect(await inspectJournal(own.db, { journal: file })).toMatchObject({ unrecorded: 1 })
  const operator = await own.addOperator()
  const { findings } = (await operator.call('GET', '/findings')).body
  expect(findings).toContainEqual(expect.objectContaining({ check: 'erasures', level: 'warning' }))

  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const settings = readSettings({
    ...{ ...own.settings, MIDMONTH_ERASURE_JOURNAL: file },
  })
  const opened = await openDatabase(settings, quiet)
  onTestFinished(() => opened.close())
  for (const count of [1, 0]) {
    lines.length = 0
    await prepare(opened, { mayMigrate: false, log })
    expect(lines.filter(line => line.includes('which were written again'))).toHaveLength(count)
    expect(await readJournal(file)).toEqual(whole)
  }
})

test('a start without a writable journal warns, and serves', async () => {
  const { call, memberId } = await leaver()
  expect((await erase(call, memberId)).status).toBe(200)
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-journal-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const journal = path.join(folder, 'erasures.jsonl')
  await symlink(path.join(folder, 'unmounted', 'erasures.jsonl'), journal)
  const lines: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
  const settings = {
    ...harness.settings,
    MIDMONTH_ERASURE_JOURNAL: journal,
  }
  const opened = await openDatabase(readSettings(settings), quiet)
  onTestFinished(() => opened.close())
  await prepare(opened, { mayMigrate: false, log })
  expect(lines.join('')).toContain('and cannot be written')
})

test('without a writable journal nothing is erased, and the response names the setting', async () => {
  const { call, memberId } = await leaver()
  await rm(harness.erasureJournal, { force: true })
  await mkdir(harness.erasureJournal)
  try {
    const refused = await erase(call, memberId)
    expect([refused.status, refused.body.issues[0].message]).toEqual([
      503,
      expect.stringContaining('MIDMONTH_ERASURE_JOURNAL'),
    ])
    expect((await call('GET', `/v1/members/${memberId}`)).status).toBe(200)
  } finally {
    await rm(harness.erasureJournal, { recursive: true })
  }
  expect((await erase(call, memberId)).status).toBe(200)
})

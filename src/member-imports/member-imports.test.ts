import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { extent } from '../../test/runner/extent.ts'
import { sql } from '../database/database.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import * as memberImports from './member-imports.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(async () => {
  await harness.stop()
})

const work = () => harness.runTask('apply-member-imports')

let partners = 0
/** A separate partner, so that no other test changes its list of members. */
const employer = async (settings?: PartnerSettings) => await harness.addPartner(`Employer ${++partners}`, settings)

const minimal = 'email,first_name,last_name,phone,tier'
const row = (name: string, rest = '') => `${name}@example.com,${name},Okafor,,Silver${rest}`
const file = (...lines: string[]) => `${lines.join('\r\n')}\r\n`

const csv = { 'content-type': 'text/csv' }
const upload = (
  { key }: TestPartner,
  raw: string | Buffer,
  { version = 'v2', query = '', headers = {} as Record<string, string> } = {},
) => harness.call('PUT', `/${version}/members/jobs/csv${query}`, { key, raw, headers: { ...csv, ...headers } })
const job = async ({ key }: TestPartner, jobId: string) =>
  (await harness.call('GET', `/v1/members/jobs/${jobId}`, { key })).body.progress
const results = async ({ key }: TestPartner, jobId: string, query = '') =>
  (await harness.call('GET', `/v1/members/jobs/${jobId}/results${query}`, { key })).body
const members = async ({ key }: TestPartner, query = '') =>
  (await harness.call('GET', `/v1/members?take=100${query}`, { key })).body.members
const listed = async (partner: TestPartner) =>
  Object.fromEntries(
    (await members(partner)).map((member: { email: string; status: string }) => [
      member.email.split('@')[0],
      member.status,
    ]),
  )

/** Uploads a file and has the worker apply it. */
const apply = async (partner: TestPartner, raw: string | Buffer, options: Parameters<typeof upload>[2] = {}) => {
  const answer = await upload(partner, raw, options)
  expect(answer.status, answer.text).toBe(202)
  await work()
  expect((await job(partner, answer.body.jobId)).type).toBe('Completed')
  return answer.body.jobId as string
}

/** The outcome for each member, in the order of the file. */
const resultLines = async (partner: TestPartner, jobId: string) =>
  (await results(partner, jobId)).results.map(({ row, action, outcome, email, message }: Record<string, string>) =>
    [row, action, outcome, email?.split('@')[0], ...(message === null ? [] : [message])].join(' '),
  )
const faultsOf = ({ status, body }: { status: number; body: { issues: Record<string, string>[] } }) => {
  expect(status, JSON.stringify(body)).toBe(400)
  return body.issues.map(({ code, row, message }) => {
    expect(code).toBe('FileContent')
    return `${row}: ${message}`
  })
}
const only = async (partner: TestPartner, name: string) =>
  (await members(partner, `&emails=${name}@example.com`)).find((each: { status: string }) => each.status !== 'inactive')

describe('a file is the complete list of members', () => {
  test('new members are invited, changed ones updated, offboarded ones reinstated and missing ones offboarded', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('ann'), row('ben'), row('cem')))
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'active' })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'inactive' })

    const changed = file(minimal, row('ann').replace('Okafor', 'Adeyemi'), row('cem'), row('dee'))
    const plan = { invite: 1, update: 1, reinstate: 1, offboard: 1, unchanged: 0 }
    const { memberId: ben } = await only(partner, 'ben')
    const preview = await upload(partner, changed, { query: '?dryRun=true' })
    expect(preview.status, preview.text).toBe(200)
    expect(preview.body).toEqual({ plan, needsReview: false, offboard: [ben] })
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'inactive' })

    const jobId = await apply(partner, changed)
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'inactive', cem: 'active', dee: 'active' })
    expect((await results(partner, jobId)).plan).toEqual(plan)
    expect(await resultLines(partner, jobId)).toEqual([
      '2 Update Done ann',
      '3 Reinstate Done cem',
      '4 Invite Done dee',
      ' Offboard Done ben',
    ])
  })

  test('importing the same list again changes nothing, whatever its case, order, delimiter and header spelling', async () => {
    const partner = await employer()
    const header = 'Email;First Name;LAST-NAME;phone;Tier;Worker ID;sortCode;account_number;Account Holder;dob;gender'
    const ann =
      'ann@example.com;Ann;"Okafor; the ""elder""";07700 900123;Bronze;007;08-99-99;66374958;A Okafor;1990-06-24;female'
    const ben = 'ben@example.com;Ben;Zoë;;Silver;008;;;;;'
    await apply(partner, file(header, ann, ben))
    expect(await only(partner, 'ann')).toMatchObject({
      ...{ lastName: 'Okafor; the "elder"', phone: '+447700900123', workerId: '007', gender: 'Female' },
      accountDetails: { sortCode: '089999', accountNumber: '66374958' },
    })
    const again = file(
      `\u{feff}${header.replaceAll(';', ',')}`,
      ben.replaceAll(';', ',').replace('ben@', 'BEN@'),
      '',
      ann.replaceAll(';', ',').replace('Okafor, the', 'Okafor; the'),
    )
    const { body } = await upload(partner, again, { query: '?dryRun=true' })
    expect(body.plan).toEqual({ invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: 2 })
    const jobId = await apply(partner, again)
    expect(await resultLines(partner, jobId)).toEqual(['2 Unchanged Done BEN', '4 Unchanged Done ann'])
  })

  test('a row matches by e-mail, then by worker_id, then by the e-mail of an inactive member', async () => {
    const partner = await employer({ autoActivate: false, offboardReviewPercent: 100 })
    const header = `${minimal},worker_id`
    await apply(partner, file(header, row('ann', ',1'), row('ben', ',2'), row('cem', ',3'), row('dee', ',')))
    const before = Object.fromEntries(
      (await members(partner)).map((each: { email: string; memberId: string }) => [each.email, each.memberId]),
    )
    await apply(partner, file(header, row('ann', ',1'), row('ben', ',2'), row('cem', ',3')))
    // Ben, who is only invited, has another address; Dee is back; Ann keeps her address and gets another number.
    const jobId = await apply(
      partner,
      file(header, row('ann', ',9'), row('benjamin', ',2'), row('cem', ',3'), row('dee', ',4')),
    )
    expect(await resultLines(partner, jobId)).toEqual([
      '2 Update Done ann',
      '3 Update Done benjamin',
      '4 Unchanged Done cem',
      '5 Reinstate Done dee',
    ])
    expect((await only(partner, 'benjamin')).memberId).toBe(before['ben@example.com'])
    expect(await only(partner, 'dee')).toMatchObject({
      memberId: before['dee@example.com'],
      workerId: '4',
      status: 'invited',
    })
    expect(await only(partner, 'ann')).toMatchObject({ workerId: '9' })
  })

  test('an absent column changes nothing and an empty cell removes the value, but an empty account only in v2', async () => {
    const partner = await employer()
    const header = `${minimal},worker_id,sort_code,account_number,account_holder,iban,dob,gender,enable_payroll`
    const uk = row('ann', ',1,089999,66374958,A Okafor,,1990-06-24,Female,false').replace(',,', ',+447700900123,')
    const eu = row('ben', ',2,,,B Okafor,DE89370400440532013000,,,')
    await apply(partner, file(header, uk, eu))
    const [ann, ben] = [await only(partner, 'ann'), await only(partner, 'ben')]
    expect(ben).toMatchObject({ accountDetails: { iban: 'DE89370400440532013000' }, enablePayroll: true })

    const minimalAgain = file(`${minimal}`, row('ann').replace(',,', ',+447700900123,'), row('ben'))
    await apply(partner, minimalAgain)
    expect([await only(partner, 'ann'), await only(partner, 'ben')]).toEqual([ann, ben])

    const emptied = file(header, row('ann', ',,,,,,,,'), row('ben', ',,,,,,,,'))
    await apply(partner, emptied, { version: 'v1' })
    const rest = { phone: null, workerId: null, dob: null, gender: null }
    expect(await only(partner, 'ann')).toEqual({ ...ann, ...rest })
    expect(await only(partner, 'ben')).toEqual({ ...ben, ...rest })

    // Columns of British accounts say nothing about an IBAN.
    const british = file(`${minimal},sort_code,account_number,account_holder`, row('ann', ',,,'), row('ben', ',,,'))
    await apply(partner, british)
    expect(await only(partner, 'ann')).toEqual({ ...ann, ...rest, accountDetails: null })
    expect(await only(partner, 'ben')).toEqual({ ...ben, ...rest })
    await apply(partner, emptied)
    expect(await only(partner, 'ben')).toEqual({ ...ben, ...rest, accountDetails: null })
  })

  test('unchanged values are not checked again, new values are', async () => {
    const partner = await employer()
    const header = `${minimal},sort_code,account_number,account_holder`
    await apply(partner, file(header, row('ann', ',089999,66374958,A Okafor')))
    // As if a newer table of accounts had made the stored account invalid.
    const { memberId } = await only(partner, 'ann')
    const account = { accountHolder: 'A Okafor', sortCode: '089999', accountNumber: '66374959' }
    await harness.setUncheckedAccount({ partnerId: partner.partner.id, memberId, account })
    const stale = row('ann', ',089999,66374959,A Okafor')
    await apply(partner, file(header, stale))
    await apply(partner, file(header, stale.replace('Okafor', 'Adeyemi')))
    expect(await only(partner, 'ann')).toMatchObject({ lastName: 'Adeyemi' })
    expect(faultsOf(await upload(partner, file(header, stale, row('ben', ',089999,66374959,B'))))).toEqual([
      '3: The bank account fails its check; look for a mistyped digit',
    ])
  })
})

describe('a file with faults', () => {
  test('is refused with every fault by row and column, and changes nothing', async () => {
    const partner = await employer()
    await apply(partner, file(`${minimal},worker_id`, row('ann', ',1'), row('ben', ',2')))
    const before = await members(partner)
    const header = `${minimal},worker_id,sort_code,account_number,account_holder,dob,gender,enable_payroll`
    const answer = await upload(
      partner,
      file(
        header,
        row('ann', ',1,,,,,,'),
        row('cem', ',3,12345,1,,1990-02-30,other,maybe').replace('@', ' at '),
        row('dee', ',4,,,,2090-01-01,,').replace('Silver', 'Platinum').replace(',,', ',12,'),
        row('eve', ',5,089999,66374959,E,,,'),
        row('ann', ',6,,,,,,'),
        row('fay', ',1,,,,,,'),
        row('gil', ',2,,,,,,'),
        ',,,,,,,,,,,',
        row('hal', ',,,,,,,'),
        row('ivy', ',7,089999,,,,,').replace('ivy,', ','),
      ),
    )
    expect(faultsOf(answer)).toEqual([
      '3: email: is not an e-mail address, like sam.okafor@example.com; sort_code: must be 6 digits, like 089999; account_number: must be 8 digits, like 66374958; dob: is not a valid date from 1900 on, like 1990-06-24; gender: must be one of Female, Male, NonBinary; enable_payroll: must be true or false; account_holder: is empty, but there is an account',
      '4: The phone number is not possible in GB; include the country code, like +447700900123; The dob must be a day from 1900-01-01 to today; There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
      '5: The bank account fails its check; look for a mistyped digit',
      '6: email: duplicate of row 2',
      '7: The e-mail can change only while the member is invited; this one is active; worker_id: duplicate of row 2',
      '8: The e-mail can change only while the member is invited; this one is active',
      '11: first_name: is empty; account_number: is empty, but there is a sort_code; account_holder: is empty, but there is an account',
    ])
    expect(await members(partner)).toEqual(before)
    expect((await harness.call('GET', '/v1/members/jobs', { key: partner.key })).body.total).toBe(1)
    // The first file invites only, so none of its rows has a step.
    for (const [table, importCount] of [
      ['memberImportRows', 1],
      ['memberImportSteps', 0],
    ] as const) {
      const rows = await harness.db
        .selectFrom(table)
        .select('importId')
        .distinct()
        .where('partnerId', '=', partner.partner.id)
        .execute()
      expect(rows.length).toBe(importCount)
    }
  })

  test('reports faults of cells, of other rows and of the members together', async () => {
    const partner = await employer()
    const header = `${minimal},worker_id,dob`
    await apply(partner, file(header, row('ann', ',1,'), row('ben', ',2,')))
    const ann = await only(partner, 'ann')
    const faulty = file(
      header,
      row('ann', ',1,'),
      // An invalid cell, the e-mail of row 2, and a worker_id that another member has.
      row('Ann', ',9,yesterday').replace('Silver', 'Sliver'),
      row('ben', ',1,yesterday'),
      // The e-mail is unreadable, but the worker_id is still compared.
      row('cem', ',9,').replace('@', ' at '),
    )
    expect(faultsOf(await upload(partner, faulty))).toEqual([
      [
        '3: dob: is not a valid date from 1900 on, like 1990-06-24',
        'There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
        'email: duplicate of row 2',
      ].join('; '),
      [
        '4: dob: is not a valid date from 1900 on, like 1990-06-24',
        `another member, ${ann.memberId}, has the e-mail or the worker_id`,
        'worker_id: duplicate of row 2',
      ].join('; '),
      '5: email: is not an e-mail address, like sam.okafor@example.com; worker_id: duplicate of row 3',
    ])
  })

  test('with hundreds of thousands of blank rows is read; more rows than a list may have are refused', async () => {
    const partner = await employer()
    const withBlanks = (count: number) => `${minimal}\n${',,\n'.repeat(count)}${row('ann')}\n`
    const preview = await upload(partner, withBlanks(700_000), { query: '?dryRun=true' })
    expect(preview.body.plan, preview.text).toMatchObject({ invite: 1, unchanged: 0 })
    expect(faultsOf(await upload(partner, withBlanks(1_000_001)))).toEqual([
      '1000002: The file has more than 1000000 rows, the maximum for a list',
    ])
  })

  test('reports faults of cells and of rules together', async () => {
    const partner = await employer()
    const header = `${minimal},sort_code,account_number,account_holder,dob`
    const bad = row('ann', ',089999,66374959,Ann,1850-01-01')
      .replace('@', ' at ')
      .replace('Silver', 'Sliver')
      .replace(',,', ',12,')
    expect(faultsOf(await upload(partner, file(header, bad)))).toEqual([
      [
        '2: email: is not an e-mail address, like sam.okafor@example.com',
        'dob: is not a valid date from 1900 on, like 1990-06-24',
        'The phone number is not possible in GB; include the country code, like +447700900123',
        'The bank account fails its check; look for a mistyped digit',
        'There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
      ].join('; '),
    ])
  })

  test('reports a thousand faults and counts the rest', async () => {
    const partner = await employer()
    const bad = Array.from({ length: 1_500 }, (_, index) => row(`m${index}`).replace('@', ''))
    const faults = faultsOf(await upload(partner, file(minimal, row('ann'), ...bad)))
    expect(faults).toHaveLength(1_001)
    expect(faults[0]).toMatch(/^3: email/)
    expect(faults.at(-1)).toBe('1502: at least 500 more of the 1501 rows checked are invalid')
  })

  test('also counts faults that only the comparison with the members finds', async () => {
    const partner = await employer()
    const failing = Array.from({ length: 1_100 }, (_, index) => row(`m${index}`, ',089999,66374959,Sam'))
    const faults = faultsOf(
      await upload(partner, file(`${minimal},sort_code,account_number,account_holder`, ...failing)),
    )
    expect(faults).toHaveLength(1_001)
    expect(faults.at(-1)).toBe('1101: at least 100 more of the 1100 rows checked are invalid')
    const misspelt = Array.from({ length: 1_100 }, (_, index) => row(`m${index}`).replace('Silver', 'Sliver'))
    expect(faultsOf(await upload(partner, file(minimal, ...misspelt)))).toHaveLength(1_001)
  })

  test('reports characters that the database cannot store', async () => {
    const partner = await employer()
    const lines = [row('ann', ',0000-05-05'), row('ben', ',').replace('Silver', 'Sil\u{d800}ver')]
    const answer = await upload(partner, Buffer.from(file(`${minimal},dob`, ...lines), 'utf8'))
    expect(faultsOf(answer)[0]).toBe('2: dob: is not a valid date from 1900 on, like 1990-06-24')
    const text = (value: string) => ({ type: String, value })
    const cells = ['ann@example.com', 'Ann', 'Okafor', '', 'Sil_x0000_ver'].map(text)
    const raw = await writeExcelFile([minimal.split(',').map(text), cells] as never).toBuffer()
    const type = { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' }
    expect(faultsOf(await upload(partner, raw, { headers: type }))[0]).toMatch(/^2: tier: |^2: There is no such tier/)
  })

  test('is refused for an unknown column in the header', async () => {
    const partner = await employer()
    expect(
      faultsOf(await upload(partner, file('email,first_name,last_name,phone,teir,iban,email', row('ann')))),
    ).toEqual([
      '1: the column tier is missing; the column account_holder is missing; the column email appears twice; the column "teir" is not known; the columns are: email, first_name, last_name, phone, tier, worker_id, sort_code, account_number, account_holder, iban, dob, gender, enable_payroll; leave others out',
    ])
    expect((await harness.call('GET', '/v1/members/jobs', { key: partner.key })).body.total).toBe(0)
  })

  test('reports a tier in another currency than the member’s money', async () => {
    const partner = await employer()
    const memberId = await harness.addMember({ available: 5_000, key: partner.key })
    const { email } = (await harness.call('GET', `/v1/members/${memberId}`, { key: partner.key })).body
    const line = `${email},Sam,Okafor,,Silver EU`
    expect(faultsOf(await upload(partner, file(minimal, line)))).toEqual([
      '2: The tier Silver EU is in EUR, and the member still has GBP available, owed or on its way',
    ])
  })
})

describe('a list that offboards many', () => {
  const ten = Array.from({ length: 10 }, (_, index) => row(`m${index}`))

  test('waits for review above the partner’s limit, and is applied once approved', async () => {
    const partner = await employer({ offboardReviewPercent: 20 })
    await apply(partner, file(minimal, ...ten))
    await apply(partner, file(minimal, ...ten.slice(0, 8)))
    expect((await upload(partner, file(minimal), { query: '?dryRun=true' })).body).toMatchObject({
      needsReview: true,
      plan: { offboard: 8 },
    })

    const { jobId } = (await upload(partner, file(minimal, ...ten.slice(0, 6)))).body
    await work()
    expect(await job(partner, jobId)).toEqual({
      type: 'AwaitingReview',
      totalActions: 2,
      totalComplete: 0,
      totalProcessing: 0,
    })
    const waiting = await results(partner, jobId, '?actions=Offboard')
    expect(waiting.results.map(({ email, outcome }: Record<string, string>) => [email, outcome])).toEqual([
      ['m6@example.com', 'Pending'],
      ['m7@example.com', 'Pending'],
    ])
    // Members who are added or offboarded while the job waits are left alone.
    const invited = await harness.addMember({ key: partner.key })
    await harness.call('DELETE', `/v1/members/${waiting.results[0].memberId}`, { key: partner.key })

    const approved = await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })
    expect(approved.body.progress).toMatchObject({ type: 'Processing', totalProcessing: 2 })
    await work()
    const again = await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })
    expect(again).toMatchObject({ status: 200, body: { progress: { type: 'Completed', totalComplete: 2 } } })
    expect((await harness.call('POST', `/v1/members/jobs/${jobId}/reject`, { key: partner.key })).status).toBe(409)
    expect(await listed(partner)).toMatchObject({ m5: 'active', m6: 'inactive', m7: 'inactive' })
    expect((await harness.call('GET', `/v1/members/${invited}`, { key: partner.key })).body.status).toBe('active')
  })

  test('waits for review above the number that the caller agreed to', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, ...ten))
    const nine = file(minimal, ...ten.slice(0, 9))
    const preview = await upload(partner, nine, { query: '?dryRun=true&offboardMax=0' })
    expect(preview.body).toMatchObject({ needsReview: true, plan: { offboard: 1 } })
    const { jobId } = (await upload(partner, nine, { query: '?offboardMax=0' })).body
    expect((await job(partner, jobId)).type).toBe('AwaitingReview')
    await harness.call('POST', `/v1/members/jobs/${jobId}/reject`, { key: partner.key })
    await apply(partner, nine, { query: '?offboardMax=1' })
    expect((await upload(partner, nine, { query: '?offboardMax=-1' })).status).toBe(400)
  })

  test('changes nothing when it is rejected, and another list can follow', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, ...ten))
    const { jobId } = (await upload(partner, file(minimal, row('new')))).body
    for (const _ of ['once', 'again']) {
      const rejected = await harness.call('POST', `/v1/members/jobs/${jobId}/reject`, { key: partner.key })
      expect(rejected.body.progress.type).toBe('Rejected')
    }
    expect((await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })).status).toBe(409)
    await work()
    expect(Object.values(await listed(partner))).toEqual(Array(10).fill('active'))
    expect((await resultLines(partner, jobId))[0]).toBe('2 Invite NotDone new')
    await apply(partner, file(minimal, ...ten))
  })
})

describe('a worker_id that a file reassigns to another member', () => {
  const header = `${minimal},worker_id`
  test.each([
    ['in the next row', 0],
    // More rows than are decided at once.
    ['thousands of rows away', extent({ short: 1_100, long: 2_500 })],
  ])('is refused, whether it is given up %s or not', async (_, distance) => {
    const partner = await employer()
    const others = Array.from({ length: distance }, (_, index) => row(`m${index}`, `,m${index}`))
    await apply(partner, file(header, row('ann', ',1'), ...others, row('ben', ',2')))
    const { memberId: ann } = await only(partner, 'ann')
    const { memberId: ben } = await only(partner, 'ben')
    // Everyone changes, so that every row is decided by the rules.
    const changed = others.map(line => line.replace('Okafor', 'Adeyemi'))
    const last = distance + 3
    const upwards = file(header, row('ann', ','), ...changed, row('ben', ',1'))
    expect(faultsOf(await upload(partner, upwards))).toEqual([
      `${last}: another member, ${ann}, has the e-mail or the worker_id`,
    ])
    const downwards = file(header, row('ann', ',2'), ...changed, row('ben', ','))
    expect(faultsOf(await upload(partner, downwards))).toEqual([
      `2: another member, ${ben}, has the e-mail or the worker_id`,
    ])
    // A number that one list gives up can be assigned in the next.
    await apply(partner, file(header, row('ann', ','), ...others, row('ben', ',2')))
    await apply(partner, file(header, row('ann', ','), ...others, row('ben', ',1')))
    expect(await only(partner, 'ben')).toMatchObject({ workerId: '1' })
  })
})

describe('an overdue review', () => {
  const expire = () => harness.runTask('expire-member-imports')

  test('expires after the partner’s number of days: the job is rejected, with an event and an audit entry', async () => {
    const partner = await employer({ offboardReviewPercent: 0, reviewDays: 3 })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    const { jobId } = (await upload(partner, file(minimal, row('ann')))).body
    const next = (await post(partner, [add('cem')])).body.jobId
    harness.clock.advance({ days: 3, seconds: -1 })
    await expire()
    expect(await job(partner, jobId)).toMatchObject({ type: 'AwaitingReview' })
    harness.clock.advance({ seconds: 1 })
    for (const _ of ['once', 'again']) await expire()
    expect(await job(partner, jobId)).toMatchObject({ type: 'Rejected', totalComplete: 0 })
    const { rows: events } = await sql<{ type: string }>`
      select type from events where partner_id = ${partner.partner.id} and resource_id = ${jobId} order by sequence`.execute(
      harness.db,
    )
    expect(events.map(({ type }) => type)).toEqual(['job.awaiting_review', 'job.expired', 'job.rejected'])
    const { rows: entries } = await sql`
      select actor_kind, actor, action, details from audit_log
       where partner_id = ${partner.partner.id} and resource_id = ${jobId} and action <> 'member_job.create'`.execute(
      harness.db,
    )
    expect(entries).toEqual([
      { actorKind: 'worker', actor: 'system', action: 'member_job.expire', details: { reviewDays: 3 } },
    ])
    const approved = await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })
    expect(approved.status).toBe(409)
    await work()
    expect(await job(partner, next)).toMatchObject({ type: 'Completed' })
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'active' })
  })

  test('is counted from a queued file’s turn, and lasts 14 days unless the partner has another setting', async () => {
    const partner = await employer({ offboardReviewPercent: 0 })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    const first = (await upload(partner, file(minimal, row('ann')))).body.jobId
    const second = (await upload(partner, file(minimal, row('ben')))).body.jobId
    harness.clock.advance({ days: 14 })
    await expire()
    await work()
    expect(await job(partner, first)).toMatchObject({ type: 'Rejected' })
    expect(await job(partner, second)).toMatchObject({ type: 'AwaitingReview' })
    harness.clock.advance({ days: 13 })
    await expire()
    expect(await job(partner, second)).toMatchObject({ type: 'AwaitingReview' })
    harness.clock.advance({ days: 1 })
    await expire()
    expect(await job(partner, second)).toMatchObject({ type: 'Rejected' })
  })
})

describe('while a list is planned', () => {
  test('other events still reach the feed of the same partner', async () => {
    const partner = await employer()
    const feed = async (after?: string) =>
      (await harness.call('GET', `/v1/events${after === undefined ? '' : `?after=${after}`}`, { key: partner.key }))
        .body.events
    await apply(partner, file(minimal, row('ann')))
    const last = (await feed()).at(-1).id
    const inFeed = await harness.inTx(async tx => {
      const { importId } = await memberImports.createFromActions(tx, {
        partner: partner.partner,
        actions: [
          { type: 'Add', email: 'cem@example.com', firstName: 'Cem', lastName: 'Ito', tier: 'Silver', phone: null },
        ],
        now: harness.clock.now(),
      })
      expect(importId).toMatch(/^maj_/)
      // The transaction of the plan has emitted an event, and is still open.
      const body = { email: 'ben@example.com', firstName: 'Ben', lastName: 'Ito', tier: 'Silver', phone: null }
      expect((await harness.call('POST', '/v1/members', { key: partner.key, body })).status).toBe(201)
      return (await feed(last)).map(({ type }: { type: string }) => type)
    })
    expect(inFeed).toEqual(['member.invited', 'member.activated'])
    const types = (await feed(last)).map(({ type }: { type: string }) => type)
    expect(types).toEqual(['member.invited', 'member.activated', 'job.processing'])
  })
})

test('a row that PostgreSQL refuses while the rest of the file is read fails the request, and nothing else', async () => {
  const partner = await employer()
  await sql`
    alter table member_import_rows add constraint broken check (row <> 2) not valid`.execute(harness.ownerDb)
  const large = file(minimal, ...Array.from({ length: 50_000 }, (_, number) => row(`p${number}`)))
  expect((await upload(partner, large)).status).toBe(500)
  await sql`alter table member_import_rows drop constraint broken`.execute(harness.ownerDb)
  expect((await upload(partner, file(minimal, row('p0')))).status).toBe(202)
})

describe('while a job is applied', () => {
  test('it resumes after an interruption, and reports its progress', async () => {
    const partner = await employer()
    const count = extent({ short: 2_200, long: 4_500 })
    const rows = Array.from({ length: count }, (_, index) => row(`m${index}`))
    const { jobId } = (await upload(partner, file(minimal, ...rows))).body
    const ofImport = { partnerId: partner.partner.id, importId: jobId }
    const counts = []
    for (;;) {
      const { type, totalComplete, totalProcessing } = await job(partner, jobId)
      counts.push(totalComplete)
      expect(totalProcessing).toBe(type === 'Completed' ? 0 : count - totalComplete)
      if (type === 'Completed') break
      // Each call starts like a new process.
      await harness.inTx(tx => memberImports.applyNext(tx, { ...ofImport, now: harness.clock.now() }))
      // And cut off in the middle of the next chunk.
      const cut = harness.inTx(async tx => {
        await memberImports.applyNext(tx, { ...ofImport, now: harness.clock.now() })
        throw new Error('cut off')
      })
      await expect(cut).rejects.toThrow('cut off')
    }
    expect(counts).toEqual(extent({ short: [0, 2_000, count], long: [0, 2_000, 4_000, count] }))
    const { rows: events } = await sql<{ count: number; resources: number }>`
      select count(*)::integer, count(distinct resource_id)::integer as resources from events
       where partner_id = ${partner.partner.id} and type = 'member.invited'`.execute(harness.db)
    expect(events).toEqual([{ count, resources: count }])
  })

  test('a row that has become impossible fails, and the others are applied', async () => {
    const partner = await employer({ offboardReviewPercent: 0 })
    await apply(partner, file(`${minimal},worker_id`, row('ann', ',1'), row('ben', ',2'), row('old', ',3')))
    const { jobId } = (
      await upload(
        partner,
        file(`${minimal},worker_id`, row('ann', ',7'), row('ben', ',8'), row('cem', ',4'), row('dee', ',5')),
      )
    ).body
    const taken = await harness.call('POST', '/v1/members', {
      key: partner.key,
      body: { email: 'CEM@example.com', firstName: 'C', lastName: 'C', tier: 'Silver', workerId: '7' },
    })
    expect(taken.status).toBe(201)
    await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })
    await work()
    expect((await job(partner, jobId)).type).toBe('Completed')
    expect(await resultLines(partner, jobId)).toEqual([
      `2 Update Failed ann another member, ${taken.body.memberId}, has the e-mail or the worker_id`,
      '3 Update Done ben',
      '4 Invite Failed cem another member has taken the e-mail or the worker_id since the file was read',
      '5 Invite Done dee',
      ' Offboard Done old',
    ])
  })

  test('a change made to a member after the file was sent takes precedence', async () => {
    const partner = await employer({ offboardReviewPercent: 0 })
    const header = `${minimal},sort_code,account_number,account_holder`
    const account = ',089999,66374958,Sam'
    await apply(partner, file(header, ...['ann', 'ben', 'cem', 'dee', 'old', 'out'].map(name => row(name, account))))
    const id = async (name: string) => (await members(partner, `&emails=${name}@example.com`))[0].memberId
    const change = async (method: string, name: string, body?: object) =>
      expect((await harness.call(method, `/v1/members/${await id(name)}`, { key: partner.key, body })).status).toBe(200)
    await change('DELETE', 'dee')
    harness.clock.advance({ seconds: 1 })
    const changed = ['ann', 'ben', 'cem', 'dee'].map(name => row(name, account).replace('Okafor', 'Adeyemi'))
    const { jobId } = (await upload(partner, file(header, ...changed))).body

    harness.clock.advance({ seconds: 1 })
    const iban = { accountHolder: 'Ann', iban: 'DE89370400440532013000' }
    await change('PATCH', 'ann', { accountDetails: iban })
    await change('DELETE', 'ben')
    await change('DELETE', 'out')
    await change('PUT', 'out', { email: 'out@example.com', firstName: 'Back', lastName: 'Again', tier: 'Silver' })
    await harness.call('POST', `/v1/members/jobs/${jobId}/approve`, { key: partner.key })
    await work()
    const newer = 'the member has been changed since the file was sent'
    expect(await resultLines(partner, jobId)).toEqual([
      `2 Update Failed ann ${newer}`,
      `3 Update Failed ben ${newer}`,
      '4 Update Done cem',
      '5 Reinstate Done dee',
      ' Offboard Done old',
      ` Offboard Failed out ${newer}`,
    ])
    expect(await only(partner, 'ann')).toMatchObject({ accountDetails: iban, lastName: 'Okafor' })
    expect(await listed(partner)).toMatchObject({ ben: 'inactive', dee: 'active', old: 'inactive', out: 'active' })
  })

  test('a member invited while a file is being uploaded is not offboarded as missing', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('ann'), row('old')))
    // As if the upload had started a minute before she was invited.
    const { memberId } = await only(partner, 'ann')
    const sentAt = harness.clock.now()
    harness.clock.advance({ minutes: 1 })
    await harness.addMember({ key: partner.key })
    await harness.call('PATCH', `/v1/members/${memberId}`, { key: partner.key, body: { phone: '07700 900123' } })
    harness.clock.set(sentAt)
    const preview = await upload(partner, file(minimal, row('ben')), { query: '?dryRun=true' })
    expect(preview.body.plan).toEqual({ invite: 1, update: 0, reinstate: 0, offboard: 1, unchanged: 0 })
    harness.clock.advance({ minutes: 2 })
  })

  test('a job that is locked briefly is resumed soon after', async () => {
    const partner = await employer()
    const { jobId } = (await upload(partner, file(minimal, row('ann')))).body
    await harness.inTx(async tx => {
      await sql`select from member_imports where partner_id = ${partner.partner.id} and id = ${jobId} for no key update`.execute(
        tx,
      )
      await work()
    })
    expect((await job(partner, jobId)).type).toBe('Processing')
    const { rows } = await sql<{ seconds: number }>`
      select extract(epoch from max(run_at) - ${harness.clock.now()})::float as seconds from graphile_worker.jobs
       where task_identifier = 'apply-member-imports'`.execute(harness.db)
    expect(rows).toEqual([{ seconds: 0.5 }])
    await work()
    expect((await job(partner, jobId)).type).toBe('Completed')
  })

  test('a job that keeps failing is reported, and does not block the others', async () => {
    const [broken, well] = [await employer(), await employer()]
    const { jobId } = (await upload(broken, file(minimal, row('ann')))).body
    await sql`update member_imports set invite = 2 where id = ${jobId}`.execute(harness.ownerDb)
    const other = (await upload(well, file(minimal, row('ann')))).body.jobId
    await expect(work()).rejects.toThrow('An unfinished import has steps left')
    expect((await job(well, other)).type).toBe('Completed')
    await sql`update member_imports set invite = 1, status = 'Completed', ended_at = now() where id = ${jobId}`.execute(
      harness.ownerDb,
    )
  })

  test('each member’s change and each job status emits an event', async () => {
    const partner = await employer({ offboardReviewPercent: 50, autoActivate: true })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    await apply(partner, file(minimal, row('ann').replace('Okafor', 'Adeyemi')))
    await apply(partner, file(minimal, row('ann').replace('Okafor', 'Adeyemi'), row('ben')))
    const { rows } = await sql<{ type: string; sequence: number; data: Record<string, unknown> }>`
      select type, sequence, data from events where partner_id = ${partner.partner.id} and type not like 'pay_cycle.%' order by id`.execute(
      harness.db,
    )
    const byMember = Object.groupBy(rows, each => String(each.data.memberId ?? 'job'))
    const types = Object.values(byMember).map(events => events?.map(({ type, data }) => `${type} ${data.status}`))
    expect(types).toContainEqual(['member.invited invited', 'member.activated active', 'member.updated active'])
    expect(types).toContainEqual([
      ...['member.invited invited', 'member.activated active', 'member.removed inactive'],
      ...['member.reinstated invited', 'member.activated active'],
    ])
    expect(types).toContainEqual(Array(3).fill(['job.processing Processing', 'job.completed Completed']).flat())
  })
})

const post = ({ key }: TestPartner, actions: object[], { query = '', headers = {} } = {}) =>
  harness.call('POST', `/v1/members/jobs${query}`, { key, body: { actions }, headers })
const add = (name: string, more = {}) => ({
  ...{ type: 'Add', email: `${name}@example.com`, firstName: name, lastName: 'Okafor', tier: 'Silver' },
  ...more,
})

describe('a batch of actions', () => {
  test('is decided in order, and applied atomically', async () => {
    const partner = await employer()
    await apply(partner, file(`${minimal},worker_id`, row('ann', ',1'), row('ben', ',2'), row('cem', ',3')))
    const [ann, ben, cem] = [await only(partner, 'ann'), await only(partner, 'ben'), await only(partner, 'cem')]
    const { type: _, ...ben2 } = add('ben', { workerId: '22' })
    const actions = [
      { type: 'Offboard', memberId: ann.memberId },
      // Her address is free now, but her number is not.
      add('ann', { workerId: '9' }),
      { type: 'Update', memberId: cem.memberId, workerId: null, phone: '07700 900123' },
      { type: 'Update', memberId: cem.memberId, workerId: '33' },
      add('dee', { workerId: '3', accountDetails: { accountHolder: 'D', iban: 'DE89370400440532013000' } }),
      { type: 'Replace', memberId: ben.memberId, ...ben2 },
      { type: 'Offboard', memberId: ann.memberId },
    ]
    const preview = await post(partner, actions, { query: '?dryRun=true' })
    expect(preview.body).toEqual({
      plan: { invite: 2, update: 3, reinstate: 0, offboard: 1, unchanged: 1 },
      ...{ needsReview: false, offboard: [ann.memberId] },
    })
    const answer = await post(partner, actions)
    expect(answer.status, answer.text).toBe(202)
    await work()
    expect(await job(partner, answer.body.jobId)).toEqual({
      type: 'Completed',
      totalActions: 7,
      totalComplete: 7,
      totalProcessing: 0,
    })
    expect((await harness.call('GET', `/v1/members/${ann.memberId}`, { key: partner.key })).body.status).toBe(
      'inactive',
    )
    expect(await only(partner, 'cem')).toMatchObject({ workerId: '33', phone: '+447700900123' })
    expect(await only(partner, 'dee')).toMatchObject({ workerId: '3', status: 'active' })
    expect(await only(partner, 'ben')).toMatchObject({ workerId: '22' })
    expect(await resultLines(partner, answer.body.jobId)).toEqual([
      ...['1 Offboard Done ann', '2 Invite Done ann', '3 Update Done cem', '4 Update Done cem', '5 Invite Done dee'],
      ...['6 Update Done ben', '7 Unchanged Done ann'],
    ])
  })

  test('is refused with all issues, and creates no job, when one action is invalid', async () => {
    const partner = await employer()
    const stranger = await harness.addMember({ key: harness.other.key })
    const answer = await post(partner, [
      add('ann'),
      add('Ann', { tier: 'Platinum' }),
      { type: 'Update', memberId: stranger, firstName: 'Mine' },
      { type: 'Offboard', memberId: stranger },
      add('ben', {
        phone: '12',
        accountDetails: { accountHolder: 'B', sortCode: '089999', accountNumber: '66374959' },
      }),
    ])
    expect(answer.status).toBe(400)
    expect(answer.body.issues.map(({ message: _, ...issue }: Record<string, string>) => issue)).toEqual([
      { code: 'InvalidAddMemberPayload', email: 'Ann@example.com' },
      { code: 'InvalidUpdateMemberPayload', memberId: stranger },
      { code: 'InvalidRemoveMemberPayload', memberId: stranger },
      { code: 'InvalidAddMemberPayload', email: 'ben@example.com' },
      { code: 'InvalidAddMemberPayload', email: 'ben@example.com' },
    ])
    expect((await harness.call('GET', '/v1/members/jobs', { key: partner.key })).body.total).toBe(0)
    expect(await members(partner)).toEqual([])
  })

  test('ends as rejected, with nothing applied, when it has become impossible', async () => {
    const partner = await employer()
    const { jobId } = (await post(partner, [add('ann'), add('ben')])).body
    await harness.call('POST', '/v1/members', { key: partner.key, body: { ...add('ben'), type: undefined } })
    await work()
    expect((await job(partner, jobId)).type).toBe('Rejected')
    expect(await listed(partner)).toEqual({ ben: 'active' })
    expect(await resultLines(partner, jobId)).toEqual([
      '1 Invite NotDone ',
      expect.stringMatching(/^2 Invite Failed {2}another member, mem_/),
    ])
  })

  test('reports its progress while it runs', async () => {
    const partner = await employer()
    const added = Array.from({ length: 1_500 }, (_, index) => add(`m${index}`))
    const { jobId } = (await post(partner, added)).body
    const ofImport = { partnerId: partner.partner.id, importId: jobId }
    const progress: object[] = []
    await harness.inTx(tx =>
      memberImports.applyNext(tx, {
        ...ofImport,
        now: harness.clock.now(),
        async report(stepsDone) {
          await harness.inTx(other => memberImports.recordProgress(other, { ...ofImport, stepsDone }))
          progress.push(await job(partner, jobId))
        },
      }),
    )
    const processing = (totalComplete: number) => ({
      type: 'Processing',
      totalActions: 1_500,
      totalComplete,
      totalProcessing: 1_500 - totalComplete,
    })
    expect(progress).toEqual([processing(0), processing(1_000), processing(1_500)])
    expect(await job(partner, jobId)).toMatchObject({ type: 'Completed', totalComplete: 1_500 })
  })

  test('may have a hundred actions that depend on each other, and reports clashes within it by position', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, row('ann')))
    const { memberId } = await only(partner, 'ann')
    const renames = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ type: 'Update', memberId, firstName: `Ann ${index}` }))
    const refused = await post(partner, renames(101))
    expect(refused.body.issues).toEqual([expect.objectContaining({ code: 'BodyValidation', path: 'actions' })])
    const clash = await post(partner, [add('ben'), add('Ben')])
    expect(clash.body.issues[0].message).toBe('actions.1: actions.0 has the same e-mail or workerId')
    expect((await post(partner, renames(100))).status).toBe(202)
    await work()
    expect(await only(partner, 'ann')).toMatchObject({ firstName: 'Ann 99' })
  })

  test('may have ten thousand actions; a larger one is refused, and so is an unknown action', async () => {
    const partner = await employer({ offboardReviewPercent: 0 })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    // A file awaiting review keeps the worker from applying them, which would take seconds.
    const { jobId: ahead } = (await upload(partner, file(minimal, row('ann')))).body
    const many = Array.from({ length: 10_000 }, (_, index) => add(`m${index}`))
    const answer = await post(partner, many)
    expect(answer.status).toBe(202)
    await work()
    expect(await job(partner, answer.body.jobId)).toMatchObject({ type: 'NotReady', totalActions: 10_000 })
    if (extent({ short: false, long: true })) {
      await harness.call('POST', `/v1/members/jobs/${ahead}/reject`, { key: partner.key })
      await work()
      expect((await job(partner, answer.body.jobId)).totalComplete).toBe(10_000)
    }
    expect((await post(partner, [...many, add('more')])).body.issues[0]).toMatchObject({
      code: 'BodyValidation',
      path: 'actions',
    })
    expect((await post(partner, [])).status).toBe(400)
    expect(
      (
        await post(partner, [{ type: 'Delete', memberId: 'x' }, { ...add('ann'), memberId: 'x' }, { type: 'Offboard' }])
      ).body.issues.map((each: { path: string }) => each.path),
    ).toEqual(['actions.0.type', 'actions.1.memberId', 'actions.2.memberId'])
  })
})

describe('a queue of jobs', () => {
  const review = ({ key }: TestPartner, jobId: string, verb: 'approve' | 'reject') =>
    harness.call('POST', `/v1/members/jobs/${jobId}/${verb}`, { key })
  const queued = (totalActions: number) => ({ type: 'NotReady', totalActions, totalComplete: 0, totalProcessing: 0 })
  /** A file that waits for a review, so that the next job is queued behind it. */
  const fileInReview = async (partner: TestPartner, ...names: string[]): Promise<string> => {
    const { jobId } = (
      await upload(partner, file(minimal, ...names.map(name => row(name))), { query: '?offboardMax=0' })
    ).body
    expect((await job(partner, jobId)).type).toBe('AwaitingReview')
    return jobId
  }
  const accepted = async (answer: ReturnType<typeof harness.call>): Promise<string> => {
    const { status, body, text } = await answer
    expect(status, text).toBe(202)
    return body.jobId
  }

  test('applies jobs in the order in which they were sent, each on the result of the jobs ahead', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, row('ann')))
    const { memberId } = await only(partner, 'ann')
    const first = await accepted(post(partner, [{ type: 'Offboard', memberId }]))
    // She keeps her address until the first job is done.
    const second = await accepted(post(partner, [add('ann'), { type: 'Offboard', memberId }]))
    const third = await accepted(post(partner, [add('ann')]))
    expect(await job(partner, first)).toMatchObject({ type: 'Processing' })
    expect(await job(partner, second)).toEqual(queued(2))
    expect(await resultLines(partner, second)).toEqual(['1 Invite Pending ', '2 Offboard Pending ann'])
    await work()
    expect(await job(partner, second)).toEqual({ ...queued(2), type: 'Completed', totalComplete: 2 })
    expect(await results(partner, second)).toMatchObject({ plan: { invite: 1, offboard: 0, unchanged: 1 } })
    expect(await resultLines(partner, second)).toEqual(['1 Invite Done ann', '2 Unchanged Done ann'])
    expect(await job(partner, third)).toMatchObject({ type: 'Rejected' })
    expect((await resultLines(partner, third))[0]).toMatch(/^1 Invite Failed {2}another member, mem_/)
    // Both were created at the same instant, so their order is undefined.
    expect((await members(partner)).map(({ status }: { status: string }) => status).sort()).toEqual([
      'active',
      'inactive',
    ])
    const { rows } = await sql<{ type: string }>`
      select type from events where partner_id = ${partner.partner.id} and resource_id = ${second} order by sequence`.execute(
      harness.db,
    )
    expect(rows.map(({ type }) => type)).toEqual(['job.queued', 'job.processing', 'job.completed'])
  })

  test('waits for the review of a file, and continues whether it is approved or rejected', async () => {
    for (const [verb, statuses] of [
      ['approve', { ann: 'active', ben: 'inactive', cem: 'active' }],
      ['reject', { ann: 'active', ben: 'active', cem: 'active' }],
    ] as const) {
      const partner = await employer()
      await apply(partner, file(minimal, row('ann'), row('ben')))
      const ahead = await fileInReview(partner, 'ann')
      const behind = await accepted(post(partner, [add('cem')]))
      await work()
      expect(await job(partner, behind)).toEqual(queued(1))
      await review(partner, ahead, verb)
      await work()
      expect(await job(partner, behind)).toMatchObject({ type: 'Completed' })
      expect(await listed(partner)).toEqual(statuses)
    }
  })

  test('refuses at once what no job ahead can resolve', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, row('ann'), row('ben')))
    await fileInReview(partner, 'ann')
    const { memberId } = await only(partner, 'ann')
    const absent = `mem_${'0'.repeat(26)}`
    const answer = await post(partner, [
      add('cem', { tier: 'Platinum' }),
      { type: 'Update', memberId: absent, firstName: 'X' },
      ...[add('dee'), add('Dee')],
      { type: 'Update', memberId, email: 'other@example.com' },
    ])
    expect(answer.status).toBe(400)
    expect(answer.body.issues.map(({ message }: { message: string }) => message.slice(0, 10))).toEqual([
      'actions.0:',
      'actions.1:',
      'actions.3:',
      'actions.4:',
    ])
    const bad = [row('cem').replace('Silver', 'Platinum'), row('ann'), row('ann'), row('ben').replace('@', '')]
    expect(faultsOf(await upload(partner, file(minimal, ...bad)))).toEqual([
      '2: There is no such tier; the tiers are: Bronze, Gold, Silver, Silver EU',
      '4: email: duplicate of row 3',
      '5: email: is not an e-mail address, like sam.okafor@example.com',
    ])
    expect((await harness.call('GET', '/v1/members/jobs', { key: partner.key })).body.total).toBe(2)
  })

  test('plans a file when its turn comes: it overrides earlier jobs, but not later ones', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('ann'), row('fay'), row('gil')))
    harness.clock.advance({ seconds: 1 })
    const ahead = await accepted(
      upload(partner, file(minimal, row('ann').replace('Okafor', 'First'), row('ben'), row('fay'))),
    )
    const added = await accepted(post(partner, [add('cem')]))
    harness.clock.advance({ seconds: 1 })
    const fileOfNow = file(
      minimal,
      row('ann').replace('Okafor', 'Second'),
      row('dee'),
      row('fay').replace('Okafor', 'Second'),
    )
    const behind = await accepted(upload(partner, fileOfNow))
    expect(await job(partner, behind)).toMatchObject({ type: 'NotReady' })
    expect((await results(partner, behind)).results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(
      Array(4).fill('Pending'),
    )
    harness.clock.advance({ seconds: 1 })
    await harness.addMember({ key: partner.key })
    const { memberId } = await only(partner, 'fay')
    await harness.call('PATCH', `/v1/members/${memberId}`, { key: partner.key, body: { lastName: 'Third' } })
    harness.clock.advance({ seconds: 1 })
    await work()

    expect(await resultLines(partner, ahead)).toEqual([
      '2 Update Done ann',
      '3 Invite Done ben',
      '4 Unchanged Done fay',
      ' Offboard Done gil',
    ])
    expect(await job(partner, added)).toMatchObject({ type: 'Completed' })
    expect((await results(partner, behind)).plan).toEqual({
      invite: 1,
      update: 2,
      reinstate: 0,
      offboard: 2,
      unchanged: 0,
    })
    expect((await resultLines(partner, behind)).sort()).toEqual([
      ...[' Offboard Done ben', ' Offboard Done cem'],
      '2 Update Done ann',
      '3 Invite Done dee',
      '4 Update Failed fay the member has been changed since the file was sent',
    ])
    const { ann, ben, cem, dee, fay, gil, ...invited } = await listed(partner)
    expect({ ann, ben, cem, dee, fay, gil }).toEqual({
      ...{ ann: 'active', ben: 'inactive', cem: 'inactive', dee: 'active', fay: 'active', gil: 'inactive' },
    })
    expect(Object.values(invited)).toEqual(['active'])
    expect(await only(partner, 'ann')).toMatchObject({ lastName: 'Second' })
    expect(await only(partner, 'fay')).toMatchObject({ lastName: 'Third' })
  })

  test('decides whether a file needs review by the plan made in its turn', async () => {
    const partner = await employer({ offboardReviewPercent: 50 })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    await accepted(post(partner, [add('cem'), add('dee')]))
    const isShare = await accepted(upload(partner, file(minimal, row('ann'))))
    const isAgreed = await accepted(upload(partner, file(minimal, row('ann'), row('ben')), { query: '?offboardMax=1' }))
    const isNothing = await accepted(upload(partner, file(minimal, row('ann'), row('ben'))))
    await work()
    expect(await job(partner, isShare)).toMatchObject({ type: 'AwaitingReview', totalActions: 3 })
    expect(await job(partner, isAgreed)).toMatchObject({ type: 'NotReady' })
    await review(partner, isShare, 'reject')
    await work()
    expect(await job(partner, isAgreed)).toMatchObject({ type: 'AwaitingReview', totalActions: 2 })
    expect(await job(partner, isNothing)).toMatchObject({ type: 'NotReady' })
    await review(partner, isAgreed, 'approve')
    await work()
    expect(await job(partner, isNothing)).toMatchObject({ type: 'Completed', totalActions: 0 })
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'inactive', dee: 'inactive' })
  })

  test('defers a row that clashes with another member until its turn comes', async () => {
    const header = `${minimal},worker_id`
    const partner = await employer({ offboardReviewPercent: 100 })
    const five = [row('ann', ',1'), row('ben', ',2'), row('cem', ',3'), row('eve', ',5'), row('fay', ',')]
    await apply(partner, file(header, ...five))
    const [ann, eve] = [await only(partner, 'ann'), await only(partner, 'eve')]
    const free = ({ memberId }: { memberId: string }) => ({ type: 'Update', memberId, workerId: null })
    const rows = [row('ann', ','), row('dee', ',1'), row('eve', ','), row('ben', ',5'), row('fay', ',3')]
    expect(faultsOf(await upload(partner, file(header, ...rows)))).toHaveLength(3)
    await accepted(post(partner, [free(ann), free(eve)]))
    const jobId = await accepted(upload(partner, file(header, ...rows)))
    await work()
    expect(await job(partner, jobId)).toMatchObject({ type: 'Completed', totalActions: 4, totalComplete: 4 })
    const cem = (await members(partner, '&emails=cem@example.com'))[0].memberId
    expect(await resultLines(partner, jobId)).toEqual([
      ...['2 Unchanged Done ann', '3 Invite Done dee', '4 Unchanged Done eve', '5 Update Done ben'],
      `6 Update Failed fay another member, ${cem}, has the e-mail or the worker_id`,
      ' Offboard Done cem',
    ])
  })

  test('rejects a file, with nothing applied, if too many rows have become impossible', async () => {
    const header = `${minimal},worker_id`
    const partner = await employer()
    const names = (prefix: string) => Array.from({ length: 1_001 }, (_, index) => [`${prefix}${index}`, index] as const)
    const held = names('h').map(([name, index]) => row(name, `,${index}`))
    await apply(partner, file(header, ...held, ...names('m').map(([name]) => row(name, ','))))
    const ahead = await fileInReview(partner, 'ann')
    const clashing = names('m').map(([name, index]) => row(name, `,${index}`))
    const refused = await upload(partner, file(header, row('new', ','), ...held, ...clashing))
    expect(refused.status).toBe(400)
    const jobId = await accepted(upload(partner, file(header, row('new', ','), ...clashing)))
    await review(partner, ahead, 'reject')
    await work()
    expect(await job(partner, jobId)).toMatchObject({ type: 'Rejected', totalComplete: 0 })
    const { total } = await results(partner, jobId, '?outcomes=Failed')
    expect(total).toBe(1_001)
    expect(await only(partner, 'new')).toBeUndefined()
  })

  test('lets a queued job be rejected, but not approved', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, row('ann'), row('ben')))
    const ahead = await fileInReview(partner, 'ann')
    const [second, third] = [await accepted(post(partner, [add('cem')])), await accepted(post(partner, [add('dee')]))]
    expect((await review(partner, second, 'approve')).status).toBe(409)
    for (const _ of ['once', 'again']) {
      expect((await review(partner, second, 'reject')).body.progress).toMatchObject({ type: 'Rejected' })
    }
    expect(await resultLines(partner, second)).toEqual(['1 Invite NotDone '])
    await review(partner, ahead, 'reject')
    await work()
    expect(await job(partner, third)).toMatchObject({ type: 'Completed' })
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', dee: 'active' })
  })

  test('accepts concurrent jobs, and applies them one after the other', async () => {
    const partner = await employer()
    const second = await harness.startSecond()
    const names = Array.from({ length: 12 }, (_, index) => `m${index}`)
    const answers = await Promise.all(
      names.map((name, index) =>
        (index % 2 === 0 ? harness.call : second.call)('POST', '/v1/members/jobs', {
          key: partner.key,
          body: { actions: [add(name)] },
        }),
      ),
    )
    await second.stop()
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 202))
    const { jobs } = (await harness.call('GET', '/v1/members/jobs', { key: partner.key })).body
    const types = jobs.map(({ progress }: { progress: { type: string } }) => progress.type).toSorted()
    expect(types).toEqual([...Array(11).fill('NotReady'), 'Processing'])
    await Promise.all([work(), work()])
    await work()
    expect(Object.keys(await listed(partner)).toSorted()).toEqual(names.toSorted())
  })

  test('accepts actions while a file is being read', async () => {
    const partner = await employer()
    const rows = Array.from({ length: 3_000 }, (_, index) => row(`m${index}`))
    const [list, batch] = await Promise.all([
      accepted(upload(partner, file(minimal, ...rows, row('zoe')))),
      accepted(post(partner, [add('zoe')])),
    ])
    await work()
    expect(await job(partner, list)).toMatchObject({ type: 'Completed' })
    // Whichever came first.
    expect((await job(partner, batch)).type).toMatch(/^(Completed|Rejected)$/)
    expect(await only(partner, 'zoe')).toMatchObject({ status: 'active' })
  })

  test('holds a hundred jobs, five of them files, and names the review that blocks it', async () => {
    const partner = await employer()
    await apply(partner, file(minimal, row('ann'), row('ben')))
    const ahead = await fileInReview(partner, 'ann')
    for (let count = 0; count < 5; count++) await accepted(upload(partner, file(minimal, row('ann'))))
    const refused = await upload(partner, file(minimal, row('ann')))
    expect([refused.status, refused.headers['retry-after']]).toEqual([409, undefined])
    expect(refused.body.issues).toEqual([
      {
        code: 'Conflict',
        message: `5 files are queued behind ${ahead}, which is waiting for a review: approve or reject it first`,
      },
    ])
    for (let count = 5; count < 100; count++) await accepted(post(partner, [add('cem')]))
    expect((await post(partner, [add('cem')])).body.issues[0].message).toMatch(/^100 jobs are queued behind/)
    await review(partner, ahead, 'reject')
    const later = await post(partner, [add('cem')])
    expect(later).toMatchObject({ status: 409, headers: { 'retry-after': '5' } })
    await work()
  })
})

describe('a body of ten thousand bad actions', () => {
  const bad = [
    {},
    { type: 'Update', memberId: 'x', accountDetails: {} },
    { type: 'Add', email: 'a@example.com', firstName: 'a', lastName: 'b', tier: 'x', accountDetails: { iban: 1 } },
  ]
  // In quadratic time this would take minutes, and block every other request until then.
  test.each(bad)('is refused with the first hundred issues and a closing one: %o', { timeout: 5_000 }, async action => {
    const { key } = await employer()
    const answer = await harness.call('POST', '/v1/members/jobs', {
      key,
      body: { actions: Array(10_000).fill(action) },
    })
    expect(answer.status).toBe(400)
    expect(answer.body.issues).toHaveLength(101)
    expect(answer.body.issues.at(-1)).toMatchObject({
      path: expect.stringMatching(/^actions\.\d+\./),
      message: 'and more; fix these issues first',
    })
  })
})

describe('a results file', () => {
  test('that is uploaded unedited does not reinstate the members it reports as offboarded', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('ann'), row('old')))
    const jobId = await apply(partner, file(minimal, row('ann')))
    const accept = { accept: 'text/csv' }
    const { text } = await harness.call('GET', `/v1/members/jobs/${jobId}/results`, {
      key: partner.key,
      headers: accept,
    })
    expect(faultsOf(await upload(partner, text))).toEqual([
      '3: action: offboarded members are not part of a list; remove the row',
    ])
    const without = text.split('\r\n').filter(line => !line.includes('Offboard'))
    await apply(partner, without.join('\r\n'))
    expect(await listed(partner)).toEqual({ ann: 'active', old: 'inactive' })
  })
})

describe('a workbook', () => {
  const xlsx = { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' }
  const text = (value: string) => ({ type: String, value })
  const header = [
    ...minimal.split(','),
    'worker_id',
    'dob',
    'enable_payroll',
    'sort_code',
    'account_number',
    'account_holder',
  ]
  const workbook = async (...rows: object[][]) => await writeExcelFile([header.map(text), ...rows] as never).toBuffer()
  const ann = ['ann@example.com', 'Ann', 'Okafor', '+447700900123', 'Silver', '007'].map(text)

  test('is imported like CSV; its dates are days, and its texts keep leading zeros', async () => {
    const partner = await employer()
    const dob = { type: Date, value: new Date('1990-06-24'), format: 'dd/mm/yyyy' }
    const raw = await workbook([
      ...ann,
      dob,
      { type: Boolean, value: false },
      text('089999'),
      text('66374958'),
      text('A'),
    ])
    await apply(partner, raw, { headers: xlsx })
    expect(await only(partner, 'ann')).toMatchObject({
      ...{ workerId: '007', dob: '1990-06-24', enablePayroll: false, phone: '+447700900123' },
      accountDetails: { sortCode: '089999', accountNumber: '66374958' },
    })
    const { body } = await upload(partner, raw, { query: '?dryRun=true', headers: xlsx })
    expect(body.plan).toMatchObject({ unchanged: 1 })
  })

  test('reports numbers that may have lost leading zeros, and formula errors', async () => {
    const number = (value: number) => ({ type: Number, value })
    const raw = await workbook(
      [
        ...ann.slice(0, 3),
        number(447700900123),
        text('Silver'),
        number(7),
        number(33000),
        null as never,
        number(89999),
        number(6374958),
        text('A'),
      ],
      [text('ben@example.com'), text('#N/A'), ...ann.slice(2)],
    )
    expect(faultsOf(await upload(await employer(), raw, { headers: xlsx }))).toEqual([
      '2: phone: the cell is a number (447700900123), which loses leading zeros; format the column as text and type it again; worker_id: the cell is a number (7), which loses leading zeros; format the column as text and type it again; dob: the cell is a number; format the column as a date, or type it like 1990-06-24; sort_code: the cell is a number (89999), which loses leading zeros; format the column as text and type it again; account_number: the cell is a number (6374958), which loses leading zeros; format the column as text and type it again',
      '3: first_name: contains the formula error #N/A',
    ])
  })

  test('that is invalid or hostile is reported as a fault of the first row', async () => {
    const partner = await employer()
    const noWorkbook = [file(minimal, row('ann')), 'PK\u{3}\u{4}', '\u{0}']
    for (const raw of noWorkbook) {
      expect(faultsOf(await upload(partner, raw, { headers: xlsx }))[0]).toMatch(/^1: /)
    }
    expect(faultsOf(await upload(partner, await workbook(ann)))[0]).toMatch(/^1: The file is an Excel workbook/)
  })
})

describe('a repeated request', () => {
  test('with the same key and file returns the same job; with another file it is refused', async () => {
    const partner = await employer()
    const tooLong = { 'x-idempotency-key': 'x'.repeat(1_025) }
    const key = { 'x-idempotency-key': 'list of march' }
    expect((await upload(partner, file(minimal, row('ann')), { headers: tooLong })).status).toBe(400)
    const first = await upload(partner, file(minimal, row('ann')), { headers: key })
    const second = await upload(partner, file(minimal, row('ann')), { headers: key })
    expect(second).toMatchObject({ status: 202, body: first.body, headers: { 'idempotency-replayed': 'true' } })
    expect((await upload(partner, file(minimal, row('ben')), { headers: key })).status).toBe(422)
    expect((await upload(partner, file(minimal, row('ann')), { headers: key, version: 'v1' })).status).toBe(422)
    await work()
    expect(await listed(partner)).toEqual({ ann: 'active' })
  })

  test('after a refusal is processed anew, and a dry run is replayed without running again', async () => {
    const partner = await employer()
    const key = { 'x-idempotency-key': 'k' }
    expect((await upload(partner, file(minimal, 'x'), { headers: key })).status).toBe(400)
    const preview = await upload(partner, file(minimal, row('ann')), { headers: key, query: '?dryRun=true' })
    expect(preview.status).toBe(200)
    await apply(partner, file(minimal, row('ann')))
    const again = await upload(partner, file(minimal, row('ann')), { headers: key, query: '?dryRun=true' })
    expect(again).toMatchObject({ body: preview.body, headers: { 'idempotency-replayed': 'true' } })
  })

  test('of many partners at once is read or refused with a time to retry, and the service stays up', async () => {
    const partners = await Promise.all(Array.from({ length: 5 }, () => employer()))
    const rows = Array.from({ length: extent({ short: 500, long: 3_000 }) }, (_, index) => row(`m${index}`))
    const answers = await Promise.all(partners.map(partner => upload(partner, file(minimal, ...rows))))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter(status => status === 202).length).toBeGreaterThanOrEqual(2)
    expect(statuses.filter(status => ![202, 503].includes(status))).toEqual([])
    const late = partners[statuses.indexOf(503)]
    if (late !== undefined) await apply(late, file(minimal, row('ann')))
    await work()
  })

  test('of two concurrent uploads, one is read and the other is told to retry', async () => {
    const partner = await employer()
    const rows = Array.from({ length: 3_000 }, (_, index) => row(`m${index}`))
    const answers = await Promise.all([1, 2].map(() => upload(partner, file(minimal, ...rows))))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409])
    await work()
  })
})

describe('another partner', () => {
  test('finds only its own jobs, and is not blocked by others', async () => {
    const [mine, other] = [await employer(), await employer()]
    const { jobId } = (await upload(mine, file(minimal, row('ann')))).body
    const absent = `maj_${'0'.repeat(26)}`
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/results'],
      ['POST', '/approve'],
      ['POST', '/reject'],
    ] as const) {
      const answers = [jobId, absent].map(id =>
        harness.call(method, `/v1/members/jobs/${id}${rest}`, { key: other.key }),
      )
      const [theirs, nobodys] = await Promise.all(answers)
      expect(theirs).toMatchObject({ status: 404, text: nobodys?.text })
    }
    expect(
      (
        await harness.call('GET', `/v1/members/jobs/${jobId}/results`, {
          key: other.key,
          headers: { accept: 'text/csv' },
        })
      ).status,
    ).toBe(404)
    expect((await upload(other, file(minimal, row('ann')))).status).toBe(202)
    await work()
    expect([await listed(mine), await listed(other)]).toEqual([{ ann: 'active' }, { ann: 'active' }])
  })

  test('a read-only key can neither upload nor review', async () => {
    const { secret } = await harness.addKey(['members:read'])
    const reader = { ...(await employer()), key: secret }
    expect((await upload(reader, file(minimal, row('ann')))).status).toBe(403)
    expect((await harness.call('POST', `/v1/members/jobs/maj_${'0'.repeat(26)}/approve`, { key: secret })).status).toBe(
      403,
    )
    expect((await harness.call('GET', '/v1/members/jobs', { key: secret })).status).toBe(200)
  })
})

describe('results as a file', () => {
  test('contain the rows with their outcome, and nothing that a spreadsheet would read as a formula', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('old')))
    const jobId = await apply(
      partner,
      file('tier,phone,email,first_name,last_name', `Silver,+447700900123,ann@example.com,=1+1,"Oka""for"`),
    )
    const { text, headers } = await harness.call('GET', `/v1/members/jobs/${jobId}/results`, {
      key: partner.key,
      headers: { accept: 'text/csv' },
    })
    expect(headers).toMatchObject({
      'content-type': 'text/csv; charset=utf-8',
      'content-disposition': `attachment; filename="${jobId}.csv"`,
    })
    const [ann, old] = [await only(partner, 'ann'), (await members(partner, '&emails=old@example.com'))[0]]
    expect(text.split('\r\n')).toEqual([
      'row,action,outcome,member_id,message,tier,phone,email,first_name,last_name',
      `2,Invite,Done,${ann.memberId},,Silver,'+447700900123,ann@example.com,'=1+1,"Oka""for"`,
      `,Offboard,Done,${old.memberId},,Silver,,old@example.com,old,Okafor`,
      '',
    ])
  })

  test('are deleted 30 days after the job ends with the key that sealed them, except for the counts', async () => {
    const partner = await employer()
    const jobId = await apply(partner, file(minimal, row('ann')))
    const forget = () => harness.runTask('remove-old-data')
    const keys = () =>
      harness.ownerDb.selectFrom('memberImportKeys').select('importId').where('importId', '=', jobId).execute()
    expect(await keys()).toHaveLength(1)
    harness.clock.advance({ days: 29 })
    await forget()
    expect((await results(partner, jobId)).total).toBe(1)
    harness.clock.advance({ days: 2 })
    await forget()
    expect(await results(partner, jobId)).toMatchObject({ total: 0, plan: { invite: 1 } })
    expect((await job(partner, jobId)).totalComplete).toBe(1)
    expect(await keys()).toEqual([])
  })
})

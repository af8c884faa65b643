import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { euAccount, goodAccount } from '../../test/harness/samples.ts'
import { newId } from '../kernel/ids.ts'
import { columns } from './fields.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const asCsv = { accept: 'text/csv' }
const current = '?statuses=active&statuses=invited'
const common = { lastName: 'Okafor', tier: 'Silver' }
const awkward = [
  { phone: '+447700900123', workerId: '000123', dob: '1990-06-24', gender: 'NonBinary', accountDetails: goodAccount },
  { firstName: '=cmd()', lastName: '@work', accountDetails: euAccount, enablePayroll: false },
  { firstName: "'=quoted", lastName: "''+", workerId: "'-7" },
  { firstName: '＝wide', lastName: '－', workerId: '-7' },
  { firstName: 'Anne "Nan", Marie; B.', lastName: 'O’Brien\u00a0d’Été 北京 👩🏽', workerId: '"' },
  { firstName: 'a;=cmd()', lastName: "x, -y,-z;'+1", workerId: 'w;@sum' },
  { firstName: "'t", lastName: "'", accountDetails: { ...goodAccount, accountHolder: '+Sam, "S"' } },
]

/** A new partner with exactly these members. */
async function partnerWith(members: object[]): Promise<string> {
  const { key } = await harness.addPartner('File')
  for (const [index, member] of members.entries()) {
    const body = { email: `m-${index}+x@example.com`, firstName: 'Sam', ...common, ...member }
    const { status, text } = await harness.call('POST', '/v1/members', { key, body })
    expect(status, text).toBe(201)
  }
  return key
}

test.each(['v1', 'v2'])('the members as a file are a list that changes nothing when it is imported by %s', async v => {
  const key = await partnerWith(awkward)
  const { status, headers, text } = await harness.call('GET', `/v1/members${current}`, { key, headers: asCsv })
  expect({ status, type: headers['content-type'], name: headers['content-disposition'] }).toEqual({
    status: 200,
    type: 'text/csv; charset=utf-8',
    name: 'attachment; filename="members.csv"',
  })
  const preview = await harness.call('PUT', `/${v}/members/jobs/csv?dryRun=true`, {
    key,
    raw: text,
    headers: { 'content-type': 'text/csv' },
  })
  expect(preview.status, preview.text).toBe(200)
  expect(preview.body.plan).toEqual({ invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: awkward.length })
})

test('no cell of the file is a formula, and text stays text', async () => {
  const key = await partnerWith(awkward)
  const { text } = await harness.call('GET', '/v1/members', { key, headers: asCsv })
  expect(text.split('\r\n').slice(0, 3)).toEqual([
    columns.join(','),
    "m-0+x@example.com,Sam,Okafor,'+447700900123,Silver,000123,089999,66374958,Sam Okafor,,1990-06-24,NonBinary,true",
    "m-1+x@example.com,'=cmd(),'@work,,Silver,,,,Mia Schulz,DE89370400440532013000,,,false",
  ])
  // Nor where a spreadsheet splits at semicolons.
  expect(text).not.toMatch(/(^|[,;\n])[=+\-@]/)
  expect(text).toContain(`"a;'=cmd()","x, -y,'-z;''+1"`)
})

test('a list with invisible names is refused by row and column', async () => {
  const { key } = await harness.addPartner('Invisible')
  const raw = [
    'email,first_name,last_name,phone,tier,worker_id,sort_code,account_number,account_holder,iban',
    'a@example.com,\u200b,\u3164,,Silver,\u2060,089999,66374958,\u2800,',
    'b@example.com,Sam,\u0301,,Silver,,,,\u202e,DE89370400440532013000',
  ].join('\n')
  const headers = { 'content-type': 'text/csv' }
  const { status, body } = await harness.call('PUT', '/v2/members/jobs/csv', { key, raw, headers })
  expect(status).toBe(400)
  const namesOf = (row: string) =>
    body.issues
      .filter((issue: { row: string }) => issue.row === row)
      .flatMap(({ message }: { message: string }) => message.match(/[a-z_]+(?=: )/g))
  expect(namesOf('2')).toEqual(['first_name', 'last_name', 'worker_id', 'account_holder'])
  expect(namesOf('3')).toEqual(['last_name', 'account_holder'])
})

test('the file has all members that match the filters, oldest first, ignoring skip and take, and none of another partner', async () => {
  const key = await partnerWith([{}, {}, {}])
  const { body } = await harness.call('GET', '/v1/members?take=1', { key })
  await harness.call('DELETE', `/v1/members/${body.members[0].memberId}`, { key })
  const emailsOf = async (query: string) =>
    (await harness.call('GET', `/v1/members${query}`, { key, headers: asCsv })).text
      .trimEnd()
      .split('\r\n')
      .slice(1)
      .map(line => line.split(',', 1)[0])
  expect(await emailsOf(`${current}&take=1&skip=1`)).toEqual(['m-0+x@example.com', 'm-1+x@example.com'])
  expect(await emailsOf('?statuses=inactive')).toEqual(['m-2+x@example.com'])
})

test('a list longer than one read batch is complete', async () => {
  const { key, partner } = await harness.addPartner('Long')
  const now = harness.clock.now()
  const ids = Array.from({ length: 2_001 }, () => newId('member', now))
  await insertMembers(harness.db, { partnerId: partner.id, members: ids.map(id => ({ id })), now })
  const { text } = await harness.call('GET', '/v1/members', { key, headers: asCsv })
  const listed = text.trimEnd().split('\r\n').slice(1)
  expect(listed.map(line => line.split('@', 1)[0])).toEqual(ids.toSorted())
})

test('the template is public: it has the header of the file, and importing it unedited means an empty list', async () => {
  const csv = await harness.app.inject('/members-template.csv')
  expect({ status: csv.statusCode, body: csv.body }).toEqual({ status: 200, body: `\ufeff${columns.join(',')}\r\n` })
  const { key } = await harness.addPartner('Template')
  const headers = { 'content-type': 'text/csv' }
  const preview = await harness.call('PUT', '/v2/members/jobs/csv?dryRun=true', { key, raw: csv.body, headers })
  expect(preview.body.plan).toEqual({ invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: 0 })

  const xlsx = await harness.app.inject('/members-template.xlsx')
  expect(xlsx.statusCode).toBe(200)
  expect(xlsx.headers['content-type']).toBe('application/vnd.openxmlformats-officedocument.spreadsheetml.sheet')
  expect(await sheetOf(xlsx.rawPayload)).toEqual({ header: [...columns], isFrozen: true, textColumns: columns.length })
})

/** The workbook as a spreadsheet reads it. */
async function sheetOf(workbook: Buffer) {
  const zip = await fromBufferPromise(workbook)
  const texts = new Map<string, string>()
  for await (const entry of zip.eachEntry()) {
    texts.set(entry.fileName, await text(await zip.openReadStreamPromise(entry)))
  }
  const sheet = texts.get('xl/worksheets/sheet1.xml') ?? ''
  const style = /<col [^>]*style="(\d+)"/.exec(sheet)?.[1]
  const formats = [...(texts.get('xl/styles.xml') ?? '').matchAll(/<xf ([^>]*)>/g)].map(match => match[1])
  const textFormat = /numFmtId="(\d+)" formatCode="@"/.exec(texts.get('xl/styles.xml') ?? '')?.[1]
  expect(formats[Number(style)]).toContain(`numFmtId="${textFormat}"`)
  return {
    header: [...(texts.get('xl/sharedStrings.xml') ?? '').matchAll(/<t>([^<]*)</g)].map(match => match[1]),
    isFrozen: sheet.includes('ySplit="1"') && sheet.includes('state="frozen"'),
    textColumns: [...sheet.matchAll(/<col style="\d+" /g)].length,
  }
}

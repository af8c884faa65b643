import { afterAll, beforeAll, expect, test } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import { signIn } from '../../../test/harness/console.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const csv = { 'content-type': 'text/csv' }
const xlsx = { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' }
const sheet = { header: ['email', 'phone'], rows: [{ row: 4, cells: ['c@example.com', '007'] }] }

async function readRows(rows: string, raw: string | Buffer, headers: Record<string, string> = csv) {
  const clerk = await signIn(harness, { roles: ['payroll'] })
  return await clerk.call('POST', `/console/v1/sheet-rows?rows=${rows}`, { raw, headers })
}

test('rows of a CSV file are read as the service reads them, by the row numbers in errors', async () => {
  const text = 'email;phone\na@example.com;1\n\n"c@example.com";007\n'
  expect((await readRows('4,99', text)).body).toEqual(sheet)
})

test('rows of a workbook are read the same, and keep their leading zeros', async () => {
  const text = (value: string) => ({ type: String, value })
  const rows = [
    ['email', 'phone'],
    ['a@example.com', '1'],
    ['b@example.com', '2'],
    ['c@example.com', '007'],
  ]
  const file = await writeExcelFile(rows.map(row => row.map(text)) as never).toBuffer()
  expect((await readRows('4', file, xlsx)).body).toEqual(sheet)
})

test('the readable part of a broken file is shown, with long cells cut short', async () => {
  const long = 'x'.repeat(300)
  const { body } = await readRows('2', `email,phone\n${long},1\n"never closed,1\n`)
  expect(body.header).toEqual(['email', 'phone'])
  expect(body.rows[0]?.cells[0] ?? '').toMatch(/^x{99}…$/)
})

test('only row numbers are accepted, and only from users who may upload files', async () => {
  for (const rows of ['', '0', '2,', '1-3', '1'.repeat(9)])
    expect((await readRows(rows, 'email\na\n')).body.issues[0].code, rows).toBe('QueryValidation')
  const viewer = await signIn(harness, { roles: ['viewer'] })
  const asked = { raw: 'email\na\n', headers: csv }
  expect((await viewer.call('POST', '/console/v1/sheet-rows?rows=2', asked)).status).toBe(403)
})

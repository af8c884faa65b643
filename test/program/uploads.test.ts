import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { midmonth, newDatabase, type Service, start, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })

const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-uploads-'))
afterAll(async () => {
  await tidyUp()
  rmSync(folder, { recursive: true })
})

const header = 'email,first_name,last_name,phone,tier\n'
const large = header + 'sam.okafor@example.com,Sam,Okafor,+447700900123,Bronze\n'.repeat(100_000)
const inForm = (text: string) => {
  const form = new FormData()
  form.append('file', new File([text], 'members.csv', { type: 'text/csv' }))
  return form
}

test('every upload that does not fit into the temporary folder gets a 503 and leaves nothing behind', async () => {
  const settings = await newDatabase({ hasDemo: true })
  // Files are limited to 1 MiB (2 MiB in some shells), so a write fails part-way as on a full disk, without root.
  const service = await start({ ...settings, TMPDIR: folder }, [], { limits: 'ulimit -f 2048' })
  const { stdout } = await midmonth(['operator', 'key', 'create', 'A test', '--json'], settings)
  const operatorKey = /mmoperator_\w+/.exec(stdout)?.[0] ?? ''
  const send = async (
    route: string,
    body: string | FormData,
    headers: Record<string, string> = {},
    key = service.key,
  ) => {
    const method = route.includes('jobs/csv') ? 'PUT' : 'POST'
    const type: Record<string, string> = typeof body === 'string' ? { 'content-type': 'text/csv' } : {}
    return await fetch(service.address + route, { method, headers: { 'x-api-key': key, ...type, ...headers }, body })
  }
  const bytes = { 'content-type': 'application/octet-stream' }
  const xlsx = { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' }
  const key = { 'idempotency-key': 'of a file that did not fit' }
  const uploads = {
    'a member import': () => send('/v2/members/jobs/csv', large, key),
    'a member import as a form': () => send('/v1/members/jobs/csv', inForm(large)),
    'a member import from Excel': () => send('/v1/members/jobs/csv', large, xlsx),
    'a pay run': () => send('/console/v1/pay-run-files', large),
    'a settlement': () => send('/v1/pay/cycles/pc_123/settlement', large),
    'the preview of a settlement': () => send('/console/v1/pay-cycles/pc_123/settlement-files', large),
    'rows of a sheet': () => send('/console/v1/sheet-rows?rows=1', large),
    'a bank file': () => send('/operator/v1/rails/bank/files?name=camt.xml', large, bytes, operatorKey),
  }
  const before = await rows(settings)
  for (const [name, upload] of Object.entries(uploads)) {
    const answer = await upload()
    expect([answer.status, answer.headers.get('retry-after')], `${name}: ${await answer.text()}`).toEqual([503, '60'])
  }
  await expect.poll(service.log).toContain('EFBIG')
  await vi.waitFor(() => expect(openUploads(service)).toEqual([]), { timeout: 15_000 })
  expect(readdirSync(folder)).toEqual([])
  expect(await rows(settings)).toEqual(before)

  // The idempotency key of the refused file is still free.
  const small = await send('/v2/members/jobs/csv', `${header}zoe@example.com,Zoe,Ng,+447700900123,Bronze\n`, key)
  expect(small.status, await small.text()).toBe(202)
})

/** Counts the open upload files of the service, which are unlinked. */
function openUploads({ pid }: Service): string[] {
  return readdirSync(`/proc/${pid}/fd`)
    .map(fd => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`)
      } catch {
        // The file has been closed in the meantime.
        return ''
      }
    })
    .filter(file => file.startsWith(folder))
}

async function rows(settings: { DATABASE_URL: string }) {
  return await tamper(
    settings,
    `select (select count(*) from members) as members, (select count(*) from member_imports) as jobs,
            (select count(*) from member_import_rows) as rows, (select count(*) from bank_files) as files,
            (select count(*) from idempotency_keys) as keys`,
  )
}

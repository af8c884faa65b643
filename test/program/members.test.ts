import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { createKey, scopes } from '../../src/partners/api-keys.ts'
import { createPartner, type PartnerSettings } from '../../src/partners/partners.ts'
import * as payCycles from '../../src/pay-cycles/pay-cycles.ts'
import { setTier } from '../../src/tiers/tiers.ts'
import { silver } from '../harness/samples.ts'
import { type Environment, get, midmonth, newDatabase, newDataDir, type Served, serve, tidyUp } from './program.ts'
import { closedAddress, closeServers, serveHere, startProxy } from './proxy.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 180_000 })

let database: { DATABASE_URL: string }
let service: Served
beforeAll(async () => {
  database = await newDatabase({ hasDemo: true })
  service = await serve(database)
})
afterAll(tidyUp)

afterEach(async () => {
  closeTerminals()
  await closeServers()
})

const header = 'email,first_name,last_name,phone,tier,worker_id'
const row = (name: string) => `${name}@example.com,${name},Okafor,+447700900123,Silver,00${name}`
const list = (...names: string[]) => [header, ...names.map(row), ''].join('\r\n')

test('without a terminal, offboarding needs --yes, and the result is written next to the file', async () => {
  const { settings, folder } = await newPartner({ offboardReviewPercent: 100 })
  const members = (...args: string[]) => midmonth(['members', ...args], settings)
  const first = fileIn(folder, 'first.csv', list('ann', 'ben', 'cem'))
  expect(await members('import', first)).toMatchObject({ code: 0 })

  const second = fileIn(folder, 'second.csv', list('ann', 'dee').replace('dee,', '=dee,'))
  const refused = await members('import', second)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('2 of 3 members would be offboarded') })
  expect(refused.stderr).toMatch(/^midmonth: .*Nothing was imported/)
  expect(await emailsOf(settings)).toEqual(['cem@example.com', 'ben@example.com', 'ann@example.com'])

  const done = await members('import', second, '--yes')
  expect({ ...done, stdout: linesOf(done.stdout) }).toMatchObject({
    code: 0,
    stdout: [
      'invite  update  reinstate  offboard  unchanged',
      '1       0       0          2         1',
      expect.stringMatching(/^Started job maj_/),
      'invited  updated  reinstated  offboarded  unchanged  failed',
      '1        0        0           2           1          0',
      `Results by row: ${folder}/second.result.csv`,
    ],
  })
  expect(await emailsOf(settings)).toEqual(['dee@example.com', 'ann@example.com'])
  const result = linesOf(readFileSync(`${folder}/second.result.csv`, 'utf8')).map(withoutIds)
  expect(result).toEqual([
    `\ufeffrow,action,outcome,member_id,message,${header}`,
    `2,Unchanged,Done,mem_,,${row('ann').replace('+', "'+")}`,
    `3,Invite,Done,mem_,,${row('dee').replace('dee,', "'=dee,").replace('+', "'+")}`,
    ',Offboard,Done,mem_,ben Okafor (ben@example.com) is not in the file,,,,,,',
    ',Offboard,Done,mem_,cem Okafor (cem@example.com) is not in the file,,,,,,',
  ])
  expect(readFileSync(second, 'utf8')).toContain('=dee')

  // Importing the result file by mistake must not reinstate the members listed as offboarded.
  const mistaken = await members('import', `${folder}/second.result.csv`, '--yes')
  expect(mistaken).toMatchObject({ code: 1, stderr: expect.stringContaining('2 rows have errors') })
})

test('a terminal lists the members to offboard and accepts only yes, and a file changed in the meantime is not sent', async () => {
  const { settings, folder } = await newPartner({ offboardReviewPercent: 100 })
  await midmonth(['members', 'import', fileIn(folder, 'all.csv', list('ann', 'ben', 'cem'))], settings)
  const file = fileIn(folder, 'some.csv', list('ann'))

  const no = inTerminal(['members', 'import', file], settings)
  await no.says('Type yes to continue')
  expect(no.screen()).toMatch(/2 of 3 members would be offboarded[\s\S]*mem_\w+ +ben@example.com[\s\S]*cem@example.com/)
  no.type('y')
  expect(await no.ended).toBe(1)
  expect(no.screen()).toContain('Nothing was imported')

  const changed = inTerminal(['members', 'import', file], settings)
  await changed.says('Type yes to continue')
  writeFileSync(file, list())
  changed.type('yes')
  expect(await changed.ended).toBe(1)
  expect(changed.screen()).toContain('has changed since it was checked')
  expect((await jobsOf(settings)).length).toBe(1)

  writeFileSync(file, list('ann'))
  const yes = inTerminal(['members', 'import', file], settings)
  await yes.says('Type yes to continue')
  yes.type('yes')
  expect(await yes.ended).toBe(0)
  expect(yes.screen()).toContain('2 of 2')
})

test('one confirmation also covers the review, but not more members than were confirmed', async () => {
  const { settings, folder } = await newPartner()
  await midmonth(['members', 'import', fileIn(folder, 'all.csv', list('ann', 'ben', 'cem'))], settings)
  const file = fileIn(folder, 'some.csv', list('ann'))
  const terminal = inTerminal(['members', 'import', file], settings)
  await terminal.says('Type yes to continue')
  expect(terminal.screen()).toContain('larger share of the members than the partner allows')
  await fetch(`${service.address}/v1/members`, {
    method: 'POST',
    headers: { 'x-api-key': settings.MIDMONTH_API_KEY ?? '', 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'new@example.com', firstName: 'New', lastName: 'Okafor', tier: 'Silver' }),
  })
  terminal.type('yes')
  await terminal.says('Approve it?')
  expect(terminal.screen()).toContain('The import would now offboard 3 of 4 members')
  terminal.type('no')
  expect(await terminal.ended).toBe(1)
  expect((await jobsOf(settings)).map(job => job.progress.type)).toEqual(['Rejected', 'Completed'])

  const again = inTerminal(['members', 'import', file], settings)
  await again.says('Type yes to continue')
  again.type('yes')
  expect(await again.ended).toBe(0)
  expect(await emailsOf(settings)).toEqual(['ann@example.com'])
})

test('an import queued behind a job in review names that job, and both can be approved or rejected', async () => {
  const { settings, folder } = await newPartner()
  await midmonth(['members', 'import', fileIn(folder, 'all.csv', list('ann', 'ben', 'cem'))], settings)
  const some = fileIn(folder, 'some.csv', list('ann'))
  for (const [verb, status] of [
    ['reject', 'Rejected'],
    ['approve', 'Completed'],
  ] as const) {
    const { jobId } = await upload(settings, list('ann'))
    const refused = await midmonth(['members', 'import', some, '--yes'], settings)
    const [, queuedId = ''] = /Started job (maj_\w+)/.exec(refused.stdout) ?? []
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain(`Job ${queuedId} is queued behind ${jobId}, which is waiting for a review`)
    expect(refused.stderr).toContain(`midmonth members approve ${jobId} or midmonth members reject ${jobId}`)
    const rejected = await midmonth(['members', 'reject', queuedId, '--json'], settings)
    expect(JSON.parse(rejected.stdout).status).toBe('Rejected')
    const { code, stdout } = await midmonth(['members', verb, jobId, '--json'], settings)
    expect({ code, status: JSON.parse(stdout).status }).toEqual({ code: 0, status })
  }
})

test('the result file shows each error next to its row, and can be corrected and imported', async () => {
  const { settings, folder } = await newPartner()
  const invalidRows = Array.from(
    { length: 25 },
    (_, n) => `m${n}@example.com;Sam;Okafor;;${n === 24 ? 'Silver' : 'Tin'};00${n}`,
  )
  const file = fileIn(folder, 'march.csv', [header.replaceAll(',', ';'), ...invalidRows, ''].join('\n'))
  const refused = await midmonth(['members', 'import', file, '--dry-run'], settings)
  expect(refused).toMatchObject({ code: 1, stderr: 'midmonth: 24 rows have errors; nothing was imported\n' })
  const shown = linesOf(refused.stdout)
  expect(shown[0]).toBe('row  error')
  expect(shown[20]).toMatch(/^21 {3}/)
  expect(shown.slice(21)).toEqual(['and 4 more rows, in the file below', `Errors by row: ${folder}/march.result.csv`])

  const result = path.join(folder, 'march.result.csv')
  const resultLines = linesOf(readFileSync(result, 'utf8'))
  expect(resultLines[24]).toMatch(/^25;;Error;;"There is no such tier; .+";m23@example.com;Sam;Okafor;;Tin;0023$/)
  expect(resultLines[25]).toBe('26;;;;;m24@example.com;Sam;Okafor;;Silver;0024')
  // Another dry run does not overwrite the result file.
  const asJson = await midmonth(['members', 'import', file, '--dry-run', '--json'], settings)
  expect(JSON.parse(asJson.stdout)).toMatchObject({ more: null, result: `${folder}/march.result-2.csv` })

  writeFileSync(result, readFileSync(result, 'utf8').replaceAll(';Tin;', ';Silver;'))
  const corrected = await midmonth(['members', 'import', result, '--json'], settings)
  expect(JSON.parse(corrected.stdout)).toMatchObject({ done: { invited: 25, failed: 0 } })
})

test('importing an export has no effect, and an export never overwrites a file', async () => {
  const settings = { MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
  const folder = newFolder()
  const file = path.join(folder, 'members.csv')
  const exported = await midmonth(['members', 'export', file], settings)
  expect(exported).toMatchObject({ code: 0, stdout: `Exported 24 members to ${file}.\n`, stderr: '' })
  for (const args of [[], ['--v1']]) {
    const again = await midmonth(['members', 'import', file, ...args], settings)
    expect({ code: again.code, lines: linesOf(again.stdout).slice(1) }).toEqual({
      code: 0,
      lines: ['0       0       0          0         24', 'Nothing to do.'],
    })
  }
  const before = readFileSync(file, 'utf8')
  expect(await midmonth(['members', 'export', file], settings)).toMatchObject({ code: 1, stdout: '' })
  expect(readFileSync(file, 'utf8')).toBe(before)
  expect(await midmonth(['members', 'export'], settings)).toMatchObject({ code: 0, stdout: before.slice(1) })
})

test('a lost response does not create a second job, and a broken export leaves no file', async () => {
  const { settings, folder } = await newPartner({ requestsPerSecond: 1, requestsBurst: 4 })
  let lost = 0
  const MIDMONTH_URL = await startProxy(service.address, (incoming, outgoing, answer) => {
    const isUpload = incoming.method === 'PUT' && !incoming.url?.includes('dryRun')
    if (incoming.headers.accept === 'text/csv' && incoming.url?.startsWith('/v1/members?')) {
      answer.once('data', chunk => {
        outgoing.write(chunk.subarray(0, 20), () => outgoing.destroy())
      })
    } else if (isUpload && lost++ === 0) answer.resume().once('end', () => outgoing.destroy())
    else answer.pipe(outgoing)
  })
  const through = { ...settings, MIDMONTH_URL }
  // The rate limit is exceeded as well, so the command has to honour retry-after.
  const { code } = await midmonth(['members', 'import', fileIn(folder, 'all.csv', list('ann'))], through)
  expect({ code, uploads: lost, jobs: (await jobsOf(settings)).length }).toEqual({ code: 0, uploads: 2, jobs: 1 })

  const halved = await midmonth(['members', 'export', path.join(folder, 'half.csv')], through)
  expect(halved).toMatchObject({ code: 4, stdout: '', stderr: expect.stringContaining('The connection broke') })
  expect(readdirSync(folder).sort()).toEqual(['all.csv', 'all.result.csv'])
})

test('an import that cannot run says why, without showing the key', async () => {
  const { settings, folder } = await newPartner()
  const file = fileIn(folder, 'list.csv', list('ann'))
  const readOnly = await newPartner({}, ['members:read'])
  const closed = await closedAddress()
  const elsewhere = await serveHere((_request, response) => response.end('hello'))
  const cases: [string[], Environment, number, RegExp][] = [
    [[file], { MIDMONTH_API_KEY: '' }, 2, /No API key: set MIDMONTH_API_KEY/],
    [[`${folder}/list.xls`], {}, 2, /Use a \.csv, \.txt, \.tsv or \.xlsx file/],
    [[`${folder}/none.csv`], {}, 1, /There is no file .*none\.csv$/],
    [[file, '--url', closed], {}, 4, /Cannot reach Midmonth at http:\/\/127\.0\.0\.1:\d+: connection refused/],
    [[file, '--url', elsewhere], {}, 1, /is not a Midmonth API; set the right address with --url or MIDMONTH_URL$/],
    [[file, '--key', `${settings.MIDMONTH_API_KEY}x`], {}, 1, /set the key with MIDMONTH_API_KEY or --key$/],
    [[file], readOnly.settings, 1, /The API key lacks the scope members:write$/],
    [[fileIn(folder, 'empty.csv', '')], {}, 1, /The file is empty$/],
  ]
  const outcomes = await Promise.all(
    cases.map(([args, changed]) => midmonth(['members', 'import', ...args], { ...settings, ...changed })),
  )
  for (const [index, { code, stdout, stderr }] of outcomes.entries()) {
    const [, , expected = 0, sentence = /^/] = cases[index] ?? []
    expect({ code, stdout, sentence: stderr.split('\n', 1)[0] }).toEqual({
      ...{ code: expected, stdout: '' },
      sentence: expect.stringMatching(sentence),
    })
    expect(stderr).not.toContain(settings.MIDMONTH_API_KEY)
  }
})

type Settings = { MIDMONTH_URL: string; MIDMONTH_API_KEY: string }

/** Creates a partner. @returns the settings for its commands, and a folder for its files */
async function newPartner(
  settings: PartnerSettings = {},
  granted: readonly (typeof scopes)[number][] = scopes,
): Promise<{ settings: Settings; folder: string }> {
  const log = pino({ level: 'silent' })
  const { db, close } = connect(database.DATABASE_URL, { log, connectionsMax: 1 })
  const now = new Date()
  const { secret } = await db.transaction().execute(async tx => {
    const partner = await createPartner(tx, { name: 'Acme', settings: { autoActivate: true, ...settings }, now })
    await payCycles.openFirst(tx, { partner, now })
    await setTier(tx, { partnerId: partner.id, name: 'Silver', currency: 'GBP', terms: silver, now })
    return await createKey(tx, { partnerId: partner.id, mode: 'sandbox', scopes: granted, expiresAt: null, now })
  })
  await close()
  return { settings: { MIDMONTH_URL: service.address, MIDMONTH_API_KEY: secret }, folder: newFolder() }
}

function newFolder(): string {
  const folder = newDataDir()
  mkdirSync(folder)
  return folder
}

function fileIn(folder: string, name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, text)
  return file
}

function linesOf(text: string): string[] {
  return text.split(/\r?\n/).slice(0, -1)
}

function withoutIds(line: string): string {
  return line.replace(/mem_\w+/, 'mem_')
}

async function emailsOf({ MIDMONTH_API_KEY: key }: Settings): Promise<string[]> {
  const answer = await get(service, { key, path: '/v1/members?statuses=active' })
  return ((await answer.json()) as { members: { email: string }[] }).members.map(member => member.email)
}

async function jobsOf({ MIDMONTH_API_KEY: key }: Settings): Promise<{ id: string; progress: { type: string } }[]> {
  const answer = await vi.waitFor(
    async () => {
      const response = await get(service, { key, path: '/v1/members/jobs' })
      assert.equal(response.status, 200)
      return response
    },
    { timeout: 15_000 },
  )
  return ((await answer.json()) as { jobs: { id: string; progress: { type: string } }[] }).jobs
}

async function upload({ MIDMONTH_API_KEY: key }: Settings, body: string): Promise<{ jobId: string }> {
  const response = await fetch(`${service.address}/v2/members/jobs/csv`, {
    method: 'PUT',
    headers: { 'x-api-key': key, 'content-type': 'text/csv' },
    body,
  })
  expect(response.status).toBe(202)
  return (await response.json()) as { jobId: string }
}

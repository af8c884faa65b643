import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Finding } from '../../src/diagnosis/finding.ts'
import { keySettings } from '../harness/installation-key.ts'
import {
  type Environment,
  midmonth,
  newDatabase,
  newDataDir,
  runCommandsHere,
  serve,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const sepa = {
  name: 'sepa',
  type: 'sepa-file',
  currency: 'EUR',
  debtors: { default: { name: 'Acme GmbH', iban: 'DE75512108001245126199' } },
  cutOff: '15:00',
  timeZone: 'Europe/Berlin',
}

let folder: string
let database: Awaited<ReturnType<typeof newDatabase>>
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-doctor-'))
  database = await newDatabase()
})
afterAll(async () => {
  await tidyUp()
  rmSync(folder, { recursive: true })
})

function railsFile(name: string, content: unknown): string {
  const file = path.join(folder, name)
  writeFileSync(file, JSON.stringify(content))
  return file
}

async function diagnosis(settings: Environment): Promise<{ code: number | null; findings: Finding[]; state: string }> {
  const { code, stdout, stderr } = await midmonth(['doctor', '--json'], settings)
  expect(stderr).toBe('')
  return { code, ...JSON.parse(stdout) }
}

/** The doctor's findings for one check, as `level: sentence`. */
async function said(check: string, settings: Environment): Promise<string[]> {
  const { findings } = await diagnosis(settings)
  return findings.filter(each => each.check === check).map(({ level, sentence }) => `${level}: ${sentence}`)
}

async function json(args: string[], settings: Environment) {
  const { code, stdout, stderr } = await midmonth([...args, '--json'], settings)
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return JSON.parse(stdout)
}

test('the doctor names each missing step with its command, and is satisfied once the step is done', async () => {
  const bare = { ...database, MIDMONTH_MODE: 'live', MIDMONTH_PUBLIC_URL: 'https://pay.example.com' }
  const first = await diagnosis(bare)
  expect(first).toMatchObject({ code: 1, state: 'notReady' })
  const missing = first.findings.filter(({ level }) => level === 'missing')
  expect(missing.map(({ check, command }) => [check, command])).toEqual([
    ['rails', 'export MIDMONTH_RAILS=/etc/midmonth/rails.json'],
    ['partners', 'midmonth partner create NAME'],
    ['workers', 'midmonth start --worker'],
  ])

  const settings = { ...bare, MIDMONTH_RAILS: railsFile('rails.json', { rails: [sepa] }) }
  expect(await said('rails', settings)).toEqual(['ok: EUR by sepa (pain.001.001.09, carried by hand)'])
  expect(await said('calendars', settings)).toEqual(['ok: The rail sepa knows the banking days until 2099-12-31'])
  expect(await said('approval', settings)).toEqual([
    'hint: The rail sepa has no limits for automatic approval, so two people approve every batch',
  ])
  const approval = { automatic: { paymentMax: 50_000, batchMax: 2_000_000, dayMax: 5_000_000 } }
  const limited = { ...bare, MIDMONTH_RAILS: railsFile('limited.json', { rails: [{ ...sepa, approval }] }) }
  expect(await said('approval', limited)).toEqual(['ok: Batches of sepa up to 20000.00 EUR need no person'])

  const { id } = await json(['partner', 'create', 'Acme Couriers'], settings)
  const acme = `Acme Couriers (${id})`
  expect(await said('partners', settings)).toEqual([`missing: ${acme} has no tier, so it cannot have members`])
  const limits = ['--fee', '50', '--lower-limit', '1000', '--upper-limit', '20000']
  await json(['tier', 'set', id, 'Silver', '--currency', 'EUR', ...limits], settings)
  expect(await said('partners', settings)).toEqual(['ok: 1 partner with tiers, none paused'])
  await json(['partner', 'pause', id, '--reason', 'fire drill'], settings)
  expect(await said('partners', settings)).toEqual([`warning: ${acme} is paused, so its members cannot withdraw`])
  await json(['partner', 'resume', id], settings)

  expect(await said('currencies', settings)).toEqual(['ok: Every currency that a partner has a tier in has a rail'])
  expect(await said('accounts', settings)).toEqual([`ok: EUR of ${acme} is paid by Acme GmbH, account …6199`])
  expect(await said('currencies', bare)).toEqual([`missing: ${acme} has a tier in EUR, but no rail pays EUR`])

  expect(await said('float', settings)).toEqual([
    `missing: ${acme} has 0.00 EUR free: transfer money to the account that pays, then record it`,
    `warning: ${acme} has no floor in EUR, so withdrawals continue when the float is used up`,
  ])
  await json(['float', 'fund', id, 'EUR', '10000', '--reference', 'opening'], settings)
  await json(['float', 'floor', id, 'EUR', '20000'], settings)
  expect(await said('float', settings)).toEqual([
    `missing: ${acme} has 100.00 EUR free, less than its floor of 200.00 EUR, so withdrawals are refused`,
  ])
  await json(['float', 'floor', id, 'EUR', '5000'], settings)
  expect(await said('float', settings)).toEqual(['ok: Every float has free money and a floor'])

  expect(await said('keys', settings)).toEqual([`missing: ${acme} has no valid live API key`])
  const short = await json(['key', 'create', id, '--expires-in-days', '10'], settings)
  expect(await said('keys', settings)).toEqual([
    expect.stringMatching(/^warning: The key mm_live_\w+… of Acme Couriers \(par_\w+\) expires 20/),
  ])
  await json(['key', 'revoke', short.id], settings)
  expect(await said('keys', settings)).toEqual([`missing: ${acme} has no valid live API key`])
  const { secret: key } = await json(['key', 'create', id], settings)
  expect(await said('keys', settings)).toEqual(['ok: Every partner has an API key that is valid for 30 days or more'])

  expect(await said('webhooks', settings)).toEqual([expect.stringContaining(`hint: ${acme} has no webhook endpoint`)])
  const service = await serve(settings)
  await vi.waitFor(async () => expect(await said('workers', settings)).toEqual(['ok: 1 worker running']), {
    timeout: 45_000,
  })
  const api = async (method: string, at: string, body: unknown) => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() }
    const response = await fetch(service.address + at, { method, headers, body: JSON.stringify(body) })
    expect(response.ok, await response.clone().text()).toBe(true)
    return response.headers.get('location')?.split('/').at(-1)
  }
  const url = 'https://hooks.example.com/midmonth'
  const webhookId = await api('POST', '/v1/webhooks', { url, types: ['*'], enabled: false })
  expect(await said('webhooks', settings)).toEqual([
    `warning: The webhook endpoint ${webhookId} of ${acme} is disabled (requested); the partner can enable it again`,
  ])
  await api('PATCH', `/v1/webhooks/${webhookId}`, { enabled: true })
  expect(await said('webhooks', settings)).toEqual(['ok: Every partner has webhook endpoints, and all work'])

  expect(await said('TLS', { ...settings, MIDMONTH_PUBLIC_URL: '' })).toEqual([
    expect.stringContaining('missing: MIDMONTH_PUBLIC_URL is not set'),
  ])
  expect(await said('operators', settings)).toEqual([expect.stringContaining('warning: No operator can sign in')])
  for (const name of ['ada', 'bob'])
    await tamper(
      database,
      `insert into users (id, email, name, is_operator, created_at)
       values ('usr_${name}', '${name}@example.com', '${name}', true, now())`,
    )

  expect(await said('backups', settings)).toEqual(['warning: No backup has been recorded'])
  const backup = async (at: Date) => await json(['backup', 'recorded', '--at', at.toISOString()], settings)
  await backup(new Date(Date.now() - 27 * 3_600_000))
  expect(await said('backups', settings)).toEqual([
    expect.stringMatching(/^warning: The last recorded backup was taken at 20/),
  ])
  const status = async () => (await midmonth(['status'], settings)).stdout
  expect(await status()).toMatch(
    /^last backup +27 h ago$[\s\S]*^! The last recorded backup .*midmonth backup recorded after each backup$/m,
  )
  const { at } = await json(['backup', 'recorded'], settings)
  expect(await said('backups', settings)).toEqual([`ok: The last backup was taken at ${at}`])
  expect(await status()).not.toContain('recorded backup')
  expect((await json(['audit', '--action', 'backup.record'], settings)).entries[0]).toMatchObject({
    resourceId: at,
    action: 'backup.record',
  })
  expect((await midmonth(['backup', 'recorded', '--at', '2999-01-01T00:00:00Z'], settings)).code).toBe(1)
  expect((await midmonth(['backup', 'recorded', '--at', 'yesterday'], settings)).code).toBe(2)

  const done = await midmonth(['doctor'], settings)
  expect(done).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^Nothing is missing: this installation can pay \(0 warnings, 5 hints\)\.$/m),
  })
  expect(done.stdout).not.toMatch(/^(missing|warning)/m)
  await service.stop()
  await tamper(
    database,
    `insert into installation_audit_log (id, at, actor_kind, actor, action, resource_id, details, address)
     values ('aud_01kah4pzc5e4r8v2m6t0x9y3bd', now() - interval '92 days', 'cli', 'a', 'user.sign_in', 'a', '{}', '192.0.2.1')`,
  )
  const overdue =
    /! Data is past its retention: the addresses in the audit log .* \(kept for 90 days\); a worker removes it/
  expect([await said('retention', settings), await status()].join()).toMatch(overdue)
  const stopped = await midmonth(['doctor'], settings)
  expect(stopped.code).toBe(1)
  expect(stopped.stdout).toMatch(
    /^missing {2}workers {4}No worker is running, so nothing is paid\n {20}\$ midmonth start --worker$/m,
  )
  expect(stopped.stdout).toMatch(/^1 thing is missing before live mode can pay/m)
})

test('every printed remedy fixes its finding', async () => {
  const empty = await newDatabase({ migrated: false })
  const faulty = railsFile('remedied.json', { rails: [{ ...sepa, cutOff: '25:00' }] })
  const fixedFile = railsFile('fixed.json', { rails: [{ ...sepa }] })
  const here = await runCommandsHere()
  let settings: Environment = { ...keySettings, ...(await newDatabase()), DATABASE_OWNER_URL: empty.DATABASE_OWNER_URL }
  const filled: [RegExp, string][] = [
    [/postgres:\/\/midmonth_app:PASSWORD@HOST\/(NEW_DATABASE|midmonth)/, `'${empty.DATABASE_URL}'`],
    [/\/etc\/midmonth\/rails.json/, `'${faulty}'`],
    [/https:\/\/HOST/, 'https://pay.example.com'],
    [
      /tier set (\S+) NAME --currency CURRENCY --fee AMOUNT --lower-limit AMOUNT --upper-limit AMOUNT/,
      'tier set $1 Silver --currency EUR --fee 50 --lower-limit 1000 --upper-limit 20000 --yes',
    ],
    [/partner create NAME/, 'partner create "Acme Couriers"'],
    [/AMOUNT --reference REFERENCE/, '50000 --reference opening'],
    [/AMOUNT/, '20000'],
    [/EMAIL/, 'ada@example.com'],
  ]
  const remedy = async ({ command }: Finding) => {
    const ready = filled.reduce((text, [pattern, value]) => text.replace(pattern, value), command ?? '')
    const script = `exec </dev/null\n${here.midmonth}\npg_dump() { :; }\nEDITOR='cp ${fixedFile}'\n${ready} >&2 || exit 1\nenv -0`
    const { stdout } = await promisify(execFile)('bash', ['-c', script], {
      env: { PATH: process.env.PATH, ...settings },
    })
    const lines = stdout.split('\0').filter(line => /^(MIDMONTH_|DATABASE_)/.test(line))
    settings = Object.fromEntries(lines.map(line => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]))
  }
  const isOpen = ({ level, command }: Finding) => (level === 'missing' || level === 'warning') && command !== null
  const fixedChecks: string[] = []
  try {
    // More iterations than faults; a remedy that leads back to an earlier fault fails below.
    for (let turn = 0; turn < 20; turn++) {
      const found = (await diagnosis(settings)).findings.filter(isOpen)
      // These remedies do not end: a worker runs until it is stopped, and people accept their invitations.
      const next = found.find(({ check }) => check !== 'workers' && check !== 'operators')
      if (next === undefined) break
      await remedy(next)
      const after = (await diagnosis(settings)).findings
      expect(after.filter(isOpen), next.command ?? '').not.toContainEqual(next)
      fixedChecks.push(next.check)
    }
    expect(new Set(fixedChecks)).toEqual(
      new Set(['mode', 'TLS', 'rails', 'database', 'partners', 'float', 'keys', 'backups']),
    )
  } finally {
    here.stop()
  }
})

test('a faulty rails file is one finding, and everything else is still checked', async () => {
  const faulty = railsFile('faulty.json', { rails: [{ ...sepa, cutOff: '25:00' }] })
  const { code, findings } = await diagnosis({ ...database, MIDMONTH_MODE: 'live', MIDMONTH_RAILS: faulty })
  expect(code).toBe(1)
  expect(findings).toContainEqual({
    check: 'rails',
    level: 'missing',
    sentence: expect.stringMatching(/MIDMONTH_RAILS \(.+faulty\.json\): .*cutOff must match/),
    command: `\${EDITOR:-vi} '${faulty}'`,
  })
  expect(findings.map(({ check }) => check)).toContain('workers')
  const stray = { default: sepa.debtors.default, par_01m80hdxn9e0dbvh4ctmg88nb7: sepa.debtors.default }
  const strayed = railsFile('stray.json', { rails: [{ ...sepa, debtors: stray }] })
  expect(await said('accounts', { ...database, MIDMONTH_MODE: 'live', MIDMONTH_RAILS: strayed })).toEqual([
    'warning: The rail sepa has an account for par_01m80hdxn9e0dbvh4ctmg88nb7, an unknown partner; the default account pays for all others',
  ])
})

test('the doctor warns about a role that owns the tables', async () => {
  const owned = await newDatabase()
  const owner = { ...owned, DATABASE_URL: owned.DATABASE_OWNER_URL }
  expect(await said('role', owner)).toEqual([expect.stringMatching(/^warning: .+ can change the schema/)])
  expect(await said('role', owned)).toEqual(['ok: The program’s database role has no more rights than it needs'])
  expect(await said('mode', owned)).toEqual([expect.stringMatching(/^missing: MIDMONTH_MODE is sandbox/)])
})

test('the doctor changes nothing: it does not create or migrate a database, or claim its mode', async () => {
  const empty = await newDatabase({ migrated: false })
  const { code, findings } = await diagnosis({ ...empty, MIDMONTH_MODE: 'live' })
  expect(code).toBe(1)
  expect(findings).toContainEqual(
    expect.objectContaining({
      check: 'database',
      level: 'missing',
      sentence: expect.stringMatching(/^The database schema is out of date \(pending: 0001/),
      command: 'midmonth migrate',
    }),
  )
  expect(await tamper(empty, "select 1 from pg_tables where schemaname = 'public'")).toEqual([])
  const unclaimed = await newDatabase()
  await diagnosis({ ...unclaimed, MIDMONTH_MODE: 'live' })
  expect(await tamper(unclaimed, 'select 1 from installation')).toEqual([])
  const dataDir = newDataDir()
  const absent = await diagnosis({ MIDMONTH_MODE: 'live', MIDMONTH_DATA_DIR: dataDir })
  expect(absent.findings.map(({ check }) => check)).toContain('database')
  expect(readdirSync(dataDir, { recursive: true })).toEqual([])
})

test('the doctor reports a database of the other mode', async () => {
  const sandbox = await newDatabase({ hasDemo: true })
  expect(await said('database', { ...sandbox, MIDMONTH_MODE: 'live' })).toEqual([
    expect.stringMatching(/^missing: This is a sandbox database/),
  ])
})

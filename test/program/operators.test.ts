import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test, vi } from 'vitest'
import {
  baseEnvironment,
  type Environment,
  midmonth,
  newDatabase,
  newDataDir,
  serve,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 120_000 })
afterEach(tidyUp)

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const limits = ['--currency', 'GBP', '--lower-limit', '1000', '--upper-limit', '20000']
const fee = ['--fee', '50', '--fee-bps', '100', '--fee-min', '60', '--fee-max', '300', '--per-day', '3']

test('tier set changes only the given terms, and without a terminal needs --yes', async () => {
  const database = await newDatabase()
  const { id } = await json(['partner', 'create', 'Acme'], database)
  await json(['tier', 'set', id, 'Bronze', ...limits, ...fee], database)

  const refused = await midmonth(['tier', 'set', id, 'Bronze', '--upper-limit', '15000'], database)
  expect(refused).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/upper limit +200\.00 GBP +150\.00 GBP +changes\n[\s\S]*Affects 0 members/),
    stderr: expect.stringMatching(/^midmonth: Nothing was changed: .* add --yes\n$/),
  })
  const changed = await json(['tier', 'set', id, 'Bronze', '--upper-limit', '15000', '--yes'], database)
  const terms = {
    ...{ feeFixed: gbp(50), feeBps: 100, feeMin: gbp(60), feeMax: gbp(300), feePayer: 'member' },
    ...{ lowerLimit: gbp(1_000), upperLimit: gbp(20_000), withdrawalsPerDay: 3, withdrawalsPerCycle: null },
    payoutSpeed: null,
  }
  expect(changed).toMatchObject({
    ...{ members: { active: 0, invited: 0 }, openIntents: 0 },
    versions: [
      { version: 2, ...terms, upperLimit: gbp(15_000) },
      { version: 1, ...terms },
    ],
  })
  // Unchanged terms create no version.
  expect(await json(['tier', 'set', id, 'Bronze', '--fee-bps', '100'], database)).toEqual(changed)
  const free = await json(['tier', 'set', id, 'Bronze', '--no-fee', '--no-per-day', '--yes'], database)
  expect(free.versions[0]).toMatchObject({
    ...{ version: 3, feeFixed: gbp(0), feeBps: 0, feeMin: null, feeMax: null },
    ...{ withdrawalsPerDay: null, upperLimit: gbp(15_000) },
  })
  const instant = await json(['tier', 'set', id, 'Bronze', '--payout-speed', 'instant', '--yes'], database)
  expect(instant.versions[0]).toMatchObject({ version: 4, payoutSpeed: 'instant' })
  const byRail = await json(['tier', 'set', id, 'Bronze', '--no-payout-speed', '--yes'], database)
  expect(byRail.versions[0]).toMatchObject({ version: 5, payoutSpeed: null, upperLimit: gbp(15_000) })

  const shown = await json(['tier', 'show', id, 'Bronze'], database)
  expect(shown.versions.map(({ version }: { version: number }) => version)).toEqual([5, 4, 3, 2, 1])
  const [fifth, fourth] = shown.versions
  const first = shown.versions.at(-1)
  expect([fifth.until, fourth.until, fourth.payoutSpeed]).toEqual([null, fifth.since, 'instant'])
  expect(first).toMatchObject(terms)
  expect(await json(['tier', 'list', id], database)).toMatchObject({
    tiers: [{ name: 'Bronze', version: 5, feeFixed: gbp(0) }],
  })
})

test('tier set counts the affected members, and on a terminal accepts only yes', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve(database)
  await intentOf(service)
  await service.stop()
  const [partner] = await json(['partner', 'list'], database)
  const before = (await json(['tier', 'show', partner.id, 'Bronze'], database)).versions
  const set = ['tier', 'set', partner.id, 'Bronze', '--fee', '75']
  const declined = await onTerminal(set, { settings: database, answer: 'no' })
  expect(declined).toMatch(/Affects 8 members \(7 active, 1 invited\)\.\s+1 open intent: the quoted fee stays the same/)
  expect(declined).toMatch(/midmonth: Nothing was changed/)
  expect((await json(['tier', 'show', partner.id, 'Bronze'], database)).versions).toEqual(before)
  await onTerminal(set, { settings: database, answer: 'yes' })
  const { versions } = await json(['tier', 'show', partner.id, 'Bronze'], database)
  expect(versions).toHaveLength(2)
  expect(versions[0]).toMatchObject({ feeFixed: gbp(75), feeBps: 100, feeMin: gbp(50), feeMax: gbp(300) })
})

test('a new tier needs a currency and limits, and its currency cannot change', async () => {
  const database = await newDatabase()
  const { id } = await json(['partner', 'create', 'Acme'], database)
  expect(await midmonth(['tier', 'set', id, 'Silver', '--fee', '1', '--yes'], database)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^midmonth: There is no tier Silver; .* add --currency, --lower-limit/),
  })
  await json(['tier', 'set', id, 'Silver', ...limits], database)
  expect(await midmonth(['tier', 'set', id, 'Silver', '--upper-limit', '10', '--yes'], database)).toMatchObject({
    ...{ code: 1, stdout: '', stderr: 'midmonth: The upper limit must not be below the lower limit\n' },
  })
  expect(await midmonth(['tier', 'set', id, 'Silver', '--currency', 'EUR', '--yes'], database)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('The currency of the tier Silver is GBP and cannot change'),
  })
  expect(await midmonth(['tier', 'show', id, 'Gold'], database)).toMatchObject({
    code: 1,
    stderr: 'midmonth: There is no tier Gold\n',
  })
})

test('the audit log records who changed what, with before and after, and skips commands without an effect', async () => {
  const database = await newDatabase()
  const { id } = await json(['partner', 'create', 'Acme'], database)
  await json(['tier', 'set', id, 'Silver', ...limits], database)
  const { id: keyId, secret } = await json(['key', 'create', id], database)
  for (let repeated = 0; repeated < 2; repeated++) {
    await json(['tier', 'set', id, 'Silver', '--fee', '5', '--yes'], database)
    await json(['partner', 'set', id, '--grace-minutes', '0'], database)
    await json(['partner', 'pause', id, '--reason', 'bank outage'], database)
    await json(['float', 'fund', id, 'GBP', '1000', '--reference', 'transfer 1'], database)
    await json(['float', 'floor', id, 'GBP', '500'], database)
    await json(['key', 'revoke', keyId], database)
  }
  const { entries } = await json(['audit', '--partner', id], database)
  const expected = [
    ['key.revoke', keyId, { key: expect.stringMatching(/^mm_test_.{4}…$/) }],
    ['float.floor', 'GBP', { before: { floor: null }, after: { floor: gbp(500) } }],
    ['float.fund', 'GBP', { amount: gbp(1_000), reference: 'transfer 1', movementId: expect.stringMatching(/^fm_/) }],
    ['partner.pause', id, { reason: 'bank outage' }],
    ['partner.set', id, { before: { graceMinutes: 10 }, after: { graceMinutes: 0 } }],
    ['tier.set', 'Silver', { before: { version: 1, feeFixed: gbp(0) }, after: { version: 2, feeFixed: gbp(5) } }],
    ['key.create', keyId, expect.objectContaining({ expiresAt: null })],
    ['tier.set', 'Silver', { before: null, after: expect.objectContaining({ upperLimit: gbp(20_000) }) }],
    ['partner.create', id, { before: null, after: expect.objectContaining({ name: 'Acme', graceMinutes: 10 }) }],
  ]
  expect(entries.map((each: Record<string, unknown>) => [each.action, each.resourceId, each.details])).toEqual(expected)
  for (const { actorKind, actor } of entries)
    expect([actorKind, actor]).toEqual(['cli', `${userInfo().username}@${hostname()}`])
  expect(JSON.stringify(entries)).not.toContain(secret)

  const page = await json(['audit', '--action', 'tier.set', '--take', '1'], database)
  expect(page).toMatchObject({ hasMore: true, entries: [{ details: { after: { version: 2 } } }] })
  const next = await json(['audit', '--action', 'tier.set', '--before', page.entries[0].id], database)
  expect(next).toMatchObject({ hasMore: false, entries: [{ details: { before: null } }] })

  const shown = await json(['partner', 'show', id], database)
  expect(shown).toMatchObject({
    paused: { since: entries[3].at, by: entries[3].actor, reason: 'bank outage' },
    suspended: null,
    settings: { graceMinutes: 0, timeZone: 'Europe/London' },
    openCycle: { id: expect.stringMatching(/^pc_/) },
    floats: [{ currency: 'GBP', free: gbp(1_000), floor: gbp(500) }],
    keys: { valid: 0, expired: 0, revoked: 1 },
    members: { active: 0, invited: 0, inactive: 0 },
  })
})

test('status has exit codes for scripts and lists everything that needs attention', async () => {
  const unmigrated = await newDatabase({ migrated: false })
  const nowhere = { DATABASE_URL: 'postgres://midmonth:secret@127.0.0.1:1/midmonth' }
  for (const settings of [unmigrated, nowhere]) {
    const { code, stdout, stderr } = await midmonth(['status', '--json'], settings)
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' })
    expect(JSON.parse(stdout)).toEqual({ state: 'cannotTell', reason: expect.any(String) })
    expect(stdout).not.toContain('secret')
  }
  const dataDir = newDataDir()
  expect(await midmonth(['status'], { MIDMONTH_DATA_DIR: dataDir })).toMatchObject({
    code: 2,
    stdout: `! There is no database in ${dataDir} yet: npm start creates one\n`,
  })
  expect(readdirSync(dataDir)).toEqual([])

  const database = await newDatabase({ hasDemo: true })
  expect(await midmonth(['status'], database)).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^! No worker/m),
  })

  const service = await serve(database)
  await vi.waitFor(
    async () =>
      expect(await midmonth(['status'], database)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('All is well.'),
      }),
    { timeout: 60_000, interval: 500 },
  )
  await service.stop()
  const [partner] = await json(['partner', 'list'], database)
  await json(['partner', 'pause', partner.id, '--reason', 'fire drill'], database)
  await json(['float', 'floor', partner.id, 'GBP', '100000000000'], database)
  await tamper(database, "insert into worker_heartbeats values ('gone', 'node-1', 1, now(), now() - interval '1 hour')")
  await tamper(database, "select graphile_worker.add_job('expire-intents', run_at => now() - interval '1 hour')")
  const status = await midmonth(['status', '--json'], database)
  expect(status.code).toBe(1)
  expect(JSON.parse(status.stdout)).toMatchObject({
    state: 'needsAttention',
    database: { schema: 'up to date' },
    lowFloats: [{ partnerId: partner.id, floor: gbp(100_000_000_000) }],
    stopped: [{ id: partner.id, paused: { reason: 'fire drill' } }],
    queue: { due: expect.any(Number), oldestDueAt: expect.any(String) },
    attention: [
      expect.stringContaining('No worker is running (last seen 60 min ago)'),
      expect.stringContaining(`The float of ${partner.id} is low`),
      expect.stringMatching(/has been paused since \S+ by \S+ \(fire drill\)/),
    ],
  })
  // Status would otherwise report on a bank and withdrawals that this installation does not have.
  expect(await midmonth(['status'], { ...database, MIDMONTH_MODE: 'live' })).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^! This is a sandbox database.*set MIDMONTH_MODE=sandbox/),
  })
  const live = await newDatabase()
  const inLive = await midmonth(['status'], { ...live, MIDMONTH_MODE: 'live' })
  expect(inLive.stdout).toMatch(/^! No bank is connected in live mode/m)
})

test('withdrawals, members and jobs can be shown by id alone, with amounts as Money', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve(database)
  const { withdrawalIntentId } = await intentOf(service)
  const headers = { 'x-api-key': service.key, 'content-type': 'application/json' }
  const body = JSON.stringify({ withdrawalIntentId })
  await fetch(`${service.address}/v1/pay/withdrawals/complete`, { method: 'POST', headers, body })
  const csv = 'email,first_name,last_name,phone,tier\r\n'
  const uploaded = await fetch(`${service.address}/v1/members/jobs/csv`, {
    method: 'PUT',
    headers: { 'x-api-key': service.key, 'content-type': 'text/csv' },
    body: csv,
  })
  const { jobId } = (await uploaded.json()) as { jobId: string }
  await service.stop()

  const { withdrawals, hasMore } = await json(
    ['withdrawal', 'list', '--take', '2', '--status', 'held', 'submitted', 'paid'],
    database,
  )
  expect([withdrawals.length, hasMore]).toEqual([2, true])
  const [{ id, memberId, partnerId }] = withdrawals
  const shown = await json(['withdrawal', 'show', id], database)
  expect(shown).toMatchObject({
    ...{ id, memberId, partnerId, withdrawalIntentId, amount: gbp(5_000), netAmount: gbp(4_900), fee: gbp(100) },
    ...{
      employerFee: gbp(0),
      bankAccount: { lastFour: '4958' },
      timeline: [{ status: 'held' }, ...shown.timeline.slice(1)],
      stuck: null,
    },
  })
  expect(JSON.stringify(shown)).not.toContain('66374958')
  expect(await json(['member', 'show', memberId], database)).toMatchObject({
    ...{ id: memberId, partnerId, status: 'active', tier: 'Bronze', canWithdraw: true, refusal: null },
    ...{
      bankAccount: { lastFour: '4958', check: 'valid' },
      withdrawals: expect.arrayContaining([expect.objectContaining({ id })]),
    },
  })
  expect(await json(['member', 'release', memberId], database)).toEqual({ id: memberId, released: false })
  expect(await json(['job', 'list'], database)).toMatchObject({
    hasMore: false,
    jobs: [{ id: jobId, partnerId, kind: 'file', status: 'AwaitingReview', plan: { offboard: 24 } }],
  })
  const unknown = [
    ['withdrawal', 'show', 'w_none'],
    ['withdrawal', 'list', '--partner', 'par_none'],
    ['member', 'show', 'mem_none'],
    ['member', 'release', 'mem_none'],
    ['partner', 'show', 'par_none'],
    ['partner', 'pause', 'par_none'],
    ['tier', 'list', 'par_none'],
    ['tier', 'show', 'par_none', 'Gold'],
    ['float', 'fund', 'par_none', 'GBP', '1'],
    ['audit', '--partner', 'par_none'],
  ]
  const outcomes = await Promise.all(unknown.map(args => midmonth(args, database)))
  for (const [index, { code, stdout, stderr }] of outcomes.entries()) {
    expect({ args: unknown[index], code, stdout }).toEqual({ args: unknown[index], code: 1, stdout: '' })
    expect(stderr).toMatch(/^midmonth: There is no (partner|withdrawal|member) \w+_none; .+\n$/)
  }
})

test('fees are billed, stated and exported by command, and revenue is taken out only if there is any', async () => {
  const database = await newDatabase({ hasDemo: true })
  await (await serve(database)).stop()
  const [{ id: partnerId }] = await json(['partner', 'list'], database)
  const month = new Date().toISOString().slice(0, 7)
  const issued = await json(['invoice', 'issue', partnerId, 'GBP'], database)
  expect(issued).toMatchObject({ partnerId, status: 'open', paid: null })
  expect(issued.lines.every(({ tier }: { tier: string }) => tier === 'Gold')).toBe(true)
  const again = await midmonth(['invoice', 'issue', partnerId, 'GBP'], database)
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('No fees in GBP') })
  const of = [partnerId, issued.id]
  const paid = await json(['invoice', 'pay', ...of, '--reference', 'transfer 7', '--on', `${month}-01`], database)
  expect(paid).toMatchObject({ status: 'paid', paid: { reference: 'transfer 7', on: `${month}-01` } })
  expect((await json(['revenue', 'show', partnerId], database)).revenue).toContainEqual(
    expect.objectContaining({ currency: 'GBP', paid: issued.sum, inFloat: gbp(0) }),
  )
  const taking = ['revenue', 'withdraw', partnerId, 'GBP', '1', '--reference', 'fees']
  const refused = await midmonth(taking, database)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('Only 0.00 GBP of the collected fees') })
  expect(await json(['invoice', 'reopen', ...of, '--note', 'another partner'], database)).toMatchObject({ paid: null })
  expect(await json(['invoice', 'void', ...of, '--note', 'wrong'], database)).toMatchObject({ status: 'void' })
  expect(await json(['invoice', 'list', '--status', 'void'], database)).toMatchObject({ invoices: [{ id: issued.id }] })
  expect(await json(['invoice', 'show', ...of], database)).toMatchObject({ id: issued.id, lines: issued.lines })
  const statement = await midmonth(['revenue', 'statement', partnerId, month], database)
  expect(statement.stdout).toMatch(/^day,tier,withdrawals,/)
  const dayAt = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10)
  const journal = await midmonth(['ledger', 'journal', '--from', dayAt(90), '--to', dayAt(0)], database)
  expect(journal.stdout).toMatch(/^day,partner_id,reference,reason,account,debit,credit,currency\r?\n/)
  expect(journal.stdout).toContain(`,${partnerId},`)
  const entries = await json(['audit', '--partner', partnerId], database)
  expect(JSON.stringify(entries)).toContain('invoice.void')
})

test('with --url, commands about money, records and the service say the same of a running server', async () => {
  const database = await newDatabase({ hasDemo: true })
  const { address } = await serve(database)
  const [{ id: partnerId }] = await json(['partner', 'list'], database)
  const { key } = await json(['operator', 'key', 'create', 'remote'], database)
  const remote = async (args: string[]) =>
    await midmonth([...args, '--url', address], { MIDMONTH_OPERATOR_KEY: key, DATABASE_URL: 'unused' })
  const funding = ['float', 'fund', partnerId, 'GBP', '1000', '--reference', 'from afar']
  expect((await remote(funding)).stdout).toMatch(/^currency +float/)
  expect((await remote(funding)).stdout).toMatch(/^"from afar" was already recorded on /)
  expect((await remote(['backup', 'recorded', '--at', '2026-03-31T02:00:00Z'])).code).toBe(0)
  const today = new Date().toISOString().slice(0, 10)
  for (const args of [
    ['float', 'show', partnerId],
    ['revenue', 'show', partnerId],
    ['revenue', 'statement', partnerId, today.slice(0, 7)],
    ['invoice', 'list'],
    ['job', 'list'],
    ['audit', '--partner', partnerId, '--action', 'float.fund'],
    ['ledger', 'journal', '--from', today, '--to', today],
  ]) {
    const here = await midmonth(args, database)
    expect(here).toMatchObject({ code: 0, stderr: '' })
    expect(await remote(args)).toEqual(here)
  }
  expect(JSON.parse((await remote(['status', '--json'])).stdout)).toMatchObject({
    ...{ mode: 'sandbox', lastBackupAt: '2026-03-31T02:00:00.000Z' },
  })
  expect(await midmonth(['status', '--url', address], { MIDMONTH_OPERATOR_KEY: 'none' })).toMatchObject({
    ...{ code: 2, stdout: expect.stringMatching(/^! /) },
  })
})

test('every command has an example and a --json option, and is in the guide', async () => {
  const pages = ['docs/operations/commands.md', 'docs/reference/cli.md']
  const guide = pages.map(page => readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')).join('\n')
  const commands = await leavesOf([])
  expect(commands.length).toBeGreaterThan(55)
  for (const { path, help } of commands) {
    const command = path.join(' ')
    expect(help, command).toContain(`  midmonth ${command}`)
    expect(guide, command).toContain(`midmonth ${command}`)
    // These commands print a file, the banner, or always JSON.
    if (!['members export', 'start', 'api', 'ledger journal'].includes(command))
      expect(help, command).toMatch(/^ {2}--json /m)
  }
})

/** Finds every command without subcommands through --help. */
async function leavesOf(path: string[]): Promise<{ path: string[]; help: string }[]> {
  const { code, stdout: help } = await midmonth([...path, '--help'], {})
  expect(code).toBe(0)
  const listed = help
    .split(/\n(?=Commands)/)
    .slice(1)
    .map(group => group.split('\n\n')[0] ?? '')
  // The operations of the command api have names with dots.
  const names = [...listed.join('\n').matchAll(/^ {2}([a-z-]+)(?![\w.])/gm)]
    .map(([, name = '']) => name)
    .filter(name => name !== 'help')
  if (names.length === 0) return [{ path, help }]
  return (await Promise.all(names.map(name => leavesOf([...path, name])))).flat()
}

// biome-ignore lint/suspicious/noExplicitAny: the printed JSON is what the tests assert.
async function json(args: string[], settings: Environment): Promise<any> {
  const { code, stdout, stderr } = await midmonth([...args, '--json'], settings)
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout)
}

async function intentOf({ curl }: { curl: string }): Promise<{ withdrawalIntentId: string }> {
  return JSON.parse((await promisify(execFile)('sh', ['-c', curl])).stdout)
}

/** Runs a command interactively: `script` gives it a pseudo-terminal. */
async function onTerminal(
  args: string[],
  { settings, answer }: { settings: Environment; answer: string },
): Promise<string> {
  const program = fileURLToPath(new URL('../../cli/midmonth.ts', import.meta.url))
  const command = [process.execPath, program, ...args].map(each => `'${each}'`).join(' ')
  const child = execFile('script', ['-qec', command, '/dev/null'], { env: { ...baseEnvironment, ...settings } })
  const { promise, resolve } = Promise.withResolvers<string>()
  let screen = ''
  let isAnswered = false
  child.stdout?.on('data', (text: string) => {
    screen += text
    if (isAnswered || !screen.includes('Type yes to continue')) return
    isAnswered = true
    child.stdin?.write(`${answer}\n`)
  })
  child.once('close', () => resolve(screen))
  return await promise
}

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

test('tier set changes only the given terms, needs a currency and limits for a new tier, and without a terminal --yes', async () => {
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
  expect(await json(['tier', 'list', id], database)).toMatchObject({
    tiers: [{ name: 'Bronze', version: 5, feeFixed: gbp(0) }],
  })
  expect(await midmonth(['tier', 'set', id, 'Silver', '--fee', '1', '--yes'], database)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^midmonth: There is no tier Silver; .* add --currency, --lower-limit/),
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

test('a command is in the audit log once it has an effect, with the login of the operator, and without the secret', async () => {
  const database = await newDatabase()
  const { id } = await json(['partner', 'create', 'Acme'], database)
  const { id: keyId, secret } = await json(['key', 'create', id], database)
  for (let repeated = 0; repeated < 2; repeated++) {
    await json(['partner', 'pause', id, '--reason', 'bank outage'], database)
    await json(['key', 'revoke', keyId], database)
  }
  const { entries } = await json(['audit', '--partner', id], database)
  expect(entries.map(({ action }: { action: string }) => action)).toEqual([
    ...['key.revoke', 'partner.pause', 'key.create', 'partner.create'],
  ])
  for (const { actorKind, actor } of entries)
    expect([actorKind, actor]).toEqual(['cli', `${userInfo().username}@${hostname()}`])
  expect(JSON.stringify(entries)).not.toContain(secret)
  const page = await json(['audit', '--action', 'key.create', 'key.revoke', '--take', '1'], database)
  expect(page).toMatchObject({ hasMore: true, entries: [{ action: 'key.revoke' }] })
  const next = await json(['audit', '--action', 'key.create', '--before', page.entries[0].id], database)
  expect(next).toMatchObject({ hasMore: false, entries: [{ action: 'key.create' }] })
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

test('with --url, commands about money, members, records and the service say the same of a running server', async () => {
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
  const [{ id, memberId }] = (await json(['withdrawal', 'list', '--take', '1', '--status', 'held', 'paid'], database))
    .withdrawals
  const [today, month] = [new Date().toISOString().slice(0, 10), new Date().toISOString().slice(0, 7)]
  const { id: invoiceId } = await json(['invoice', 'issue', partnerId, 'GBP'], database)
  const of = [partnerId, invoiceId]
  const paid = await json(['invoice', 'pay', ...of, '--reference', 'transfer 7', '--on', `${month}-01`], database)
  expect(paid).toMatchObject({ status: 'paid', paid: { reference: 'transfer 7', on: `${month}-01` } })
  const outputs = new Map<string, string>()
  for (const args of [
    ['partner', 'show', partnerId],
    ['float', 'show', partnerId],
    ['revenue', 'show', partnerId],
    ['revenue', 'statement', partnerId, month],
    ['invoice', 'list', '--status', 'paid'],
    ['invoice', 'show', ...of],
    ['job', 'list'],
    ['withdrawal', 'list', '--take', '2'],
    ['withdrawal', 'show', id],
    ['member', 'show', memberId],
    ['audit', '--partner', partnerId, '--action', 'float.fund'],
    ['ledger', 'journal', '--from', today, '--to', today],
  ]) {
    const here = await midmonth(args, database)
    expect(here).toMatchObject({ code: 0, stderr: '' })
    expect(await remote(args)).toEqual(here)
    outputs.set(args.slice(0, 2).join(' '), here.stdout)
  }
  expect(outputs.get('revenue statement')).toMatch(/^day,tier,withdrawals,/)
  expect(outputs.get('ledger journal')).toMatch(/^day,partner_id,reference,reason,account,debit,credit,currency\r?\n/)
  for (const command of ['invoice list', 'invoice show']) expect(outputs.get(command)).toContain(invoiceId)
  for (const command of ['withdrawal show', 'member show']) {
    expect(outputs.get(command)).toContain(memberId)
    expect(outputs.get(command)).not.toContain('66374958')
  }
  expect(await json(['member', 'release', memberId], database)).toEqual({ id: memberId, released: false })
  expect(await json(['invoice', 'reopen', ...of, '--note', 'another partner'], database)).toMatchObject({ paid: null })
  expect(await json(['invoice', 'void', ...of, '--note', 'wrong'], database)).toMatchObject({ status: 'void' })
  const taking = ['revenue', 'withdraw', partnerId, 'GBP', '1', '--reference', 'fees']
  expect(await remote(taking)).toMatchObject({ code: 1, stderr: expect.stringContaining('Only 0.00 GBP of the') })
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
    // These commands print a file, the banner, their progress, or always JSON.
    if (
      !['members export', 'payouts open-archived', 'start', 'api', 'ledger journal', 'drill failover'].includes(command)
    )
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

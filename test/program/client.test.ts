import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect as connectTo } from 'node:net'
import path from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import {
  baseEnvironment,
  launch,
  midmonth,
  midmonthHere,
  midmonthProcess,
  newDatabase,
  newDataDir,
  type Served,
  serve,
  tidyUp,
} from './program.ts'
import { closedAddress, closeServers, serveHere, startProxy } from './proxy.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 180_000 })

let service: Served
let database: { DATABASE_URL: string }
let settings: { MIDMONTH_URL: string; MIDMONTH_API_KEY: string }
beforeAll(async () => {
  database = await newDatabase({ hasDemo: true })
  service = await serve(database)
  settings = { MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
})
afterAll(tidyUp)

const children = new Set<ChildProcess>()
afterEach(async () => {
  closeTerminals()
  for (const child of children) child.kill('SIGKILL')
  children.clear()
  await closeServers()
})

const wait = { timeout: 45_000, interval: 20 }

test('a typed key is not shown, is stored readable only for its owner, and is used until the logout', async () => {
  const XDG_CONFIG_HOME = newFolder()
  const terminal = inTerminal(['login'], { XDG_CONFIG_HOME })
  await terminal.says('Address of the service')
  terminal.type(service.address)
  await terminal.says('API key (not shown)')
  terminal.type(service.key)
  expect(await terminal.ended, terminal.screen()).toBe(0)
  expect(terminal.screen()).toContain(`Logged in to ${service.address} as mm_test_`)
  expect(terminal.screen()).not.toContain(service.key)

  const file = path.join(XDG_CONFIG_HOME, 'midmonth/default.json')
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  expect((statSync(path.dirname(file)).mode & 0o777).toString(8)).toBe('700')
  const me = await midmonth(['whoami', '--json'], { XDG_CONFIG_HOME })
  expect(JSON.parse(me.stdout)).toMatchObject({ url: service.address, mode: 'sandbox', source: 'profile default' })
  expect(me.stdout).not.toContain(service.key)
  expect(await midmonth(['members', 'list', '--take', '1'], { XDG_CONFIG_HOME })).toMatchObject({ code: 0 })

  expect(await midmonth(['logout'], { XDG_CONFIG_HOME })).toMatchObject({ code: 0 })
  expect(existsSync(file)).toBe(false)
  expect(await midmonth(['members', 'list'], { XDG_CONFIG_HOME })).toEqual({
    ...{ code: 2, stdout: '' },
    stderr: 'midmonth: No API key: set MIDMONTH_API_KEY, or run midmonth login\n',
  })
})

test('a key pasted together with the address is not shown either', async () => {
  const XDG_CONFIG_HOME = newFolder()
  const terminal = inTerminal(['login'], { XDG_CONFIG_HOME })
  await terminal.says('Address of the service')
  terminal.type(`${service.address}\n${service.key}`)
  expect(await terminal.ended, terminal.screen()).toBe(0)
  expect(terminal.screen()).toContain(`Logged in to ${service.address} as mm_test_`)
  expect(terminal.screen()).not.toContain(service.key)
})

test.each([
  ['the address', ['login']],
  ['the key', ['login', '--url', 'http://127.0.0.1:1']],
  ['a confirmation', ['withdraw', 'grace.adeyemi@example.com', '20.00']],
])('Ctrl-C at the prompt for %s ends the command with exit code 130 and does nothing', async (_, args) => {
  const XDG_CONFIG_HOME = newFolder()
  const before = await withdrawalsOf('grace.adeyemi@example.com')
  const terminal = inTerminal(args, { XDG_CONFIG_HOME, ...(args[0] === 'login' ? {} : settings) })
  await vi.waitFor(() => expect(terminal.screen()).toMatch(/(\]|shown\)|continue): $/), wait)
  terminal.pressCtrlC()
  expect(await terminal.ended, terminal.screen()).toBe(130)
  expect(readdirSync(XDG_CONFIG_HOME)).toEqual([])
  expect(await withdrawalsOf('grace.adeyemi@example.com')).toEqual(before)
})

test('a login is stored only if the service accepts the key, and logins are independent of each other', async () => {
  const XDG_CONFIG_HOME = newFolder()
  const login = (key: string, ...args: string[]) =>
    midmonthHere(['login', '--url', service.address, ...args], { XDG_CONFIG_HOME }, Readable.from([`${key}\n`]))
  const wrong = await login('mm_test_wrongwrongwrongwrongwrong')
  expect(wrong).toMatchObject({ code: 1, stdout: '' })
  expect(wrong.stderr).not.toContain('wrongwrong')
  expect(await login('')).toMatchObject({ code: 2 })
  expect(await login('two words')).toMatchObject({ code: 2 })
  // Under a wrong path every key would seem valid, because a 404 looks like an unknown idempotency key.
  for (const folder of ['/docs', '/console', '/elsewhere'])
    expect(await login(service.key, '--url', `${service.address}${folder}`)).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringContaining('check the address'),
    })
  expect(readdirSync(XDG_CONFIG_HOME)).toEqual([])

  expect(await login(service.key, '--profile', 'first')).toMatchObject({ code: 0 })
  expect(await login(service.key, '--profile', 'second')).toMatchObject({ code: 0 })
  await midmonth(['logout', '--profile', 'first'], { XDG_CONFIG_HOME })
  const list = (profile: string) => midmonth(['members', 'list', '--profile', profile], { XDG_CONFIG_HOME })
  expect([(await list('first')).code, (await list('second')).code]).toEqual([2, 0])
  // Used as a path, this name would escape the folder.
  expect(await list('../second')).toMatchObject({ code: 2 })
})

test('a stored key that others can read is refused, and a key is never sent to another address', async () => {
  const XDG_CONFIG_HOME = newFolder()
  await midmonthHere(['login', '--url', service.address], { XDG_CONFIG_HOME }, Readable.from([service.key]))
  let requests = 0
  const elsewhere = await serveHere((_, response) => {
    requests += 1
    response.end()
  })
  for (const [args, more] of [
    [['--url', elsewhere], {}],
    [[], { MIDMONTH_URL: elsewhere }],
  ] as const) {
    const { code, stderr } = await midmonth(['members', 'list', ...args], { XDG_CONFIG_HOME, ...more })
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(`The key of the profile default is for ${service.address}`),
    })
  }
  expect(requests).toBe(0)
  // The command never guesses which of two keys to use.
  const both = await midmonth(['whoami', '--profile', 'default'], { XDG_CONFIG_HOME, ...settings })
  expect(both).toMatchObject({ code: 2, stderr: expect.stringContaining('MIDMONTH_API_KEY is set') })

  const file = path.join(XDG_CONFIG_HOME, 'midmonth/default.json')
  for (const mode of [0o640, 0o604, 0o666]) {
    chmodSync(file, mode)
    const { code, stdout, stderr } = await midmonth(['whoami'], { XDG_CONFIG_HOME })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`Run chmod 600 ${file}`)
    expect(stderr).not.toContain(service.key)
  }
  // A new login replaces the file and its mode.
  await midmonthHere(['login', '--url', service.address], { XDG_CONFIG_HOME }, Readable.from([service.key]))
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
  writeFileSync(file, `{"url": "${service.address}", "key": "${service.key}`)
  const damaged = await midmonth(['whoami'], { XDG_CONFIG_HOME })
  expect(damaged).toMatchObject({ code: 2, stderr: expect.stringContaining('is damaged; run midmonth login again') })
  expect(damaged.stderr).not.toContain(service.key)
})

test('a pipe in place of a stored key is refused instead of being read', async () => {
  const XDG_CONFIG_HOME = newFolder()
  const file = path.join(XDG_CONFIG_HOME, 'midmonth/default.json')
  mkdirSync(path.dirname(file))
  execFileSync('mkfifo', [file])
  const me = await midmonth(['whoami'], { XDG_CONFIG_HOME })
  expect(me).toMatchObject({ code: 2, stderr: expect.stringContaining(`${file} is not a file`) })
  const body = await midmonth(['api', 'members.invite', '--body', `@${file}`], settings)
  expect(body).toMatchObject({ code: 2, stderr: expect.stringContaining(`Cannot read ${file}: it is not a file`) })
})

test('a login that cannot be stored leaves no copy of the key', async () => {
  const XDG_CONFIG_HOME = newFolder()
  const file = path.join(XDG_CONFIG_HOME, 'midmonth/default.json')
  mkdirSync(file, { recursive: true })
  const login = await midmonthHere(
    ['login', '--url', service.address],
    { XDG_CONFIG_HOME },
    Readable.from([service.key]),
  )
  expect(login).toMatchObject({ code: 1, stdout: '' })
  expect(readdirSync(path.dirname(file))).toEqual(['default.json'])
  const me = await midmonth(['whoami'], { XDG_CONFIG_HOME })
  expect(me).toMatchObject({ code: 2, stderr: expect.stringContaining(`${file} is not a file`) })
})

test('an export touches no other file, and only its owner can read it', async () => {
  const folder = newFolder()
  const file = path.join(folder, 'staff.csv')
  writeFileSync(`${file}.part`, 'not ours')
  expect(await midmonth(['members', 'export', file], settings)).toMatchObject({ code: 0 })
  expect(readFileSync(`${file}.part`, 'utf8')).toBe('not ours')
  expect(readdirSync(folder).sort()).toEqual(['staff.csv', 'staff.csv.part'])
  expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
})

test('withdraw shows the fee, the arrival and the account, and pays only after a yes', async () => {
  const member = 'grace.adeyemi@example.com'
  const before = await withdrawalsOf(member)
  const refused = await midmonth(['withdraw', member, '20.00'], settings)
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('Add --yes') })

  const no = inTerminal(['withdraw', member, '20.00'], settings)
  await no.says('Type yes to continue')
  expect(no.screen()).toMatch(/^Idempotency key: \S+\r?$/m)
  expect(no.screen()).toMatch(/^amount +20\.00 GBP\r?\nfee +\d\.\d\d GBP \(tier \w+\)\r?\narrives +\d\d\.\d\d GBP/m)
  no.type('y')
  expect(await no.ended).toBe(1)
  expect(await withdrawalsOf(member)).toEqual(before)

  const yes = inTerminal(['withdraw', member, '20.00'], settings)
  await yes.says('Type yes to continue')
  yes.type('yes')
  expect(await yes.ended).toBe(0)
  expect(yes.screen()).toMatch(/withdrawal +w_\w+\r?\nstatus +held/)
  expect(await withdrawalsOf(member)).toHaveLength(before.length + 1)
})

test('an amount without its decimals is refused before anything is sent, since 5000 may mean 50.00', async () => {
  for (const amount of ['5000', '50', '50.0', '50.000', '-1.00', '1e3', '0x10', '']) {
    const { code, stdout, stderr } = await midmonth(['withdraw', 'sam.okafor@example.com', amount, '--yes'], settings)
    expect({ amount, code, stdout }).toEqual({ amount, code: 2, stdout: '' })
    expect(stderr).toContain('50.00')
  }
})

test.each(['the quote', 'the withdrawal'])(
  'withdraw killed while waiting for the response to %s pays once when repeated with its key',
  async waitsFor => {
    const member = 'sam.okafor@example.com'
    const before = await withdrawalsOf(member)
    let arrived = 0
    const isWithheld = (url = '') => url.endsWith(waitsFor === 'the quote' ? '/intent' : '/complete')
    const MIDMONTH_URL = await startProxy(service.address, (incoming, outgoing, answer) => {
      // The service has processed the request, but the response never arrives.
      if (isWithheld(incoming.url)) arrived += 1
      else answer.pipe(outgoing)
    })
    const child = launch(['withdraw', member, '30.00', '--yes'], { ...settings, MIDMONTH_URL })
    children.add(child)
    const said = collect(child.stderr)
    await vi.waitFor(() => expect(arrived).toBe(1), wait)
    child.kill('SIGINT')
    const [, signal] = await once(child, 'exit')
    expect(signal).toBe('SIGINT')
    expect(await withdrawalsOf(member)).toHaveLength(before.length + (waitsFor === 'the quote' ? 0 : 1))

    const [, key = ''] = /^Idempotency key: (\S+)$/m.exec(said()) ?? []
    const again = () => midmonth(['withdraw', member, '30.00', '--yes', '--json', '--idempotency-key', key], settings)
    const first = await again()
    const second = await again()
    expect([first.code, second.code], first.stderr).toEqual([0, 0])
    expect(JSON.parse(first.stdout).id).toBe(JSON.parse(second.stdout).id)
    expect(await withdrawalsOf(member)).toHaveLength(before.length + 1)
    // The key identifies this withdrawal and no other.
    const other = await midmonth(['withdraw', member, '31.00', '--yes', '--idempotency-key', key], settings)
    expect(other).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('HeaderValidation, HTTP 422'),
    })
  },
)

test('two concurrent runs with the same key make one withdrawal, and both succeed', async () => {
  const member = 'sophie.clarke@example.com'
  const before = await withdrawalsOf(member)
  const args = ['withdraw', member, '15.00', '--yes', '--json', '--idempotency-key', 'both']
  const [one, other] = await Promise.all([midmonth(args, settings), midmonth(args, settings)])
  expect([one.code, other.code], one.stderr + other.stderr).toEqual([0, 0])
  expect(JSON.parse(one.stdout)).toEqual(JSON.parse(other.stdout))
  expect(await withdrawalsOf(member)).toHaveLength(before.length + 1)
})

test.each([
  ['lost', 504],
  ['a gateway’s page', 200],
])(
  'when the response to a withdrawal is %s, the exit code is 5 and the message has a command that cannot pay twice',
  async (_, status) => {
    const member = 'sophie.clarke@example.com'
    const before = await withdrawalsOf(member)
    const MIDMONTH_URL = await startGateway({ losing: '/complete', status })
    const { code, stdout, stderr } = await midmonth(['withdraw', member, '16.00', '--yes'], {
      ...settings,
      MIDMONTH_URL,
    })
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    const [, key = ''] = /run the same command with --idempotency-key '(\S+)'/.exec(stderr) ?? []
    const again = await midmonth(['withdraw', member, '16.00', '--yes', '--idempotency-key', key], settings)
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing was paid again') })
    expect(await withdrawalsOf(member)).toHaveLength(before.length + 1)
  },
)

test.each([504, 200])(
  'a change to which a gateway itself responds with %d has exit code 5 and prints the key for a safe repetition',
  async status => {
    const MIDMONTH_URL = await startGateway({ losing: '/v1/pay/run', status })
    const runs = async () => JSON.parse((await midmonth(['api', 'payRuns.list'], settings)).stdout).total
    const [{ memberId }] = JSON.parse(
      (await midmonth(['members', 'list', '--email', 'sophie.clarke@example.com', '--json'], settings)).stdout,
    ).members
    const before = await runs()
    const body = JSON.stringify({ payDetails: [{ memberId, money: { amount: 1_00, currency: 'GBP' } }] })
    const args = ['api', 'payRuns.create', '--body', body]
    const { code, stdout, stderr } = await midmonth(args, { ...settings, MIDMONTH_URL })
    expect({ code, stdout }).toEqual({ code: 5, stdout: '' })
    const [, key = ''] = /It may have taken effect\. Its idempotency key is (\S+)\.\n/.exec(stderr) ?? []
    const again = await midmonth([...args, '--idempotency-key', key], settings)
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('stored response') })
    expect(await runs()).toBe(before + 1)
  },
)

test.each([504, 200])(
  'when a gateway itself responds to a quote with %d, nothing was withdrawn, and the message has the key of the run',
  async status => {
    const MIDMONTH_URL = await startGateway({ losing: '/intent', status })
    const args = ['withdraw', 'sophie.clarke@example.com', '14.00', '--yes']
    const { code, stdout, stderr } = await midmonth(args, { ...settings, MIDMONTH_URL })
    expect({ code, stdout }).toEqual({ code: 4, stdout: '' })
    const [, printed = ''] = /^Idempotency key: (\S+)$/m.exec(stderr) ?? []
    expect(stderr).toContain(`This run withdrew nothing: run the same command with --idempotency-key '${printed}'`)
  },
)

test('the idempotency key and the API key have options and cannot be set by a header', async () => {
  for (const name of ['x-idempotency-key', 'X-Idempotency-Key', 'X-Api-Key']) {
    const args = ['api', 'payRuns.list', '--header', `${name}: one`]
    const option = name === 'X-Api-Key' ? '--key' : '--idempotency-key'
    expect(await midmonth(args, settings), name).toMatchObject({ code: 2, stderr: expect.stringContaining(option) })
  }
})

test('a refusal names its code and request, another partner’s resources do not exist, and no output has the key or a stack', async () => {
  const theirs = await newPartner()
  await midmonth(['sandbox', 'seed', 'mid_cycle'], theirs)
  const [{ memberId }] = JSON.parse(
    (await midmonth(['members', 'list', '--take', '1', '--json'], theirs)).stdout,
  ).members
  const [{ id }] = JSON.parse((await midmonth(['withdrawals', 'list', '--json'], theirs)).stdout).withdrawals
  const closed = await closedAddress()
  const wrongKey = `${service.key}x`
  const cases: [string[], number, RegExp][] = [
    [['members', 'show', memberId], 1, /^midmonth: .+\n {2}MemberNotFound, HTTP 404, request \S+\n$/],
    [['withdraw', memberId, '10.00', '--yes'], 1, /MemberNotFound, HTTP 404/],
    [['withdrawals', 'show', id], 1, /NotFound, HTTP 404/],
    [['sandbox', 'pay', id], 1, /NotFound, HTTP 404/],
    [['withdraw', 'sam.okafor@example.com', '9999.00', '--yes'], 1, /AmountAboveUpperLimit, HTTP 422/],
    [['members', 'show', 'none@example.com'], 1, /There is no member with the e-mail/],
    [['members', 'invite', 'a@example.com'], 1, /BodyValidation, HTTP 400/],
    [['members', 'list', '--key', wrongKey], 1, /run midmonth login.*\n {2}HeaderValidation, HTTP 401/],
    [['members', 'list', '--key', 'a b'], 2, /spaces or invalid characters/],
    [['members', 'show', 'mem_x'], 2, /Use an id such as/],
    [['withdrawals', 'list', '--status', 'gone'], 2, /Allowed choices are held/],
    [['sandbox', 'clock', '--by', 'P1D', '--to', 'x'], 2, /Give only one of/],
    [['api', 'members.lst'], 2, /unknown command/],
    [['api', 'members.invite', '--body', '{'], 2, /--body is not JSON/],
    [['api', 'members.invite', '--body', '@/nowhere'], 2, /Cannot read \/nowhere/],
    [['members', 'list', '--url', closed], 4, /Cannot reach Midmonth at http/],
    [['withdraw', 'sam.okafor@example.com', '10.00', '--yes', '--url', closed], 4, /connection refused/],
  ]
  for (const [args, code, message] of cases) {
    const outcome = await midmonth(args, settings)
    expect({ args, ...outcome }).toMatchObject({ args, code, stdout: '', stderr: expect.stringMatching(message) })
    expect(outcome.stderr).not.toContain(service.key)
    expect(outcome.stderr).not.toMatch(/^ +at /m)
  }
})

test('--json prints the response of the API unchanged, and with --all one entry per line', async () => {
  const read = async (url: string) =>
    await (
      await fetch(service.address + url, { headers: { 'x-api-key': service.key, prefer: 'return=representation' } })
    ).json()
  const printed = async (...args: string[]) => JSON.parse((await midmonth([...args, '--json'], settings)).stdout)
  expect(await printed('cycles', 'list')).toEqual(await read('/v1/pay/cycles?take=50'))
  const { members } = (await read('/v1/members?take=1')) as { members: { memberId: string }[] }
  const memberId = members[0]?.memberId ?? ''
  const after = await read(`/v1/members?take=3&after=${memberId}`)
  expect(await printed('members', 'list', '--take', '3', '--after', memberId)).toEqual(after)
  expect(await printed('members', 'show', memberId)).toEqual(await read(`/v1/members/${memberId}`))
  expect(await printed('api', 'members.get', memberId)).toEqual(await read(`/v1/members/${memberId}`))

  const all = (await read('/v1/members?take=1000')) as { members: object[] }
  for (const command of [
    ['members', 'list', '--take', '7', '--all', '--json'],
    ['api', 'members.list', '--take', '7', '--all'],
  ]) {
    const { stdout } = await midmonth(command, settings)
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line)),
    ).toEqual(all.members)
  }
  const table = await midmonth(['members', 'list', '--take', '7'], settings)
  expect(table.stdout).toContain('There are more: add --all')
  const whole = await midmonth(['members', 'list', '--take', '7', '--all'], settings)
  expect(whole.stdout.match(/mem_/g)).toHaveLength(all.members.length)
  expect(whole.stdout.match(/^member /gm)).toHaveLength(1)
})

test('withdrawals show lists the whole history: the requests, the rules, the bank, and the webhooks', async () => {
  const hook = await serveHere((_, response) => response.end())
  const created = await midmonth(['api', 'webhooks.create', '--body', JSON.stringify({ url: hook })], settings)
  const { id: webhookId } = JSON.parse(created.stdout)
  const withdrawn = await midmonth(['withdraw', 'sophie.clarke@example.com', '17.00', '--yes', '--json'], settings)
  const { id } = JSON.parse(withdrawn.stdout)
  expect(await midmonth(['sandbox', 'return', id, '--reason', 'AC04'], settings)).toMatchObject({ code: 0 })
  const show = async () => JSON.parse((await midmonth(['withdrawals', 'show', id, '--json'], settings)).stdout)
  await expect
    .poll(
      async () =>
        (await show()).timeline.deliveries.map(
          ({ type, state }: { type: string; state: string }) => `${type} ${state}`,
        ),
      wait,
    )
    .toEqual(
      [
        ...['intent.created', 'intent.completed'],
        ...['held', 'submitted', 'paid', 'returned'].map(status => `withdrawal.${status}`),
      ].map(type => `${type} delivered`),
    )
  await expect.poll(async () => (await show()).timeline.requests.length, wait).toBeGreaterThanOrEqual(3)
  const { timeline } = await show()
  expect(timeline.steps.map(({ status }: { status: string }) => status)).toEqual([
    'held',
    'submitted',
    'paid',
    'returned',
  ])
  expect(timeline.explanation.rules.length).toBeGreaterThan(0)
  const { stdout } = await midmonth(['withdrawals', 'show', id], settings)
  for (const part of ['Requests', 'Decision', 'Bank', 'Webhooks', 'AC04', '/v1/pay/withdrawals/complete'])
    expect(stdout).toContain(part)
  await midmonth(['api', 'webhooks.delete', webhookId], settings)
})

test('events tail continues after an outage of the service, with nothing missed or repeated', async () => {
  let isAway = false
  let refused = 0
  const MIDMONTH_URL = await startProxy(service.address, (_, outgoing, answer) => answer.pipe(outgoing), {
    admits: incoming => {
      if (!isAway) return true
      refused += 1
      incoming.destroy()
      return false
    },
  })
  const child = launch(['events', 'tail', '--json', '--types', 'member.invited'], { ...settings, MIDMONTH_URL })
  children.add(child)
  const [printed, said] = [collect(child.stdout), collect(child.stderr)]
  await expect.poll(said, wait).toContain('Following')
  const invite = async (name: string) =>
    await midmonth(
      ['members', 'invite', `${name}@example.com`, '--first-name', 'T', '--last-name', 'T', '--tier', 'Silver'],
      settings,
    )
  expect(await invite('tail-1')).toMatchObject({ code: 0 })
  await expect.poll(printed, wait).toContain('member.invited')
  isAway = true
  await vi.waitFor(() => expect(refused).toBeGreaterThan(1), wait)
  await invite('tail-2')
  await invite('tail-3')
  isAway = false
  await expect.poll(() => printed().trimEnd().split('\n').length, wait).toBe(3)
  const ids = printed()
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).id)
  expect(new Set(ids).size).toBe(3)
  expect(said()).toContain('The connection is lost; retrying until it is back.\nConnected again.\n')

  // A later run begins after the given event.
  const later = launch(['events', 'tail', '--json', '--types', 'member.invited', '--after', ids[0]], settings)
  children.add(later)
  const printedLater = collect(later.stdout)
  await expect.poll(() => printedLater().trimEnd().split('\n').length, wait).toBe(2)
  child.kill('SIGINT')
  expect((await once(child, 'exit'))[1]).toBe('SIGINT')
  const unknown = await midmonth(['events', 'tail', '--after', 'evt_01kah4pzc5e4r8v2m6t0x9y3bd'], settings)
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('NotFound, HTTP 404') })
})

test('an export whose output is closed early ends quietly without reading the rest of a million rows', async () => {
  let sent = 0
  const row = `${'x'.repeat(200)}\n`
  const block = row.repeat(1_000)
  const MIDMONTH_URL = await serveHere((_, response) => {
    response.writeHead(200, { 'content-type': 'text/csv' })
    response.on('close', () => response.destroy())
    const write = () => {
      while (sent < 1_000 && !response.destroyed) {
        sent += 1
        if (!response.write(block)) {
          response.once('drain', write)
          return
        }
      }
      response.end()
    }
    write()
  })
  const command = [process.execPath, new URL('../../cli/midmonth.ts', import.meta.url).pathname, 'members', 'export']
  const env = { ...baseEnvironment, ...settings, MIDMONTH_URL }
  const script = `"$@" | head -2; echo "\${PIPESTATUS[0]}"`
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', script, 'bash', ...command], { env })
  expect({ last: stdout.trimEnd().split('\n').at(-1), stderr }).toEqual({ last: '0', stderr: '' })
  expect(sent).toBeLessThan(1_000)
})

test.each([
  ['events tail', ['events', 'tail', '--from-start', '--json']],
  ['webhooks listen', ['webhooks', 'listen', '--json']],
] as const)('%s ends when its output is closed', async (name, args) => {
  const command = [process.execPath, new URL('../../cli/midmonth.ts', import.meta.url).pathname, ...args]
  const env = { ...baseEnvironment, ...settings }
  let hasEnded = false
  const reading = promisify(execFile)('bash', ['--norc', '-c', '"$@" | head -1', 'bash', ...command], { env })
  const ended = reading.finally(() => {
    hasEnded = true
  })
  if (reading.child.pid !== undefined) children.add(reading.child)
  // The reader gets the first event. Writing another one shows that the reader has exited.
  const member = ['--first-name', 'T', '--last-name', 'T', '--tier', 'Silver']
  for (let count = 0; !hasEnded; count++) {
    const email = `${name.replace(' ', '-')}-${count}@example.com`
    expect((await midmonth(['members', 'invite', email, ...member], settings)).code).toBe(0)
  }
  expect(JSON.parse((await ended).stdout)).toHaveProperty('type')
})

test('a body comes from the command line, a file, or standard input, and a repeated key gets the stored response', async () => {
  const folder = newFolder()
  const member = (name: string) =>
    JSON.stringify({ email: `${name}@example.com`, firstName: 'B', lastName: 'B', tier: 'Silver' })
  const file = path.join(folder, 'member.json')
  writeFileSync(file, member('body-2'))
  const invite = (body: string, input = '') =>
    midmonthHere(
      ['api', 'members.invite', '--body', body, '--idempotency-key', `invite ${body}`],
      settings,
      Readable.from([input]),
    )
  expect((await invite(member('body-1'))).code).toBe(0)
  const first = await invite(`@${file}`)
  const again = await invite(`@${file}`)
  expect(again.stdout).toBe(first.stdout)
  expect([first.stderr, again.stderr]).toEqual(['', expect.stringContaining('stored response')])
  expect((await invite('-', member('body-3'))).code).toBe(0)

  const list = path.join(folder, 'list.csv')
  await midmonth(['api', 'members.export', '--statuses', 'active', '--statuses', 'invited', '--output', list], settings)
  expect((statSync(list).mode & 0o777).toString(8)).toBe('600')
  for (const [body, input] of [
    [`@${list}`, ''],
    ['-', readFileSync(list, 'utf8')],
  ] as const) {
    const args = ['api', 'memberJobs.createFromFileV2', '--dryRun', 'true', '--body', body]
    const { stdout } = await midmonthHere(args, settings, Readable.from([input]))
    expect(JSON.parse(stdout).plan).toMatchObject({ invite: 0, update: 0, offboard: 0 })
  }
  expect(await midmonth(['api', 'members.export', '--output', list], settings)).toMatchObject({ code: 1 })
})

test('a JSON body is sent unchanged, with large numbers and repeated keys', async () => {
  const sent: string[] = []
  const MIDMONTH_URL = await serveHere(async (incoming, outgoing) => {
    sent.push(await text(incoming))
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const body = '{ "amount": 9007199254740993, "amount": 1.50 }'
  const args = ['api', 'payRuns.create', '--body', body]
  expect(await midmonth(args, { ...settings, MIDMONTH_URL })).toMatchObject({ code: 0 })
  expect(sent).toEqual([body])
})

test('a proxy in the environment is used once Node is told to, and a command that fails without it says so', async () => {
  const tunnels: string[] = []
  const HTTP_PROXY = await serveHere((_, outgoing) => outgoing.end(), {
    onConnect: (incoming, socket) => {
      tunnels.push(incoming.url ?? '')
      const { hostname, port } = new URL(service.address)
      const onward = connectTo(Number(port), hostname, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      onward.on('error', () => socket.destroy())
      socket.on('error', () => onward.destroy())
      socket.pipe(onward).pipe(socket)
    },
  })
  const behind = { ...settings, MIDMONTH_URL: 'http://midmonth.invalid', HTTP_PROXY }
  const refused = await midmonth(['whoami'], behind)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('set NODE_USE_ENV_PROXY=1') })
  expect(tunnels).toEqual([])
  const me = await midmonthProcess(['whoami'], { ...behind, NODE_USE_ENV_PROXY: '1' })
  expect(me, me.stderr).toMatchObject({ code: 0 })
  expect(tunnels).toContain('midmonth.invalid:80')
  const direct = { ...settings, HTTP_PROXY: await closedAddress(), NO_PROXY: '127.0.0.1', NODE_USE_ENV_PROXY: '1' }
  expect(await midmonthProcess(['whoami'], direct)).toMatchObject({ code: 0 })
})

test('cycles deductions writes the CSV of the API', async () => {
  const { payCycles } = JSON.parse(
    (await midmonth(['cycles', 'list', '--status', 'Closed', '--json'], settings)).stdout,
  )
  const [{ id }] = payCycles
  const { stdout } = await midmonth(['cycles', 'deductions', id], settings)
  const answer = await fetch(`${service.address}/v1/pay/cycles/${id}/deductions`, {
    headers: { 'x-api-key': service.key, accept: 'text/csv' },
  })
  expect(stdout).toBe(await answer.text())
  const file = path.join(newFolder(), 'deductions.csv')
  expect(await midmonth(['cycles', 'deductions', id, file], settings)).toMatchObject({
    code: 0,
    stdout: `Wrote ${file}.\n`,
  })
  expect(readFileSync(file, 'utf8')).toBe(stdout)
})

test('the commands for a sandbox move the clock and instruct the bank', async () => {
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await midmonth(['sandbox', ...args, '--json'], settings)
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }
  expect(await run('seed', 'mid_cycle')).toEqual({ scenario: 'mid_cycle', members: 25 })
  const withdrawal = async () =>
    JSON.parse((await midmonth(['withdraw', 'sam.okafor@example.com', '10.00', '--yes', '--json'], settings)).stdout).id
  await run('fund', 'sam.okafor@example.com', '500.00')
  const [first, second] = [await withdrawal(), await withdrawal()]
  await run('hold', first)
  for (const [verb, id, status] of [
    ['submit', first, 'submitted'],
    ['pay', first, 'paid'],
    ['return', first, 'returned'],
    ['fail', second, 'failed'],
  ])
    expect(await run(verb, id)).toMatchObject({ status })
  await run('fault', 'timeout', '--count', '2')
  expect(await run('float', '100.00', 'GBP')).toHaveProperty('free')
  expect([await run('pause'), await run('resume')]).toEqual([{ paused: true }, { paused: false }])
  const { aheadSeconds } = await run('clock', '--by', 'P1D')
  expect(aheadSeconds).toBe(86_400)
  expect(await run('clock')).toMatchObject({ status: 'Still', aheadSeconds })
  await run('reset')
  expect(await run('clock')).toMatchObject({ aheadSeconds: 0 })
})

/** The completion script of a shell, with the command as a function of this test. */
async function complete(shell: 'bash', words: string[], cwd = newFolder()): Promise<string[]> {
  const main = new URL('../../cli/midmonth.ts', import.meta.url).pathname
  const { stdout: script } = await midmonth(['completion', shell], settings)
  const bash = `
midmonth() { '${process.execPath}' '${main}' "$@"; }
${script}
COMP_WORDS=(midmonth "$@") COMP_CWORD=$#
_midmonth
printf '%s\\n' "\${COMPREPLY[@]}"
complete -p midmonth >&2`
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', bash, 'bash', ...words], {
    cwd,
    env: { ...baseEnvironment, ...settings },
  })
  expect(stderr).toContain('-F _midmonth midmonth')
  return stdout.split('\n').filter(line => line !== '')
}

test('bash completes commands, options, their values, and the names of operations', async () => {
  expect(await complete('bash', ['with'])).toEqual(['withdraw', 'withdrawals', 'withdrawal'])
  expect(await complete('bash', ['withdrawals', ''])).toEqual(expect.arrayContaining(['list', 'show']))
  expect(await complete('bash', ['members', 'list', '--sta'])).toEqual(['--status'])
  expect(await complete('bash', ['members', 'list', '--status', 'in'])).toEqual(['invited', 'inactive'])
  expect(await complete('bash', ['api', 'withdrawals.co'])).toEqual(['withdrawals.complete'])
  expect(await complete('bash', ['api', 'members.list', '--work'])).toEqual(['--workerIds'])
  expect(await complete('bash', ['sandbox', 'seed', 'm'])).toEqual(['mid_cycle'])
  expect(await complete('bash', ['events', 'tail', '--types', 'float.'])).toEqual(['float.low'])
  // The shell completes files.
  expect(await complete('bash', ['members', 'import', ''])).toEqual([])
})

for (const shell of ['bash', 'zsh', 'fish']) {
  if (!existsSync(`/usr/bin/${shell}`)) continue
  test(`${shell} accepts its completion script`, async () => {
    const { stdout } = await midmonth(['completion', shell], settings)
    const child = spawn(shell, ['-n'], { stdio: ['pipe', 'ignore', 'pipe'] })
    const said = collect(child.stderr)
    child.stdin.end(stdout)
    expect([(await once(child, 'close'))[0], said()]).toEqual([0, ''])
  })
}

test('completion of an operator command does not load the service, and knows its options and their values', async () => {
  const words = ['payouts', 'exceptions', 'list', '--']
  const { stdout } = await midmonth(['completion', 'candidates', '--', ...words], settings)
  expect(stdout).toMatch(/^--json\t/m)
  expect(await complete('bash', ['payouts', 'list', '--status', 'b'])).toEqual(['building'])
  expect(await modulesOf(['completion', 'candidates', '--', ...words])).toBeLessThan(80)
})

test('a command that calls the API starts without the program: its process loads in a fraction of the time', async () => {
  // The program has more than a thousand modules.
  expect(await modulesOf(['members', 'list', '--take', '1'])).toBeLessThan(80)
})

/** Counts the modules that the process of a command loads. */
async function modulesOf(args: string[]): Promise<number> {
  const { code, stderr } = await midmonthProcess(args, {
    ...settings,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
      "import{registerHooks}from'node:module';let n=0;registerHooks({load(u,c,next){n++;return next(u,c)}});process.on('exit',()=>console.error('modules',n))",
    )}`,
  })
  expect(code, stderr).toBe(0)
  return Number(/modules (\d+)/.exec(stderr)?.[1])
}

/** Starts a gateway that replaces the service's responses to changes on one path. @returns its address */
async function startGateway({ losing, status: ownStatus }: { losing: string; status: number }): Promise<string> {
  return await serveHere((incoming, outgoing) => {
    const isLost = incoming.method !== 'GET' && incoming.url?.endsWith(losing)
    const { method, url, headers } = incoming
    const body = method === 'GET' ? {} : { body: Readable.toWeb(incoming), duplex: 'half' as const }
    const { connection: _, host: __, 'transfer-encoding': ___, ...more } = headers
    void fetch(`${service.address}${url}`, {
      method: method ?? '',
      headers: more as Record<string, string>,
      ...body,
    }).then(async answer => {
      const text = await answer.text()
      const status = isLost ? ownStatus : answer.status
      const json = { 'content-type': 'application/json' }
      outgoing.writeHead(status, isLost ? { 'x-should-retry': 'false' } : json).end(isLost ? 'From the gateway' : text)
    })
  })
}

/** Creates another partner of the same service. @returns the settings of its commands */
async function newPartner(): Promise<typeof settings> {
  const created = async (...args: string[]) => JSON.parse((await midmonth([...args, '--json'], database)).stdout)
  const { id } = await created('partner', 'create', 'Another')
  const limits = ['--currency', 'GBP', '--lower-limit', '1000', '--upper-limit', '20000']
  await created('tier', 'set', id, 'Silver', ...limits)
  return { ...settings, MIDMONTH_API_KEY: (await created('key', 'create', id)).secret }
}

async function withdrawalsOf(member: string): Promise<string[]> {
  const { stdout } = await midmonth(['withdrawals', 'list', '--member', member, '--json'], settings)
  return JSON.parse(stdout).withdrawals.map(({ id }: { id: string }) => id)
}

function collect(stream: Readable | null): () => string {
  let text = ''
  stream?.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  return () => text
}

function newFolder(): string {
  const folder = newDataDir()
  mkdirSync(folder)
  return folder
}

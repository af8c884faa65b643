import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test, vi } from 'vitest'
import {
  baseEnvironment,
  type Environment,
  midmonth,
  midmonthProcess,
  newDatabase,
  newDataDir,
  serve,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

test('with --url a command works on a running server, with an operator key, as without on the database', async () => {
  const database = await newDatabase()
  const { address } = await serve(database)
  const { key } = await json(['operator', 'key', 'create', 'remote'], database)
  const remote = async (...args: string[]) =>
    await midmonth([...args, '--url', address], { MIDMONTH_OPERATOR_KEY: key, DATABASE_URL: 'unused' })
  expect((await remote('partner', 'create', 'Acme', '--grace-minutes', '3')).stdout).toContain('Acme')
  const [partner] = JSON.parse((await remote('partner', 'list', '--json')).stdout)
  expect(await json(['partner', 'list'], database)).toEqual([partner])
  expect(await remote('partner', 'pause', partner.id)).toEqual({ code: 0, stdout: 'Acme is paused.\n', stderr: '' })
  expect((await remote('partner', 'pause', partner.id)).stdout).toBe('Acme is already paused.\n')
  // The setting for servers is in the environment of the other commands, too.
  const { id, secret } = await json(['key', 'create', partner.id, '--scopes', 'pay:read'], {
    ...database,
    MIDMONTH_OPERATOR_KEY: key,
  })
  expect((await remote('key', 'revoke', id)).stdout).toBe(`Revoked ${id}.\n`)
  expect((await remote('key', 'revoke', id)).stdout).toContain('was already revoked on')
  const { stdout: keys } = await midmonth(['key', 'list', partner.id], database)
  expect(keys).toContain('revoked')
  expect(keys).not.toContain(secret)
  expect(await midmonth(['partner', 'list', '--url', address], {})).toMatchObject({
    code: 1,
    stderr: 'midmonth: Set MIDMONTH_OPERATOR_KEY to an operator key, or use --key\n',
  })
})

test('commands start the embedded PostgreSQL if it is not running', async () => {
  const settings = { MIDMONTH_DATA_DIR: newDataDir() }
  expect(await midmonth(['partner', 'list'], settings)).toEqual({ code: 0, stdout: '(none)\n', stderr: '' })
})

test('migrate is safe to repeat and to run concurrently, and commands say when it is needed', async () => {
  const database = await newDatabase({ migrated: false })
  const refused = await midmonth(['ledger', 'verify'], database)
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('run midmonth migrate (pending: 0001_') })
  const both = await Promise.all([midmonth(['migrate'], database), midmonth(['migrate'], database)])
  expect(both.map(({ code }) => code)).toEqual([0, 0])
  expect((await midmonth(['ledger', 'verify'], database)).code).toBe(0)
})

test('ledger verify passes on the service’s books, and names a row that was tampered with', async () => {
  const database = await newDatabase({ hasDemo: true })
  expect(await midmonth(['ledger', 'verify'], database)).toMatchObject({ code: 0, stderr: '' })

  const [changed] = await tamper(
    database,
    `update ledger_balances set available = available + 1
      where member_id = (select min(member_id) from ledger_balances where available > 0)
      returning member_id, available`,
  )
  const mismatch = await midmonthProcess(['ledger', 'verify'], database)
  expect(mismatch.code).toBe(3)
  expect(mismatch.stdout).toMatch(
    new RegExp(`BROKEN.*\n.*${String(changed?.member_id)}.* found available ${String(changed?.available)}, owed 0`),
  )
  const asJson = JSON.parse((await midmonth(['ledger', 'verify', '--json'], database)).stdout)
  expect(asJson.agree).toBe(false)
})

test('the totals of the books are exact in JSON at any size', async () => {
  const database = await newDatabase()
  const { id } = await created(['partner', 'create', 'Large'], database)
  await created(
    ['tier', 'set', id, 'Silver', '--currency', 'GBP', '--lower-limit', '1', '--upper-limit', '2'],
    database,
  )
  for (const direction of ['fund', 'withdraw', 'fund']) {
    await created(['float', direction, id, 'GBP', String(Number.MAX_SAFE_INTEGER)], database)
  }
  const { code, stdout } = await midmonth(['ledger', 'verify', '--json'], database)
  expect(code).toBe(0)
  expect(stdout).toMatch(/"account": "float",[^}]*"debits": {\s*"amount": 18014398509481982,\s*"currency": "GBP"/)
})

test('invalid usage exits with code 2 and a one-line message', async () => {
  const wrong = [
    ['nonsense'],
    ['partner'],
    ['start', '--nonsense'],
    ['key', 'create', 'par_x', '--scopes', 'everything'],
    ['partner', 'create', ''],
    ['partner', 'create', 'Acme', '--time-zone', 'Mars/Base'],
    ['tier', 'set', 'par_x', 'Gold'],
    ['withdrawal', 'list', '--before', 'xxx'],
    ['audit', '--before', 'w_01kah4pzc5e4r8v2m6t0x9y3bd'],
    ['tier', 'set', 'par_x', 'Gold', '--currency', 'GBP', '--lower-limit', '10.00', '--upper-limit', '20000'],
  ]
  for (const { args, code, stdout, stderr } of await allOf(wrong)) {
    expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
    expect(stderr, args.join(' ')).toMatch(/^(midmonth: .+\nAdd --help|Usage: )/)
    expect(stderr).not.toMatch(/^ +at /m)
  }
})

test('a process exits with the code of its command, and writes results to stdout and errors to stderr', async () => {
  const database = await newDatabase()
  const outcomes = await Promise.all(
    [['--help'], ['tier', 'set', '--help'], ['partner', 'list'], ['key', 'list', 'par_none'], ['nonsense']].map(args =>
      midmonthProcess(args, database),
    ),
  )
  expect(outcomes).toEqual([
    { code: 0, stdout: expect.stringMatching(/^Usage: midmonth [\s\S]+Exit codes: /), stderr: '' },
    { code: 0, stdout: expect.stringMatching(/^Usage: midmonth tier set /), stderr: '' },
    { code: 0, stdout: '(none)\n', stderr: '' },
    { code: 1, stdout: '', stderr: expect.stringMatching(/^midmonth: There is no partner par_none; /) },
    { code: 2, stdout: '', stderr: expect.stringMatching(/^midmonth: unknown command 'nonsense'\nAdd --help/) },
  ])
})

if (existsSync('/dev/full')) {
  test('a command that cannot write its output exits with code 1 and says why', async () => {
    const script = fileURLToPath(new URL('../../cli/midmonth.ts', import.meta.url))
    const command = ['-c', '"$@" > /dev/full', 'sh', process.execPath, script, '--help']
    const failure = await promisify(execFile)('sh', command, { env: baseEnvironment }).catch((error: unknown) => error)
    expect(failure).toMatchObject({ code: 1, stderr: expect.stringMatching(/^midmonth: .*no space left/) })
  })
}

test('an unknown id exits with code 1 and a message that names it', async () => {
  const refusals = await allOf(
    [
      ['key', 'create', 'par_none'],
      ['key', 'list', 'par_none'],
      ['key', 'revoke', 'key_none'],
      ['tier', 'set', 'par_none', 'Gold', '--currency', 'GBP', '--lower-limit', '1', '--upper-limit', '2'],
      ['tier', 'list', 'par_none'],
      ['tier', 'show', 'par_none', 'Gold'],
      ['withdrawal', 'show', 'w_none'],
      ['withdrawal', 'list', '--partner', 'par_none'],
      ['member', 'show', 'mem_none'],
      ['member', 'release', 'mem_none'],
      ['partner', 'show', 'par_none'],
      ['partner', 'pause', 'par_none'],
      ['float', 'fund', 'par_none', 'GBP', '1'],
      ['audit', '--partner', 'par_none'],
    ],
    await newDatabase(),
  )
  for (const { args, code, stdout, stderr } of refusals) {
    expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: '' })
    expect(stderr).toMatch(/^midmonth: There is no (partner|key|withdrawal|member) \w+_none; .+\n$/)
  }
})

async function created(args: string[], settings: Environment): Promise<{ id: string; secret: string }> {
  return await json(args, settings)
}

async function json(args: string[], settings: Environment) {
  const { code, stdout, stderr } = await midmonth([...args, '--json'], settings)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

async function allOf(commands: string[][], settings: Environment = {}) {
  return await Promise.all(commands.map(async args => ({ args, ...(await midmonth(args, settings)) })))
}

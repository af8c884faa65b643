import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import {
  dueJobs,
  get,
  liveSettings,
  midmonth,
  midmonthHere,
  newDatabase,
  newDataDir,
  processesNaming,
  serve,
  start,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(tidyUp)

test('the printed request works as pasted, concurrent instances share data and key, and both survive a stop and a kill -9 of every process', {
  timeout: 120_000,
}, async () => {
  const settings = { MIDMONTH_DATA_DIR: newDataDir(), MIDMONTH_INSTALLATION_KEY: '' }
  // Of the concurrent starts, exactly one must start PostgreSQL, one migrate, one create the installation key and one seed.
  const [one, other] = await Promise.all([start(settings), start(settings)])
  expect(other.key).toBe(one.key)
  for (const { stdout } of [one, other])
    expect(stdout).toContain(`${settings.MIDMONTH_DATA_DIR}-key/installation.key (back it up apart from the data)`)
  expect(one.stdout).toContain(
    `${settings.MIDMONTH_DATA_DIR}-key/erasures.jsonl (back it up with every backup of the data)`,
  )
  expect(await readdir(`${settings.MIDMONTH_DATA_DIR}-key`)).toEqual(['installation.key', 'installation.key.used'])
  const intent = paste(one.curl)
  expect(intent).toMatchObject({ netAmount: { amount: 4_900, currency: 'GBP' }, fee: { amount: 100, currency: 'GBP' } })
  expect(await one.stop()).toMatchObject({ code: 0 })
  const pathOf = ({ withdrawalIntentId }: typeof intent) => `/v1/pay/withdrawals/intent/${withdrawalIntentId}`
  expect((await get(other, { path: pathOf(intent) })).status).toBe(200)
  const { stdout } = await midmonth(['partner', 'list', '--json'], settings)
  expect(JSON.parse(stdout)).toHaveLength(1)
  expect(await other.stop()).toMatchObject({ code: 0 })
  expect(processesNaming(settings.MIDMONTH_DATA_DIR)).toEqual([])

  const second = await start(settings)
  expect(second.key).toBe(one.key)
  const later = paste(second.curl)
  for (const { pid } of [second, ...processesNaming(settings.MIDMONTH_DATA_DIR)]) kill(pid)
  await second.ended
  await vi.waitFor(() => expect(processesNaming(settings.MIDMONTH_DATA_DIR)).toEqual([]), { timeout: 45_000 })

  const third = await start(settings)
  expect(third.key).toBe(one.key)
  for (const each of [intent, later]) expect((await get(third, { path: pathOf(each) })).status).toBe(200)
})

test('a stop writes the request log, and MIDMONTH_REQUEST_LOG=off leaves it unchanged', async () => {
  const database = await newDatabase({ hasDemo: true })
  const first = await start(database)
  await get(first, { path: '/v1/pay/cycles' })
  expect(await first.stop()).toMatchObject({ code: 0 })

  const second = await serve({ ...database, MIDMONTH_REQUEST_LOG: 'off' })
  await get(second, { path: '/v1/pay/runs' })
  await second.stop()

  const third = await serve(database)
  const answer = await get(third, { path: '/v1/requests' })
  const { requests } = (await answer.json()) as { requests: { route: string }[] }
  expect(requests.map(({ route }) => route)).toEqual(['/v1/pay/cycles'])
})

test('with DATABASE_URL the key is shown once, and later starts say how to create another; a piped log is JSON, without withdrawals', async () => {
  const database = await newDatabase({ migrated: false })
  const first = await start(database)
  expect(first.stdout).toContain('Save the test key now.')
  await vi.waitFor(async () => expect(await tamper(database, dueJobs)).toEqual([]), { timeout: 45_000 })
  const { stdout: printed, stderr } = await first.stop()
  const messages = stderr
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).msg)
  expect(messages).toEqual([
    'creating and updating tables',
    expect.stringContaining('Server listening'),
    'adding demo data',
    'stopping',
  ])
  expect(printed.trimEnd().split('\n').at(-1)).toContain('Your data is in the database at DATABASE_URL')

  const second = await start(database)
  expect(second.key).toBe('')
  const [, command = ''] = /midmonth -- (key create par_\S+)/.exec(second.stdout) ?? []
  const { stdout } = await midmonth([...command.split(' '), '--json'], database)
  expect((await get(second, { key: JSON.parse(stdout).secret })).status).toBe(200)
})

const noPublicUrl = /^midmonth: MIDMONTH_PUBLIC_URL must be set in live mode/

test('a live start needs the address that people use, seeds nothing, says how to create the first partner, and is refused on a sandbox database', async () => {
  const database = await newDatabase()
  const settings = await liveSettings()
  const unreachable = { ...database, ...settings, MIDMONTH_PUBLIC_URL: '' }
  expect(await midmonth(['start'], unreachable)).toMatchObject({ code: 2, stderr: expect.stringMatching(noPublicUrl) })
  const live = await start({ ...database, ...settings })
  expect(live.stdout).toContain('midmonth -- partner create')
  expect(live.key).toBe('')
  await live.stop()
  const { stdout } = await midmonth(['partner', 'list', '--json'], database)
  expect(JSON.parse(stdout)).toEqual([])

  const sandbox = await newDatabase()
  expect(await midmonth(['partner', 'create', 'Acme'], sandbox)).toMatchObject({ code: 0 })
  const [refused, refusedToo] = await Promise.all([
    midmonth(['start'], { ...database, PORT: '0', MIDMONTH_MODE: 'sandbox' }),
    midmonth(['start'], { ...sandbox, ...settings }),
  ])
  for (const { code, stdout } of [refused, refusedToo]) expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^midmonth: This is a live database.*MIDMONTH_MODE=live/)
  expect(refusedToo.stderr).toMatch(/^midmonth: This is a sandbox database.*MIDMONTH_MODE=sandbox/)
})

test('a start, a command and the doctor refuse a database with another installation key, and a start does not create one', async () => {
  const database = await newDatabase()
  const file = `${newDataDir()}-key/installation.key`
  const missing = { ...database, MIDMONTH_INSTALLATION_KEY: '', MIDMONTH_INSTALLATION_KEY_FILE: file }
  const other = { ...database, MIDMONTH_INSTALLATION_KEY: Buffer.alloc(32, 'another').toString('base64') }
  const needs =
    /^midmonth: This database needs the installation’s key [0-9a-f]{16}, but (.+?); restore that key from its backup/
  for (const [settings, found] of [
    [missing, `${file} does not exist`],
    [other, expect.stringMatching(/^MIDMONTH_INSTALLATION_KEY holds the key [0-9a-f]{16}$/)],
  ] as const) {
    for (const command of [['start'], ['migrate'], ['partner', 'list']]) {
      const { code, stderr } = await midmonth(command, settings)
      expect([command, code, needs.exec(stderr)?.[1]]).toEqual([command, 2, found])
    }
    const { stdout } = await midmonth(['doctor'], settings)
    expect(stdout).toMatch(/^missing +key +This database needs the installation’s key/m)
  }
  await expect(readdir(path.dirname(file))).rejects.toThrow('ENOENT')
})

test('a start that fails says why in one sentence', async () => {
  const database = await newDatabase({ hasDemo: true })
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const empty = await newDatabase({ migrated: false })
  const refusals = await Promise.all([
    midmonth(['start'], { ...database, PORT: String(port) }),
    midmonth(['start', '--api'], { ...empty, PORT: '0' }),
    midmonth(['start'], { DATABASE_URL: 'postgres://midmonth:secret@127.0.0.1:1/midmonth' }),
    // Refused before a process is set up.
    midmonthHere(['start'], { PORT: '99999', DATABASE_URL: 'mysql://root:secret@db' }),
    midmonthHere(['start'], { MIDMONTH_MOD: 'live' }),
  ])
  other.close()
  expect(refusals.map(({ code, stderr }) => [code, stderr.trim()])).toEqual([
    [1, `midmonth: The port ${port} of 127.0.0.1 is in use: set PORT to another port, or to 0 for any free port`],
    [
      1,
      expect.stringMatching(
        /^midmonth: The database schema is out of date; run midmonth migrate \(pending: 0001_.*\)$/,
      ),
    ],
    [1, 'midmonth: Cannot use the database at DATABASE_URL: connect ECONNREFUSED 127.0.0.1:1'],
    [
      2,
      'midmonth: PORT must be a whole number from 0 to 65535; DATABASE_URL must be like postgres://midmonth@db.internal/midmonth',
    ],
    [2, 'midmonth: MIDMONTH_MOD is not a known setting; see docs/reference/settings.md'],
  ])
})

function paste(curl: string): { withdrawalIntentId: string } {
  return JSON.parse(execFileSync('sh', ['-c', curl], { encoding: 'utf8' }))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process exited together with an earlier one.
  }
}

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
  newDatabase,
  newDataDir,
  openwage,
  openwageHere,
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
  const settings = { OPENWAGE_DATA_DIR: newDataDir(), OPENWAGE_INSTALLATION_KEY: '' }
  // Concurrently: exactly one must start PostgreSQL, one must migrate, one must make the installation's key and one must seed.
  const [one, other] = await Promise.all([start(settings), start(settings)])
  expect(other.key).toBe(one.key)
  for (const { stdout } of [one, other])
    expect(stdout).toContain(`${settings.OPENWAGE_DATA_DIR}-key/installation.key (back it up apart from the data)`)
  expect(await readdir(`${settings.OPENWAGE_DATA_DIR}-key`)).toEqual(['installation.key'])
  const intent = paste(one.curl)
  expect(intent).toMatchObject({ netAmount: { amount: 4_900, currency: 'GBP' }, fee: { amount: 100, currency: 'GBP' } })
  expect(await one.stop()).toMatchObject({ code: 0 })
  const pathOf = ({ withdrawalIntentId }: typeof intent) => `/v1/pay/withdrawals/intent/${withdrawalIntentId}`
  expect((await get(other, { path: pathOf(intent) })).status).toBe(200)
  const { stdout } = await openwage(['partner', 'list', '--json'], settings)
  expect(JSON.parse(stdout)).toHaveLength(1)
  expect(await other.stop()).toMatchObject({ code: 0 })
  expect(processesNaming(settings.OPENWAGE_DATA_DIR)).toEqual([])

  const second = await start(settings)
  expect(second.key).toBe(one.key)
  const later = paste(second.curl)
  for (const { pid } of [second, ...processesNaming(settings.OPENWAGE_DATA_DIR)]) kill(pid)
  await second.ended
  await vi.waitFor(() => expect(processesNaming(settings.OPENWAGE_DATA_DIR)).toEqual([]), { timeout: 45_000 })

  const third = await start(settings)
  expect(third.key).toBe(one.key)
  for (const each of [intent, later]) expect((await get(third, { path: pathOf(each) })).status).toBe(200)
})

test('a stop writes the request log, and OPENWAGE_REQUEST_LOG=off leaves it as it is', async () => {
  const database = await newDatabase({ hasDemo: true })
  const first = await start(database)
  await get(first, { path: '/v1/pay/cycles' })
  expect(await first.stop()).toMatchObject({ code: 0 })

  const second = await serve({ ...database, OPENWAGE_REQUEST_LOG: 'off' })
  await get(second, { path: '/v1/pay/runs' })
  await second.stop()

  const third = await serve(database)
  const answer = await get(third, { path: '/v1/requests' })
  const { requests } = (await answer.json()) as { requests: { route: string }[] }
  expect(requests.map(({ route }) => route)).toEqual(['/v1/pay/cycles'])
})

test('with DATABASE_URL the key is shown once, and later starts say how to create another; a piped log is JSON, without a line per withdrawal', async () => {
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
  const [, command = ''] = /openwage -- (key create par_\S+)/.exec(second.stdout) ?? []
  const { stdout } = await openwage([...command.split(' '), '--json'], database)
  expect((await get(second, { key: JSON.parse(stdout).key })).status).toBe(200)
})

const noPublicUrl = /^openwage: OPENWAGE_PUBLIC_URL must be set in live mode/

test('a live start needs the address that people use, seeds nothing, says how to create the first partner, and is refused on a sandbox database', async () => {
  const database = await newDatabase()
  const settings = await liveSettings()
  const unreachable = { ...database, ...settings, OPENWAGE_PUBLIC_URL: '' }
  expect(await openwage(['start'], unreachable)).toMatchObject({ code: 2, stderr: expect.stringMatching(noPublicUrl) })
  const live = await start({ ...database, ...settings })
  expect(live.stdout).toContain('openwage -- partner create')
  expect(live.key).toBe('')
  await live.stop()
  const { stdout } = await openwage(['partner', 'list', '--json'], database)
  expect(JSON.parse(stdout)).toEqual([])

  const sandbox = await newDatabase()
  expect(await openwage(['partner', 'create', 'Acme'], sandbox)).toMatchObject({ code: 0 })
  const [refused, refusedToo] = await Promise.all([
    openwage(['start'], { ...database, PORT: '0', OPENWAGE_MODE: 'sandbox' }),
    openwage(['start'], { ...sandbox, ...settings }),
  ])
  for (const { code, stdout } of [refused, refusedToo]) expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(refused.stderr).toMatch(/^openwage: This is a live database.*OPENWAGE_MODE=live/)
  expect(refusedToo.stderr).toMatch(/^openwage: This is a sandbox database.*OPENWAGE_MODE=sandbox/)
})

test('a start, a command and the doctor refuse a database whose installation’s key is another, and a start makes no new one', async () => {
  const database = await newDatabase()
  const file = `${newDataDir()}-key/installation.key`
  const missing = { ...database, OPENWAGE_INSTALLATION_KEY: '', OPENWAGE_INSTALLATION_KEY_FILE: file }
  const other = { ...database, OPENWAGE_INSTALLATION_KEY: Buffer.alloc(32, 'another').toString('base64') }
  const needs =
    /^openwage: This database needs the installation’s key [0-9a-f]{16}, but (.+?); restore that key from its backup/
  for (const [settings, found] of [
    [missing, `${file} does not exist`],
    [other, expect.stringMatching(/^OPENWAGE_INSTALLATION_KEY holds the key [0-9a-f]{16}$/)],
  ] as const) {
    for (const command of [['start'], ['migrate'], ['partner', 'list']]) {
      const { code, stderr } = await openwage(command, settings)
      expect([command, code, needs.exec(stderr)?.[1]]).toEqual([command, 2, found])
    }
    const { stdout } = await openwage(['doctor'], settings)
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
    openwage(['start'], { ...database, PORT: String(port) }),
    openwage(['start', '--api'], { ...empty, PORT: '0' }),
    openwage(['start'], { DATABASE_URL: 'postgres://openwage:secret@127.0.0.1:1/openwage' }),
    // Refused before anything of a process is set up.
    openwageHere(['start'], { PORT: '99999', DATABASE_URL: 'mysql://root:secret@db' }),
    openwageHere(['start'], { OPENWAGE_MOD: 'live' }),
  ])
  other.close()
  expect(refusals.map(({ code, stderr }) => [code, stderr.trim()])).toEqual([
    [1, `openwage: The port ${port} of 127.0.0.1 is in use: set PORT to another one, or to 0 for any that is free`],
    [
      1,
      expect.stringMatching(
        /^openwage: The database schema is out of date; run openwage migrate \(pending: 0001_.*\)$/,
      ),
    ],
    [1, 'openwage: Cannot use the database at DATABASE_URL: connect ECONNREFUSED 127.0.0.1:1'],
    [
      2,
      'openwage: PORT must be a whole number from 0 to 65535; DATABASE_URL must be like postgres://openwage@db.internal/openwage',
    ],
    [2, 'openwage: OPENWAGE_MOD is not a known setting; see docs/reference/settings.md'],
  ])
})

function paste(curl: string): { withdrawalIntentId: string } {
  return JSON.parse(execFileSync('sh', ['-c', curl], { encoding: 'utf8' }))
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It exited together with an earlier one.
  }
}

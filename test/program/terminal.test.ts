import { afterEach, expect, test, vi } from 'vitest'
import { newDatabase, newDataDir, processesNaming, start, tamper, tidyUp } from './program.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(async () => {
  closeTerminals()
  await tidyUp()
})

const bannerEnd = 'Press Ctrl-C to stop.'

test('a first start on a terminal shows its steps and then the banner, with no log lines after it', async () => {
  const database = await newDatabase({ migrated: false })
  const terminal = inTerminal(['start'], { ...database, PORT: '0' })
  await terminal.says(bannerEnd)
  await vi.waitFor(async () => expect(await tamper(database, dueJobs)).toEqual([]), { timeout: 20_000 })
  const steps = ['creating and updating tables', 'adding demo data', 'Openwage is running']
  const places = steps.map(step => terminal.screen().indexOf(step))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
  expect(terminal.screen().trimEnd().endsWith(bannerEnd)).toBe(true)
  expect(terminal.screen()).not.toContain('{"level"')
})

test('a first start shows that it creates the database, and Ctrl-C shows where the data is', async () => {
  const dataDir = newDataDir()
  const terminal = inTerminal(['start'], { OPENWAGE_DATA_DIR: dataDir, PORT: '0' })
  await terminal.says('creating the database')
  await terminal.says(bannerEnd)
  terminal.pressCtrlC()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen().trimEnd().split('\n').at(-1)).toBe(
    `Openwage has stopped. Your data is in ${dataDir}; npm start picks up from there.`,
  )
  expect(processesNaming(dataDir)).toEqual([])
})

test('a terminal shows each request as a readable line', async () => {
  const terminal = inTerminal(['start'], { ...(await newDatabase({ hasDemo: true })), PORT: '0' })
  await terminal.says(bannerEnd)
  const [, address] = /API +(http\S+)/.exec(terminal.screen()) ?? []
  await fetch(`${address}/livez`)
  await vi.waitFor(() => expect(terminal.screen()).toMatch(/\[\d\d:\d\d:\d\d\] INFO: GET \/livez 200 in [\d.]+ ms/))
})

test('the piped log of a first start is JSON, without a line per withdrawal', async () => {
  const database = await newDatabase()
  const service = await start(database)
  await vi.waitFor(async () => expect(await tamper(database, dueJobs)).toEqual([]), { timeout: 20_000 })
  const { stdout, stderr } = await service.stop()
  const messages = stderr
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).msg)
  expect(messages).toEqual([expect.stringContaining('Server listening'), 'adding demo data', 'stopping'])
  expect(stdout.trimEnd().split('\n').at(-1)).toContain('Your data is in the database at DATABASE_URL')
})

// The demo leaves no work for the worker, but the queue starts with a job per task.
const dueJobs = 'select id from graphile_worker.jobs where run_at <= now()'

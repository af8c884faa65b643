import { afterEach, expect, test, vi } from 'vitest'
import { newDatabase, newDataDir, processesNaming, start, tamper, tidyUp } from './program.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })
afterEach(async () => {
  closeTerminals()
  await tidyUp()
})

const greetingEnd = 'Ctrl-C stops it.'

test('a first start on a terminal tells its steps, then greets, and nothing buries the greeting', async () => {
  const database = await newDatabase({ migrated: false })
  const terminal = inTerminal(['start'], { ...database, PORT: '0' })
  await terminal.says(greetingEnd)
  await vi.waitFor(async () => expect(await tamper(database, dueJobs)).toEqual([]), { timeout: 20_000 })
  const steps = ['creating and updating tables', 'adding demo data', 'Openwage is running']
  const places = steps.map(step => terminal.screen().indexOf(step))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
  expect(terminal.screen().trimEnd().endsWith(greetingEnd)).toBe(true)
  expect(terminal.screen()).not.toContain('{"level"')
})

test('a first start makes the database as a step of its own, and Ctrl-C says where the data stays', async () => {
  const dataDir = newDataDir()
  const terminal = inTerminal(['start'], { OPENWAGE_DATA_DIR: dataDir, PORT: '0' })
  await terminal.says('creating the database')
  await terminal.says(greetingEnd)
  terminal.pressCtrlC()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen().trimEnd().split('\n').at(-1)).toBe(
    `Openwage has stopped; its data stays in ${dataDir}, and npm start continues there.`,
  )
  expect(processesNaming(dataDir)).toEqual([])
})

test('a request is a readable line on a terminal', async () => {
  const terminal = inTerminal(['start'], { ...(await newDatabase()), PORT: '0' })
  await terminal.says(greetingEnd)
  const [, address] = /API +(http\S+)/.exec(terminal.screen()) ?? []
  await fetch(`${address}/livez`)
  await vi.waitFor(() => expect(terminal.screen()).toMatch(/\[\d\d:\d\d:\d\d\] INFO: GET \/livez 200 in [\d.]+ ms/))
})

test('after a first start whose output is piped, the log has JSON and no line per withdrawal', async () => {
  const database = await newDatabase()
  const service = await start(database)
  await vi.waitFor(async () => expect(await tamper(database, dueJobs)).toEqual([]), { timeout: 20_000 })
  const { stdout, stderr } = await service.stop()
  const messages = stderr
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).msg)
  expect(messages).toEqual([expect.stringContaining('Server listening'), 'adding demo data', 'stopping'])
  expect(stdout.trimEnd().split('\n').at(-1)).toContain('its data stays in the database of DATABASE_URL')
})

// Of the demo's history the worker has nothing left to do; these jobs find that out.
const dueJobs = 'select id from graphile_worker.jobs where run_at <= now()'

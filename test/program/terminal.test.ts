import { afterEach, expect, test, vi } from 'vitest'
import { dueJobs, newDataDir, processesNaming, tamper, tidyUp } from './program.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(async () => {
  closeTerminals()
  await tidyUp()
})

const bannerEnd = 'Press Ctrl-C to stop.'

test('a first start on a terminal shows its steps, the banner, and each request as a readable line; Ctrl-C shows where the data is', async () => {
  const dataDir = newDataDir()
  const terminal = inTerminal(['start'], { MIDMONTH_DATA_DIR: dataDir, PORT: '0' })
  await terminal.says(bannerEnd)
  const steps = ['creating the database', 'creating and updating tables', 'adding demo data', 'Midmonth is running']
  const places = steps.map(step => terminal.screen().indexOf(step))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
  // The background tasks of a first start do not log lines after the banner.
  const [, socketDir = ''] = /psql -h (\S+)/.exec(terminal.screen()) ?? []
  await vi.waitFor(async () => expect(await tamper({ socketDir }, dueJobs)).toEqual([]), { timeout: 45_000 })
  expect(terminal.screen().trimEnd().endsWith(bannerEnd)).toBe(true)
  expect(terminal.screen()).not.toContain('{"level"')

  const [, address] = /API +(http\S+)/.exec(terminal.screen()) ?? []
  await fetch(`${address}/livez`)
  await vi.waitFor(() => expect(terminal.screen()).toMatch(/\[\d\d:\d\d:\d\d\] INFO: GET \/livez 200 in [\d.]+ ms/), {
    timeout: 15_000,
  })
  terminal.pressCtrlC()
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen().trimEnd().split('\n').at(-1)).toBe(
    `Midmonth has stopped. Your data is in ${dataDir}; npm start picks up from there.`,
  )
  expect(processesNaming(dataDir)).toEqual([])
})

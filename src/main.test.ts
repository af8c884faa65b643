import pino from 'pino'
import { expect, test } from 'vitest'
import { startHarness } from '../test/harness.ts'
import { readSettings } from './config.ts'
import { run } from './main.ts'

test.each([
  ['live', 1],
  ['sandbox', 0],
] as const)('a worker in %s mode warns %i times that no money leaves', async (mode, count) => {
  const { db, batchDb, pool, clock, stop } = await startHarness({ mode })
  const messages: string[] = []
  const log = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const running = await run(
    {
      ...{ db, batchDb, pool, ownerConnection: '', appRole: { name: '' } },
      ...{ dataDir: undefined, psqlHint: undefined, close: async () => undefined },
    },
    { settings: readSettings({ OPENWAGE_MODE: mode }), roles: { api: false, worker: true }, log, now: clock.now },
  )
  await running.stop()
  expect(messages.filter(message => message.includes('no money leaves'))).toHaveLength(count)
  await stop()
})

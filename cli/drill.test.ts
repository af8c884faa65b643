import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { drillCommand } from './drill.ts'

const program = fileURLToPath(new URL('../test/drills/failover/failover.ts', import.meta.url))

test.each(['five', '0', ''])(
  'a failover drill of "%s" rounds is refused, because it would find nothing',
  async rounds => {
    const failover = drillCommand.commands.find(each => each.name() === 'failover')
    failover?.exitOverride().configureOutput({ writeErr: () => undefined })
    await expect(drillCommand.parseAsync(['failover', '--rounds', rounds], { from: 'user' })).rejects.toThrow(
      'Use a whole number from 1',
    )
  },
)

test('the program of the failover drill refuses to run no rounds', () => {
  const { status, stderr } = spawnSync(process.execPath, [program, '--rounds', 'five'], { encoding: 'utf8' })
  expect(stderr).toContain('--rounds five: use a whole number from 1')
  expect(status).toBe(1)
})

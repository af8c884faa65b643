import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { installPackage, type Project } from '../../packages/sdk/test/project.fixture.ts'
import { newDatabase, type Served, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

let service: Served
let project: Project
beforeAll(async () => {
  project = await installPackage()
  service = await serve(await newDatabase({ hasDemo: true }))
})
afterAll(async () => {
  await project.remove()
  await tidyUp()
})

const guide = '../../docs/guides/sdk.md'

test.each([
  [
    guide,
    [
      /^£[\d.]+ to the account of Grace Adeyemi$/m,
      /^held$/m,
      /^before the crash \w+ false\nafter the restart \w+ true$/m,
      /^Please call us and say [0-9a-f-]{36}\.$/m,
      /^[1-9]$/m,
    ],
  ],
  // This page resets the sandbox, so it comes last.
  [
    '../../packages/sdk/README.md',
    [
      /^£767\.50 available$/m,
      /^£49\.00 arrives, the fee is £1\.00$/m,
      /^w_\w+ held$/m,
      /^pr_\w+ (Available|Scheduled) false$/m,
      /^At most £200\.00$/m,
      /^sam\.okafor@example\.com$/m,
      /^Completed$/m,
      /^sam\.okafor@example\.com Unchanged$/m,
      /^w_\w+ is paid$/m,
      /^204$/m,
      /^mem_\w+ £[\d.]+$/m,
      /^true 12\.30$/m,
    ],
  ],
])('the examples of %s run unchanged against a sandbox with its demo partner', async (page, lines) => {
  const text = await readFile(path.join(import.meta.dirname, page), 'utf8')
  const blocks = [...text.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code)
  expect(blocks.length).toBeGreaterThan(4)
  const file = path.join(project.folder, page === guide ? 'guide.mts' : 'readme.mts')
  await writeFile(file, blocks.join('\n'))
  await project.typecheck([file], ['--module', 'nodenext', '--types', 'node'])
  const env = { PATH: process.env.PATH, MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: project.folder, env })
  for (const line of lines) expect(stdout).toMatch(line)
})

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

// Reruns the tests of the rail and validates all requests, responses and notifications against the
// vendor's OpenAPI documents, which are not part of this repository: the first argument is their folder.
const documents = path.resolve(process.argv[2] ?? fileURLToPath(new URL('../../../shared/adyen', import.meta.url)))
const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-adyen-counts-'))
const counts = path.join(folder, 'counts.txt')
try {
  const { status } = spawnSync('npx', ['vitest', 'run', '--no-file-parallelism', 'src/payouts/channels/adyen'], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...process.env, ADYEN_DOCUMENTS: documents, ADYEN_COUNTS: counts },
    stdio: 'inherit',
  })
  assert.equal(status, 0, 'the tests of the rail fail')
  const sums = readFileSync(counts, 'utf8')
    .trim()
    .split('\n')
    .map(line => line.split(' ').map(Number))
    .reduce((sum, counted) => sum.map((each, index) => each + (counted[index] ?? 0)), [0, 0, 0])
  const [requests = 0, answers = 0, notifications = 0] = sums
  assert.ok(requests > 300 && answers > 200 && notifications > 200, 'too few messages were validated')
  console.log(`${requests} requests, ${answers} responses and ${notifications} notifications are valid`)
} finally {
  rmSync(folder, { recursive: true })
}

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startReceiver, verify } from '../receiver.ts'
import {
  baseEnvironment,
  newDatabase,
  openwage,
  runCommandsHere,
  type Served,
  serve,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 60_000 })

const checkout = fileURLToPath(new URL('../..', import.meta.url))

// One sandbox for all guides: none relies on what another leaves.
let database: Awaited<ReturnType<typeof newDatabase>>
let service: Served
beforeAll(async () => {
  database = await newDatabase({ hasDemo: true })
  service = await serve(database)
  const [partner] = JSON.parse((await openwage(['partner', 'list', '--json'], database)).stdout)
  // Without a hold the bank's answer need not be waited for.
  await openwage(['partner', 'set', partner.id, '--hold-seconds', '0'], database)
})
afterAll(tidyUp)

test('"Integrate in ten minutes" works as written: a paid withdrawal, which is returned, a failed one, a refusal, and the log', async () => {
  const printed = await follow('guides/integrate.md')
  for (const type of ['withdrawal.submitted', 'withdrawal.paid', 'withdrawal.failed'])
    expect(printed).toContain(`"type":"${type}"`)
  // What the guide says of Ada's money, and nothing else refused.
  expect(printed).toContain('{"available":{"amount":40000,"currency":"GBP"}')
  expect(codesIn(printed)).toEqual(['AmountAboveUpperLimit'])
  expect(printed).toContain('"errorCodes":["AmountAboveUpperLimit"]')
  expect(printed).toMatch(/"status":"returned"/)
})

test('"Run payroll’s side of a cycle" works as written: a pay run, its reversal, the deductions, a short settlement', async () => {
  const printed = await follow('guides/run-a-pay-cycle.md')
  expect(printed).toContain('{"status":"Available"}')
  expect(printed).toContain('"status":"Reverted"')
  expect(printed).toContain('member_id,worker_id,email,amount,currency,amount_decimal')
  expect(printed).toContain('"matched":9,"short":1,"over":0,"unknown":0')
  expect(printed).toContain('"carried":{"amount":2000,"currency":"GBP"}')
  expect(codesIn(printed)).toEqual([])
})

test('"Import members" works as written: the exported list changes nothing', async () => {
  const printed = await follow('guides/import-members.md')
  expect(printed).toMatch(/"plan":\{"invite":0,"update":0,"bringBack":0,"offboard":0,"unchanged":2\d\}/)
  expect(printed).toContain('"progress":{"type":"Completed"')
  expect(codesIn(printed)).toEqual([])
})

test('"Receive webhooks" works as written: a test, a withdrawal, a replay and a rotation, each signed', async () => {
  const receiver = await startReceiver()
  // As if the endpoint had been down until the reader came to the part about that.
  receiver.answerBy((response, { headers }) => response.writeHead('openwage-test' in headers ? 200 : 410).end())
  const substitutes = `
sleep() {
  until api "/v1/webhooks/$WEBHOOK/deliveries?types=withdrawal.paid" |
    grep -qE '"state":"(delivered|failed|skipped)","isTest":'$IS_TEST; do command sleep 0.1; done
  IS_TEST=false
}
# The first wait is for the test, the next one for the real event.
IS_TEST=true`
  const printed = await follow('guides/webhooks.md', { variables: { HOOK: receiver.url }, substitutes })
  const [secret = '', rotated = ''] = [...printed.matchAll(/"secret":"([^"]+)"/g)].map(([, secret = '']) => secret)
  expect(printed).toMatch(/"type":"withdrawal.paid","state":"delivered","isTest":true/)
  expect(printed).toContain('withdrawal.paid  evt_')
  expect(printed).toMatch(/"type":"withdrawal.paid","state":"(failed|skipped)","isTest":false/)
  expect(printed).toMatch(/{"count":[1-9],"lastEventId":"evt_\w+","hasMore":false}/)
  expect(printed).toMatch(/"status":"active"/)
  expect(codesIn(printed)).toEqual([])
  expect([secret, rotated].map(each => each.slice(0, 6))).toEqual(['whsec_', 'whsec_'])
  for (const request of receiver.received) verify(secret, request)
  await receiver.stop()
})

test('"Go live" works as written: one cent in live mode, approved by two people, exported, answered by the bank and paid', async () => {
  const guide = await readFile(path.join(checkout, 'docs/guides/go-live.md'), 'utf8')
  const folder = await mkdtemp(path.join(tmpdir(), 'openwage-guide-'))
  const rails = path.join(folder, 'rails.json')
  await writeFile(rails, /```json\n([\s\S]*?)```/.exec(guide)?.[1]?.replace(/,\s*"approval".*\n/, '\n') ?? '')
  const live = { ...(await newDatabase()), OPENWAGE_MODE: 'live', OPENWAGE_RAILS: rails }
  const { address, stop } = await serve(live)
  const env = { ...baseEnvironment, ...live, OPENWAGE_URL: address }
  const section = (title: string, next: string) => guide.slice(guide.indexOf(title), guide.indexOf(next))
  const substitutes = `
sleep() {
  if [ "$1" = 2 ]; then until api "/v1/pay/members/$MEMBER/balance" | grep -q '"available":{"amount":1,'; do command sleep 0.1; done
  else until npx openwage payouts list | grep -q bat_; do command sleep 0.1; done
  fi
}`
  const start = commandsOf(section('### Make the payment', '### After the cut-off'))
  const printed = await shell(`${substitutes}\n${start}\nset > variables`, { folder, env })
  expect(printed).toMatch(/bat_\w+ +sepa +\S+ +building +1 +0\.01 EUR/)
  // The worker's next minute, now.
  const runNow = async (task: string, until: string) => {
    await tamper(live, `select graphile_worker.add_job('${task}')`)
    await vi.waitFor(async () => expect(await tamper(live, until)).toHaveLength(1), { timeout: 20_000, interval: 100 })
  }
  await tamper(live, "update payout_batches set cut_off_at = now() - interval '1 second'")
  await runNow('send-payout-batches', 'select 1 from payout_batches where closed_at is not null')
  const [toImport, afterImport] = commandsOf(section('### After the cut-off', '## 10.')).split('sleep 60\n')
  const kept = `eval "$(grep -E '^(PARTNER|OPENWAGE_API_KEY)=' variables)"\n`
  const imported = await shell(kept + toImport, { folder, env })
  expect(imported).toContain('has 1 of 2 approvals; another person must approve it.')
  expect(imported).toContain('1 record imported.')
  await runNow('read-rail-reports', "select 1 from withdrawals where status = 'paid'")
  const after = await shell(kept + afterImport, { folder, env })
  expect(after).toMatch(/w_\w+.* paid/)
  expect(after).toContain('(none)')
  await stop()
  await rm(folder, { recursive: true })
  // A dozen commands and two shells, one after the other.
}, 180_000)

/** Runs the commands of a guide in one shell, as its reader does. */
async function follow(guide: string, { variables = {}, substitutes = '' } = {}): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'openwage-guide-'))
  const script = `${substitutes}\n${commandsOf(await readFile(path.join(checkout, 'docs', guide), 'utf8'))}`
  const address = { OPENWAGE_URL: service.address, OPENWAGE_API_KEY: service.key }
  try {
    return await shell(script, { folder, env: { ...baseEnvironment, ...database, ...address, ...variables } })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function shell(script: string, { folder, env }: { folder: string; env: NodeJS.ProcessEnv }): Promise<string> {
  const commands = await runCommandsHere()
  const whole = `${commands.npx}\n${commonSubstitutes}\n${script}`
  // The commands read and write files in their working directory, which is this process's.
  const checkoutDir = process.cwd()
  process.chdir(folder)
  try {
    const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', whole], { cwd: folder, env })
    expect(stderr).toBe('')
    return stdout
  } finally {
    process.chdir(checkoutDir)
    commands.stop()
  }
}

// Without the reader's part: starting the sandbox, and setting the two variables.
function commandsOf(guide: string): string {
  return [...guide.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)]
    .map(([, block = '']) => block)
    .filter(block => !block.includes('npm install'))
    .map(block => block.replace(/^export OPENWAGE_URL=.*\n/m, ''))
    .join('\n')
}

// Waits for the event that a guide's pause is for, not for the time.
const commonSubstitutes = `
sleep() {
  [ "$1" -gt 2 ] || { until api "/v1/requests?status=4xx" | grep -q errorCodes; do command sleep 0.1; done; return; }
  until api "/v1/events?after=$LAST" | grep -qE '"withdrawal.(paid|failed)"'; do command sleep 0.1; done
}`

function codesIn(printed: string): string[] {
  return [...printed.matchAll(/"code":"(\w+)"/g)].map(([, code = '']) => code)
}

import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startReceiver, verify } from '../servers/receiver.ts'
import {
  baseEnvironment,
  type Environment,
  midmonth,
  newDatabase,
  runCommandsHere,
  type Served,
  serve,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const checkout = fileURLToPath(new URL('../..', import.meta.url))

// One sandbox for all guides, which do not depend on each other's data.
let database: Awaited<ReturnType<typeof newDatabase>>
let service: Served
beforeAll(async () => {
  database = await newDatabase({ hasDemo: true })
  service = await serve(database)
  const [partner] = JSON.parse((await midmonth(['partner', 'list', '--json'], database)).stdout)
  // Without a hold, the test does not have to wait for the bank.
  await midmonth(['partner', 'set', partner.id, '--hold-seconds', '0'], database)
})
afterAll(tidyUp)

test('"Integrate in ten minutes" works as written: a paid withdrawal, which is returned, a failed one, a refusal, and the log', async () => {
  const printed = await follow('guides/integrate.md')
  for (const type of ['withdrawal.submitted', 'withdrawal.paid', 'withdrawal.failed'])
    expect(printed).toContain(`"type":"${type}"`)
  // Ada's amounts as stated in the guide, and no other refusal.
  expect(printed).toContain('{"available":{"amount":40000,"currency":"GBP"}')
  expect(codesIn(printed)).toEqual(['AmountAboveUpperLimit'])
  expect(printed).toContain('"errorCodes":["AmountAboveUpperLimit"]')
  expect(printed).toMatch(/"status":"returned"/)
})

test('"Run payroll’s side of a cycle" works as written: a pay run, its reversal, the deductions, a short settlement', async () => {
  const printed = await follow('guides/run-a-pay-cycle.md')
  expect(printed).toMatch(/\{"id":"pr_\w+","payCycleId":"pc_\w+","status":"Available"\}/)
  expect(printed).toContain('"status":"Reverted"')
  expect(printed).toContain('member_id,worker_id,email,amount_decimal,currency')
  expect(printed).toContain('"matched":9,"short":1,"over":0,"unknown":0')
  expect(printed).toContain('"carried":{"amount":2000,"currency":"GBP"}')
  expect(codesIn(printed)).toEqual([])
})

test('"Embed withdrawals" works as written: a session, a balance, a quote, a withdrawal, and the address of the hosted page', async () => {
  const printed = await follow('guides/embed.md')
  expect(printed).toContain('"available":{"amount":')
  expect(printed).toContain('"withdrawalIntentId":"wi_')
  expect(printed).toContain('"status":"held"')
  expect(printed).toMatch(/"url":"http:\/\/127\.0\.0\.1:\d+\/m#mms_test_/)
  expect(codesIn(printed)).toEqual([])
})

test('"Import members" works as written: the exported list changes nothing', async () => {
  const printed = await follow('guides/import-members.md')
  expect(printed).toMatch(/"plan":\{"invite":0,"update":0,"reinstate":0,"offboard":0,"unchanged":2\d\}/)
  expect(printed).toContain('"progress":{"type":"Completed"')
  expect(codesIn(printed)).toEqual([])
})

test('"Receive webhooks" works as written: a test, a withdrawal, a replay and a rotation, each signed', async () => {
  const receiver = await startReceiver()
  // As if the endpoint had been down until the reader reached the part about outages.
  receiver.answerBy((response, { headers }) => response.writeHead('midmonth-test' in headers ? 200 : 410).end())
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
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-guide-'))
  const rails = path.join(folder, 'rails.json')
  await writeFile(rails, /```json\n([\s\S]*?)```/.exec(guide)?.[1]?.replace(/,\s*"approval".*\n/, '\n') ?? '')
  const live = { ...(await newDatabase()), MIDMONTH_MODE: 'live', MIDMONTH_RAILS: rails }
  const { address, stop } = await serve(live)
  const env = { ...baseEnvironment, ...live, MIDMONTH_URL: address }
  const section = (title: string, next: string) => guide.slice(guide.indexOf(title), guide.indexOf(next))
  const substitutes = `
sleep() {
  if [ "$1" = 2 ]; then until api "/v1/pay/members/$MEMBER/balance" | grep -q '"available":{"amount":1,'; do command sleep 0.1; done
  else until midmonth payouts list | grep -q bat_; do command sleep 0.1; done
  fi
}`
  const start = commandsOf(section('### Make the payment', '### After the cut-off'))
  const printed = await shell(`${substitutes}\n${start}\nset > variables`, { folder, env })
  expect(printed).toMatch(/bat_\w+ +sepa +\S+ +building +1 +0\.01 EUR/)
  // Runs the worker's next round now.
  const runNow = async (task: string, until: string) => {
    await tamper(live, `select graphile_worker.add_job('${task}')`)
    await vi.waitFor(async () => expect(await tamper(live, until)).toHaveLength(1), { timeout: 45_000, interval: 100 })
  }
  await tamper(live, "update payout_batches set cut_off_at = now() - interval '1 second'")
  await runNow('send-payout-batches', 'select 1 from payout_batches where closed_at is not null')
  const [toImport, afterImport] = commandsOf(section('### After the cut-off', '## 10.')).split('sleep 60\n')
  const kept = `eval "$(grep -E '^(PARTNER|MIDMONTH_API_KEY)=' variables)"\n`
  const imported = await shell(kept + toImport, { folder, env })
  expect(imported).toContain('has 1 of 2 approvals; another person must approve it.')
  expect(imported).toContain('1 record imported.')
  await runNow('read-rail-reports', "select 1 from withdrawals where status = 'paid'")
  const after = await shell(kept + afterImport, { folder, env })
  expect(after).toMatch(/w_\w+.* paid/)
  expect(after).toContain('(none)')
  await stop()
  await rm(folder, { recursive: true })
  // A dozen commands and two shells run in sequence.
}, 180_000)

test('"Receive webhooks": the receiver handles an event once, and refuses a wrong signature', async () => {
  const guide = await readFile(path.join(checkout, 'docs/guides/webhooks.md'), 'utf8')
  const [receiver = ''] = blocksOf(guide, 'js')
  ran.add(receiver)
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-guide-'))
  await symlink(path.join(checkout, 'node_modules'), path.join(folder, 'node_modules'))
  // The reader's own part, and a free port instead of 3000.
  const readersPart = `
const seen = new Set()
const seenBefore = id => seen.has(id) || !seen.add(id)
const handle = event => console.log('handled ' + event.id)
`
  const onFreePort = receiver.replace(
    '}).listen(3000)',
    "}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })",
  )
  await writeFile(path.join(folder, 'receiver.mjs'), onFreePort + readersPart)
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
  const env = { ...baseEnvironment, MIDMONTH_WEBHOOK_SECRET: secret }
  const child = spawn(process.execPath, ['receiver.mjs'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const printed: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => printed.push(...text.trim().split('\n')))
  await vi.waitFor(() => expect(printed).toHaveLength(1), { timeout: 45_000, interval: 50 })
  const body = JSON.stringify({ id: 'evt_1', type: 'withdrawal.paid' })
  const sentAt = new Date()
  const signature = new Webhook(secret).sign('evt_1', sentAt, body)
  const post = async (signed: string) => {
    const timestamp = String(Math.floor(sentAt.getTime() / 1_000))
    const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': timestamp, 'webhook-signature': signed }
    return (await fetch(`http://127.0.0.1:${printed[0]}/midmonth`, { method: 'POST', headers, body })).status
  }
  expect([await post(signature), await post(signature), await post('v1,bm90IHRoZSBzaWduYXR1cmU=')]).toEqual([
    204, 204, 400,
  ])
  await vi.waitFor(() => expect(printed.slice(1)).toEqual(['handled evt_1']), { timeout: 15_000 })
  child.kill()
  await once(child, 'close')
  await rm(folder, { recursive: true })
})

// A developer's machine may not have Python.
const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('Skipped the Python examples: python3 is not installed')

test.runIf(hasPython)(
  '"Receive webhooks": the Python receiver accepts what we sign, and refuses anything else',
  async () => {
    const [receiver = ''] = blocksOf(await readFile(path.join(checkout, 'docs/guides/webhooks.md'), 'utf8'), 'python')
    // The reader's own part, and a free port instead of 3000.
    const readersPart =
      'seen_before = lambda id: False\nhandle = lambda event: print("handled", event["id"], flush=True)\n'
    const onFreePort = receiver.replace(
      'HTTPServer(("", 3000), Receiver).serve_forever()',
      'server = HTTPServer(("127.0.0.1", 0), Receiver)\nprint(server.server_port, flush=True)\nserver.serve_forever()',
    )
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
    const env = { ...baseEnvironment, MIDMONTH_WEBHOOK_SECRET: secret }
    const child = spawn('python3', ['-c', readersPart + onFreePort], { env, stdio: ['ignore', 'pipe', 'ignore'] })
    const printed: string[] = []
    child.stdout.setEncoding('utf8').on('data', (text: string) => printed.push(...text.trim().split('\n')))
    await vi.waitFor(() => expect(printed).toHaveLength(1), { timeout: 45_000, interval: 50 })
    const post = async (body: string, { age = 0 } = {}) => {
      const sentAt = new Date(Date.now() - age * 1_000)
      const headers = {
        'webhook-id': 'evt_1',
        'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1_000)),
        'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('evt_1', sentAt, '{"id":"evt_1"}')}`,
      }
      return (await fetch(`http://127.0.0.1:${printed[0]}/midmonth`, { method: 'POST', headers, body })).status
    }
    expect([
      await post('{"id":"evt_1"}'),
      await post('{"id":"evt_2"}'),
      await post('{"id":"evt_1"}', { age: 400 }),
    ]).toEqual([204, 400, 400])
    expect(printed.slice(1)).toEqual(['handled evt_1'])
    child.kill()
    await once(child, 'close')
  },
)

test.runIf(hasPython)(
  '"Other languages" works as written: a withdrawal sent twice, and every active member once',
  async () => {
    const blocks = blocksOf(await readFile(path.join(checkout, 'docs/guides/other-languages.md'), 'utf8'), 'python')
    const env = { ...baseEnvironment, MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
    const { stdout } = await promisify(execFile)('python3', ['-c', blocks.join('\n')], { env })
    const [first, ...members] = stdout.trim().split('\n')
    expect(first).toMatch(/^201 \/v1\/pay\/withdrawals\/w_\w+ true$/)
    const listed = await fetch(`${service.address}/v1/members?statuses=active&take=1000`, {
      headers: { 'x-api-key': service.key },
    })
    const { total } = (await listed.json()) as { total: number }
    expect(new Set(members).size).toBe(members.length)
    expect(members).toHaveLength(total)
  },
)

test('"Embed withdrawals": the server returns the token of a session to the page', async () => {
  const [server = ''] = blocksOf(await readFile(path.join(checkout, 'docs/guides/embed.md'), 'utf8'), 'js')
  ran.add(server)
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-guide-'))
  // The reader's own part, and a free port instead of 3000.
  const readersPart = 'const currentWorker = async () => ({ memberId: process.env.MEMBER })\n'
  const onFreePort = server.replace(
    '}).listen(3000)',
    "}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })",
  )
  await writeFile(path.join(folder, 'server.mjs'), onFreePort + readersPart)
  const listed = await fetch(`${service.address}/v1/members?emails=sam.okafor@example.com`, {
    headers: { 'x-api-key': service.key },
  })
  const env = {
    ...baseEnvironment,
    ...{ MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key },
    MEMBER: /mem_[0-9a-z]{26}/.exec(await listed.text())?.[0],
  }
  const child = spawn(process.execPath, ['server.mjs'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = await once(child.stdout.setEncoding('utf8'), 'data')
    const answer = await fetch(`http://127.0.0.1:${String(port).trim()}/`)
    expect([answer.status, await answer.text()]).toEqual([201, expect.stringMatching(/^mms_test_/)])
  } finally {
    child.kill()
    await once(child, 'close')
    await rm(folder, { recursive: true })
  }
})

test('"Go live" works as written up to the penny test: migrate, doctor, partner, float', async () => {
  const guide = await readFile(path.join(checkout, 'docs/guides/go-live.md'), 'utf8')
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-guide-'))
  const rails = path.join(folder, 'rails.json')
  const [file = ''] = blocksOf(guide, 'json')
  await writeFile(rails, file)
  const database = await newDatabase({ migrated: false })
  const values: Record<string, string> = {
    'postgres://midmonth_app:…@db.internal/midmonth': database.DATABASE_URL,
    'postgres://midmonth_owner:…@db.internal/midmonth': database.DATABASE_OWNER_URL,
    '/etc/midmonth/rails.json': rails,
  }
  const env: Environment = { ...database }
  const printed: string[] = []
  for (const block of blocksOf(guide.slice(0, guide.indexOf('### Make the payment')), 'sh')) {
    if (isListed(block)) continue
    printed.push(...(await runLines(block, { values, env })))
  }
  expect(printed.join('')).toMatch(/mm_live_\w+/)
  expect(env.MIDMONTH_RAILS).toBe(rails)
  await rm(folder, { recursive: true })
})

test('the commands of the pages for operators work as written', async () => {
  const [partner] = JSON.parse((await midmonth(['partner', 'list', '--json'], database)).stdout)
  await midmonth(['partner', 'pause', partner.id], database)
  const member = (await midmonth(['members', 'export', '-'], { ...database })).stdout
  const values: Record<string, string> = {
    'par_…': partner.id,
    'mem_…': /mem_[0-9a-z]{26}/.exec(member)?.[0] ?? 'mem_01kah4pzc5e4r8v2m6t0x9y3bd',
  }
  for (const page of ['operations/running.md', 'operations/audit.md', 'operations/commands.md']) {
    for (const block of blocksOf(await readFile(path.join(checkout, 'docs', page), 'utf8'), 'sh')) {
      if (isListed(block)) continue
      await runLines(block, { values, env: { ...database } })
    }
  }
})

test('the commands of the page about the installation’s key work as written: a move, and a key in escrow', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-keys-'))
  const env: Environment = { ...(await newDatabase({ hasDemo: true })) }
  const [newKey, escrow] = ['new-key.env', 'escrow.key'].map(name => path.join(folder, name))
  const moved = { MIDMONTH_INSTALLATION_KEY: Buffer.alloc(32, 'moved').toString('base64') }
  const lines = Object.entries(moved).map(each => each.join('='))
  await writeFile(newKey ?? '', lines.join('\n'), { mode: 0o600 })
  const [first] = JSON.parse((await midmonth(['installation-key', 'list', '--json'], env)).stdout)
  const values = { 'new-key.env': newKey ?? '', 'escrow.key': escrow ?? '', OLD_KEY: first.key }
  const printed: string[] = []
  for (const block of blocksOf(await readFile(path.join(checkout, 'docs/operations/keys.md'), 'utf8'), 'sh')) {
    if (isListed(block)) continue
    if (block.includes('OLD_KEY')) Object.assign(env, moved)
    printed.push(...(await runLines(block, { values, env })))
  }
  expect(printed.at(-1)).toMatch(/^The key [0-9a-f]{16} \(.*escrow.key\) opens this database: .* Nothing was changed/)
  const others = JSON.parse((await midmonth(['installation-key', 'list', '--json'], env)).stdout)
  expect(others.map((each: { key: string }) => each.key)).not.toContain(first.key)
  expect(others).toHaveLength(2)
  await rm(folder, { recursive: true })
})

test('"Make anything happen in a sandbox" works as written: the clock moves by three days and to the end of the cycle', async () => {
  const printed = await follow('guides/sandbox.md')
  const clocks = [...printed.matchAll(/^{"now":"([^"]+)","aheadSeconds":(\d+)/gm)]
  expect(clocks).toHaveLength(3)
  const ahead = clocks.map(([, , seconds]) => Number(seconds))
  expect(ahead[0]).toBe(0)
  expect(ahead[1]).toBe(3 * 86_400)
  expect(ahead[2]).toBeGreaterThan(3 * 86_400)
  expect(codesIn(printed)).toEqual([])
})

test('"The command line" works as written: a login, a withdrawal, and any operation', async () => {
  const printed = await follow('reference/cli.md', {
    progress: /^(Idempotency key: \S+|MIDMONTH_API_KEY is set.*|[a-z ]+ \S.*)$/,
  })
  expect(printed).toContain(`Logged in to ${service.address}`)
  expect(printed).toMatch(/^withdrawal +w_\w+\nstatus +held$/m)
  expect(printed).toContain('"email": "sam.okafor@example.com"')
  expect(printed).toContain('"free":')
})

test('"Personal data" works as written: a page with everything about one person', async () => {
  const listed = await fetch(`${service.address}/v1/members?take=1`, { headers: { 'x-api-key': service.key ?? '' } })
  const MEMBER = /mem_[0-9a-z]{26}/.exec(await listed.text())?.[0]
  expect(await follow('operations/privacy.md', { variables: { MEMBER } })).toBe('')
})

/** Blocks that a test cannot run, by first line, with the reason. */
const notRun: Record<string, string> = {
  'midmonth installation-key rotate --fingerprints':
    'Waits for minutes. src/members/rotate-fingerprints.test.ts runs it, without the waits.',
  'midmonth installation-key rotate':
    'Waits for a minute and a half, until every process has read the keys. src/sealing/rotation.test.ts rotates.',
  'midmonth operator create ada@example.com --name "Ada Lovelace"':
    'Asks for a password without echo. test/program/console.test.ts does both on a terminal.',
  'sudo ln -s "$PWD/cli/launch.mjs" /usr/local/bin/midmonth':
    'Writes outside of the checkout. test/program/launch.test.ts starts the program through a link.',
  'MIDMONTH_PUBLIC_URL=https://pay.example.com': 'Settings; src/users/settings.test.ts reads them.',
  'npm install && npm start': 'Installs and runs until it is stopped. test/smoke/smoke.ts does it in a fresh copy.',
  'curl -sS "$MIDMONTH_URL/openapi.json" -o openapi.json':
    'Downloads the generator. npm run languages does it, and reads responses with what it generates.',
  'export MIDMONTH_PUBLIC_URL=https://pay.example.com':
    'Runs until it is stopped. The crash test starts both roles as processes.',
  'export DATABASE_URL=postgres://midmonth_app:…@db.internal/midmonth MIDMONTH_MODE=live':
    'Runs until it is stopped. Its first command is run from the guide "Go live".',
  'install -m 600 /dev/null /etc/midmonth/adyen-api-key':
    'Writes outside of the checkout. test/program/adyen.test.ts pays with such files.',
  'pg_dump --format=custom --file=midmonth.dump "$DATABASE_OWNER_URL"':
    'The PostgreSQL of the tests has no pg_dump. test/program/restore.test.ts checks what a dump must preserve.',
  "pg_dump --format=custom --file=midmonth.dump --exclude-table-data=member_keys --exclude-table-data='member_import_*' \\":
    'The PostgreSQL of the tests has no pg_dump. npm run drills -- member-keys runs it.',
  'pg_restore --exit-on-error --no-owner --no-privileges --dbname="$NEW_DATABASE_OWNER_URL" midmonth.dump':
    'The PostgreSQL of the tests has no pg_restore. npm run drills -- member-keys runs it, but for the last command of the first.',
  'midmonth backup keys-lost          # says which members are meant, and changes nothing':
    'Needs members without keys. test/program/keys.test.ts runs both.',
  'midmonth backup list': 'Restores into an empty data folder. test/program/backup.test.ts does.',
  'midmonth drill restore --identity backup.key': 'Restores a server. npm run drills -- restore does.',
  'pgbackrest --stanza=midmonth stanza-create': 'Needs pgBackRest. npm run drills -- pgbackrest runs it.',
  'midmonth backup restored --until 2026-03-31T09:55:00Z':
    'Recomputes the books after a restore. src/payouts/books/restores.test.ts stops and resumes payouts.',
  'midmonth payouts outcome MM… --outcome paid --note "seen in the portal"':
    'Needs sent payments without an answer. test/program/payouts.test.ts runs both commands for such payments.',
  'midmonth status > /tmp/midmonth-status || mail -s "Midmonth needs attention" ops@example.com < /tmp/midmonth-status':
    'Sends mail. test/program/commands.test.ts checks the exit codes of status.',
  'apt-get install --no-install-recommends postgresql-common':
    'Installs on three machines. npm run drills -- failover runs the files of deploy/ha.',
  'systemctl restart patroni': 'Needs systemd and a cluster. npm run drills -- failover starts the same files.',
  'patronictl -c /etc/patroni/config.yml switchover':
    'Needs a cluster. npm run drills -- failover switches over; the other two commands are not tried.',
  'apt-get install --no-install-recommends postgresql etcd-server patroni haproxy iproute2':
    'Takes half an hour. npm run drills -- failover is the same.',
  'export MIDMONTH_NOTIFY_WEBHOOK_URL=https://alerts.example.com/midmonth MIDMONTH_NOTIFY_WEBHOOK_SECRET="whsec_$(openssl rand -base64 32)"':
    'Settings; src/notices/notices.test.ts reads them.',
  'mkdir /tmp/statements && MIDMONTH_TEST_STATEMENTS=/tmp/statements npm test':
    'Runs all tests. test/statements has tests of the check.',
  'node scripts/pin-images.ts': 'Needs an image registry. test/images.test.ts runs it against one of ours.',
  'npm install @opentelemetry/api@1.9 @opentelemetry/sdk-node @opentelemetry/exporter-trace-otlp-http':
    'Installs packages. src/tracing/tracing.test.ts traces with an SDK in memory.',
  '// /etc/midmonth/tracing/tracing.mjs': 'Needs the packages above.',
  "export MIDMONTH_TRACES=on NODE_OPTIONS='--import /etc/midmonth/tracing/tracing.mjs' OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318":
    'Needs the packages above.',
}

// Must be the last test, because the others record which blocks they run.
test('every block of shell, JavaScript or TypeScript in docs/ and the README is run by a test, or listed with a reason', async () => {
  const files = readdirSync(path.join(checkout, 'docs'), { recursive: true, encoding: 'utf8' })
  // test/program/sdk-guides.test.ts runs the blocks of the guide to the SDK.
  const pages = [
    ...files.filter(file => file.endsWith('.md') && file !== 'guides/sdk.md').map(file => `docs/${file}`),
    'README.md',
  ]
  const blocks = await Promise.all(
    pages.map(async page => blocksOf(await readFile(path.join(checkout, page), 'utf8'), languages)),
  )
  const all = blocks.flat()
  expect(all.length).toBeGreaterThan(60)
  expect(all.filter(block => !ran.has(block) && !isListed(block))).toEqual([])
  // The list must not contain a block that was removed or that a test runs.
  const listed = all.filter(isListed)
  expect([...new Set(listed.map(firstLine))].sort()).toEqual(Object.keys(notRun).sort())
  expect(listed.filter(block => ran.has(block))).toEqual([])
})

/** The blocks that the tests have run. */
const ran = new Set<string>()
const languages = 'sh|bash|js|javascript|ts|typescript'

function blocksOf(text: string, language: string): string[] {
  const fences = new RegExp(`^ *\`\`\`(?:${language})\\n([\\s\\S]*?)^ *\`\`\``, 'gm')
  return [...text.matchAll(fences)].map(([, block = '']) => block)
}

const firstLine = (block: string) => block.split('\n', 1)[0]?.trim() ?? ''
const isListed = (block: string) => firstLine(block) in notRun

/**
 * Runs a block of exports and midmonth commands in this process. Every command must succeed.
 * @param options.values the reader's values by placeholder; receives the id of a partner that the block creates
 * @param options.env receives the variables that the block exports
 * @returns the output of each command
 */
async function runLines(block: string, { values, env }: { values: Record<string, string>; env: Environment }) {
  ran.add(block)
  const printed: string[] = []
  for (const line of block.split('\n').filter(each => each.trim() !== '')) {
    const filled = Object.entries(values).reduce(
      (text, [placeholder, value]) => text.replaceAll(placeholder, value),
      line,
    )
    const words = (filled.replace(/ +# .*$/, '').match(/(?:[^\s"]|"[^"]*")+/g) ?? []).map(word =>
      word.replaceAll('"', ''),
    )
    const command = words.findIndex(word => !/^[A-Z_]+=|^export$/.test(word))
    const assigned = words.slice(0, command < 0 ? undefined : command).filter(word => word !== 'export')
    const settings = Object.fromEntries(assigned.map(word => [word.split('=', 1)[0], word.replace(/^[^=]*=/, '')]))
    if (words[0] === 'export') Object.assign(env, settings)
    else {
      const [program, ...args] = words.slice(command)
      expect(program, line).toBe('midmonth')
      const { code, stdout, stderr } = await midmonth(args, { ...env, ...settings })
      expect(stderr, line).toBe('')
      // These commands exit with 1 if they have findings.
      expect(/^(doctor|status)$/.test(args[0] ?? '') ? [0, 1] : [0], `${line}\n${stdout}`).toContain(code)
      const [created] = /par_[0-9a-z]{26}/.exec(stdout) ?? []
      if (created !== undefined) values['par_…'] ??= created
      printed.push(stdout)
    }
  }
  return printed
}

/** Runs the commands of a guide in one shell, like its reader. */
async function follow(guide: string, { variables = {}, substitutes = '', progress = /^$/ } = {}): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-guide-'))
  const script = `${substitutes}\n${commandsOf(await readFile(path.join(checkout, 'docs', guide), 'utf8'))}`
  const address = { MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
  try {
    const env = { ...baseEnvironment, XDG_CONFIG_HOME: folder, ...database, ...address, ...variables }
    return await shell(script, { folder, env, progress })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** @param options.progress matches the permitted lines of standard error; any other line is unexpected */
async function shell(
  script: string,
  { folder, env, progress = /^$/ }: { folder: string; env: NodeJS.ProcessEnv; progress?: RegExp },
): Promise<string> {
  const commands = await runCommandsHere()
  const whole = `${commands.midmonth}\n${commonSubstitutes}\n${script}`
  // The commands read and write files in their working directory, which is this process's.
  const checkoutDir = process.cwd()
  process.chdir(folder)
  try {
    const running = promisify(execFile)('bash', ['--norc', '-c', whole], { cwd: folder, env })
    running.child.stdin?.end()
    const { stdout, stderr } = await running
    expect(stderr.split('\n').filter(line => line !== '' && !progress.test(line))).toEqual([])
    return stdout
  } finally {
    process.chdir(checkoutDir)
    commands.stop()
  }
}

// Skips the reader's preparations: starting the sandbox and setting the two variables.
function commandsOf(guide: string): string {
  const blocks = blocksOf(guide, 'sh').filter(block => !isListed(block))
  for (const block of blocks) ran.add(block)
  return blocks.map(block => block.replace(/^export MIDMONTH_URL=.*\n/m, '')).join('\n')
}

// Instead of sleeping, waits for the event that a guide's pause is meant for.
const commonSubstitutes = `
# test/program/packages.test.ts installs the packages; here the address has to exist.
npm() { curl -fsS -o /dev/null "\${@: -1}"; }
sleep() {
  [ "$1" -gt 2 ] || { until api "/v1/requests?status=4xx" | grep -q errorCodes; do command sleep 0.1; done; return; }
  until api "/v1/events?after=$LAST" | grep -qE '"withdrawal.(paid|failed)"'; do command sleep 0.1; done
}`

function codesIn(printed: string): string[] {
  return [...printed.matchAll(/"code":"(\w+)"/g)].map(([, code = '']) => code)
}

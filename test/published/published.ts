import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Body, issueValidators, publishedOperations, withOddField } from './schemas.ts'

// Calls the published operations of a fresh sandbox over HTTP. Each success must match the published description with every
// object closed, and each error must match section 7 of the published page. Neither is part of this repository: the first
// argument is the folder with both.
const folder = process.argv[2] ?? fileURLToPath(new URL('../../../shared', import.meta.url))
const operations = publishedOperations(path.join(folder, 'published/openapi.json'))
const issues = issueValidators(path.join(folder, 'seed/partner-pay-api.md'))
assert.equal(operations.size, 20)
assert.equal(issues.size, 22)

type Request = { method: string; path: string; body?: unknown; headers?: Record<string, string> }
type Reply = { status: number; body: Body; headers: Headers }
// biome-ignore lint/suspicious/noExplicitAny: the operation's schema has validated the body, and a wrong field fails anyway.
type Checked = any

const seen = { successes: new Map<string, number>(), codes: new Map<string, number>() }
const checkout = fileURLToPath(new URL('../..', import.meta.url))
// PostgreSQL runs as another user who must be able to access the folder, so the service creates it.
const dataDir = path.join(tmpdir(), `midmonth-published-${randomBytes(6).toString('hex')}`)
const environment = {
  ...process.env,
  ...{
    MIDMONTH_DATA_DIR: dataDir,
    PORT: '0',
    MIDMONTH_HEALTH_PORT: '0',
    MIDMONTH_DRAIN_SECONDS: '0',
    MIDMONTH_DOCS: 'off',
  },
}
const service = spawn(process.execPath, ['cli/midmonth.ts', 'start'], {
  cwd: checkout,
  env: environment,
  stdio: ['ignore', 'pipe', 'ignore'],
})
try {
  const caller = await started()
  await driveMembers(caller)
  await drivePay(caller)
  await driveRefusals(caller)
  await driveTestValues(caller)
} finally {
  service.kill('SIGTERM')
  await once(service, 'exit')
  for (const folder of [dataDir, `${dataDir}-key`]) await rm(folder, { recursive: true, force: true })
}

const undriven = [...operations.keys()].filter(id => !seen.successes.has(id))
assert.deepEqual(undriven, [], 'operations that never succeeded')
const unseen = [...issues.keys()].filter(code => !seen.codes.has(code))
assert.deepEqual(unseen, [], 'codes that never occurred')
const sum = (counts: Map<string, number>) => [...counts.values()].reduce((total, count) => total + count, 0)
console.log(`${sum(seen.successes)} successes of ${operations.size} operations match the published description`)
console.log(`${sum(seen.codes)} issues of ${issues.size} codes match the published page`)

type Caller = { address: string; key: string }

async function driveMembers(caller: Caller): Promise<void> {
  const success = successOf(caller)
  const [tier] = await success('getTiers', { method: 'GET', path: '/v1/tiers' })
  const accountDetails = { accountHolder: 'Ada Njoku', sortCode: '089999', accountNumber: '66374958' }
  const bare = { email: 'bare@example.com', firstName: 'Ada', lastName: 'Njoku', tier: tier.name }
  const complete = {
    ...{ ...bare, email: 'complete@example.com', phone: '+447911123456', workerId: 'W-1', accountDetails },
    ...{ enablePayroll: true, dob: '1990-01-01', gender: 'NonBinary' },
  }
  const invited = []
  for (const body of [bare, complete])
    invited.push(await success('inviteMember', { method: 'POST', path: '/v1/members', body }))
  const [{ memberId }] = invited
  const member = { path: `/v1/members/${memberId}` }
  await success('getMember', { method: 'GET', ...member })
  for (const body of [
    complete,
    { ...complete, accountDetails: null, phone: null, dob: null, gender: null, workerId: null },
  ])
    await success('updateMember', { method: 'PATCH', ...member, body: { ...body, email: bare.email, workerId: null } })
  await success('removeMember', { method: 'DELETE', ...member })
  await success('removeMember', { method: 'DELETE', ...member })
  await success('getMember', { method: 'GET', ...member })
  await success('replaceMember', { method: 'PUT', ...member, body: bare })
  for (const query of ['', '?take=1&skip=1', '?statuses=active&statuses=invited', '?emails=unknown@example.com'])
    await success('getMembers', { method: 'GET', path: `/v1/members${query}` })

  const queued = await success('createJob', {
    ...{ method: 'POST', path: '/v1/members/jobs' },
    body: { actions: [{ type: 'Add', ...bare, email: 'job@example.com' }] },
  })
  const rows = `email,first_name,last_name,phone,tier\r\nfile@example.com,Sam,Okafor,,${tier.name}\r\n`
  const upload = { method: 'PUT', headers: { 'content-type': 'text/csv' }, body: rows }
  const jobs = [
    queued,
    await success('createJobFromCsv', { ...upload, path: '/v1/members/jobs/csv' }),
    await success('createJobFromCsvV2', { ...upload, path: '/v2/members/jobs/csv' }),
  ]
  for (const { jobId } of jobs) {
    const read = () => success('getJob', { method: 'GET', path: `/v1/members/jobs/${jobId}` })
    // The files omit all other members, so their jobs wait for a review, each for less than a second.
    let job = await read()
    for (let reads = 0; /NotReady|Processing/.test(job.progress.type) && reads < 500; reads++) job = await read()
    if (job.progress.type === 'AwaitingReview')
      await send(caller, { method: 'POST', path: `/v1/members/jobs/${jobId}/reject` })
    await read()
  }
}

async function drivePay(caller: Caller): Promise<void> {
  const success = successOf(caller)
  const { members } = await success('getMembers', { method: 'GET', path: '/v1/members?statuses=active&take=100' })
  const [{ memberId }] = members.filter(({ accountDetails }: Checked) => accountDetails !== null)
  const european = { email: 'mia@example.com', firstName: 'Mia', lastName: 'Schulz', tier: members[0].tier }
  const { memberId: other } = await success('inviteMember', {
    ...{ method: 'POST', path: '/v1/members' },
    body: { ...european, accountDetails: { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' } },
  })
  const balance = (id: string) => success('getMemberBalance', { method: 'GET', path: `/v1/pay/members/${id}/balance` })
  const { lowerLimit } = await balance(other)
  const money = { amount: lowerLimit.amount * 10, currency: lowerLimit.currency }
  const pay = async () => {
    const body = { payDetails: [memberId, other].map(id => ({ memberId: id, money })) }
    return await success('uploadPayRun', { method: 'POST', path: '/v1/pay/run', body })
  }
  assert.equal((await pay()).status, 'Available')
  await command('partner', 'set', partnerId(), '--grace-minutes', '10')
  assert.equal((await pay()).status, 'Scheduled')
  await command('partner', 'set', partnerId(), '--grace-minutes', '0')
  await balance(memberId)

  for (const id of [memberId, other]) {
    const body = { memberId: id, amount: lowerLimit }
    const { withdrawalIntentId } = await success('createWithdrawalIntent', {
      ...{ method: 'POST', path: '/v1/pay/withdrawals/intent', body },
    })
    const completing = { method: 'POST', path: '/v1/pay/withdrawals/complete', body: { withdrawalIntentId } }
    await success('completeWithdrawal', completing)
    await success('completeWithdrawal', completing)
    await success('getMemberWithdrawals', { method: 'GET', path: `/v1/pay/members/${id}/withdrawals` })
  }
  for (const query of ['', `?memberId=${memberId}`, '?take=1&skip=1', '?fromDate=2020-01-01T00:00:00Z'])
    await success('getWithdrawals', { method: 'GET', path: `/v1/pay/withdrawals${query}` })
  await send(caller, { method: 'POST', path: '/v1/sandbox/clock', body: { next: 'cycle_close' } })
  const { payCycles } = await success('getPayCycles', { method: 'GET', path: '/v1/pay/cycles' })
  await success('getPayCycles', { method: 'GET', path: '/v1/pay/cycles?statuses=Open' })
  for (const { id } of payCycles) {
    await success('getPayCycle', { method: 'GET', path: `/v1/pay/cycles/${id}` })
    const { deductions } = await success('getPayCycleDeductions', {
      ...{ method: 'GET', path: `/v1/pay/cycles/${id}/deductions` },
    })
    if (id === payCycles[1]?.id) assert(deductions.length > 0, 'the closed pay cycle has no deductions')
  }
}

/** Sends refused requests: no key, an unknown key, malformed ids, unknown ids, unknown fields and parameters. */
async function driveRefusals(caller: Caller): Promise<void> {
  const reads: [path: string, wrong: string, code: string][] = [
    ['/v1/members/mem_123', '/v1/members/123', 'MemberNotFound'],
    ['/v1/members/jobs/maj_123', '/v1/members/jobs/123', 'NotFound'],
    ['/v1/pay/members/mem_123/balance', '/v1/pay/members/123/balance', 'MemberNotFound'],
    ['/v1/pay/members/mem_123/withdrawals', '/v1/pay/members/123/withdrawals', 'MemberNotFound'],
    ['/v1/pay/cycles/pc_123', '/v1/pay/cycles/123', 'NotFound'],
    ['/v1/pay/cycles/pc_123/deductions', '/v1/pay/cycles/123/deductions', 'NotFound'],
  ]
  for (const [path, wrong, code] of reads) {
    await refusal(caller, { method: 'GET', path }, code)
    await refusal(caller, { method: 'GET', path: wrong }, 'PathValidation')
  }
  for (const path of ['/v1/members', '/v1/tiers', '/v1/pay/cycles', '/v1/pay/withdrawals']) {
    await refusal(caller, { method: 'GET', path, headers: { 'x-api-key': '' } }, 'HeaderValidation')
    await refusal(caller, { method: 'GET', path, headers: { 'x-api-key': 'mm_test_wrong' } }, 'HeaderValidation')
    await refusal(caller, { method: 'GET', path: `${path}?odd=1` }, 'QueryValidation')
  }
  for (const path of [
    '/v1/members',
    '/v1/members/jobs',
    '/v1/pay/run',
    '/v1/pay/withdrawals/intent',
    '/v1/pay/withdrawals/complete',
  ]) {
    await refusal(caller, { method: 'POST', path, body: { odd: 1 } }, 'BodyValidation')
    await refusal(caller, { method: 'POST', path, body: '{' }, 'BadRequest')
  }
  for (const version of ['v1', 'v2']) {
    const upload = { method: 'PUT', path: `/${version}/members/jobs/csv`, headers: { 'content-type': 'text/csv' } }
    await refusal(caller, { ...upload, body: 'email\r\n' }, 'FileContent')
  }
}

/** Provokes every error for which the sandbox lists a request; the requests that reach a transition must succeed. */
async function driveTestValues(caller: Caller): Promise<void> {
  const { body } = await send(caller, { method: 'GET', path: '/v1/sandbox/test-values' })
  const { values } = body as { values: { reaches: { code?: string; status?: number }; request: Request }[] }
  for (const { reaches, request } of values) {
    const { status } = await send(caller, request)
    if (reaches.code === undefined) assert(status < 300, `${request.method} ${request.path} is ${status}`)
    else assert.equal(status, reaches.status, `${request.method} ${request.path} does not reach ${reaches.code}`)
  }
}

/** Calls a published operation, which must succeed as described. */
function successOf(caller: Caller) {
  return async (id: string, request: Request): Promise<Checked> => {
    const { status, validate } = operations.get(id) ?? assert.fail(`${id} is not published`)
    const reply = await send(caller, request)
    const { body } = reply
    assert.equal(reply.status, status, `${id} is ${reply.status}: ${JSON.stringify(body)}`)
    assert(validate(body), `${id}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(body)}`)
    // A validator that accepts everything would prove nothing.
    const odd = seen.successes.has(id) ? [] : withOddField(body)
    for (const spoilt of odd) assert(!validate(spoilt), `${id} is not closed: ${JSON.stringify(spoilt)}`)
    count(seen.successes, id)
    return body
  }
}

async function refusal(caller: Caller, request: Request, code: string): Promise<void> {
  const { body } = await send(caller, request)
  const [issue] = (body as { issues?: { code: string }[] }).issues ?? []
  assert.equal(issue?.code, code, `${request.method} ${request.path} is ${JSON.stringify(body)}`)
}

/** Sends a request. An error must match section 7. */
async function send({ address, key }: Caller, { method, path, body, headers = {} }: Request): Promise<Reply> {
  const content = { 'content-type': 'application/json', ...headers }
  const response = await fetch(`${address}${path}`, {
    method,
    headers: { 'x-api-key': key, ...(body === undefined ? headers : content) },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const received: Body = await response.json()
  if (response.status >= 400) verifyIssues(received, `${method} ${path}`)
  return { status: response.status, body: received, headers: response.headers }
}

function verifyIssues(body: Body, request: string): void {
  const { issues: found, ...rest } = body as { issues: { code: string }[] }
  assert.deepEqual(rest, {}, `${request} responds with more than issues`)
  assert(found.length > 0, `${request} responds without an issue`)
  for (const issue of found) {
    const validate = issues.get(issue.code) ?? assert.fail(`${request} responds with the unknown code ${issue.code}`)
    assert(validate(issue), `${request}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(issue)}`)
    count(seen.codes, issue.code)
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** Waits until the service prints its address and the demo's key. */
async function started(): Promise<Caller> {
  let printed = ''
  for await (const chunk of service.stdout.setEncoding('utf8')) {
    printed += chunk
    if (printed.includes('Press Ctrl-C')) break
  }
  const [, address] = /API +(http\S+)/.exec(printed) ?? assert.fail(`The service did not start: ${printed}`)
  const [, key] = /Test key +(\S+)/.exec(printed) ?? []
  assert(address && key)
  return { address, key }
}

function command(...args: string[]): string {
  return execFileSync(process.execPath, ['cli/midmonth.ts', ...args], {
    cwd: checkout,
    env: environment,
    encoding: 'utf8',
  })
}

function partnerId(): string {
  return /par_\w+/.exec(command('partner', 'list'))?.[0] ?? assert.fail('The sandbox has no partner')
}

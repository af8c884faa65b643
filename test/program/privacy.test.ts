import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { fromBufferPromise } from 'yauzl'
import { type Receiver, startReceiver } from '../servers/receiver.ts'
import { midmonth, newDatabase, processesNaming, type Service, start, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

/** Values that occur nowhere else, one set for each way in. Found again in any spelling that the program might give them. */
const people = {
  api: {
    ...{
      email: 'Zebediah.Quux@canary-api.example',
      firstName: 'Zebediahapi',
      lastName: 'Quuxapi',
      phone: '+447700900117',
    },
    ...{ workerId: 'CANARY-API-1', dob: '1971-01-17', gender: 'NonBinary' },
    accountDetails: { accountHolder: 'Holder Canaryapi', sortCode: '089999', accountNumber: '66374958' },
  },
  euro: {
    ...{ email: 'ottilie@canary-euro.example', firstName: 'Ottilieeuro', lastName: 'Quuxeuro', phone: '+491701234567' },
    ...{ workerId: 'CANARY-EURO-1', dob: '1972-02-27' },
    accountDetails: { accountHolder: 'Holder Canaryeuro', iban: 'DE02120300000000202051' },
  },
  job: {
    ...{ email: 'job@canary-job.example', firstName: 'Jobfirst', lastName: 'Quuxjob', phone: '+447700900228' },
    ...{ workerId: 'CANARY-JOB-1', dob: '1973-03-13' },
    accountDetails: { accountHolder: 'Holder Canaryjob', sortCode: '107999', accountNumber: '88837491' },
  },
  file: {
    ...{ email: 'file@canary-file.example', firstName: 'Filefirst', lastName: 'Quuxfile', phone: '+447700900339' },
    ...{ workerId: 'CANARY-FILE-1', dob: '1974-04-14' },
    accountDetails: { accountHolder: 'Holder Canaryfile', iban: 'FR1420041010050500013M02606' },
  },
  // Named only by the bank: payers, payees and the words of entries.
  bank: {
    ...{ email: 'bank@canary-bank.example', firstName: 'Bankfirst', lastName: 'Quuxbank', phone: '+447700900447' },
    ...{ workerId: 'CANARY-BANK-1', dob: '1976-06-26' },
    accountDetails: { accountHolder: 'Holder Canarybank', iban: 'NL91ABNA0417164300' },
  },
  refused: {
    ...{ email: 'refused@canary-refused', firstName: 'Refusedfirst', lastName: 'Quuxrefused', phone: '+44 canary 77' },
    ...{ workerId: 'CANARY-REFUSED-1', dob: '2075-05-15' },
    accountDetails: { accountHolder: 'Holder Canaryrefused', sortCode: '089998', accountNumber: '12345678' },
  },
}
const canaries = Object.values(people).flatMap(({ accountDetails, ...person }) =>
  Object.entries({ ...person, ...accountDetails })
    // Too common to be found by chance only.
    .filter(([name]) => name !== 'gender' && name !== 'sortCode')
    .map(([, value]) => value),
)

/** The canaries in a text, in any case, also as bytes that PostgreSQL or JSON shows in hexadecimal or base64. */
function foundIn(text: string): string[] {
  const lower = text.toLowerCase()
  return canaries.filter(canary =>
    [canary, Buffer.from(canary).toString('hex'), encodeURIComponent(canary)].some(form =>
      lower.includes(form.toLowerCase()),
    ),
  )
}

const sepa = {
  ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', cutOff: '15:00', timeZone: 'Europe/Berlin' },
  debtors: { default: { name: 'Acme GmbH', iban: 'DE75512108001245126199' } },
}
const ownIban = 'DE75512108001245126199'

/** A bank's statement with money that fits nothing, whose payer and words name a person, and a payment to a member that came back. */
function statement(reference: string): string {
  const { email, firstName, lastName, phone, workerId, dob, accountDetails } = people.bank
  const words = [firstName, lastName, email, phone, workerId, dob, accountDetails.iban].join(' ')
  const party = (name: string) =>
    `<${name}><Pty><Nm>${accountDetails.accountHolder}</Nm></Pty></${name}><${name}Acct><Id><IBAN>${accountDetails.iban}</IBAN></Id></${name}Acct>`
  const entry = (number: number, kind: 'CRDT' | 'DBIT', id: string, more = '') =>
    `<Ntry><Amt Ccy="EUR">1${number}.00</Amt><CdtDbtInd>${kind}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-10</Dt></BookgDt>` +
    `<AcctSvcrRef>B${number}</AcctSvcrRef><NtryDtls><TxDtls><Refs><EndToEndId>${id}</EndToEndId></Refs><RltdPties>${party('Dbtr')}${party('Cdtr')}</RltdPties>` +
    `<RmtInf><Ustrd>${words}</Ustrd></RmtInf>${more}<AddtlTxInf>${words}</AddtlTxInf></TxDtls></NtryDtls><AddtlNtryInf>${words}</AddtlNtryInf></Ntry>`
  const returned = `<RtrInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>${words}</AddtlInf></RtrInf>`
  return (
    '<Document><BkToCstmrStmt><GrpHdr><MsgId>M1</MsgId><CreDtTm>2026-03-10T18:00:00Z</CreDtTm></GrpHdr>' +
    `<Stmt><Id>1</Id><Acct><Id><IBAN>${ownIban}</IBAN></Id></Acct>${entry(1, 'CRDT', 'NOTPROVIDED')}${entry(2, 'DBIT', 'INVOICE-1')}` +
    `${entry(3, 'CRDT', reference, returned)}</Stmt></BkToCstmrStmt></Document>`
  )
}

let folder: string
let bankFolder: string
let receiver: Receiver
let settings: { DATABASE_URL: string; DATABASE_OWNER_URL: string; MIDMONTH_RAILS: string }
let service: Service
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-privacy-'))
  receiver = await startReceiver()
  bankFolder = mkdtempSync(path.join(tmpdir(), 'midmonth-privacy-bank-'))
  const rails = path.join(bankFolder, 'rails.json')
  writeFileSync(rails, JSON.stringify({ rails: [sepa] }))
  settings = { ...(await newDatabase({ hasDemo: true })), MIDMONTH_RAILS: rails }
  service = await start({ ...settings, TMPDIR: folder, MIDMONTH_LOG_LEVEL: 'trace' })
  await live()
})
afterAll(async () => {
  await tidyUp()
  await receiver.stop()
  for (const each of [folder, bankFolder]) rmSync(each, { recursive: true })
})

type Options = { body?: object | string; type?: string; headers?: Record<string, string> }
async function call(method: string, route: string, { body, type = 'application/json', headers = {} }: Options = {}) {
  const send = () =>
    fetch(service.address + route, {
      method,
      headers: { 'x-api-key': service.key, ...headers, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
  // The service closes a connection whose body it refuses to read, perhaps just as the next request begins on it.
  const response = await send().catch(send)
  const text = await response.text()
  return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : text }
}
// biome-ignore lint/suspicious/noExplicitAny: a test that reads a wrong field fails anyway.
async function succeed(method: string, route: string, options: Options = {}): Promise<any> {
  const { status, text, body } = await call(method, route, options)
  expect(status, `${method} ${route}: ${text}`).toBeLessThan(300)
  return body
}

/** What happens to the people: they are invited, imported and changed, withdraw, and are refused in every way. */
async function live(): Promise<void> {
  await succeed('POST', '/v1/webhooks', { body: { url: receiver.url } })
  const ofApi = await succeed('POST', '/v1/members', {
    body: { ...people.api, tier: 'Bronze' },
    headers: { 'x-idempotency-key': 'invite-1' },
  })
  const ofEuro = await succeed('POST', '/v1/members', { body: { ...people.euro, tier: 'Silver EU' } })
  const { jobId } = await succeed('POST', '/v1/members/jobs', {
    body: { actions: [{ type: 'Add', ...people.job, tier: 'Bronze' }] },
  })
  const progress = async () => (await succeed('GET', `/v1/members/jobs/${jobId}`)).progress.type
  await vi.waitUntil(async () => (await progress()) === 'Completed', wait)
  await call('PUT', '/v2/members/jobs/csv', { body: fileOf([people.file]), type: 'text/csv' })
  for (const dryRun of ['', '?dryRun=true'])
    await call('PUT', `/v2/members/jobs/csv${dryRun}`, {
      body: fileOf([people.file, people.refused]),
      type: 'text/csv',
    })
  // Without a header, the first person takes its place.
  await call('PUT', '/v1/members/jobs/csv', { body: fileOf([people.file]).replace(/^.*\n/, ''), type: 'text/csv' })
  // They would offboard the demo's members, so they wait for review, and other jobs wait for them.
  for (const { id, progress } of (await succeed('GET', '/v1/members/jobs')).jobs)
    if (progress.type === 'AwaitingReview') await succeed('POST', `/v1/members/jobs/${id}/reject`)
  const { memberId } = ofApi
  for (const id of [memberId, ofEuro.memberId]) await call('POST', `/v1/members/${id}/activate`)
  const money = { amount: 60_000, currency: 'GBP' }
  await succeed('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money }] } })
  const intent = { body: { memberId, amount: { amount: 5_000, currency: 'GBP' } } }
  const { withdrawalIntentId } = await succeed('POST', '/v1/pay/withdrawals/intent', intent)
  await succeed('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  for (const accept of ['application/json', 'text/html'])
    await call('GET', `/v1/members/${memberId}/data-export`, { headers: { accept } })
  await refuse(memberId)
  const file = path.join(bankFolder, 'camt053.xml')
  writeFileSync(file, statement('MMABCDEFGHIJKLMN'))
  expect(await midmonth(['payouts', 'import', 'sepa', file, '--as', 'Ada'], settings)).toMatchObject({
    code: 0,
    stdout: '3 records imported.\n',
  })
  // Long enough for the bank and the webhooks of the sandbox.
  const paid = async () => receiver.bodies().some(({ type }) => type === 'withdrawal.paid')
  await call('POST', '/v1/sandbox/clock', { body: { by: 'PT12H' } })
  await vi.waitUntil(paid, wait)
}

const wait = { timeout: 60_000, interval: 100 }

async function refuse(memberId: string): Promise<void> {
  const { email, phone, accountDetails, firstName, lastName, workerId } = people.refused
  await call('POST', '/v1/members', { body: { ...people.refused, tier: 'Bronze' } })
  await call('POST', '/v1/members', { body: { ...people.api, tier: 'Bronze' } })
  await call('POST', '/v1/members', { body: { ...people.job, tier: email } })
  await call('PATCH', `/v1/members/${memberId}`, { body: { phone, accountDetails, [firstName]: 1 } })
  await call('POST', '/v1/members', { body: `{"email":"${email}","firstName":"${firstName}"` })
  await call('POST', '/v1/members', { body: email, type: `text/${firstName}` })
  for (const search of [email, people.api.email, people.api.lastName, workerId]) {
    const text = encodeURIComponent(search)
    for (const query of [`search=${text}`, `emails=${text}`, `workerIds=${text}`, `memberIds=${text}`, `${text}=1`])
      await call('GET', `/v1/members?${query}`)
    for (const method of ['GET', 'POST', 'DELETE']) await call(method, `/v1/members/${text}`)
    await call('GET', `/v1/${text}`)
    await call('GET', `/${text}`)
  }
  const payDetails = [{ memberId: people.api.email, money: { amount: 1, currency: people.api.lastName } }]
  await call('POST', '/v1/pay/run', { body: { payDetails } })
  // The database itself refuses a row, and its errors quote values.
  const { api } = people
  await tamper(settings, `alter table members add constraint broken check (last_name <> '${lastName}') not valid`)
  expect((await call('PATCH', `/v1/members/${memberId}`, { body: { phone: '+447700900111', lastName } })).status).toBe(
    500,
  )
  const action = { type: 'Update', memberId, phone: '+447700900111', firstName: api.firstName, lastName }
  await succeed('POST', '/v1/members/jobs', { body: { actions: [action] } })
  await vi.waitUntil(() => /steps of a member import failed/.test(service.log()), wait)
  await tamper(settings, 'alter table members drop constraint broken')
  const { firstName: ofFile } = people.file
  await tamper(
    settings,
    `alter table member_import_rows add constraint broken check (first_name <> '${ofFile}') not valid`,
  )
  const upload = { body: fileOf([people.file]), type: 'text/csv' }
  expect((await call('PUT', '/v2/members/jobs/csv', upload)).status).toBe(500)
  await tamper(settings, 'alter table member_import_rows drop constraint broken')
  // A task whose error quotes a value.
  await tamper(
    settings,
    `create function fail() returns trigger language plpgsql as $$ begin perform '${ofFile}'::date; end $$`,
  )
  await tamper(settings, 'create trigger fail before delete on operator_notices execute function fail()')
  await tamper(settings, `select graphile_worker.add_job('notify-operators')`)
  await vi.waitUntil(() => /"msg":"a task failed"/.test(service.log()), wait)
  await tamper(settings, 'drop function fail cascade')
  // An endpoint that sends back what it likes.
  receiver.answerWith(500, {}, 'no')
  await call('PATCH', `/v1/members/${memberId}`, { body: { gender: 'Female' } })
  receiver.answerWith(200)
}

function fileOf(rows: (typeof people)['file' | 'refused'][]): string {
  const header = 'email,first_name,last_name,phone,tier,worker_id,dob,account_holder,iban,sort_code,account_number'
  const lines = rows.map(({ accountDetails, ...row }) => {
    const { accountHolder, ...account } = accountDetails
    const [iban, sortCode, number] =
      'iban' in account ? [account.iban, '', ''] : ['', account.sortCode, account.accountNumber]
    const cells = [row.email, row.firstName, row.lastName, row.phone, 'Bronze', row.workerId, row.dob]
    return [...cells, accountHolder, iban, sortCode, number].join(',')
  })
  return `${[header, ...lines].join('\n')}\n`
}

test('the log has no personal data, even at its most talkative and with errors of the database', () => {
  expect(service.log()).toMatch(/"level":"error"/)
  expect(foundIn(service.log())).toEqual([])
})

test('webhooks carry no personal data', () => {
  expect(receiver.received.length).toBeGreaterThan(5)
  expect(foundIn(receiver.received.map(({ headers, body }) => JSON.stringify(headers) + body).join())).toEqual([])
})

test('no table holds personal data in plain form but the names of members and of rows of imports', async () => {
  const tables = await tamper(
    settings,
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where nspname in ('public', 'graphile_worker') and relkind = 'r'`,
  )
  const found = new Map<string, string[]>()
  for (const { name } of tables) {
    const [row] = await tamper(settings, `select string_agg(t::text, ' ') as text from ${name} t`)
    const canaries = foundIn(String(row?.text))
    if (canaries.length > 0) found.set(String(name), canaries)
  }
  expect([...found.keys()].toSorted()).toEqual(['member_import_rows', 'members'])
  const names = Object.values(people).flatMap(({ firstName, lastName }) => [firstName, lastName])
  expect([...found.values()].flat().filter(canary => !names.includes(canary))).toEqual([])
})

test('an operator reads what the bank wrote, which is sealed in the database', async () => {
  const { stdout } = await midmonth(['payouts', 'exceptions', 'list', '--json'], settings)
  expect(JSON.parse(stdout).exceptions).toHaveLength(3)
  expect(foundIn(stdout)).toContain(people.bank.accountDetails.iban)
})

test('neither process arguments nor the temporary folder nor printed status have personal data', async () => {
  const { pid } = service
  const processes = ['cmdline', 'environ'].map(name => readFileSync(`/proc/${pid}/${name}`, 'utf8'))
  expect(foundIn(processes.join() + JSON.stringify(processesNaming('midmonth')))).toEqual([])
  expect(readdirSync(folder, { recursive: true })).toEqual([])
  for (const args of [
    ['status', '--json'],
    ['doctor', '--json'],
    ['audit', '--json'],
  ]) {
    const { stdout, stderr } = await midmonth(args, settings)
    expect(foundIn(stdout + stderr), args.join(' ')).toEqual([])
  }
})

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function unzipped(file: string): Promise<Map<string, Buffer>> {
  const zip = await fromBufferPromise(readFileSync(file))
  const files = new Map<string, Buffer>()
  for await (const entry of zip.eachEntry())
    files.set(entry.fileName, await buffer(await zip.openReadStreamPromise(entry)))
  return files
}

/** Lets later connections find a replica, which the server of the tests lacks. */
async function imitateReplica(name: string): Promise<void> {
  await tamper(
    settings,
    `create schema imitated;
     grant usage on schema imitated to public;
     create view imitated.pg_stat_replication as
       select '${name}' as application_name, 'streaming' as state, 'sync' as sync_state, interval '2 s' as replay_lag, 0 as pid;
     grant select on imitated.pg_stat_replication to public;
     do $$ begin
       execute format('alter database %I set search_path = imitated, pg_catalog, public', current_database());
     end $$`,
  )
}

test('a bundle for support has what its manifest says, and neither personal data, names of partners nor secrets', async () => {
  const log = path.join(bankFolder, 'midmonth.log')
  const planted = { level: 'error', time: '2026-01-01T00:00:00Z', msg: 'planted', requestId: people.api.email }
  const err = {
    type: 'Error',
    message: people.euro.lastName,
    stack: `    at ${people.job.firstName} (/home/${people.file.email}/src/a.ts:1:2)`,
  }
  writeFileSync(
    log,
    `${service.log()}${people.bank.accountDetails.iban}\n${JSON.stringify({ ...planted, file: people.file.workerId, err })}\n`,
  )
  const file = path.join(bankFolder, 'support.zip')
  const secrets = {
    MIDMONTH_METRICS_TOKEN: 'a-token-that-occurs-nowhere-else',
    MIDMONTH_OIDC_CLIENT_SECRET: people.refused.email,
  }
  const [{ id: partnerId, name }] = JSON.parse((await midmonth(['partner', 'list', '--json'], settings)).stdout)
  const reason = 'a reason that occurs nowhere else'
  await midmonth(['partner', 'pause', partnerId, '--reason', reason], settings)
  const replica = 'db-2.example.com'
  await imitateReplica(replica)
  const { code, stdout, stderr } = await midmonth(['bundle', file, '--log', log, '--json'], { ...settings, ...secrets })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const manifest = JSON.parse(stdout)
  expect(manifest).toMatchObject({ missing: [], written: { file, sha256: hashOf(readFileSync(file)) } })
  expect(statSync(file).mode & 0o777).toBe(0o600)

  const files = await unzipped(file)
  expect([...files.keys()].toSorted()).toEqual([
    'database.json',
    'findings.json',
    'log.jsonl',
    'manifest.json',
    'metrics.txt',
    'program.json',
    'settings.json',
    'status.json',
    'tasks.json',
  ])
  for (const { name, bytes, sha256 } of manifest.files)
    expect([files.get(name)?.length, hashOf(files.get(name) ?? Buffer.of())], name).toEqual([bytes, sha256])
  const all = [...files.values()].join('\n')
  expect(foundIn(all)).toEqual([])
  expect(String(files.get('metrics.txt'))).toContain('replica_lag_seconds{replica="replica 1"} 2')
  for (const hidden of [...Object.values(secrets), name, reason, bankFolder, ownIban, replica])
    expect(all).not.toContain(hidden)
  expect(String(files.get('settings.json'))).toContain('"MIDMONTH_METRICS_TOKEN": {\n    "isSet": true\n  }')
  expect(String(files.get('status.json'))).toContain(`"subject": "${partnerId}"`)
  const lines = String(files.get('log.jsonl')).trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(50)
  expect(JSON.parse(lines.at(-1) ?? '')).toEqual({
    ...{
      level: 'error',
      time: '2026-01-01T00:00:00Z',
      msg: 'planted',
      err: { type: 'Error', stack: ['src/a.ts:1:2'] },
    },
  })
  // A file is never overwritten.
  expect((await midmonth(['bundle', file], settings)).code).toBe(1)
})

test('the operators’ and partners’ logs of requests, events and changes have no personal data', async () => {
  const { stdout } = await midmonth(['operator', 'key', 'create', 'Privacy', '--json'], settings)
  const key = /mmoperator_\w+/.exec(stdout)?.[0] ?? ''
  const texts = [
    (await call('GET', '/v1/requests?take=1000')).text,
    (await call('GET', '/v1/events?take=1000')).text,
    (await call('GET', '/operator/v1/audit-log?take=1000', { headers: { 'x-api-key': key } })).text,
  ]
  for (const text of texts) {
    expect(text.length).toBeGreaterThan(1_000)
    expect(foundIn(text)).toEqual([])
  }
})

test('the scan finds what is planted', () => {
  expect(foundIn(`x ${people.api.email.toUpperCase()} ${Buffer.from('Quuxjob').toString('hex')}`)).toEqual([
    people.api.email,
    'Quuxjob',
  ])
})

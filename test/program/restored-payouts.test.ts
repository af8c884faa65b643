import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { generateX25519Identity } from 'age-encryption'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { referenceOf as paymentReference } from '../../src/payouts/payments/reference.ts'
import { accountReport, readCreditTransfer, statusReport, transaction } from '../banks/iso20022.ts'
import {
  type Environment,
  installationIn,
  midmonthHere,
  midmonthProcess,
  type Service,
  start,
  tamper,
  tidyUp,
} from './program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

// What docs/operations/backups.md promises after a restore, from the files of a bank to its answers.

const iban = 'DE75512108001245126199'
const opening = 100_000n
// Restoring syncs a thousand files.
const memory = '/dev/shm'

let folder: string
let settings: Environment
beforeAll(async () => {
  folder = mkdtempSync(path.join(existsSync(memory) ? memory : tmpdir(), 'midmonth-restored-'))
  // PostgreSQL’s user must enter it.
  chmodSync(folder, 0o755)
  const identity = await generateX25519Identity()
  const sepa = {
    // Instant payments have a batch as soon as they are claimed, at any hour.
    ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', instant: true, cutOff: '15:00', timeZone: 'Europe/Berlin' },
    debtors: { default: { name: 'Acme GmbH', iban } },
    approval: { automatic: { paymentMax: 10_000, batchMax: 100_000, dayMax: 100_000 } },
    folder: path.join(folder, 'bank'),
  }
  settings = {
    ...(await installationIn(folder, identity)),
    MIDMONTH_RAILS: fileWith('rails.json', JSON.stringify({ rails: [sepa] })),
    MIDMONTH_APPROVAL_LOGINS: 'any',
  }
  fileWith('backup.key', `${identity}\n`)
})
afterAll(async () => {
  await tidyUp()
  rmSync(folder, { recursive: true, force: true })
})

function fileWith(name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

/** Runs a command on the installation’s database. */
async function done(...args: string[]) {
  const { code, stdout, stderr } = await midmonthProcess([...args, '--json'], settings)
  expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** A started service, as its operator and its partner use it. */
class Site {
  readonly service: Service
  readonly #operatorKey: string
  readonly #partnerKey: string

  constructor(service: Service, keys: { operator: string; partner: string }) {
    this.service = service
    this.#operatorKey = keys.operator
    this.#partnerKey = keys.partner
  }

  /** Runs a command in this process, which takes milliseconds. */
  async operate(...args: string[]) {
    const { code, stdout, stderr } = await this.refused(...args)
    expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  async refused(...args: string[]) {
    const remote = ['--url', this.service.address, '--json']
    return await midmonthHere([...args, ...remote], { MIDMONTH_OPERATOR_KEY: this.#operatorKey })
  }

  async call(route: string, sent?: object) {
    const response = await fetch(`${this.service.address}${route}`, {
      headers: { 'x-api-key': this.#partnerKey, 'content-type': 'application/json' },
      ...(sent === undefined ? {} : { method: 'POST', body: JSON.stringify(sent) }),
    })
    const text = await response.text()
    const body: Record<string, string> = JSON.parse(text)
    return { status: response.status, text, body, location: response.headers.get('location') ?? '' }
  }

  async addMember(name: string): Promise<string> {
    const accountDetails = { accountHolder: `${name} Schulz`, iban: 'DE89370400440532013000' }
    const email = `${name}@example.com`
    const member = { email, firstName: name, lastName: 'Schulz', tier: 'Silver', accountDetails }
    const { memberId = '' } = (await this.call('/v1/members', member)).body
    await this.pay(memberId, 5_000)
    return memberId
  }

  /** Sends a line of a pay run; a negative one corrects an earlier one. */
  async pay(memberId: string, amount: number): Promise<void> {
    const payDetails = [{ memberId, money: { amount, currency: 'EUR' } }]
    expect(await this.call('/v1/pay/run', { payDetails })).toMatchObject({ status: 201 })
  }

  /** The quote for all that a member has earned. */
  async quote(memberId: string) {
    return await this.call('/v1/pay/withdrawals/intent', { memberId, amount: { amount: 5_000, currency: 'EUR' } })
  }

  /** @returns the withdrawal’s id */
  async withdraw(memberId: string): Promise<string> {
    const { withdrawalIntentId } = await vi.waitFor(async () => {
      const quoted = await this.quote(memberId)
      expect(quoted).toMatchObject({ status: 201 })
      return quoted.body
    }, wait)
    const { location } = await this.call('/v1/pay/withdrawals/complete', { withdrawalIntentId })
    return path.basename(location)
  }

  async statusOf(withdrawalId: string): Promise<string> {
    return (await this.call(`/v1/pay/withdrawals/${withdrawalId}`)).body.status ?? 'unknown'
  }

  async batchOf(withdrawalId: string): Promise<string | undefined> {
    const [found] = await this.#query(`select batch_id from payouts where withdrawal_id = '${withdrawalId}'`)
    return (found?.batch_id as string | null | undefined) ?? undefined
  }

  /** Runs a task of the worker to its end. */
  async run(task: string): Promise<void> {
    await this.#query(`select graphile_worker.add_job('${task}', job_key => 'test')`)
    await vi.waitFor(
      async () => expect(await this.#query(`select from graphile_worker.jobs where key = 'test'`)).toEqual([]),
      wait,
    )
  }

  async #query(text: string) {
    const socketDir = /psql -h (\S+)/.exec(this.service.stdout)?.[1] ?? ''
    return await tamper({ socketDir }, text)
  }
}

const wait = { timeout: 45_000, interval: 50 }

/** The payments of each file that the bank has received. */
function received(): { messageId: string; references: string[] }[] {
  const outbox = path.join(folder, 'bank/outbox')
  return readdirSync(outbox)
    .filter(name => name.endsWith('.xml'))
    .map(name => {
      const { messageId, orders } = readCreditTransfer(readFileSync(path.join(outbox, name), 'utf8'), name)
      return { messageId, references: orders.map(({ reference }) => reference) }
    })
}

/** Answers every payment of the bank’s files that was not answered yet, as paid: by status reports, and in the statement of a day. */
function answer(files: { messageId: string; references: string[] }[]): string[] {
  const at = new Date()
  const bookedOn = at.toISOString().slice(0, 10)
  const entries = files
    .flatMap(({ references }) => references)
    .map(reference => ({
      ...{ bank: `B-${reference}`, amount: 5_000n, direction: 'DBIT' as const, bookedOn },
      details: transaction({ reference }),
    }))
  const closing = opening - 5_000n * BigInt(entries.length)
  const statement = { number: 1, opening, closing, day: bookedOn }
  const reports = files.map(({ messageId, references }) =>
    statusReport(
      { id: `STATUS-${messageId}`, at },
      { messageId },
      references.map(reference => ({ reference, status: 'ACSC' })),
    ),
  )
  return [
    ...reports,
    accountReport({ id: `STATEMENT-${at.getTime()}`, at }, { kind: 'camt.053', iban, entries, statement }),
  ].map((xml, index) => fileWith(`answer-${at.getTime()}-${index}.xml`, xml))
}

test('whatever was sent to the bank after the backup is paid once after a restore, and what was not is sent once', async () => {
  let service = await start(settings)
  const { key: operator } = await done('operator', 'key', 'create', 'remote')
  const keys = { operator, partner: '' }
  let site = new Site(service, keys)
  const terms = ['--auto-activate', '--grace-minutes', '0', '--hold-seconds', '0']
  const partner = await site.operate('partner', 'create', 'Acme', ...terms)
  const limits = ['--currency', 'EUR', '--fee', '0', '--lower-limit', '1', '--upper-limit', '10000']
  await site.operate('tier', 'set', partner.id, 'Silver', ...limits)
  await site.operate('float', 'fund', partner.id, 'EUR', `${opening}`, '--reference', 'opening')
  keys.partner = (await site.operate('key', 'create', partner.id)).secret
  site = new Site(service, keys)
  const [ada = '', ben = '', cleo = '', dora = '', erin = ''] = await Promise.all(
    ['Ada', 'Ben', 'Cleo', 'Dora', 'Erin'].map(name => site.addMember(name)),
  )
  /** @returns a withdrawal in a batch that takes no others */
  const claimed = async (memberId: string) => {
    const withdrawalId = await site.withdraw(memberId)
    await site.run('submit-withdrawals')
    await vi.waitFor(async () => expect(await site.batchOf(withdrawalId)).toBeDefined(), wait)
    await site.run('send-payout-batches')
    return withdrawalId
  }

  await site.operate('payouts', 'hold', 'sepa')
  const inBatch = await claimed(ada)
  const unsent = await claimed(ben)
  await done('backup', 'take')
  const unclaimed = await site.withdraw(dora)
  const at = new Date()

  // After the instant to which the database is restored.
  await site.operate('payouts', 'hold', (await site.batchOf(unsent)) ?? '')
  await site.operate('payouts', 'release', 'sepa')
  const lost = await claimed(cleo)
  const sendAll = async () => {
    for (const task of ['ask-about-withdrawals', 'submit-withdrawals', 'send-payout-batches']) await site.run(task)
  }
  const referenceOf = (withdrawalId: string) => paymentReference({ partnerId: partner.id, withdrawalId })
  const sent = () => received().flatMap(({ references }) => references)
  await sendAll()
  const before = [inBatch, unclaimed, lost].map(referenceOf).toSorted()
  await vi.waitFor(() => expect(sent().toSorted()).toEqual(before), wait)
  await service.stop()
  rmSync(settings.MIDMONTH_DATA_DIR ?? '', { recursive: true })

  await done('restore', '--identity', path.join(folder, 'backup.key'), '--at', at.toISOString())
  service = await start(settings)
  site = new Site(service, keys)
  expect(await site.statusOf(lost)).toBe('unknown')
  // The backup has the hold of the rail, which must not be what stops payouts.
  await site.operate('payouts', 'release', 'sepa')
  const late = await site.withdraw(erin)
  await sendAll()
  expect(await site.statusOf(unclaimed)).toBe('submitted')
  expect(sent().toSorted()).toEqual(before)

  for (const file of answer(received())) await site.operate('payouts', 'import', 'sepa', file)
  await site.run('read-rail-reports')
  const statuses = async () => await Promise.all([inBatch, unclaimed, unsent, late].map(id => site.statusOf(id)))
  expect(await statuses()).toEqual(['paid', 'paid', 'submitted', 'submitted'])
  const { exceptions } = await site.operate('payouts', 'exceptions', 'list')
  const [debit, status] = exceptions
  const unknown = { kind: 'unmatched', reference: referenceOf(lost), outcome: 'paid', withdrawalId: null }
  expect(exceptions).toMatchObject([
    { ...unknown, bookedOn: expect.any(String) },
    { ...unknown, bookedOn: null },
  ])
  const resume = ['payouts', 'resume', '--note', 'by the statement']
  expect((await site.refused(...resume)).stderr).toContain('2 payout exceptions since the restore are open')

  // Cleo has the money, which her balance still shows.
  await site.operate('partner', 'pause', partner.id)
  const refusal = async () => (await site.quote(cleo)).text
  expect(await refusal()).toContain('UnprocessableEntity')
  await site.pay(cleo, -5_000)
  await site.operate('partner', 'resume', partner.id)
  expect(await refusal()).toContain('MemberInsufficientFunds')
  const close = ['payouts', 'exceptions', 'close', '--note', 'paid before the restore', '--decision']
  await done(...close, 'ignore', status.id)
  for (const person of ['Ada', 'Grace'])
    await done(...close, 'write-off', debit.id, '--partner', partner.id, '--as', person)
  await site.operate(...resume)

  await sendAll()
  const after = [...before, referenceOf(unsent), referenceOf(late)].toSorted()
  await vi.waitFor(() => expect(sent().toSorted()).toEqual(after), wait)
  for (const file of answer(received())) await site.operate('payouts', 'import', 'sepa', file)
  await site.run('read-rail-reports')
  expect(await statuses()).toEqual(['paid', 'paid', 'paid', 'paid'])
  expect((await site.operate('payouts', 'exceptions', 'list')).exceptions).toEqual([])
  await sendAll()
  expect(sent().toSorted()).toEqual(after)
  await done('ledger', 'verify', '--all')
})

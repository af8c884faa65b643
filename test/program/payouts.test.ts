import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { lockByName } from '../../src/database/named-locks.ts'
import * as copies from '../../src/payouts/books/copies.ts'
import { fileRailsOf } from '../../src/payouts/channels/rail.ts'
import { writeStatusReport } from '../../src/payouts/formats/sepa/write-answers.ts'
import { readRails } from '../../src/rails.ts'
import type { TaskName } from '../../src/worker/task.ts'
import { accountReport } from '../banks/iso20022.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { type Environment, midmonth, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const account = { accountHolder: 'Acme GmbH', iban: 'DE75512108001245126199' }
const sepa = {
  name: 'sepa',
  type: 'sepa-file',
  currency: 'EUR',
  debtors: { default: { name: account.accountHolder, iban: account.iban } },
  cutOff: '15:00',
  timeZone: 'Europe/Berlin',
}

let harness: Harness
let folder: string
let settings: Environment & { MIDMONTH_RAILS: string }
beforeAll(async () => {
  harness = await startHarness({ bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated') })
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-payouts-'))
  settings = {
    ...harness.settings,
    MIDMONTH_RAILS: railsFile('rails.json', { rails: [sepa] }),
  }
})
afterAll(async () => {
  await tidyUp()
  rmSync(folder, { recursive: true })
  await harness.stop()
})

function railsFile(name: string, content: unknown): string {
  const file = path.join(folder, name)
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return file
}

async function json(args: string[]) {
  const { code, stdout, stderr } = await midmonth([...args, '--json'], settings)
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return JSON.parse(stdout)
}

const refusal = async (args: string[]) => (await midmonth(args, settings)).stderr

const withdraw = async (net: number) => (await harness.addWithdrawal({ currency: 'EUR', net })).id

test('by hand, two people approve a batch, it is exported, and the imported bank answer pays it', async () => {
  const { db, clock } = harness
  const [configured] = fileRailsOf(await readRails({ ...settings, MIDMONTH_MODE: 'sandbox' }))
  if (configured === undefined) throw new Error('The rail is missing')
  const run = (task: TaskName) => harness.runTask(task, { rails: [configured] })
  const [first, second, third] = [await withdraw(5_000), await withdraw(6_000), await withdraw(7_000)]
  clock.advance({ minutes: 1 })
  await run('submit-withdrawals')
  const [batch] = (await json(['payouts', 'list'])).batches
  expect(batch).toMatchObject({ rail: 'sepa', status: 'building', paymentCount: 3, total: { amount: 18_000 } })
  const { id } = batch
  expect(await refusal(['payouts', 'approve', id])).toMatch(/takes payments until 2026-03-10T14:00:00.000Z/)
  clock.advance({ days: 1 })
  await run('send-payout-batches')

  const status = await midmonth(['status'], settings)
  expect(status.stdout).toContain('! 1 batch waits for approval; see midmonth payouts list --status building')
  const approval = { person: expect.stringMatching(/^Ada /), login: expect.stringMatching(/^\d+@/) }
  expect(await json(['payouts', 'approve', id, '--as', 'Ada'])).toMatchObject({
    ...{ status: 'building', approvals: [approval], approvalsNeeded: 2 },
  })
  expect(await refusal(['payouts', 'export', id, '--folder', folder])).toMatch(/waiting for approval; only an approved/)
  await json(['payouts', 'remove', third, '--reason', 'Stopped on the phone'])
  // One login is one person, unless the installation says otherwise.
  expect(await refusal(['payouts', 'approve', id, '--as', 'Grace'])).toMatch(
    /from another login: \d+@.* has decided before/,
  )
  const shared = await midmonth(['payouts', 'approve', id, '--as', 'Grace', '--json'], {
    ...settings,
    MIDMONTH_APPROVAL_LOGINS: 'any',
  })
  expect(JSON.parse(shared.stdout)).toMatchObject({
    ...{ status: 'approved', approvals: [{}, {}], paymentCount: 2, total: { amount: 11_000, currency: 'EUR' } },
  })
  await json(['payouts', 'hold', id])
  expect(await refusal(['payouts', 'export', id, '--folder', folder])).toMatch(/approved, held; only an approved/)
  await json(['payouts', 'release', id])
  // After an export that wrote nothing, the batch can still be changed.
  expect(await refusal(['payouts', 'export', id, '--folder', path.join(folder, 'missing')])).toMatch(/was not sent/)
  expect(await json(['payouts', 'hold', 'sepa', '--as', 'Ada'])).toMatchObject({
    ...{ name: 'sepa', hold: { by: expect.stringMatching(/^Ada /) } },
  })
  expect(await refusal(['payouts', 'export', id, '--folder', folder])).toMatch(/The rail sepa is held/)
  expect(await json(['payouts', 'release', 'sepa', '--as', 'Bea'])).toMatchObject({ hold: null })

  await db.transaction().execute(async tx => {
    // What a concurrent export holds.
    await lockByName(tx, 'export of', id)
    expect(await refusal(['payouts', 'export', id, '--folder', folder])).toMatch(
      /Another command is exporting the batch/,
    )
  })
  const exported = await json(['payouts', 'export', id, '--folder', folder])
  const file = readFileSync(exported.path, 'utf8')
  // In real time, the day of the batch's cut-off is long past.
  expect(exported.valueDate > '2026-03-11').toBe(true)
  expect(file).toContain(exported.valueDate)
  const references = [
    (await harness.getWithdrawal(first)).paymentReference,
    (await harness.getWithdrawal(second)).paymentReference,
  ]
  for (const reference of references) expect(file).toContain(`<EndToEndId>${reference}</EndToEndId>`)
  expect(file).toContain('<CtrlSum>110.00</CtrlSum>')
  expect(file).not.toContain((await harness.getWithdrawal(third)).paymentReference)
  expect(statSync(exported.path).mode & 0o777).toBe(0o600)
  expect(await json(['payouts', 'show', id])).toMatchObject({
    ...{ status: 'sent', fileSha256: exported.sha256 },
    approvals: [{ person: expect.stringMatching(/^Ada \(.+@.+\)$/) }, { person: expect.stringMatching(/^Grace /) }],
  })

  const answers = Readable.from([
    { reference: references[0], amount: 5_000n, state: 'paid', reasonCode: null, reasonText: null } as const,
    { reference: references[1], amount: 6_100n, state: 'paid', reasonCode: null, reasonText: null } as const,
  ])
  const report = { messageId: 'BANK1', createdAt: clock.now(), bookedOn: '2026-03-11', batchMessageId: batch.messageId }
  const xml = await text(Readable.from(writeStatusReport({ ...report, currency: 'EUR', account, answers })))
  const answer = railsFile('pain002.xml', xml)
  expect(await json(['payouts', 'import', 'sepa', answer])).toMatchObject({ result: 'imported' })
  expect(await json(['payouts', 'import', 'sepa', answer])).toMatchObject({ result: 'repeated' })
  expect(await refusal(['payouts', 'import', 'sepa', railsFile('half.xml', xml.slice(0, -40))])).toMatch(
    /Nothing of the file was booked/,
  )
  await run('read-rail-reports')
  expect([
    (await harness.getWithdrawal(first)).status,
    (await harness.getWithdrawal(second)).status,
    (await harness.getWithdrawal(third)).status,
  ]).toEqual([...['paid', 'submitted', 'failed']])
  expect((await harness.getWithdrawal(third)).timeline.at(-1).reason).toBe('Stopped on the phone')

  const { exceptions } = await json(['payouts', 'exceptions', 'list'])
  expect(exceptions).toMatchObject([
    { kind: 'amount', reference: references[1], fileName: 'pain002.xml', withdrawalId: second },
  ])
  const close = ['payouts', 'exceptions', 'close', exceptions[0].id, '--note', 'The bank paid nothing', '--decision']
  expect(await refusal([...close, 'attach', '--reference', references[1]])).toMatch(/name the charge of 1.00 EUR/)
  // Two people approved the payment, so two must decide about it.
  const giveBack = [...close, 'give-back', '--as']
  expect(await json([...giveBack, 'Ada'])).toMatchObject({ closedAt: null, decision: null })
  expect(await refusal([...giveBack, 'Grace'])).toMatch(/from another login/)
  const confirmed = await midmonth([...giveBack, 'Grace'], { ...settings, MIDMONTH_APPROVAL_LOGINS: 'any' })
  expect(confirmed.stdout).toBe(`${exceptions[0].id} is closed.\n`)
  expect(await refusal([...close, 'ignore'])).toMatch(/closed already/)
  await run('read-rail-reports')
  expect((await harness.getWithdrawal(second)).status).toBe('failed')
  expect((await json(['payouts', 'show', id])).status).toBe('settled')
  expect((await midmonth(['ledger', 'verify'], settings)).code).toBe(0)
})

test('a payment without an answer from the bank is paid, and later returned, by the decision of two people', async () => {
  const { db, clock } = harness
  const [configured] = fileRailsOf(await readRails({ ...settings, MIDMONTH_MODE: 'sandbox' }))
  if (configured === undefined) throw new Error('The rail is missing')
  const run = (task: TaskName) => harness.runTask(task, { rails: [configured] })
  const withdrawalId = await withdraw(5_000)
  clock.advance({ minutes: 1 })
  await run('submit-withdrawals')
  clock.advance({ days: 1 })
  await run('send-payout-batches')
  const [{ id }] = (await json(['payouts', 'list', '--status', 'building'])).batches
  const byTwo = async (args: string[]) => {
    const first = await midmonth([...args, '--as', 'Ada'], settings)
    const second = await midmonth([...args, '--as', 'Grace'], { ...settings, MIDMONTH_APPROVAL_LOGINS: 'any' })
    expect([first.stderr, second.stderr]).toEqual(['', ''])
    return [first.stdout, second.stdout]
  }
  await byTwo(['payouts', 'approve', id])
  const { path: file, valueDate } = await json(['payouts', 'export', id, '--folder', folder])
  // A second copy is written only if the operator confirms that the bank does not have the first.
  expect(await refusal(['payouts', 'export', id, '--folder', folder])).toMatch(
    /The file has left already: exported by .+ at .+; add --again only if the bank does not have it/,
  )
  const missing = path.join(folder, 'missing')
  expect(await refusal(['payouts', 'export', id, '--folder', missing, '--again'])).toMatch(/ENOENT/)
  const other = mkdtempSync(path.join(folder, 'again-'))
  const again = await json(['payouts', 'export', id, '--folder', other, '--again'])
  expect(readFileSync(again.path)).toEqual(readFileSync(file))
  // An attempt that wrote nothing does not count.
  expect((await copies.list(db, id)).map(({ kind }) => kind)).toEqual(['export', 'export'])

  const reference = (await harness.getWithdrawal(withdrawalId)).paymentReference
  const outcome = ['payouts', 'outcome', reference, '--note', 'seen in the portal', '--outcome']
  expect(await byTwo([...outcome, 'paid'])).toEqual([
    `It is proposed that ${reference} is paid; another person must run the same command.\n`,
    `${reference} counts as paid; the withdrawal follows within a minute.\n`,
  ])
  await run('read-rail-reports')
  expect((await harness.getWithdrawal(withdrawalId)).status).toBe('paid')
  expect(await refusal([...outcome, 'returned'])).toMatch(/give the day and amount of the credit/)
  // Ada's proposal is listed, withdrawn, proposed again, and confirmed without repeating its content.
  const returned = [...outcome, 'returned', '--booked-on', valueDate, '--amount', '4950', '--as', 'Ada']
  const proposals = async () => (await json(['payouts', 'proposals', 'list'])).proposals
  const shared = { ...settings, MIDMONTH_APPROVAL_LOGINS: 'any' }
  const settle = async (verb: string, person: string) =>
    await midmonth(['payouts', 'proposals', verb, reference, '--as', person], shared)
  expect((await midmonth(returned, settings)).code).toBe(0)
  expect(await proposals()).toMatchObject([{ subject: reference, person: expect.stringContaining('Ada') }])
  expect((await midmonth(['payouts', 'proposals', 'list'], settings)).stdout).toMatch(/Ada.+seen in the portal/)
  expect((await settle('withdraw', 'Grace')).stdout).toBe(`The decision about ${reference} is withdrawn.\n`)
  expect(await proposals()).toEqual([])
  expect((await settle('confirm', 'Grace')).stderr).toMatch(/withdrawn/)
  expect((await midmonth(returned, settings)).code).toBe(0)
  expect(await settle('confirm', 'Ada')).toMatchObject({ code: 1, stderr: expect.stringMatching(/another person/) })
  expect((await settle('confirm', 'Grace')).stdout).toBe(`The decision about ${reference} is carried out.\n`)
  await run('read-rail-reports')
  expect((await harness.getWithdrawal(withdrawalId)).status).toBe('returned')
  expect((await midmonth(['ledger', 'verify'], settings)).code).toBe(0)
})

test('a held rail that is no longer in MIDMONTH_RAILS can be released, with a reason', async () => {
  const reason = 'the bank closed the account'
  await json(['payouts', 'hold', 'sepa', '--as', 'Ada', '--reason', 'bank outage'])
  const without = { ...settings, MIDMONTH_RAILS: railsFile('others.json', { rails: [{ ...sepa, name: 'sepa-2' }] }) }
  const hold = await midmonth(['payouts', 'hold', 'sepa'], without)
  expect(hold.stderr).toMatch(/There is no rail sepa/)
  const release = ['payouts', 'release', 'sepa', '--as', 'Ada', '--reason', reason, '--json']
  expect(JSON.parse((await midmonth(release, without)).stdout)).toMatchObject({ name: 'sepa', hold: null })
  expect(JSON.parse((await midmonth(release, without)).stdout)).toMatchObject({ name: 'sepa', hold: null })
  expect((await midmonth(['payouts', 'release', 'never-held'], without)).stderr).toMatch(/There is no rail never-held/)
  const { entries } = await json(['audit', '--resource', 'sepa'])
  expect(entries.slice(0, 2)).toMatchObject([
    { action: 'rail.release', details: { reason } },
    { action: 'rail.hold', details: { reason: 'bank outage' } },
  ])
})

test('the bank’s balance is compared with the books, and incoming money is booked as a float movement', async () => {
  const partner = harness.partner.id
  const balanceOf = (day: string, euros: string) =>
    `<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">${euros}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>${day}</Dt></Dt></Bal>`
  const arrived = (own: string, reference: string) =>
    `<Ntry><Amt Ccy="EUR">100.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-11</Dt></BookgDt><AcctSvcrRef>${own}</AcctSvcrRef><NtryDtls><TxDtls><Refs><EndToEndId>${reference}</EndToEndId></Refs></TxDtls></NtryDtls></Ntry>`
  await json(['float', 'fund', partner, 'EUR', '10000', '--reference', 'FUND-1'])
  // Commands book in real time, so the statement covers the time up to the end of tomorrow.
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
  const statement =
    '<?xml version="1.0" encoding="UTF-8"?>\n<Document><BkToCstmrStmt><GrpHdr><MsgId>S1</MsgId><CreDtTm>2026-03-12T06:00:00+01:00</CreDtTm></GrpHdr>' +
    `<Stmt><Acct><Id><IBAN>${account.iban}</IBAN></Id></Acct>${balanceOf(tomorrow, '200.00')}${arrived('A', 'FUND-1')}${arrived('B', 'FUND-2')}</Stmt></BkToCstmrStmt></Document>`
  await json(['payouts', 'import', 'sepa', railsFile('camt053.xml', statement)])

  const { exceptions } = await json(['payouts', 'exceptions', 'list'])
  expect(exceptions).toMatchObject([{ kind: 'money_in', reference: 'FUND-2', amount: { amount: 10_000 } }])
  const close = ['payouts', 'exceptions', 'close', exceptions[0].id, '--note', 'a transfer', '--decision', 'book']
  expect(await refusal(close)).toMatch(/book needs partnerId/)
  const balance = async () => (await json(['payouts', 'balances', '--days', '1'])).accountDays[0]
  const before = await balance()
  await json([...close, '--partner', partner])
  const after = await balance()
  expect(after.book.amount - before.book.amount).toBe(10_000)
  expect(after).toMatchObject({
    ...{ rail: 'sepa', account: account.iban, debtors: ['default'], day: tomorrow, bank: { amount: 20_000 } },
    difference: { amount: 20_000 - after.book.amount, currency: 'EUR' },
  })
  const shown = await json(['float', 'show', partner])
  expect(shown.floats.map(({ currency }: { currency: string }) => currency)).toEqual(['EUR', 'GBP'])
  expect(shown.accountDays).toMatchObject([{ bank: { currency: 'EUR' } }])
  expect((await midmonth(['float', 'show', partner], settings)).stdout).toContain('partners without a separate account')
  expect((await midmonth(['ledger', 'verify'], settings)).code).toBe(0)
})

test('unrelated entries are closed by their text after a preview, and new ones by a rule that two people made', async () => {
  const file = (id: string, amounts: bigint[]) =>
    railsFile(
      `${id}.xml`,
      accountReport(
        { id, at: harness.clock.now() },
        {
          ...{ kind: 'camt.053', iban: account.iban },
          entries: amounts.map((amount, index) => ({
            ...{ bank: `${id}-${index}`, direction: 'DBIT', amount, bookedOn: '2026-03-17', details: '' },
            text: 'Account fee MARCH',
          })),
        },
      ),
    )
  await json(['payouts', 'import', 'sepa', file('FEES-1', [701n, 702n])])
  const given = ['--rail', 'sepa', '--text', 'account fee']
  const close = ['payouts', 'exceptions', 'close-all', ...given]
  const preview = await json(close)
  expect(preview).toMatchObject({
    count: 2,
    sums: [{ direction: 'out', count: 2, sum: { amount: 1_403, currency: 'EUR' } }],
  })
  expect(await refusal([...close, '--fingerprint', 'other', '--note', 'fees'])).toContain(
    'have changed since the preview',
  )
  expect(await json([...close, '--fingerprint', preview.fingerprint, '--note', 'fees'])).toMatchObject({ count: 2 })

  const shared = { ...settings, MIDMONTH_APPROVAL_LOGINS: 'any' }
  const create = ['payouts', 'rules', 'create', ...given, '--note', 'fees', '--as']
  expect((await midmonth([...create, 'Ada'], shared)).stdout).toContain(
    'is proposed; another person must make the same rule',
  )
  expect((await midmonth([...create, 'Grace'], shared)).stdout).toContain('is active.')
  await json(['payouts', 'import', 'sepa', file('FEES-2', [703n])])
  const { rules } = await json(['payouts', 'rules', 'list'])
  expect(rules).toMatchObject([{ text: 'account fee', status: 'active', closedCount: 1 }])
  for (const [verb, status] of [
    ['pause', 'paused'],
    ['resume', 'active'],
    ['end', 'ended'],
  ] as const)
    expect(await json(['payouts', 'rules', verb, rules[0].id])).toMatchObject({ status })
  expect(
    await refusal(['payouts', 'rules', 'create', '--rail', 'none', '--text', 'account fee', '--note', 'fees']),
  ).toContain('There is no rail none that sends files')
})

test('with --url, payouts commands work on a running server, which leaves decisions to people', async () => {
  const { address } = await serve(settings, { roles: { api: true, worker: false } })
  const { key } = await json(['operator', 'key', 'create', 'remote'])
  const remote = async (...args: string[]) =>
    await midmonth([...args, '--url', address], { MIDMONTH_OPERATOR_KEY: key, DATABASE_URL: 'unused' })
  const listed = await json(['payouts', 'list'])
  expect(JSON.parse((await remote('payouts', 'list', '--json')).stdout)).toEqual(listed)
  const [{ id }] = listed.batches
  expect((await remote('payouts', 'show', id)).stdout).toBe((await midmonth(['payouts', 'show', id], settings)).stdout)
  expect(await remote('payouts', 'hold', 'sepa')).toMatchObject({ code: 0, stdout: 'sepa is held.\n' })
  expect((await remote('payouts', 'list')).stdout).toMatch(/^sepa has been held since .+ by opk_/)
  expect(await remote('payouts', 'release', 'sepa')).toMatchObject({ code: 0, stdout: 'sepa is released.\n' })
  const file = railsFile(
    'fees-3.xml',
    accountReport(
      { id: 'FEES-3', at: harness.clock.now() },
      {
        ...{ kind: 'camt.053', iban: account.iban },
        entries: [{ bank: 'FEES-3-0', direction: 'DBIT', amount: 704n, bookedOn: '2026-03-18', details: '' }],
      },
    ),
  )
  expect(await remote('payouts', 'import', 'sepa', file)).toMatchObject({ code: 0, stdout: '1 record imported.\n' })
  expect((await midmonth(['payouts', 'import', 'sepa', file], settings)).stdout).toMatch(/was imported before/)
  expect(await remote('payouts', 'approve', id)).toMatchObject({
    ...{ code: 1, stdout: '' },
    stderr: 'midmonth: Two people must approve the batch, in the console or by command; an operator key cannot\n',
  })
  expect((await remote('payouts', 'approve', id, '--as', 'Ada')).stderr).toMatch(/--as .*cannot be used with .*--url/)
})

test('one message names every fault in MIDMONTH_RAILS, and nothing starts', async () => {
  const broken = {
    ...sepa,
    timeZone: 'Mars/Olympus',
    debtors: { default: { name: 'Acme', iban: 'DE75512108001245126190' } },
  }
  const wrong = await midmonth(['status'], {
    ...settings,
    MIDMONTH_RAILS: railsFile('wrong.json', { rails: [broken, sepa] }),
  })
  for (const fault of [
    ...['timeZone must be an IANA name', 'the account of the debtor default is wrong'],
    ...['two rails have the name sepa', 'two rails have the currency EUR'],
  ]) {
    expect(wrong.stdout + wrong.stderr).toContain(fault)
  }
  const misshapen = railsFile('misshapen.json', { rails: [{ ...sepa, cutOff: '25:00', colour: 'red' }] })
  const refused = await midmonth(['payouts', 'import', 'sepa', 'x'], { ...settings, MIDMONTH_RAILS: misshapen })
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/cutOff must match.*additional properties|additional properties.*cutOff must match/),
  })
  const missing = await midmonth(['payouts', 'import', 'sepa', 'x'], { ...settings, MIDMONTH_RAILS: '/none' })
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be read as JSON') })
})

test('a rail with a folder pays pounds: the file appears in the folder, payees count as paid on the entry day, and a later return still counts', async () => {
  const { clock } = harness
  const bacs = {
    ...{ name: 'bacs', type: 'standard18-file', currency: 'GBP', scheme: 'bacs', serviceUserNumber: '123456' },
    debtors: { default: { name: 'Acme Ltd', sortCode: '089999', accountNumber: '66374958' } },
    ...{ cutOff: '16:00', timeZone: 'Europe/London', folder: path.join(folder, 'bacs') },
    approval: { automatic: { paymentMax: 100_000, batchMax: 100_000, dayMax: 100_000 } },
    returns: { format: 'csv', columns: { reference: 'ref', amount: 'amount', reasonCode: 'code' } },
  }
  const MIDMONTH_RAILS = railsFile('bacs.json', { rails: [bacs] })
  const [configured] = fileRailsOf(await readRails({ MIDMONTH_RAILS, MIDMONTH_MODE: 'live' }))
  if (configured === undefined) throw new Error('The rail is missing')
  // Midday on a Tuesday.
  clock.set(new Date('2026-03-17T12:00:00Z'))
  const { id } = await harness.addWithdrawal()
  clock.advance({ minutes: 1 })
  const run = async (...names: TaskName[]) => {
    for (const name of names) await harness.runTask(name, { rails: [configured] })
  }
  await run('submit-withdrawals')
  clock.set(new Date('2026-03-17T16:00:00Z'))
  await run('send-payout-batches')
  const [name = ''] = readdirSync(path.join(bacs.folder, 'outbox')).filter(each => each.endsWith('.txt'))
  const { paymentReference, expectedAt } = await harness.getWithdrawal(id)
  expect(readFileSync(path.join(bacs.folder, 'outbox', name), 'latin1')).toContain(paymentReference)
  expect(expectedAt).toBe('2026-03-19T23:59:59.999Z')

  clock.set(new Date('2026-03-18T12:00:00Z'))
  await run('send-payout-batches', 'read-rail-reports')
  expect((await harness.getWithdrawal(id)).status).toBe('submitted')
  clock.set(new Date('2026-03-19T12:00:00Z'))
  await run('send-payout-batches', 'read-rail-reports')
  expect((await harness.getWithdrawal(id)).status).toBe('paid')
  const returned = path.join(bacs.folder, 'inbox', 'arucs.csv')
  writeFileSync(returned, `ref,amount,code\r\n${paymentReference},50.00,B\r\n`)
  // A file counts as complete once it has been unchanged for a while, by the clock of the file system.
  clock.set(new Date(Date.now() + 3_600_000))
  await run('read-bank-files', 'read-rail-reports')
  expect(await harness.getWithdrawal(id)).toMatchObject({ status: 'returned' })
  expect((await harness.getWithdrawal(id)).timeline.at(-1).reason).toBe('B The account is closed')
})

test('a pain.001 rail pays pounds by Bacs or Faster Payments, and refuses payments that the scheme cannot make', async () => {
  const uk = {
    ...{ name: 'uk', type: 'uk-pain001-file', currency: 'GBP', cutOff: '16:00', timeZone: 'Europe/London' },
    debtors: { default: { name: 'Acme Ltd', sortCode: '089999', accountNumber: '66374958' } },
  }
  const settingsOf = async (name: string, changes: object) => {
    const MIDMONTH_RAILS = railsFile(name, { rails: [{ ...uk, ...changes }] })
    const [configured] = fileRailsOf(await readRails({ MIDMONTH_RAILS, MIDMONTH_MODE: 'live' }))
    if (configured === undefined) throw new Error('The rail is missing')
    return configured
  }
  const bacs = await settingsOf('uk-bacs.json', {})
  const faster = await settingsOf('uk-faster.json', { instant: true })
  // Midday on a Tuesday: Bacs gets the file today, processes it tomorrow and pays the day after.
  const now = new Date('2026-03-17T12:00:00Z')
  expect(bacs.schedule(now)).toEqual({
    ...{ cutOffAt: new Date('2026-03-17T16:00:00Z'), valueDate: '2026-03-18', expectedOn: '2026-03-19' },
  })
  expect(faster.schedule(now)).toEqual({ cutOffAt: now, valueDate: '2026-03-17', expectedOn: '2026-03-17' })
  // A tier can ask for the other speed.
  expect(bacs.schedule(now, true)).toEqual(faster.schedule(now))
  expect(faster.schedule(now, false)).toEqual(bacs.schedule(now))

  const account = { accountHolder: 'Mia Smith', sortCode: '200415', accountNumber: '38290008' }
  for (const [{ format, isInstant, debtors }, level] of [
    [bacs, 'NURG'],
    [faster, 'URNS'],
  ] as const) {
    const reference = 'MMABCDEFGHIJKLMN'
    const xml = await text(
      Readable.from(
        format.write({
          ...{ messageId: 'MMBABCDEFGHIJKLMN', createdAt: now, valueDate: '2026-03-18', currency: 'GBP', isInstant },
          ...{ debtor: debtors.default, paymentCount: 1, controlTotal: 5_000n },
          payments: Readable.from([{ reference, amount: 5_000n, account }]),
        }),
      ),
    )
    expect(xml).toContain(`<SvcLvl><Cd>${level}</Cd></SvcLvl>`)
    expect(xml).toContain('<InstdAmt Ccy="GBP">50.00</InstdAmt>')
    expect(format.refusal({ account, amount: 100_000_000n, isInstant })).toBeUndefined()
    const iban = { accountHolder: 'Mia Smith', iban: 'DE89370400440532013000' }
    expect(format.refusal({ account: iban, amount: 1n, isInstant })).toBe(
      'This bank only pays to a sort code and an account number',
    )
  }
  const tooMuch = 'The amount is above the limit of the payment scheme'
  expect(faster.format.refusal({ account, amount: 100_000_001n, isInstant: true })).toBe(tooMuch)
  expect(bacs.format.refusal({ account, amount: 2_000_000_000n, isInstant: false })).toBeUndefined()
  expect(bacs.format.refusal({ account, amount: 2_000_000_001n, isInstant: false })).toBe(tooMuch)
})

test('the returns of a Standard 18 rail are read as XML if the settings say so', async () => {
  const bacs = {
    ...{ name: 'bacs', type: 'standard18-file', currency: 'GBP', scheme: 'bacs', serviceUserNumber: '123456' },
    debtors: { default: { name: 'Acme Ltd', sortCode: '089999', accountNumber: '66374958' } },
    ...{ cutOff: '16:00', timeZone: 'Europe/London' },
  }
  const withReturns = (returns: object) => ({
    MIDMONTH_RAILS: railsFile('arucs.json', { rails: [{ ...bacs, returns }] }),
    MIDMONTH_MODE: 'live' as const,
  })
  const [configured] = fileRailsOf(await readRails(withReturns({ format: 'xml' })))
  const xml =
    '<Advice><OriginatingAccountRecords><OriginatingAccountRecord>' +
    '<ReturnedCreditItem ref="MMABCDEFGHIJKLMN" valueOf="50.00" currency="GBP" returnCode="B"/>' +
    '</OriginatingAccountRecord></OriginatingAccountRecords></Advice>'
  if (configured === undefined) throw new Error('The rail is missing')
  const limits = { bytesMax: 10_000, recordsMax: 10 }
  const records = await Readable.from(configured.format.read(Readable.from([Buffer.from(xml)]), limits)).toArray()
  expect(records.at(-1)).toMatchObject({
    ...{ type: 'payment', reference: 'MMABCDEFGHIJKLMN', state: 'returned', reasonCodes: ['B'] },
    amount: { amount: 5_000n, currency: 'GBP' },
  })
  await expect(readRails(withReturns({ format: 'xml', columns: {} }))).rejects.toThrow(
    /returns must NOT have additional properties/,
  )
})

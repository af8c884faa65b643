import { execFile } from 'node:child_process'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import pino from 'pino'
import type { Db } from '../../src/database/database.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import { importBankFile } from '../../src/payouts/books/import.ts'
import { atOnce } from '../../src/payouts/calendars/cut-off.ts'
import { fileChannel } from '../../src/payouts/channels/files/channel.ts'
import { sendBatches } from '../../src/payouts/channels/files/send.ts'
import type { Answer, AnswersToWrite } from '../../src/payouts/formats/answers.ts'
import type { BatchToWrite, PaymentOrder } from '../../src/payouts/formats/bank-files.ts'
import { sepaFormat } from '../../src/payouts/formats/sepa/format.ts'
import { readBankFile } from '../../src/payouts/formats/sepa/read-bank-file.ts'
import { writeNotification, writeStatusReport } from '../../src/payouts/formats/sepa/write-answers.ts'
import { writeSepaCreditTransfer } from '../../src/payouts/formats/sepa/write-credit-transfer.ts'
import { connectWithKey } from '../machine/installation-key.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { ownPeakRssMb, resetOwnPeakRss } from '../machine/processes.ts'
import { findProgram } from '../machine/programs.ts'
import { operate } from '../machine/service.ts'

/** The figures of one file written or read, compared with PostgreSQL copying the same payments to or from a CSV file. */
export type BankFileFigures = {
  round: number
  step:
    | 'pain.001 written'
    | 'pain.002 read'
    | 'camt.054 read'
    | 'pain.002 applied'
    | 'camt.054 applied'
    | 'returns applied'
    | 'unrelated entries applied'
    | 'batch rejected'
  payments: number
  fileMb: number
  ms: number
  cpuMs: number
  /** The peak resident memory of the benchmark's process, less what it held before. */
  grownMb: number
  copyMs: number
  /** The slowest concurrent payout of the same rail; null if the file was not applied. */
  payoutMsMax: number | null
}

const database = 'bench_bank_files'
// The pool of a worker whose tasks run all the time.
const payoutsBesideEveryMs = 20
const payoutsBesideMax = 20_000
const valueDate = '2026-03-03'
const iban = 'DE89370400440532013000'
const account = { accountHolder: 'Bakery', iban: 'DE75512108001245126199' }

/**
 * Writes a batch and reads the answers to it without a database, then applies the answers to a database with that batch.
 * The baseline is `psql \copy` of the same payments.
 */
export async function measureBankFiles(
  server: Server,
  { folder, productDir, payments, rounds }: { folder: string; productDir: string; payments: number; rounds: number },
): Promise<BankFileFigures[]> {
  const databaseUrl = await server.create(database)
  await operate(['migrate'], { databaseUrl, productDir })
  // As many as a service has.
  const { db, close } = await connectWithKey(databaseUrl, { connectionsMax: 20 })
  await withClient(databaseUrl, client =>
    client.query('create table payments (reference text, amount bigint, account_holder text, iban text)'),
  )
  const file = (name: string) => path.join(folder, name)
  await save(file('payments.csv'), rowsOf(payments))
  const report = { ...bankMessage, answers: answersOf(payments, 'failed or paid') }
  await save(file('pain.002'), writeStatusReport(report))
  await save(file('camt.054'), writeNotification({ ...report, answers: answersOf(payments, 'paid') }))
  await save(
    file('returns'),
    writeNotification({ ...report, messageId: 'BANK000003', answers: answersOf(payments, 'returned') }),
  )
  // With 100,000 payments, the number of entries that the import's target names.
  const entries = 2 * payments
  await save(file('unrelated'), unrelatedEntries(entries))
  await save(file('rejected'), rejection())
  const figures: BankFileFigures[] = []
  for (let round = 1; round <= rounds; round++) {
    const copyInMs = await copy(databaseUrl, `\\copy payments from '${file('payments.csv')}' csv`)
    const copyOutMs = await copy(databaseUrl, `\\copy payments to '${file('copied.csv')}' csv`)
    const measure = async (
      step: BankFileFigures['step'],
      name: string,
      copyMs: number,
      work: () => Promise<void>,
      payouts?: PayoutsBeside,
    ) => {
      const used = await measured(work)
      const payoutMsMax = payouts === undefined ? null : await payouts.end()
      figures.push({
        round,
        step,
        payments: step === 'unrelated entries applied' ? entries : payments,
        fileMb: (await stat(file(name))).size / 1e6,
        ...used,
        copyMs,
        payoutMsMax,
      })
    }
    await measure('pain.001 written', 'pain.001', copyOutMs, () =>
      save(file('pain.001'), writeSepaCreditTransfer()(batchOf(payments))),
    )
    await measure('pain.002 read', 'pain.002', copyInMs, () => readAll(file('pain.002'), payments))
    await measure('camt.054 read', 'camt.054', copyInMs, () => readAll(file('camt.054'), payments))
    for (const [step, name, outcome] of [
      ['pain.002 applied', 'pain.002', 'any'],
      ['camt.054 applied', 'camt.054', 'paid'],
      ['returns applied', 'returns', 'returned'],
      ['unrelated entries applied', 'unrelated', null],
      ['batch rejected', 'rejected', 'failed'],
    ] as const) {
      // Payments were paid before they are returned.
      if (outcome !== 'returned') await seedBatch(databaseUrl)
      const { size } = await stat(file(name))
      const payouts = new PayoutsBeside(db)
      const apply = async () => {
        const bytes = () => createReadStream(file(name))
        const imported = await importBankFile(db, { rail, name, size, bytes, now: bankMessage.createdAt })
        if (imported.result !== 'imported') throw new Error(`${name} was ${imported.result}`)
      }
      await measure(step, name, copyInMs, apply, payouts)
      if (outcome === null) await requireExceptions(databaseUrl, entries)
      else await requireOutcomes(databaseUrl, { outcome, payments })
    }
    await withClient(databaseUrl, client => client.query('truncate payments'))
  }
  await close()
  await server.drop(database)
  return figures
}

const timeZone = 'Europe/Berlin'

/** A rail that pays from the account in the answers. */
const rail: FileRailSettings = {
  ...{ name: 'sepa', currency: 'EUR', format: sepaFormat(), debtors: { default: { name: 'Bakery', account } } },
  ...{ isInstant: false, canBeInstant: true, timeZone, cutOff: '23:59', calendar: null, automatic: null },
  ...{ countsAsPaid: null, delivery: null },
  schedule: now => atOnce({ now, timeZone }),
}

/**
 * Pays out during an import, one payout after the other, and times each part: submitting a payout (also one that the format
 * refuses), closing and settling the batches, and reading reports.
 */
class PayoutsBeside {
  readonly #running: Promise<number>
  #isEnding = false

  constructor(db: Db) {
    this.#running = this.#run(db)
  }

  /** @returns the time of the slowest part */
  async end(): Promise<number> {
    this.#isEnding = true
    return await this.#running
  }

  async #run(db: Db): Promise<number> {
    const paying = fileChannel({ db, now: () => bankMessage.createdAt, settings: rail })
    const context = { db, log: pino({ level: 'silent' }), now: () => bankMessage.createdAt }
    let longestMs = 0
    const timed = async (work: () => Promise<unknown>) => {
      const startedAt = performance.now()
      await work()
      longestMs = Math.max(longestMs, performance.now() - startedAt)
    }
    let cursor: string | null = null
    for (let number = 0; !this.#isEnding && number < payoutsBesideMax; number++) {
      const uk = { accountHolder: 'Ada Okafor', sortCode: '200000', accountNumber: '55779911' }
      for (const [index, to] of [account, uk].entries()) {
        const reference = referenceBeside(2 * number + index)
        const netAmount = { amount: 1_000n, currency: 'EUR' } as const
        const payment = { partnerId: 'par_1', withdrawalId: `w_${reference}`, reference, netAmount, account: to }
        await timed(() => paying.submit([payment], AbortSignal.timeout(60_000)))
      }
      await timed(async () => await sendBatches(context, rail))
      await timed(async () => {
        cursor = (await paying.collect(cursor, 500, AbortSignal.timeout(60_000))).cursor
      })
      await pause(payoutsBesideEveryMs)
    }
    return longestMs
  }
}

/** Replaces all payouts by one batch that the bank has not answered. Withdrawals are not needed for answers. */
async function seedBatch(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async client => {
    await client.query(`
      set session_replication_role = replica;
      truncate bank_records, staged_bank_records, bank_statements, payout_exceptions, bank_files, payouts, payout_references, payout_batches cascade;
      insert into partners (id, name, country, time_zone, created_at) values ('par_1', 'Bakery', 'DE', 'Europe/Berlin', now())
          on conflict do nothing;
      insert into payout_batches (id, message_id, rail, currency, debtor, value_date, is_instant, cut_off_at, status,
                                  payment_count, control_total, created_at, closed_at, sending_at, sent_at)
      select 'bat_1', '${bankMessage.batchMessageId}', 'sepa', 'EUR', 'default', '${valueDate}', false, now(), 'sent',
             count(*), sum(amount), now(), now(), now(), now() from payments;
      insert into payout_batch_copies (batch_id, number, kind, at, day) values ('bat_1', 1, 'delivery', now(), '${valueDate}');
      insert into payouts (partner_id, withdrawal_id, reference, rail, net_amount, currency, created_at, batch_id)
      select 'par_1', 'w_' || reference, reference, 'sepa', amount, 'EUR', now(), 'bat_1' from payments`)
    await client.query(
      `insert into payouts (partner_id, withdrawal_id, reference, rail, net_amount, currency, created_at)
       select 'par_1', 'w_' || reference, reference, 'sepa', 1000, 'EUR', now() from unnest($1::text[]) reference`,
      [Array.from({ length: 2 * payoutsBesideMax }, (_, number) => referenceBeside(number))],
    )
    await client.query(
      'insert into payout_references (reference, partner_id) select reference, partner_id from payouts',
    )
    await client.query('vacuum analyze payouts, payout_references')
  })
}

async function requireOutcomes(
  databaseUrl: string,
  { outcome, payments }: { outcome: string; payments: number },
): Promise<void> {
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ count: number }>(
      `select count(*)::integer as count from bank_records r join payouts p on (p.partner_id, p.reference) = ('par_1', r.reference)
        where '${outcome}' in (p.outcome, 'any') and r.outcome = p.outcome and r.bank_file_id is not null`,
    ),
  )
  if (rows[0]?.count !== payments) throw new Error(`${rows[0]?.count} of ${payments} payments are ${outcome}`)
}

async function requireExceptions(databaseUrl: string, count: number): Promise<void> {
  const { rows } = await withClient(databaseUrl, client =>
    client.query<{ count: number }>(
      "select count(*)::integer as count from payout_exceptions where kind like 'money_%'",
    ),
  )
  if (rows[0]?.count !== count) throw new Error(`${rows[0]?.count} exceptions instead of ${count}`)
}

/** A statement whose entries are not payments of ours, each with a different amount. */
async function* unrelatedEntries(count: number): AsyncGenerator<string> {
  yield '<Document><BkToCstmrStmt><GrpHdr><MsgId>BANK000004</MsgId><CreDtTm>2026-03-03T09:00:00</CreDtTm></GrpHdr><Stmt>'
  yield `<Id>1</Id><Acct><Id><IBAN>${account.iban}</IBAN></Id></Acct>`
  for (let number = 0; number < count; number++) {
    const direction = number % 3 === 0 ? 'DBIT' : 'CRDT'
    yield `<Ntry><Amt Ccy="EUR">${1 + (number % 5_000)}.07</Amt><CdtDbtInd>${direction}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>` +
      `<BookgDt><Dt>${valueDate}</Dt></BookgDt><AcctSvcrRef>B${number}</AcctSvcrRef><NtryDtls><TxDtls><Refs><EndToEndId>INVOICE-${number}` +
      `</EndToEndId></Refs><RmtInf><Ustrd>Invoice ${number} of the bakery at the corner</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>\n`
  }
  yield '</Stmt></BkToCstmrStmt></Document>'
}

async function* rejection(): AsyncGenerator<string> {
  const { batchMessageId } = bankMessage
  yield '<Document><CstmrPmtStsRpt><GrpHdr><MsgId>BANK000002</MsgId></GrpHdr><OrgnlGrpInfAndSts>'
  yield `<OrgnlMsgId>${batchMessageId}</OrgnlMsgId><GrpSts>RJCT</GrpSts><StsRsnInf><Rsn><Cd>FF01</Cd></Rsn></StsRsnInf>`
  yield '</OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>'
}

async function measured(work: () => Promise<void>): Promise<{ ms: number; cpuMs: number; grownMb: number }> {
  const rssBeforeMb = process.memoryUsage.rss() / 1_048_576
  resetOwnPeakRss()
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await work()
  const ms = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpuBefore)
  return { ms, cpuMs: (user + system) / 1_000, grownMb: ownPeakRssMb() - rssBeforeMb }
}

async function copy(databaseUrl: string, command: string): Promise<number> {
  const psql = findProgram('psql')
  if (psql === undefined) throw new Error('psql is missing')
  const startedAt = performance.now()
  await promisify(execFile)(psql, [databaseUrl, '-qXc', command])
  return performance.now() - startedAt
}

async function save(file: string, texts: AsyncIterable<string>): Promise<void> {
  await pipeline(Readable.from(texts), createWriteStream(file))
}

async function readAll(file: string, payments: number): Promise<void> {
  let read = 0
  for await (const part of readBankFile(createReadStream(file), { bytesMax: 1e9, recordsMax: 1e7 })) {
    if (part.type === 'payment') read += 1
  }
  if (read !== payments) throw new Error(`${file} has ${read} payments instead of ${payments}`)
}

const bankMessage: Omit<AnswersToWrite, 'answers'> = {
  messageId: 'BANK000001',
  createdAt: new Date('2026-03-03T09:00:00Z'),
  bookedOn: valueDate,
  batchMessageId: 'MMB7Q2ZKD3',
  currency: 'EUR',
  account,
}

function batchOf(count: number): BatchToWrite {
  let controlTotal = 0n
  for (let number = 0; number < count; number++) controlTotal += paymentOf(number).amount
  return {
    ...{ messageId: 'MMB7Q2ZKD3', createdAt: bankMessage.createdAt, valueDate, currency: 'EUR', isInstant: false },
    ...{ debtor: { name: 'Bakery', account }, paymentCount: count, controlTotal, payments: paymentsOf(count) },
  }
}

async function* paymentsOf(count: number): AsyncGenerator<PaymentOrder> {
  for (let number = 0; number < count; number++) yield paymentOf(number)
}

// Not 'failed' for all: a bank that rejects every payment of a batch rejects the batch, which is measured separately.
async function* answersOf(count: number, all: 'paid' | 'failed or paid' | 'returned'): AsyncGenerator<Answer> {
  for (let number = 0; number < count; number++) {
    const { reference, amount } = paymentOf(number)
    const state = all === 'failed or paid' ? (number % 2 === 0 ? 'failed' : 'paid') : all
    yield { reference, amount, state, reasonCode: state === 'paid' ? null : 'AC04', reasonText: null }
  }
}

async function* rowsOf(count: number): AsyncGenerator<string> {
  for await (const { reference, amount, account } of paymentsOf(count))
    yield `${reference},${amount},${account.accountHolder},${iban}\n`
}

/** The reference of a payout that is not in any file. */
function referenceBeside(number: number): string {
  return paymentOf(1_000_000_000 + number).reference
}

// Every second name has to be transliterated.
function paymentOf(number: number): PaymentOrder {
  const digits = number.toString(32).toUpperCase()
  const base32 = Array.from(digits, digit => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(digit, 32)]).join('')
  const accountHolder = number % 2 === 0 ? 'Ada Okafor' : 'Zoë Müller-Łukasz'
  return {
    reference: `MM${base32.padStart(14, 'A')}`,
    amount: BigInt(1_000 + (number % 50_000)),
    account: { accountHolder, iban },
  }
}

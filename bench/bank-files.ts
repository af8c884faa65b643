import { execFile } from 'node:child_process'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import type { Answer, AnswersToWrite } from '../src/payouts/rails/answers.ts'
import type { BatchToWrite, PaymentOrder } from '../src/payouts/rails/bank-files.ts'
import { readBankFile } from '../src/payouts/rails/sepa/read-bank-file.ts'
import { writeNotification, writeStatusReport } from '../src/payouts/rails/sepa/write-answers.ts'
import { writeSepaCreditTransfer } from '../src/payouts/rails/sepa/write-credit-transfer.ts'
import { type Server, withClient } from './postgres.ts'
import { peakRssMbOf, resetPeakRss, rssMbOf } from './processes.ts'
import { findProgram } from './programs.ts'

/** One file written or read, and PostgreSQL copying the same payments to or from a CSV file. */
export type BankFileFigures = {
  round: number
  step: 'pain.001 written' | 'pain.002 read' | 'camt.054 read'
  payments: number
  fileMb: number
  ms: number
  cpuMs: number
  /** How much more resident memory the bench's process had at its peak than before. */
  grownMb: number
  copyMs: number
}

const database = 'bench_bank_files'
const valueDate = '2026-03-03'
const iban = 'DE89370400440532013000'
const account = { accountHolder: 'Bakery', iban: 'DE75512108001245126199' }

/** Writes a batch and reads the answers to it, without a database; compared with `psql \copy` of the same payments. */
export async function measureBankFiles(
  server: Server,
  { folder, payments, rounds }: { folder: string; payments: number; rounds: number },
): Promise<BankFileFigures[]> {
  const databaseUrl = await server.create(database)
  await withClient(databaseUrl, client =>
    client.query('create table payments (reference text, amount bigint, account_holder text, iban text)'),
  )
  const file = (name: string) => path.join(folder, name)
  await save(file('payments.csv'), rowsOf(payments))
  const report = { ...bankMessage, answers: answersOf(payments, 'failed') }
  await save(file('pain.002'), writeStatusReport(report))
  await save(file('camt.054'), writeNotification({ ...report, answers: answersOf(payments, 'paid') }))
  const figures: BankFileFigures[] = []
  for (let round = 1; round <= rounds; round++) {
    const copyInMs = await copy(databaseUrl, `\\copy payments from '${file('payments.csv')}' csv`)
    const copyOutMs = await copy(databaseUrl, `\\copy payments to '${file('copied.csv')}' csv`)
    await withClient(databaseUrl, client => client.query('truncate payments'))
    const measure = async (step: BankFileFigures['step'], name: string, copyMs: number, work: () => Promise<void>) => {
      const used = await measured(work)
      figures.push({ round, step, payments, fileMb: (await stat(file(name))).size / 1e6, ...used, copyMs })
    }
    await measure('pain.001 written', 'pain.001', copyOutMs, () =>
      save(file('pain.001'), writeSepaCreditTransfer()(batchOf(payments))),
    )
    await measure('pain.002 read', 'pain.002', copyInMs, () => readAll(file('pain.002'), payments))
    await measure('camt.054 read', 'camt.054', copyInMs, () => readAll(file('camt.054'), payments))
  }
  await server.drop(database)
  return figures
}

async function measured(work: () => Promise<void>): Promise<{ ms: number; cpuMs: number; grownMb: number }> {
  const rssBeforeMb = rssMbOf(process.pid)
  resetPeakRss(process.pid)
  const cpuBefore = process.cpuUsage()
  const startedAt = performance.now()
  await work()
  const ms = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpuBefore)
  return { ms, cpuMs: (user + system) / 1_000, grownMb: peakRssMbOf(process.pid) - rssBeforeMb }
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
  batchMessageId: 'OWB7Q2ZKD3',
  currency: 'EUR',
  account,
}

function batchOf(count: number): BatchToWrite {
  let controlTotal = 0n
  for (let number = 0; number < count; number++) controlTotal += paymentOf(number).amount
  return {
    ...{ messageId: 'OWB7Q2ZKD3', createdAt: bankMessage.createdAt, valueDate, currency: 'EUR', isInstant: false },
    ...{ debtor: { name: 'Bakery', account }, paymentCount: count, controlTotal, payments: paymentsOf(count) },
  }
}

async function* paymentsOf(count: number): AsyncGenerator<PaymentOrder> {
  for (let number = 0; number < count; number++) yield paymentOf(number)
}

async function* answersOf(count: number, state: 'paid' | 'failed'): AsyncGenerator<Answer> {
  const reason = { reasonCode: state === 'failed' ? 'AC04' : null, reasonText: null }
  for (let number = 0; number < count; number++) {
    const { reference, amount } = paymentOf(number)
    yield { reference, amount, state, ...reason }
  }
}

async function* rowsOf(count: number): AsyncGenerator<string> {
  for await (const { reference, amount, account } of paymentsOf(count))
    yield `${reference},${amount},${account.accountHolder},${iban}\n`
}

// Every second name needs to be written in other letters.
function paymentOf(number: number): PaymentOrder {
  const digits = number.toString(32).toUpperCase()
  const base32 = Array.from(digits, digit => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'[Number.parseInt(digit, 32)]).join('')
  const accountHolder = number % 2 === 0 ? 'Ada Okafor' : 'Zoë Müller-Łukasz'
  return {
    reference: `OW${base32.padStart(14, 'A')}`,
    amount: BigInt(1_000 + (number % 50_000)),
    account: { accountHolder, iban },
  }
}

import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import type { BankAccount } from '../../src/bank-accounts/rules.ts'
import type { Currency, Money } from '../../src/kernel/money.ts'
import type { FileRailSettings } from '../../src/payouts/books/file-rail-settings.ts'
import { atOnce, cutOffOf, leadTimes } from '../../src/payouts/calendars/cut-off.ts'
import { target } from '../../src/payouts/calendars/target.ts'
import type { Delivery } from '../../src/payouts/delivery/delivery.ts'
import {
  BankFileProblem,
  type BankMessage,
  type BankRecord,
  type PaymentState,
  type ReadBankFile,
  type WriteBatch,
} from '../../src/payouts/formats/bank-files.ts'
import type { FileFormat } from '../../src/payouts/formats/format.ts'

/** The account from which the test bank pays. */
export const ownIban = 'DE75512108001245126199'

/** A format that a test can read: one line per record, fields separated by semicolons, and `end` as the last line. */
const plainFormat: FileFormat = {
  name: 'plain',
  extension: 'txt',
  write: writePlain,
  read: readPlain,
  readsStatements: true,
  readsReturns: true,
  payeeName: accountHolder => accountHolder,
  accountRefusal: toIban,
  refusal: ({ account }) => toIban(account),
  paymentsMax: 10_000,
  totalMax: 99_999_999_999n,
}

function toIban(account: BankAccount): string | undefined {
  return 'iban' in account ? undefined : 'This bank pays only to IBANs'
}

async function* writePlain(batch: Parameters<WriteBatch>[0]): AsyncGenerator<string> {
  yield `batch;${batch.messageId};${batch.valueDate};${batch.paymentCount};${batch.controlTotal}\n`
  let count = 0
  let total = 0n
  for await (const { reference, amount, account } of batch.payments) {
    count += 1
    total += amount
    yield `${reference};${amount};${'iban' in account ? account.iban : account.accountNumber}\n`
  }
  if (count !== batch.paymentCount || total !== batch.controlTotal) throw new Error('The batch does not add up')
  yield 'end\n'
}

async function* readPlain(...[bytes, { recordsMax }]: Parameters<ReadBankFile>): ReturnType<ReadBankFile> {
  const text = await textOf(Readable.from(bytes))
  const lines = text.split('\n')
  let records = 0
  for (const [index, fields] of lines.map(line => line.split(';')).entries()) {
    const line = index + 1
    const [type = '', a = '', b = '', c = '', d = '', e = ''] = fields
    if (type === 'end') return
    if (++records > recordsMax) throw new BankFileProblem('The file has too many records', { line })
    if (type === 'head') {
      const message = c === '' ? 'camt.053' : (c as BankMessage)
      yield { type, head: { message, messageId: a, createdAt: null, account: b === '' ? null : b } }
    } else yield recordOf({ type, a, b, c, d, e, line })
  }
  throw new BankFileProblem('The file ends before its last line', { line: lines.length })
}

const saidNothing = { isReversal: false, isReturn: false, texts: [], charges: null }

type Fields = { type: string; a: string; b: string; c: string; d: string; e: string; line: number }

function recordOf({ type, a, b, c, d, e, line }: Fields): BankRecord {
  const money = (text: string) => ({ amount: BigInt(text.slice(0, -3)), currency: text.slice(-3) as Currency })
  const or = (text: string) => (text === '' ? null : text)
  const codes = (text: string) => text.split(' ').filter(code => code !== '')
  switch (type) {
    case 'batch':
      return {
        ...{ type, line, messageId: a, level: d === 'payment-information' ? d : 'group', state: b as 'rejected' },
        ...{ reasonCodes: codes(c), reasonText: or(e) },
      }
    case 'name-check':
      return { type, line, messageId: a, reference: null, code: b }
    case 'balance':
      return statementOf({ line, day: a, closing: money(b), opening: null, number: null })
    case 'statement': {
      const [opening, closing] = [b, c].map(text => (text === '' ? null : money(text)))
      return statementOf({ line, day: a, opening: opening ?? null, closing: closing ?? null, number: or(d) })
    }
    case 'entry':
      return {
        type,
        line,
        entryReference: or(c),
        amount: money(a),
        booking: { ...saidNothing, day: or(d) ?? '2026-03-10', bankReference: or(c), texts: e === '' ? [] : [e] },
        reference: or(b),
        reasonCodes: [],
        reasonText: null,
      }
    case 'paid':
    case 'failed':
    case 'returned':
    case 'pending':
    case 'accepted': {
      const state: PaymentState = type
      const amount = b === '' ? null : money(b)
      return {
        type: 'payment',
        line,
        reference: a,
        state,
        amount,
        entryReference: or(d),
        reasonCodes: codes(c),
        reasonText: null,
        // A record with a day is a booking; one without is a status.
        ...(e === '' ? {} : { booking: { ...saidNothing, day: e, bankReference: or(d) } }),
      }
    }
    default:
      throw new BankFileProblem(`${JSON.stringify(type)} is not a record`, { line })
  }
}

function statementOf({
  number,
  ...of
}: {
  line: number
  day: string
  opening: Money | null
  closing: Money | null
  number: string | null
}): BankRecord {
  const coversFrom = of.closing === null ? null : of.day
  return {
    type: 'statement',
    ...of,
    coversFrom,
    numbers: { electronic: number === null ? null : BigInt(number), legal: null },
  }
}

/** A bank that exchanges files in memory. Records deliveries, the inbox, and the archived and rejected files. */
export class FileBank implements Delivery {
  readonly outbox = new Map<string, string>()
  readonly inbox = new Map<string, string>()
  readonly archived: string[] = []
  readonly rejected = new Map<string, string>()
  /** How many files were delivered, not counting repeated deliveries. */
  deliveries = 0
  #answers = 0

  async put(name: string, bytes: AsyncIterable<string | Uint8Array>): Promise<{ sha256: string; size: number }> {
    const text = await textOf(Readable.from(bytes))
    const known = this.outbox.get(name)
    if (known === undefined) this.deliveries += 1
    if (known !== undefined && known !== text) throw new Error(`${name} was delivered before with other bytes`)
    this.outbox.set(name, text)
    return { sha256: createHash('sha256').update(text).digest('hex'), size: text.length }
  }

  async list() {
    return { files: [...this.inbox.keys()].map(name => ({ name, size: 1, modifiedAt: new Date(0) })), skipped: [] }
  }

  async *get(name: string) {
    yield Buffer.from(this.inbox.get(name) ?? '')
  }

  async archive(name: string): Promise<void> {
    this.inbox.delete(name)
    this.archived.push(name)
  }

  async reject(name: string, report: string): Promise<void> {
    this.inbox.delete(name)
    this.rejected.set(name, report)
  }

  /**
   * Leaves an answer in the inbox.
   * @param file the text, or the lines of the plain format without the last
   * @returns the name of the file
   */
  answer(file: string | readonly string[]): string {
    const name = `answer-${++this.#answers}`
    this.inbox.set(name, typeof file === 'string' ? file : [...file, 'end'].join('\n'))
    return name
  }

  /** The payments ordered in all files, by reference. */
  payments(): Map<string, bigint[]> {
    const found = new Map<string, bigint[]>()
    for (const text of this.outbox.values()) {
      for (const [reference = '', amount = ''] of text
        .split('\n')
        .slice(1)
        .map(line => line.split(';'))) {
        if (reference.startsWith('MM')) found.set(reference, [...(found.get(reference) ?? []), BigInt(amount)])
      }
    }
    return found
  }
}

/** A rail of files in euros, with the cut-off at 15:00 in Berlin. */
export function euroRail(changes: Partial<FileRailSettings> = {}): FileRailSettings {
  const timeZone = 'Europe/Berlin'
  const { cutOff = '15:00' } = changes
  return {
    name: 'euro-files',
    currency: 'EUR',
    format: plainFormat,
    debtors: { default: { name: 'Acme', account: { accountHolder: 'Acme', iban: ownIban } } },
    isInstant: false,
    canBeInstant: true,
    timeZone,
    cutOff,
    calendar: target,
    schedule: (now, isInstant = false) =>
      isInstant
        ? atOnce({ now, timeZone })
        : cutOffOf({ now, cutOff, timeZone, calendar: target, ...leadTimes['sepa-credit-transfer'] }),
    automatic: { paymentMax: 1_000_000n, batchMax: 100_000_000n, dayMax: 1_000_000_000n },
    countsAsPaid: null,
    delivery: null,
    ...changes,
  }
}

import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  accountReport,
  type Entry,
  type PaymentOrder,
  readCreditTransfer,
  statusReport,
  transaction,
  wholeBatch,
} from '../banks/iso20022.ts'
import type { Random } from './random.ts'

/** A payment order, once for each file that contained it. */
type Order = PaymentOrder & { file: string; outcome: Outcome }
type Outcome = 'paid' | 'failed' | 'returned'

/** An answer that is wrong on purpose. It must become one exception and change nothing. */
type Lie = { kind: 'contradiction' | 'amount' | 'unmatched'; reference: string }

/** The bank's record of payments and answers. */
export type BankBooks = {
  /** The files that the bank collected, with the message id of each batch. */
  files: { name: string; messageId: string; sha256: string }[]
  orders: Order[]
  lies: Lie[]
  /** Message ids of the batches that the bank rejected as a whole, for a reason that operators must decide about. */
  refused: string[]
  /** Names of the truncated files. */
  halves: string[]
  /** Names of the complete files. */
  answers: string[]
}

export type Bank = {
  books: BankBooks
  /** Stops delaying answers. */
  hurry(): void
  /** Files that still wait for an answer, or to be read by the program. */
  unfinished(): string[]
  stop(): Promise<void>
}

/** A file for the inbox. */
type Answer = {
  name: string
  text: string
  dueAt: number
  /** An answer that must be imported before this one. */
  after: Answer | undefined
  isHalf?: boolean
}

const account = 'DE75512108001245126199'
const tickMs = 50

/**
 * Starts a bank that collects files from an outbox and puts its answers into an inbox. It shares no code with the program. It
 * rejects and returns some payments, answers late, twice or with truncated files, and now and then sends a false answer.
 */
export function startBank(folder: string, random: Random): Bank {
  const [outbox, inbox, rejected, taken] = ['outbox', 'inbox', 'rejected', 'taken'].map(name => {
    const made = path.join(folder, name)
    mkdirSync(made, { recursive: true, mode: 0o700 })
    return made
  }) as [string, string, string, string]
  const books: BankBooks = { files: [], orders: [], lies: [], refused: [], halves: [], answers: [] }
  const waiting: Answer[] = []
  const put = new Set<Answer>()
  let serial = 0
  let isHurried = false
  let isStopping = false
  const nextId = () => `BANK${String(++serial).padStart(6, '0')}`
  const message = () => ({ id: nextId(), at: new Date() })
  const report = (messageId: string, status: string, failed: Order[]) =>
    statusReport(
      message(),
      { messageId, status, ...(status === 'RJCT' ? { reason: 'MS03' } : {}) },
      failed.map(({ reference }) => ({ reference, status: 'RJCT', reason: 'MS02' })),
    )
  const entry = (amount: bigint, direction: Entry['direction'], details: string): Entry => ({
    ...{ bank: nextId(), amount, direction, details },
    bookedOn: new Date().toISOString().slice(0, 10),
  })
  const notification = (entries: Entry[]) => accountReport(message(), { kind: 'camt.054', iban: account, entries })
  const names = (of: string) => readdirSync(of).filter(name => !name.startsWith('.'))

  /** Whether the program has booked a file: it then moves the file out of the inbox. */
  const isImported = ({ name }: Answer) => !names(inbox).includes(name) && !names(rejected).includes(name)

  const answer = (text: string, after?: Answer): Answer => {
    const delayMs = random.chance(0.15) ? random.between(5_000, 20_000) : random.between(0, 1_500)
    const planned = { name: `${nextId()}.xml`, text, dueAt: Date.now() + delayMs, after }
    waiting.push(planned)
    if (random.chance(0.12)) {
      waiting.push({
        ...planned,
        name: `${nextId()}-half.xml`,
        text: text.slice(0, random.between(1, text.length - 20)),
        isHalf: true,
      })
    }
    // Sends the same bytes again, and the same message in other bytes.
    if (random.chance(0.15)) waiting.push({ ...planned, name: `${nextId()}-again.xml`, dueAt: planned.dueAt + 700 })
    if (random.chance(0.1)) {
      waiting.push({
        ...planned,
        name: `${nextId()}-copy.xml`,
        text: `${text}<!-- copy -->`,
        dueAt: planned.dueAt + 300,
      })
    }
    return planned
  }

  const take = (name: string) => {
    // Collects a file as a bank does: moves it away first, and pays it even if it has collected a copy before.
    const file = path.join(taken, `${++serial}-${name}`)
    renameSync(path.join(outbox, name), file)
    const text = readFileSync(file, 'utf8')
    const { messageId, orders } = readCreditTransfer(text, name)
    books.files.push({ name, messageId, sha256: createHash('sha256').update(text).digest('hex') })
    const isRefusedWhole = random.chance(0.15)
    const decided = orders.map(order => {
      const outcome: Outcome =
        isRefusedWhole || random.chance(0.08) ? 'failed' : random.chance(0.08) ? 'returned' : 'paid'
      return { ...order, file: name, outcome }
    })
    books.orders.push(...decided)
    reply(messageId, decided, isRefusedWhole)
  }

  const reply = (messageId: string, orders: Order[], isRefusedWhole: boolean) => {
    const failed = orders.filter(({ outcome }) => outcome === 'failed')
    const debited = orders.filter(({ outcome }) => outcome !== 'failed')
    const returned = orders.filter(({ outcome }) => outcome === 'returned')
    const status = answer(
      isRefusedWhole ? report(messageId, 'RJCT', []) : report(messageId, failed.length === 0 ? 'ACTC' : 'PART', failed),
    )
    const lie = (kind: Lie['kind'], reference: string, text: string, after: Answer | undefined) => {
      books.lies.push({ kind, reference })
      answer(text, after)
    }
    if (isRefusedWhole) books.refused.push(messageId)
    if (debited.length === 0) return
    // The meaning of a batch-booked entry depends on which of its payments have already failed.
    const isWhole = random.chance(0.3)
    const total = debited.reduce((sum, { amount }) => sum + amount, 0n)
    const entries = isWhole
      ? [entry(total, 'DBIT', wholeBatch(messageId))]
      : debited.map(({ reference, amount }) => entry(amount, 'DBIT', transaction({ reference })))
    const booked = answer(notification(entries), isWhole ? status : undefined)
    if (returned.length > 0) {
      // Sometimes the bank reports the return of a payment before the payment itself.
      const after = isWhole || random.chance(0.8) ? booked : undefined
      const back = returned.map(({ reference, amount }) =>
        entry(amount, 'CRDT', transaction({ reference, returned: { reason: 'MS03' } })),
      )
      answer(notification(back), after)
    }
    const victim = random.pick(debited)
    const { reference, amount } = victim
    const debit = (of: string, units: bigint) => notification([entry(units, 'DBIT', transaction({ reference: of }))])
    if (random.chance(0.15)) lie('contradiction', reference, report(messageId, 'PART', [victim]), booked)
    if (random.chance(0.15)) lie('amount', reference, debit(reference, amount + 1n), undefined)
    if (random.chance(0.1)) {
      const stranger = `MM${'A'.repeat(8)}${base32(serial)}`
      lie('unmatched', stranger, debit(stranger, amount), undefined)
    }
  }

  const post = (each: Answer) => {
    put.add(each)
    books[each.isHalf ? 'halves' : 'answers'].push(each.name)
    const part = path.join(inbox, `.${each.name}.part`)
    writeFileSync(part, each.text, { mode: 0o600 })
    renameSync(part, path.join(inbox, each.name))
  }

  const running = (async () => {
    while (!isStopping) {
      for (const name of names(outbox)) take(name)
      const isDue = ({ dueAt, after }: Answer) =>
        (isHurried || dueAt <= Date.now()) && (after === undefined || (put.has(after) && isImported(after)))
      for (const each of waiting.filter(isDue)) {
        waiting.splice(waiting.indexOf(each), 1)
        post(each)
      }
      await sleep(tickMs)
    }
  })()
  // Awaited when the bank stops; until then, this avoids an unhandled rejection.
  running.catch(() => undefined)

  return {
    books,
    hurry() {
      isHurried = true
    },
    unfinished: () => [
      ...names(outbox).map(name => `${name} was not collected`),
      ...waiting.map(({ name }) => `${name} was not put into the inbox`),
      ...names(inbox).map(name => `${name} was not imported`),
    ],
    async stop() {
      isStopping = true
      await running
    },
  }
}

function base32(value: number): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  return [25, 20, 15, 10, 5, 0].map(bits => letters[(value >> bits) & 31]).join('')
}

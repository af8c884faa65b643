import { createHash, type Hash } from 'node:crypto'
import type { Db } from '../database/database.ts'
import { issue, issuesMax, Problem } from '../kernel/errors.ts'
import { amountMax, byCurrency, type Currency, type Money } from '../kernel/money.ts'
import { foldEmail } from '../members/email.ts'
import * as members from '../members/members.ts'
import { readLines, type SheetFile } from '../tabular/reading.ts'
import { amountIn, type FileLine, payFile, type ReferenceColumn } from './file.ts'
import { type Line, linesMax } from './rules.ts'

/** A file of pay without errors. Each part becomes a pay run. */
export type CheckedFile = { lineCount: number; memberCount: number; totals: Money[]; parts: Part[] }
/** `digest`: SHA-256 of the lines, as `findIdentical` compares it. */
type Part = { lines: Line[]; digest: string }

/**
 * Reads a file of pay: finds the member of each row, and reads the amounts in the currencies of the members. Changes nothing.
 * @throws Problem `FileContent` with one issue per row that has errors
 */
export async function checkFile(
  db: Db,
  { partnerId, file, signal }: { partnerId: string; file: SheetFile; signal: AbortSignal },
): Promise<CheckedFile> {
  const faults = new FaultList()
  const parts: { lines: Line[]; hash: Hash }[] = []
  const sums = new Sums()
  const paid = new Set<string>()
  const onFault = (row: number, message: string) => faults.add(row, message)
  const onLines = async (read: FileLine[]) => {
    const payeeOf = await findPayees(db, { partnerId, lines: read })
    for (const line of read) {
      const payee = payeeOf(line)
      const amount = typeof payee === 'string' ? payee : amountIn(payee.currency, line)
      if (typeof payee === 'string' || typeof amount === 'string') faults.add(line.row, String(amount))
      else if (!sums.add({ amount, currency: payee.currency }))
        faults.add(
          line.row,
          `${line.amount.decimal?.column ?? 'amount_minor'}: raises the total in ${payee.currency} above ${amountMax} minor units`,
        )
      else {
        const { id: memberId, currency } = payee
        let part = parts.at(-1)
        if (part === undefined || part.lines.length === linesMax) {
          part = { lines: [], hash: createHash('sha256') }
          parts.push(part)
        }
        part.lines.push({ memberId, amount, currency })
        part.hash.update(`${memberId} ${amount} ${currency}\n`)
        paid.add(memberId)
      }
    }
  }
  const lineCount = await readLines(file, payFile, { signal, onLines, onFault })
  faults.throwIfAny()
  return {
    lineCount,
    memberCount: paid.size,
    totals: sums.totals(),
    parts: parts.map(({ lines, hash }) => ({ lines, digest: hash.digest('hex') })),
  }
}

/** @returns a function that finds the member of a line, or says why it cannot */
async function findPayees(
  db: Db,
  { partnerId, lines }: { partnerId: string; lines: FileLine[] },
): Promise<(line: FileLine) => members.Payee | string> {
  const valuesOf = (column: ReferenceColumn) => [
    ...new Set(lines.flatMap(line => line.references.filter(each => each.column === column).map(({ value }) => value))),
  ]
  const found = {
    member_id: await members.findPayees(db, { partnerId, memberIds: valuesOf('member_id') }),
    worker_id: await members.findPayees(db, { partnerId, workerIds: valuesOf('worker_id') }),
    email: await members.findPayees(db, { partnerId, emails: valuesOf('email') }),
  }
  const by = {
    member_id: new Map(found.member_id.map(payee => [payee.id, payee])),
    worker_id: new Map(found.worker_id.map(payee => [payee.workerId, payee])),
    // Offboarded members may have had the same address; its current holder comes last.
    email: new Map(
      found.email
        .toSorted((a, b) => Number(b.status === 'inactive') - Number(a.status === 'inactive'))
        .map(payee => [foldEmail(payee.email), payee]),
    ),
  }
  return ({ references }) => {
    let payee: members.Payee | undefined
    for (const { column, value } of references) {
      const named = by[column].get(column === 'email' ? foldEmail(value) : value)
      if (named === undefined) return `${column}: there is no such member`
      if (named.status === 'inactive') return `${column}: the member is inactive; reinstate the member first`
      if (payee !== undefined && payee.id !== named.id)
        return `${column}: belongs to another member than ${references[0]?.column}`
      payee = named
    }
    return payee ?? 'the row names no member'
  }
}

/** Sums by currency, which must fit into a number on the wire. */
class Sums {
  readonly #sums = new Map<Currency, { sum: bigint; size: bigint }>()

  /** @returns whether the sum fits */
  add({ amount, currency }: Money): boolean {
    const { sum, size } = this.#sums.get(currency) ?? { sum: 0n, size: 0n }
    const grown = size + (amount < 0n ? -amount : amount)
    if (grown > BigInt(amountMax)) return false
    this.#sums.set(currency, { sum: sum + amount, size: grown })
    return true
  }

  totals(): Money[] {
    return [...this.#sums].map(([currency, { sum }]) => ({ amount: sum, currency })).sort(byCurrency)
  }
}

/** Collects the errors of the first faulty rows, and counts the other faulty rows. */
class FaultList {
  readonly #faults: { row: number; message: string }[] = []
  #more = 0

  add(row: number, message: string): void {
    if (this.#faults.length < issuesMax) this.#faults.push({ row, message })
    else this.#more += 1
  }

  throwIfAny(): void {
    if (this.#faults.length === 0) return
    const issues = this.#faults
      .toSorted((a, b) => a.row - b.row)
      .map(({ row, message }) => issue('FileContent', message, { row: String(row) }))
    const last = this.#faults.at(-1)
    if (this.#more > 0)
      issues.push(
        issue('FileContent', `${this.#more} more rows have errors; fix the others first`, { row: String(last?.row) }),
      )
    throw new Problem('FileContent', issues)
  }
}

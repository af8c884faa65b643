import assert from 'node:assert/strict'
import { inDecimals } from '../banks/iso20022.ts'
import { readStandard18 } from './file-rails-program.ts'

type Payment = { account: string; amount: bigint; entryDay: string; returned: bigint; code: string }

/** The charge that the bank deducts from returned money. */
const charge = 500n

/**
 * A bank that reads Standard 18 and keeps its own accounts. It pays each file on its entry day, confirms nothing, and advises
 * returns as ARUCS. It has no bank holidays.
 */
export class BacsBank {
  readonly #payments = new Map<string, Payment>()
  readonly #files = new Set<string>()

  /** Collects the new files in its inbox. */
  receive(files: ReadonlyMap<string, string>): void {
    for (const [name, text] of files) {
      if (this.#files.has(name)) continue
      this.#files.add(name)
      const [, year, day] = /^UHL1.(\d\d)(\d{3})/m.exec(text) ?? []
      assert(year !== undefined && day !== undefined)
      const entryDay = nextWeekday(new Date(Date.UTC(2000 + Number(year), 0, Number(day))))
      for (const { reference, ...payment } of readStandard18(text))
        this.#payments.set(reference, { ...payment, entryDay, returned: 0n, code: '' })
    }
  }

  /** The payments that were made and have not come back. */
  paid(now: Date): string[] {
    return [...this.moved(now)].flatMap(([reference, { amount, returned }]) =>
      amount < 0n && returned === 0n ? [reference] : [],
    )
  }

  /** The net amount that the bank has moved for each payment, including returns. */
  moved(now: Date): Map<string, { account: string; amount: bigint; returned: bigint }> {
    const today = now.toISOString().slice(0, 10)
    const made = [...this.#payments].filter(([, { entryDay }]) => entryDay <= today)
    return new Map(
      made.map(([reference, { account, amount, returned }]) => [
        reference,
        { account, amount: returned - amount, returned },
      ]),
    )
  }

  /** Returns a payment, with or without a charge. @returns the advice */
  return(reference: string, { isCharged, code }: { isCharged: boolean; code: string }): string {
    const payment = this.#payments.get(reference)
    assert(payment !== undefined)
    payment.returned = payment.amount - (isCharged ? charge : 0n)
    payment.code = code
    return this.#advice([reference])
  }

  /** Repeats the advice of all returns; undefined if there are none. */
  repeat(): string | undefined {
    const returned = [...this.#payments].flatMap(([reference, { returned }]) => (returned > 0n ? [reference] : []))
    return returned.length === 0 ? undefined : this.#advice(returned)
  }

  #advice(references: readonly string[]): string {
    const rows = references.map(reference => {
      const { returned, code } = this.#payments.get(reference) ?? assert.fail()
      return `${reference},${inDecimals(returned)},${code}`
    })
    return ['Reference,Amount,Code', ...rows].map(row => `${row}\r\n`).join('')
  }
}

function nextWeekday(day: Date): string {
  const next = new Date(day.getTime() + 86_400_000)
  return next.getUTCDay() === 0 || next.getUTCDay() === 6 ? nextWeekday(next) : next.toISOString().slice(0, 10)
}

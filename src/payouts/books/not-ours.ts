import { createHash } from 'node:crypto'
import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import type { Currency } from '../../kernel/money.ts'
import * as dues from '../../settlements/dues.ts'
import { batchReferencesIn, referencesIn } from '../payments/reference.ts'
import { bankTextCharsMax, hasText, type SealedText, sealedText, withBankTexts } from './bank-texts.ts'
import { lockRail } from './rail-lock.ts'

// Entries of a bank that are not ours, by a text that they have in common: the bank's charges, or other business on the same account.
// They can only be ignored, and never if they may be the money of a payment, batch or settlement of ours.

export const textCharsMin = 5
export const textCharsMax = 140

// Closed in one transaction, which holds the lock of the rail.
const countMax = 20_000

/** The entries that have a text, summed up. */
export type Matching = {
  /** Sums of the entries that would be closed, by currency and direction. */
  sums: { currency: Currency; direction: 'in' | 'out'; count: number; sum: bigint }[]
  count: number
  /** How many have the text, but may be about something of ours: they are decided one by one. */
  keptCount: number
  /** Identifies the set of entries that would be closed. */
  fingerprint: string
}

/** Previews closing by a text. */
export async function preview(db: Reader, { rail, text }: { rail: string; text: string }): Promise<Matching> {
  const { notOurs, keptCount } = await divide(db, { rail, text: requireText(text) })
  return summarise(notOurs, keptCount)
}

type ClosingByText = { rail: string; text: string; fingerprint: string; person: string; note: string; now: Date }

/**
 * Closes all open entries of a rail that have a text and are not ours.
 * @param closing.fingerprint of the preview
 * @throws Problem `Conflict` if the set of entries has changed since the preview, or is empty
 */
export async function closeAll(
  tx: Tx,
  { rail, text, fingerprint, person, note, now }: ClosingByText,
): Promise<Matching> {
  await lockRail(tx, { rail, for: 'records' })
  const folded = requireText(text)
  const { notOurs, keptCount } = await divide(tx, { rail, text: folded })
  const closed = summarise(notOurs, keptCount)
  if (closed.fingerprint !== fingerprint)
    throw conflict('The entries with this text have changed since the preview; preview them again')
  if (closed.count === 0) throw conflict('No open entry with this text can be closed')
  await close(tx, { ids: notOurs.map(({ id }) => id), text: folded, person, note, now })
  return closed
}

type ClosingByRule = {
  rail: string
  rule: { id: string; text: string; note: string }
  fingerprints: readonly string[]
  now: Date
}

/** Closes the entries that a rule matches. The caller holds the lock of the rail's records. */
export async function closeByRule(
  tx: Tx,
  { rail, rule: { id: ruleId, text, note }, fingerprints, now }: ClosingByRule,
): Promise<void> {
  const { notOurs } = await divide(tx, { rail, text, fingerprints })
  const ids = notOurs.map(({ id }) => id)
  await close(tx, { ids, text, ruleId, person: 'system', note: `Rule ${ruleId}, "${text}": ${note}`, now })
}

type ClosedEntries = {
  ids: readonly string[]
  text: string
  ruleId?: string | null
  person: string
  note: string
  now: Date
}

async function close(tx: Tx, { ids, text, ruleId = null, person, note, now }: ClosedEntries): Promise<void> {
  if (ids.length === 0) return
  await sql`
    update payout_exceptions
       set closed_at = ${now}, closed_by = ${person}, decision = 'ignore', note = ${note}, closed_by_text = ${text}, rule_id = ${ruleId}
     where id = any(${[...ids]}::text[]) and closed_at is null`.execute(tx)
}

/** Folds letter case, width and blanks. */
function fold(text: string): string {
  return text.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase()
}

/**
 * A text to match, folded.
 * @throws Problem `BodyValidation` if it is too short to tell entries apart, or too long
 */
export function requireText(text: string): string {
  const folded = fold(text)
  const { length } = [...folded]
  if (length < textCharsMin || length > textCharsMax)
    throw problem('BodyValidation', `The text needs ${textCharsMin} to ${textCharsMax} characters`, { path: 'text' })
  return folded
}

type UndecidedEntry = {
  id: string
  reference: string | null
  bankText: string
  /** Negative if money left. */
  amount: bigint
  currency: Currency
  isNamed: boolean
}

/** Divides the open entries that have a text into those that are not ours, and those that may be. */
async function divide(
  db: Reader,
  { rail, text, fingerprints }: { rail: string; text: string; fingerprints?: readonly string[] },
): Promise<{ notOurs: UndecidedEntry[]; keptCount: number }> {
  const { rows } = await sql<Omit<UndecidedEntry, 'bankText'> & SealedText>`
    select e.id, e.reference, e.rail, ${sealedText}, e.currency,
           case when e.outcome = 'paid' and e.amount > 0 then -e.amount else e.amount end as amount,
           (e.partner_id is not null or e.withdrawal_id is not null
            or exists (select from payout_proposals where subject = e.id)) as is_named
      from payout_exceptions e
     where e.rail = ${rail} and e.closed_at is null and e.kind in ('money_in', 'money_out', 'unmatched')
       and ${hasText} and e.amount is not null
           ${fingerprints === undefined ? sql`` : sql`and e.fingerprint = any(${[...fingerprints]}::text[])`}
     order by e.id`.execute(db)
  const opened = await withBankTexts(db, rows)
  const matching = opened.flatMap(({ bankText, ...entry }) => {
    return bankText !== null && fold(bankText).includes(text) ? [{ ...entry, bankText }] : []
  })
  if (matching.length > countMax) throw conflict(`More than ${countMax} entries have this text; use a longer one`)
  const ours = await Ours.read(db, matching)
  const notOurs = matching.filter(entry => !ours.mayHave(entry))
  return { notOurs, keptCount: matching.length - notOurs.length }
}

/** The payments, batches and settlements that some entries may be about. */
class Ours {
  readonly #references: Set<string>
  readonly #amounts: Set<string>

  private constructor(references: string[], amounts: string[]) {
    this.#references = new Set(references)
    this.#amounts = new Set(amounts)
  }

  static async read(db: Reader, entries: readonly UndecidedEntry[]): Promise<Ours> {
    const named = entries.map(namedBy)
    const amounts = [...new Set(entries.map(({ amount }) => unsigned(amount)))]
    const currencies = [...new Set(entries.map(({ currency }) => currency))]
    const found: string[] = []
    for (const currency of currencies) found.push(...(await readAmounts(db, { currency, amounts })))
    return new Ours(await readReferences(db, named), found)
  }

  mayHave(entry: UndecidedEntry): boolean {
    const { reference, bankText, amount, currency, isNamed } = entry
    // The part that was cut off may have held a reference.
    const isCut = bankText.length >= bankTextCharsMax || reference?.includes('… SHA-256 ')
    if (isNamed || isCut || this.#amounts.has(`${currency} ${unsigned(amount)}`)) return true
    const { payments, batches, settlements } = namedBy(entry)
    return [...payments, ...batches, ...settlements].some(each => this.#references.has(each))
  }
}

type Named = { payments: string[]; batches: string[]; settlements: string[] }

function namedBy({ reference, bankText }: UndecidedEntry): Named {
  const text = `${reference ?? ''} ${bankText}`
  const payments = [...referencesIn(text), ...(reference === null ? [] : [reference])]
  return { payments, batches: batchReferencesIn(text), settlements: dues.referencesIn([text]) }
}

/** Filters references: returns ours. */
async function readReferences(db: Reader, named: readonly Named[]): Promise<string[]> {
  const all = (kind: keyof Named) => [...new Set(named.flatMap(each => each[kind]))]
  const { rows } = await sql<{ reference: string }>`
    select reference from payout_references where reference = any(${all('payments')}::text[])
    union all
    select message_id from payout_batches where message_id = any(${all('batches')}::text[])`.execute(db)
  // In any currency.
  const settlements = await dues.listNamed(db, { references: all('settlements'), currency: 'EUR' })
  return [...rows, ...settlements].map(({ reference }) => reference)
}

/**
 * Filters amounts: returns those of a payment, batch or settlement of ours, as `EUR 9950`. The database refuses to close them by a text.
 */
async function readAmounts(
  db: Reader,
  { currency, amounts }: { currency: Currency; amounts: readonly bigint[] },
): Promise<string[]> {
  const { rows } = await sql<{ amount: bigint }>`
    select amount from amounts_of_ours(${currency}, ${amounts.map(String)}::bigint[]) as amount`.execute(db)
  return rows.map(({ amount }) => `${currency} ${amount}`)
}

function unsigned(amount: bigint): bigint {
  return amount < 0n ? -amount : amount
}

function summarise(entries: readonly UndecidedEntry[], keptCount: number): Matching {
  const sums = [...Map.groupBy(entries, ({ amount, currency }) => `${currency} ${amount < 0n ? 'out' : 'in'}`)]
    .map(([, group]) => {
      const [{ currency, amount }] = group as [UndecidedEntry]
      const sum = group.reduce((total, each) => total + unsigned(each.amount), 0n)
      return { currency, direction: amount < 0n ? ('out' as const) : ('in' as const), count: group.length, sum }
    })
    .sort((a, b) => (`${a.currency} ${a.direction}` < `${b.currency} ${b.direction}` ? -1 : 1))
  const hash = createHash('sha256')
  for (const { id, amount, currency } of entries) hash.update(`${id} ${amount}${currency}\n`)
  return { sums, count: entries.length, keptCount, fingerprint: hash.digest('hex') }
}

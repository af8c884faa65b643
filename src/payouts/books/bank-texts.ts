import { type Db, type Reader, sql } from '../../database/database.ts'
import { sealerOf } from '../../sealing/held.ts'
import { openMemberKey } from '../../sealing/member-keys.ts'
import type { SealedTable } from '../../sealing/rewrap.ts'
import type { Old } from '../../worker/task.ts'

// What a bank says in words about money that did not fit may hold names and accounts.

/** What a bank says, and the payment of ours that it is about. */
type Told = {
  rail: string
  bankText?: string | null
  payout?: { partnerId: string; withdrawalId: string } | undefined
}

/** The member of a payment, with the wrapped key that seals what a bank says about it; null once it was destroyed. */
type Payee = { partnerId: string; memberId: string; paymentKey: Buffer | null }

/** The sealed text of an exception. @property aboutPayment the payment of ours whose member it is about, as JSON; null if it is not */
export type SealedText = {
  rail: string
  sealedText: Buffer | null
  aboutPayment: { partnerId: string; withdrawalId: string } | null
}

/** SQL columns of the exception `e` for `withBankTexts`, beside its rail. */
export const sealedText = sql<Omit<SealedText, 'rail'>>`
  coalesce(e.bank_text, e.bank_text_about_member) as sealed_text,
  case when e.bank_text_about_member is not null
       then json_build_object('partnerId', e.partner_id, 'withdrawalId', e.withdrawal_id) end as about_payment`

/** SQL condition: the exception `e` has a text. */
export const hasText = sql<boolean>`(e.bank_text is not null or e.bank_text_about_member is not null)`

/** Replaces the sealed text of each row by the text: null if there is none, or the key of the payment's member was destroyed. */
export async function withBankTexts<Row extends SealedText>(
  db: Reader,
  rows: readonly Row[],
): Promise<(Omit<Row, 'sealedText' | 'aboutPayment'> & { bankText: string | null })[]> {
  const payees = await readPayees(
    db,
    rows.flatMap(({ aboutPayment }) => aboutPayment ?? []),
  )
  const sealer = sealerOf(db)
  const open = ({ rail, sealedText: sealed, aboutPayment }: SealedText): string | null => {
    if (sealed === null) return null
    if (aboutPayment === null) return sealer.open(sealed, { kind: 'bank-text', owner: rail }).toString()
    const payee = payees.get(nameOf(aboutPayment))
    if (payee === undefined || payee.paymentKey === null) return null
    return openMemberKey(sealer, 'payment', payee.paymentKey, payee).open(sealed, 'bank-text')
  }
  return rows.map(({ sealedText: sealed, aboutPayment, ...row }) => ({
    ...row,
    bankText: open({ rail: row.rail, sealedText: sealed, aboutPayment }),
  }))
}

/** A text in the column of its key. */
type Stored = { text: Buffer | null; aboutMember: Buffer | null }

/** Seals what a bank says. @returns both null if there is no text, or the key of its member was destroyed */
export async function sealBankTexts(db: Reader, all: readonly Told[]): Promise<Stored[]> {
  const payees = await readPayees(
    db,
    all.flatMap(({ payout, bankText }) => (payout === undefined || bankText == null ? [] : [payout])),
  )
  const sealer = sealerOf(db)
  return all.map(({ rail, bankText, payout }) => {
    if (bankText == null) return { text: null, aboutMember: null }
    const text = storable(bankText)
    const payee = payout && payees.get(nameOf(payout))
    if (payee === undefined) return { text: sealer.seal(text, { kind: 'bank-text', owner: rail }), aboutMember: null }
    const { paymentKey } = payee
    const key = paymentKey && openMemberKey(sealer, 'payment', paymentKey, payee)
    return { text: null, aboutMember: key?.seal(text, 'bank-text') ?? null }
  })
}

async function readPayees(
  db: Reader,
  payouts: readonly { partnerId: string; withdrawalId: string }[],
): Promise<Map<string, Payee>> {
  if (payouts.length === 0) return new Map()
  const { rows } = await sql<Payee & { withdrawalId: string }>`
    select w.partner_id, w.id as withdrawal_id, w.member_id, k.payment_key
      from unnest(${payouts.map(({ partnerId }) => partnerId)}::text[], ${payouts.map(({ withdrawalId }) => withdrawalId)}::text[])
             as p (partner_id, withdrawal_id)
      join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
      left join member_keys k on k.partner_id = w.partner_id and k.member_id = w.member_id`.execute(db)
  return new Map(rows.map(row => [nameOf(row), row]))
}

function nameOf({ partnerId, withdrawalId }: { partnerId: string; withdrawalId: string }): string {
  return `${partnerId} ${withdrawalId}`
}

/** Of a text of the bank that is kept. */
export const bankTextCharsMax = 1_000

function storable(text: string): string {
  const written = text.toWellFormed().replaceAll('\0', '')
  return written.length <= bankTextCharsMax ? written : [...written].slice(0, bankTextCharsMax).join('')
}

/**
 * The parts of a text that may be references of ours, for the database to look up: the text itself does not reach its log, nor the tables.
 */
export function referenceLike(text: string): string {
  const plain = text.toUpperCase().replace(/[^A-Z0-9]/g, '')
  return [...plain.matchAll(/(?=(MM[A-Z0-9]{14,15}))/g)].map(([, found]) => found).join(' ')
}

/** SQL that finds the exceptions that were closed before an instant, and still have the bank's words. */
export const oldBankTexts = ({ before, countMax }: Old) => sql`
  select e.id from payout_exceptions e where ${hasText} and e.closed_at < ${before} order by e.closed_at limit ${countMax}`

/** Destroys the bank's words. Amounts and references stay. @returns how many were destroyed */
export async function removeOldBankTexts(db: Db, old: Old): Promise<number> {
  const { numAffectedRows } = await sql`
    update payout_exceptions e set bank_text = null, bank_text_about_member = null
      from (${oldBankTexts(old)} for update skip locked) old where e.id = old.id`.execute(db)
  return Number(numAffectedRows ?? 0n)
}

/** For rotating the installation's key. */
export const bankTextsTable: SealedTable = {
  table: 'payout_exceptions',
  key: [['id', 'text']],
  columns: [{ name: 'bank_text', kind: 'bank-text' }],
  owner: 'rail',
}

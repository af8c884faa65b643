import { type Cursor, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql } from '../database/database.ts'
import type { Currency } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import { profileReader } from '../members/rows.ts'
import type { StoredProfile } from '../members/sealing.ts'
import type { OfCycle } from './pay-cycles.ts'

/**
 * The amount that payroll has to deduct from a member's pay for a cycle, in minor units: withdrawals including fees, and amounts
 * carried over. Negative if payroll has to give money back. Never zero.
 */
export type Deduction = { memberId: string; currency: Currency; amount: bigint }

/**
 * Lists deductions by member, and by currency if a member's currency has changed. Provisional while the cycle is open.
 * @param options.skip given if the caller counts entries; otherwise a page ends with the last entry of a member
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(
  db: Reader,
  { page, skip, cursor, ...of }: OfCycle & { page: Page; skip?: number | undefined; cursor?: Cursor | undefined },
): Promise<Deduction[]> {
  await requireKnown(db, 'members', { partnerId: of.partnerId, cursor })
  const end = skip === undefined ? sql`fetch first ${page.take} rows with ties` : sql`limit ${page.take}`
  const { rows } = await sql<Deduction>`
    select member_id, currency, amount
      from (select member_id, currency, amount from ledger_deductions
             where ${isOf(of, cursor?.id)}
             order by member_id ${skip === undefined ? sql`` : sql`, currency`} offset ${page.skip} ${end}) p
     order by member_id, currency`.execute(db)
  return rows
}

export async function count(db: Reader, of: OfCycle): Promise<number> {
  return (await ledger.sumCycle(db, of)).reduce((sum, { deductions }) => sum + deductions, 0)
}

/** The e-mail is null for a member who was erased. */
export type DeductionWithWorker = Deduction & { workerId: string | null; email: string | null }

/** Yields the whole list in chunks that never split a member. */
export async function* listAll(db: Reader, of: OfCycle): AsyncGenerator<DeductionWithWorker[]> {
  const open = profileReader(db, of.partnerId)
  let after = ''
  for (;;) {
    const { rows } = await sql<Deduction & Pick<StoredProfile, 'profile' | 'profileKey'>>`
      select d.member_id, d.currency, d.amount, m.profile, m.profile_key
        from (select member_id, currency, amount from ledger_deductions
               where ${isOf(of, after)}
               order by member_id fetch first ${pieceMax} rows with ties) d
       -- Looks up each member: a join would read all members of the partner for every chunk.
       cross join lateral (select profile, profile_key
                             from members left join member_keys k on k.partner_id = members.partner_id and member_id = id
                            where members.partner_id = ${of.partnerId} and id = d.member_id limit 1) m
       order by d.member_id, d.currency`.execute(db)
    if (rows.length === 0) return
    yield rows.map(({ profile, profileKey, ...deduction }) => {
      if (profile === null) return { ...deduction, workerId: null, email: null }
      const { workerId, email } = open({ id: deduction.memberId, profile, profileKey })
      return { ...deduction, workerId, email }
    })
    after = rows.at(-1)?.memberId ?? after
  }
}

// Rows read per query. A statement of this size takes some tens of milliseconds.
const pieceMax = 5_000

function isOf({ partnerId, payCycleId }: OfCycle, after = '') {
  return sql`partner_id = ${partnerId} and pay_cycle_id = ${payCycleId} and member_id > ${after} and amount <> 0`
}

import { type Reader, sql } from '../database/database.ts'
import * as memberImports from '../member-imports/erase.ts'
import type { ErasableMember } from '../members/erase.ts'
import { listUnusedIds } from '../withdrawals/intents.ts'
import { dayMs, type Facts, periods } from './rules.ts'

// Enough to say what has to be done; the rest shows at the next attempt.
const shownMax = 10

/** Reads what prevents the erasure of a member. While the member is locked for it, nothing more can appear. */
export async function readFacts(
  db: Reader,
  { partnerId, memberId, member, now }: { partnerId: string; memberId: string; member: ErasableMember; now: Date },
): Promise<Facts> {
  const since = new Date(now.getTime() - periods.returnDays * dayMs)
  const idsOf = (query: ReturnType<typeof sql>) => sql`
    array(select id from (${query}) found order by id limit ${shownMax})::text[]`
  const { rows } = await sql<
    Omit<Facts, 'status' | 'returnable' | 'unfinishedImports'> & { returnable: [string, string][] | null }
  >`
    with own as materialized (
      select w.id, w.status, w.created_at, p.reference, greatest(p.created_at, p.expected_at) as sent_at
        from withdrawals w
        left join payouts p on p.partner_id = w.partner_id and p.withdrawal_id = w.id
       where w.partner_id = ${partnerId} and w.member_id = ${memberId}
    )
    select ${idsOf(sql`
             select id from withdrawal_intents
              where status = 'pending' and partner_id = ${partnerId} and member_id = ${memberId} and expires_at > ${now}`)}
             as pending_intents,
           ${idsOf(sql`select id from own where status in ('held', 'submitted')`)} as unfinished_withdrawals,
           (select json_agg(array[id::text, sent_at::text] order by id)
              from (select id, sent_at from own
                     where status not in ('held', 'submitted') and sent_at > ${since} order by id desc limit ${shownMax}) f)
             as returnable,
           ${idsOf(sql`
             select e.id from payout_exceptions e
              where e.closed_at is null
                and exists (select from own where own.reference = e.reference
                               or (e.partner_id = ${partnerId} and own.id = e.withdrawal_id))`)} as open_exceptions,
           (select coalesce(json_agg(json_build_object('currency', currency, 'available', available::text, 'owed', owed::text)), '[]')
              from ledger_balances
             where partner_id = ${partnerId} and member_id = ${memberId} and (available > 0 or owed > 0)) as balances,
           ${idsOf(sql`
             select r.id from pay_runs r
              where r.partner_id = ${partnerId} and r.status = 'Scheduled'
                and exists (select from pay_run_lines l
                             where l.partner_id = r.partner_id and l.pay_run_id = r.id and l.member_id = ${memberId}
                               and l.amount <> 0)`)} as scheduled_pay_runs,
           (select coalesce(json_agg(json_build_object('payCycleId', c.id, 'status', c.status) order by c.id), '[]')
              from pay_cycles c
             where c.partner_id = ${partnerId} and c.settled_at is null
               and exists (select from ledger_deductions d
                            where d.partner_id = c.partner_id and d.pay_cycle_id = c.id and d.member_id = ${memberId}
                              and d.amount <> 0)) as unsettled_cycles,
           (select max(created_at) from own) as last_paid_at`.execute(db)
  const [found] = rows
  if (found === undefined) throw new Error('The facts of an erasure are one row')
  return {
    ...found,
    status: member.status,
    balances: found.balances.map(({ currency, available, owed }) => ({
      currency,
      available: BigInt(available),
      owed: BigInt(owed),
    })),
    returnable: (found.returnable ?? []).map(([withdrawalId, sentAt]) => ({
      withdrawalId,
      until: new Date(new Date(sentAt).getTime() + periods.returnDays * dayMs),
    })),
    unfinishedImports: await memberImports.listUnfinishedNaming(db, {
      ...{ partnerId, memberId, names: member.names, countMax: shownMax },
    }),
  }
}

/** The ids of a member's withdrawals and intents, under which metadata and the responses to requests are stored. */
export async function listResources(
  db: Reader,
  { partnerId, memberId, createdAt, now }: { partnerId: string; memberId: string; createdAt: Date; now: Date },
): Promise<{ withdrawalIds: string[]; intentIds: string[] }> {
  const { rows } = await sql<{ id: string; withdrawalIntentId: string }>`
    select id, withdrawal_intent_id from withdrawals
     where partner_id = ${partnerId} and member_id = ${memberId}`.execute(db)
  const intentIds = rows.map(({ withdrawalIntentId }) => withdrawalIntentId)
  for await (const ids of listUnusedIds(db, { partnerId, memberId, since: createdAt, now })) intentIds.push(...ids)
  return { withdrawalIds: rows.map(({ id }) => id), intentIds }
}

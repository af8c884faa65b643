import assert from 'node:assert/strict'
import type { BankAccount } from '../../../bank-accounts/rules.ts'
import { type Reader, sql, type Tx } from '../../../database/database.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { Restriction } from '../../../members/restrictions.ts'
import { inScope, partnerOf, type Scope } from '../../../worker/task.ts'
import { copyCursor } from '../../books/cursors.ts'
import { type Payment, type Report, type StoredReport, toReport } from '../../payments/payment.ts'
import type { Channel } from '../channel.ts'

/** How the simulated bank treats a payment: docs/reference/simulated-bank.md. */
export type Behaviour = 'paid' | 'failed' | 'returned' | 'slow' | 'silent' | 'twice' | 'lost'

/** The faults that a partner can queue for its next payments. */
export const faults = ['timeout', 'error', 'duplicate', 'late', 'contradiction', 'unknown_reference'] as const
export type BankFault = (typeof faults)[number]

/** The outcome that a partner can choose for one payment; `hold`: the bank accepts it and reports nothing. */
export type InstructedOutcome = 'hold' | 'paid' | 'failed' | 'returned'
export type Instruction = { outcome: InstructedOutcome; reason: string | null; restriction: Restriction | null }

// A change here is a change of docs/reference/simulated-bank.md: partners test against these values.
const bySortCode: ReadonlyMap<string, Behaviour> = new Map([
  ['000001', 'failed'],
  ['000002', 'returned'],
  ['000003', 'slow'],
  ['000004', 'silent'],
  ['000005', 'twice'],
  ['000006', 'lost'],
])
// Bank code 00000000, account numbers 1 to 6.
const byIban: ReadonlyMap<string, Behaviour> = new Map([
  ['DE09000000000000000001', 'failed'],
  ['DE79000000000000000002', 'returned'],
  ['DE52000000000000000003', 'slow'],
  ['DE25000000000000000004', 'silent'],
  ['DE95000000000000000005', 'twice'],
  ['DE68000000000000000006', 'lost'],
])

/** The accounts that the bank treats in a special way. A sort code goes with any account number. */
export const testAccounts: { sortCode: string; accountNumber: string; iban: string; behaviour: Behaviour }[] = [
  ...bySortCode,
].map(([sortCode, behaviour]) => ({
  sortCode,
  accountNumber: '12345678',
  iban: [...byIban].find(([, each]) => each === behaviour)?.[0] ?? '',
  behaviour,
}))

const byAmount: ReadonlyMap<bigint, Behaviour> = new Map([
  [6_601n, 'failed'],
  [6_602n, 'returned'],
  [6_603n, 'slow'],
  [6_604n, 'silent'],
  [6_605n, 'twice'],
  [6_606n, 'lost'],
])

type ScriptedReport = {
  afterMs: number
  outcome: 'paid' | 'failed' | 'returned'
  reason: string | null
  restriction?: Restriction | null
  /** The report names a payment that was never made. */
  isStray?: true
}

const paid: ScriptedReport = { afterMs: 0, outcome: 'paid', reason: null }

// The reports about a payment, from when the bank has received it.
const scripts: Record<Behaviour | 'contradicted' | 'accompanied', ScriptedReport[]> = {
  paid: [paid],
  failed: [{ afterMs: 0, outcome: 'failed', reason: 'The account is closed' }],
  returned: [
    paid,
    // Long enough to be seen as paid, short enough to be waited for.
    { afterMs: 120_000, outcome: 'returned', reason: 'The account holder does not match' },
  ],
  slow: [{ ...paid, afterMs: 180_000 }],
  silent: [paid],
  twice: [paid, paid],
  lost: [paid],
  contradicted: [paid, { afterMs: 60_000, outcome: 'failed', reason: 'The account is closed' }],
  accompanied: [paid, { ...paid, isStray: true }],
}

const byFault: Record<BankFault, keyof typeof scripts> = {
  timeout: 'silent',
  error: 'lost',
  duplicate: 'twice',
  late: 'slow',
  contradiction: 'contradicted',
  unknown_reference: 'accompanied',
}

function instructed({ outcome, reason, restriction }: Instruction): ScriptedReport[] {
  if (outcome === 'hold') return []
  const report = { afterMs: 0, outcome, reason, restriction }
  return outcome === 'returned' ? [paid, report] : [report]
}

// A report appears in the feed this late, so that one that another process is still writing is not skipped.
const feedDelayMs = 2_000

const bankName = 'simulated-bank'

type SimulatedBankOptions = {
  db: Reader
  now: Clock
  callMsMax?: number
  currencies?: Channel['currencies']
  scope?: Scope
}

/**
 * The channel of the sandbox's bank, which stands for an external system and keeps its own books outside our transactions.
 * Certain accounts and amounts fail on purpose, and partners can instruct it. Follows each partner's clock.
 * @param currencies the only currencies that it pays; by default all that no other channel pays
 */
export function simulatedBank({
  db,
  now,
  callMsMax = 2_000,
  currencies = 'rest',
  scope = 'all',
}: SimulatedBankOptions): Channel {
  const partnerId = partnerOf(scope)
  return {
    name: bankName,
    feed: partnerId === undefined ? bankName : feedOf(partnerId),
    currencies,
    isSlow: false,
    time: {
      kept: 'by partner',
      inScope: context => simulatedBank({ db, callMsMax, currencies, now: context.now, scope: context.scope ?? 'all' }),
    },
    work: [],
    paymentsMax: 100,
    callMsMax,

    async submit(payments, signal) {
      const received: Received[] = []
      for (const { payment, plan } of await planAll(db, payments))
        received.push(await receive(db, payment, plan, now()))
      if (received.some(isLost)) throw new Error('The connection to the simulated bank was lost')
      if (received.some(({ behaviour }) => behaviour === 'silent')) await silence(signal)
      return await latestReports(db, { references: payments.map(({ reference }) => reference), now: now() })
    },

    async ask(references) {
      return await latestReports(db, { references, now: now() })
    },

    async collect(after, countMax) {
      const [since, sequence] = after === null ? ['-infinity', '0'] : after.split('/')
      const { rows } = await sql<StoredReport & { sequence: bigint; reportedAt: Date }>`
        select sequence, reference, outcome, reason, restriction, reported_at
          from simulated_bank_reports
         where (reported_at, sequence) > (${since}::timestamptz, ${sequence}::bigint)
           and reported_at <= ${new Date(now().getTime() - feedDelayMs)}
               ${inScope(scope)}
         order by reported_at, sequence
         limit ${countMax}`.execute(db)
      const last = rows.at(-1)
      return {
        reports: rows.map(toReport),
        cursor: last === undefined ? after : `${last.reportedAt.toISOString()}/${last.sequence}`,
      }
    },
  }
}

const feedOf = (partnerId: string) => `${bankName}-of-${partnerId}`

/** Starts the feed of a partner whose clock is about to leave real time, at the position of the feed of all partners. */
export async function startFeed(tx: Tx, { partnerId, now }: { partnerId: string; now: Date }): Promise<void> {
  await copyCursor(tx, { from: bankName, to: feedOf(partnerId), now })
}

type NamedInstruction = { partnerId: string; withdrawalId: string; now: Date } & Instruction

/**
 * Instructs the bank about one payment of a partner, whether or not it has been submitted yet. Reports that the bank would
 * have made later are dropped.
 */
export async function instruct(
  tx: Tx,
  { partnerId, withdrawalId, now, ...instruction }: NamedInstruction,
): Promise<void> {
  const { outcome, reason, restriction } = instruction
  await sql`
    insert into simulated_bank_instructions (partner_id, withdrawal_id, outcome, reason, restriction)
    values (${partnerId}, ${withdrawalId}, ${outcome}, ${reason}, ${restriction})
        on conflict (partner_id, withdrawal_id)
        do update set outcome = excluded.outcome, reason = excluded.reason, restriction = excluded.restriction`.execute(
    tx,
  )
  const { rows } = await sql<{ reference: string; hasPaid: boolean }>`
    select p.reference, exists (select from simulated_bank_reports r
                    where r.reference = p.reference and r.outcome = 'paid' and r.reported_at <= ${now}) as has_paid
      from payouts o
      join simulated_bank_payments p on p.reference = o.reference
     where o.partner_id = ${partnerId} and o.withdrawal_id = ${withdrawalId}
       for update of p`.execute(tx)
  const [received] = rows
  if (received === undefined) return
  const { reference } = received
  await sql`
    delete from simulated_bank_reports where reference = ${reference} and reported_at > ${now}`.execute(tx)
  const script = instructed(instruction).filter(step => step.outcome !== 'paid' || !received.hasPaid)
  // Early enough for the feed, which would not show it before its delay is over.
  const at = new Date(now.getTime() - feedDelayMs)
  for (const step of script) {
    await sql`
      insert into simulated_bank_reports (partner_id, reference, outcome, reason, restriction, reported_at)
      values (${partnerId}, ${reference}, ${step.outcome}, ${step.reason}, ${step.restriction ?? null}, ${at})`.execute(
      tx,
    )
  }
}

/** The instants at which the feed shows the bank's reports that change a partner's withdrawals. */
export const dueReports = ({ partnerId, after }: { partnerId: string; after: Date }) => sql<{ at: Date }>`
  select r.reported_at + ${feedDelayMs} * interval '1 ms' as at
    from simulated_bank_reports r left join payouts p on p.partner_id = r.partner_id and p.reference = r.reference
         left join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
   where r.partner_id = ${partnerId} and r.reported_at > ${after}::timestamptz - ${feedDelayMs} * interval '1 ms'
     and r.outcome is distinct from w.status`

/** Queues a fault for the partner's next payments, after those that are queued already. */
export async function addFault(
  tx: Tx,
  { partnerId, fault, count }: { partnerId: string; fault: BankFault; count: number },
): Promise<void> {
  await sql`
    insert into simulated_bank_faults (partner_id, fault, remaining) values (${partnerId}, ${fault}, ${count})`.execute(
    tx,
  )
}

/** The faults that the partner's next payments will meet, in order. */
export async function listFaults(db: Reader, partnerId: string): Promise<{ fault: BankFault; remaining: number }[]> {
  const { rows } = await sql<{ fault: BankFault; remaining: number }>`
    select fault, remaining from simulated_bank_faults
     where partner_id = ${partnerId} and remaining > 0 order by sequence`.execute(db)
  return rows
}

/** By the account; if that has no special meaning, by the amount. */
export function behaviourFor({ account, netAmount }: Pick<Payment, 'account' | 'netAmount'>): Behaviour {
  return byAccount(account) ?? byAmount.get(netAmount.amount) ?? 'paid'
}

function byAccount(account: BankAccount): Behaviour | undefined {
  return 'iban' in account ? byIban.get(account.iban) : bySortCode.get(account.sortCode)
}

/** What the bank will report about a payment, and by which rule. */
type Plan = { behaviour: keyof typeof scripts | 'instructed'; script: ScriptedReport[] }

/** An instruction takes precedence, then a queued fault, then the account, then the amount. */
async function planAll(db: Reader, payments: Payment[]): Promise<{ payment: Payment; plan: Plan }[]> {
  const references = payments.map(({ reference }) => reference)
  const { rows } = await sql<
    { reference: string; mayFail: boolean } & Nullable<Instruction & Pick<Received, 'behaviour'>>
  >`
    select asked.reference, p.behaviour, i.outcome, i.reason, i.restriction,
           exists (select from simulated_bank_faults f
                    where f.partner_id = asked.partner_id and f.remaining > 0) as may_fail
      from unnest(${payments.map(({ partnerId }) => partnerId)}::text[],
                  ${payments.map(({ withdrawalId }) => withdrawalId)}::text[], ${references}::text[])
             as asked (partner_id, withdrawal_id, reference)
      left join simulated_bank_payments p on p.reference = asked.reference
      left join simulated_bank_instructions i
        on i.partner_id = asked.partner_id and i.withdrawal_id = asked.withdrawal_id`.execute(db)
  const known = new Map(rows.map(row => [row.reference, row]))
  const planned: { payment: Payment; plan: Plan }[] = []
  for (const payment of payments) {
    const row = known.get(payment.reference)
    assert(row !== undefined)
    const { outcome, reason, restriction, behaviour: before, mayFail } = row
    if (outcome !== null || before === 'instructed') {
      const script = outcome === null ? [] : instructed({ outcome, reason, restriction })
      planned.push({ payment, plan: { behaviour: 'instructed', script } })
    } else {
      const fault = mayFail && before === null ? await takeFault(db, payment.partnerId) : undefined
      const behaviour = before ?? (fault === undefined ? behaviourFor(payment) : byFault[fault])
      planned.push({ payment, plan: { behaviour, script: scripts[behaviour] } })
    }
  }
  return planned
}

type Nullable<T> = { [Field in keyof T]: T[Field] | null }

async function takeFault(db: Reader, partnerId: string): Promise<BankFault | undefined> {
  const { rows } = await sql<{ fault: BankFault }>`
    update simulated_bank_faults set remaining = remaining - 1
     where partner_id = ${partnerId} and remaining > 0
       and sequence = (select min(sequence) from simulated_bank_faults
                        where partner_id = ${partnerId} and remaining > 0)
    returning fault`.execute(db)
  return rows[0]?.fault
}

type Received = { behaviour: Plan['behaviour']; submissions: number }

// One statement, so that every received payment has its reports. It reads the instruction again, since one may have come after the
// plan was made.
async function receive(db: Reader, payment: Payment, plan: Plan, now: Date): Promise<Received> {
  const { partnerId, withdrawalId, reference, netAmount } = payment
  const { behaviour } = plan
  const script = plan.script.map(({ afterMs, outcome, reason, isStray }) => ({
    reference: isStray ? `unknown-${reference}` : reference,
    outcome,
    reason,
    at: new Date(now.getTime() + afterMs),
  }))
  // A lost submission has no effect; the one after it does.
  const effectiveSubmission = behaviour === 'lost' ? 2 : 1
  const { rows } = await sql<Received>`
    with instruction as (
      select outcome, reason, restriction from simulated_bank_instructions
       where partner_id = ${partnerId} and withdrawal_id = ${withdrawalId}
    ), received as (
      insert into simulated_bank_payments as p (partner_id, reference, behaviour, amount, currency, received_at)
      select ${partnerId}, ${reference},
             case when exists (select from instruction) then 'instructed' else ${behaviour}::text end,
             ${netAmount.amount}::bigint, ${netAmount.currency}, ${now}::timestamptz
          on conflict (reference) do update set submissions = p.submissions + 1
       where (p.amount, p.currency) = (excluded.amount, excluded.currency)
      returning p.reference, p.behaviour, p.submissions
    ), reported as (
      insert into simulated_bank_reports (partner_id, reference, outcome, reason, restriction, reported_at)
      select ${partnerId}, step.reference, step.outcome, step.reason, step.restriction, step.at
        from received,
             lateral (
               select 1 as place, ${reference} as reference, 'paid' as outcome, null as reason, null as restriction,
                      ${now}::timestamptz as at
                 from instruction where outcome = 'returned'
               union all
               select 2, ${reference}, outcome, reason, restriction, ${now}::timestamptz from instruction where outcome <> 'hold'
               union all
               select planned.place, planned.reference, planned.outcome, planned.reason, null, planned.at from unnest(${script.map(step => step.reference)}::text[], ${script.map(({ outcome }) => outcome)}::text[],
                    ${script.map(({ reason }) => reason)}::text[], ${script.map(({ at }) => at)}::timestamptz[])
               with ordinality as planned (reference, outcome, reason, at, place)
                where not exists (select from instruction)) as step
       where received.submissions = case when exists (select from instruction) then 1 else ${effectiveSubmission}::integer end
       order by step.place
    )
    select behaviour, submissions from received`.execute(db)
  const [received] = rows
  if (received === undefined) throw new Error(`${reference} was reused with another amount`)
  return received
}

function isLost({ behaviour, submissions }: Received): boolean {
  return behaviour === 'lost' && submissions === 1
}

async function silence(signal: AbortSignal): Promise<never> {
  return await new Promise((_resolve, reject) => {
    const end = () => reject(new Error('The simulated bank did not answer'))
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}

// The latest report up to now. A payment without one is pending; one that was lost is unknown.
async function latestReports(db: Reader, { references, now }: { references: string[]; now: Date }): Promise<Report[]> {
  const { rows } = await sql<StoredReport>`
    select asked.reference, latest.reason, latest.restriction,
           coalesce(latest.outcome, case when p.reference is null or (p.behaviour = 'lost' and p.submissions = 1)
                                         then 'unknown' else 'pending' end) as outcome
      from unnest(${references}::text[]) with ordinality as asked (reference, place)
      left join simulated_bank_payments p on p.reference = asked.reference
      left join lateral (
             select outcome, reason, restriction from simulated_bank_reports r
              where r.reference = asked.reference and r.reported_at <= ${now}
              order by r.reported_at desc, r.sequence desc limit 1) latest on true
     order by asked.place`.execute(db)
  return rows.map(toReport)
}

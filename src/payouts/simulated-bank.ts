import type { BankAccount } from '../bank-accounts/rules.ts'
import { type Reader, sql } from '../database/database.ts'
import type { Clock } from '../time.ts'
import type { Outcome, Payment, Rail, Report } from './rail.ts'

/** How the simulated bank treats a payment: docs/reference/simulated-bank.md. */
export type Behaviour = 'paid' | 'failed' | 'returned' | 'slow' | 'silent' | 'twice' | 'lost'

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
const byAmount: ReadonlyMap<bigint, Behaviour> = new Map([
  [6_601n, 'failed'],
  [6_602n, 'returned'],
  [6_603n, 'slow'],
  [6_604n, 'silent'],
  [6_605n, 'twice'],
  [6_606n, 'lost'],
])

// The reports about a payment, from when the bank has received it.
const scripts: Record<
  Behaviour,
  { afterMs: number; outcome: 'paid' | 'failed' | 'returned'; reason: string | null }[]
> = {
  paid: [{ afterMs: 0, outcome: 'paid', reason: null }],
  failed: [{ afterMs: 0, outcome: 'failed', reason: 'The account is closed' }],
  returned: [
    { afterMs: 0, outcome: 'paid', reason: null },
    // Long enough to be seen as paid, short enough to be waited for.
    { afterMs: 120_000, outcome: 'returned', reason: 'The account holder does not match' },
  ],
  slow: [{ afterMs: 180_000, outcome: 'paid', reason: null }],
  silent: [{ afterMs: 0, outcome: 'paid', reason: null }],
  twice: [
    { afterMs: 0, outcome: 'paid', reason: null },
    { afterMs: 0, outcome: 'paid', reason: null },
  ],
  lost: [{ afterMs: 0, outcome: 'paid', reason: null }],
}

// A report appears in the feed this late, so that one that another process is still writing is not skipped.
const feedDelayMs = 2_000

/**
 * The bank of the sandbox. It stands for an external system, so it keeps its own books, outside our transactions. Certain
 * accounts and amounts make it fail on purpose.
 * @param callMsMax time-out of a call
 */
export function simulatedBank({ db, now, callMsMax = 2_000 }: { db: Reader; now: Clock; callMsMax?: number }): Rail {
  return {
    name: 'simulated-bank',
    paymentsMax: 100,
    callMsMax,

    async submit(payments, signal) {
      const received: Received[] = []
      for (const payment of payments) received.push(await receive(db, payment, now()))
      if (received.some(isLost)) throw new Error('The connection to the simulated bank was lost')
      if (received.some(({ behaviour }) => behaviour === 'silent')) await silence(signal)
      return await latestReports(db, { references: payments.map(({ reference }) => reference), now: now() })
    },

    async ask(references) {
      return await latestReports(db, { references, now: now() })
    },

    async reports(after, countMax) {
      const [since, sequence] = after === null ? ['-infinity', '0'] : after.split('/')
      const { rows } = await sql<{
        sequence: bigint
        reference: string
        outcome: Outcome
        reason: string | null
        reportedAt: Date
      }>`
        select sequence, reference, outcome, reason, reported_at
          from simulated_bank_reports
         where (reported_at, sequence) > (${since}::timestamptz, ${sequence}::bigint)
           and reported_at <= ${new Date(now().getTime() - feedDelayMs)}
         order by reported_at, sequence
         limit ${countMax}`.execute(db)
      const last = rows.at(-1)
      return {
        reports: rows.map(({ reference, outcome, reason }) => ({ reference, outcome, reason })),
        cursor: last === undefined ? after : `${last.reportedAt.toISOString()}/${last.sequence}`,
      }
    },
  }
}

/** By the account; if that has no special meaning, by the amount. */
export function behaviourFor({ account, amount }: Pick<Payment, 'account' | 'amount'>): Behaviour {
  return byAccount(account) ?? byAmount.get(amount.amount) ?? 'paid'
}

function byAccount(account: BankAccount): Behaviour | undefined {
  return 'iban' in account ? byIban.get(account.iban) : bySortCode.get(account.sortCode)
}

type Received = { behaviour: Behaviour; submissions: number }

// One statement, so that every received payment has its reports.
async function receive(db: Reader, payment: Payment, now: Date): Promise<Received> {
  const { reference, amount } = payment
  const behaviour = behaviourFor(payment)
  const script = scripts[behaviour].map(({ afterMs, ...step }) => ({ ...step, at: new Date(now.getTime() + afterMs) }))
  // A lost submission has no effect; the one after it does.
  const effectiveSubmission = behaviour === 'lost' ? 2 : 1
  const { rows } = await sql<Received>`
    with received as (
      insert into simulated_bank_payments as p (reference, behaviour, amount, currency, received_at)
      values (${reference}, ${behaviour}, ${amount.amount}, ${amount.currency}, ${now})
          on conflict (reference) do update set submissions = p.submissions + 1
       where (p.amount, p.currency) = (excluded.amount, excluded.currency)
      returning p.reference, p.behaviour, p.submissions
    ), reported as (
      insert into simulated_bank_reports (reference, outcome, reason, reported_at)
      select received.reference, step.outcome, step.reason, step.at
        from received,
             unnest(${script.map(({ outcome }) => outcome)}::text[], ${script.map(({ reason }) => reason)}::text[],
                    ${script.map(({ at }) => at)}::timestamptz[]) with ordinality as step (outcome, reason, at, place)
       where received.submissions = ${effectiveSubmission}
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
  const { rows } = await sql<Report>`
    select asked.reference, latest.reason,
           coalesce(latest.outcome, case when p.reference is null or (p.behaviour = 'lost' and p.submissions = 1)
                                         then 'unknown' else 'pending' end) as outcome
      from unnest(${references}::text[]) with ordinality as asked (reference, place)
      left join simulated_bank_payments p on p.reference = asked.reference
      left join lateral (
             select outcome, reason from simulated_bank_reports r
              where r.reference = asked.reference and r.reported_at <= ${now}
              order by r.reported_at desc, r.sequence desc limit 1) latest on true
     order by asked.place`.execute(db)
  return rows
}

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Bank } from './bank.ts'
import { keepRunning, runCommand } from './program.ts'
import { until } from './until.ts'

// More than the longest delay, which is the hour before an unresponsive bank is polled again.
const hoursAhead = 2
const roundsMax = 8
// An unresponsive bank takes two seconds to time out, and its reports take two more.
const roundMsMax = 8_000

// Tasks that the worker runs every minute. Scheduled here, to save the wait.
export const tasks = [
  'make-pay-runs-available',
  'close-pay-cycles',
  'submit-withdrawals',
  'send-payout-batches',
  'read-bank-files',
  'ask-about-withdrawals',
  'read-rail-reports',
  'expire-intents',
]

const unfinished = `
  select id, status from withdrawals where status in ('held', 'submitted')
   union all
  select id, status from pay_runs where status = 'Scheduled'
   union all
  select id, status from withdrawal_intents where status = 'pending'
   union all
  select id, 'still closing' from pay_cycles where status = 'Closed' and released_at is null
   union all
  select partner_id, 'has no closed cycle' from pay_cycles group by partner_id having count(*) = 1
   union all
  select r.reference, 'the bank says ' || r.outcome from simulated_bank_reports r
    left join payouts p on p.reference = r.reference
    left join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
   where r.outcome = 'returned' and w.status is distinct from 'returned'
   union all
  select p.reference, 'the bank’s files say ' || p.outcome from payouts p
    join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
   where p.outcome is not null and w.status <> p.outcome
   union all
  select id, 'batch ' || status from payout_batches where status not in ('settled', 'rejected', 'cancelled')
   union all
  select event_id, 'delivery ' || state from webhook_deliveries where state = 'pending'
   union all
  select e.id, 'not fanned out' from events e join webhook_endpoints w on w.partner_id = e.partner_id
   where (e.position is null or e.position > w.since_position)
     and not exists (select from webhook_deliveries d
                      where d.partner_id = e.partner_id and d.endpoint_id = w.id and d.event_id = e.id)`

const undecided = `
  select array['exceptions', 'close', id, '--decision', 'give-back', '--note', 'the bank paid nothing'] as command
    from payout_exceptions where kind = 'rejected' and closed_at is null
   union all
  select array['approve', id] from payout_batches where status = 'building' and closed_at is not null and payment_count > 0`

/**
 * Makes the decisions that take two operators: gives back the batches that the bank rejected as a whole, and approves the waiting
 * batches, because automatic approval stops after a give-back.
 */
async function operate(
  client: pg.Client,
  { databaseUrl, settings }: { databaseUrl: string; settings: Record<string, string> },
): Promise<void> {
  const { rows } = await client.query<{ command: string[] }>(undecided)
  const both = { ...settings, MIDMONTH_APPROVAL_LOGINS: 'any' }
  // Refused if the worker or the bank was faster; undecided exceptions come up again in the next round.
  for (const { command } of rows)
    for (const person of ['Ada', 'Grace'])
      await runCommand(databaseUrl, ['payouts', ...command, '--as', person], both).catch(() => undefined)
}

/**
 * Runs one worker until all work is finished, in rounds that each set its clock some hours further ahead.
 * @param bank the bank whose answers the program must also have read
 * @returns the unfinished work
 */
export async function drain({
  databaseUrl,
  logs,
  settings,
  bank,
}: {
  databaseUrl: string
  logs: string
  settings: Record<string, string>
  bank: Bank | undefined
}): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    for (let round = 1; round <= roundsMax; round++) {
      const aheadMs = round * hoursAhead * 3_600_000
      const worker = keepRunning('worker-drain', 'worker', { databaseUrl, logs, settings, aheadMs })
      try {
        await until(() => worker.isReady(), 'the worker is ready')
        const deadline = Date.now() + roundMsMax
        while (Date.now() < deadline) {
          for (const task of tasks)
            await client.query('select graphile_worker.add_job($1, job_key => $2)', [task, `drain: ${task}`])
          await sleep(1_000)
          if (bank !== undefined) await operate(client, { databaseUrl, settings })
          const { rowCount } = await client.query(unfinished)
          if (rowCount === 0 && (bank?.unfinished() ?? []).length === 0) return []
        }
      } finally {
        await worker.stop()
      }
    }
    const { rows } = await client.query<{ id: string; status: string }>(unfinished)
    return [...rows.map(({ id, status }) => `${id}: ${status}`), ...(bank?.unfinished() ?? [])]
  } finally {
    await client.end()
  }
}

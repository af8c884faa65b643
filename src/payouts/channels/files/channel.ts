import { type Columns, type Db, sql, type Tx } from '../../../database/database.ts'
import { inWords } from '../../../kernel/money.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { PayoutSpeed } from '../../../tiers/terms.ts'
import * as batches from '../../books/batches.ts'
import { byReference, referencedPayouts } from '../../books/by-reference.ts'
import * as exceptions from '../../books/exceptions.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { lockRail } from '../../books/rail-lock.ts'
import { reconcile } from '../../books/reconciliation.ts'
import { readRecords, recordOutcome } from '../../books/reports.ts'
import { findRestore, listNamedBefore } from '../../books/restores.ts'
import { type Payment, type Report, type StoredReport, toReport } from '../../payments/payment.ts'
import type { Channel } from '../channel.ts'
import { receiveBankFiles } from './receive.ts'
import { sendBatches } from './send.ts'

/**
 * The channel of bank files. Submitting a payment puts it into a batch; a task writes each batch to one file, and another imports
 * the bank's answers. Its books are the tables of this slice, so that imported files never touch withdrawals directly.
 */
export function fileChannel({ db, now, settings }: { db: Db; now: Clock; settings: FileRailSettings }): Channel {
  const { name, currency } = settings
  return {
    name,
    feed: name,
    currencies: [currency],
    isSlow: true,
    time: { kept: 'real' },
    work: [
      { task: 'send-payout-batches', run: context => sendBatches(context, settings) },
      { task: 'read-bank-files', run: context => receiveBankFiles(context, settings) },
      { task: 'reconcile-bank-accounts', run: context => reconcile(context, settings) },
    ],
    paymentsMax: 1_000,
    callMsMax: 20_000,

    async submit(payments) {
      return await db.transaction().execute(tx => submit(tx, { settings, payments, now: now() }))
    },

    async ask(references) {
      const { rows } = await sql<StoredReport>`
        select asked.reference, p.reason, p.restriction,
               -- The reports tell the history of a recovered payment in their order.
               case when exists (select from bank_records r
                                  where r.rail = p.rail and r.reference = p.reference and r.recovery_id is not null)
                    then 'pending'
                    else coalesce(p.outcome, case when p.batch_id is null then 'unknown' else 'pending' end) end as outcome
          from unnest(${references}::text[]) with ordinality as asked (reference, place)
          left join (${referencedPayouts}) on f.reference = asked.reference and p.rail = ${name}
         order by asked.place`.execute(db)
      return rows.map(toReport)
    },

    async collect(after, countMax) {
      return await readRecords(db, { rail: name, after, countMax })
    },
  }
}

type KnownPayment = Columns<
  'payouts',
  'reference' | 'netAmount' | 'currency' | 'batchId' | 'outcome' | 'reason' | 'restriction'
>

/** Puts payments that are new to the rail into its open batches. Idempotent. */
export async function submit(
  tx: Tx,
  { settings, payments, now }: { settings: FileRailSettings; payments: Payment[]; now: Date },
): Promise<Report[]> {
  const known = new Map<string, KnownPayment>()
  const references = payments.map(({ reference }) => reference)
  for (const isNamed of await byReference(tx, references)) {
    const { rows } = await sql<KnownPayment>`
      select reference, net_amount, currency, batch_id, outcome, reason, restriction from payouts
       where rail = ${settings.name} and ${isNamed()} order by reference for update`.execute(tx)
    for (const row of rows) known.set(row.reference, row)
  }
  // What the bank may have been sent before a restore joins no batch before the banks are compared.
  const isAfterRestore = (await findRestore(tx)) !== undefined
  const joining: batches.Joining[] = []
  const reports = new Map<string, Report>()
  for (const payment of payments) {
    const { partnerId, reference, netAmount, account, speed } = payment
    const row = known.get(reference)
    if (row === undefined) throw new Error(`unknown payout ${reference} on rail ${settings.name}`)
    if (row.netAmount !== netAmount.amount || row.currency !== netAmount.currency)
      throw new Error(`${reference} was reused with ${inWords(netAmount)}`)
    const { outcome, reason, restriction } = row
    reports.set(reference, toReport({ reference, outcome: outcome ?? 'pending', reason, restriction }))
    if (row.batchId !== null || row.outcome !== null || isAfterRestore) continue
    const isInstant = isInstantAt(settings, speed)
    const refusal = settings.format.refusal({ account, amount: netAmount.amount, isInstant })
    if (refusal === undefined) joining.push({ partnerId, reference, netAmount: netAmount.amount, isInstant })
    else reports.set(reference, await refuse(tx, { rail: settings.name, reference, refusal, now }))
  }
  const named = await listNamedBefore(tx, { rail: settings.name, references: joining.map(each => each.reference) })
  await exceptions.open(
    tx,
    payments.filter(({ reference }) => named.has(reference)).map(each => madeBeforeRestore(settings, each)),
    now,
  )
  await batches.join(tx, { rail: settings, payments: joining.filter(each => !named.has(each.reference)), now })
  return [...reports.values()]
}

function madeBeforeRestore(
  { name: rail }: FileRailSettings,
  { partnerId, withdrawalId, reference }: Payment,
): exceptions.NewException {
  return {
    ...{ rail, kind: 'contradiction', fingerprint: `before the restore ${reference}`, reference },
    reason: 'The bank has reported the payment before the database was restored, so it is not sent; record its outcome',
    payout: { partnerId, withdrawalId },
  }
}

/** Whether a payment is instant, given the speed of its tier. */
function isInstantAt({ isInstant, canBeInstant }: FileRailSettings, speed: PayoutSpeed | undefined): boolean {
  return speed === undefined ? isInstant : speed === 'instant' && canBeInstant
}

/** Fails a payment that the format cannot write, so that the member has the money back. */
async function refuse(
  tx: Tx,
  { rail, reference, refusal, now }: { rail: string; reference: string; refusal: string; now: Date },
): Promise<Report> {
  await lockRail(tx, { rail, for: 'records' })
  const ended = { rail, reference, messageId: 'refused', entryKey: reference, now }
  await recordOutcome(tx, { ...ended, outcome: 'failed', reason: refusal })
  return { reference, outcome: 'failed', reason: refusal }
}

import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import type { Db, Tx } from '../database/database.ts'
import { measured } from '../kernel/files.ts'
import { type Day, dayIn } from '../kernel/time.ts'
import type { Partner } from '../partners/partners.ts'
import { approve } from '../payouts/books/approvals.ts'
import * as batches from '../payouts/books/batches.ts'
import type { FileRailSettings } from '../payouts/books/file-rail-settings.ts'
import { importBankFile } from '../payouts/books/import.ts'
import { submit } from '../payouts/channels/files/channel.ts'
import { create as createPayouts } from '../payouts/payouts.ts'
import { backOffFrom } from '../payouts/rules.ts'
import { createUser } from '../users/users.ts'
import { complete } from '../withdrawals/completions.ts'
import * as intents from '../withdrawals/intents.ts'
import { hasAccount, submitDue } from '../withdrawals/withdrawals.ts'

// The file rail of a newcomer's sandbox, with something to click at each step of a payout: a batch that takes payments, a batch that lacks
// the second approval, a batch that the bank has not answered, and bank entries that no payment explains.

/** A withdrawal that the rail pays. */
type RailPayment = { memberId: string; amount: bigint }

// These operators approve without signing in: they have no password.
const colleagues = [
  { email: 'morgan@demo.example', name: 'Morgan Ellis' },
  { email: 'robin@demo.example', name: 'Robin Hale' },
]

type RailBatches = {
  partner: Partner
  rail: FileRailSettings
  /** The batches by the event that they wait for: the bank's answers, the second approval, the cut-off. */
  answered: RailPayment[]
  unapproved: RailPayment[]
  open: RailPayment[]
  at: (share: number) => Date
}

/**
 * Withdraws in three batches and leaves each at a different step.
 * @param at gives the instants of the batches, oldest first
 */
export async function fillRail(tx: Tx, { partner, rail, answered, unapproved, open, at }: RailBatches): Promise<void> {
  const people = []
  for (const each of colleagues) people.push((await createUser(tx, { ...each, isOperator: true, now: at(0) })).id)
  const [first = '', second = ''] = people

  const sentAt = at(0.97)
  const sentId = await payInClosedBatch(tx, { partner, rail, payments: answered, now: at(0.96) })
  for (const person of [first, second]) await approve(tx, { batchId: sentId, person, now: sentAt })
  await recordExport(tx, { rail, batchId: sentId, person: second, now: sentAt })

  const unapprovedId = await payInClosedBatch(tx, { partner, rail, payments: unapproved, now: at(0.98) })
  await approve(tx, { batchId: unapprovedId, person: first, now: at(0.99) })
  await pay(tx, { partner, rail, payments: open, now: at(1) })
}

/** The batch is closed immediately, because the sandbox may be minutes old and its cut-off hours away. */
async function payInClosedBatch(
  tx: Tx,
  { rail, now, ...paid }: { partner: Partner; rail: FileRailSettings; payments: RailPayment[]; now: Date },
): Promise<string> {
  const closing = { ...rail, schedule: (from: Date) => ({ ...rail.schedule(from), cutOffAt: from }) }
  await pay(tx, { rail: closing, now, ...paid })
  await batches.closeDue(tx, { rail, now })
  const [batch] = await batches.list(tx, { rail: rail.name, statuses: ['building'], take: 1 })
  assert(batch !== undefined && batch.closedAt !== null)
  return batch.id
}

async function pay(
  tx: Tx,
  { partner, rail, payments, now }: { partner: Partner; rail: FileRailSettings; payments: RailPayment[]; now: Date },
): Promise<void> {
  const { name, currency } = rail
  for (const { memberId, amount } of payments) {
    const intent = await intents.create(tx, { partner, memberId, amount: { amount, currency }, now })
    await complete(tx, { partner: { ...partner, holdSeconds: 0 }, intentId: intent.id, now, clockOffsetMs: 0 })
  }
  const claimed = await submitDue(tx, {
    now,
    countMax: payments.length,
    nextPollAt: backOffFrom(now),
    scope: { only: partner.id },
    currencies: [currency],
    nameForBank: async (claimTx, payouts) => await createPayouts(claimTx, { rail: name, claimed: payouts, now }),
  })
  await submit(tx, { settings: rail, payments: claimed.filter(hasAccount), now })
}

/** The file can be downloaded: each download is written from the books. */
async function recordExport(
  tx: Tx,
  { rail, batchId, person, now }: { rail: FileRailSettings; batchId: string; person: string; now: Date },
): Promise<void> {
  const batch = await batches.claimForSending(tx, { rail, batchId, leaves: { kind: 'export', person }, now })
  assert(batch !== undefined)
  const { sha256 } = await measured(rail.format.write(batches.toWrite(tx, { rail, batch })))
  await batches.recordSent(tx, { batchId, sha256, now })
}

/** Imports the bank's bookings besides our payments: each entry becomes an exception. Idempotent. */
export async function importUnexplained(db: Db, { rail, now }: { rail: FileRailSettings; now: Date }): Promise<void> {
  const { account } = rail.debtors.default
  assert('iban' in account)
  const file = Buffer.from(unexplainedEntries({ iban: account.iban, day: dayIn(rail.timeZone, now), now }))
  const bytes = () => Readable.from([file])
  const { result } = await importBankFile(db, { rail, name: 'demo-notification.xml', size: file.length, bytes, now })
  assert(result === 'imported')
}

/** A camt.054 of the bank. */
function unexplainedEntries({ iban, day, now }: { iban: string; day: Day; now: Date }): string {
  const entry = (id: number, amount: string, direction: 'CRDT' | 'DBIT', text: string) =>
    `<Ntry><Amt Ccy="EUR">${amount}</Amt><CdtDbtInd>${direction}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>` +
    `<BookgDt><Dt>${day}</Dt></BookgDt><ValDt><Dt>${day}</Dt></ValDt><AcctSvcrRef>DEMO-${id}</AcctSvcrRef>` +
    `<NtryDtls><TxDtls><RmtInf><Ustrd>${text}</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.054.001.08"><BkToCstmrDbtCdtNtfctn>',
    `<GrpHdr><MsgId>DEMO-UNEXPLAINED</MsgId><CreDtTm>${now.toISOString()}</CreDtTm></GrpHdr>`,
    `<Ntfctn><Id>DEMO-1</Id><Acct><Id><IBAN>${iban}</IBAN></Id><Ccy>EUR</Ccy></Acct>`,
    entry(1, '120.00', 'CRDT', 'REFUND OFFICE CHAIRS ORDER 4471'),
    entry(2, '7.50', 'DBIT', 'ACCOUNT FEE'),
    '</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>',
  ].join('\n')
}

import type { RawBuilder } from 'kysely'
import * as auditLog from '../audit-log/audit-log.ts'
import { oldDisclosures } from '../audit-log/disclosures.ts'
import { lanesOf, type Reader, sql } from '../database/database.ts'
import { oldEvidence } from '../erasure/erasure.ts'
import * as idempotency from '../idempotency/idempotency.ts'
import { keptSince, type Retention, type RetentionKind, retentionKinds } from '../kernel/retention.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import { scopesOf } from '../partners/clocks.ts'
import { oldArchiveKeys } from '../payouts/books/archive-keys.ts'
import { oldBankTexts } from '../payouts/books/bank-texts.ts'
import * as requests from '../requests/requests.ts'
import * as deliveries from '../webhooks/deliveries.ts'
import * as intents from '../withdrawals/intents.ts'
import type { Old } from '../worker/task.ts'

/** Events leave in partitions; see `maintain-partitions`. */
export type RemovedKind = Exclude<RetentionKind, 'events'>

// The worker removes data within minutes. A day more means that no worker runs, or that it fails.
const graceMs = 86_400_000

const oldOf: { readonly [Kind in RemovedKind]: (old: Old) => RawBuilder<unknown> } = {
  unusedIntents: intents.oldUnused,
  memberImports: memberImports.oldImports,
  replays: idempotency.oldKeys,
  requests: requests.oldRequests,
  webhookDeliveries: deliveries.oldDeliveries,
  auditAddresses: auditLog.oldAddresses,
  disclosures: oldDisclosures,
  bankTexts: oldBankTexts,
  archivedBankFiles: oldArchiveKeys,
  paymentEvidence: oldEvidence,
}
export const removedKinds = Object.keys(oldOf) as RemovedKind[]

/** The last day on which data of a kind was removed, and how much. */
export type Removal = { kind: RemovedKind; count: number; at: Date }

/** Adds to the count of a day. */
export async function recordRemoval(db: Reader, { kind, count, at }: Removal): Promise<void> {
  await sql`
    insert into removals (kind, day, count, at) values (${kind}, (${at}::timestamptz at time zone 'UTC')::date, ${count}, ${at})
    on conflict (kind, day) do update set count = removals.count + excluded.count, at = excluded.at`.execute(db)
}

export async function listLastRemovals(db: Reader): Promise<Removal[]> {
  const { rows } = await sql<Removal>`
    select distinct on (kind) kind, count::double precision, at from removals order by kind, day desc`.execute(db)
  return rows
}

/** Finds the kinds of which data is still there a day after the end of its retention. */
export async function findOverdue(
  db: Reader,
  { retention, now }: { retention: Retention; now: Date },
): Promise<RemovedKind[]> {
  const overdue: RemovedKind[] = []
  const scopes = lanesOf(db) === 'partner' ? await scopesOf(db) : [{ scope: undefined }]
  for (const kind of removedKinds) {
    const before = new Date(keptSince(retention[kind], now).getTime() - graceMs)
    for (const { scope } of scopes) {
      const { rows } = await sql`select from (${oldOf[kind]({ before, countMax: 1, scope })}) old limit 1`.execute(db)
      if (rows.length === 0) continue
      overdue.push(kind)
      break
    }
  }
  return overdue
}

/** The warning about data that should have been removed; undefined if there is none. */
export function overdueInWords(overdue: readonly RemovedKind[], retention: Retention): string | undefined {
  if (overdue.length === 0) return undefined
  const each = overdue.map(kind => `${retentionKinds[kind].what} (kept for ${retention[kind]} days)`)
  return `Data is past its retention: ${each.join('; ')}; a worker removes it`
}

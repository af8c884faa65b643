import * as auditLog from '../audit-log/audit-log.ts'
import { removeOldDisclosures } from '../audit-log/disclosures.ts'
import { type Db, lanesOf } from '../database/database.ts'
import { removeOldEvidence } from '../erasure/erasure.ts'
import * as idempotency from '../idempotency/idempotency.ts'
import { keptSince, type Retention } from '../kernel/retention.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import { scopesOf } from '../partners/clocks.ts'
import { removeOldArchiveKeys } from '../payouts/books/archive-keys.ts'
import { removeOldBankTexts } from '../payouts/books/bank-texts.ts'
import * as requests from '../requests/requests.ts'
import * as deliveries from '../webhooks/deliveries.ts'
import * as intents from '../withdrawals/intents.ts'
import { type Old, partnerOf, type Tasks } from '../worker/task.ts'
import { type RemovedKind, recordRemoval, removedKinds } from './retention.ts'

// A chunk holds its locks for a few tens of milliseconds, and few requests wait for them.
const countMax = 5_000

type Removed = { removed: number; hasMore: boolean }
type Kind = {
  /** Whether the data has times by the clocks of partners, which a sandbox can move, or real ones. */
  time: 'partner' | 'real'
  /** Whether the data is deleted on the nodes of its partners, where there are such nodes. */
  isApart?: boolean
  removeSome: (db: Db, old: Old & { now: Date }) => Promise<Removed>
}

const kinds: { readonly [Name in RemovedKind]: Kind } = {
  unusedIntents: { time: 'partner', removeSome: chunked(intents.removeOldUnused) },
  memberImports: {
    time: 'partner',
    removeSome: (db, old) => db.transaction().execute(tx => memberImports.removeOld(tx, old)),
  },
  replays: { time: 'partner', removeSome: chunked(idempotency.removeOld) },
  requests: { time: 'real', isApart: true, removeSome: chunked(requests.removeOld) },
  // With the clock of one partner, deliveries that others still need would be deleted.
  webhookDeliveries: { time: 'real', isApart: true, removeSome: chunked(deliveries.removeOld) },
  auditAddresses: { time: 'real', removeSome: chunked(auditLog.removeOldAddresses) },
  disclosures: { time: 'real', removeSome: chunked(removeOldDisclosures) },
  bankTexts: { time: 'real', removeSome: chunked(removeOldBankTexts) },
  archivedBankFiles: { time: 'real', removeSome: chunked(removeOldArchiveKeys) },
  paymentEvidence: { time: 'partner', removeSome: chunked(removeOldEvidence) },
}

export function retentionTasks(retention: Retention) {
  return {
    // Safe to run twice: what was removed stays removed.
    async 'remove-old-data'({ db, log, now, scope }) {
      const failures: unknown[] = []
      for (const kind of removedKinds) {
        const { time, isApart, removeSome } = kinds[kind]
        if (time === 'real' && partnerOf(scope) !== undefined) continue
        const before = keptSince(retention[kind], now())
        let count = 0
        try {
          const scopes = isApart && lanesOf(db) === 'partner' ? await scopesOf(db) : [{ scope }]
          for (const each of scopes) {
            for (let hasMore = true; hasMore; ) {
              const some = await removeSome(db, { before, countMax, scope: each.scope, now: now() })
              count += some.removed
              hasMore = some.hasMore
            }
          }
        } catch (error) {
          // One kind must not keep the others.
          failures.push(error)
        }
        if (count === 0) continue
        await recordRemoval(db, { kind, count, at: now() })
        log.info({ kind, count, before }, 'old data removed')
      }
      if (failures.length > 0) throw failures[0]
    },
  } satisfies Partial<Tasks>
}

function chunked(remove: (db: Db, old: Old & { now: Date }) => Promise<number>): Kind['removeSome'] {
  return async (db, old) => {
    const removed = await remove(db, old)
    return { removed, hasMore: removed >= old.countMax }
  }
}

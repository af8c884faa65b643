import { replaysTable } from '../idempotency/idempotency.ts'
import { importKeysTable } from '../member-imports/import-key.ts'
import { keysTable } from '../members/sealing.ts'
import { archiveKeysTable } from '../payouts/books/archive-keys.ts'
import { bankTextsTable } from '../payouts/books/bank-texts.ts'
import { stagedRecordsTable } from '../payouts/books/staging.ts'
import type { SealedTable } from '../sealing/rewrap.ts'
import { totpTable } from '../users/totp.ts'
import { sealedTables as webhookTables } from '../webhooks/sealed.ts'

/** Every table with values sealed with the installation's key. */
export const sealedTables: readonly SealedTable[] = [
  importKeysTable,
  keysTable,
  totpTable,
  ...webhookTables,
  replaysTable,
  archiveKeysTable,
  bankTextsTable,
  stagedRecordsTable,
]

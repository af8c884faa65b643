import { dataExportOperations } from './data-export/operations.ts'
import { erasureOperations } from './erasure/operations.ts'
import { eventOperations } from './events/operations.ts'
import { reportConsoleError } from './http/console/error-operations.ts'
import { sheetOperations } from './http/console/sheet-operations.ts'
import type { Operation } from './http/operation.ts'
import { named } from './http/operation.ts'
import { type HealthContext, healthOperations } from './http/server/health.ts'
import { serviceOperations } from './http/service-operations.ts'
import type { SignInContext } from './http/users/operation-context.ts'
import { userOperations } from './http/users/operations.ts'
import { memberImportOperations } from './member-imports/operations.ts'
import { memberOperations } from './members/operations.ts'
import { memberSessionOperations } from './members/session-operations.ts'
import { auditOperations } from './operators/audit-operations.ts'
import { floatOperations } from './operators/float-operations.ts'
import { installationOperations } from './operators/installation-operations.ts'
import { invoiceOperations } from './operators/invoice-operations.ts'
import { journalOperations } from './operators/journal-operations.ts'
import { keyOperations } from './operators/key-operations.ts'
import { ledgerOperations } from './operators/ledger-operations.ts'
import { memberJobOperations } from './operators/member-job-operations.ts'
import { operatorMemberOperations } from './operators/member-operations.ts'
import type { InstallationContext } from './operators/operation-context.ts'
import { partnerOperations } from './operators/partner-operations.ts'
import { payoutOperations } from './operators/payout-operations.ts'
import { railOperations } from './operators/rail-operations.ts'
import { restoreOperations } from './operators/restore-operations.ts'
import { revenueOperations } from './operators/revenue-operations.ts'
import { operatorTierOperations } from './operators/tier-operations.ts'
import { operatorWithdrawalOperations } from './operators/withdrawal-operations.ts'
import { overviewOperations } from './overview/operations.ts'
import { payCycleOperations } from './pay-cycles/operations.ts'
import { payRunFileOperations } from './pay-runs/file-operations.ts'
import { payRunOperations } from './pay-runs/operations.ts'
import { payRunSummaryOperations } from './pay-runs/summary-operations.ts'
import { requestOperations } from './requests/operations.ts'
import type { SettlementContext } from './settlements/operation-context.ts'
import { settlementOperations } from './settlements/operations.ts'
import { statementOperations } from './statements/operations.ts'
import { tierOperations } from './tiers/operations.ts'
import type { WebhookContext } from './webhooks/operation-context.ts'
import { webhookOperations } from './webhooks/operations.ts'
import type { WithdrawalContext } from './withdrawals/operation-context.ts'
import { withdrawalOperations } from './withdrawals/operations.ts'

/** What the operations run on. */
export type OperationContext = HealthContext &
  WithdrawalContext &
  SettlementContext &
  WebhookContext &
  InstallationContext &
  SignInContext

/** All operations of the API, in the order of the documents. Those of the sandbox are loaded by a sandbox only. */
export const operations: readonly Operation<OperationContext>[] = [
  ...sheetOperations,
  ...named({ reportConsoleError }),
  ...tierOperations,
  ...withdrawalOperations,
  ...memberOperations,
  ...erasureOperations,
  ...memberImportOperations,
  ...dataExportOperations,
  ...memberSessionOperations,
  ...payRunOperations,
  ...payRunFileOperations,
  ...payRunSummaryOperations,
  ...payCycleOperations,
  ...settlementOperations,
  ...statementOperations,
  ...eventOperations,
  ...overviewOperations,
  ...requestOperations,
  ...webhookOperations,
  ...userOperations,
  ...partnerOperations,
  ...operatorTierOperations,
  ...floatOperations,
  ...keyOperations,
  ...railOperations,
  ...restoreOperations,
  ...revenueOperations,
  ...invoiceOperations,
  ...journalOperations,
  ...payoutOperations,
  ...installationOperations,
  ...ledgerOperations,
  ...auditOperations,
  ...memberJobOperations,
  ...operatorMemberOperations,
  ...operatorWithdrawalOperations,
  ...healthOperations,
  ...serviceOperations,
]

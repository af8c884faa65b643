import type { Mode } from '../partners/partners.ts'

/** What a user may do for one partner. An operator is not a role of a partner: operators may do everything, for every partner. */
export const roles = ['admin', 'payroll', 'support', 'developer', 'viewer'] as const
export type Role = (typeof roles)[number]

export const readers: readonly Role[] = roles
export const staff: readonly Role[] = ['admin', 'payroll', 'support', 'viewer']
export const payroll: readonly Role[] = ['admin', 'payroll']
export const cancelling: readonly Role[] = ['admin', 'payroll', 'support']
export const tracing: readonly Role[] = ['admin', 'support', 'developer']
export const building: readonly Role[] = ['admin', 'developer']

/**
 * The users who may call an operation of the partner API from the console. `noLiveUser` is for a member’s own decisions: on a
 * live installation no user makes them, not even an operator. `keysOnly` is for what only a partner’s server needs.
 */
type Access = readonly Role[] | 'noLiveUser' | 'keysOnly'

/**
 * Every operation of the partner API that needs an API key, and those of the console that work for one partner, by their
 * `operationId`. What is not listed is refused.
 */
export const access: { readonly [operationId: string]: Access } = {
  getTiers: readers,
  getMembers: staff,
  getMember: staff,
  inviteMember: payroll,
  updateMember: payroll,
  replaceMember: payroll,
  removeMember: payroll,
  activateMember: payroll,
  getMemberMetadata: staff,
  setMemberMetadata: payroll,
  createMemberSession: 'keysOnly',

  createJob: payroll,
  createJobFromCsv: payroll,
  createJobFromCsvV2: payroll,
  approveJob: payroll,
  rejectJob: payroll,
  getJobs: staff,
  getJob: staff,
  getJobResults: staff,

  createWithdrawalIntent: 'noLiveUser',
  completeWithdrawal: 'noLiveUser',
  cancelWithdrawalIntent: cancelling,
  cancelWithdrawal: cancelling,
  getMemberBalance: readers,
  getWithdrawalIntent: readers,
  getWithdrawalIntentExplanation: readers,
  getWithdrawalIntentMetadata: readers,
  setWithdrawalIntentMetadata: payroll,
  getWithdrawals: readers,
  getWithdrawal: readers,
  getMemberWithdrawals: readers,

  readSheetRows: payroll,
  checkPayRunFile: payroll,
  uploadPayRun: payroll,
  revertPayRun: payroll,
  getPayRuns: readers,
  getPayRun: readers,
  getPayRunMetadata: readers,
  setPayRunMetadata: payroll,
  getPayRunSummaries: readers,
  getAuthors: readers,
  getPayCycles: readers,
  getPayCycle: readers,
  getPayCycleDeductions: staff,
  getSettlement: staff,
  checkSettlementFile: payroll,
  createSettlement: payroll,
  getMemberStatement: staff,
  getMemberSupport: staff,
  reinstateMember: payroll,

  getOverview: readers,
  getOverviewSeries: readers,

  getEvents: tracing,
  getRequests: tracing,
  getRequest: tracing,
  getRequestErrors: tracing,
  getIdempotencyKey: tracing,

  getWebhooks: building,
  getWebhook: building,
  getWebhookMetadata: building,
  setWebhookMetadata: building,
  createWebhook: building,
  updateWebhook: building,
  deleteWebhook: building,
  rotateWebhookSecret: building,
  testWebhook: building,
  replayWebhook: building,
  getWebhookDeliveries: building,
  getWebhookDelivery: building,

  getSandboxClock: readers,
  getSandboxTestValues: readers,
  getSandboxBankFiles: building,
  moveSandboxClock: building,
  submitSandboxWithdrawal: building,
  paySandboxWithdrawal: building,
  failSandboxWithdrawal: building,
  returnSandboxWithdrawal: building,
  holdSandboxWithdrawal: building,
  addSandboxBankFault: building,
  answerSandboxBankFile: building,
  fundSandboxMember: building,
  activateSandboxMember: building,
  provokeSandboxJob: building,
  fundSandboxFloat: building,
  pauseSandbox: building,
  resumeSandbox: building,
  seedSandbox: building,
  resetSandbox: building,
}

/**
 * The operations of the operators’ API that a partner’s users may also call, but only for their own partner. A key does whatever
 * its scopes allow: one that a developer makes reads members, whom the developer does not see in the console. Those who run the
 * partner’s server hold its keys anyway, and each new key is in the audit log with its maker.
 */
export const accessOfPartners: { readonly [operationId: string]: readonly Role[] } = {
  listApiKeys: building,
  createApiKey: building,
  rotateApiKey: building,
  revokeApiKey: building,
  listPartnerAuditEntries: ['admin'],
}

/** The rights of a user with a partner. */
export type Rights = { isOperator: boolean; roles: readonly Role[] }

/**
 * Whether the user may call the operation. On a sandbox, where no member is a real person, a developer may do what an admin
 * may.
 */
export function mayCall(operationId: string | undefined, { isOperator, roles: held }: Rights, mode: Mode): boolean {
  const allowed = operationId === undefined ? undefined : access[operationId]
  if (allowed === undefined || allowed === 'keysOnly') return false
  if (allowed === 'noLiveUser') return mode === 'sandbox' && (isOperator || held.some(role => building.includes(role)))
  if (isOperator) return true
  const effective: readonly Role[] = mode === 'sandbox' && held.includes('developer') ? [...held, 'admin'] : held
  return effective.some(role => allowed.includes(role))
}

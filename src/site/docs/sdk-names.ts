/**
 * The SDK's name of every operation: the resource, then the verb. Uses the words of the glossary, so a member is offboarded, not
 * removed. `list` returns pages, `get` returns one resource by its id.
 *
 * An operation that can also return a file has a second name for the file.
 */
export const sdkNames: Record<string, string | { json: string; file: string }> = {
  getTiers: 'tiers.list',

  inviteMember: 'members.invite',
  getMembers: { json: 'members.list', file: 'members.export' },
  getMember: 'members.get',
  updateMember: 'members.update',
  replaceMember: 'members.replace',
  removeMember: 'members.offboard',
  activateMember: 'members.activate',
  getMemberMetadata: 'members.getMetadata',
  setMemberMetadata: 'members.setMetadata',
  getMemberBalance: 'members.getBalance',
  getMemberStatement: 'members.listStatementLines',
  getMemberWithdrawals: 'members.listWithdrawals',

  createMemberSession: 'memberSessions.create',

  createJob: 'memberJobs.create',
  createJobFromCsv: 'memberJobs.createFromFile',
  createJobFromCsvV2: 'memberJobs.createFromFileV2',
  getJobs: 'memberJobs.list',
  getJob: 'memberJobs.get',
  getJobResults: { json: 'memberJobs.listResults', file: 'memberJobs.exportResults' },
  approveJob: 'memberJobs.approve',
  rejectJob: 'memberJobs.reject',

  createWithdrawalIntent: 'withdrawals.createIntent',
  getWithdrawalIntent: 'withdrawals.getIntent',
  getWithdrawalIntentExplanation: 'withdrawals.explainIntent',
  cancelWithdrawalIntent: 'withdrawals.cancelIntent',
  getWithdrawalIntentMetadata: 'withdrawals.getIntentMetadata',
  setWithdrawalIntentMetadata: 'withdrawals.setIntentMetadata',
  completeWithdrawal: 'withdrawals.complete',
  getWithdrawals: 'withdrawals.list',
  getWithdrawal: 'withdrawals.get',
  cancelWithdrawal: 'withdrawals.cancel',

  uploadPayRun: 'payRuns.create',
  getPayRuns: 'payRuns.list',
  getPayRun: 'payRuns.get',
  revertPayRun: 'payRuns.revert',
  getPayRunMetadata: 'payRuns.getMetadata',
  setPayRunMetadata: 'payRuns.setMetadata',

  getPayCycles: 'payCycles.list',
  getPayCycle: 'payCycles.get',
  getPayCycleDeductions: { json: 'payCycles.listDeductions', file: 'payCycles.exportDeductions' },
  createSettlement: 'payCycles.settle',
  getSettlement: 'payCycles.listSettlementLines',

  getEvents: 'events.list',

  createWebhook: 'webhooks.create',
  getWebhooks: 'webhooks.list',
  getWebhook: 'webhooks.get',
  updateWebhook: 'webhooks.update',
  deleteWebhook: 'webhooks.delete',
  getWebhookMetadata: 'webhooks.getMetadata',
  setWebhookMetadata: 'webhooks.setMetadata',
  rotateWebhookSecret: 'webhooks.rotateSecret',
  testWebhook: 'webhooks.test',
  replayWebhook: 'webhooks.replay',
  getWebhookDeliveries: 'webhooks.listDeliveries',
  getWebhookDelivery: 'webhooks.getDelivery',

  getOverview: 'overview.get',
  getOverviewSeries: 'overview.getSeries',

  getRequests: 'requests.list',
  getRequest: 'requests.get',
  getRequestErrors: 'requests.countErrors',
  getIdempotencyKey: 'idempotencyKeys.get',

  getLiveness: 'service.getLiveness',
  getReadiness: 'service.getReadiness',
  getErrors: 'service.getErrors',

  getSandboxClock: 'sandbox.clock.get',
  moveSandboxClock: 'sandbox.clock.move',
  submitSandboxWithdrawal: 'sandbox.withdrawals.submit',
  paySandboxWithdrawal: 'sandbox.withdrawals.pay',
  failSandboxWithdrawal: 'sandbox.withdrawals.fail',
  returnSandboxWithdrawal: 'sandbox.withdrawals.return',
  holdSandboxWithdrawal: 'sandbox.withdrawals.hold',
  addSandboxBankFault: 'sandbox.bank.addFault',
  getSandboxBankFiles: 'sandbox.bankFiles.list',
  answerSandboxBankFile: 'sandbox.bankFiles.answer',
  fundSandboxMember: 'sandbox.members.fund',
  activateSandboxMember: 'sandbox.members.activate',
  provokeSandboxJob: 'sandbox.memberJobs.provoke',
  fundSandboxFloat: 'sandbox.fundFloat',
  pauseSandbox: 'sandbox.pause',
  resumeSandbox: 'sandbox.resume',
  seedSandbox: 'sandbox.seed',
  resetSandbox: 'sandbox.reset',
  getSandboxTestValues: 'sandbox.getTestValues',
}

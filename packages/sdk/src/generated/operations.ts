// Generated from openapi-representation.json by `npm run generate`. Do not edit.

import type { Call, CallOptions, List } from '../call.ts'
import type { Operation } from '../client.ts'
import type { FileSource } from '../files.ts'
import type { CallerId, CompleteWithdrawal, Currency, DayOrInstant, Deduction, Deductions, Email, ErrorRow, Event, EventId, EventType, Events, GivenInstant, IdempotencyKey, Instant, LoggedRequest, LoggedRequests, Member, MemberBalance, MemberDataExport, MemberErasure, MemberId, MemberJob, MemberJobCreated, MemberJobId, MemberJobPreview, MemberJobResult, MemberJobResultAction, MemberJobResultOutcome, MemberJobResults, MemberJobs, MemberRemoved, MemberSession, MemberStatement, MemberStatementLine, MemberStatus, MemberUpdate, MemberWithdrawals, Members, Metadata, Money, NewMember, NewMemberJob, NewMemberSession, NewPayRun, NewSettlement, NewWebhook, NewWithdrawalIntent, ObjectMetadata, Overview, OverviewSeries, PayCycle, PayCycleId, PayCycleStatus, PayCycles, PayRun, PayRunCreated, PayRunDetails, PayRunId, PayRunStatus, PayRuns, PayoutBatchId, Readiness, ReplayOfEvent, ReplayOfFailed, ReplayOfRange, ReplayRequested, RequestErrors, RequestId, RotatedWebhook, SandboxBankFault, SandboxBankFaults, SandboxBankFile, SandboxBankFiles, SandboxBankInstruction, SandboxClock, SandboxFloat, SandboxMemberActivated, SandboxMemberFunded, SandboxMemberJob, SandboxPaused, SandboxScenario, SandboxSeeded, SandboxTestValues, SandboxWithdrawal, ServiceStatus, Settlement, SettlementLine, SettlementSummary, TierWithTerms, TransferId, Webhook, WebhookChanges, WebhookDeleted, WebhookDeliveries, WebhookDelivery, WebhookDeliveryDetails, WebhookDeliveryState, WebhookId, WebhookRotation, WebhookTest, WebhookWithSecret, Webhooks, WithdrawalDetails, WithdrawalId, WithdrawalIntent, WithdrawalIntentExplanation, WithdrawalIntentId, WithdrawalStatus, WithdrawalTimeline, WithdrawalWithStatus, WithdrawalsWithStatus, WorkerId } from './schemas.ts'

export const operations: Record<string, Operation> = {
  'tiers.list': { method: 'GET', path: '/v1/tiers', prefers: true },
  'withdrawals.getIntentMetadata': { method: 'GET', path: '/v1/pay/withdrawals/intent/{withdrawalIntentId}/metadata' },
  'withdrawals.setIntentMetadata': { method: 'PUT', path: '/v1/pay/withdrawals/intent/{withdrawalIntentId}/metadata', hasBody: true },
  'withdrawals.createIntent': { method: 'POST', path: '/v1/pay/withdrawals/intent', hasBody: true, prefers: true },
  'withdrawals.getIntent': { method: 'GET', path: '/v1/pay/withdrawals/intent/{withdrawalIntentId}' },
  'withdrawals.explainIntent': { method: 'GET', path: '/v1/pay/withdrawals/intent/{withdrawalIntentId}/explanation' },
  'withdrawals.cancelIntent': { method: 'DELETE', path: '/v1/pay/withdrawals/intent/{withdrawalIntentId}' },
  'withdrawals.complete': { method: 'POST', path: '/v1/pay/withdrawals/complete', hasBody: true, prefers: true },
  'withdrawals.list': { method: 'GET', path: '/v1/pay/withdrawals', hasQuery: true, prefers: true, entries: 'withdrawals', cursor: 'id' },
  'withdrawals.get': { method: 'GET', path: '/v1/pay/withdrawals/{withdrawalId}' },
  'withdrawals.getTimeline': { method: 'GET', path: '/v1/pay/withdrawals/{withdrawalId}/timeline' },
  'withdrawals.cancel': { method: 'POST', path: '/v1/pay/withdrawals/{withdrawalId}/cancel' },
  'members.getBalance': { method: 'GET', path: '/v1/pay/members/{memberId}/balance' },
  'members.listWithdrawals': { method: 'GET', path: '/v1/pay/members/{memberId}/withdrawals', hasQuery: true, entries: 'withdrawals' },
  'members.getMetadata': { method: 'GET', path: '/v1/members/{memberId}/metadata' },
  'members.setMetadata': { method: 'PUT', path: '/v1/members/{memberId}/metadata', hasBody: true },
  'members.invite': { method: 'POST', path: '/v1/members', hasBody: true, prefers: true },
  'members.list': { method: 'GET', path: '/v1/members', hasQuery: true, prefers: true, entries: 'members', cursor: 'memberId' },
  'members.export': { method: 'GET', path: '/v1/members', hasQuery: true, accepts: 'text/csv' },
  'members.get': { method: 'GET', path: '/v1/members/{memberId}', prefers: true },
  'members.update': { method: 'PATCH', path: '/v1/members/{memberId}', hasBody: true, prefers: true },
  'members.replace': { method: 'PUT', path: '/v1/members/{memberId}', hasBody: true, prefers: true },
  'members.offboard': { method: 'DELETE', path: '/v1/members/{memberId}' },
  'members.activate': { method: 'POST', path: '/v1/members/{memberId}/activate', prefers: true },
  'members.erase': { method: 'POST', path: '/v1/members/{memberId}/erase', hasQuery: true },
  'members.exportData': { method: 'GET', path: '/v1/members/{memberId}/data-export' },
  'members.listStatementLines': { method: 'GET', path: '/v1/pay/members/{memberId}/statement', hasQuery: true, entries: 'lines', cursor: 'id' },
  'memberJobs.create': { method: 'POST', path: '/v1/members/jobs', hasBody: true, hasQuery: true },
  'memberJobs.createFromFile': { method: 'PUT', path: '/v1/members/jobs/csv', hasBody: true, takesFile: true, hasQuery: true },
  'memberJobs.createFromFileV2': { method: 'PUT', path: '/v2/members/jobs/csv', hasBody: true, takesFile: true, hasQuery: true },
  'memberJobs.list': { method: 'GET', path: '/v1/members/jobs', hasQuery: true, entries: 'jobs', cursor: 'id' },
  'memberJobs.get': { method: 'GET', path: '/v1/members/jobs/{jobId}' },
  'memberJobs.approve': { method: 'POST', path: '/v1/members/jobs/{jobId}/approve' },
  'memberJobs.reject': { method: 'POST', path: '/v1/members/jobs/{jobId}/reject' },
  'memberJobs.listResults': { method: 'GET', path: '/v1/members/jobs/{jobId}/results', hasQuery: true, entries: 'results', cursor: 'step' },
  'memberJobs.exportResults': { method: 'GET', path: '/v1/members/jobs/{jobId}/results', hasQuery: true, accepts: 'text/csv' },
  'memberSessions.create': { method: 'POST', path: '/v1/member-sessions', hasBody: true },
  'payRuns.getMetadata': { method: 'GET', path: '/v1/pay/runs/{payRunId}/metadata' },
  'payRuns.setMetadata': { method: 'PUT', path: '/v1/pay/runs/{payRunId}/metadata', hasBody: true },
  'payRuns.create': { method: 'POST', path: '/v1/pay/run', hasBody: true },
  'payRuns.list': { method: 'GET', path: '/v1/pay/runs', hasQuery: true, entries: 'payRuns', cursor: 'id' },
  'payRuns.get': { method: 'GET', path: '/v1/pay/runs/{payRunId}' },
  'payRuns.revert': { method: 'POST', path: '/v1/pay/runs/{payRunId}/revert' },
  'payCycles.list': { method: 'GET', path: '/v1/pay/cycles', hasQuery: true, entries: 'payCycles', cursor: 'id' },
  'payCycles.get': { method: 'GET', path: '/v1/pay/cycles/{payCycleId}' },
  'payCycles.listDeductions': { method: 'GET', path: '/v1/pay/cycles/{payCycleId}/deductions', hasQuery: true, entries: 'deductions', cursor: 'memberId' },
  'payCycles.exportDeductions': { method: 'GET', path: '/v1/pay/cycles/{payCycleId}/deductions', hasQuery: true, accepts: 'text/csv' },
  'payCycles.settle': { method: 'POST', path: '/v1/pay/cycles/{payCycleId}/settlement', hasBody: true, takesFile: true },
  'payCycles.listSettlementLines': { method: 'GET', path: '/v1/pay/cycles/{payCycleId}/settlement', hasQuery: true, entries: 'lines', cursor: 'memberId' },
  'events.list': { method: 'GET', path: '/v1/events', hasQuery: true, entries: 'events', cursor: 'lastEventId' },
  'overview.get': { method: 'GET', path: '/v1/overview' },
  'overview.getSeries': { method: 'GET', path: '/v1/overview/series', hasQuery: true },
  'requests.list': { method: 'GET', path: '/v1/requests', hasQuery: true, entries: 'requests', cursor: 'id' },
  'requests.countErrors': { method: 'GET', path: '/v1/request-errors', hasQuery: true },
  'requests.get': { method: 'GET', path: '/v1/requests/{requestId}' },
  'webhooks.getMetadata': { method: 'GET', path: '/v1/webhooks/{webhookId}/metadata' },
  'webhooks.setMetadata': { method: 'PUT', path: '/v1/webhooks/{webhookId}/metadata', hasBody: true },
  'webhooks.create': { method: 'POST', path: '/v1/webhooks', hasBody: true },
  'webhooks.list': { method: 'GET', path: '/v1/webhooks', hasQuery: true, entries: 'webhooks', cursor: 'id' },
  'webhooks.get': { method: 'GET', path: '/v1/webhooks/{webhookId}' },
  'webhooks.update': { method: 'PATCH', path: '/v1/webhooks/{webhookId}', hasBody: true },
  'webhooks.delete': { method: 'DELETE', path: '/v1/webhooks/{webhookId}' },
  'webhooks.rotateSecret': { method: 'POST', path: '/v1/webhooks/{webhookId}/rotate', hasBody: true },
  'webhooks.test': { method: 'POST', path: '/v1/webhooks/{webhookId}/test', hasBody: true },
  'webhooks.replay': { method: 'POST', path: '/v1/webhooks/{webhookId}/replay', hasBody: true },
  'webhooks.listDeliveries': { method: 'GET', path: '/v1/webhooks/{webhookId}/deliveries', hasQuery: true, entries: 'deliveries', cursor: 'id' },
  'webhooks.getDelivery': { method: 'GET', path: '/v1/webhooks/{webhookId}/deliveries/{deliveryId}' },
  'service.getLiveness': { method: 'GET', path: '/livez' },
  'service.getReadiness': { method: 'GET', path: '/readyz' },
  'service.getErrors': { method: 'GET', path: '/v1/errors' },
  'idempotencyKeys.get': { method: 'GET', path: '/v1/idempotency-keys/{key}' },
  'sandbox.clock.get': { method: 'GET', path: '/v1/sandbox/clock' },
  'sandbox.clock.move': { method: 'POST', path: '/v1/sandbox/clock', hasBody: true },
  'sandbox.withdrawals.submit': { method: 'POST', path: '/v1/sandbox/withdrawals/{withdrawalId}/submit', hasBody: true },
  'sandbox.withdrawals.pay': { method: 'POST', path: '/v1/sandbox/withdrawals/{withdrawalId}/pay', hasBody: true },
  'sandbox.withdrawals.fail': { method: 'POST', path: '/v1/sandbox/withdrawals/{withdrawalId}/fail', hasBody: true },
  'sandbox.withdrawals.return': { method: 'POST', path: '/v1/sandbox/withdrawals/{withdrawalId}/return', hasBody: true },
  'sandbox.withdrawals.hold': { method: 'POST', path: '/v1/sandbox/withdrawals/{withdrawalId}/hold', hasBody: true },
  'sandbox.bank.addFault': { method: 'POST', path: '/v1/sandbox/bank/faults', hasBody: true },
  'sandbox.bankFiles.list': { method: 'GET', path: '/v1/sandbox/bank-files', hasQuery: true, entries: 'bankFiles', cursor: 'batchId' },
  'sandbox.bankFiles.answer': { method: 'POST', path: '/v1/sandbox/bank-files/{batchId}/answers', hasBody: true, accepts: '*/*' },
  'sandbox.members.fund': { method: 'POST', path: '/v1/sandbox/members/{memberId}/fund', hasBody: true },
  'sandbox.members.activate': { method: 'POST', path: '/v1/sandbox/members/{memberId}/activate' },
  'sandbox.memberJobs.provoke': { method: 'POST', path: '/v1/sandbox/members/jobs', hasBody: true },
  'sandbox.fundFloat': { method: 'POST', path: '/v1/sandbox/float', hasBody: true },
  'sandbox.pause': { method: 'POST', path: '/v1/sandbox/pause' },
  'sandbox.resume': { method: 'POST', path: '/v1/sandbox/resume' },
  'sandbox.seed': { method: 'POST', path: '/v1/sandbox/seed', hasBody: true },
  'sandbox.reset': { method: 'POST', path: '/v1/sandbox/reset' },
  'sandbox.getTestValues': { method: 'GET', path: '/v1/sandbox/test-values' },
}

export interface Resources {
  tiers: {
    /**
     * List the tiers.
     *
     * Lists the names that a member’s `tier` can have, in alphabetical order.
     *
     * `GET /v1/tiers` (getTiers)
     */
    list(options?: CallOptions): Call<TierWithTerms[]>
  }
  withdrawals: {
    /**
     * Get the metadata of a withdrawal intent.
     *
     * `GET /v1/pay/withdrawals/intent/{withdrawalIntentId}/metadata` (getWithdrawalIntentMetadata)
     */
    getIntentMetadata(withdrawalIntentId: WithdrawalIntentId, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Set the metadata of a withdrawal intent.
     *
     * Replaces it as a whole: a key that is left out is removed. Idempotent.
     *
     * `PUT /v1/pay/withdrawals/intent/{withdrawalIntentId}/metadata` (setWithdrawalIntentMetadata)
     */
    setIntentMetadata(withdrawalIntentId: WithdrawalIntentId, body: ObjectMetadata, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Create a withdrawal intent.
     *
     * Quotes a withdrawal: the fee under the member’s tier, the net amount and the destination account. No money is reserved or moved until the intent is completed.
     *
     * Errors: MemberNotFoundError, UnprocessableEntityError, MemberNotEligibleError, BankAccountInvalidError, AmountBelowLowerLimitError, AmountAboveUpperLimitError, MemberInsufficientFundsError.
     *
     * `POST /v1/pay/withdrawals/intent` (createWithdrawalIntent)
     */
    createIntent(body: NewWithdrawalIntent, options?: CallOptions): Call<WithdrawalIntent>
    /**
     * Get a withdrawal intent.
     *
     * `GET /v1/pay/withdrawals/intent/{withdrawalIntentId}` (getWithdrawalIntent)
     */
    getIntent(withdrawalIntentId: WithdrawalIntentId, options?: CallOptions): Call<WithdrawalIntent>
    /**
     * Explain a withdrawal intent.
     *
     * Shows the inputs of the quote and the result of each rule: limits, parts of the fee, who pays it, and the net amount.
     *
     * `GET /v1/pay/withdrawals/intent/{withdrawalIntentId}/explanation` (getWithdrawalIntentExplanation)
     */
    explainIntent(withdrawalIntentId: WithdrawalIntentId, options?: CallOptions): Call<WithdrawalIntentExplanation>
    /**
     * Cancel a withdrawal intent.
     *
     * Cancels a pending intent, which can then no longer be completed. Idempotent: cancelling it again returns the same response.
     *
     * `DELETE /v1/pay/withdrawals/intent/{withdrawalIntentId}` (cancelWithdrawalIntent)
     */
    cancelIntent(withdrawalIntentId: WithdrawalIntentId, options?: CallOptions): Call<WithdrawalIntent>
    /**
     * Complete a withdrawal.
     *
     * Repeats all checks and moves the money. Idempotent: completing the intent again returns the same response and moves nothing.
     *
     * Errors: MemberNotFoundError, UnprocessableEntityError, MemberNotEligibleError, BankAccountInvalidError, AmountBelowLowerLimitError, AmountAboveUpperLimitError, MemberInsufficientFundsError.
     *
     * `POST /v1/pay/withdrawals/complete` (completeWithdrawal)
     */
    complete(body: CompleteWithdrawal, options?: CallOptions): Call<WithdrawalDetails>
    /**
     * List withdrawals.
     *
     * Newest first. Withdrawals that failed, were returned or were cancelled are left out unless `statuses` names them, because the member has the money back. If `after` or `before` is unknown, the response is `NotFound`.
     *
     * `GET /v1/pay/withdrawals` (getWithdrawals)
     */
    list(query?: {
      memberId?: MemberId | undefined
      payCycleId?: PayCycleId | undefined
      /** Created at or after this instant. A date without a time means midnight UTC. */
      fromDate?: DayOrInstant | undefined
      /** Created before this instant. A date without a time means midnight UTC. */
      toDate?: DayOrInstant | undefined
      /** Only withdrawals with one of these statuses. Default: `held`, `submitted` and `paid`. */
      statuses?: WithdrawalStatus[] | undefined
      /** Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`. */
      metadata?: Metadata | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`. */
      after?: WithdrawalId | undefined
      /** The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`. */
      before?: WithdrawalId | undefined
    }, options?: CallOptions): List<WithdrawalsWithStatus, WithdrawalWithStatus>
    /**
     * Get a withdrawal.
     *
     * `GET /v1/pay/withdrawals/{withdrawalId}` (getWithdrawal)
     */
    get(withdrawalId: WithdrawalId, options?: CallOptions): Call<WithdrawalDetails>
    /**
     * Get the timeline of a withdrawal.
     *
     * Everything that happened to a withdrawal: its statuses with what was booked for each, the decision on its intent, the requests, and the deliveries of its events to webhooks.
     *
     * `GET /v1/pay/withdrawals/{withdrawalId}/timeline` (getWithdrawalTimeline)
     */
    getTimeline(withdrawalId: WithdrawalId, options?: CallOptions): Call<WithdrawalTimeline>
    /**
     * Cancel a withdrawal.
     *
     * Cancels a withdrawal while it is `held`. The member gets the money back at once, including the fee. Idempotent: cancelling it again returns the same response.
     *
     * Errors: UnprocessableEntityError.
     *
     * `POST /v1/pay/withdrawals/{withdrawalId}/cancel` (cancelWithdrawal)
     */
    cancel(withdrawalId: WithdrawalId, options?: CallOptions): Call<WithdrawalDetails>
  }
  members: {
    /**
     * Get a member’s available balance.
     *
     * Errors: MemberNotFoundError, UnprocessableEntityError.
     *
     * `GET /v1/pay/members/{memberId}/balance` (getMemberBalance)
     */
    getBalance(memberId: MemberId, options?: CallOptions): Call<MemberBalance>
    /**
     * List a member’s withdrawals.
     *
     * Deprecated: use `GET /v1/pay/withdrawals`. Newest first. `amount` is the gross amount: what left the member’s pay, including the fee.
     *
     * Errors: MemberNotFoundError.
     *
     * `GET /v1/pay/members/{memberId}/withdrawals` (getMemberWithdrawals)
     *
     * @deprecated
     */
    listWithdrawals(memberId: MemberId, query?: {
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
    }, options?: CallOptions): List<MemberWithdrawals, { amount: Money; fee: Money; payCycleId: PayCycleId; createdAt: Instant }>
    /**
     * Get the metadata of a member.
     *
     * Errors: MemberNotFoundError.
     *
     * `GET /v1/members/{memberId}/metadata` (getMemberMetadata)
     */
    getMetadata(memberId: MemberId, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Set the metadata of a member.
     *
     * Replaces it as a whole: a key that is left out is removed. Idempotent.
     *
     * Errors: MemberNotFoundError.
     *
     * `PUT /v1/members/{memberId}/metadata` (setMemberMetadata)
     */
    setMetadata(memberId: MemberId, body: ObjectMetadata, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Invite a member.
     *
     * The member is `invited`, or `active` at once if the partner activates members automatically. The e-mail must be unique among active and invited members, the `workerId` among all members.
     *
     * Errors: InvalidAddMemberPayloadError, MemberAlreadyInvitedError.
     *
     * `POST /v1/members` (inviteMember)
     */
    invite(body: NewMember, options?: CallOptions): Call<Member>
    /**
     * List members.
     *
     * Newest first. A filter may be repeated (up to 100 times) and matches any of its values; a member must match every filter. With `accept: text/csv`, returns all matching members as a file, oldest first, ignoring `skip` and `take`. With `statuses=active&statuses=invited` the file is the complete list: uploading it unedited to `PUT /v1/members/jobs/csv` or `/v2/…` changes nothing.
     *
     * `GET /v1/members` (getMembers)
     */
    list(query?: {
      memberIds?: MemberId[] | undefined
      statuses?: MemberStatus[] | undefined
      /** Case-insensitive. */
      emails?: Email[] | undefined
      workerIds?: WorkerId[] | undefined
      /** An id, e-mail or worker id, or the beginning of the whole name or last name, in any case. At most 1,000 members are found by each kind of name. */
      search?: string | undefined
      /** Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`. */
      metadata?: Metadata | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: MemberId | undefined
    }, options?: CallOptions): List<Members, Member>
    /**
     * List members.
     *
     * Newest first. A filter may be repeated (up to 100 times) and matches any of its values; a member must match every filter. With `accept: text/csv`, returns all matching members as a file, oldest first, ignoring `skip` and `take`. With `statuses=active&statuses=invited` the file is the complete list: uploading it unedited to `PUT /v1/members/jobs/csv` or `/v2/…` changes nothing.
     *
     * `GET /v1/members` (getMembers)
     */
    export(query?: {
      memberIds?: MemberId[] | undefined
      statuses?: MemberStatus[] | undefined
      /** Case-insensitive. */
      emails?: Email[] | undefined
      workerIds?: WorkerId[] | undefined
      /** An id, e-mail or worker id, or the beginning of the whole name or last name, in any case. At most 1,000 members are found by each kind of name. */
      search?: string | undefined
      /** Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`. */
      metadata?: Metadata | undefined
      /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: MemberId | undefined
    }, options?: CallOptions): Call<Response>
    /**
     * Get a member.
     *
     * Errors: MemberNotFoundError.
     *
     * `GET /v1/members/{memberId}` (getMember)
     */
    get(memberId: MemberId, options?: CallOptions): Call<Member>
    /**
     * Update a member.
     *
     * Changes the given fields; null removes a value. The e-mail can change only while the member is `invited`. An inactive member stays inactive.
     *
     * Errors: InvalidUpdateMemberPayloadError, MemberNotFoundError, MemberAlreadyInvitedError.
     *
     * `PATCH /v1/members/{memberId}` (updateMember)
     */
    update(memberId: MemberId, body: MemberUpdate, options?: CallOptions): Call<Member>
    /**
     * Replace a member.
     *
     * Replaces the whole profile: fields that are left out are removed. Reinstates an inactive member as `invited`, or as `active` if the partner activates members automatically. The e-mail of an active member cannot change.
     *
     * Errors: InvalidUpdateMemberPayloadError, MemberNotFoundError, MemberAlreadyInvitedError.
     *
     * `PUT /v1/members/{memberId}` (replaceMember)
     */
    replace(memberId: MemberId, body: NewMember, options?: CallOptions): Call<Member>
    /**
     * Remove a member.
     *
     * Offboards the member, who becomes `inactive` and can no longer withdraw; the books are kept. Idempotent.
     *
     * Errors: MemberNotFoundError.
     *
     * `DELETE /v1/members/{memberId}` (removeMember)
     */
    offboard(memberId: MemberId, options?: CallOptions): Call<MemberRemoved>
    /**
     * Activate a member.
     *
     * Activates an invited member, who can then withdraw. Idempotent; an inactive member is a `Conflict`.
     *
     * Errors: MemberNotFoundError.
     *
     * `POST /v1/members/{memberId}/activate` (activateMember)
     */
    activate(memberId: MemberId, options?: CallOptions): Call<Member>
    /**
     * Erase a member.
     *
     * Destroys everything that identifies an offboarded member, for ever. The books stay, without saying who the member was; which accounts were paid stays known to the operator for as long as the law demands. Afterwards only the books have the member’s id: withdrawals, statements, deductions and settlements. Everything else responds with `MemberNotFound`, and the e-mail and `workerId` can be used again. Refused as `Conflict` with every reason while the member is not offboarded or anything about them is unfinished; see docs/operations/erasure.md. Idempotent: a repeated call returns the same receipt.
     *
     * Errors: MemberNotFoundError.
     *
     * `POST /v1/members/{memberId}/erase` (eraseMember)
     */
    erase(memberId: MemberId, query?: {
      /** Return what would be destroyed and kept, without erasing anything. */
      dryRun?: boolean | undefined
    }, options?: CallOptions): Call<MemberErasure>
    /**
     * Export everything about a member.
     *
     * For a request of access (GDPR art. 15): profile, balances, statement, intents, withdrawals with their payments, lists that named the member, the audit log about the member, and sessions. With `accept: text/html`, a page that a person can read. Changes while it is read may be missing. Each export is in the audit log.
     *
     * Errors: MemberNotFoundError.
     *
     * `GET /v1/members/{memberId}/data-export` (exportMemberData)
     */
    exportData(memberId: MemberId, options?: CallOptions): Call<MemberDataExport>
    /**
     * Get a member’s statement.
     *
     * Lists the ledger lines that changed what the member has available or owes, newest first, up to an instant. Pay that was not withdrawn is in it until it is released, which may be a minute or two after the end of its pay cycle for a partner with very many members. When paging with `skip`, pass the `asOf` of the first page, so that new lines do not shift the pages. If `after` or `before` is not a line of the statement, the response is `NotFound`.
     *
     * Errors: MemberNotFoundError.
     *
     * `GET /v1/pay/members/{memberId}/statement` (getMemberStatement)
     */
    listStatementLines(memberId: MemberId, query?: {
      /** Lines up to and including this instant. Default: now. */
      asOf?: GivenInstant | undefined
      /** Default: the member’s currency. */
      currency?: Currency | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`. */
      after?: TransferId | undefined
      /** The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`. */
      before?: TransferId | undefined
    }, options?: CallOptions): List<MemberStatement, MemberStatementLine>
  }
  memberJobs: {
    /**
     * Change many members.
     *
     * Applies up to 10,000 actions atomically, in the given order. `Add` has the rules of `inviteMember`, `Replace` of `replaceMember`, `Update` of `updateMember` and `Offboard` of `removeMember`. Each action sees the effect of the actions before it. If any action is invalid, no job is created and the response lists the issues (at most 1,000). If an action becomes invalid before the worker applies the job, the job ends as `Rejected` and nothing is changed. Jobs run one at a time per partner: while another job is unfinished, a new one is queued (`NotReady`). A queued job may contain an e-mail or `workerId` that belongs to another member, because a job ahead of it may free it; this is checked again when the job is applied. With 100 jobs queued, the request fails with `Conflict`.
     *
     * Errors: InvalidAddMemberPayloadError, InvalidUpdateMemberPayloadError, InvalidRemoveMemberPayloadError.
     *
     * `POST /v1/members/jobs` (createJob)
     */
    create(body: NewMemberJob, query: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun: true
    }, options?: CallOptions): Call<MemberJobPreview>
    /**
     * Change many members.
     *
     * Applies up to 10,000 actions atomically, in the given order. `Add` has the rules of `inviteMember`, `Replace` of `replaceMember`, `Update` of `updateMember` and `Offboard` of `removeMember`. Each action sees the effect of the actions before it. If any action is invalid, no job is created and the response lists the issues (at most 1,000). If an action becomes invalid before the worker applies the job, the job ends as `Rejected` and nothing is changed. Jobs run one at a time per partner: while another job is unfinished, a new one is queued (`NotReady`). A queued job may contain an e-mail or `workerId` that belongs to another member, because a job ahead of it may free it; this is checked again when the job is applied. With 100 jobs queued, the request fails with `Conflict`.
     *
     * Errors: InvalidAddMemberPayloadError, InvalidUpdateMemberPayloadError, InvalidRemoveMemberPayloadError.
     *
     * `POST /v1/members/jobs` (createJob)
     */
    create(body: NewMemberJob, query?: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun?: false | undefined
    }, options?: CallOptions): Call<MemberJobCreated>
    /**
     * Upload the complete list of members.
     *
     * Synchronises the members with a file that lists all of them: new members are invited, changed members are updated, offboarded members are reinstated, and **members missing from the file are offboarded**. If it would offboard more than the partner’s limit (10 % of the members unless the operator has set another share), the job waits for approval. An empty bank account in the file leaves the member’s account unchanged. Columns that are absent change nothing. If any row is invalid, no job is created: the response has one issue for each of the first 1,000 invalid rows and one with the number of the others. Changes made to a member after the file was sent take precedence over the file. Jobs run one at a time per partner: while another job is unfinished, the file is queued (`NotReady`) and compared with the members as the earlier jobs leave them, so it overrides every job that was sent before it. With 5 files queued, the request fails with `Conflict`. See docs/guides/import-members.md.
     *
     * Errors: FileContentError.
     *
     * `PUT /v1/members/jobs/csv` (createJobFromCsv)
     */
    createFromFile(file: FileSource, query: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun: true
      /** The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to. */
      offboardMax?: number | undefined
    }, options?: CallOptions): Call<MemberJobPreview>
    /**
     * Upload the complete list of members.
     *
     * Synchronises the members with a file that lists all of them: new members are invited, changed members are updated, offboarded members are reinstated, and **members missing from the file are offboarded**. If it would offboard more than the partner’s limit (10 % of the members unless the operator has set another share), the job waits for approval. An empty bank account in the file leaves the member’s account unchanged. Columns that are absent change nothing. If any row is invalid, no job is created: the response has one issue for each of the first 1,000 invalid rows and one with the number of the others. Changes made to a member after the file was sent take precedence over the file. Jobs run one at a time per partner: while another job is unfinished, the file is queued (`NotReady`) and compared with the members as the earlier jobs leave them, so it overrides every job that was sent before it. With 5 files queued, the request fails with `Conflict`. See docs/guides/import-members.md.
     *
     * Errors: FileContentError.
     *
     * `PUT /v1/members/jobs/csv` (createJobFromCsv)
     */
    createFromFile(file: FileSource, query?: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun?: false | undefined
      /** The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to. */
      offboardMax?: number | undefined
    }, options?: CallOptions): Call<MemberJobCreated>
    /**
     * Upload the complete list of members, including bank accounts.
     *
     * Synchronises the members with a file that lists all of them: new members are invited, changed members are updated, offboarded members are reinstated, and **members missing from the file are offboarded**. If it would offboard more than the partner’s limit (10 % of the members unless the operator has set another share), the job waits for approval. An empty bank account in the file removes the member’s account. Columns that are absent change nothing. If any row is invalid, no job is created: the response has one issue for each of the first 1,000 invalid rows and one with the number of the others. Changes made to a member after the file was sent take precedence over the file. Jobs run one at a time per partner: while another job is unfinished, the file is queued (`NotReady`) and compared with the members as the earlier jobs leave them, so it overrides every job that was sent before it. With 5 files queued, the request fails with `Conflict`. See docs/guides/import-members.md.
     *
     * Errors: FileContentError.
     *
     * `PUT /v2/members/jobs/csv` (createJobFromCsvV2)
     */
    createFromFileV2(file: FileSource, query: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun: true
      /** The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to. */
      offboardMax?: number | undefined
    }, options?: CallOptions): Call<MemberJobPreview>
    /**
     * Upload the complete list of members, including bank accounts.
     *
     * Synchronises the members with a file that lists all of them: new members are invited, changed members are updated, offboarded members are reinstated, and **members missing from the file are offboarded**. If it would offboard more than the partner’s limit (10 % of the members unless the operator has set another share), the job waits for approval. An empty bank account in the file removes the member’s account. Columns that are absent change nothing. If any row is invalid, no job is created: the response has one issue for each of the first 1,000 invalid rows and one with the number of the others. Changes made to a member after the file was sent take precedence over the file. Jobs run one at a time per partner: while another job is unfinished, the file is queued (`NotReady`) and compared with the members as the earlier jobs leave them, so it overrides every job that was sent before it. With 5 files queued, the request fails with `Conflict`. See docs/guides/import-members.md.
     *
     * Errors: FileContentError.
     *
     * `PUT /v2/members/jobs/csv` (createJobFromCsvV2)
     */
    createFromFileV2(file: FileSource, query?: {
      /** Run the same checks and return the plan with status 200, without changing anything. */
      dryRun?: false | undefined
      /** The job waits for review if it would offboard more members than this, even if the partner’s limit allows it. Send the number that a dry run has shown and that was agreed to. */
      offboardMax?: number | undefined
    }, options?: CallOptions): Call<MemberJobCreated>
    /**
     * List member jobs.
     *
     * Newest first. If `after` or `before` is unknown, the response is `NotFound`.
     *
     * `GET /v1/members/jobs` (getJobs)
     */
    list(query?: {
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`. */
      after?: MemberJobId | undefined
      /** The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`. */
      before?: MemberJobId | undefined
    }, options?: CallOptions): List<MemberJobs, MemberJob>
    /**
     * Get a member job.
     *
     * `GET /v1/members/jobs/{jobId}` (getJob)
     */
    get(jobId: MemberJobId, options?: CallOptions): Call<MemberJob>
    /**
     * Approve a member job.
     *
     * Approves a job that is waiting for review. The job offboards the members that its results name, but no members that were added later. Idempotent; a job that is queued or rejected is a `Conflict`.
     *
     * `POST /v1/members/jobs/{jobId}/approve` (approveJob)
     */
    approve(jobId: MemberJobId, options?: CallOptions): Call<MemberJob>
    /**
     * Reject a member job.
     *
     * Rejects a job that is queued or waiting for review. None of its changes are applied. Idempotent; a job that is already running or completed is a `Conflict`.
     *
     * `POST /v1/members/jobs/{jobId}/reject` (rejectJob)
     */
    reject(jobId: MemberJobId, options?: CallOptions): Call<MemberJob>
    /**
     * Get the results of a member job.
     *
     * Planned and applied changes, in the order of the file or the actions; members missing from the file come last. With `accept: text/csv`, returns all matching results as a file with the outcome added, ignoring `skip` and `take`; cells that a spreadsheet would read as a formula are prefixed with an apostrophe. Results are kept for some time after the job ends: 30 days, unless the operator has set another number.
     *
     * `GET /v1/members/jobs/{jobId}/results` (getJobResults)
     */
    listResults(jobId: MemberJobId, query?: {
      actions?: MemberJobResultAction[] | undefined
      outcomes?: MemberJobResultOutcome[] | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** To get the next page, the `step` of the last result of this page. Cannot be combined with `skip`. */
      after?: number | undefined
    }, options?: CallOptions): List<MemberJobResults, MemberJobResult>
    /**
     * Get the results of a member job.
     *
     * Planned and applied changes, in the order of the file or the actions; members missing from the file come last. With `accept: text/csv`, returns all matching results as a file with the outcome added, ignoring `skip` and `take`; cells that a spreadsheet would read as a formula are prefixed with an apostrophe. Results are kept for some time after the job ends: 30 days, unless the operator has set another number.
     *
     * `GET /v1/members/jobs/{jobId}/results` (getJobResults)
     */
    exportResults(jobId: MemberJobId, query?: {
      actions?: MemberJobResultAction[] | undefined
      outcomes?: MemberJobResultOutcome[] | undefined
      /** To get the next page, the `step` of the last result of this page. Cannot be combined with `skip`. */
      after?: number | undefined
    }, options?: CallOptions): Call<Response>
  }
  memberSessions: {
    /**
     * Create a member session.
     *
     * Creates a token for the page of one member, valid for up to 15 minutes. It ends earlier if the API key is revoked or the member is offboarded. A member has at most 10 sessions; another one ends the oldest.
     *
     * Errors: MemberNotFoundError.
     *
     * `POST /v1/member-sessions` (createMemberSession)
     */
    create(body: NewMemberSession, options?: CallOptions): Call<MemberSession>
  }
  payRuns: {
    /**
     * Get the metadata of a pay run.
     *
     * `GET /v1/pay/runs/{payRunId}/metadata` (getPayRunMetadata)
     */
    getMetadata(payRunId: PayRunId, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Set the metadata of a pay run.
     *
     * Replaces it as a whole: a key that is left out is removed. Idempotent.
     *
     * `PUT /v1/pay/runs/{payRunId}/metadata` (setPayRunMetadata)
     */
    setMetadata(payRunId: PayRunId, body: ObjectMetadata, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Upload a pay run.
     *
     * Makes pay available to members in the open pay cycle, once the partner’s grace period is over. Either all lines are accepted or none. Send an idempotency key, so that a retry does not pay twice.
     *
     * Errors: MemberNotEligibleError, UnprocessableEntityError.
     *
     * `POST /v1/pay/run` (uploadPayRun)
     */
    create(body: NewPayRun, options?: CallOptions): Call<PayRunCreated>
    /**
     * List pay runs.
     *
     * Newest first. If `after` or `before` is unknown, the response is `NotFound`.
     *
     * `GET /v1/pay/runs` (getPayRuns)
     */
    list(query?: {
      statuses?: PayRunStatus[] | undefined
      payCycleId?: PayCycleId | undefined
      /** Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`. */
      metadata?: Metadata | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`. */
      after?: PayRunId | undefined
      /** The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`. */
      before?: PayRunId | undefined
    }, options?: CallOptions): List<PayRuns, PayRun>
    /**
     * Get a pay run.
     *
     * `GET /v1/pay/runs/{payRunId}` (getPayRun)
     */
    get(payRunId: PayRunId, options?: CallOptions): Call<PayRunDetails>
    /**
     * Revert a pay run.
     *
     * A `Scheduled` pay run is reverted without moving money. For an `Available` one, the reverse of every line is booked; whatever members have already withdrawn is owed and deducted from their next pay. Possible until the pay cycle closes. Idempotent: reverting it again returns the same response.
     *
     * `POST /v1/pay/runs/{payRunId}/revert` (revertPayRun)
     */
    revert(payRunId: PayRunId, options?: CallOptions): Call<PayRun>
  }
  payCycles: {
    /**
     * List pay cycles.
     *
     * Newest first.
     *
     * `GET /v1/pay/cycles` (getPayCycles)
     */
    list(query?: {
      statuses?: PayCycleStatus[] | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: PayCycleId | undefined
    }, options?: CallOptions): List<PayCycles, PayCycle>
    /**
     * Get a pay cycle.
     *
     * `GET /v1/pay/cycles/{payCycleId}` (getPayCycle)
     */
    get(payCycleId: PayCycleId, options?: CallOptions): Call<PayCycle>
    /**
     * List the deductions of a pay cycle.
     *
     * Lists what payroll has to deduct from each member’s pay: withdrawals, the fees that members pay, and amounts carried over from an earlier cycle. Members without a deduction are left out. Ordered by member; a member whose currency has changed may have two deductions. Without `skip`, a page never splits a member, so it may have a few entries more than `take`. Provisional while the cycle is open, and final from `pay_cycle.closed` on. In between, which takes a moment or, for a million members, a minute or two, the answer is a `Conflict` with `retry-after`. With `accept: text/csv` the response is the whole list as a file, and `skip` and `take` are ignored.
     *
     * `GET /v1/pay/cycles/{payCycleId}/deductions` (getPayCycleDeductions)
     */
    listDeductions(payCycleId: PayCycleId, query?: {
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The `memberId` of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: MemberId | undefined
    }, options?: CallOptions): List<Deductions, Deduction>
    /**
     * List the deductions of a pay cycle.
     *
     * Lists what payroll has to deduct from each member’s pay: withdrawals, the fees that members pay, and amounts carried over from an earlier cycle. Members without a deduction are left out. Ordered by member; a member whose currency has changed may have two deductions. Without `skip`, a page never splits a member, so it may have a few entries more than `take`. Provisional while the cycle is open, and final from `pay_cycle.closed` on. In between, which takes a moment or, for a million members, a minute or two, the answer is a `Conflict` with `retry-after`. With `accept: text/csv` the response is the whole list as a file, and `skip` and `take` are ignored.
     *
     * `GET /v1/pay/cycles/{payCycleId}/deductions` (getPayCycleDeductions)
     */
    exportDeductions(payCycleId: PayCycleId, query?: {
      /** The `memberId` of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: MemberId | undefined
    }, options?: CallOptions): Call<Response>
    /**
     * Settle a pay cycle.
     *
     * Reports what payroll actually took, once per closed cycle. A shortfall is carried to the open cycle or written off, depending on the partner’s setting; an excess is given back in the open cycle. Either all lines are accepted or none; every error names its row or path.
     *
     * Errors: FileContentError, UnprocessableEntityError.
     *
     * `POST /v1/pay/cycles/{payCycleId}/settlement` (createSettlement)
     */
    settle(payCycleId: PayCycleId, body: NewSettlement | FileSource, options?: CallOptions): Call<SettlementSummary>
    /**
     * Get the settlement of a pay cycle.
     *
     * Lines are ordered by member. Without `skip`, a page never splits a member, so it may have a few entries more than `take`.
     *
     * `GET /v1/pay/cycles/{payCycleId}/settlement` (getSettlement)
     */
    listSettlementLines(payCycleId: PayCycleId, query?: {
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The `memberId` of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: MemberId | undefined
    }, options?: CallOptions): List<Settlement, SettlementLine>
  }
  events: {
    /**
     * Read the event feed.
     *
     * Returns the state changes of the last 30 days, oldest first. To continue, pass the `lastEventId` of the previous response as `after`; no event is ever skipped, even with concurrent requests. `from=now` returns no events, only the `lastEventId` to continue from. The events of one resource are in the order of their `sequence`. If `after` is unknown or older than 30 days, the response is `NotFound`: events may have been missed, so start again without `after`.
     *
     * `GET /v1/events` (getEvents)
     */
    list(query?: {
      /** The last event that you have processed: the `lastEventId` of the previous response. */
      after?: EventId | undefined
      /** Starts at the end of the feed: returns no events, only the `lastEventId` to pass as `after` next. Cannot be combined with `after`. */
      from?: 'now' | undefined
      /** Only events of these types. */
      types?: EventType[] | undefined
      /** Only events of this withdrawal, intent, member, pay run, pay cycle, job or webhook. */
      resourceId?: string | undefined
      /** Maximum number of events to return, 1 to 1,000. */
      take?: number | undefined
    }, options?: CallOptions): List<Events, Event>
  }
  overview: {
    /**
     * Get an overview.
     *
     * Available and withdrawn money, payouts in flight, the float, and pending decisions. Days are days in your time zone. A sum beyond 9007199254740991 is shown as that number.
     *
     * `GET /v1/overview` (getOverview)
     */
    get(options?: CallOptions): Call<Overview>
    /**
     * Get withdrawals over time.
     *
     * By day, for up to 366 days (by default the last 30), or by pay cycle, for the last cycles.
     *
     * `GET /v1/overview/series` (getOverviewSeries)
     */
    getSeries(query?: {
      /** The default is the currency of your first tier. */
      currency?: Currency | undefined
      by?: 'day' | 'cycle' | undefined
      /** First day. Only with `by=day`. */
      from?: string | undefined
      /** Last day. Only with `by=day`. */
      to?: string | undefined
      /** How many pay cycles, including the open one. Only with `by=cycle`. */
      cycles?: number | undefined
    }, options?: CallOptions): Call<OverviewSeries>
  }
  requests: {
    /**
     * List your requests.
     *
     * Your requests of the last 7 days and their outcomes, newest first, without bodies and queries; the operator may keep them for a shorter or longer time. All requests are logged, except that only the first 100 requests a second that are refused with 429 are. An entry appears within about a second, and may be missing after a crash or while the database is overloaded. On a busy account, narrow a search by `method` or `route` with `fromDate`. If `after` or `before` is unknown, the response is `NotFound`.
     *
     * `GET /v1/requests` (getRequests)
     */
    list(query?: {
      /** Only requests with this status, or this class of status: `4xx`. */
      status?: string | undefined
      /** Only requests that were refused with this code. */
      errorCode?: 'HeaderValidation' | 'RateLimitExceeded' | 'Forbidden' | 'NotFound' | 'BadRequest' | 'PathValidation' | 'QueryValidation' | 'BodyValidation' | 'Conflict' | 'MemberNotFound' | 'UnprocessableEntity' | 'MemberNotEligible' | 'BankAccountInvalid' | 'AmountBelowLowerLimit' | 'AmountAboveUpperLimit' | 'MemberInsufficientFunds' | 'MemberAlreadyInvited' | 'InvalidAddMemberPayload' | 'InvalidUpdateMemberPayload' | 'InvalidRemoveMemberPayload' | 'FileContent' | 'InternalServerError' | undefined
      method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | undefined
      /** Only requests of this path, as in this document. */
      route?: string | undefined
      /** Only requests that were made with this API key, or by this user of the console. */
      keyId?: CallerId | undefined
      /** Only requests with this `x-request-id` in their response. */
      requestId?: string | undefined
      /** Only requests with this idempotency key. */
      idempotencyKey?: string | undefined
      /** Only requests about this resource; see `resourceId` in the response. */
      resourceId?: string | undefined
      /** Arrived at or after this instant. A date without a time means midnight UTC. */
      fromDate?: DayOrInstant | undefined
      /** Arrived before this instant. A date without a time means midnight UTC. */
      toDate?: DayOrInstant | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page, of older entries. Not together with `skip` or `before`. */
      after?: RequestId | undefined
      /** The id of the first entry of this page, to get the previous page, of newer entries. Not together with `skip` or `after`. */
      before?: RequestId | undefined
    }, options?: CallOptions): List<LoggedRequests, LoggedRequest>
    /**
     * Count the errors of your requests.
     *
     * Counts by code and hour or day (UTC), oldest first, for as long as the requests are kept.
     *
     * `GET /v1/request-errors` (getRequestErrors)
     */
    countErrors(query?: { by?: 'hour' | 'day' | undefined; fromDate?: DayOrInstant | undefined }, options?: CallOptions): Call<RequestErrors>
    /**
     * Get a request.
     *
     * One of your requests in the log, by the `id` that Midmonth assigned. To find a request by your own `x-request-id`, use the filter `requestId` of the list.
     *
     * `GET /v1/requests/{requestId}` (getRequest)
     */
    get(requestId: RequestId, options?: CallOptions): Call<LoggedRequest>
  }
  webhooks: {
    /**
     * Get the metadata of a webhook endpoint.
     *
     * `GET /v1/webhooks/{webhookId}/metadata` (getWebhookMetadata)
     */
    getMetadata(webhookId: WebhookId, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Set the metadata of a webhook endpoint.
     *
     * Replaces it as a whole: a key that is left out is removed. Idempotent.
     *
     * `PUT /v1/webhooks/{webhookId}/metadata` (setWebhookMetadata)
     */
    setMetadata(webhookId: WebhookId, body: ObjectMetadata, options?: CallOptions): Call<ObjectMetadata>
    /**
     * Create a webhook endpoint.
     *
     * Events that happen from now on are sent to it, signed with its secret. At most 16 endpoints per partner.
     *
     * `POST /v1/webhooks` (createWebhook)
     */
    create(body: NewWebhook, options?: CallOptions): Call<WebhookWithSecret>
    /**
     * List webhook endpoints.
     *
     * Newest first.
     *
     * `GET /v1/webhooks` (getWebhooks)
     */
    list(query?: {
      /** Only entries that have each of these keys with exactly this value: `metadata[site]=Leeds`. */
      metadata?: Metadata | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: WebhookId | undefined
    }, options?: CallOptions): List<Webhooks, Webhook>
    /**
     * Get a webhook endpoint.
     *
     * `GET /v1/webhooks/{webhookId}` (getWebhook)
     */
    get(webhookId: WebhookId, options?: CallOptions): Call<Webhook>
    /**
     * Change a webhook endpoint.
     *
     * Absent fields are unchanged; `types` and `headers` are replaced as a whole. Send `enabled: true` to enable an endpoint that was disabled because it failed.
     *
     * `PATCH /v1/webhooks/{webhookId}` (updateWebhook)
     */
    update(webhookId: WebhookId, body: WebhookChanges, options?: CallOptions): Call<Webhook>
    /**
     * Delete a webhook endpoint.
     *
     * Also deletes the deliveries of the endpoint. Requests in flight are not cut off.
     *
     * `DELETE /v1/webhooks/{webhookId}` (deleteWebhook)
     */
    delete(webhookId: WebhookId, options?: CallOptions): Call<WebhookDeleted>
    /**
     * Rotate the secret of a webhook endpoint.
     *
     * Creates a new secret. The previous one stays valid for 24 hours, or as long as `overlapSeconds` says; until then, requests carry a signature of each.
     *
     * `POST /v1/webhooks/{webhookId}/rotate` (rotateWebhookSecret)
     */
    rotateSecret(webhookId: WebhookId, body?: WebhookRotation, options?: CallOptions): Call<RotatedWebhook>
    /**
     * Send a test to a webhook endpoint.
     *
     * Sends a made-up event of a type that you choose, with the header `midmonth-test: true`. The test is attempted once, even if the endpoint is disabled. Read the delivery at `location` to see the response.
     *
     * `POST /v1/webhooks/{webhookId}/test` (testWebhook)
     */
    test(webhookId: WebhookId, body: WebhookTest, options?: CallOptions): Call<WebhookDelivery>
    /**
     * Replay events to a webhook endpoint.
     *
     * Delivers events of the last 30 days again: one event, the events of a time range, or the events whose delivery has failed or was skipped. Each event is attempted once, with the current secret, even if the endpoint is disabled; the health of the endpoint does not change. Receivers see the same `webhook-id` as before.
     *
     * `POST /v1/webhooks/{webhookId}/replay` (replayWebhook)
     */
    replay(webhookId: WebhookId, body: ReplayOfEvent | ReplayOfRange | ReplayOfFailed, options?: CallOptions): Call<ReplayRequested>
    /**
     * List the deliveries of a webhook endpoint.
     *
     * Lists the deliveries of the last 30 days, newest event first.
     *
     * `GET /v1/webhooks/{webhookId}/deliveries` (getWebhookDeliveries)
     */
    listDeliveries(webhookId: WebhookId, query?: {
      states?: WebhookDeliveryState[] | undefined
      types?: EventType[] | undefined
      /** The deliveries of this event. */
      eventId?: EventId | undefined
      /** Number of entries to skip. */
      skip?: number | undefined
      /** Maximum number of entries to return, 1 to 1,000. */
      take?: number | undefined
      /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
      after?: EventId | undefined
    }, options?: CallOptions): List<WebhookDeliveries, WebhookDelivery>
    /**
     * Get a delivery with its attempts.
     *
     * `GET /v1/webhooks/{webhookId}/deliveries/{deliveryId}` (getWebhookDelivery)
     */
    getDelivery(webhookId: WebhookId, deliveryId: EventId, options?: CallOptions): Call<WebhookDeliveryDetails>
  }
  service: {
    /**
     * Is the process alive?.
     *
     * `GET /livez` (getLiveness)
     */
    getLiveness(options?: CallOptions): Call<ServiceStatus>
    /**
     * Can the process serve requests?.
     *
     * Checks the database and its migrations. If the response is 503, send requests elsewhere and try again later. If no worker has been alive for a minute, the response is 200 with a warning, because the API can still serve requests.
     *
     * `GET /readyz` (getReadiness)
     */
    getReadiness(options?: CallOptions): Call<Readiness>
    /**
     * List all error codes.
     *
     * A machine-readable table of all error codes. Needs no API key.
     *
     * `GET /v1/errors` (getErrors)
     */
    getErrors(options?: CallOptions): Call<ErrorRow[]>
  }
  idempotencyKeys: {
    /**
     * Look up an idempotency key.
     *
     * Returns the outcome of the request that was sent with this key. Never includes the body of its answer. `Conflict` if the member whom the request was about was erased: it had succeeded, and is not run again.
     *
     * `GET /v1/idempotency-keys/{key}` (getIdempotencyKey)
     */
    get(key: string, options?: CallOptions): Call<IdempotencyKey>
  }
  sandbox: {
    clock: {
      /**
       * Get the sandbox clock.
       *
       * The time by which everything of this partner happens, and the last move of the clock.
       *
       * `GET /v1/sandbox/clock` (getSandboxClock)
       */
      get(options?: CallOptions): Call<SandboxClock>
      /**
       * Move the sandbox clock.
       *
       * Moves the partner’s clock forward: `to` an instant, `by` a time, or to what falls due `next`; at most 400 days ahead of real time. The clock stops at each instant at which something falls due, the work is done as in production, and the response lists it. Expiry of intents, grace periods, pay cycles, holds, the bank, reviews, idempotency keys and API keys follow the clock; rate limits, time-outs and logs do not. A move that takes longer than 20 seconds is answered with 202 and continues. While the clock is moving, another move is a `Conflict`.
       *
       * `POST /v1/sandbox/clock` (moveSandboxClock)
       */
      move(body: {
        to?: GivenInstant | undefined
        by?: string | undefined
        /** Moves the clock to the next time that this falls due. */
        next?: 'pay_run_available' | 'intent_expiry' | 'withdrawal_submission' | 'cycle_close' | 'bank_report' | undefined
      }, options?: CallOptions): Call<SandboxClock>
    }
    withdrawals: {
      /**
       * Submit a withdrawal.
       *
       * Ends the hold: the withdrawal is submitted, and the bank reports nothing about it until it is instructed to pay, fail or return it.
       *
       * `POST /v1/sandbox/withdrawals/{withdrawalId}/submit` (submitSandboxWithdrawal)
       */
      submit(withdrawalId: WithdrawalId, body?: SandboxBankInstruction, options?: CallOptions): Call<SandboxWithdrawal>
      /**
       * Pay a withdrawal.
       *
       * The bank reports the withdrawal as paid; the withdrawal is submitted first.
       *
       * `POST /v1/sandbox/withdrawals/{withdrawalId}/pay` (paySandboxWithdrawal)
       */
      pay(withdrawalId: WithdrawalId, body?: SandboxBankInstruction, options?: CallOptions): Call<SandboxWithdrawal>
      /**
       * Fail a withdrawal.
       *
       * The bank refuses the withdrawal, and the member gets the money back; the withdrawal is submitted first.
       *
       * `POST /v1/sandbox/withdrawals/{withdrawalId}/fail` (failSandboxWithdrawal)
       */
      fail(withdrawalId: WithdrawalId, body?: SandboxBankInstruction, options?: CallOptions): Call<SandboxWithdrawal>
      /**
       * Return a withdrawal.
       *
       * The bank sends the withdrawal back, and the member gets the money back; the withdrawal is submitted and paid first.
       *
       * `POST /v1/sandbox/withdrawals/{withdrawalId}/return` (returnSandboxWithdrawal)
       */
      return(withdrawalId: WithdrawalId, body?: SandboxBankInstruction, options?: CallOptions): Call<SandboxWithdrawal>
      /**
       * Keep the bank silent about a withdrawal.
       *
       * The bank accepts the payment when its hold ends, and reports nothing about it until instructed.
       *
       * `POST /v1/sandbox/withdrawals/{withdrawalId}/hold` (holdSandboxWithdrawal)
       */
      hold(withdrawalId: WithdrawalId, body?: SandboxBankInstruction, options?: CallOptions): Call<SandboxWithdrawal>
    }
    bank: {
      /**
       * Queue a bank fault.
       *
       * The next `count` payments of this partner (1 unless given) meet a fault at the simulated bank, after the faults that are already queued. A payment with an instruction keeps the instruction.
       *
       * `POST /v1/sandbox/bank/faults` (addSandboxBankFault)
       */
      addFault(body: {
        /** What happens to the next payments. `timeout`: paid, but the call is not answered. `error`: the call fails and the payment is lost. `duplicate`: the report comes twice. `late`: the report comes after 3 minutes. `contradiction`: reported as paid, and after a minute as failed. `unknown_reference`: paid, with a second report about a payment that was never made. */
        next: SandboxBankFault
        /** Number of payments. */
        count?: number | undefined
      }, options?: CallOptions): Call<SandboxBankFaults>
    }
    bankFiles: {
      /**
       * List your bank files.
       *
       * The batches of payments that hold only withdrawals of this partner, newest first. Each batch is sent to the bank in one file. The list is empty unless the operator has configured a rail with files.
       *
       * `GET /v1/sandbox/bank-files` (getSandboxBankFiles)
       */
      list(query?: {
        /** Number of entries to skip. */
        skip?: number | undefined
        /** Maximum number of entries to return, 1 to 1,000. */
        take?: number | undefined
        /** The id of the last entry of this page, to get the next page. Not together with `skip`. */
        after?: PayoutBatchId | undefined
      }, options?: CallOptions): List<SandboxBankFiles, SandboxBankFile>
      /**
       * Write the answer of a bank to a file.
       *
       * Returns the file in which the bank answers a sent batch. Nothing changes until the operator imports the file with `midmonth payouts import`, or puts it into the inbox of the rail. The same request returns the same bytes. A batch that holds a payment of another partner is `NotFound`, and a batch that is not sent yet is a `Conflict`; a kind of file that the rail does not read, and a batch of more than 10,000 payments, are `UnprocessableEntity`.
       *
       * Errors: UnprocessableEntityError.
       *
       * `POST /v1/sandbox/bank-files/{batchId}/answers` (answerSandboxBankFile)
       */
      answer(batchId: PayoutBatchId, body: {
        /** The kind of file. The rail must read it. */
        format: 'pain.002' | 'camt.054' | 'arucs-csv'
        /** The bank’s answer about the whole batch, only in `pain.002`. */
        batch?: {
          outcome: 'accepted' | 'pending' | 'rejected'
          /** Where the file says so: `GrpSts` (the default) or `PmtInfSts`. */
          level?: 'group' | 'payment-information' | undefined
          /** Why the batch was rejected; by default, the bank gives no code. */
          reasonCode?: string | undefined
          /** The reason in words. */
          reasonText?: string | undefined
        } | undefined
        /** The outcomes, each payment at most once. The bank is silent about payments without an outcome. Required unless `batch` is given. */
        outcomes?: {
          /** A payment of the batch, by the `paymentReference` of its withdrawal. Without it, the outcome applies to all payments that are not named. */
          paymentReference?: string | undefined
          /** The bank’s answer. `pain.002`: `accepted`, `pending`, `paid` or `failed`. `camt.054`: `paid` or `returned`. `arucs-csv`: `returned`. */
          outcome: 'accepted' | 'pending' | 'paid' | 'failed' | 'returned'
          /** Why the payment failed or was returned, one character for `arucs-csv`; by default `AC04`, `BE01` (`camt.054`) or `B` (`arucs-csv`). See docs/reference/bank-files.md. */
          reasonCode?: string | undefined
          /** The reason in words. */
          reasonText?: string | undefined
        }[] | undefined
      }, options?: CallOptions): Call<Response>
    }
    members: {
      /**
       * Give a member pay.
       *
       * Uploads a pay run with one line for the member, which is available immediately.
       *
       * Errors: MemberNotEligibleError, MemberNotFoundError, UnprocessableEntityError.
       *
       * `POST /v1/sandbox/members/{memberId}/fund` (fundSandboxMember)
       */
      fund(memberId: MemberId, body: {
        amount: {
          /** In minor units. */
          amount: number
          /** ISO 4217 code. */
          currency: Currency
        }
      }, options?: CallOptions): Call<SandboxMemberFunded>
      /**
       * Activate a member.
       *
       * Activates an invited member, as if the member had accepted. Idempotent.
       *
       * Errors: MemberNotFoundError.
       *
       * `POST /v1/sandbox/members/{memberId}/activate` (activateSandboxMember)
       */
      activate(memberId: MemberId, options?: CallOptions): Call<SandboxMemberActivated>
    }
    memberJobs: {
      /**
       * Take a member job through a transition.
       *
       * Takes a member job from one status to another, with a member created for the purpose: actions, or a file of all members as they are except for that one. Jobs that are queued or wait for a review are rejected first; while a job is being applied, the response is a `Conflict`. `new > AwaitingReview`: A file that offboards more members than the caller agreed to waits for a review. `new > Processing`: A batch of actions is accepted. `new > NotReady`: Actions are queued behind a file that waits for a review. `AwaitingReview > Processing`: A file is approved. `AwaitingReview > Rejected`: A file is rejected. `NotReady > Processing`: The job ahead of queued actions ends. `NotReady > AwaitingReview`: The job ahead of a queued file ends. `NotReady > Rejected`: Queued actions are rejected. `Processing > Completed`: Actions are applied. `Processing > Rejected`: Actions become invalid before they are applied.
       *
       * Errors: UnprocessableEntityError.
       *
       * `POST /v1/sandbox/members/jobs` (provokeSandboxJob)
       */
      provoke(body: {
        /** `new`: it did not exist before. */
        from: 'new' | 'NotReady' | 'AwaitingReview' | 'Processing'
        to: 'NotReady' | 'AwaitingReview' | 'Processing' | 'Completed' | 'Rejected'
      }, options?: CallOptions): Call<SandboxMemberJob>
    }
    /**
     * Fund the float.
     *
     * Adds money to the partner’s float in one of its currencies, as the operator does after a transfer.
     *
     * Errors: UnprocessableEntityError.
     *
     * `POST /v1/sandbox/float` (fundSandboxFloat)
     */
    fundFloat(body: {
      amount: {
        /** In minor units. */
        amount: number
        /** ISO 4217 code. */
        currency: Currency
      }
    }, options?: CallOptions): Call<SandboxFloat>
    /**
     * Pause withdrawals.
     *
     * Intents and completions are refused with `UnprocessableEntity`, and balances say so. Idempotent.
     *
     * `POST /v1/sandbox/pause` (pauseSandbox)
     */
    pause(options?: CallOptions): Call<SandboxPaused>
    /**
     * Resume withdrawals.
     *
     * Ends a pause. Idempotent.
     *
     * `POST /v1/sandbox/resume` (resumeSandbox)
     */
    resume(options?: CallOptions): Call<SandboxPaused>
    /**
     * Seed the sandbox.
     *
     * Resets the sandbox, which is a `Conflict` while its clock is moving, and fills it with a scenario. `fresh`: Tiers, a funded float and an open pay cycle; no members. `mid_cycle`: 25 members with pay and withdrawals in the open pay cycle. `after_payroll`: The previous pay cycle is closed and settled; its members have pay in the open one. `returned_payments`: Like `mid_cycle`, with withdrawals that failed, were returned, or have no answer from the bank. `ten_thousand_members`: 10,000 members with pay, and no withdrawals.
     *
     * Errors: UnprocessableEntityError.
     *
     * `POST /v1/sandbox/seed` (seedSandbox)
     */
    seed(body: { scenario: SandboxScenario }, options?: CallOptions): Call<SandboxSeeded>
    /**
     * Reset the sandbox.
     *
     * Deletes everything of this partner: members, pay, withdrawals, the books, events, and responses to idempotency keys. Settings, tiers, API keys, webhook endpoints, the audit log and the request log stay. The clock shows real time again, and a pay cycle is open. The sequence of events continues, so a reader of the feed starts again with `from=now`. While the clock is moving, a reset is a `Conflict`.
     *
     * `POST /v1/sandbox/reset` (resetSandbox)
     */
    reset(options?: CallOptions): Call<SandboxClock>
    /**
     * Get test values.
     *
     * Returns the complete request that provokes each error code and each transition of a state. Each request can be sent once, unchanged, with your key: this call creates the members, intents and withdrawals that it needs. Send a text body unchanged and any other body as JSON. Also lists bank accounts by the reaction of the simulated bank.
     *
     * Errors: UnprocessableEntityError.
     *
     * `GET /v1/sandbox/test-values` (getSandboxTestValues)
     */
    getTestValues(options?: CallOptions): Call<SandboxTestValues>
  }
}

import type { Money } from '@openwage/sdk'
import { send } from './api.ts'

/** What the operator's API answers, as far as pages show it. The whole is in openapi-admin.json. */
export type PartnerState = 'open' | 'paused' | 'suspended'
export type PartnerSummary = { id: string; name: string; state: PartnerState; createdAt: string }
type Stop = { since: string | null; by: string | null; reason: string | null } | null
export type FloatOf = {
  currency: Money['currency']
  float: Money
  pending: Money
  free: Money
  floor: Money | null
  lowSince: string | null
}
export type PartnerOfOperator = PartnerSummary & {
  paused: Stop
  suspended: Stop
  settings: Record<string, string | number | boolean | null>
  openCycle: { id: string; startDate: string; endDate: string } | null
  floats: FloatOf[]
  keys: { valid: number; expired: number; revoked: number }
  members: { active: number; invited: number; inactive: number }
}
export type OperatorTier = {
  name: string
  currency: Money['currency']
  members: { active: number; invited: number }
  version: number
  since: string
} & TierTerms
export type TierTerms = {
  feeFixed: Money
  feeBps: number
  feeMin: Money | null
  feeMax: Money | null
  feePayer: 'member' | 'employer'
  lowerLimit: Money
  upperLimit: Money
  withdrawalsPerDay: number | null
  withdrawalsPerCycle: number | null
  payoutSpeed: 'standard' | 'instant' | null
}
export type TierPreview = {
  hasChanged: boolean
  openIntents: number
  gain: { members: number; total: Money }
  lose: { members: number; total: Money }
  unchanged: number
  most: { memberId: `mem_${string}`; before: Money; after: Money }[]
  isComplete: boolean
}
export type Batch = {
  id: string
  messageId: string
  rail: string
  debtor: string
  valueDate: string
  isInstant: boolean
  cutOffAt: string
  status: 'building' | 'approved' | 'sent' | 'acknowledged' | 'settled' | 'rejected' | 'cancelled'
  needsApproval: boolean
  held: boolean
  paymentCount: number
  total: Money
  fileName: string | null
  fileSha256: string | null
  nameCheck: string | null
  closedAt: string | null
  approvedAt: string | null
  approvedAutomatically: boolean
  sentAt: string | null
  acknowledgedAt: string | null
  endedAt: string | null
}
export type BatchDetails = Batch & {
  approvals: { person: string; at: string }[]
  approvalsNeeded: number
  hold: Hold | null
}
export type Hold = { since: string | null; by: string | null; reason: string | null }
export type BatchPayment = {
  reference: string
  partnerId: string
  withdrawalId: string
  amount: Money
  outcome: string | null
  reason: string | null
  removedAt: string | null
}
export type Exception = {
  id: string
  rail: string
  kind: string
  reference: string | null
  batchId: string | null
  partnerId: string | null
  withdrawalId: string | null
  outcome: string | null
  amount: Money | null
  reasonCode: string | null
  reason: string
  fileName: string | null
  line: number | null
  openedAt: string
  closedAt: string | null
  closedBy: string | null
  decision: string | null
  note: string | null
}

export type AccountDay = {
  rail: string
  account: string
  debtors: string[]
  day: string
  bank: Money
  book: Money
  difference: Money
}
export type Rail = {
  name: string
  isConfigured: boolean
  currency: string | null
  kind: 'files' | 'api' | null
  isByHand: boolean
  hold: Hold | null
}
export type Payout = {
  reference: string
  rail: string
  createdAt: string
  outcome: string | null
  removedAt: string | null
  batch: Batch | null
  answers: {
    at: string
    by: 'bank' | 'operator' | 'openwage'
    isAboutBatch: boolean
    outcome: string | null
    reason: string | null
    bookedOn: string | null
    fileName: string | null
    line: number | null
  }[]
  exceptions: Exception[]
}

export async function admin<T>(method: string, path: string, body?: unknown): Promise<T> {
  return await send<T>(method, `/admin/v1/${path}`, body === undefined ? {} : { body })
}

/** A list of the operator's API, page by page: onward by `after`, or by `skip` where that is what the list takes. */
export function adminList<Page, Row>(
  path: string,
  query: URLSearchParams,
  rowsOf: (page: Page) => Row[],
  idOf?: (row: Row) => string,
): { pages(): AsyncGenerator<Page, void, undefined>; [Symbol.asyncIterator](): AsyncGenerator<Row, void, undefined> } {
  async function* pages(): AsyncGenerator<Page, void, undefined> {
    const position = new URLSearchParams(query)
    let skip = 0
    for (;;) {
      const page = await admin<Page>('GET', `${path}?${position}`)
      yield page
      const rows = rowsOf(page)
      const last = rows.at(-1)
      if (last === undefined || (page as { hasMore?: boolean }).hasMore === false) return
      skip += rows.length
      if (idOf === undefined) position.set('skip', String(skip))
      else position.set('after', idOf(last))
    }
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* rowsOf(page)
    },
  }
}
export type Status = {
  state: string
  attention: string[]
  at: string
  database: { postgres: string; schema: string }
  mode: string
  bank: string | null
  rails: { name: string; currency: string }[]
  workers: { id: string; host: string; processId: number; startedAt: string; lastSeenAt: string; isAlive: boolean }[]
  queue: { due: number; oldestDueAt: string | null; givenUp: { task: string; count: number }[] }
  batchesToApprove: number
  openExceptions: number
}
export type Finding = { check: string; level: string; sentence: string; command: string | null }
export type Verification = {
  id: string
  state: string
  requestedBy: string
  requestedAt: string
  startedAt: string | null
  endedAt: string | null
  checksDone: number
  checksTotal: number
  problem: string | null
}
export type AuditEntry = {
  id: string
  at: string
  partnerId: string | null
  actorKind: string
  actor: string
  action: string
  resourceKind: string
  resourceId: string
  details: Record<string, unknown>
  address: string | null
  requestId: string | null
}
export type ApiKey = {
  id: string
  hint: string
  state: string
  scopes: string[]
  createdAt: string
  expiresAt: string | null
  revokedAt: string | null
  lastUsedAt: string | null
}

/** Sends a file as it is. */
export async function sendFile<T>(path: string, file: Blob): Promise<T> {
  return await send<T>('POST', `/admin/v1/${path}`, { body: file })
}

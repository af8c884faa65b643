/** What the request log keeps of one request. Nothing in it is personal: no query, no body, and of a path only words and ids. */
export type RequestRecord = {
  partnerId: string
  /** The API key, or the user of the console. */
  keyId: string
  /** The `x-request-id` of the answer: the caller's, or one of ours. */
  requestId: string
  isOwnRequestId: boolean
  receivedAt: Date
  method: string
  /** As in openapi.json; null if no operation has the path. */
  route: string | null
  path: string
  status: number
  durationMs: number
  idempotencyKey: string | null
  isReplayed: boolean
  errorCodes: string[]
  resourceId: string | null
}

/** Takes one record. Must neither throw nor wait. */
export type RecordRequest = (record: RequestRecord) => void

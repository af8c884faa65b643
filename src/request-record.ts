/** One request, as the request log keeps it. Holds no personal data: no query, no body, and only the words and ids of the path. */
export type RequestRecord = {
  partnerId: string
  /** The API key, or the user of the console. */
  keyId: string
  /** The `x-request-id` of the response: the caller's, or one that we generated. */
  requestId: string
  isOwnRequestId: boolean
  receivedAt: Date
  method: string
  /** The path as in openapi.json; null if no operation has it. */
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

import type { Fault } from './faults.ts'

/** A body that arrived as a file, to be read by the operation. */
export abstract class FileBody {
  /** `csv`, `xlsx`, or `bytes` for any other file. */
  abstract readonly kind: string
}

/** A JSON body that is parsed and validated elsewhere, because it is too large for the main thread. */
export abstract class UnparsedJson {
  /**
   * Parses and validates the body. May be called only once.
   * @param options.fingerprintStart precedes the body in the fingerprint of the request; undefined if no fingerprint is needed
   * @throws Problem `BadRequest` if it is not JSON
   */
  abstract read(
    schema: object,
    options: { signal: AbortSignal; fingerprintStart: string | undefined },
  ): Promise<{ value: unknown; faults: Fault[]; fingerprint: Buffer | undefined }>
}

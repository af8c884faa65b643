import { UnparsedJson } from '../../contract/bodies.ts'
import type { Fault } from '../../contract/faults.ts'
import { type Problem, problem } from '../../kernel/errors.ts'
import { ReaderExhausted, ReaderThreads } from '../../reader-threads.ts'
import { TooComplex } from './strict-json.ts'

/** The input of the thread. `schema` is JSON text, the key of the thread's cache of compiled schemas. */
export type JsonTask = { bytes: Uint8Array; schema: string; fingerprintStart: string | undefined }

/** Entries of a list in the body. `field` is a field of the top-level object. */
export type JsonBatch = { field: string; entries: unknown[] }

/**
 * The output of the thread. `refusal` says why the body could not be parsed. Long lists in `value` are empty, because they are
 * sent in batches.
 */
export type JsonRead = {
  refusal: string | undefined
  faults: Fault[]
  value: unknown
  fingerprint: Uint8Array | undefined
}

// The largest body takes two seconds. If both threads are busy, the next body waits, but for less than its request's deadline.
const threads = new ReaderThreads<JsonTask, JsonBatch, JsonRead>(new URL('./json-reader.ts', import.meta.url), {
  threadsMax: 2,
  waitMsMax: 10_000,
  // Pay runs arrive in groups.
  idleMsMax: 60_000,
  silenceMsMax: 20_000,
})

// 32 MiB as bytes and again as text, plus up to 1.5 million values.
const heapMbMax = 512

/**
 * A JSON body that is too large for the main thread, where parsing it would delay every other request. A thread parses and
 * validates it, and returns it in batches.
 */
export class LargeJson extends UnparsedJson {
  private readonly bytes: Uint8Array<ArrayBuffer>

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    super()
    this.bytes = bytes
  }

  /**
   * May be called only once, because the bytes are transferred to the thread.
   * @throws Problem `BadRequest` if the body is not JSON, `ServiceUnavailable` if too many bodies are being read
   */
  override async read(
    schema: object,
    { signal, fingerprintStart }: { signal: AbortSignal; fingerprintStart: string | undefined },
  ): Promise<{ value: unknown; faults: Fault[]; fingerprint: Buffer | undefined }> {
    const lists = new Map<string, unknown[]>()
    const { refusal, value, faults, fingerprint } = await threads
      .read(
        { bytes: this.bytes, schema: textOf(schema), fingerprintStart },
        {
          heapMbMax,
          isKept: true,
          transfer: [this.bytes.buffer],
          signal,
          onBatch({ field, entries }) {
            const list = lists.get(field) ?? []
            lists.set(field, list)
            for (const entry of entries) list.push(entry)
          },
        },
      )
      .catch(error => {
        throw error instanceof ReaderExhausted ? unreadable(new TooComplex().message) : error
      })
    if (refusal !== undefined) throw unreadable(refusal)
    return {
      // There are batches only if the value is an object.
      value: lists.size === 0 ? value : { ...(value as object), ...Object.fromEntries(lists) },
      faults,
      fingerprint: fingerprint === undefined ? undefined : Buffer.from(fingerprint),
    }
  }
}

function unreadable(message: string): Problem {
  return problem('BadRequest', message)
}

const texts = new WeakMap<object, string>()

function textOf(schema: object): string {
  const text = texts.get(schema) ?? JSON.stringify(schema)
  texts.set(schema, text)
  return text
}

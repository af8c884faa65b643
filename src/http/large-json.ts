import { type Problem, problem } from '../errors.ts'
import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import { type Fault, TooIntricate } from './strict-json.ts'

/** What the thread is given. `schema` is JSON, by which the thread knows what it has compiled before. */
export type JsonTask = { bytes: Uint8Array; schema: string; fingerprintStart: string | undefined }

/** Entries of a list of the body, a field of the outermost object. */
export type JsonBatch = { field: string; entries: unknown[] }

/**
 * What the thread found: `refusal` says why the body is no JSON at all. The value's longest lists are empty, since they are handed over in
 * batches.
 */
export type JsonRead = {
  refusal: string | undefined
  faults: Fault[]
  value: unknown
  fingerprint: Uint8Array | undefined
}

// The largest body takes two seconds. Both threads taken, the next one waits, within what its caller waits for an answer.
const threads = new ReaderThreads<JsonTask, JsonBatch, JsonRead>(new URL('./json-reader.ts', import.meta.url), {
  threadsMax: 2,
  waitMsMax: 10_000,
  // Pay runs come in groups.
  idleMsMax: 60_000,
  silenceMsMax: 20_000,
})

// 32 MiB as bytes and as text, and the 1.5 million values that they may hold.
const heapMbMax = 512

/**
 * A JSON body that is too large to be read on the main thread, where each millisecond is everyone's. It is parsed and
 * validated in a thread, and comes back in batches.
 */
export class LargeJson {
  private readonly bytes: Uint8Array<ArrayBuffer>

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.bytes = bytes
  }

  /**
   * Reads it, once.
   * @param fingerprintStart what goes before the body into the fingerprint of the request; undefined when none is wanted
   * @throws Problem `BadRequest` for what is not JSON, `ServiceUnavailable` when too many bodies are being read already
   */
  async read(
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
        throw error instanceof ReaderExhausted ? unreadable(new TooIntricate().message) : error
      })
    if (refusal !== undefined) throw unreadable(refusal)
    return {
      // A list is a field of an object.
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

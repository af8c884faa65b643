import { createHash } from 'node:crypto'
import stringify from 'safe-stable-stringify'
import { faultsMax } from '../../contract/faults.ts'
import { compileFaults } from '../../contract/validation.ts'
import { serveReads } from '../../reader-threads.ts'
import type { JsonBatch, JsonRead, JsonTask } from './large-json.ts'
import { parseStrictJson, refusalOf } from './strict-json.ts'

// A worker thread that parses and validates a large body. A valid body is sent in batches, each of which the main thread
// receives in a few milliseconds.

const batchEntriesMax = 500

serveReads<JsonTask, JsonBatch, JsonRead>(read, { batchesAhead: 2 })

// The key is the schema text. Bounded by the number of operations that accept large bodies.
const compiled = new Map<string, ReturnType<typeof compileFaults>>()

async function read(
  { bytes, schema, fingerprintStart }: JsonTask,
  send: (batch: JsonBatch) => Promise<void>,
): Promise<JsonRead> {
  const found: JsonRead = { refusal: undefined, faults: [], value: undefined, fingerprint: undefined }
  let parsed: ReturnType<typeof parseStrictJson>
  try {
    parsed = parseStrictJson(bytes)
  } catch (error) {
    return { ...found, refusal: refusalOf(error) }
  }
  const findFaults = compiled.get(schema) ?? compileFaults(JSON.parse(schema))
  compiled.set(schema, findFaults)
  const faults = [...parsed.faults, ...findFaults(parsed.value)].slice(0, faultsMax)
  if (faults.length > 0) return { ...found, faults }
  const fingerprint = fingerprintStart === undefined ? undefined : fingerprintOf(fingerprintStart, parsed.value)
  return { ...found, fingerprint, value: await withoutLists(parsed.value, send) }
}

// Must equal the fingerprint of the same JSON in a small body, which is computed from the whole request at once.
function fingerprintOf(start: string, value: unknown): Uint8Array {
  const text = stringify(value) ?? 'null'
  return createHash('sha256').update(start).update(text).update(']').digest()
}

async function withoutLists(value: unknown, send: (batch: JsonBatch) => Promise<void>): Promise<unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const rest: Record<string, unknown> = {}
  for (const [field, inner] of Object.entries(value)) {
    const isLong = Array.isArray(inner) && inner.length > batchEntriesMax
    rest[field] = isLong ? [] : inner
    if (!isLong) continue
    for (let at = 0; at < inner.length; at += batchEntriesMax) {
      await send({ field, entries: inner.slice(at, at + batchEntriesMax) })
    }
  }
  return rest
}

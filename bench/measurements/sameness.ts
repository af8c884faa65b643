import assert from 'node:assert/strict'
import type pg from 'pg'
import type { Dataset } from '../dataset/dataset.ts'
import { withClient } from '../machine/postgres.ts'
import type { Deployment } from './measure.ts'

/** One request of each measured kind, and one that is refused. Requests with an idempotency key are sent twice. */
function requestsTo({ one, firstPending }: Dataset): Request[] {
  const memberId = idOf('mem', one.firstMember)
  const intent = { memberId, amount: { amount: 5_000, currency: 'GBP' } }
  const post = { method: 'POST', path: '/v1/pay/withdrawals/intent' }
  const complete = (number: number) => ({
    method: 'POST',
    path: '/v1/pay/withdrawals/complete',
    body: { withdrawalIntentId: idOf('wi', number) },
  })
  const key = 'bench-sameness'
  return [
    { ...post, body: intent },
    { ...post, body: intent, key: `${key}-intent` },
    { ...post, body: intent, key: `${key}-intent` },
    { ...post, body: { ...intent, amount: { amount: 1, currency: 'GBP' } } },
    complete(firstPending),
    complete(firstPending),
    { ...complete(firstPending + 1), key: `${key}-complete` },
    { ...complete(firstPending + 1), key: `${key}-complete` },
    { method: 'GET', path: `/v1/pay/members/${memberId}/balance` },
  ]
}

type Request = { method: string; path: string; body?: object; key?: string }

/**
 * Sends the same requests to both services, and compares their responses and the rows they write.
 * @throws when they differ: speeds can be compared only for the same work
 */
export async function requireSameness(
  dataset: Dataset,
  [product, typical]: readonly [Deployment, Deployment],
): Promise<void> {
  for (const request of requestsTo(dataset)) {
    const [ours, theirs] = [await effectOf(request, product), await effectOf(request, typical)]
    requireEqual(theirs, ours, `${request.method} ${request.path} of the typical service`)
  }
}

/**
 * Compares the rows that one statement writes with the rows of the product's request of the same kind.
 * @throws when they differ
 */
export async function requireSameRows(
  dataset: Dataset,
  product: Deployment,
  { statement, databaseUrl, execute }: { statement: string; databaseUrl: string; execute: () => Promise<unknown> },
): Promise<void> {
  const [intent] = requestsTo(dataset)
  if (intent === undefined) throw new Error('There is no request to compare with')
  const request = statement === 'intent-key' ? { ...intent, key: 'bench-statement' } : intent
  const { written: ours } = await effectOf(request, product)
  const { written: theirs } = await writtenBy(databaseUrl, execute)
  requireEqual(theirs, ours, `${statement}.sql`)
}

function requireEqual(found: unknown, ofProduct: unknown, what: string): void {
  try {
    assert.deepEqual(found, ofProduct)
  } catch (error) {
    const difference = error instanceof Error ? error.message : error
    throw new Error(`${what} does not do what the product does (+ found, - the product):\n${difference}`)
  }
}

const comparedHeaders = ['content-type', 'cache-control', 'location', 'x-intent-expires-at', 'idempotency-replayed']

/** The response to a request and the rows it wrote, without the values that differ every time. */
async function effectOf({ method, path, body, key }: Request, { service, databaseUrl, employer }: Deployment) {
  const { result: response, written } = await writtenBy(databaseUrl, () =>
    fetch(service.address + path, {
      method,
      headers: {
        'x-api-key': employer.key,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'x-idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  )
  return {
    status: response.status,
    headers: comparedHeaders.map(name => [name, masked(response.headers.get(name))]),
    isNamed: response.headers.has('x-request-id'),
    body: masked(await response.json()),
    written,
  }
}

const tables = [
  'withdrawal_intents',
  'withdrawals',
  'events',
  'idempotency_keys',
  'ledger_transfers',
  'ledger_balances',
  'ledger_deductions',
  'ledger_cycle_changes',
  'ledger_float_changes',
  'members',
]

/** The rows that some work writes, by table, without the values that differ every time. */
async function writtenBy<T>(databaseUrl: string, work: () => Promise<T>) {
  return await withClient(databaseUrl, async client => {
    const { rows } = await client.query<{ before: string }>('select pg_current_xact_id()::text as before')
    const result = await work()
    return { result, written: await rowsSince(client, rows[0]?.before) }
  })
}

async function rowsSince(client: pg.Client, transactionId: string | undefined): Promise<Record<string, unknown>> {
  const written: Record<string, unknown> = {}
  for (const table of tables) {
    const { rows } = await client.query<{ row: Record<string, unknown> }>(
      `select to_jsonb(t) as row from ${table} t where t.xmin::text::bigint > $1::bigint % 4294967296`,
      [transactionId],
    )
    written[table] = rows
      .map(({ row }) => maskedRow(row))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
  }
  return written
}

function maskedRow({ created_at: createdAt, ...row }: Record<string, unknown>): object {
  const createdMs = Date.parse(String(createdAt))
  const columns = Object.entries(row).map(([name, value]) => {
    if (name === 'key') return [name, 'its key']
    // Only the product seals responses.
    if (name === 'answer') return [name, value === null ? null : 'a response']
    if (name === 'fingerprint') return [name, `${String(value).length} characters`]
    // The delay after the row's creation is compared, not the instant.
    if (name.endsWith('_at') && value !== null)
      return [name, `${(Date.parse(String(value)) - createdMs) / 1_000} s later`]
    return [name, masked(value)]
  })
  return Object.fromEntries(columns)
}

/** Masks new ids and instants. Ids of earlier rows stay. */
function masked(value: unknown): unknown {
  if (typeof value === 'string') {
    return value
      .replace(/\b([a-z]+)_(?!0{15})[0-7][0-9a-hjkmnp-tv-z]{25}/g, '$1_…')
      .replace(/\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)/g, 'an instant')
  }
  if (Array.isArray(value)) return value.map(masked)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, masked(inner)]))
}

function idOf(prefix: string, number: number): string {
  return `${prefix}_${String(number).padStart(26, '0')}`
}

import type { Reader } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import type { SealedTable } from '../sealing/rewrap.ts'

// Signing secrets, and the headers that partners choose, which often hold a bearer token, are sealed in the database.

export function sealSecret(db: Reader, { partnerId, secret }: { partnerId: string; secret: string }): Buffer {
  return sealerOf(db).seal(secret, { kind: 'webhook-secret', owner: partnerId })
}

export function openSecret(db: Reader, { partnerId, secret }: { partnerId: string; secret: Buffer }): string {
  return sealerOf(db).open(secret, { kind: 'webhook-secret', owner: partnerId }).toString()
}

export function sealHeaders(
  db: Reader,
  { partnerId, headers }: { partnerId: string; headers: Record<string, string> },
): Buffer {
  return sealerOf(db).seal(JSON.stringify(headers), { kind: 'webhook-headers', owner: partnerId })
}

export function openHeaders(
  db: Reader,
  { partnerId, headers }: { partnerId: string; headers: Buffer },
): Record<string, string> {
  // Written by `sealHeaders` only.
  return JSON.parse(sealerOf(db).open(headers, { kind: 'webhook-headers', owner: partnerId }).toString())
}

/** The tables with these values. */
export const sealedTables: readonly SealedTable[] = [
  {
    table: 'webhook_endpoints',
    key: [
      ['partner_id', 'text'],
      ['id', 'text'],
    ],
    columns: [{ name: 'headers', kind: 'webhook-headers' }],
    owner: 'partner_id',
  },
  {
    table: 'webhook_secrets',
    key: [
      ['partner_id', 'text'],
      ['endpoint_id', 'text'],
      ['secret', 'bytea'],
    ],
    columns: [{ name: 'secret', kind: 'webhook-secret' }],
    owner: 'partner_id',
  },
]

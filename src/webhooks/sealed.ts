import type { Reader } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'

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

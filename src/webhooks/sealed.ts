import type { Sealer } from '../sealing/sealer.ts'

// Signing secrets, and the headers that partners choose, which often hold a bearer token, are sealed in the database.

export function sealSecret(sealer: Sealer, { partnerId, secret }: { partnerId: string; secret: string }): Buffer {
  return sealer.seal(secret, { kind: 'webhook-secret', owner: partnerId })
}

export function openSecret(sealer: Sealer, { partnerId, secret }: { partnerId: string; secret: Buffer }): string {
  return sealer.open(secret, { kind: 'webhook-secret', owner: partnerId }).toString()
}

export function sealHeaders(
  sealer: Sealer,
  { partnerId, headers }: { partnerId: string; headers: Record<string, string> },
): Buffer {
  return sealer.seal(JSON.stringify(headers), { kind: 'webhook-headers', owner: partnerId })
}

export function openHeaders(
  sealer: Sealer,
  { partnerId, headers }: { partnerId: string; headers: Buffer },
): Record<string, string> {
  // Written by `sealHeaders` only.
  return JSON.parse(sealer.open(headers, { kind: 'webhook-headers', owner: partnerId }).toString())
}

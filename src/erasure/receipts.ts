import { createPublicKey, sign } from 'node:crypto'
import type { Sealer } from '../sealing/sealer.ts'

/** The public part of the key that signs receipts, as a JSON Web Key. */
export type PublicKey = { kty: 'OKP'; crv: 'Ed25519'; x: string; kid: string }

export function publicKeyOf({ receiptKey }: Sealer): PublicKey {
  const { x = '' } = createPublicKey(receiptKey).export({ format: 'jwk' })
  return { kty: 'OKP', crv: 'Ed25519', x, kid: x.slice(0, 16) }
}

/** Signs a receipt as a compact JSON Web Signature (RFC 7515, RFC 8037), which any library can check. */
export function signReceipt(sealer: Sealer, claims: Readonly<Record<string, unknown>>): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode({ alg: 'EdDSA', kid: publicKeyOf(sealer).kid })}.${encode(claims)}`
  return `${signed}.${sign(null, Buffer.from(signed), sealer.receiptKey).toString('base64url')}`
}

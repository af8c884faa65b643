import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

const prefix = 'whsec_'
const secretBytes = 32

/** Generates a secret: `whsec_` and the base64 of 256 random bits. */
export function newSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

/** Reads a secret once for many signatures: with the bytes as the key, each would cost five times as much. */
export function keyOf(secret: string): KeyObject {
  return createSecretKey(secret.slice(prefix.length), 'base64')
}

/**
 * Signs one delivery attempt with each of the given keys.
 * @param sentAt whole seconds since 1970, the same value as in the webhook-timestamp header
 * @returns the value of the webhook-signature header
 * Source: Standard Webhooks, "Signature scheme": HMAC-SHA256 over `${id}.${timestamp}.${payload}`
 */
export function sign(keys: KeyObject[], { id, sentAt, body }: { id: string; sentAt: number; body: string }): string {
  const signed = `${id}.${sentAt}.${body}`
  return keys.map(key => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`).join(' ')
}

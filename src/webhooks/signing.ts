import { createHmac, randomBytes } from 'node:crypto'

const prefix = 'whsec_'
const secretBytes = 32

/** Generates a secret: `whsec_` and the base64 of 256 random bits. */
export function newSecret(): string {
  return prefix + randomBytes(secretBytes).toString('base64')
}

/**
 * Signs one delivery attempt with each of the given secrets.
 * @param sentAt whole seconds since 1970, the same value as in the webhook-timestamp header
 * @returns the value of the webhook-signature header
 * Source: Standard Webhooks, "Signature scheme": HMAC-SHA256 over `${id}.${timestamp}.${payload}`
 */
export function sign(secrets: string[], { id, sentAt, body }: { id: string; sentAt: number; body: string }): string {
  const signed = `${id}.${sentAt}.${body}`
  return secrets
    .map(secret => {
      const key = Buffer.from(secret.slice(prefix.length), 'base64')
      return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
    })
    .join(' ')
}

import { WebhookVerificationError } from './errors.ts'
import type { WebhookEvent } from './generated/schemas.ts'
import { randomId, webCrypto } from './web-crypto.ts'

const limits = {
  toleranceMs: 5 * 60_000,
  /** Signatures of one delivery. There are two during a rotation of the secret. */
  signaturesMax: 10,
}

export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>
export type UnwrapOptions = {
  /** The clock to compare the timestamp with. */
  now?: (() => Date) | undefined
  /** The maximum difference between timestamp and clock. Defaults to five minutes. */
  toleranceMs?: number | undefined
}

/**
 * Verifies a delivery and returns its event.
 * @param body the bytes or the text as they arrived; parsed and reserialised JSON has a different signature
 * @throws WebhookVerificationError if the delivery is not from Midmonth or not recent, or if the body or the secret is unusable
 * Source: Standard Webhooks, "Verifying webhook authenticity"
 */
export async function unwrapWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { now = () => new Date(), toleranceMs = limits.toleranceMs }: UnwrapOptions = {},
): Promise<WebhookEvent> {
  requireRaw(body)
  const key = await keyOf(secret)
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature').split(' ').slice(0, limits.signaturesMax)
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is not a number of seconds')
  const offMs = Math.abs(now().getTime() - Number(timestamp) * 1_000)
  if (!(offMs <= toleranceMs)) {
    throw new WebhookVerificationError(`webhook-timestamp is ${Math.round(offMs / 1_000)} seconds from the clock`)
  }
  const { subtle } = await webCrypto()
  const signed = signedBytes(id, timestamp, body)
  for (const signature of signatures) {
    const bytes = signature.startsWith('v1,') ? bytesOf(signature.slice('v1,'.length)) : undefined
    // Web Crypto compares in constant time.
    if (bytes !== undefined && (await subtle.verify('HMAC', key, bytes, signed))) return eventOf(body)
  }
  throw new WebhookVerificationError(
    'webhook-signature does not match; check the secret, and that the body is unchanged',
  )
}

/** Signs a body as Midmonth does, to test your receiver. */
export async function webhookTestHeaders(
  body: string | Uint8Array,
  secret: string,
  { id, sentAt = new Date() }: { id?: string | undefined; sentAt?: Date | undefined } = {},
): Promise<{ 'content-type': string; 'webhook-id': string; 'webhook-timestamp': string; 'webhook-signature': string }> {
  const { subtle } = await webCrypto()
  const webhookId = id ?? `evt_${await randomId()}`
  const timestamp = String(Math.floor(sentAt.getTime() / 1_000))
  const signature = new Uint8Array(
    await subtle.sign('HMAC', await keyOf(secret), signedBytes(webhookId, timestamp, body)),
  )
  return {
    'content-type': 'application/json',
    'webhook-id': webhookId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  }
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const found =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1]
  if (typeof found !== 'string') throw new WebhookVerificationError(`${name} is missing`)
  return found
}

/** Detects the usual mistake: a framework has already parsed the body. */
function requireRaw(body: unknown): void {
  if (typeof body === 'string' || body instanceof Uint8Array) return
  const given =
    body === null || body === undefined ? `${body}` : `a parsed ${Array.isArray(body) ? 'array' : typeof body}`
  throw new WebhookVerificationError(
    `body is ${given}; pass the text or the bytes as they arrived, since parsed JSON has a different signature (in Express, use express.raw)`,
  )
}

async function keyOf(secret: unknown) {
  if (typeof secret !== 'string' || secret === '') {
    throw new WebhookVerificationError(
      'secret is missing; pass the secret that was returned when the endpoint was created',
    )
  }
  if (!secret.startsWith('whsec_')) {
    throw new WebhookVerificationError(
      'secret must begin with whsec_; an API key or an endpoint id is not a webhook secret',
    )
  }
  const bytes = bytesOf(secret.slice('whsec_'.length))
  if (bytes === undefined || bytes.length === 0) {
    throw new WebhookVerificationError('secret must be whsec_ followed by base64; copy the complete secret again')
  }
  const { subtle } = await webCrypto()
  return await subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
}

function signedBytes(id: string, timestamp: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const start = new TextEncoder().encode(`${id}.${timestamp}.`)
  const rest = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const bytes = new Uint8Array(start.length + rest.length)
  bytes.set(start)
  bytes.set(rest, start.length)
  return bytes
}

/** Decodes base64. Returns undefined if the text is not base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0))
  } catch {
    return undefined
  }
}

function eventOf(body: string | Uint8Array): WebhookEvent {
  return JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body))
}

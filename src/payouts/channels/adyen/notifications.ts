import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Logger } from 'pino'
import type { Db } from '../../../database/database.ts'
import type { Clock } from '../../../kernel/time.ts'
import type { NotificationReceiver } from '../notifications.ts'
import { openUnreadable, recordTransfers } from './books.ts'
import { readCredentials, readHmacKeys } from './secrets.ts'
import type { AdyenSettings, NotificationSettings } from './settings.ts'
import { readNotification, toUnreadable, UnexpectedShape } from './transfer.ts'

type ReceiverOptions = { db: Db; now: Clock; log: Logger; settings: AdyenSettings; notifications: NotificationSettings }

/**
 * Receives Adyen's notifications about transfers. Records the change before it answers; the withdrawals follow when the rail's
 * reports are next collected. Accepts and ignores notifications about anything else.
 */
export function adyenNotifications({ db, now, log, settings, notifications }: ReceiverOptions): NotificationReceiver {
  const { name: rail, environment } = settings
  return {
    rail,
    // Allowed by the OpenAPI document of the notifications, and required by older versions.
    answer: { notificationResponse: '[accepted]' },

    async isGenuine(body, headers) {
      const isSigned = isSignedBy(await readHmacKeys(notifications), body, headers)
      const credentials = await readCredentials(notifications)
      return isSigned && (credentials === null || isAuthorised(headers, credentials))
    },

    async receive(body) {
      try {
        const notification = readNotification(JSON.parse(body.toString('utf8')))
        if (notification === null) return 'accepted'
        if (notification.environment !== environment) {
          log.warn({ rail, environment: notification.environment }, 'a notification of another environment was ignored')
          return 'accepted'
        }
        const transfers = [notification.transfer]
        await db.transaction().execute(tx => recordTransfers(tx, { settings, transfers, now: now() }))
        return 'accepted'
      } catch (error) {
        if (!(error instanceof UnexpectedShape || error instanceof SyntaxError)) throw error
        const why = error instanceof UnexpectedShape ? error.message : 'It is not JSON'
        const unreadable = toUnreadable({ why, content: body, transfer: transferIn(body) })
        log.error({ rail, why, sha256: unreadable.sha256 }, 'a signed notification cannot be read')
        const all = [unreadable]
        await db.transaction().execute(tx => openUnreadable(tx, { rail, what: 'notification', all, now: now() }))
        return 'malformed'
      }
    },
  }
}

/** The transfer in a notification of any shape; undefined if it has none. */
function transferIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))?.data
  } catch {
    return undefined
  }
}

/**
 * Whether one of the keys signed the body. Compares in constant time.
 * Source: Adyen, "Verify HMAC signatures": HMAC-SHA256 over the raw body, in the header HmacSignature as base64
 */
function isSignedBy(keys: readonly Buffer[], body: Buffer, headers: IncomingHttpHeaders): boolean {
  const { hmacsignature: given, protocol = 'HmacSHA256' } = headers
  if (typeof given !== 'string' || protocol !== 'HmacSHA256') return false
  const signature = Buffer.from(given, 'base64')
  const matches = keys.map(key => {
    const expected = createHmac('sha256', key).update(body).digest()
    return expected.length === signature.length && timingSafeEqual(expected, signature)
  })
  return matches.includes(true)
}

function isAuthorised(
  { authorization = '' }: IncomingHttpHeaders,
  { username, password }: { username: string; password: string },
): boolean {
  const expected = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  // Digests have a fixed length, which hides the length of the password.
  return timingSafeEqual(digest(authorization), digest(expected))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

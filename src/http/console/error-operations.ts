import { Type } from 'typebox'
import { problem } from '../../kernel/errors.ts'
import { strictObject } from '../../kernel/schemas.ts'
import { consoleOperation } from '../operation.ts'
import { RateLimiter } from '../server/rate-limit.ts'

// A page sends at most ten reports. Enough for a few broken pages of one user, but not for a page that keeps reloading.
const errorsPerSession = { perSecond: 1 / 60, burst: 30 }
const errorLimiter = new RateLimiter()

// Enough to tell errors apart.
const ConsoleError = strictObject({
  message: Type.String({ maxLength: 2_000 }),
  stack: Type.String({ maxLength: 2_000 }),
  page: Type.String({ maxLength: 200 }),
})

/** Logs an error of a page. */
export const reportConsoleError = consoleOperation({
  route: 'POST /console/v1/errors',
  console: 'user',
  body: ConsoleError,
  async read(_, { body: { message, stack, page }, signedIn: { session }, browser, receivedAt, context: { log } }) {
    if (!errorLimiter.take(session.id, errorsPerSession, receivedAt).allowed)
      throw problem('RateLimitExceeded', 'Too many page errors; the first ones are in the log')
    log.warn({ message, stack, page, requestId: browser.id }, 'a page of the console failed')
    return { body: { message: 'OK' } }
  },
})

import { timingSafeEqual } from 'node:crypto'
import { problem } from '../../kernel/errors.ts'
import { hashOf } from '../../kernel/secrets.ts'
import { within } from '../../kernel/within.ts'
import { metricsMediaType } from '../../metrics/process-metrics.ts'
import type { ApiContext, App } from './server.ts'

const limits = {
  // Scrapers of several servers, and of people who look, share one read of the database.
  sharedMs: 5_000,
  // A scraper waits for ten seconds.
  readMsMax: 5_000,
}

/** `GET /metrics` for Prometheus. Not an operation, since it does not respond with JSON. */
export function metricsRoute(app: App, { metrics, log }: Pick<ApiContext, 'metrics' | 'log'>): void {
  if (metrics === undefined) return
  const read = shared(metrics.readInstallation)
  app.get('/metrics', { config: { isNeverShed: true } }, async (request, reply) => {
    requireToken(request.headers.authorization, metrics.token)
    const installation = await read().catch(error => {
      log.warn({ err: error }, 'the metrics of the installation could not be read')
      return undefined
    })
    return reply
      .type(metricsMediaType)
      .header('cache-control', 'no-store')
      .send([await metrics.process.exposed({ isDatabaseUp: installation !== undefined }), installation ?? ''].join(''))
  })
}

function requireToken(authorization: string | undefined, token: string): void {
  if (token === '' || timingSafeEqual(hashOf(authorization ?? ''), hashOf(`Bearer ${token}`))) return
  throw problem(
    'ApiKeyRefused',
    'The authorization header must be "Bearer" and the token in MIDMONTH_METRICS_TOKEN',
    { path: 'authorization' },
    { 'www-authenticate': 'Bearer' },
  )
}

/** Shares one read among those who ask within some seconds. */
function shared(read: () => Promise<string>): () => Promise<string> {
  let latest: { at: number; text: Promise<string> } | undefined
  return () => {
    const at = performance.now()
    if (latest !== undefined && at - latest.at < limits.sharedMs) return latest.text
    const text = within(limits.readMsMax, read(), () => new Error('no reply of the database in time'))
    latest = { at, text }
    return text
  }
}

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pino, { type Logger } from 'pino'
import { buildApp } from '../../src/app.ts'
import { adyenRail } from '../../src/payouts/rails/adyen/adyen-rail.ts'
import { adyenNotifications } from '../../src/payouts/rails/adyen/notifications.ts'
import type { AdyenRail } from '../../src/payouts/rails/adyen/settings.ts'
import { toAdyenSettings } from '../../src/payouts/rails/adyen/settings.ts'
import { startHarness } from '../harness.ts'
import { startAdyen } from './service.ts'

/** A rail of Adyen's API, the service that it pays through, and our API that the service notifies, all over real HTTP. */
export async function setUpAdyen({
  hasNotifications = true,
  currency = 'EUR',
  log = pino({ level: 'silent' }),
  ...changes
}: { hasNotifications?: boolean; log?: Logger } & Partial<AdyenRail> = {}) {
  const harness = await startHarness({ bankOf: paid => (paid === currency ? 'connected' : 'simulated') })
  const { db, batchDb, withCopying, clock } = harness
  const service = await startAdyen({ now: clock.now })
  const folder = await mkdtemp(path.join(tmpdir(), 'openwage-adyen-'))
  const secret = async (name: string, text: string) => {
    const file = path.join(folder, name)
    await writeFile(file, text, { mode: 0o600 })
    return file
  }
  const apiKeyFile = await secret('api-key', `${service.apiKey}\n`)
  const hmacKeyFile = await secret('hmac-key', `${service.hmacKey}\n`)
  const given: AdyenRail = {
    ...{ name: 'adyen', type: 'adyen', currency, apiKeyFile },
    balanceAccountId: service.balanceAccountId,
    baseUrl: service.url,
    ...(hasNotifications ? { notifications: { hmacKeyFiles: [hmacKeyFile] } } : {}),
    ...changes,
  }
  const settings = toAdyenSettings(given, 'sandbox')
  const { notifications } = settings
  const rail = adyenRail({ db, now: clock.now, settings })
  const app = await buildApp(
    { db, batchDb, withCopying, log, now: clock.now, mode: 'sandbox', bankOf: () => 'connected' },
    {
      notifications:
        notifications === null ? [] : [adyenNotifications({ db, now: clock.now, log, settings, notifications })],
    },
  )
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  if (notifications !== null) service.notifyAt(`${address}/rails/adyen/notifications`)
  return {
    harness,
    service,
    rail,
    settings,
    secret,
    /** Where our API listens. */
    address,
    async stop() {
      await app.close()
      await service.stop()
      await harness.stop()
      await rm(folder, { recursive: true })
    },
  }
}

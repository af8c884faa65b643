import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pino, { type Logger } from 'pino'
import { buildApp } from '../../src/app.ts'
import { adyenChannel } from '../../src/payouts/channels/adyen/channel.ts'
import { toRail } from '../../src/payouts/channels/adyen/configure.ts'
import type { AdyenRail } from '../../src/payouts/channels/adyen/settings.ts'
import { toAdyenSettings } from '../../src/payouts/channels/adyen/settings.ts'
import { startHarness } from '../harness/harness.ts'
import { type AdyenService, startAdyen } from './service.ts'

/** An Adyen rail, a stand-in for the Transfers API, and our API, which receives its notifications, all over real HTTP. */
export async function setUpAdyen({
  hasNotifications = true,
  currency = 'EUR',
  log = pino({ level: 'silent' }),
  requestMsMax = 10_000,
  furtherHmacKeys = [],
  password,
  ...changes
}: {
  hasNotifications?: boolean
  log?: Logger
  requestMsMax?: number
  furtherHmacKeys?: string[]
  /** The basic-authentication header of the user `adyen`. */
  password?: string
} & Partial<AdyenRail> = {}) {
  const harness = await startHarness({ bankOf: paid => (paid === currency ? 'connected' : 'simulated') })
  const { db, batchDb, withCopying, clock, sealer } = harness
  const service = await startAdyen({ now: clock.now })
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-adyen-'))
  const secret = async (name: string, text: string) => {
    const file = path.join(folder, name)
    await writeFile(file, text, { mode: 0o600 })
    return file
  }
  const apiKeyFile = await secret('api-key', `${service.apiKey}\n`)
  const hmacKeys = [service.hmacKey, ...furtherHmacKeys]
  const hmacKeyFiles = await Promise.all(hmacKeys.map((key, index) => secret(`hmac-key-${index}`, `${key}\n`)))
  const basicAuth =
    password === undefined ? {} : { basicAuth: { username: 'adyen', passwordFile: await secret('password', password) } }
  const given: AdyenRail = {
    ...{ name: 'adyen', type: 'adyen', currency, apiKeyFile },
    balanceAccountId: service.balanceAccountId,
    baseUrl: service.url,
    approval: { automatic: { paymentMax: 10_000_00, batchMax: 100_000_00, dayMax: 1_000_000_00 } },
    ...(hasNotifications ? { notifications: { hmacKeyFiles, ...basicAuth } } : {}),
    ...changes,
  }
  const settings = toAdyenSettings(given, 'sandbox')
  const { notifications } = settings
  const rail = adyenChannel({ db, now: clock.now, settings, requestMsMax })
  const app = await buildApp(
    { db, batchDb, withCopying, sealer, log, now: clock.now, mode: 'sandbox', bankOf: () => 'connected' },
    { rails: [toRail(settings)] },
  )
  const address = await app.listen({ host: '127.0.0.1', port: 0 })
  if (notifications !== null) service.notifyAt(`${address}/rails/adyen/notifications`)
  return {
    harness,
    service,
    rail,
    settings,
    /** The address of our API. */
    address,
    async stop() {
      await app.close()
      await service.stop()
      await harness.stop()
      await rm(folder, { recursive: true })
      await validate(service)
    },
  }
}

/** Validates all exchanged messages, for `npm run adyen`. @throws with the first faults */
async function validate({ exchanges, notifications }: AdyenService): Promise<void> {
  const { ADYEN_DOCUMENTS: folder, ADYEN_COUNTS: counts } = process.env
  if (folder === undefined || counts === undefined) return
  const { readDocuments } = await import('./documents.ts')
  const documents = readDocuments(folder)
  const answered = exchanges.filter(({ status, isOdd }) => status !== null && !isOdd)
  const created = answered.find(({ status }) => status === 202)
  const [told] = notifications
  if (created !== undefined && told !== undefined) documents.refusesOddValues(created, told.body)
  const faults = [
    ...exchanges.flatMap(each =>
      documents.faultsOfRequest(each).map(fault => ({ fault, of: each.body ?? each.query })),
    ),
    ...answered.flatMap(each => documents.faultsOfAnswer(each).map(fault => ({ fault, of: each.answer }))),
    ...notifications.flatMap(({ body }) => documents.faultsOfNotification(body).map(fault => ({ fault, of: body }))),
  ]
  if (faults.length > 0) throw new Error(`Invalid messages: ${JSON.stringify(faults.slice(0, 3)).slice(0, 2_000)}`)
  await appendFile(counts, `${exchanges.length} ${answered.length} ${notifications.length}\n`)
}

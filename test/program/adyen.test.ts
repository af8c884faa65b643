import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { startAdyen } from '../adyen/service.ts'
import { midmonth, newDatabase, serve, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-adyen-'))
afterAll(async () => {
  await tidyUp()
  rmSync(folder, { recursive: true })
})

function fileWith(name: string, text: string): string {
  const file = path.join(folder, name)
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

test('a configured program pays a withdrawal through Adyen, and status and doctor show the rail', async () => {
  const service = await startAdyen()
  const rail = {
    ...{ name: 'adyen', type: 'adyen', currency: 'EUR', baseUrl: service.url },
    balanceAccountId: service.balanceAccountId,
    apiKeyFile: fileWith('api-key', service.apiKey),
    approval: { automatic: { paymentMax: 10_000, batchMax: 10_000, dayMax: 10_000 } },
    notifications: { hmacKeyFiles: [fileWith('hmac-key', service.hmacKey)] },
  }
  const MIDMONTH_RAILS = fileWith('rails.json', JSON.stringify({ rails: [rail] }))
  const settings = { ...(await newDatabase()), MIDMONTH_RAILS }
  const { address, stop } = await serve(settings)
  service.notifyAt(`${address}/rails/adyen/notifications`)
  const json = async (...args: string[]) => JSON.parse((await midmonth([...args, '--json'], settings)).stdout)
  const terms = ['--auto-activate', '--grace-minutes', '0', '--hold-seconds', '0']
  const partner = await json('partner', 'create', 'Acme', ...terms)
  const limits = ['--currency', 'EUR', '--fee', '0', '--lower-limit', '1', '--upper-limit', '10000']
  await midmonth(['tier', 'set', partner.id, 'Silver', ...limits], settings)
  await midmonth(['float', 'fund', partner.id, 'EUR', '100000', '--reference', 'opening'], settings)
  const { stdout } = await midmonth(['key', 'create', partner.id, '--json'], settings)
  const { secret: key } = JSON.parse(stdout)
  const api = async (route: string, body?: unknown) => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    return await fetch(`${address}${route}`, { headers, ...sent })
  }
  const member = {
    ...{ email: 'mia@example.com', firstName: 'Mia', lastName: 'Schulz', tier: 'Silver' },
    accountDetails: { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' },
  }
  const { memberId } = (await (await api('/v1/members', member)).json()) as { memberId: string }
  await api('/v1/pay/run', { payDetails: [{ memberId, money: { amount: 5_000, currency: 'EUR' } }] })
  const asked = { memberId, amount: { amount: 5_000, currency: 'EUR' } }
  const withdrawalIntentId = await vi.waitFor(
    async () => {
      const intent = (await (await api('/v1/pay/withdrawals/intent', asked)).json()) as { withdrawalIntentId: string }
      expect(intent.withdrawalIntentId).toMatch(/^wi_/)
      return intent.withdrawalIntentId
    },
    { timeout: 15_000 },
  )
  const completed = await api('/v1/pay/withdrawals/complete', { withdrawalIntentId })
  const location = completed.headers.get('location') ?? ''
  // Runs the worker's next round now.
  const runNow = (task: string) => tamper(settings, `select graphile_worker.add_job('${task}')`)
  await runNow('submit-withdrawals')
  await vi.waitFor(() => expect(service.transfers()).toHaveLength(1), { timeout: 45_000, interval: 100 })
  await service.settle()
  expect(service.notifications.map(({ status }) => status)).toEqual([200, 200])
  await runNow('read-rail-reports')
  await vi.waitFor(async () => expect(await (await api(location)).json()).toMatchObject({ status: 'paid' }), {
    timeout: 45_000,
    interval: 100,
  })

  expect((await json('status')).rails).toEqual([{ name: 'adyen', currency: 'EUR' }])
  const said = async () =>
    (await json('doctor')).findings
      .filter(({ check }: { check: string }) => check === 'rails' || check === 'bank API')
      .map(({ level, sentence }: Record<string, string>) => `${level}: ${sentence}`)
  expect(await said()).toContain('ok: EUR by adyen (Adyen Transfers, with notifications)')
  rmSync(rail.apiKeyFile)
  expect(await said()).toContain(`missing: The rail adyen cannot pay: ${rail.apiKeyFile} cannot be read`)
  await stop()
  await service.stop()
})

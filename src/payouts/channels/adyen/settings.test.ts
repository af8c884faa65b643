import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { banksOf, readRails } from '../../../rails.ts'
import { refusalOf, transferInfo } from './request.ts'
import { type AdyenRail, faultsOf, toAdyenSettings } from './settings.ts'

const given: AdyenRail = {
  ...{ name: 'adyen', type: 'adyen', currency: 'EUR' },
  balanceAccountId: 'BA00000000000000000000001',
  apiKeyFile: '/etc/midmonth/key',
}

test('each mode has its service, and refuses that of the other', () => {
  const test = 'https://balanceplatform-api-test.adyen.com/btl/v4'
  const live = 'https://balanceplatform-api-live.adyen.com/btl/v4'
  expect(toAdyenSettings(given, 'sandbox')).toMatchObject({ baseUrl: test, environment: 'test' })
  expect(toAdyenSettings(given, 'live')).toMatchObject({ baseUrl: live, environment: 'live' })
  expect(faultsOf({ ...given, baseUrl: live }, 'sandbox')[0]).toMatch('not the service for a sandbox')
  expect(faultsOf({ ...given, baseUrl: test }, 'live')[0]).toMatch('not the service for a live')
})

test.each([
  ['https://example.com/btl/v4/', 'live', true],
  ['http://127.0.0.1:9999/btl/v4', 'live', false],
  ['http://example.com', 'live', false],
  ['http://example.com', 'sandbox', false],
  ['http://127.0.0.1.example.com', 'sandbox', false],
  ['http://10.0.0.1', 'sandbox', false],
  ['http://127.0.0.1:9999', 'sandbox', true],
  ['http://localhost:9999', 'sandbox', true],
  ['http://[::1]:9999', 'sandbox', true],
  ['https://example.com', 'sandbox', true],
] as const)('the address %s on a %s installation is accepted: %s', (baseUrl, mode, isAccepted) => {
  const rail = { ...given, baseUrl }
  if (!isAccepted) return expect(faultsOf(rail, mode)[0]).toMatch('baseUrl must be https')
  expect(faultsOf(rail, mode)).toEqual([])
  expect(toAdyenSettings(rail, mode).baseUrl).toBe(baseUrl.replace(/\/$/, ''))
})

test('priorities begin with the fastest that the currency has', () => {
  expect(toAdyenSettings(given, 'live').priorities).toEqual(['instant', 'regular'])
  expect(toAdyenSettings({ ...given, currency: 'GBP' }, 'live').priorities).toEqual(['fast', 'regular'])
  expect(faultsOf({ ...given, currency: 'GBP', priorities: ['instant'] }, 'live')[0]).toMatch('use fast')
})

test('pounds go to a sort code and an account number, with a reference that fits, at the speed of the tier', () => {
  const settings = toAdyenSettings({ ...given, currency: 'GBP' }, 'live')
  const account = { accountHolder: 'Seán Ó Briain', sortCode: '089999', accountNumber: '66374958' }
  const netAmount = { amount: 1_234n, currency: 'GBP' } as const
  const reference = 'MMK7Q2MZ4TB5XJ3A'
  expect(transferInfo(settings, { reference, netAmount, account })).toEqual({
    amount: { value: 1_234, currency: 'GBP' },
    balanceAccountId: given.balanceAccountId,
    category: 'bank',
    counterparty: {
      bankAccount: {
        accountHolder: { type: 'individual', fullName: 'Sean O Briain' },
        accountIdentification: { type: 'ukLocal', sortCode: '089999', accountNumber: '66374958' },
      },
    },
    priorities: ['fast', 'regular'],
    reference,
    description: reference,
  })
  const slow = transferInfo(settings, { reference, netAmount, account, speed: 'standard' })
  expect(slow.priorities).toEqual(['regular'])
  const iban = { accountHolder: 'Mia', iban: 'DE89370400440532013000' }
  expect(refusalOf(settings, { account: iban, netAmount })).toMatch('sort code')
  expect(refusalOf(settings, { account, netAmount: { ...netAmount, amount: 100_000_001n } })).toMatch('limit')
})

test('the file of rails holds it beside rails of files, and never a secret', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-adyen-'))
  const read = async (...rails: object[]) => {
    const MIDMONTH_RAILS = path.join(folder, 'rails.json')
    writeFileSync(MIDMONTH_RAILS, JSON.stringify({ rails }))
    return await readRails({ MIDMONTH_RAILS, MIDMONTH_MODE: 'live' })
  }
  const sepa = {
    ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', cutOff: '15:00', timeZone: 'Europe/Berlin' },
    debtors: { default: { name: 'Acme GmbH', iban: 'DE75512108001245126199' } },
  }
  const pounds = { ...given, currency: 'GBP' }
  try {
    const rails = await read(pounds, sepa)
    expect(rails.map(({ name, files }) => [name, files !== null])).toEqual([
      ['sepa', true],
      ['adyen', false],
    ])
    const bankOf = banksOf({ MIDMONTH_MODE: 'live' }, rails)
    expect([bankOf('EUR'), bankOf('GBP'), bankOf('USD')]).toEqual(['connected', 'connected', null])
    await expect(read(sepa, given)).rejects.toThrow('two rails have the currency EUR')
    await expect(read({ ...given, apiKey: 'AQE' })).rejects.toThrow('must NOT have additional properties')
    await expect(read({ ...given, baseUrl: 'https://user:password@example.com' })).rejects.toThrow('baseUrl must match')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

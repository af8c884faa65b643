import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { countrySpecs } from 'ibantools'
import { expect, test } from 'vitest'
import { readRails } from '../../read-rails.ts'
import { countriesPaid } from './countries.ts'

test('the list has the countries of another list of SEPA, and those that joined since', () => {
  const known = Object.entries(countrySpecs).flatMap(([country, { SEPA }]) => (SEPA === true ? [country] : []))
  expect(known.length).toBeGreaterThan(30)
  const joined = ['AL', 'MD', 'ME', 'MK', 'RS']
  expect([...countriesPaid()].sort()).toEqual([...new Set([...known, ...joined])].sort())
})

test('a rail adds countries to the list and removes some', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-countries-'))
  const file = path.join(folder, 'rails.json')
  const refusalOf = async (iban: string, countries?: object) => {
    const rail = {
      ...{ name: 'sepa', type: 'sepa-file', currency: 'EUR', cutOff: '15:00', timeZone: 'Europe/Berlin' },
      ...{ debtors: { default: { name: 'Acme', iban: 'DE89370400440532013000' } }, countries },
    }
    writeFileSync(file, JSON.stringify({ rails: [rail] }))
    return (await readRails(file, 'live'))[0]?.accountRefusal({ accountHolder: 'Ada', iban })
  }
  const [ukrainian, serbian] = ['UA213223130000026007233566001', 'RS35260005601001611379']
  try {
    expect(await refusalOf(ukrainian)).toBe('SEPA payments do not reach accounts in UA')
    expect(await refusalOf(serbian)).toBeUndefined()
    expect(await refusalOf(ukrainian, { add: ['UA'] })).toBeUndefined()
    expect(await refusalOf(serbian, { remove: ['RS'] })).toBe('SEPA payments do not reach accounts in RS')
    await expect(refusalOf(serbian, { add: ['Serbia'] })).rejects.toThrow('/rails/0/countries/add/0 must match pattern')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

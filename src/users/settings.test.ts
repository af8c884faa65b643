import { expect, test } from 'vitest'
import { readSettings } from '../config.ts'
import { readConsoleSettings } from './settings.ts'

const issuer = { MIDMONTH_OIDC_ISSUER: 'https://login.example.com/staff', MIDMONTH_OIDC_CLIENT_ID: 'midmonth' }
const read = (environment: Record<string, string>) => readConsoleSettings(readSettings(environment))

test('without settings people sign in with a password', () => {
  expect(read({})).toEqual({ oidc: null })
})

test('the groups of the provider are read as operators and as roles with partners', () => {
  const MIDMONTH_OIDC_ROLES = '{"ops":["operator"],"cn=acme,dc=example":["payroll@par_1","support@par_2"]}'
  expect(read({ ...issuer, MIDMONTH_OIDC_ROLES }).oidc?.rolesOfGroups).toEqual(
    new Map<string, unknown>([
      ['ops', ['operator']],
      [
        'cn=acme,dc=example',
        [
          { role: 'payroll', partnerId: 'par_1' },
          { role: 'support', partnerId: 'par_2' },
        ],
      ],
    ]),
  )
})

test.each([
  '[]',
  'ops=operator',
  '{"ops":"operator"}',
  '{"ops":["root"]}',
  '{"ops":["admin"]}',
  '{"ops":["owner@par_1"]}',
])('%s is refused as groups', MIDMONTH_OIDC_ROLES => {
  expect(() => read({ ...issuer, MIDMONTH_OIDC_ROLES })).toThrow(/^MIDMONTH_OIDC_ROLES must be a JSON object/)
})

test('in live mode the provider must be reached over https', () => {
  const plain = { ...issuer, MIDMONTH_OIDC_ISSUER: 'http://login.example.com' }
  expect(read(plain).oidc?.issuer).toBe('http://login.example.com')
  expect(() => read({ ...plain, MIDMONTH_MODE: 'live' })).toThrow(/must begin with https/)
  expect(() => read({ MIDMONTH_OIDC_ISSUER: 'https://login.example.com' })).toThrow(/requires MIDMONTH_OIDC_CLIENT_ID/)
})

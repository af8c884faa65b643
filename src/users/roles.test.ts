import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { access, accessOfPartners } from './roles.ts'

type Paths = Record<string, Record<string, { operationId: string; security?: object[] }>>

test('in the operators’ API, users of a partner may call only operations whose path names the partner', () => {
  const { paths }: { paths: Paths } = JSON.parse(
    readFileSync(new URL('../../openapi-operator.json', import.meta.url), 'utf8'),
  )
  const ofPartner = Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith('/operator/v1/partners/{partnerId}/')
      ? Object.values(methods).map(({ operationId }) => operationId)
      : [],
  )
  expect(ofPartner).toEqual(expect.arrayContaining(Object.keys(accessOfPartners)))
})

const ofTheConsole = [
  // They read a file and keep nothing; a partner's server sends the rows itself.
  ...['checkPayRunFile', 'checkSettlementFile', 'readSheetRows'],
  // They serve pages about people, which no partner's server shows.
  ...['getAuthors', 'getMemberSupport', 'getPayRunSummaries', 'reinstateMember'],
]

test('the table of roles names every operation that needs a role: those with an API key, and those of the console', () => {
  const { paths }: { paths: Paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  const withKey = Object.values(paths).flatMap(methods =>
    Object.values(methods).flatMap(({ operationId, security }) => (security === undefined ? [operationId] : [])),
  )
  expect(withKey.length).toBeGreaterThan(50)
  expect(Object.keys(access).sort()).toEqual([...withKey, ...ofTheConsole].sort())
})

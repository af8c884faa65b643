import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { operations } from '../operations.ts'
import { sandboxOperations } from '../sandbox/operations.ts'
import { accessOfPartners } from './roles.ts'

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

test('every operation with an API key says which users of a partner may call it', () => {
  const withKey = [...operations, ...sandboxOperations].filter(({ scope }) => scope !== undefined)
  expect(withKey.length).toBeGreaterThan(50)
  expect(withKey.filter(({ roles }) => roles === undefined).map(({ id }) => id)).toEqual([])
})

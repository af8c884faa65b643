import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { access } from './roles.ts'

test('the table of roles names every operation of the partner API that needs an API key, and no other', () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string; security?: object[] }>>
  }
  const withKey = Object.values(paths).flatMap(methods =>
    Object.values(methods).flatMap(({ operationId, security }) => (security === undefined ? [operationId] : [])),
  )
  expect(withKey.length).toBeGreaterThan(50)
  expect(Object.keys(access).sort()).toEqual(withKey.sort())
})

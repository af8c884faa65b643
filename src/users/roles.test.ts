import { expect, test } from 'vitest'
import { operations } from '../operations.ts'
import { sandboxOperations } from '../sandbox/operations.ts'

test('in the operators’ API, users of a partner may call only operations whose path names the partner', () => {
  const ofPartners = operations.filter(({ partnerRoles }) => partnerRoles !== undefined)
  expect(ofPartners.length).toBeGreaterThan(3)
  expect(ofPartners.filter(({ path }) => !path.startsWith('/operator/v1/partners/:partnerId/'))).toEqual([])
})

test('every operation with an API key says which users of a partner may call it', () => {
  const withKey = [...operations, ...sandboxOperations].filter(({ scope }) => scope !== undefined)
  expect(withKey.length).toBeGreaterThan(50)
  expect(withKey.filter(({ roles }) => roles === undefined).map(({ id }) => id)).toEqual([])
})

import fc from 'fast-check'
import { TypeID } from 'typeid-js'
import { expect, test } from 'vitest'
import { firstId, firstIdSince, newId } from './ids.ts'

const instants = fc.date({ min: new Date(1), max: new Date('9999-12-31'), noInvalidDate: true })

test('an id is a TypeID whose UUIDv7 contains the instant', () => {
  fc.assert(
    fc.property(instants, now => {
      const id = newId('withdrawalIntent', now)
      const uuid = TypeID.fromString(id, 'wi').toUUID()
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16)).toBe(now.getTime())
    }),
  )
})

test('ids of the same millisecond are unique and sort in order of creation', () => {
  const now = new Date('2026-03-10T09:00:00.000Z')
  const ids = Array.from({ length: 10_000 }, () => newId('transfer', now))
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids.toSorted()).toEqual(ids)
})

test('ids of a later millisecond sort after every id of an earlier one', () => {
  fc.assert(
    fc.property(instants, now => {
      const first = firstId('event', now)
      expect(newId('event', now) >= first).toBe(true)
      expect(newId('event', new Date(now.getTime() - 1)) < first).toBe(true)
    }),
  )
})

test('the bound since a resource is an hour before it, whatever its kind, and exists for any text', () => {
  const [now, hourAgo] = [new Date('2026-03-10T09:00:00.000Z'), new Date('2026-03-10T08:00:00.000Z')]
  expect(firstIdSince('transfer', newId('withdrawal', now))).toBe(firstId('transfer', hourAgo))
  for (const odd of ['', 'w_', 'w_1', `w_${'z'.repeat(30)}`, 'w_ö'])
    expect(firstIdSince('transfer', odd)).toMatch(/^tr_/)
})

test('before the first instant that an id can hold, the lower bound is below every id', () => {
  const earliest = newId('event', new Date(0))
  expect(firstId('event', new Date('0001-01-01T00:00:00.000Z')) < earliest).toBe(true)
})

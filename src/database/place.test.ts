import { expect, test } from 'vitest'
import { restoreBetween } from './place.ts'

const before = { systemIdentifier: '7', databaseOid: 5n, tableOid: 9n, timeline: '00000009' }

test('a failover and a restart are not restores', () => {
  expect(restoreBetween(before, { ...before, wasStandby: false })).toBe(undefined)
  expect(restoreBetween(before, { ...before, timeline: '0000000A', wasStandby: true })).toBe(undefined)
})

test('a restore is recognised, also if a failover followed it', () => {
  const archive =
    'The server was recovered from an archive of its WAL, or restarted after a failover (then resume with --without-statements)'
  for (const [change, how] of [
    [{ systemIdentifier: '8' }, 'The database is on another server than before'],
    [{ databaseOid: 6n }, 'The database was created anew on its server'],
    [{ tableOid: 10n }, 'The tables of the database were created anew'],
    [{ timeline: '0000000A', wasStandby: false }, archive],
    [{ timeline: '0000000B' }, archive],
    [{ timeline: '00000008' }, archive],
  ] as const)
    expect(restoreBetween(before, { ...before, wasStandby: true, ...change })).toBe(how)
})

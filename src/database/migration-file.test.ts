import { expect, test } from 'vitest'
import { listMigrations, parseMigration, readMigration, statementsOf } from './migration-file.ts'
import { readReleases } from './releases.ts'

const parse = (...steps: string[]) =>
  parseMigration('0002_more', `-- Why.\n-- compatible-with: 0001\n\n${steps.join('\n')}`)

test('a migration is split into its steps', () => {
  const { compatibleWith, steps } = parse(
    '-- step: expand\nselect 1;\n-- A comment.\nselect 2;',
    '-- step: expand, back-fill of events by partner_id, id\nupdate events set type = type where CHUNK;',
    '-- step: contract, concurrently, each partition of events\ndrop index concurrently if exists index_PARTITION;',
  )
  expect(compatibleWith).toBe('0001')
  expect(steps).toMatchObject([
    { number: 1, phase: 'expand', way: { kind: 'at-once' }, sql: 'select 1;\n-- A comment.\nselect 2;' },
    { number: 2, phase: 'expand', way: { kind: 'back-fill', table: 'events', key: ['partner_id', 'id'] } },
    { number: 3, phase: 'contract', way: { kind: 'concurrently' }, partitionsOf: 'events' },
  ])
})

test('a step is split into its statements, at semicolons outside comments and quoted texts', () => {
  const statements = [
    "-- One; or two?\nselect 'a;b', 'it''s;', \"c;d\" /* e;\n f; */",
    'create function f() returns text language sql as $$ select 1; select $x$;$x$; $$',
    "do $body$ begin perform '$$;'; end $body$",
  ]
  expect(statementsOf(`${statements.join(';\n')};\n-- The end; really.\n`)).toEqual(statements)
})

test('the oldest compatible version has a separate line', () => {
  expect(parseMigration('0002_more', '-- Adds a table, compatible-with: 0012\nselect;').compatibleWith).toBeUndefined()
})

test.each([
  ['this is not a step', ['-- step: shrink\nselect;']],
  ['a step without a statement', ['-- step: expand\n-- Nothing.']],
  [
    'only one statement that locks out no reads or writes can run concurrently',
    ['-- step: expand, concurrently\nvacuum full events;'],
  ],
  [
    'only one statement that locks out no reads or writes can run concurrently',
    ['-- step: expand, concurrently\nanalyze events; drop table events;'],
  ],
  [
    'a back-fill without CHUNK in its condition',
    ['-- step: expand, back-fill of events by id\nupdate events set type = type;'],
  ],
  ['no name ends with _PARTITION', ['-- step: expand, each partition of events\nselect;']],
  ['the steps that expand the schema come first', ['-- step: contract\nselect;', '-- step: expand\nselect;']],
])('%s is refused', (reason, steps) => {
  expect(() => parse(...steps)).toThrow(`0002_more: ${reason}`)
})

test('our migrations are numbered without a gap', () => {
  expect(listMigrations().map(name => name.slice(0, 5))).toEqual(
    listMigrations().map((_, index) => `${String(index + 1).padStart(4, '0')}_`),
  )
})

test('released migrations have not been changed', () => {
  const released = readReleases().flatMap(({ migrations }) => Object.entries(migrations))
  expect(Object.fromEntries(released)).toEqual(
    Object.fromEntries(released.map(([name]) => [name, readMigration(name).checksum])),
  )
})

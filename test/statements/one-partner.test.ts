import { expect, test } from 'vitest'
import { type Tables, withoutPartner } from './one-partner.ts'

const tables: Tables = {
  partners: { columns: ['id', 'name'], isDistributed: false },
  members: { columns: ['partner_id', 'id', 'tier', 'status'], isDistributed: true },
  tiers: { columns: ['partner_id', 'name', 'version'], isDistributed: true },
  events: { columns: ['partner_id', 'id', 'type'], isDistributed: true },
}
const check = (text: string, named?: Record<number, string>) => withoutPartner(text, tables, named)

test.each([
  'select id from members where partner_id = $1 and id = $2',
  "select id from members where partner_id = 'par_1'",
  'select id from members where (partner_id, id) = ($1::text, $2)',
  'select id from members where partner_id in ($1)',
  'select name from partners',
  'select id from events_2026_03 where partner_id = $1',
  'select m.id from members m join tiers t on t.partner_id = m.partner_id and t.name = m.tier where m.partner_id = $1',
  'select m.id from members m join tiers t using (partner_id) where t.partner_id = $1',
  'select m.id from partners p left join members m on m.partner_id = p.id where p.id = $1',
  'select m.id from members m left join tiers t on t.partner_id = m.partner_id where m.partner_id = $1',
  'select id from (select * from members) m where m.partner_id = $1',
  'select id from (select partner_id, id from members union all select partner_id, name from tiers) m where partner_id = $1',
  'select m.id from members m cross join lateral (select name from tiers where partner_id = m.partner_id) t where partner_id = $1',
  'with mine as (select * from members where partner_id = $1) select t.name from mine join tiers t using (partner_id)',
  'with all_members as (select * from members) select id from all_members where partner_id = $1',
  'select id from members m where partner_id = $1 and exists (select from tiers t where t.partner_id = m.partner_id)',
  'select id from members m where partner_id = $1 and not exists (select from tiers t where t.partner_id = m.partner_id)',
  'select id from members where (partner_id, tier) in (select partner_id, name from tiers where partner_id = $1)',
  'select (select version from tiers where partner_id = $1 and name = tier) from members where partner_id = $1',
  'insert into members (id, partner_id) values ($1, $2)',
  'insert into members select * from members where partner_id = $1',
  'insert into members (partner_id, id) select t.partner_id, m from tiers t, unnest($1::text[]) m where t.partner_id = $2',
  'update members m set status = $1 from tiers t where t.partner_id = m.partner_id and m.partner_id = $2',
  'delete from members using partners p where p.id = members.partner_id and p.id = $1',
  `with gone as (delete from members where partner_id = $1 returning partner_id, id)
   update tiers t set version = 1 from gone where t.partner_id = gone.partner_id`,
  'set lock_timeout = 50',
])('each table is restricted to one partner: %s', async text => {
  expect(await check(text)).toEqual([])
})

test.each([
  ['select id from members where id = $1', ['members']],
  ['select id from members where partner_id = any($1)', ['members']],
  ['select id from members where partner_id in ($1, $2)', ['members']],
  ['select id from members where partner_id = $1 or id = $2', ['members']],
  ['select id from members where not (partner_id = $1)', ['members']],
  ['select id from members where partner_id > $1', ['members']],
  ['select m.id from members m join tiers t on t.name = m.tier where m.partner_id = $1', ['tiers']],
  [
    'select m.id from members m left join tiers t on t.partner_id = m.partner_id and m.partner_id = $1',
    ['members', 'tiers'],
  ],
  ['select m.id from members m join unnest($1::text[]) as a (partner_id) on a.partner_id = m.partner_id', ['members']],
  ['select id from members where partner_id = (select partner_id from tiers where name = $1)', ['members', 'tiers']],
  ['select id from (select * from members limit 1) m where partner_id = $1', ['members']],
  ['select id from members where partner_id = $1 union all select name from tiers', ['tiers']],
  ['with mine as materialized (select * from members) select id from mine where partner_id = $1', ['members']],
  [
    'select (select version from tiers t where t.partner_id = m.partner_id) from members m where partner_id = $1',
    ['tiers'],
  ],
  [
    `select m.id from members m cross join lateral (select max(version) from tiers t where t.partner_id = m.partner_id) t
      where m.partner_id = $1`,
    ['tiers'],
  ],
  ['insert into members select * from members', ['members']],
  ['update members set status = $1', ['members']],
  ['delete from members using tiers t where t.partner_id = $1', ['members']],
  ['copy events (partner_id, id) from stdin', ['events']],
])('a table that is not restricted is found: %s', async (text, found) => {
  expect(await check(text)).toEqual(found)
})

test('rows are of one partner if their parameters named one', async () => {
  const values = 'insert into members (partner_id, id) values ($1, $2), ($3, $4)'
  expect(await check(values, { 1: 'A', 3: 'A' })).toEqual([])
  expect(await check(values, { 1: 'A', 3: 'B' })).toEqual(['members'])
  const arrays = 'insert into members (partner_id, id) select * from unnest($1::text[], $2::text[])'
  expect(await check(arrays, { 1: 'A' })).toEqual([])
  expect(await check(arrays, { 1: '*' })).toEqual(['members'])
  const join = 'select m.id from members m join unnest($1::text[]) as a (partner_id) on a.partner_id = m.partner_id'
  expect(await check(join, { 1: 'A' })).toEqual(['members'])
})

test('tables that are restricted to different partners are found', async () => {
  const text = 'select m.id from members m, tiers t where m.partner_id = $1 and t.partner_id = $2'
  expect(await check(text, { 1: 'A', 2: 'A' })).toEqual([])
  expect(await check(text, { 1: 'A', 2: 'B' })).toEqual(['several partners'])
})

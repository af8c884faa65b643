import { Secret } from 'otpauth'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../src/database/database.ts'
import { nameConstraint } from '../src/database/errors.ts'
import { migrate } from '../src/database/migrate.ts'
import { readableQueueColumns, readColumns, withheldColumns } from '../src/database/read-columns.ts'
import { tableRules } from '../src/database/table-rules.ts'
import { createLink } from '../src/users/links.ts'
import * as totp from '../src/users/totp.ts'
import { signIn } from './harness/console.ts'
import { type Harness, startHarness } from './harness/harness.ts'

// Checks the limits of the app role over the service's own connections, as an SQL injection would test them, and the changes
// that even the owner of the tables cannot make without disabling triggers.

let harness: Harness
let withdrawalId: string
let keyId: string
beforeAll(async () => {
  harness = await startHarness()
  const memberId = await harness.addMember({ available: 20_000 })
  withdrawalId = await harness.withdraw({ memberId })
  const { key } = await harness.addKey(['pay:read'])
  keyId = key.id
  await harness.pool.query('update api_keys set revoked_at = now() where id = $1', [keyId])
})
afterAll(() => harness.stop())

const insufficientPrivilege = '42501'
const snakeCase = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
const codeOf = async (statement: string) =>
  await harness.pool.query(statement).then(
    () => 'done',
    (error: pg.DatabaseError) => error.code,
  )

test.each([
  ['run a program', `copy (select 1) to program 'true'`],
  ['run a program and read its output', `create temporary table output (line text); copy output from program 'id'`],
  ['read a file of the server', `select pg_read_file('postmaster.pid')`],
  ['load a file into a table', `create temporary table lines (line text); copy lines from '/etc/passwd'`],
  ['write a file of the server', `copy (select 1) to '/tmp/midmonth-roles-test'`],
  ['import a file as a large object', `select lo_import('/etc/passwd')`],
  ['list the files of the server', `select pg_ls_dir('.')`],
  ['change a setting of the server', `alter system set archive_command = 'true'`],
  ['load a library', `load 'auto_explain'`],
  ['create an extension', 'create extension file_fdw'],
  ['disable the triggers of a table', 'alter table ledger_transfers disable trigger all'],
  ['disable one trigger', 'alter table ledger_transfers disable trigger ledger_transfers_append_only'],
  ['disable all triggers of its session', 'set session_replication_role = replica'],
  ['drop a trigger', 'drop trigger ledger_transfers_append_only on ledger_transfers'],
  [
    'replace a trigger function',
    'create or replace function refuse_change() returns trigger language plpgsql as $$ begin return new; end $$',
  ],
  ['drop a constraint', 'alter table ledger_balances drop constraint member_not_overdrawn'],
  ['drop a table', 'drop table ledger_transfers'],
  ['create a table', 'create table mine ()'],
  ['create a schema', 'create schema mine'],
  ['create a view', 'create view mine as select 1'],
  ['change a transfer', 'update ledger_transfers set amount = amount + 1'],
  ['delete a transfer', 'delete from ledger_transfers'],
  ['truncate the ledger', 'truncate ledger_transfers'],
  ['change an event', `update events set data = '{}'`],
  ['delete an event', 'delete from events'],
  ['change the terms of a tier', 'update tier_versions set fee_fixed = 0'],
  ['change a line of a pay run', 'update pay_run_lines set amount = amount + 1'],
  ['change a settled line', 'update settlement_lines set taken = 0'],
  ['allow another transition', `insert into state_transitions values ('withdrawals', 'paid', 'held')`],
  [
    'change the account of a held withdrawal',
    `update withdrawal_intents set account = decode(repeat('00', 40), 'hex')`,
  ],
  ['change the amount of a held withdrawal', 'update withdrawals set gross_amount = 1'],
  [
    'pay a withdrawal to the account of another intent',
    'update withdrawals set withdrawal_intent_id = withdrawal_intent_id',
  ],
  ['delete a withdrawal', 'delete from withdrawals'],
  ['forget a withdrawal that waits for the bank', 'delete from unpaid_withdrawals'],
  ['change the scopes of a key', `update api_keys set scopes = '{admin}'`],
  ['replace the secret of a key', `update api_keys set hash = sha256('mine')`],
  ['delete a key', 'delete from api_keys'],
  ['delete a member', 'delete from members'],
  ['turn a sandbox into a live database', `update installation set mode = 'live'`],
  ['declare itself compatible with any schema', `update migrations set compatible_with = '0001'`],
  ['hide a migration', 'delete from migrations'],
  ['become the owner', 'set role midmonth_owner'],
  ['become a superuser', 'alter role current_user superuser'],
  ['create a role', 'create role mine'],
  ['create a database', 'create database mine'],
  ['grant itself more rights', 'grant pg_execute_server_program to current_user'],
  ['change the queue’s functions', 'drop function graphile_worker.add_jobs'],
])('the app role cannot %s', async (_, statement) => {
  expect(await codeOf(statement)).toBe(insufficientPrivilege)
})

test('the app role can revoke a key but never undo a revocation', async () => {
  for (const revokedAt of ['null', `now() + interval '1 year'`]) {
    await expect(
      named(harness.pool.query(`update api_keys set revoked_at = ${revokedAt} where id = $1`, [keyId])),
    ).rejects.toMatchObject({ constraint: 'keys_are_never_revived' })
  }
})

test('the app role can let a key expire earlier but never later', async () => {
  const expire = (at: string) => harness.pool.query(`update api_keys set expires_at = ${at} where id = $1`, [keyId])
  await expire(`now() + interval '2 days'`)
  await expire(`now() + interval '1 day'`)
  for (const later of ['null', `now() + interval '3 days'`])
    await expect(named(expire(later))).rejects.toMatchObject({ constraint: 'keys_are_never_revived' })
})

test('a temporary table cannot shadow the list of allowed transitions', async () => {
  const client = await harness.pool.connect()
  try {
    await client.query('begin')
    await client.query(
      'create temporary table state_transitions (entity text, from_state text, to_state text) on commit drop',
    )
    await client.query(`insert into state_transitions values ('withdrawals', 'held', 'paid')`)
    await expect(
      named(client.query(`update withdrawals set status = 'paid', due_at = null where id = $1`, [withdrawalId])),
    ).rejects.toMatchObject({ constraint: 'only_listed_transitions' })
  } finally {
    await client.query('rollback')
    client.release()
  }
})

test.each<['withdrawal_intents' | 'withdrawals', string]>([
  ['withdrawal_intents', `account = decode(repeat('00', 40), 'hex')`],
  ['withdrawal_intents', `expires_at = 'infinity'`],
  ['withdrawal_intents', 'gross_amount = gross_amount + 1, net_amount = net_amount + 1'],
  ['withdrawals', `withdrawal_intent_id = 'wi_other'`],
  ['withdrawals', 'balance_after = balance_after + 1'],
  ['withdrawals', 'gross_amount = gross_amount + 1, net_amount = net_amount + 1'],
])('even the owner cannot change the terms of a row in %s: %s', async (table, change) => {
  const { ownerDb } = harness
  const read = () => sql`select * from ${sql.table(table)} order by id`.execute(ownerDb)
  const before = (await read()).rows
  await expect(asOwner(`update ${table} set ${change}`)).rejects.toMatchObject({ constraint: 'terms_never_change' })
  expect((await read()).rows).toEqual(before)
  expect(before).not.toEqual([])
})

test.each(['revoked_at = null', `scopes = '{}'`, `hash = sha256('mine')`, `expires_at = 'infinity'`])(
  'even the owner cannot restore or change a key: %s',
  async change => {
    await asOwner(`update api_keys set expires_at = now() + interval '1 day' where expires_at is null`)
    await expect(asOwner(`update api_keys set ${change} where id = '${keyId}'`)).rejects.toMatchObject({
      constraint: 'keys_are_never_revived',
    })
  },
)

test.each(['ledger_transfers', 'ledger_transfers_default', 'tier_versions', 'events', 'events_default'])(
  'even the owner cannot truncate %s',
  async table => {
    await expect(asOwner(`truncate ${table} cascade`)).rejects.toMatchObject({ constraint: 'append_only' })
  },
)

// Without its argument, the trigger function fails with an error about its own message.
test.for(['update ledger_transfers set amount = amount + 1', 'delete from ledger_transfers'])(
  'not even the owner can %s',
  async statement => await expect(asOwner(statement)).rejects.toMatchObject({ constraint: 'append_only' }),
)

test('every trigger that keeps a table append-only names the table in its error', async () => {
  const { rows } = await harness.pool.query<{ trigger: string }>(
    `select tgname as trigger from pg_trigger
       left join pg_inherits on inhrelid = tgrelid
      where tgfoid = 'refuse_change'::regproc
        and tgargs <> coalesce(inhparent, tgrelid)::regclass::text::bytea || '\\x00'::bytea`,
  )
  expect(rows).toEqual([])
})

test('every table has a rule, from which the rights of the app role derive', async () => {
  const { rows } = await harness.pool.query<{ name: string }>(
    `select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
        order by relname`,
  )
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(tableRules).map(snakeCase).toSorted())
})

test('a table is append-only by its rule if a trigger refuses all changes of its rows', async () => {
  const { rows } = await harness.pool.query<{ name: string }>(
    `select distinct tgrelid::regclass::text as name from pg_trigger join pg_class c on c.oid = tgrelid and not relispartition
      where tgfoid in ('refuse_change'::regproc, 'refuse_change_of_audit'::regproc)
        and tgqual is null and tgtype & 1 = 1 and tgtype & 24 = 24`,
  )
  expect(rows.length).toBeGreaterThan(5)
  const appendOnly = Object.entries(tableRules).flatMap(([name, rule]) =>
    rule === 'append-only' ? [snakeCase(name)] : [],
  )
  expect(rows.map(({ name }) => name).filter(name => !appendOnly.includes(name))).toEqual([])
})

test('the columns that a trigger protects are exactly those that the app role cannot update', async () => {
  const { rows } = await harness.pool.query<{ name: string; definition: string; kept: string[] }>(
    `select tgrelid::regclass::text as name, pg_get_triggerdef(t.oid) as definition,
            (select array_agg(attname::text) from pg_attribute
              where attrelid = tgrelid and attnum > 0 and not has_column_privilege(tgrelid, attnum, 'update')) as kept
       from pg_trigger t join pg_class c on c.oid = tgrelid and not relispartition
      where tgfoid in ('refuse_other_terms'::regproc, 'refuse_change'::regproc, 'refuse_key_revival'::regproc)
        and tgqual is not null`,
  )
  expect(rows.length).toBeGreaterThan(5)
  for (const { name, definition, kept } of rows) {
    // Terms are compared as (old.a, …) with (new.a, …). The comparisons that a condition limits begin with the new row.
    const terms = [...definition.matchAll(/\bold\.(\w+)(?:\)::text)? IS DISTINCT FROM/g)].map(match => match[1] ?? '')
    const mentioned = [...definition.matchAll(/\bold\.(\w+)/g)].map(match => match[1])
    expect(terms.length, name).toBeGreaterThan(3)
    const updatable = terms.filter(column => !kept.includes(column))
    const unchecked = kept.filter(column => !mentioned.includes(column))
    expect({ name, updatable, unchecked }).toEqual({ name, updatable: [], unchecked: [] })
  }
})

test('migrating again grants the declared rights and revokes all others', async () => {
  const { user, owner, host, database } = harness
  await asOwner(`grant delete, update, truncate on ledger_transfers to ${user}; revoke select on members from ${user}`)
  expect(await codeOf('update ledger_transfers set amount = 0 where false')).toBe('done')
  expect(await codeOf('select from members')).toBe(insufficientPrivilege)
  const pool = new pg.Pool({ host, user: owner, database })
  expect(await migrate(harness.ownerDb, pool, { name: user })).toMatchObject({ applied: [] })
  await pool.end()
  expect(await codeOf('update ledger_transfers set amount = 0 where false')).toBe(insufficientPrivilege)
  expect(await codeOf('select from members')).toBe('done')
})

/** Runs work as the read role of the test database, whose name derives from the database's. */
async function asReader(work: (reader: pg.Client) => Promise<void>): Promise<void> {
  const { host, database, superuser, owner, user } = harness
  const admin = new pg.Client({ host, user: superuser, database })
  await admin.connect()
  const role = `${database}_read`
  await admin.query(`create role ${role} login`)
  const pool = new pg.Pool({ host, user: owner, database })
  await migrate(harness.ownerDb, pool, { name: user })
  await pool.end()
  const reader = new pg.Client({ host, user: role, database })
  await reader.connect()
  try {
    await work(reader)
  } finally {
    await reader.end()
    await admin.query(`drop owned by ${role}; drop role ${role}`)
    await admin.end()
  }
}

test('the read role can read the listed columns and change nothing', async () => {
  await asReader(async reader => {
    for (const table of ['member_counts', 'ledger_transfers', 'migrations'])
      await reader.query(`select * from ${table} limit 1`)
    for (const statement of [
      'insert into rail_cursors values ($$a$$, $$b$$, now())',
      'update members set first_name = first_name',
      'select from members for update',
      'delete from idempotency_keys',
      `select graphile_worker.add_job('expire-intents')`,
      'create table mine ()',
      'select secret from webhook_secrets',
      'select account from members',
      'select payment_key from member_keys',
      'select headers from webhook_endpoints',
      'select password_hash from users',
      'select totp_secret from users',
      'select answer from idempotency_keys',
      'select * from users',
      'select payload from graphile_worker._private_jobs',
      'select last_error from graphile_worker.jobs',
    ])
      await expect(reader.query(statement), statement).rejects.toMatchObject({ code: insufficientPrivilege })
  })
})

const columnsOfTables = `
  select relname as "table", attname as "column"
    from pg_attribute join pg_class c on c.oid = attrelid
   where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
     and attnum > 0 and not attisdropped
   order by 1, 2`

test('every column of every table is either readable for the read role or withheld from it, as declared', async () => {
  const namesOf = (lists: typeof withheldColumns) =>
    lists.flatMap(([table, columns]) => columns.map(column => `${snakeCase(table)}.${snakeCase(column)}`))
  const [readable, withheld] = [namesOf(readColumns), namesOf(withheldColumns)]
  const { rows } = await harness.pool.query<{ table: string; column: string }>(columnsOfTables)
  expect([...readable, ...withheld].toSorted()).toEqual(rows.map(row => `${row.table}.${row.column}`).toSorted())
  await asReader(async reader => {
    // In every schema except PostgreSQL’s own.
    const { rows: granted } = await reader.query<{ name: string }>(
      `select c.oid::regclass || '.' || attname as name
         from pg_attribute join pg_class c on c.oid = attrelid
        where relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
          and relkind in ('r', 'p', 'v', 'm', 'f', 'S')
          and attnum > 0 and not attisdropped and has_column_privilege(c.oid, attnum, 'select')`,
    )
    const ofQueue = readableQueueColumns.map(column => `graphile_worker.jobs.${column}`)
    expect(granted.map(({ name }) => name).toSorted()).toEqual([...readable, ...ofQueue].toSorted())
    const queue = `select ${readableQueueColumns.join(', ')} from graphile_worker.jobs`
    expect((await reader.query(queue)).rows.length).toBeGreaterThan(0)
  })
})

test('a column that a migration adds is unreadable for the read role until it is listed', async () => {
  await asOwner('alter table tiers add column fresh text')
  try {
    await asReader(async reader => {
      await expect(reader.query('select fresh from tiers')).rejects.toMatchObject({ code: insufficientPrivilege })
      await reader.query('select name from tiers')
    })
  } finally {
    await asOwner('alter table tiers drop column fresh')
  }
})

test('the read role finds none of the planted secrets', async () => {
  const { call, key, db, clock } = harness
  const headers = { 'x-idempotency-key': 'with a secret' }
  const webhook = await call('POST', '/v1/webhooks', {
    body: {
      url: 'https://example.com/hooks/url-token',
      types: ['*'],
      headers: { authorization: 'Bearer header-token' },
    },
    headers,
  })
  const memberId = await harness.addMember()
  const session = await call('POST', '/v1/member-sessions', {
    body: { memberId, scope: 'read' },
    headers: { 'x-idempotency-key': 'with a token' },
  })
  expect([webhook.status, session.status], session.text).toEqual([201, 201])
  const operator = await harness.addOperator()
  const { user, token } = await signIn(harness, { roles: ['viewer'], password: 'correct horse battery' })
  const begun = await db.transaction().execute(tx => totp.begin(tx, user))
  const link = await harness.inTx(tx =>
    createLink(tx, { purpose: 'password', userId: user.id, lifeMs: 60_000, now: clock.now() }),
  )
  const planted = [
    ...[key, operator.secret, token, link, webhook.body.secret, session.body.token],
    ...['url-token', 'header-token', 'correct horse battery', '$argon2id$', begun.secret],
    Buffer.from(Secret.fromBase32(begun.secret).bytes).toString('hex'),
  ]
  expect(planted.filter(secret => typeof secret !== 'string' || secret.length < 9)).toEqual([])
  const { rows: tables } = await harness.pool.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c
      where relkind in ('r', 'v', 'p') and relnamespace in ('public'::regnamespace, 'graphile_worker'::regnamespace)`,
  )
  await asReader(async reader => {
    for (const { name } of tables) {
      const { rows } = await reader.query<{ columns: string | null }>(
        `select string_agg(quote_ident(attname), ', ') as columns from pg_attribute
          where attrelid = $1::regclass and attnum > 0 and not attisdropped
            and has_column_privilege(attrelid, attnum, 'select')`,
        [name],
      )
      const columns = rows[0]?.columns
      if (columns == null) continue
      const { rows: found } = await reader.query<{ row: string }>(
        `select to_jsonb(each)::text as row from (select ${columns} from ${name}) each`,
      )
      const text = found.map(({ row }) => row).join('\n')
      expect(
        planted.filter(secret => text.includes(secret)),
        name,
      ).toEqual([])
    }
  })
  // Even the columns in a dump are useless without the installation key.
  const { rows } = await harness.pool.query<{ row: string }>(
    `select answer::text as row from idempotency_keys where answer is not null`,
  )
  const inHex = [webhook.body.secret, session.body.token].map(secret => Buffer.from(secret).toString('hex'))
  expect(rows.length).toBeGreaterThan(1)
  expect(inHex.filter(secret => rows.some(({ row }) => row.includes(secret)))).toEqual([])
  const again = await call('POST', '/v1/member-sessions', {
    body: { memberId, scope: 'read' },
    headers: { 'x-idempotency-key': 'with a token' },
  })
  expect([again.text, again.headers['idempotency-replayed']]).toEqual([session.text, 'true'])
})

test('the app role can analyze tables after a large import, although only the owner may analyze them directly', async () => {
  const tuples = async () =>
    (await harness.pool.query(`select reltuples::integer as n from pg_class where relname = 'rail_cursors'`)).rows[0]?.n
  expect(await tuples()).toBe(-1)
  await harness.pool.query(`insert into rail_cursors values ('a', 'b', now())`)
  await harness.pool.query(`select analyze_tables('rail_cursors')`)
  expect(await tuples()).toBe(1)
})

/** These connections are not the program's, which name the constraint in an error of Citus. */
async function named<T>(result: Promise<T>): Promise<T> {
  return await result.catch(error => {
    nameConstraint(error)
    throw error
  })
}

async function asOwner(statements: string): Promise<void> {
  const { host, owner, database } = harness
  const client = new pg.Client({ host, user: owner, database })
  await client.connect()
  try {
    await named(client.query(statements))
  } finally {
    await client.end()
  }
}

import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { midmonth, newDatabase, serve, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const made: { role: string; database: Awaited<ReturnType<typeof newDatabase>> }[] = []
afterEach(async () => {
  for (const { role, database } of made.splice(0)) {
    await tamper(database, `reassign owned by ${role} to current_user; drop owned by ${role}; drop role ${role}`)
  }
})
afterAll(tidyUp)

/** Creates a database and a role that Midmonth has not set up. */
async function databaseWithRole({ migrated, attributes }: { migrated: boolean; attributes: string }) {
  const database = await newDatabase({ migrated })
  const role = `role_${randomBytes(6).toString('hex')}`
  await tamper(database, `create role ${role} login ${attributes}`)
  made.push({ role, database })
  return { database, role, url: database.DATABASE_URL.replace(/(?<=:\/\/)\w+/, role) }
}

const nameOf = (url: string) => /program_\w+/.exec(url)?.[0] ?? ''

test('a single role that owns the database works, and the log warns about its excess rights', async () => {
  const { database, role, url } = await databaseWithRole({ migrated: false, attributes: '' })
  await tamper(database, `alter database ${nameOf(url)} owner to ${role}`)
  const settings = { DATABASE_URL: url }
  expect(await midmonth(['migrate'], settings)).toMatchObject({ code: 0, stderr: '' })
  expect(await midmonth(['partner', 'create', 'Acme'], settings)).toMatchObject({ code: 0, stderr: '' })
  const service = await serve(settings)
  const logged = service.log()
  await service.stop()
  expect(logged).toContain("The program's database role can change the schema")
  expect(logged).not.toContain('run programs')
})

test('a separate app role causes no warning', async () => {
  const database = await newDatabase({ hasDemo: true })
  const service = await serve({ DATABASE_URL: database.DATABASE_URL })
  await service.stop()
  expect(service.log()).toContain('Server listening')
  expect(service.log()).not.toContain(`"level":${pino.levels.values.warn}`)
})

test('migrate without the right to create tables says what to grant, and works once it is granted', async () => {
  const { database, role, url } = await databaseWithRole({ migrated: false, attributes: '' })
  const { code, stderr } = await midmonth(['migrate'], { DATABASE_URL: url })
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr:
      `midmonth: The role ${role} may not change the schema of the database ${nameOf(url)}: set DATABASE_OWNER_URL to a ` +
      `role that owns it, or have its owner run in that database: grant create on schema public to "${role}"; ` +
      `grant create on database "${nameOf(url)}" to "${role}";\n`,
  })
  await tamper(database, stderr.replace(/^.*run in that database: /, ''))
  expect(await midmonth(['migrate'], { DATABASE_URL: url })).toMatchObject({ code: 0 })
})

test('an app role without grants is told to migrate as the owner', async () => {
  const { role, url, database } = await databaseWithRole({ migrated: true, attributes: '' })
  expect(await midmonth(['partner', 'list'], { DATABASE_URL: url })).toEqual({
    code: 1,
    stdout: '',
    stderr:
      `midmonth: The role ${role} may not read the tables of the database ${nameOf(url)}: run midmonth migrate with ` +
      'DATABASE_OWNER_URL set to the owner of the database, which grants that role what it needs\n',
  })
  const settings = { ...database, DATABASE_URL: url }
  expect(await midmonth(['migrate'], settings)).toMatchObject({ code: 0 })
  expect(await midmonth(['partner', 'list'], settings)).toMatchObject({ code: 0, stdout: '(none)\n' })

  await tamper(
    database,
    `delete from migration_steps; delete from migrations; grant create on schema public to ${role}`,
  )
  const { stderr } = await midmonth(['migrate'], { DATABASE_URL: url })
  expect(stderr).toContain(
    'which belongs to midmonth_owner: set DATABASE_OWNER_URL to an address that logs in as midmonth_owner',
  )
})

test('a role without the right to connect is told what to grant', async () => {
  const { database, role, url } = await databaseWithRole({ migrated: false, attributes: '' })
  await tamper(database, `revoke connect on database ${nameOf(url)} from public`)
  const { code, stderr } = await midmonth(['migrate'], { DATABASE_URL: url })
  expect(code).toBe(1)
  expect(stderr).toContain(`permission denied for database "${nameOf(url)}"; as its owner, run: `)
  expect(stderr).toContain(`grant connect on database "${nameOf(url)}" to "${role}";\n`)
})

test('an owner with createrole creates the app role and the read-only role', async () => {
  const { database, role, url } = await databaseWithRole({ migrated: false, attributes: 'createrole' })
  await tamper(database, `alter database ${nameOf(url)} owner to ${role}`)
  const app = `${role}_app`
  const settings = { DATABASE_OWNER_URL: url, DATABASE_URL: url.replace(role, `${app}:a%20secret`) }
  made.unshift({ role: app, database }, { role: `${nameOf(url)}_read`, database })
  expect(await midmonth(['migrate'], settings)).toMatchObject({ code: 0, stderr: '' })
  const roles = await tamper(
    database,
    `select rolname, rolsuper or rolcreaterole or rolcreatedb as is_powerful, left(rolpassword, 18) as password
       from pg_authid where rolname in ('${app}', '${nameOf(url)}_read') order by rolname`,
  )
  expect(roles).toEqual([
    { rolname: `${nameOf(url)}_read`, is_powerful: false, password: null },
    { rolname: app, is_powerful: false, password: 'SCRAM-SHA-256$4096' },
  ])
  expect(await midmonth(['partner', 'create', 'Acme'], settings)).toMatchObject({ code: 0, stderr: '' })
})

test('DATABASE_OWNER_URL without DATABASE_URL is refused', async () => {
  const { DATABASE_OWNER_URL } = await newDatabase()
  expect(await midmonth(['migrate'], { DATABASE_OWNER_URL })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^midmonth: DATABASE_OWNER_URL requires DATABASE_URL/),
  })
})

test('an older version serves a newer schema only if its migrations declare that compatible', async () => {
  const database = await newDatabase()
  const service = await serve(database, { roles: { api: true, worker: false } })
  const isReady = async () => (await fetch(`${service.address}/readyz`)).status
  expect(await isReady()).toBe(200)

  await tamper(database, `insert into migrations values ('9998_other_shapes', repeat('0', 64), null, now())`)
  const sentence =
    /^midmonth: The database was migrated by a newer version of Midmonth \(9998_other_shapes\), and this one knows migrations up to \d{4}_\w+: start the newer version\n$/
  const commands = [['start', '--api'], ['start'], ['migrate'], ['partner', 'list']]
  const refusals = await Promise.all(commands.map(command => midmonth(command, { ...database, PORT: '0' })))
  for (const [index, refusal] of refusals.entries())
    expect(refusal, commands[index]?.join(' ')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(sentence),
    })
  expect(await isReady()).toBe(503)

  await tamper(database, `update migrations set compatible_with = '0001' where name like '9998%'`)
  expect(await isReady()).toBe(200)
  expect(await midmonth(['partner', 'list'], database)).toMatchObject({ code: 0 })
  expect(await midmonth(['migrate'], database)).toMatchObject({ code: 0 })
  await (await serve(database, { roles: { api: true, worker: false } })).stop()

  await tamper(database, `update migrations set compatible_with = '9997' where name like '9998%'`)
  expect(await isReady()).toBe(503)
})

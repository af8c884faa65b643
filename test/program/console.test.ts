import { mkdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { liveSettings, midmonth, newDatabase, newDataDir, serve, start, tidyUp } from './program.ts'
import { closeTerminals, inTerminal } from './terminal.ts'

vi.setConfig({ testTimeout: 180_000 })
afterEach(async () => {
  closeTerminals()
  await tidyUp()
})

const password = 'correct horse battery'

/** Calls the service like a page of the console. */
async function ask(address: string, [method, route]: [string, string], body?: object, cookie = '') {
  const response = await fetch(`${address}/console/v1/${route}`, {
    method,
    headers: {
      origin: new URL(address).origin,
      'sec-fetch-site': 'same-origin',
      ...(cookie === '' ? {} : { cookie }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const cookies = response.headers.getSetCookie().map(each => each.split(';', 1)[0])
  return { status: response.status, cookie: cookies.join('; '), body: await response.json() }
}

test('the console of a live installation is closed until the set-up link has created its first operator', async () => {
  const folder = newDataDir()
  mkdirSync(folder)
  const settings = { ...(await newDatabase()), ...(await liveSettings()), MIDMONTH_DATA_DIR: folder }
  const live = await start(settings)
  const link = /http:\S+\/console\/set-up#(mml_\w+)/
  await expect.poll(live.log).toMatch(link)
  const [, token = ''] = link.exec(live.log()) ?? []
  const file = path.join(folder, 'console-set-up-link')
  expect(readFileSync(file, 'utf8')).toContain(token)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(live.stdout).not.toContain(token)

  expect((await ask(live.address, ['GET', 'session'])).status).toBe(401)
  expect((await ask(live.address, ['GET', 'sign-in'])).body).toMatchObject({ needsSetUp: true })
  expect((await ask(live.address, ['POST', 'sign-in'], { email: 'ada@example.com', password })).status).toBe(503)
  const founder = { email: 'Ada@example.com', name: 'Ada Lovelace', password }
  expect((await ask(live.address, ['POST', 'set-up'], { token: `${token}x`, ...founder })).status).toBe(401)
  expect((await ask(live.address, ['POST', 'set-up'], { token, ...founder, password: 'short' })).status).toBe(400)
  const made = await ask(live.address, ['POST', 'set-up'], { token, ...founder })
  expect([made.status, made.body]).toEqual([200, expect.objectContaining({ isOperator: true, mode: 'live' })])
  expect((await ask(live.address, ['POST', 'set-up'], { token, ...founder })).status).toBe(401)
  expect((await ask(live.address, ['GET', 'sign-in'])).body).toMatchObject({ needsSetUp: false })
  expect((await ask(live.address, ['GET', 'session'], undefined, made.cookie)).status).toBe(200)
  const signedIn = await ask(live.address, ['POST', 'sign-in'], { email: 'ada@example.com', password })
  expect(signedIn.body).toMatchObject({ user: { name: 'Ada Lovelace' }, isOperator: true })
  await live.stop()

  const again = await start(settings)
  await again.stop()
  expect(again.log()).not.toMatch(link)
})

test('the start of a sandbox prints a link that signs in, and operator link prints another', async () => {
  const database = await newDatabase({ hasDemo: true })
  const sandbox = await start(database)
  const [, printed = ''] = /Console +http\S+\/console\/sign-in#(\w+)/.exec(sandbox.stdout) ?? []
  const another = (await midmonth(['operator', 'link'], database)).stdout.trim().split('#')[1]
  for (const token of [printed, another]) {
    expect((await ask(sandbox.address, ['POST', 'sign-in/link'], { token })).body).toMatchObject({ isOperator: true })
    expect((await ask(sandbox.address, ['POST', 'sign-in/link'], { token })).status).toBe(401)
  }
  await sandbox.stop()
})

test('operator create asks for a password without echo, and creates an operator who can sign in', async () => {
  const settings = { ...(await newDatabase()), MIDMONTH_MODE: 'live' }
  const terminal = inTerminal(['operator', 'create', 'ada@example.com', '--name', 'Ada'], settings)
  await terminal.says('Password for ada@example.com:')
  terminal.type(password)
  await terminal.says('Again:')
  terminal.type(password)
  expect(await terminal.ended).toBe(0)
  expect(terminal.screen()).toContain('ada@example.com can sign in to the console.')
  expect(terminal.screen()).not.toContain(password)
  const service = await serve(settings)
  expect((await ask(service.address, ['POST', 'sign-in'], { email: 'ada@example.com', password })).status).toBe(200)
  await service.stop()
})

test('commands invite an operator, replace a lost password, end sessions, and disable any operator except the last', async () => {
  const settings = { ...(await newDatabase()), MIDMONTH_MODE: 'live' }
  const service = await serve(settings)
  const { address } = service
  const run = async (...args: string[]) => await midmonth(['operator', ...args], settings)
  const linkOf = ({ stdout }: { stdout: string }) => /#(\w+)/.exec(stdout)?.[1]
  const invited = await run('create', 'ada@example.com', '--invite')
  const accepted = await ask(address, ['POST', 'invitations/accept'], { token: linkOf(invited), name: 'Ada', password })
  expect(accepted.body).toMatchObject({ isOperator: true })

  const token = linkOf(await run('link', 'ada@example.com'))
  const newPassword = 'a brand new password'
  expect((await ask(address, ['POST', 'password/reset'], { token, newPassword })).status).toBe(200)
  expect((await ask(address, ['GET', 'session'], undefined, accepted.cookie)).status).toBe(401)
  const credentials = { email: 'ada@example.com', password: newPassword }
  const signedIn = await ask(address, ['POST', 'sign-in'], credentials)
  expect(signedIn.status).toBe(200)
  expect((await run('sign-out', 'ada@example.com')).stdout).toBe('Ended 1 session of ada@example.com.\n')
  expect((await ask(address, ['GET', 'session'], undefined, signedIn.cookie)).status).toBe(401)

  expect(await run('disable', 'ada@example.com')).toMatchObject({
    code: 1,
    stderr: 'midmonth: This is the last operator; make another user an operator first\n',
  })
  const second = linkOf(await run('create', 'bob@example.com', '--invite'))
  await ask(address, ['POST', 'invitations/accept'], { token: second, name: 'Bob', password })
  expect((await run('disable', 'ada@example.com')).stdout).toBe('Disabled ada@example.com.\n')
  expect((await ask(address, ['POST', 'sign-in'], credentials)).status).toBe(401)
  expect((await run('remove-totp', 'bob@example.com')).stdout).toBe('bob@example.com has no second factor.\n')
  expect((await run('link')).stderr).toMatch(/^midmonth: Only a sandbox has a link that signs in/)
  expect(await run('link', 'nemo@example.com')).toMatchObject({
    code: 1,
    stderr: 'midmonth: There is no user nemo@example.com; operator list shows them\n',
  })
  expect(JSON.parse((await run('list', '--json')).stdout)).toEqual([
    expect.objectContaining({ email: 'bob@example.com', operator: true, state: 'active' }),
    expect.objectContaining({ email: 'ada@example.com', operator: true, state: 'disabled' }),
  ])
  const { stdout } = await midmonth(['audit', '--action', 'user.disable', '--json'], settings)
  expect(JSON.parse(stdout).entries).toEqual([
    expect.objectContaining({ actorKind: 'cli', partnerId: null, action: 'user.disable' }),
  ])
  await service.stop()
})

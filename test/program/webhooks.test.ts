import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { triggers } from '../../cli/client/webhook-triggers.ts'
import { eventTypes } from '../../src/events/catalogue.ts'
import { startReceiver, verify } from '../servers/receiver.ts'
import { launch, midmonth, newDatabase, type Served, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

let service: Served
let settings: Record<string, string>
beforeAll(async () => {
  service = await serve(await newDatabase({ hasDemo: true }))
  settings = { MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key }
})
afterAll(tidyUp)

const wait = { timeout: 45_000, interval: 50 }

test('a running sandbox delivers to an endpoint on the same machine, and withdrawal.failed can be triggered', async () => {
  const receiver = await startReceiver()
  const answer = await fetch(`${service.address}/v1/webhooks`, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': 'application/json' },
    body: JSON.stringify({ url: receiver.url }),
  })
  const { secret } = (await answer.json()) as { secret: string }
  const { code, stdout, stderr } = await midmonth(['webhooks', 'trigger', 'withdrawal.failed'], settings)
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^withdrawal\.failed {2}evt_/m)
  const received = () => receiver.bodies().map(({ type }) => type)
  await expect.poll(received, wait).toEqual(expect.arrayContaining(['member.invited', 'intent.completed']))
  for (const request of receiver.received) verify(secret, request)
  await receiver.stop()
})

test('listen prints each event and forwards it, signed with the printed secret', async () => {
  const receiver = await startReceiver()
  const config = await mkdtemp(path.join(tmpdir(), 'midmonth-listen-'))
  const kept = { ...settings, XDG_CONFIG_HOME: config }
  const listening = launch(['webhooks', 'listen', '--json', '--forward', receiver.url], kept)
  const printed = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    listening[stream]?.on('data', (text: string) => {
      printed[stream] += text
    })
  }
  await expect.poll(() => printed.stderr, wait).toContain('Listening.')
  expect((await midmonth(['webhooks', 'trigger', 'member.updated'], settings)).code).toBe(0)
  await expect.poll(() => receiver.bodies().map(({ type }) => type), wait).toContain('member.updated')
  const secret = /whsec_[A-Za-z0-9+/=]+/.exec(printed.stderr)?.[0] ?? ''
  const forwarded = receiver.received.map(request => verify(secret, request))
  const lines = () => printed.stdout.split('\n').slice(0, -1)
  const printedIds = () => lines().map(line => JSON.parse(line).id)
  await expect.poll(() => printedIds().slice(0, forwarded.length), wait).toEqual(forwarded.map(({ id }) => id))
  await expect.poll(() => printed.stderr, wait).toContain('→ 200')
  listening.kill('SIGTERM')
  await once(listening, 'exit')
  // The next run signs with the same secret.
  const again = launch(['webhooks', 'listen', '--forward', receiver.url], kept)
  let said = ''
  again.stderr?.on('data', (text: string) => {
    said += text
  })
  await expect.poll(() => said, wait).toContain(`signed with ${secret}.`)
  again.kill('SIGTERM')
  await once(again, 'exit')
  await rm(config, { recursive: true })
  await receiver.stop()
})

test('trigger causes an event of any type before it ends, except types that only an operator can cause', async () => {
  const impossible: string[] = []
  for (const type of eventTypes) {
    const { code, stdout, stderr } = await midmonth(['webhooks', 'trigger', type], settings)
    if (typeof triggers[type] === 'function') expect(stdout, `${type}: ${stderr}`).toContain(`${type}  evt_`)
    else {
      expect({ code, stderr }, type).toEqual({ code: 2, stderr: expect.stringContaining(triggers[type].reason) })
      impossible.push(type)
    }
  }
  expect(impossible).toEqual(['float.low'])
  // The endpoints that trigger created are deleted.
  const headers = { 'x-api-key': service.key }
  const listed = await (await fetch(`${service.address}/v1/webhooks?take=100`, { headers })).json()
  expect((listed as { webhooks: { url: string }[] }).webhooks.filter(({ url }) => /:\d+\/$/.test(url))).toEqual([])
}, 180_000)

test('trigger changes nothing in live mode, where the money is real', async () => {
  const database = { ...(await newDatabase()), MIDMONTH_MODE: 'live' }
  const { address } = await serve(database)
  const created = async (...args: string[]) => JSON.parse((await midmonth([...args, '--json'], database)).stdout)
  const { id } = await created('partner', 'create', 'Acme', '--auto-activate')
  await created('tier', 'set', id, 'Silver', '--currency', 'GBP', '--lower-limit', '1000', '--upper-limit', '20000')
  const live = { MIDMONTH_URL: address, MIDMONTH_API_KEY: (await created('key', 'create', id)).secret }
  for (const type of eventTypes.filter(each => typeof triggers[each] === 'function')) {
    expect(await midmonth(['webhooks', 'trigger', type], live), type).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringContaining('Only a sandbox can trigger events; nothing was done'),
    })
  }
  const { stdout } = await midmonth(['api', 'members.list'], live)
  expect(JSON.parse(stdout).total).toBe(0)
})

test('an unknown type, a type that cannot be triggered, and a missing key are explained', async () => {
  const run = async (args: string[], more = settings) => await midmonth(['webhooks', ...args], more)
  expect(await run(['trigger', 'withdrawal.exploded'])).toMatchObject({ code: 2 })
  expect((await run(['trigger', 'float.low'])).stderr).toContain('midmonth float floor')
  expect((await run(['listen', '--forward', 'nowhere'])).stderr).toContain('Use a URL')
  expect((await run(['listen'], { MIDMONTH_URL: service.address })).stderr).toContain('No API key')
})

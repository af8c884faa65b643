import { createSocket } from 'node:dgram'
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Receiver, startReceiver } from '../../test/servers/receiver.ts'
import { Fence, type FenceRules, resolveBy } from './fence.ts'
import { Sender } from './send.ts'
import { keyOf } from './signing.ts'

const live: FenceRules = { allowsHttp: false, allowsLoopback: false, refusedPorts: [5432] }
const local: FenceRules = { allowsHttp: true, allowsLoopback: true, refusedPorts: [5432, 6543] }
const strict = new Fence(live)

let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
})
afterAll(() => receiver.stop())

type Addresses = LookupAddress[]
const ipv4 = (address: string): LookupAddress => ({ address, family: 4 })

/** Sends to a URL with a resolver that gives these answers, one after another. */
async function send(url: string, { rules = local, answers = [] as Addresses[] } = {}) {
  const asked: string[] = []
  const fence = new Fence(rules, (hostname, callback) => {
    asked.push(hostname)
    callback(null, answers[Math.min(asked.length, answers.length) - 1] ?? [])
  })
  const sender = new Sender(fence, { clockMs: Date.now })
  const before = receiver.received.length
  const outgoing = {
    url,
    headers: {},
    keys: [keyOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
    id: 'evt_1',
    body: '{}',
  }
  const outcome = await sender.send(outgoing)
  await sender.close()
  return { ...outcome, asked, hasArrived: receiver.received.length > before }
}

describe('a URL', () => {
  test.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://127.1/',
    'https://127。0。0。1/',
    'https://localhost/',
    'https://api.localhost./',
    'https://0.0.0.0/',
    'https://10.0.0.1/',
    'https://172.16.0.1/',
    'https://192.168.0.1/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data/',
    'https://168.63.129.16/',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://192.0.2.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:8.8.8.8]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[64:ff9b:1::7f00:1]/',
    'https://[2002:7f00:1::]/',
    'https://[2001::1]/',
    'https://[fe80::1]/',
    'https://[fc00::1]/',
    'https://[fd00:ec2::254]/',
    'https://[ff02::1]/',
    'https://[fec0::1]/',
  ])('must not lead to a private or reserved address: %s', url => {
    expect(() => strict.judgeUrl(url)).toThrow(/must not lead to/)
  })

  test.each([
    ['http://example.com/', 'https'],
    ['ftp://example.com/', 'https'],
    ['file:///etc/passwd', 'https'],
    ['https://user@example.com/', 'user name'],
    ['https://:secret@example.com/', 'password'],
    ['https://example.com/#x', 'fragment'],
    ['https://example.com:25/', 'port 25'],
    ['https://example.com:0/', 'port 0'],
    ['https://', 'valid URL'],
  ])('in live mode, %s is refused because of its %s', (url, reason) => {
    expect(() => strict.judgeUrl(url)).toThrow(reason)
  })

  test('may be any public https address, with a path, a query and a high port', () => {
    for (const url of [
      'https://example.com/a?b=c',
      'https://8.8.8.8:8443/',
      'https://[2606:4700::1111]/',
      'https://例え.jp/',
    ])
      expect(() => strict.judgeUrl(url), url).not.toThrow()
  })

  test('on this machine is allowed where the rules say so, but never at the port of our database', () => {
    const fence = new Fence(local)
    for (const url of ['http://127.0.0.1:3000/', 'http://localhost/', 'http://[::1]:8080/'])
      expect(() => fence.judgeUrl(url), url).not.toThrow()
    for (const url of ['http://127.0.0.1:5432/', 'http://localhost:6543/', 'http://[::1]:5432/'])
      expect(() => fence.judgeUrl(url), url).toThrow('database')
    expect(() => fence.judgeUrl('http://10.0.0.1/')).toThrow('private')
  })
})

describe('a connection', () => {
  const url = (host: string) => `http://${host}:${receiver.port}/`

  test('is opened to a name whose addresses are allowed', async () => {
    const sent = await send(url('hook.example'), { answers: [[ipv4('127.0.0.1')]] })
    expect(sent).toMatchObject({ status: 200, error: null, hasArrived: true, asked: ['hook.example'] })
  })

  test('is not opened if any address of the answer is refused', async () => {
    const answers = [[ipv4('127.0.0.1'), ipv4('10.0.0.1')]]
    expect(await send(url('mixed.example'), { answers })).toMatchObject({ error: 'address', hasArrived: false })
    const loopback = { rules: { ...local, allowsLoopback: false }, answers: [[ipv4('8.8.8.8'), ipv4('127.0.0.1')]] }
    expect(await send(url('mixed.example'), loopback)).toMatchObject({ error: 'address', hasArrived: false })
  })

  test('is judged by the DNS answer that it is opened with: a name that changes its address in between gains nothing', async () => {
    const rules = { ...local, allowsLoopback: false }
    const rebound = await send(url('rebind.example'), { rules, answers: [[ipv4('127.0.0.1')], [ipv4('8.8.8.8')]] })
    expect(rebound).toMatchObject({ error: 'address', hasArrived: false, asked: ['rebind.example'] })
  })

  test('to an IP literal, which is not resolved, is also judged', async () => {
    const rules = { ...local, allowsLoopback: false }
    for (const host of ['127.0.0.1', '2130706433', '0x7f000001', '[::ffff:7f00:1]'])
      expect(await send(url(host), { rules }), host).toMatchObject({ error: 'address', hasArrived: false, asked: [] })
  })

  test('to another address than the DNS answer is closed before anything is sent', async () => {
    // The address of the lookup is allowed, but the address of the socket is not.
    class Forgetful extends Fence {
      private judged = 0
      override judgeAddress(text: string, port: number): void {
        this.judged += 1
        if (this.judged > 1) super.judgeAddress(text, port)
      }
    }
    const fence = new Forgetful({ ...local, allowsLoopback: false }, (_, callback) =>
      callback(null, [ipv4('127.0.0.1')]),
    )
    const sender = new Sender(fence, { clockMs: Date.now })
    const before = receiver.received.length
    const outgoing = {
      url: url('elsewhere.example'),
      headers: {},
      keys: [keyOf('whsec_AAAA')],
      id: 'evt_1',
      body: '{}',
    }
    expect(await sender.send(outgoing)).toMatchObject({ error: 'address', status: null })
    await sender.close()
    expect(receiver.received).toHaveLength(before)
  })

  test('is not opened by a redirect, and a DNS answer without addresses is a failure', async () => {
    receiver.answerWith(307, { location: 'http://10.0.0.1/' })
    expect(await send(url('hook.example'), { answers: [[ipv4('127.0.0.1')]] })).toMatchObject({
      ...{ status: 307, error: 'redirect' },
    })
    receiver.answerWith(200)
    expect(await send(url('nowhere.example'), { answers: [[]] })).toMatchObject({ error: 'address', hasArrived: false })
  })
})

describe('the resolver', () => {
  /** A name server that gives 127.0.0.1 for names that begin with `alive`, and never answers about others. */
  async function startNameServer() {
    const server = createSocket('udp4')
    const asked: string[] = []
    server.on('message', (query, { port, address }) => {
      const nameEnd = query.indexOf(0, 12)
      const name = query.subarray(13, nameEnd).toString('latin1')
      asked.push(name)
      if (!name.startsWith('alive')) return
      const question = query.subarray(12, nameEnd + 5)
      const isIpv4 = query.readUInt16BE(nameEnd + 1) === 1
      // Source: RFC 1035, section 4.1. A name that points back to the question, A, IN, 60 s, four bytes.
      const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1])
      const header = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0])
      server.send(Buffer.concat([header, question, ...(isIpv4 ? [record] : [])]), port, address)
    })
    server.bind(0, '127.0.0.1')
    await once(server, 'listening')
    const resolver = new Resolver({ timeout: 2_000, tries: 1 })
    resolver.setServers([`127.0.0.1:${server.address().port}`])
    return { server, resolver, asked }
  }

  test('still resolves other names and reads files while a name server is silent', async () => {
    const { server, resolver, asked } = await startNameServer()
    const sender = new Sender(new Fence(local, resolveBy(resolver)), { clockMs: Date.now })
    const sendTo = (host: string) => {
      const url = `http://${host}:${receiver.port}/`
      return sender.send({ url, headers: {}, keys: [keyOf('whsec_AAAA')], id: 'evt_1', body: '{}' })
    }
    const ended: string[] = []
    const silent = Array.from({ length: 16 }, async (_, index) => {
      const outcome = await sendTo(`silent${index}.example`)
      ended.push('silent')
      return outcome
    })
    await expect.poll(() => asked.length).toBeGreaterThanOrEqual(32)
    expect(await sendTo('alive.example')).toMatchObject({ status: 200, error: null })
    await readFile(new URL(import.meta.url))
    expect(ended).toEqual([])
    for (const outcome of await Promise.all(silent)) expect(outcome).toMatchObject({ status: null, error: 'dns' })
    await sender.close()
    server.close()
  })

  test('knows localhost without asking', async () => {
    const { server, resolver, asked } = await startNameServer()
    const sender = new Sender(new Fence(local, resolveBy(resolver)), { clockMs: Date.now })
    const url = `http://localhost:${receiver.port}/`
    const outgoing = { url, headers: {}, keys: [keyOf('whsec_AAAA')], id: 'evt_1', body: '{}' }
    expect(await sender.send(outgoing)).toMatchObject({ status: 200, error: null })
    expect(asked).toEqual([])
    await sender.close()
    server.close()
  })
})

import type { LookupAddress } from 'node:dns'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Receiver, startReceiver } from '../../test/receiver.ts'
import { Fence, type FenceRules } from './fence.ts'
import { Sender } from './send.ts'

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
  const outgoing = { url, headers: {}, secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], id: 'evt_1', body: '{}' }
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

  test('judges the answer that it connects by: a name that changes its address in between gains nothing', async () => {
    const rules = { ...local, allowsLoopback: false }
    const rebound = await send(url('rebind.example'), { rules, answers: [[ipv4('127.0.0.1')], [ipv4('8.8.8.8')]] })
    expect(rebound).toMatchObject({ error: 'address', hasArrived: false, asked: ['rebind.example'] })
  })

  test('to an IP literal, which no resolver sees, is judged as well', async () => {
    const rules = { ...local, allowsLoopback: false }
    for (const host of ['127.0.0.1', '2130706433', '0x7f000001', '[::ffff:7f00:1]'])
      expect(await send(url(host), { rules }), host).toMatchObject({ error: 'address', hasArrived: false, asked: [] })
  })

  test('to a socket that leads elsewhere than the answer said is closed before anything is sent', async () => {
    // The lookup was passed, and the address of the socket is not.
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
    const outgoing = { url: url('elsewhere.example'), headers: {}, secrets: ['whsec_AAAA'], id: 'evt_1', body: '{}' }
    expect(await sender.send(outgoing)).toMatchObject({ error: 'address', status: null })
    await sender.close()
    expect(receiver.received).toHaveLength(before)
  })

  test('is not opened by a redirect, and an answer without addresses is a failure', async () => {
    receiver.answerWith(307, { location: 'http://10.0.0.1/' })
    expect(await send(url('hook.example'), { answers: [[ipv4('127.0.0.1')]] })).toMatchObject({
      ...{ status: 307, error: 'redirect' },
    })
    receiver.answerWith(200)
    expect(await send(url('nowhere.example'), { answers: [[]] })).toMatchObject({ error: 'address', hasArrived: false })
  })
})

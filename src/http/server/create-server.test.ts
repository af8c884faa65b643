import { writeFile } from 'node:fs/promises'
import net from 'node:net'
import { gzipSync } from 'node:zlib'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { newSecret } from '../../partners/api-keys.ts'
import { createServer } from './create-server.ts'

let harness: Harness
let port: number
beforeAll(async () => {
  harness = await startHarness()
  port = Number(new URL(await harness.app.listen({ host: '127.0.0.1', port: 0 })).port)
})
afterAll(() => harness.stop())

const path = '/v1/pay/withdrawals/intent'
const good = { memberId: 'mem_01kah4pzc5e4r8v2m6t0x9y3bd', amount: { amount: 5_000, currency: 'GBP' } }
const codes = (answer: { body: { issues: { code: string }[] } }) => answer.body.issues.map(issue => issue.code)

describe('authentication', () => {
  test.each([
    ['no key', null],
    ['an empty key', ''],
    ['text that is not a key', 'hello'],
    ['a key whose checksum is wrong', `${newSecret('sandbox').slice(0, -1)}!`],
    ['a well-formed but unknown key', newSecret('sandbox')],
    ['a key of the other mode', newSecret('live')],
  ])('%s is refused before the rest of the request is read', async (_, key) => {
    for (const answer of [
      await harness.call('GET', '/v1/tiers', { key }),
      await harness.call('POST', path, { key, raw: '{"broken' }),
      await harness.call('GET', '/v1/no/such/path', { key }),
      await harness.call('PUT', '/v1/tiers', { key }),
    ]) {
      expect(answer.status).toBe(401)
      expect(answer.body.issues).toEqual([{ code: 'HeaderValidation', message: expect.any(String), path: 'x-api-key' }])
    }
  })

  test('a revoked key is refused within a second, and the partner’s other keys keep working', async () => {
    const { key, secret } = await harness.addKey(['members:read'])
    expect((await harness.call('GET', '/v1/tiers', { key: secret })).status).toBe(200)
    await harness.db.updateTable('apiKeys').set({ revokedAt: harness.clock.now() }).where('id', '=', key.id).execute()
    harness.clock.advance({ seconds: 1 })
    expect((await harness.call('GET', '/v1/tiers', { key: secret })).status).toBe(401)
    expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
  })

  test('a key stops working at its expiry, to the second', async () => {
    const { secret } = await harness.addKey(['members:read'], {
      expiresAt: new Date(harness.clock.now().getTime() + 60_000),
    })
    harness.clock.advance({ seconds: 59 })
    expect((await harness.call('GET', '/v1/tiers', { key: secret })).status).toBe(200)
    harness.clock.advance({ seconds: 1 })
    expect((await harness.call('GET', '/v1/tiers', { key: secret })).status).toBe(401)
  })

  test('a key’s last use is recorded', async () => {
    const { key, secret } = await harness.addKey(['members:read'])
    await harness.call('GET', '/v1/tiers', { key: secret })
    const { lastUsedAt } = await harness.db
      .selectFrom('apiKeys')
      .select('lastUsedAt')
      .where('id', '=', key.id)
      .executeTakeFirstOrThrow()
    expect(lastUsedAt).toEqual(harness.clock.now())
  })

  test('a key without the scope is forbidden, whether or not the request is valid', async () => {
    const { secret } = await harness.addKey(['members:read'])
    const answer = await harness.call('POST', path, { key: secret, raw: 'not even JSON' })
    expect(answer.status).toBe(403)
    expect(codes(answer)).toEqual(['Forbidden'])
  })

  test('a suspended partner is forbidden', async () => {
    const mine = await harness.addPartner('Suspended')
    await harness.db
      .updateTable('partners')
      .set({ suspendedAt: harness.clock.now() })
      .where('id', '=', mine.partner.id)
      .execute()
    const answer = await harness.call('GET', '/v1/tiers', { key: mine.key })
    expect(answer.status).toBe(403)
  })
})

test('a partner beyond its rate limit gets a retry-after, and others are not slowed', async () => {
  const mine = await harness.addPartner('Hasty', { requestsPerSecond: 2, requestsBurst: 3 })
  const answers = []
  for (let count = 0; count < 4; count++) answers.push(await harness.call('GET', '/v1/tiers', { key: mine.key }))
  expect(answers.map(answer => answer.status)).toEqual([200, 200, 200, 429])
  expect(answers[0]?.headers.ratelimit).toBe('"partner";r=2;t=1')
  const refused = answers[3]
  expect(refused?.body.issues[0].code).toBe('RateLimitExceeded')
  expect((await harness.call('GET', '/v1/tiers')).status).toBe(200)
  harness.clock.advance({ seconds: Number(refused?.headers['retry-after']) })
  expect((await harness.call('GET', '/v1/tiers', { key: mine.key })).status).toBe(200)
})

describe('strict reading of requests', () => {
  test('an unknown path is not found, and a wrong method names the allowed ones', async () => {
    const missing = await harness.call('GET', '/v1/nothing')
    expect([missing.status, codes(missing)]).toEqual([404, ['NotFound']])
    const wrong = await harness.call('PUT', '/v1/pay/run')
    expect([wrong.status, codes(wrong), wrong.headers.allow]).toEqual([405, ['BadRequest'], 'POST'])
    expect((await harness.call('POST', '/v1/members/mem_01kah4pzc5e4r8v2m6t0x9y3bd')).headers.allow).toBe(
      'DELETE, GET, PATCH, PUT',
    )
  })

  test.each([
    '/v1/members/%00',
    '/v1/members/%zz',
    '/v1/members/%ff',
    '/v1/members/..%2f..%2fetc',
    '/v1/tiers/',
    '//v1/tiers',
    '/V1/TIERS',
  ])('the path %s is refused in the contract’s shape', async bad => {
    const answer = await harness.call('GET', bad)
    expect([400, 404]).toContain(answer.status)
  })

  test.each([
    ['another media type', { 'content-type': 'text/plain' }, 415],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['another charset', { 'content-type': 'application/json; charset=latin1' }, 415],
    ['a content-encoding', { 'content-encoding': 'gzip' }, 415],
  ])('%s is refused', async (_, headers, status) => {
    const raw = 'content-encoding' in headers ? gzipSync(JSON.stringify(good)) : JSON.stringify(good)
    const answer = await harness.call('POST', path, { raw, headers: headers as Record<string, string> })
    expect([answer.status, codes(answer)]).toEqual([status, ['BadRequest']])
  })

  test.each([
    ['broken JSON', '{"memberId":'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['two JSON texts', '{}{}'],
  ])('%s is a bad request', async (_, raw) => {
    const answer = await harness.call('POST', path, { raw })
    expect([answer.status, codes(answer)]).toEqual([400, ['BadRequest']])
  })

  test('duplicate keys, NUL and lone surrogates are reported with their field', async () => {
    for (const [raw, field] of [
      ['{"memberId":"a","memberId":"b","amount":{"amount":1,"currency":"GBP"}}', 'memberId'],
      ['{"memberId":"mem_\\u0000","amount":{"amount":1,"currency":"GBP"}}', 'memberId'],
      ['{"memberId":"\\ud800","amount":{"amount":1,"currency":"GBP"}}', 'memberId'],
      [
        '{"memberId":"mem_01kah4pzc5e4r8v2m6t0x9y3bd","amount":{"amount":1,"amount":2,"currency":"GBP"}}',
        'amount.amount',
      ],
    ]) {
      const { status, body } = await harness.call('POST', path, { raw: raw ?? '' })
      expect(status).toBe(400)
      expect(body.issues).toEqual([{ code: 'BodyValidation', message: expect.any(String), path: field }])
    }
  })

  test('the body of an unknown path is not read', async () => {
    for (const url of ['/v1/nothing', '/nothing', '/livez']) {
      const answer = await harness.call('POST', url, { raw: '{"broken', headers: { 'content-type': 'text/plain' } })
      expect(answer.status).toBe(url === '/livez' ? 405 : 404)
    }
  })

  test('a path parameter of any length is validated by its schema', async () => {
    const answer = await harness.call('GET', `/v1/members/${'a'.repeat(5_000)}`)
    expect([answer.status, codes(answer)]).toEqual([400, ['PathValidation']])
  })

  test('a body that is too large is refused', async () => {
    const answer = await harness.call('POST', path, { raw: `"${'x'.repeat(3 * 1024 * 1024)}"` })
    expect([answer.status, codes(answer)]).toEqual([413, ['BadRequest']])
  })

  test.each(['[]', '"text"', 'null', '42', ''])('the body %j is reported as a whole', async raw => {
    const { status, body } = await harness.call('POST', path, { raw })
    expect(status).toBe(400)
    expect(body.issues[0]).toMatchObject({ code: 'BodyValidation', path: 'body' })
  })

  test('at most a hundred unknown fields are listed, and the response says if there are more', async () => {
    const raw = JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 1])))
    const { status, body } = await harness.call('POST', path, { raw })
    expect(status).toBe(400)
    expect(body.issues).toHaveLength(101)
    expect(body.issues[100].message).toBe('and more; fix these issues first')
  })

  test('a body is refused by an operation that takes none', async () => {
    const memberId = await harness.addMember()
    for (const [method, url] of [
      ['DELETE', `/v1/members/${memberId}`],
      ['POST', `/v1/members/${memberId}/activate`],
    ] as const) {
      const { status, body } = await harness.call(method, url, { body: { surprise: 1 } })
      expect(status).toBe(400)
      expect(body.issues).toEqual([{ code: 'BodyValidation', message: expect.any(String), path: 'body' }])
    }
  })

  test('__proto__ and constructor are refused like any other unknown field', async () => {
    const raw =
      '{"__proto__":{"x":1},"constructor":1,"memberId":"mem_01kah4pzc5e4r8v2m6t0x9y3bd","amount":{"amount":1,"currency":"GBP"}}'
    const { body } = await harness.call('POST', path, { raw })
    expect(body.issues.map((issue: { path: string }) => issue.path).sort()).toEqual(['__proto__', 'constructor'])
  })
})

test.each(['ENOSPC', 'EDQUOT', 'EROFS', 'EMFILE'])(
  'a body that runs out of disk space or file handles (%s) is 503, not 500',
  async code => {
    const app = createServer({
      db: harness.db,
      sealer: harness.sealer,
      log: pino({ level: 'silent' }),
      now: harness.clock.now,
      mode: harness.mode,
    })
    app.get('/full', async () => {
      // ENOSPC is real; the others would need a quota, a mount, or every file handle of the machine.
      if (code === 'ENOSPC') await writeFile('/dev/full', 'x')
      throw Object.assign(new Error(code), { code })
    })
    const answer = await app.inject('/full')
    expect([answer.statusCode, answer.headers['retry-after'], codes({ body: answer.json() })]).toEqual([
      ...[503, '60'],
      ['InternalServerError'],
    ])
    await app.close()
  },
)

describe('every response', () => {
  test('has a request id, the caller’s own if that is valid', async () => {
    expect(
      (await harness.call('GET', '/v1/tiers', { headers: { 'x-request-id': 'my-id_1.2' } })).headers['x-request-id'],
    ).toBe('my-id_1.2')
    for (const odd of ['a b', 'x'.repeat(200), '<script>']) {
      expect(
        (await harness.call('GET', '/v1/tiers', { headers: { 'x-request-id': odd } })).headers['x-request-id'],
      ).toMatch(/^req_/)
    }
  })

  test('the table of errors is machine-readable and needs no key', async () => {
    const { status, body } = await harness.call('GET', '/v1/errors', { key: null })
    expect(status).toBe(200)
    expect(body).toContainEqual(
      expect.objectContaining({ code: 'MemberNotFound', status: 404, order: 9, extra: ['memberId'] }),
    )
  })

  test('the liveness probe responds', async () => {
    const { status, body } = await harness.call('GET', '/livez', { key: null })
    expect([status, body]).toEqual([200, { status: 'ok' }])
  })
})

// Requests that no HTTP client sends.
describe('on the wire', () => {
  const send = (text: string, later = '') =>
    new Promise<string>((resolve, reject) => {
      const socket = net.connect({ host: '127.0.0.1', port })
      let answer = ''
      socket.setEncoding('utf8')
      socket.on('data', chunk => {
        answer += chunk
      })
      socket.on('close', () => resolve(answer))
      socket.on('error', reject)
      socket.write(text)
      // Once another connection has its response, this request is being handled.
      if (later !== '') void harness.call('GET', '/livez', { key: null }).then(() => socket.write(later))
    })
  const parsed = (answer: string) => {
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    return {
      status: Number(head.split(' ')[1]),
      head: head.toLowerCase(),
      issues: JSON.parse(body).issues as { code: string }[],
    }
  }

  test.each([
    ['garbage', 'hello\r\n\r\n', 400],
    ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    [
      'two content lengths',
      'POST /v1/tiers HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
    ],
    [
      'both a length and chunks',
      'POST /v1/tiers HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['no host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['headers beyond the limit', `GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
    ['two hosts', 'GET /livez HTTP/1.1\r\nHost: x\r\nhost: y\r\nConnection: close\r\n\r\n', 400],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n', 405],
    ['CONNECT to one of our paths', 'CONNECT /v1/tiers HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    [
      'another transfer-encoding',
      'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      400,
    ],
    ['an unknown expectation', 'GET /v1/tiers HTTP/1.1\r\nHost: x\r\nExpect: magic\r\nConnection: close\r\n\r\n', 401],
  ])('%s gets a response in the contract’s shape', async (_, text, status) => {
    const answer = parsed(await send(text))
    expect(answer.status).toBe(status)
    expect(answer.issues[0]?.code).toMatch(/^(BadRequest|HeaderValidation)$/)
    for (const header of [
      'content-type: application/json; charset=utf-8',
      'cache-control: no-store',
      'x-request-id: req_',
      'ratelimit: ',
      'x-should-retry: false',
    ]) {
      expect(answer.head).toContain(header)
    }
  })

  // Tests that wait for a connection to close wait concurrently.
  test.concurrent.each([
    ['a length that is not a number', 'zz\r\n', 400],
    ['a length that overflows', `${'f'.repeat(20)}\r\n`, 400],
    ['no line end after a chunk', '2\r\n{}XX0\r\n\r\n', 400],
    ['endless extensions', `2;${'x'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n`, 400],
    ['an endless trailer', `2\r\n{}\r\n0\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ])(
    'a chunked body with %s gets a response, whether it arrives with its headers or later',
    async (_, chunks, status) => {
      const common = `Host: x\r\nx-api-key: ${harness.key}\r\nTransfer-Encoding: chunked\r\nContent-Type:`
      for (const head of [
        `POST ${path} HTTP/1.1\r\n${common} application/json\r\n\r\n`,
        `PUT /v1/members/jobs/csv HTTP/1.1\r\n${common} text/csv\r\n\r\n`,
      ]) {
        const answer = parsed(await send(head + chunks))
        expect([answer.status, answer.issues[0]?.code, answer.head.split('\r\n')[0]]).toEqual([
          status,
          'BadRequest',
          expect.stringContaining(String(status)),
        ])
      }
      const afterwards = await send(`POST ${path} HTTP/1.1\r\n${common} application/json\r\n\r\n`, chunks)
      expect(parsed(afterwards).status).toBe(status)
    },
  )

  test.concurrent('authentication comes before a malformed body', async () => {
    const answer = parsed(await send(`POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`))
    expect(answer.status).toBe(401)
  })

  test.each([
    ['content-type', 'BadRequest'],
    ['x-idempotency-key', 'HeaderValidation'],
    ['host', 'BadRequest'],
  ])('a second %s is refused, even with the same value', async (name, code) => {
    const once = ['Content-Type: application/json', 'Host: x', 'X-Idempotency-Key: a', 'Content-Length: 2']
    const twice = once.filter(each => each.toLowerCase().startsWith(name))
    const lines = [...once, ...twice, `x-api-key: ${harness.key}`, 'Connection: close']
    const answer = parsed(await send(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{}`))
    expect([answer.status, answer.issues.map(issue => issue.code)]).toEqual([400, [code]])
  })

  test('an unsupported upgrade is ignored, as HTTP requires', async () => {
    const answer = await send(
      `GET /v1/tiers HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('unreadable bytes after a valid request do not prevent its response', async () => {
    const answer = await send(`GET /v1/tiers HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\n\r\nrubbish\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain('"Silver"')
  })

  test('every request that was pipelined before unreadable bytes gets its response', async () => {
    const request = `GET /v1/tiers HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\n\r\n`
    const answer = await send(`${request}${request}rubbish\r\n\r\n`)
    expect(answer.match(/HTTP\/1\.1 200 /g)).toHaveLength(2)
  })

  test('two idempotency keys in one request are refused, not joined into a third', async () => {
    const keys = ['one', 'two'].map(key => `x-idempotency-key: ${key}\r\n`).join('')
    const head = `GET /v1/tiers HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${harness.key}\r\n`
    const answer = parsed(await send(`${head}${keys}\r\n`))
    expect(answer.status).toBe(400)
    expect(answer.issues).toMatchObject([{ code: 'HeaderValidation', path: 'x-idempotency-key' }])
    expect(await send(`${head}x-idempotency-key:  one, two \r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
    expect((await harness.call('GET', '/v1/idempotency-keys/one%2C%20two')).status).toBe(200)
  })
})

test.each([
  ['of another type', { 'content-type': 'text/xml' }, 415],
  ['with a wrong key', { 'x-api-key': 'wrong' }, 401],
])(
  'a large body %s is refused with a response that the client can read after sending the whole body',
  async (_, more, status) => {
    const body = Buffer.alloc(8 * 1024 * 1024, ' ')
    const headers = { host: 'x', 'x-api-key': harness.key, connection: 'close', 'content-length': body.length, ...more }
    const socket = net.connect({ host: '127.0.0.1', port }).setEncoding('utf8')
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`POST ${path} HTTP/1.1\r\n${head.join('')}\r\n`)
    const { promise: sent, resolve, reject } = Promise.withResolvers<void>()
    socket.once('error', reject).write(body, error => (error ? reject(error) : resolve()))
    await sent
    let answer = ''
    for await (const text of socket) answer += text
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  },
)

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const get = (url: string, headers: Record<string, string> = {}) => harness.app.inject({ url, headers })

test('the hosted page cannot be framed or stored, runs only our scripts, and tells no other site its address', async () => {
  const { statusCode, headers } = await get('/m')
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  const policy = String(headers['content-security-policy'])
  for (const part of [
    ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"],
    ...["base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"],
  ])
    expect(policy).toContain(part)
  expect(policy).not.toMatch(/unsafe|\*|https?:/)
  expect(headers['access-control-allow-origin']).toBeUndefined()
})

test('the files of the hosted page never change at their addresses', async () => {
  const { body } = await get('/m')
  const files = [...body.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file = '']) => file)
  expect(files).toHaveLength(3)
  for (const file of files) {
    const { statusCode, headers } = await get(file)
    expect([statusCode, headers['cache-control']], file).toEqual([200, 'public, max-age=31536000, immutable'])
  }
  expect(body).not.toMatch(/<style|<script>|\son\w+=|style=/)
})

test('any page may load the component, at a permanent address', async () => {
  const { statusCode, headers, body } = await get('/components/midmonth-withdraw.js')
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8'])
  expect(headers).toMatchObject({
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'cache-control': 'public, max-age=60',
  })
  expect(body).toContain('midmonth-withdraw')
  const again = await get('/components/midmonth-withdraw.js', { 'if-none-match': String(headers.etag) })
  expect(again.statusCode).toBe(304)
})

test('the response to a token in the path does not repeat the token', async () => {
  const created = await harness.call('POST', '/v1/member-sessions', {
    body: { memberId: await harness.addMember(), scope: 'read' },
  })
  const { token } = created.body
  for (const url of [`/m/${token}`, `/components/${token}`]) {
    const answer = await get(url)
    expect(answer.statusCode).toBe(404)
    expect(answer.body).not.toContain(token)
  }
})

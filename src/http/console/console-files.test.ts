import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../../test/harness/console.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'

let harness: Harness
const logged: string[] = []
beforeAll(async () => {
  harness = await startHarness({ log: pino({ level: 'warn' }, { write: line => logged.push(line) }) })
})
afterAll(() => harness?.stop())

const get = async (url: string, headers: Record<string, string> = {}) =>
  await harness.app.inject({ method: 'GET', url, headers })

const assets = new URL('../../../packages/console/dist/assets/', import.meta.url)

test('every address of the console serves its page, under a policy without inline scripts, inline styles or eval', async () => {
  for (const url of ['/console', '/console/sign-in', '/console/par_1/withdrawals/w_1?status=paid']) {
    const { statusCode, headers, body } = await get(url)
    expect(statusCode, url).toBe(200)
    expect(headers['content-type']).toBe('text/html; charset=utf-8')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("require-trusted-types-for 'script'")
    expect(policy).not.toContain('unsafe')
    expect(headers['cache-control']).toBe('no-cache')
    expect(body).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?:/)
  }
})

test('assets have a hash in their names and never change; the page is revalidated', async () => {
  const { body, headers } = await get('/console')
  const [script = ''] = /\/console\/assets\/[\w-]+\.js/.exec(body) ?? []
  const asset = await get(script, { 'accept-encoding': 'br' })
  expect(asset.statusCode).toBe(200)
  expect(asset.headers).toMatchObject({
    'cache-control': 'public, max-age=31536000, immutable',
    'content-encoding': 'br',
    'content-type': 'text/javascript; charset=utf-8',
  })
  expect((await get('/console', { 'if-none-match': String(headers.etag) })).statusCode).toBe(304)
})

test('an unknown asset or console operation is an error in the shape of the API', async () => {
  for (const url of ['/console/assets/none.js', '/console/assets/..%2Findex.html', '/console/v1/nothing']) {
    const answer = await get(url)
    expect(answer.statusCode, url).toBe(404)
    expect(answer.json().issues[0].code).toBe('NotFound')
  }
})

test('a page’s error report by a user is logged; a longer report, or a stranger’s, is refused', async () => {
  const { call } = await signIn(harness, { roles: ['viewer'] })
  const body = { message: 'undefined is not a function', stack: 'at index.js:1', page: '/console/par_1/members' }
  expect((await call('POST', '/console/v1/errors', { body })).status).toBe(200)
  expect(logged.filter(line => line.includes(body.message))).toHaveLength(1)
  const long = { ...body, message: 'x'.repeat(2_001) }
  expect((await call('POST', '/console/v1/errors', { body: long })).status).toBe(400)
  const stranger = await harness.app.inject({ method: 'POST', url: '/console/v1/errors', payload: body })
  expect(stranger.statusCode).toBeGreaterThanOrEqual(401)
  expect(logged.filter(line => line.includes(body.message))).toHaveLength(1)
})

test('of a storm of reports from one session, the first thirty are logged, and then one a minute', async () => {
  const { call } = await signIn(harness, { roles: ['viewer'] })
  const body = (count: number) => ({ message: `storm ${count}`, stack: '', page: '/console' })
  const statuses = new Map<number, number>()
  for (let count = 0; count < 1_000; count++) {
    // Slowly enough for the rate limit of requests, which is separate.
    if (count % 100 === 0) harness.clock.advance({ seconds: 5 })
    const { status } = await call('POST', '/console/v1/errors', { body: body(count) })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
  }
  expect(statuses).toEqual(
    new Map([
      [200, 30],
      [429, 970],
    ]),
  )
  expect(logged.filter(line => line.includes('"storm '))).toHaveLength(30)
  harness.clock.advance({ seconds: 60 })
  expect((await call('POST', '/console/v1/errors', { body: body(1_000) })).status).toBe(200)
})

test('the console without its plots is at most 150 kB, compressed', () => {
  const sizes = readdirSync(assets)
    .filter(name => /\.(js|css)$/.test(name) && !name.startsWith('plot-'))
    .map(name => gzipSync(readFileSync(new URL(name, assets))).length)
  // The style sheet, the script, and the pages of operators.
  expect(sizes).toHaveLength(3)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(150_000)
})

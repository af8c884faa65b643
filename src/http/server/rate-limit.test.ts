import fc from 'fast-check'
import { expect, test } from 'vitest'
import { networkOf, RateLimiter, rateLimitHeaders } from './rate-limit.ts'

const limit = { perSecond: 100, burst: 200 }
const at = (ms: number) => new Date(Date.UTC(2026, 2, 10) + ms)

test('a quiet partner may send a burst, and then the steady rate', () => {
  const limiter = new RateLimiter()
  const burst = Array.from({ length: 201 }, () => limiter.take('par_a', limit, at(0)).allowed)
  expect(burst.filter(Boolean)).toHaveLength(200)
  const second = Array.from({ length: 150 }, () => limiter.take('par_a', limit, at(1_000)).allowed)
  expect(second.filter(Boolean)).toHaveLength(100)
})

test('one partner’s burst does not slow another', () => {
  const limiter = new RateLimiter()
  for (let count = 0; count < 500; count++) limiter.take('par_a', limit, at(0))
  expect(limiter.take('par_b', limit, at(0)).allowed).toBe(true)
})

test('a request after the retry-after is allowed', () => {
  const slow = { perSecond: 1, burst: 3 }
  const limiter = new RateLimiter()
  for (let count = 0; count < 3; count++) limiter.take('par_a', slow, at(0))
  const refused = limiter.take('par_a', slow, at(0))
  expect(refused).toEqual({ allowed: false, remaining: 0, retryAfterSeconds: 1 })
  expect(limiter.take('par_a', slow, at(refused.retryAfterSeconds * 1_000)).allowed).toBe(true)
})

test('over any period, no more requests are allowed than the burst and the rate permit', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 500 }), gapsMs => {
      const limiter = new RateLimiter()
      let ms = 0
      let allowed = 0
      for (const gap of gapsMs) {
        ms += gap
        if (limiter.take('par_a', { perSecond: 5, burst: 10 }, at(ms)).allowed) allowed++
      }
      expect(allowed).toBeLessThanOrEqual(10 + Math.floor((ms * 5) / 1_000))
    }),
  )
})

test('setting a clock back takes no tokens away', () => {
  const limiter = new RateLimiter()
  limiter.take('par_a', limit, at(10_000))
  expect(limiter.take('par_a', limit, at(0)).remaining).toBe(198)
})

test('the headers say how much of the quota is left and when it is full again', () => {
  expect(rateLimitHeaders(limit, 150)).toEqual({
    'ratelimit-policy': '"partner";q=200;w=2',
    ratelimit: '"partner";r=150;t=1',
  })
})

test('peeking takes no tokens', () => {
  const limiter = new RateLimiter()
  const slow = { perSecond: 1, burst: 1 }
  for (let count = 0; count < 3; count++) expect(limiter.peek('a', slow, at(0)).allowed).toBe(true)
  limiter.take('a', slow, at(0))
  expect(limiter.peek('a', slow, at(0))).toEqual({ allowed: false, remaining: 0, retryAfterSeconds: 1 })
})

test('beyond ten thousand names, the least recently used one is dropped', () => {
  const limiter = new RateLimiter()
  const slow = { perSecond: 1, burst: 1 }
  for (let index = 0; index < 10_000; index++) limiter.take(`name ${index}`, slow, at(0))
  limiter.take('name 0', slow, at(0))
  limiter.take('one more', slow, at(0))
  expect(limiter.peek('name 0', slow, at(0)).allowed).toBe(false)
  expect(limiter.peek('name 1', slow, at(0)).allowed).toBe(true)
  expect(limiter.peek('name 2', slow, at(0)).allowed).toBe(false)
})

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['unix:', 'unknown'],
  ['', 'unknown'],
])('the address %j is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

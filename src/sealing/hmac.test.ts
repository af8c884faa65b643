import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { Hmac } from './hmac.ts'

test('an HMAC equals that of Node for any key and text', () => {
  for (const key of [randomBytes(32), Buffer.alloc(0), randomBytes(64)]) {
    const hmac = new Hmac(key)
    // A longer text needs more room, and a shorter one after it is not affected by what is left there.
    for (const text of ['', 'abc', 'é€𝄞'.repeat(500), 'x'.repeat(10_000), 'abc', '\uD800'])
      expect(hmac.of(text)).toEqual(createHmac('sha256', key).update(text).digest())
  }
})

// RFC 4231, test case 2
test('an HMAC equals that of RFC 4231', () => {
  expect(new Hmac(Buffer.from('Jefe')).of('what do ya want for nothing?').toString('hex')).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  )
})

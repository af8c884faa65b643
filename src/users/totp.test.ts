import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../test/console.ts'
import { type Harness, startHarness } from '../../test/harness.ts'
import * as totp from './totp.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('with a key the secret is encrypted for its user, and a newer key in front keeps reading it', async () => {
  const [old, next] = [randomBytes(32), randomBytes(32)]
  const { user } = await signIn(harness)
  const other = await signIn(harness)
  const { db, clock } = harness
  const inTx = db.transaction()
  const begun = await inTx.execute(tx => totp.begin(tx, { user, keys: [old] }))
  const secret = Secret.fromBase32(begun.secret)
  const stored = await db.selectFrom('users').select('totpSecret').where('id', '=', user.id).executeTakeFirstOrThrow()
  expect(stored.totpSecret?.includes(Buffer.from(secret.bytes))).toBe(false)

  const code = () => new TOTP({ secret }).generate({ timestamp: clock.now().getTime() })
  const now = clock.now()
  await inTx.execute(tx => totp.confirm(tx, { userId: user.id, code: code(), keys: [next, old], now }))
  clock.advance({ seconds: 30 })
  const accept = (userId: string, keys: Buffer[]) =>
    inTx.execute(tx => totp.acceptCode(tx, { userId, code: code(), keys, now: clock.now() }))
  await expect(accept(user.id, [next])).rejects.toThrow(/OPENWAGE_SECRET_KEYS/)
  await expect(accept(user.id, [])).rejects.toThrow(/OPENWAGE_SECRET_KEYS/)
  expect(await accept(user.id, [next, old])).toBe('accepted')

  // The secret of one user is of no use in the row of another.
  const { totpSecret } = stored
  await db.updateTable('users').set({ totpSecret, totpConfirmedAt: now }).where('id', '=', other.user.id).execute()
  await expect(accept(other.user.id, [old])).rejects.toThrow(/OPENWAGE_SECRET_KEYS/)
})

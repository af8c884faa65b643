import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import * as totp from './totp.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('the secret of a second factor is sealed for its user, and is of no use in the row of another', async () => {
  const { user } = await signIn(harness)
  const other = await signIn(harness)
  const { db, clock } = harness
  const inTx = db.transaction()
  const begun = await inTx.execute(tx => totp.begin(tx, user))
  const secret = Secret.fromBase32(begun.secret)
  const stored = await db.selectFrom('users').select('totpSecret').where('id', '=', user.id).executeTakeFirstOrThrow()
  expect(stored.totpSecret?.includes(Buffer.from(secret.bytes))).toBe(false)

  const code = () => new TOTP({ secret }).generate({ timestamp: clock.now().getTime() })
  const now = clock.now()
  await inTx.execute(tx => totp.confirm(tx, { userId: user.id, code: code(), now }))
  clock.advance({ seconds: 30 })
  const accept = (userId: string) => inTx.execute(tx => totp.acceptCode(tx, { userId, code: code(), now: clock.now() }))
  expect(await accept(user.id)).toBe('accepted')

  const { totpSecret } = stored
  await db.updateTable('users').set({ totpSecret, totpConfirmedAt: now }).where('id', '=', other.user.id).execute()
  await expect(accept(other.user.id)).rejects.toThrow(`totp-secret of ${other.user.id}`)
})

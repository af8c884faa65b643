import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import * as auditLog from '../audit-log/audit-log.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { conflict, problem } from '../kernel/errors.ts'
import { hashOf } from '../kernel/secrets.ts'
import { sealerOf } from '../sealing/held.ts'
import type { SealedTable } from '../sealing/rewrap.ts'
import type { User } from './users.ts'

const periodMs = 30_000
// One step before and after: a clock may be off by half a minute. Source: RFC 6238, 5.2 and 6.
const window = 1
const recoveryCodesCount = 10

/** The table with the secrets of second factors. */
export const totpTable: SealedTable = {
  table: 'users',
  key: [['id', 'text']],
  columns: [{ name: 'totp_secret', kind: 'totp-secret' }],
  owner: 'id',
}

/**
 * Starts to set up a second factor. It counts only once `confirm` has seen a code.
 * @throws Problem `Conflict` if the user has one
 */
export async function begin(tx: Tx, user: Pick<User, 'id' | 'email'>): Promise<{ secret: string; uri: string }> {
  const secret = new Secret({ size: 20 })
  const sealed = sealerOf(tx).seal(Buffer.from(secret.bytes), { kind: 'totp-secret', owner: user.id })
  const { rows } = await sql`
    update users set totp_secret = ${sealed}, totp_last_step = null
     where id = ${user.id} and totp_confirmed_at is null
    returning 1`.execute(tx)
  if (rows.length === 0) throw conflict('You already have a second factor; remove it first')
  return { secret: secret.base32, uri: new TOTP({ issuer: 'Midmonth', label: user.email, secret }).toString() }
}

/**
 * Turns the second factor on.
 * @returns the recovery codes, which are shown only here
 * @throws Problem `Conflict` if it was not begun, `TotpRequired` if the code is wrong
 */
export async function confirm(
  tx: Tx,
  { userId, code, now }: { userId: string; code: string; now: Date },
): Promise<string[]> {
  const row = await readState(tx, userId)
  if (row?.totpSecret == null || row.totpConfirmedAt !== null)
    throw conflict('There is no second factor to confirm; begin again')
  const secret = sealerOf(tx).open(row.totpSecret, { kind: 'totp-secret', owner: userId })
  const step = stepOf(secret, { code, now, after: row.totpLastStep })
  if (step === undefined) throw problem('TotpRequired', 'The code is wrong; check the clock of your device')
  await sql`update users set totp_confirmed_at = ${now}, totp_last_step = ${step} where id = ${userId}`.execute(tx)
  const codes = Array.from({ length: recoveryCodesCount }, newRecoveryCode)
  await sql`delete from user_recovery_codes where user_id = ${userId}`.execute(tx)
  await tx
    .insertInto('userRecoveryCodes')
    .values(codes.map(each => ({ userId, hash: recoveryHash(userId, each) })))
    .execute()
  return codes
}

/** Removes the second factor, and records it. @returns whether there was one */
export async function remove(
  tx: Tx,
  { userId, actor, now }: { userId: string; actor: auditLog.Actor; now: Date },
): Promise<boolean> {
  const row = await readState(tx, userId)
  if (row === undefined || row.totpConfirmedAt === null) return false
  await sql`
    update users set totp_secret = null, totp_confirmed_at = null, totp_last_step = null
     where id = ${userId}`.execute(tx)
  await sql`delete from user_recovery_codes where user_id = ${userId}`.execute(tx)
  const change = { action: 'user.remove_totp', resourceId: userId, details: {} } as const
  await auditLog.record(tx, { partnerId: null, actor, change, now })
  return true
}

/**
 * Checks the code of a sign-in: of the app, or a recovery code. Either counts once: the step of an accepted code and those before it
 * are refused from then on, and a recovery code is deleted. The caller has locked the user.
 * @returns `accepted` also if the user has no second factor
 */
export async function acceptCode(
  tx: Tx,
  { userId, code, now }: { userId: string; code: string | undefined; now: Date },
): Promise<'accepted' | 'missing' | 'wrong'> {
  const row = await readState(tx, userId)
  if (row?.totpSecret == null || row.totpConfirmedAt === null) return 'accepted'
  if (code === undefined) return 'missing'
  if (!/^[0-9]{6}$/.test(code)) {
    const { rows } = await sql`
      delete from user_recovery_codes where user_id = ${userId} and hash = ${recoveryHash(userId, code)}
      returning 1`.execute(tx)
    return rows.length > 0 ? 'accepted' : 'wrong'
  }
  const secret = sealerOf(tx).open(row.totpSecret, { kind: 'totp-secret', owner: userId })
  const step = stepOf(secret, { code, now, after: row.totpLastStep })
  if (step === undefined) return 'wrong'
  await sql`update users set totp_last_step = ${step} where id = ${userId}`.execute(tx)
  return 'accepted'
}

async function readState(db: Reader, userId: string) {
  return await db
    .selectFrom('users')
    .select(['totpSecret', 'totpConfirmedAt', 'totpLastStep'])
    .where('id', '=', userId)
    .forUpdate()
    .executeTakeFirst()
}

/** The time step of a code; undefined if the code is wrong, or not later than one that was accepted. */
function stepOf(
  secret: Buffer,
  { code, now, after }: { code: string; now: Date; after: bigint | null },
): bigint | undefined {
  const timestamp = now.getTime()
  const totp = new TOTP({ secret: new Secret({ buffer: Uint8Array.from(secret).buffer }) })
  const delta = totp.validate({ token: code, timestamp, window })
  if (delta === null) return undefined
  const step = BigInt(Math.floor(timestamp / periodMs) + delta)
  return after !== null && step <= after ? undefined : step
}

// Each letter of 32 carries 5 bits: 80 bits in all, so that a plain hash of one cannot be reversed.
const alphabet = 'abcdefghjkmnpqrstuvwxyz023456789'

function newRecoveryCode(): string {
  const letters = [...randomBytes(16)].map(byte => alphabet.charAt(byte % 32))
  return [0, 4, 8, 12].map(at => letters.slice(at, at + 4).join('')).join('-')
}

function recoveryHash(userId: string, code: string): Buffer {
  return hashOf(`${userId} ${code.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}`)
}

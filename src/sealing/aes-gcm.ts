import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from 'node:crypto'

/** The length of a key in bytes. */
export const keyBytes = 32

const cipherName = 'aes-256-gcm'
const ivBytes = 12
const tagBytes = 16

/**
 * Encrypts with AES-256-GCM.
 * @param context authenticated, but not part of the result
 * @returns the IV, the ciphertext and the tag
 */
export function encrypt(key: KeyObject, plain: string | Buffer, context: string): Buffer {
  const iv = nextIv()
  const cipher = createCipheriv(cipherName, key, iv).setAAD(Buffer.from(context))
  const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  return Buffer.concat([iv, text, cipher.final(), cipher.getAuthTag()])
}

/** Reverses `encrypt`. @throws Error if the key or the context differs, or a byte was changed */
export function decrypt(key: KeyObject, sealed: Buffer, context: string): Buffer {
  if (sealed.length < ivBytes + tagBytes) throw new Error('The ciphertext is truncated')
  const end = sealed.length - tagBytes
  const decipher = createDecipheriv(cipherName, key, sealed.subarray(0, ivBytes), { authTagLength: tagBytes })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(end))
  return Buffer.concat([decipher.update(sealed.subarray(ivBytes, end)), decipher.final()])
}

// Random bytes are drawn for many IVs at once: a call for 12 bytes costs as much as the encryption of a short text.
const pool = Buffer.allocUnsafe(ivBytes * 1_024)
let drawn = pool.length

function nextIv(): Buffer {
  if (drawn === pool.length) {
    randomFillSync(pool)
    drawn = 0
  }
  drawn += ivBytes
  return pool.subarray(drawn - ivBytes, drawn)
}

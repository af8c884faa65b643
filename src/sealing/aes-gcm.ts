import { createCipheriv, createDecipheriv, type KeyObject, randomFillSync } from 'node:crypto'

/** The length of a key in bytes. */
export const keyBytes = 32

const cipherName = 'aes-256-gcm'
const ivBytes = 12
const tagBytes = 16

/**
 * Encrypts with AES-256-GCM.
 * @param context authenticated, but not part of the result
 * @param header put before the result
 * @returns the IV, the ciphertext and the tag
 */
export function encrypt(key: KeyObject, plain: string | Buffer, context: string, header: Buffer = noHeader): Buffer {
  const iv = nextIv()
  const cipher = createCipheriv(cipherName, key, iv).setAAD(Buffer.from(context))
  const text = typeof plain === 'string' ? cipher.update(plain, 'utf8') : cipher.update(plain)
  // A stream cipher has no last block.
  cipher.final()
  return Buffer.concat([header, iv, text, cipher.getAuthTag()])
}

const noHeader = Buffer.alloc(0)

/** The context of a value: its kind and its owner. */
export function contextOf(kind: string, owner: string): string {
  return `${kind} of ${owner}`
}

/** The error of a sealed value that is not what it should be. */
export function notOpened(context: string, cause: unknown): Error {
  return new Error(`A sealed value (${context}) cannot be opened: it was changed or belongs elsewhere`, { cause })
}

/** Reverses `encrypt` without a header. @throws Error if the key or the context differs, or a byte was changed */
export function decrypt(key: KeyObject, sealed: Buffer, context: string): Buffer {
  if (sealed.length < ivBytes + tagBytes) throw new Error('The ciphertext is truncated')
  const end = sealed.length - tagBytes
  const decipher = createDecipheriv(cipherName, key, sealed.subarray(0, ivBytes), { authTagLength: tagBytes })
    .setAAD(Buffer.from(context))
    .setAuthTag(sealed.subarray(end))
  const plain = decipher.update(sealed.subarray(ivBytes, end))
  // Checks the tag.
  decipher.final()
  return plain
}

/**
 * Returns a function that draws random bytes, which are valid until the next thousand were drawn. They are drawn for many calls at once:
 * a call for 12 bytes costs as much as the encryption of a short text.
 */
export function randomPool(size: number): () => Buffer {
  const pool = Buffer.allocUnsafe(size * 1_024)
  let drawn = pool.length
  return () => {
    if (drawn === pool.length) {
      randomFillSync(pool)
      drawn = 0
    }
    drawn += size
    return pool.subarray(drawn - size, drawn)
  }
}

const nextIv = randomPool(ivBytes)

import { createSecretKey, type KeyObject } from 'node:crypto'
import { contextOf, decrypt, encrypt, keyBytes, notOpened, randomPool } from './aes-gcm.ts'

const version = 1
const versionByte = Buffer.of(version)

/**
 * A key that seals what belongs to one owner, and that is stored wrapped with the installation's key. What it seals is lost when the key
 * is destroyed, also in copies of the value. A sealed value is a version and the result of `encrypt`; its context names the kind of
 * value and the owner.
 */
export class DataKey<Kind extends string> {
  readonly #key: KeyObject
  readonly #owner: string

  /** @param key 32 random bytes */
  constructor(key: Buffer, owner: string) {
    this.#key = createSecretKey(key)
    this.#owner = owner
  }

  seal(plain: string | Buffer, kind: Kind): Buffer {
    return encrypt(this.#key, plain, contextOf(kind, this.#owner), versionByte)
  }

  /** @throws Error if the value was changed, or sealed as another kind or with another key */
  open(sealed: Buffer, kind: Kind): string {
    return this.openBytes(sealed, kind).toString()
  }

  /** @throws like `open` */
  openBytes(sealed: Buffer, kind: Kind): Buffer {
    const context = contextOf(kind, this.#owner)
    try {
      if (sealed[0] !== version) throw new Error('The value has an unknown version')
      return decrypt(this.#key, sealed.subarray(1), context)
    } catch (cause) {
      throw notOpened(context, cause)
    }
  }
}

const nextKey = randomPool(keyBytes)

/** The bytes of a new key. */
export function newKey(): Buffer {
  return Buffer.from(nextKey())
}

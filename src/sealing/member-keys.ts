import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { decrypt, encrypt, keyBytes } from './aes-gcm.ts'
import type { Sealer } from './sealer.ts'

/** The member that a key and its sealed values belong to. */
export type Owner = { partnerId: string; memberId: string }

/** What is sealed with a key of a member. */
export type MemberValue = 'account' | 'profile'

const version = 1

/**
 * A key of one member. What it seals is lost when the key is destroyed, also in copies of the value. A sealed value is a version
 * and the result of `encrypt`; its context names the kind of value, the partner and the member, but not the row, so that it can be
 * copied.
 */
export class MemberKey {
  readonly #key: KeyObject
  readonly #owner: string

  constructor(key: Buffer, owner: Owner) {
    this.#key = createSecretKey(key)
    this.#owner = nameOf(owner)
  }

  seal(plain: string, kind: MemberValue): Buffer {
    return Buffer.concat([versionByte, encrypt(this.#key, plain, `${kind} of ${this.#owner}`)])
  }

  /** @throws Error if the value was changed, or sealed as another kind or with another key */
  open(sealed: Buffer, kind: MemberValue): string {
    const context = `${kind} of ${this.#owner}`
    try {
      if (sealed[0] !== version) throw new Error('The value has an unknown version')
      return decrypt(this.#key, sealed.subarray(1), context).toString()
    } catch (cause) {
      throw new Error(`A sealed value (${context}) cannot be opened: it was changed or belongs elsewhere`, { cause })
    }
  }
}

const versionByte = Buffer.of(version)

/** What a key of a member seals: the profile, or whom payments were made to, which the law keeps for longer. */
export type KeyUse = 'profile' | 'payment'

/** Creates a key of a member. @returns the key, and its wrapped form to store */
export function createMemberKey(sealer: Sealer, use: KeyUse, owner: Owner): { key: MemberKey; wrapped: Buffer } {
  const key = randomBytes(keyBytes)
  return { key: new MemberKey(key, owner), wrapped: sealer.seal(key, wrapping(use, owner)) }
}

/** @throws Error if the stored key was changed, or has another use or member */
export function openMemberKey(sealer: Sealer, use: KeyUse, wrapped: Buffer, owner: Owner): MemberKey {
  return new MemberKey(sealer.open(wrapped, wrapping(use, owner)), owner)
}

const wrapping = (use: KeyUse, owner: Owner) => ({ kind: `${use}-key` as const, owner: nameOf(owner) })

function nameOf({ partnerId, memberId }: Owner): string {
  return `${partnerId} ${memberId}`
}

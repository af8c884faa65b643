import { createHmac, createPrivateKey, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { decrypt, encrypt, keyBytes } from './aes-gcm.ts'

/**
 * The context of a sealed value: the kind of field, and the partner or user that owns the value. The context is authenticated,
 * so a value cannot be opened as another kind or for another owner. It does not name the row, so that a value can be copied.
 */
export type Sealed = {
  kind: 'webhook-secret' | 'webhook-headers' | 'totp-secret' | 'replay' | 'profile-key' | 'payment-key' | 'import-key'
  owner: string
}

/** A key of the installation and its number, which each sealed value names. */
export type InstallationKey = { number: number; key: Buffer }

const version = 1
const saltBytes = 16
const fingerprintBytes = 16
const headerBytes = 2 + saltBytes
// PKCS #8 of an Ed25519 key up to its 32 bytes. Source: RFC 8410, section 7
const ed25519Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

const limits = {
  // NIST SP 800-38D, 8.3: at most 2^32 values with random IVs under one key. A busy installation would reach that in weeks.
  sealedPerSubkeyMax: 2 ** 28,
  // Each process that has sealed values adds a subkey.
  subkeysMax: 10_000,
}

/**
 * Seals secrets for the database, and opens them. A sealed value is a version, the number of the key, a salt, and the result of
 * `encrypt`. A process seals with a key derived from the installation's key and a random salt.
 */
export class Sealer {
  private readonly keys: ReadonlyMap<number, Buffer>
  private readonly subkeys = new Map<string, KeyObject>()
  private readonly currentNumber: number
  private current: { header: Buffer; subkey: KeyObject; left: number } | undefined
  /** Signs the tokens that identify browsers used to sign in to the console. */
  readonly browserKey: Buffer
  private readonly fingerprintKey: KeyObject
  /** Ed25519: signs the receipts of erasures. */
  readonly receiptKey: KeyObject

  /** @param keys at least one; the last one seals, and all open */
  constructor(keys: readonly [InstallationKey, ...InstallationKey[]]) {
    this.keys = new Map(keys.map(({ number, key }) => [number, key]))
    this.currentNumber = (keys.at(-1) ?? keys[0]).number
    // Derived from the first key, so that browsers stay known when a key is added.
    this.browserKey = Buffer.from(hkdfSync('sha256', keys[0].key, '', 'midmonth tokens of browsers', keyBytes))
    // Derived from the first key, so that what is stored can still be compared when a key is added.
    this.fingerprintKey = createSecretKey(
      Buffer.from(hkdfSync('sha256', keys[0].key, '', 'midmonth fingerprints', keyBytes)),
    )
    // Derived from the first key, so that earlier receipts can still be checked when a key is added.
    const seed = Buffer.from(hkdfSync('sha256', keys[0].key, '', 'midmonth receipts', keyBytes))
    this.receiptKey = createPrivateKey({
      key: Buffer.concat([ed25519Prefix, seed]),
      format: 'der',
      type: 'pkcs8',
    })
  }

  /** The keys, to create an equal sealer in another thread of this process. */
  get installationKeys(): [InstallationKey, ...InstallationKey[]] {
    return [...this.keys].map(([number, key]) => ({ number, key })) as [InstallationKey, ...InstallationKey[]]
  }

  /** @returns 16 bytes, equal for equal parts. Without the installation's key they do not tell what the parts are. */
  fingerprint(parts: readonly string[]): Buffer {
    return createHmac('sha256', this.fingerprintKey)
      .update(JSON.stringify(parts))
      .digest()
      .subarray(0, fingerprintBytes)
  }

  seal(plain: string | Buffer, sealed: Sealed): Buffer {
    if (this.current === undefined || this.current.left === 0) this.current = this.newSubkey()
    this.current.left -= 1
    const { header, subkey } = this.current
    return encrypt(subkey, plain, contextOf(sealed), header)
  }

  /** @throws Error if the value was changed, or sealed as another kind, for another owner or with an unknown key */
  open(value: Buffer, sealed: Sealed): Buffer {
    try {
      return decrypt(this.subkeyOf(value.subarray(0, headerBytes)), value.subarray(headerBytes), contextOf(sealed))
    } catch (cause) {
      throw new Error(`A sealed value (${contextOf(sealed)}) cannot be opened: it was changed or belongs elsewhere`, {
        cause,
      })
    }
  }

  private newSubkey() {
    const header = Buffer.concat([Buffer.of(version, this.currentNumber), randomBytes(saltBytes)])
    return { header, subkey: this.subkeyOf(header), left: limits.sealedPerSubkeyMax }
  }

  private subkeyOf(header: Buffer): KeyObject {
    const name = header.toString('latin1')
    const known = this.subkeys.get(name)
    if (known !== undefined) return known
    const key = header[0] === version && header.length === headerBytes ? this.keys.get(header[1] ?? 0) : undefined
    if (key === undefined) throw new Error('The value names an unknown version or key')
    if (this.subkeys.size >= limits.subkeysMax) this.subkeys.clear()
    const subkey = createSecretKey(Buffer.from(hkdfSync('sha256', key, header, 'midmonth sealed values', keyBytes)))
    this.subkeys.set(name, subkey)
    return subkey
  }
}

function contextOf({ kind, owner }: Sealed): string {
  return `${kind} of ${owner}`
}

import { createPrivateKey, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { contextOf, decrypt, encrypt, keyBytes, notOpened } from './aes-gcm.ts'
import { Hmac } from './hmac.ts'
import type { KeyLease } from './key-lease.ts'

/**
 * The context of a sealed value: the kind of field, and the partner or user that owns the value. The context is authenticated,
 * so a value cannot be opened as another kind or for another owner. It does not name the row, so that a value can be copied.
 */
export type Sealed = {
  kind:
    | 'webhook-secret'
    | 'webhook-headers'
    | 'totp-secret'
    | 'replay'
    | 'profile-key'
    | 'payment-key'
    | 'import-key'
    | 'bank-text'
    | 'bank-records'
    | 'archive-key'
  owner: string
}

/**
 * What a key of the installation serves for: sealing values, comparing values without opening them, signing the receipts of
 * erasures, and signing the tokens of browsers.
 */
const keyPurposes = ['sealing', 'fingerprints', 'receipts', 'browsers'] as const
export type KeyPurpose = (typeof keyPurposes)[number]

/** `known`: opens, and is used later, when every process knows the key. `retired`: opens, until nothing needs the key. */
export type KeyStage = 'known' | 'used' | 'retired'

/** A key of the installation. A sealed value names the number of its key. */
export type InstallationKey = { number: number; purpose: KeyPurpose; stage: KeyStage; key: Buffer }

/** The keys of a new installation: one for each purpose. */
export function createKeys(): InstallationKey[] {
  return keyPurposes.map((purpose, index) => ({
    number: index + 1,
    purpose,
    stage: 'used',
    key: randomBytes(keyBytes),
  }))
}

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

/** What is computed from the keys when they are read. */
type Ring = {
  keys: readonly InstallationKey[]
  sealing: ReadonlyMap<number, Buffer>
  currentNumber: number
  browserKey: Buffer
  receiptKey: KeyObject
  fingerprints: FingerprintKeys
}

/**
 * The keys of fingerprints; during a rotation there are two. `next`: stored fingerprints have a second one with this key.
 * @property all finds what any process has stored
 */
type FingerprintKeys = { number: number; current: Hmac; next: Hmac | undefined; all: readonly Hmac[] }

/**
 * Seals secrets for the database, and opens them. A sealed value is a version, the number of the key, a salt, and the result of
 * `encrypt`. A process seals with a key derived from the installation's key and a random salt.
 */
export class Sealer {
  #ring: Ring
  readonly #lease: KeyLease | undefined
  readonly #subkeys = new Map<string, KeyObject>()
  #current: { header: Buffer; subkey: KeyObject; left: number } | undefined

  /** @param lease undefined for a sealer that lives no longer than a transaction */
  constructor(keys: readonly InstallationKey[], lease?: KeyLease) {
    this.#ring = ringOf(keys)
    this.#lease = lease
  }

  /** Takes the keys over that were read again. Keys that were removed still open what this process has read before. */
  learn(keys: readonly InstallationKey[]): void {
    const ring = ringOf(keys)
    if (ring.currentNumber !== this.#ring.currentNumber) this.#current = undefined
    this.#ring = { ...ring, sealing: new Map([...this.#ring.sealing, ...ring.sealing]) }
  }

  /**
   * The keys, to create an equal sealer in another thread of this process for the current transaction.
   * @throws Unavailable as `seal`
   */
  get installationKeys(): readonly InstallationKey[] {
    this.#lease?.requireFresh()
    return this.#ring.keys
  }

  /** Signs the tokens that identify browsers used to sign in to the console. */
  get browserKey(): Buffer {
    return this.#ring.browserKey
  }

  /** Ed25519: signs the receipts of erasures. */
  get receiptKey(): KeyObject {
    return this.#ring.receiptKey
  }

  /** Whether the key of fingerprints is being rotated. */
  get isRotatingFingerprints(): boolean {
    return this.#ring.fingerprints.all.length > 1
  }

  /** Whether `fingerprint` equals `nextFingerprint`, which every member has by then. */
  get usesNextFingerprints(): boolean {
    const { current, next } = this.#ring.fingerprints
    return current === next
  }

  /** The number of the key of `fingerprint`. */
  get fingerprintKeyNumber(): number {
    return this.#ring.fingerprints.number
  }

  /** Reads the keys again. @throws Unavailable if that takes too long */
  async refresh(): Promise<void> {
    await this.#lease?.refresh()
  }

  /**
   * @returns 16 bytes, equal for equal parts. Without the installation's key they do not tell what the parts are.
   * @throws Unavailable as `seal`
   */
  fingerprint(parts: readonly string[]): Buffer {
    this.#lease?.requireFresh()
    return hashOf(this.#ring.fingerprints.current, parts)
  }

  /** Like `fingerprint`, with the next key during a rotation; null without one. */
  nextFingerprint(parts: readonly string[]): Buffer | null {
    this.#lease?.requireFresh()
    const { next } = this.#ring.fingerprints
    return next === undefined ? null : hashOf(next, parts)
  }

  /** Every fingerprint by which a process may have stored the parts: two during a rotation, otherwise one. */
  fingerprintsToFind(parts: readonly string[]): Buffer[] {
    this.#lease?.requireFresh()
    return this.#ring.fingerprints.all.map(key => hashOf(key, parts))
  }

  /** @throws Unavailable if the keys have not been read for 30 seconds, so that the current one may have been retired */
  seal(plain: string | Buffer, { kind, owner }: Sealed): Buffer {
    this.#lease?.requireFresh()
    if (this.#current === undefined || this.#current.left === 0) this.#current = this.#newSubkey()
    this.#current.left -= 1
    const { header, subkey } = this.#current
    return encrypt(subkey, plain, contextOf(kind, owner), header)
  }

  /**
   * @throws Unavailable if another process has sealed the value with a key that this one has yet to read
   * @throws Error if the value was changed, or sealed as another kind, for another owner or with a key that was removed
   */
  open(value: Buffer, { kind, owner }: Sealed): Buffer {
    const context = contextOf(kind, owner)
    const { 0: valueVersion, 1: number = 0 } = value
    if (valueVersion === version && !this.#ring.sealing.has(number)) {
      this.#lease?.awaitKey(number)
      throw new Error(
        `A sealed value (${context}) cannot be opened: it was changed, or its key ${number} was rotated away; ` +
          'restore a backup of the value that is later than the rotation, or the whole dump from before it',
      )
    }
    try {
      return decrypt(this.#subkeyOf(value.subarray(0, headerBytes)), value.subarray(headerBytes), context)
    } catch (cause) {
      throw notOpened(context, cause)
    }
  }

  /** Whether the value is sealed with the key that seals now. */
  isCurrent(value: Buffer): boolean {
    return value[1] === this.#ring.currentNumber
  }

  #newSubkey() {
    const header = Buffer.concat([Buffer.of(version, this.#ring.currentNumber), randomBytes(saltBytes)])
    return { header, subkey: this.#subkeyOf(header), left: limits.sealedPerSubkeyMax }
  }

  #subkeyOf(header: Buffer): KeyObject {
    const name = header.toString('latin1')
    const known = this.#subkeys.get(name)
    if (known !== undefined) return known
    const key =
      header[0] === version && header.length === headerBytes ? this.#ring.sealing.get(header[1] ?? 0) : undefined
    if (key === undefined) throw new Error('The value names an unknown version or key')
    if (this.#subkeys.size >= limits.subkeysMax) this.#subkeys.clear()
    const subkey = createSecretKey(Buffer.from(hkdfSync('sha256', key, header, 'midmonth sealed values', keyBytes)))
    this.#subkeys.set(name, subkey)
    return subkey
  }
}

function ringOf(keys: readonly InstallationKey[]): Ring {
  const used = (purpose: KeyPurpose) => {
    const key = keys.findLast(each => each.purpose === purpose && each.stage === 'used')
    if (key === undefined) throw new Error(`The installation has no key for ${purpose}`)
    return key
  }
  const sealing = keys.filter(({ purpose }) => purpose === 'sealing')
  return {
    keys,
    sealing: new Map(sealing.map(({ number, key }) => [number, key])),
    currentNumber: used('sealing').number,
    browserKey: used('browsers').key,
    fingerprints: fingerprintKeysOf(keys.filter(({ purpose }) => purpose === 'fingerprints')),
    receiptKey: createPrivateKey({
      key: Buffer.concat([ed25519Prefix, used('receipts').key]),
      format: 'der',
      type: 'pkcs8',
    }),
  }
}

function fingerprintKeysOf(keys: readonly InstallationKey[]): FingerprintKeys {
  const active = keys
    .filter(({ stage }) => stage !== 'retired')
    .map(({ number, stage, key }) => ({ number, stage, hashes: new Hmac(key) }))
  const current = active.findLast(({ stage }) => stage === 'used')
  if (current === undefined) throw new Error('The installation has no key for fingerprints')
  const next = active.length > 1 ? active.at(-1)?.hashes : undefined
  return { number: current.number, current: current.hashes, next, all: active.map(({ hashes }) => hashes) }
}

function hashOf(key: Hmac, parts: readonly string[]): Buffer {
  return key.of(JSON.stringify(parts)).subarray(0, fingerprintBytes)
}

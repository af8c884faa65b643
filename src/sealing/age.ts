import { ReadableStream } from 'node:stream/web'
import { Decrypter, Encrypter } from 'age-encryption'
import { readSecret } from '../secret-file.ts'

/**
 * Encrypts a file so that only the recipients can read it, with `age -d`. Midmonth has no key that decrypts it.
 * @param recipients public keys, 'age1…'
 * @throws Error if a recipient is malformed
 */
export async function* encrypted(
  bytes: AsyncIterable<Uint8Array>,
  recipients: readonly string[],
): AsyncGenerator<Uint8Array> {
  const encrypter = new Encrypter()
  for (const recipient of recipients) encrypter.addRecipient(recipient)
  yield* await encrypter.encrypt(ReadableStream.from(bytes))
}

/** @throws Error if the identities do not open it, or it was changed or cut off, perhaps after the first bytes */
export async function* decrypted(
  bytes: AsyncIterable<Uint8Array>,
  identities: readonly string[],
): AsyncGenerator<Uint8Array> {
  const decrypter = new Decrypter()
  for (const identity of identities) decrypter.addIdentity(identity)
  yield* await decrypter.decrypt(ReadableStream.from(bytes))
}

/** Reads private keys, as `age-keygen` writes them. @throws Error if there is none */
export async function readIdentities(file: string): Promise<string[]> {
  const lines = (await readSecret(file)).split(/\r?\n/).map(line => line.trim())
  const identities = lines.filter(line => line.startsWith('AGE-SECRET-KEY-'))
  if (identities.length === 0) throw new Error(`${file} holds no identity of age (AGE-SECRET-KEY-…)`)
  return identities
}

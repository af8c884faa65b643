import { ReadableStream } from 'node:stream/web'
import { Encrypter } from 'age-encryption'

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

import { createHash, createSecretKey, randomBytes } from 'node:crypto'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import path from 'node:path'
import { SettingsProblem } from '../../config.ts'
import { readSecretLine, SecretFileProblem } from '../../secret-file.ts'
import { decrypt, encrypt, keyBytes } from '../aes-gcm.ts'
import type { KeyProvider } from './provider.ts'

const wrappingContext = 'installation key'

/**
 * A provider with the key itself, from the environment or a file.
 * @param place names where the text is from, for messages
 * @throws SettingsProblem if the text is not a key
 */
export function localKey(text: string, place: string): KeyProvider {
  const key = Buffer.from(text, 'base64')
  if (key.length !== keyBytes || key.toString('base64') !== text)
    throw new SettingsProblem(
      `${place} must hold ${keyBytes} bytes in base64; restore the installation’s key from its backup`,
    )
  const wrapping = createSecretKey(key)
  return {
    id: createHash('sha256').update('midmonth installation key').update(key).digest('hex').slice(0, 16),
    wrap: async unwrapped => encrypt(wrapping, unwrapped, wrappingContext),
    async unwrap(wrapped) {
      try {
        return decrypt(wrapping, wrapped, wrappingContext)
      } catch (cause) {
        throw new Error('A stored key of the installation was changed, and cannot be opened', { cause })
      }
    },
  }
}

/** @throws SettingsProblem if the file cannot be read, or other users can read it */
export async function readKeyFile(file: string): Promise<string> {
  try {
    return await readSecretLine(file)
  } catch (cause) {
    if (!(cause instanceof SecretFileProblem)) throw cause
    throw new SettingsProblem(`The key file of the installation cannot be used: ${cause.message}`, { cause })
  }
}

/**
 * Creates the key file with a new key. If another process creates it at the same time, that key is kept.
 * @throws SettingsProblem if the folder or the file cannot be written
 */
export async function createKeyFile(file: string): Promise<void> {
  const folder = path.dirname(file)
  const part = `${file}.${randomBytes(6).toString('hex')}.part`
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const written = await open(part, 'wx', 0o600)
    try {
      await written.writeFile(`${randomBytes(keyBytes).toString('base64')}\n`)
      await written.sync()
    } finally {
      await written.close()
    }
    // Never replaces a file, and a crash never leaves half of one.
    await link(part, file).catch(error => {
      if (error.code !== 'EEXIST') throw error
    })
    await unlink(part)
    const opened = await open(folder)
    await opened.sync().finally(() => opened.close())
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new SettingsProblem(
      `The key file of the installation cannot be created (${reason}); set MIDMONTH_INSTALLATION_KEY_FILE to a path in a writable folder`,
      { cause },
    )
  }
}

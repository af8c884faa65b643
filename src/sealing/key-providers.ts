import { createHash, createSecretKey, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import path from 'node:path'
import { type Settings, SettingsProblem } from '../config.ts'
import { readSecretLine, SecretFileProblem } from '../secret-file.ts'
import { decrypt, encrypt, keyBytes } from './aes-gcm.ts'

/** Wraps the keys of the installation, which are stored in the database only in wrapped form. */
export type KeyProvider = {
  /** Identifies the wrapping key without revealing it. */
  id: string
  wrap(key: Buffer): Promise<Buffer>
  unwrap(wrapped: Buffer): Promise<Buffer>
}

/** Where the wrapping key is: the key itself in the environment, or the path of a file, which may not exist yet. */
export type KeySource = { key: string } | { file: string }

/**
 * Reads the settings of the key. By default the key is in a file beside the data folder, so that a copy of the data does not
 * contain the key.
 * @throws SettingsProblem if both settings are given
 */
export function keySourceOf(
  {
    MIDMONTH_INSTALLATION_KEY: key,
    MIDMONTH_INSTALLATION_KEY_FILE: file,
  }: Pick<Settings, 'MIDMONTH_INSTALLATION_KEY' | 'MIDMONTH_INSTALLATION_KEY_FILE'>,
  { dataDir }: { dataDir: string },
): KeySource {
  if (key !== '' && file !== '')
    throw new SettingsProblem('Set MIDMONTH_INSTALLATION_KEY or MIDMONTH_INSTALLATION_KEY_FILE, not both')
  if (key !== '') return { key }
  return { file: path.resolve(file === '' ? path.join(`${dataDir}-key`, 'installation.key') : file) }
}

/** Names the place of the key, for messages. */
export function placeOf(source: KeySource): string {
  return 'key' in source ? 'MIDMONTH_INSTALLATION_KEY' : source.file
}

/**
 * Opens the provider.
 * @returns undefined if the key file does not exist
 * @throws SettingsProblem if the key cannot be used
 */
export async function openProvider(source: KeySource): Promise<KeyProvider | undefined> {
  if ('file' in source && !existsSync(source.file)) return undefined
  const text = 'key' in source ? source.key : await readKeyFile(source.file)
  const key = Buffer.from(text, 'base64')
  if (key.length !== keyBytes || key.toString('base64') !== text)
    throw new SettingsProblem(
      `${placeOf(source)} must hold ${keyBytes} bytes in base64; restore the installation’s key from its backup`,
    )
  const wrapping = createSecretKey(key)
  return {
    id: createHash('sha256').update('midmonth installation key').update(key).digest('hex').slice(0, 16),
    wrap: async unwrapped => encrypt(wrapping, unwrapped, wrappingContext),
    unwrap: async wrapped => decrypt(wrapping, wrapped, wrappingContext),
  }
}

const wrappingContext = 'installation key'

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

async function readKeyFile(file: string): Promise<string> {
  try {
    return await readSecretLine(file)
  } catch (cause) {
    if (!(cause instanceof SecretFileProblem)) throw cause
    throw new SettingsProblem(`The key file of the installation cannot be used: ${cause.message}`, { cause })
  }
}

import { readSecretLine, SecretFileProblem } from '../../../secret-file.ts'
import type { AdyenSettings, NotificationSettings } from './settings.ts'

// Secrets are read for each use, so that a new one needs no restart.

/** @throws SecretFileProblem */
export async function readApiKey({ apiKeyFile }: Pick<AdyenSettings, 'apiKeyFile'>): Promise<string> {
  return await readSecretLine(apiKeyFile)
}

/** Reads the keys that sign notifications: hexadecimal, as the Customer Area shows them. @throws SecretFileProblem */
export async function readHmacKeys({ hmacKeyFiles }: Pick<NotificationSettings, 'hmacKeyFiles'>): Promise<Buffer[]> {
  return await Promise.all(hmacKeyFiles.map(readHmacKey))
}

async function readHmacKey(file: string): Promise<Buffer> {
  const key = await readSecretLine(file)
  if (!/^([0-9A-Fa-f]{2}){32}$/.test(key))
    throw new SecretFileProblem(`${file} must hold an HMAC key: 64 hexadecimal digits`)
  return Buffer.from(key, 'hex')
}

/** The user and password of notifications; null if they have none. @throws SecretFileProblem */
export async function readCredentials({
  basicAuth,
}: Pick<NotificationSettings, 'basicAuth'>): Promise<{ username: string; password: string } | null> {
  if (basicAuth === null) return null
  return { username: basicAuth.username, password: await readSecretLine(basicAuth.passwordFile) }
}

/** Why the secrets of a rail cannot be used, one sentence each. */
export async function faultsOfSecrets(settings: AdyenSettings): Promise<string[]> {
  const { notifications } = settings
  const tried = await Promise.allSettled([
    readApiKey(settings),
    ...(notifications === null ? [] : [readHmacKeys(notifications), readCredentials(notifications)]),
  ])
  return tried.flatMap(each => (each.status === 'rejected' ? [(each.reason as Error).message] : []))
}

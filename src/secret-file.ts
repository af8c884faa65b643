import { readFile, stat } from 'node:fs/promises'

/** A file with a secret cannot be used. The message names the file, never its contents. */
export class SecretFileProblem extends Error {}

/** @throws SecretFileProblem if other users can read the file */
export async function readSecret(file: string): Promise<string> {
  const cannotBeRead = (cause: unknown): never => {
    throw new SecretFileProblem(`${file} cannot be read`, { cause })
  }
  const { mode } = await stat(file).catch(cannotBeRead)
  if ((mode & 0o077) !== 0) throw new SecretFileProblem(`${file} can be read by other users; run chmod 600 ${file}`)
  return await readFile(file, 'utf8').catch(cannotBeRead)
}

/** Reads a secret that is one line of visible ASCII. @throws SecretFileProblem */
export async function readSecretLine(file: string): Promise<string> {
  const secret = (await readSecret(file)).replace(/\r?\n$/, '')
  if (!/^[\x21-\x7e]{1,1000}$/.test(secret)) throw new SecretFileProblem(`${file} must hold one line without blanks`)
  return secret
}

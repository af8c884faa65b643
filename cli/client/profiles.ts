import { constants, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import path from 'node:path'
import { InvalidArgumentError } from 'commander'
import { terminal } from '../terminal.ts'
import { WrongUsage } from './failure.ts'

/** A login that `midmonth login` stores. The key belongs to the address, and is never sent to another. */
export type Profile = { url: string; key: string }

export const defaultProfile = 'default'

/** Parses the name of a profile, which is also the name of its file. */
export function profileName(text: string): string {
  if (!/^[a-z0-9][a-z0-9_-]{0,39}$/.test(text))
    throw new InvalidArgumentError('Use up to 40 lower-case letters, digits, - and _, for example live.')
  return text
}

/**
 * One file per profile, so that two logins at once cannot lose each other's.
 * @throws WrongUsage if other users can read the file: its key may be known to them
 */
export async function readProfile(name: string): Promise<Profile | undefined> {
  const file = fileOf(name)
  // Opening a pipe would otherwise wait for a writer.
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return undefined
  try {
    const found = await handle.stat()
    if (!found.isFile()) throw new WrongUsage(`${file} is not a file; remove it, and run midmonth login again`)
    if ((found.mode & 0o077) !== 0) {
      throw new WrongUsage(
        `Other users can read ${file}, so its key is not used. Run chmod 600 ${file}, and replace the key if they may have seen it`,
      )
    }
    return parsed(await handle.readFile('utf8'), file)
  } finally {
    await handle.close()
  }
}

/** @returns the path of the file */
export async function writeProfile(name: string, profile: Profile): Promise<string> {
  const file = fileOf(name)
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  // A new file: writing into an old one would keep its mode.
  const part = `${file}.${process.pid}.part`
  await rm(part, { force: true })
  try {
    const handle = await open(part, 'wx', 0o600)
    try {
      // Whatever the umask is.
      await handle.chmod(0o600)
      await handle.writeFile(`${JSON.stringify(profile)}\n`)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(part, file)
  } catch (error) {
    // A logout would not find the key in it.
    await rm(part, { force: true })
    throw error
  }
  return file
}

/** @returns whether there was one */
export async function removeProfile(name: string): Promise<boolean> {
  try {
    await rm(fileOf(name))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

/**
 * The secret with which `webhooks listen` signs for a profile. The secret is created once and kept, so that a receiver does not need a new
 * one after each start.
 */
export async function listeningSecret(name: string, create: () => string): Promise<string> {
  const file = path.join(folder(), `${name}.webhook-secret`)
  const read = async () => (await readFile(file, 'utf8')).trim()
  const kept = await read().catch(() => '')
  if (kept !== '') return kept
  const secret = create()
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(file, `${secret}\n`, { mode: 0o600, flag: 'wx' })
    return secret
  } catch {
    // Another start was faster, or the folder cannot be written: then the secret lasts only for this start.
    return (await read().catch(() => '')) || secret
  }
}

export async function listProfiles(): Promise<string[]> {
  const files = await readdir(folder()).catch(() => [])
  return files.flatMap(file => /^([a-z0-9][a-z0-9_-]*)\.json$/.exec(file)?.[1] ?? []).sort()
}

function fileOf(name: string): string {
  return path.join(folder(), `${name}.json`)
}

/** Source: XDG Base Directory Specification 0.8; a relative XDG_CONFIG_HOME is invalid and ignored. */
function folder(): string {
  const { XDG_CONFIG_HOME = '', HOME = homedir() } = terminal().env
  return path.join(path.isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : path.join(HOME, '.config'), 'midmonth')
}

function parsed(text: string, file: string): Profile {
  try {
    const { url, key } = JSON.parse(text) as Partial<Profile>
    if (typeof url === 'string' && typeof key === 'string') return { url, key }
  } catch {
    // The message of the parser could show a part of the key.
  }
  throw new WrongUsage(`${file} is damaged; run midmonth login again`)
}

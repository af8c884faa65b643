import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { problem } from '../kernel/errors.ts'
import type { User } from './users.ts'

// Source: OWASP "Password Storage Cheat Sheet", Argon2id: m=19456 (19 MiB), t=2, p=1.
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const
const saltBytes = 16
const tagLength = 32

const limits = {
  // Half of the threads that Node shares with files, names and compression; 38 MiB.
  runningMax: 2,
  // A hash takes some 40 ms, so the last in the queue waits less than a second.
  waitingMax: 32,
}

export const passwordLimits = {
  // Source: NIST SP 800-63B-4, 3.1.1.2 asks for 15 without a second factor and 8 with one.
  lengthMin: 12,
  lengthMax: 256,
  // 'aaaaaaaaaaaa' and 'abababababab' are among the first guesses.
  distinctMin: 5,
}

/** Hashes a password, as a PHC string. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  const tag = await inTurn(() => hash({ password, salt, ...cost }))
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${base64(salt)}$${base64(tag)}`
}

/**
 * Whether the password is the one that was hashed. Without a hash, one is computed anyway, so that the time does not reveal
 * whether an account exists.
 * @throws Problem `ServiceUnavailable` if too many others wait
 */
export async function isPassword(password: string, hashed: string | null): Promise<boolean> {
  const { salt, tag, ...parameters } = parse(hashed ?? decoy)
  const found = await inTurn(() => hash({ password, salt, ...parameters }))
  return found.length === tag.length && timingSafeEqual(found, tag) && hashed !== null
}

/** Whether a hash was made with other parameters than hashes are now. */
export function isOutdated(hashed: string): boolean {
  const { memory, passes, parallelism } = parse(hashed)
  return memory !== cost.memory || passes !== cost.passes || parallelism !== cost.parallelism
}

/**
 * Requires a password that cannot be guessed quickly.
 * @throws Problem `BodyValidation`
 */
export function requireGoodPassword(password: string, { email, name }: Pick<User, 'email' | 'name'>): void {
  const { lengthMin, lengthMax, distinctMin } = passwordLimits
  const refuse = (message: string) => problem('BodyValidation', message, { path: 'password' })
  const characters = [...password]
  if (characters.length < lengthMin) throw refuse(`The password must have at least ${lengthMin} characters`)
  if (characters.length > lengthMax) throw refuse(`The password must have at most ${lengthMax} characters`)
  const folded = password.toLowerCase()
  if (new Set(folded).size < distinctMin)
    throw refuse(`The password must have at least ${distinctMin} different characters`)
  const known = [email.toLowerCase(), email.toLowerCase().split('@', 1)[0] ?? '', name.toLowerCase()]
  // Shorter ones occur by chance.
  if (known.some(text => text.length >= 5 && folded.includes(text)))
    throw refuse('The password must not contain the name or the e-mail address')
}

const argon2id = promisify(argon2)

type HashParameters = { password: string; salt: Buffer; memory: number; passes: number; parallelism: number }

async function hash({ password, salt, ...parameters }: HashParameters): Promise<Buffer> {
  // One password can be typed as different sequences of code points.
  const message = Buffer.from(password.normalize('NFKC'))
  return await argon2id('argon2id', { message, nonce: salt, tagLength, ...parameters })
}

const form = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const decoy = `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${base64(randomBytes(saltBytes))}$${base64(randomBytes(tagLength))}`

function parse(hashed: string) {
  const [, memory, passes, parallelism, salt, tag] = form.exec(hashed) ?? []
  if (salt === undefined || tag === undefined) throw new Error('The database holds a password hash of an unknown kind')
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

let running = 0
const waiting: (() => void)[] = []

/** Bounds the memory and the threads that hashing takes, whatever the number of sign-ins. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= limits.runningMax) {
    if (waiting.length >= limits.waitingMax)
      throw problem(
        'ServiceUnavailable',
        'Too many people are signing in, so nothing was done; try again',
        {},
        { 'retry-after': '1' },
      )
    await new Promise<void>(resolve => waiting.push(resolve))
  } else running += 1
  try {
    return await work()
  } finally {
    // The slot goes to the next in the queue, or becomes free.
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }
}

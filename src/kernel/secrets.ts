import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** The pattern of a secret after its prefix. */
export const secretPattern = '[0-9A-Za-z]{43}[0-9A-Za-z]{6}'

/**
 * Generates a secret: prefix, 256 random bits in base62 (43 characters), and a CRC-32 of the preceding text (6 characters).
 * The checksum lets a secret scanner recognise a leaked secret offline.
 */
export function generateSecret(prefix: string): string {
  const random = prefix + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return random + checksum(random)
}

/** Whether the checksum at the end of a secret is right. */
export function hasChecksum(secret: string): boolean {
  return checksum(secret.slice(0, -6)) === secret.slice(-6)
}

/** Returns the hash that the database stores instead of the secret. */
export function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), 6)
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function base62(value: bigint, width: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = digits.charAt(Number(rest % 62n)) + text
  return text.padStart(width, '0')
}

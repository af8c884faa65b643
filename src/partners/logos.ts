import type { Reader, Tx } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'

/** A partner's logo, shown on the hosted page of its members. */
export type Logo = { mediaType: MediaType; bytes: Buffer }
type MediaType = 'image/png' | 'image/jpeg' | 'image/webp'
type Picture = { mediaType: MediaType; width: number; height: number }

// A logo is drawn 32 pixels high, on phones that may have little data left. The database has the same limit.
export const logoBytesMax = 100 * 1024
// 100 KiB can unpack to gigabytes. 2,000 by 2,000 pixels take 16 MB of a phone's memory.
const logoSideMax = 2_000

/** Returns null if the partner has no logo. */
export async function findLogo(db: Reader, partnerId: string): Promise<Logo | null> {
  const logo = await db
    .selectFrom('partnerLogos')
    .select(['mediaType', 'bytes'])
    .where('partnerId', '=', partnerId)
    .executeTakeFirst()
  return logo ?? null
}

/** @throws Problem `BodyValidation` if the file or the picture is too large, or of a type that can contain scripts */
export async function saveLogo(
  tx: Tx,
  { partnerId, bytes, now }: { partnerId: string; bytes: Buffer; now: Date },
): Promise<Logo> {
  if (bytes.length > logoBytesMax)
    throw refused(`The file is larger than ${logoBytesMax / 1024} KiB; use a smaller one`)
  const picture = readPicture(bytes)
  if (picture === undefined) throw refused('The file must be a PNG, JPEG or WebP picture')
  const { mediaType, width, height } = picture
  if (Math.max(width, height) > logoSideMax)
    throw refused(`The picture is ${width} × ${height} pixels; the limit is ${logoSideMax} × ${logoSideMax}`)
  const values = { mediaType, bytes, changedAt: now }
  await tx
    .insertInto('partnerLogos')
    .values({ partnerId, ...values })
    .onConflict(conflict => conflict.column('partnerId').doUpdateSet(values))
    .execute()
  return { mediaType, bytes }
}

/** @returns whether there was a logo */
export async function removeLogo(tx: Tx, partnerId: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('partnerLogos')
    .where('partnerId', '=', partnerId)
    .executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}

function refused(message: string) {
  return problem('BodyValidation', message, { path: 'data' })
}

/**
 * Reads the type and size of a picture from its bytes, whatever its name says. Returns undefined for other types: SVG is refused
 * because it can contain scripts.
 */
function readPicture(bytes: Buffer): Picture | undefined {
  try {
    return readPng(bytes) ?? readJpeg(bytes) ?? readWebp(bytes)
  } catch (error) {
    // The file is cut off before its size.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function readPng(bytes: Buffer): Picture | undefined {
  if (textAt(bytes, 0, 8) !== '\x89PNG\r\n\x1a\n' || textAt(bytes, 12, 4) !== 'IHDR') return undefined
  return { mediaType: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** The size is in the first frame header. Every segment before that header states its length. */
function readJpeg(bytes: Buffer): Picture | undefined {
  if (textAt(bytes, 0, 3) !== '\xff\xd8\xff') return undefined
  for (let at = 2; bytes.readUInt8(at) === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes.readUInt8(at + 1)
    // C4, C8 and CC lie among the frame headers, but are not frame headers.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker))
      return { mediaType: 'image/jpeg', width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
  }
  return undefined
}

/** Source: RFC 9649 for the containers and lossless pictures, RFC 6386 section 9.1 for lossy ones. */
function readWebp(bytes: Buffer): Picture | undefined {
  if (textAt(bytes, 0, 4) !== 'RIFF' || textAt(bytes, 8, 4) !== 'WEBP') return undefined
  const mediaType = 'image/webp'
  switch (textAt(bytes, 12, 4)) {
    case 'VP8 ':
      return { mediaType, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const packed = bytes.readUInt32LE(21)
      return { mediaType, width: (packed & 0x3fff) + 1, height: ((packed >>> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { mediaType, width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}

function textAt(bytes: Buffer, from: number, length: number): string {
  return bytes.subarray(from, from + length).toString('latin1')
}

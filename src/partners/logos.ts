import type { Reader, Tx } from '../database/database.ts'
import { problem } from '../errors.ts'

/** Of a partner, on the hosted page of its members. */
export type Logo = { mediaType: MediaType; bytes: Buffer }
type MediaType = 'image/png' | 'image/jpeg' | 'image/webp'

// A logo is drawn 32 pixels high, on phones that may have little data left. The database has the same limit.
export const logoBytesMax = 100 * 1024

/** Returns null if the partner has none. */
export async function findLogo(db: Reader, partnerId: string): Promise<Logo | null> {
  const logo = await db
    .selectFrom('partnerLogos')
    .select(['mediaType', 'bytes'])
    .where('partnerId', '=', partnerId)
    .executeTakeFirst()
  return logo ?? null
}

/** @throws Problem `BodyValidation` if the file is too large, or not a picture of a kind that cannot contain scripts */
export async function saveLogo(
  tx: Tx,
  { partnerId, bytes, now }: { partnerId: string; bytes: Buffer; now: Date },
): Promise<Logo> {
  if (bytes.length > logoBytesMax) throw refused(`The file has more than ${logoBytesMax / 1024} KiB`)
  const mediaType = mediaTypeOf(bytes)
  if (mediaType === undefined) throw refused('The file must be a PNG, JPEG or WebP picture')
  const values = { mediaType, bytes, changedAt: now }
  await tx
    .insertInto('partnerLogos')
    .values({ partnerId, ...values })
    .onConflict(conflict => conflict.column('partnerId').doUpdateSet(values))
    .execute()
  return { mediaType, bytes }
}

/** @returns whether there was one */
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

/** The kind of a picture by its first bytes, whatever its name says. SVG is left out: it can contain scripts. */
function mediaTypeOf(bytes: Buffer): MediaType | undefined {
  const text = (from: number, to: number) => bytes.subarray(from, to).toString('latin1')
  if (text(0, 8) === '\x89PNG\r\n\x1a\n' && text(12, 16) === 'IHDR') return 'image/png'
  if (text(0, 3) === '\xff\xd8\xff') return 'image/jpeg'
  if (text(0, 4) === 'RIFF' && text(8, 15) === 'WEBPVP8') return 'image/webp'
  return undefined
}

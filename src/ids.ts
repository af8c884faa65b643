import { randomFillSync, randomInt } from 'node:crypto'
import { Type } from 'typebox'
import { v7 as uuidv7 } from 'uuid'

/** What an id names, by its prefix. */
const idPrefixes = {
  partner: 'par',
  member: 'mem',
  withdrawalIntent: 'wi',
  withdrawal: 'w',
  payCycle: 'pc',
  payRun: 'pr',
  memberJob: 'maj',
  event: 'evt',
  apiKey: 'key',
  transfer: 'tr',
  floatMovement: 'fm',
  auditEntry: 'aud',
  request: 'req',
} as const

export type IdKind = keyof typeof idPrefixes

/**
 * A new id: the prefix, `_` and a UUIDv7 in Crockford base32 (26 characters), so that ids sort by the time given. Those
 * that this process makes for one millisecond sort in the order in which they were made.
 * @param now becomes the leading 48 bits
 * Source: TypeID 0.3; RFC 9562, section 6.2, method 1 for the counter
 */
export function newId(kind: IdKind, now: Date): string {
  counter = (counter + 1) % 0x1_0000_0000
  return textOf(kind, { msecs: now.getTime(), seq: counter, random: nextRandom() })
}

/** The lowest id of this kind that an instant can have: where a range of ids by time begins. */
export function firstId(kind: IdKind, at: Date): string {
  return textOf(kind, { msecs: at.getTime(), seq: 0, random: new Uint8Array(16) })
}

// A request has half a dozen new ids: random bytes are drawn for many at once, and the text is made without detours.
const randomPool = { bytes: Buffer.alloc(16 * 256), used: 16 * 256 }
const uuid = new Uint8Array(16)
let counter = randomInt(0x8000_0000)

function nextRandom(): Uint8Array {
  if (randomPool.used === randomPool.bytes.length) {
    randomFillSync(randomPool.bytes)
    randomPool.used = 0
  }
  randomPool.used += 16
  return randomPool.bytes.subarray(randomPool.used - 16, randomPool.used)
}

const base32 = '0123456789abcdefghjkmnpqrstvwxyz'

function textOf(kind: IdKind, parts: { msecs: number; seq: number; random: Uint8Array }): string {
  // 130 bits for 128: the first of the 26 characters carries only 3.
  let text = `${idPrefixes[kind]}_`
  let rest = 0
  let restLength = 2
  for (const byte of uuidv7(parts, uuid)) {
    rest = (rest << 8) | byte
    restLength += 8
    for (; restLength >= 5; restLength -= 5) text += base32[(rest >> (restLength - 5)) & 31]
    rest &= 31
  }
  return text
}

/**
 * The wire shape of an id of this kind. Only the prefix is part of the contract: another prefix is a validation issue, and
 * an id that names nothing is "not found", whatever follows its prefix.
 */
export function Id(kind: IdKind, description?: string) {
  return Type.String({
    pattern: `^${idPrefixes[kind]}_`,
    maxLength: idLengthMax,
    examples: [exampleId(kind)],
    ...(description === undefined ? {} : { description }),
  })
}

// Characters; ours have 30. An id is echoed in the refusal that names it, so it must not be of any length.
const idLengthMax = 255

/** Whether a cell of a file can be an id of this kind. A JSON body is checked by `Id`, and for NUL by its parser. */
export function isIdOf(kind: IdKind, cell: string): boolean {
  return cell.startsWith(`${idPrefixes[kind]}_`) && cell.length <= idLengthMax && !cell.includes('\0')
}

/** The id that the documentation shows; always the same, so that generated files do not change by themselves. */
export function exampleId(kind: IdKind): string {
  return `${idPrefixes[kind]}_01kah4pzc5e4r8v2m6t0x9y3bd`
}

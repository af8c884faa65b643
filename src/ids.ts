import { Type } from 'typebox'
import { TypeID } from 'typeid-js'
import { v7 as uuidv7 } from 'uuid'

/** What an id names, by its prefix. */
const idPrefixes = {
  partner: 'par',
  member: 'mem',
  withdrawalIntent: 'wi',
  withdrawal: 'w',
  payCycle: 'pc',
  payRun: 'pr',
  event: 'evt',
  apiKey: 'key',
  transfer: 'tr',
  floatMovement: 'fm',
  request: 'req',
} as const

export type IdKind = keyof typeof idPrefixes

/**
 * A new id: the prefix, `_` and a UUIDv7 in Crockford base32 (26 characters), so that ids sort by the time given.
 * @param now becomes the leading 48 bits; ids of the same millisecond are in no particular order
 */
export function newId(kind: IdKind, now: Date): string {
  return TypeID.fromUUID(idPrefixes[kind], uuidv7({ msecs: now.getTime() })).toString()
}

/** The lowest id of this kind that an instant can have: where a range of ids by time begins. */
export function firstId(kind: IdKind, at: Date): string {
  const uuid = uuidv7({ msecs: at.getTime(), seq: 0, random: new Uint8Array(16) })
  return TypeID.fromUUID(idPrefixes[kind], uuid).toString()
}

/** The wire shape of an id of this kind. Another prefix or shape is a validation issue, never a "not found". */
export function Id(kind: IdKind, description?: string) {
  const prefix = idPrefixes[kind]
  return Type.String({
    // The first of the 26 characters carries only 3 of the 128 bits.
    pattern: `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`,
    examples: [exampleId(kind)],
    ...(description === undefined ? {} : { description }),
  })
}

/** The id that the documentation shows; always the same, so that generated files do not change by themselves. */
export function exampleId(kind: IdKind): string {
  return `${idPrefixes[kind]}_01kah4pzc5e4r8v2m6t0x9y3bd`
}

import { randomFillSync, randomInt } from 'node:crypto'
import { Type } from 'typebox'
import { v7 as uuidv7 } from 'uuid'

/** The id prefix of each kind of resource. */
const idPrefixes = {
  partner: 'par',
  member: 'mem',
  withdrawalIntent: 'wi',
  withdrawal: 'w',
  payCycle: 'pc',
  payRun: 'pr',
  memberJob: 'maj',
  event: 'evt',
  webhook: 'we',
  apiKey: 'key',
  operatorKey: 'opk',
  ledgerVerification: 'lv',
  memberSession: 'ses',
  transfer: 'tr',
  floatMovement: 'fm',
  invoice: 'ivc',
  auditEntry: 'aud',
  request: 'req',
  clockMove: 'cm',
  payoutBatch: 'bat',
  bankFile: 'bf',
  payoutException: 'pex',
  payoutRule: 'pxr',
  user: 'usr',
  userSession: 'uss',
  invitation: 'inv',
  operatorNotice: 'ntc',
} as const

export type IdKind = keyof typeof idPrefixes

/**
 * Generates an id: the prefix, `_` and a UUIDv7 in Crockford base32 (26 characters), so that ids sort by time. Ids that one
 * process generates in the same millisecond sort in order of creation.
 * @param now becomes the leading 48 bits
 * Source: TypeID 0.3; RFC 9562, section 6.2, method 1 for the counter
 */
export function newId(kind: IdKind, now: Date): string {
  counter = (counter + 1) % 0x1_0000_0000
  return textOf(kind, { msecs: now.getTime(), seq: counter, random: nextRandom() })
}

/** Returns the lowest id of a kind at an instant: the lower bound of a range of ids by time. No id is older than 1970. */
export function firstId(kind: IdKind, at: Date): string {
  return textOf(kind, { msecs: Math.max(at.getTime(), 0), seq: 0, random: new Uint8Array(16) })
}

// Requests and tasks run on machines whose clocks differ.
const skewMsMax = 3_600_000

/**
 * Returns an id of a kind that is lower than all ids of that kind that were generated after another resource was created: the bound that
 * spares a statement the partitions of earlier months.
 */
export function firstIdSince(kind: IdKind, resourceId: string): string {
  const time = resourceId.slice(resourceId.indexOf('_') + 1).slice(0, 10)
  const msecs = [...time].reduce((sum, character) => sum * 32 + Math.max(base32.indexOf(character), 0), 0)
  return firstId(kind, new Date(Math.min(Math.max(msecs - skewMsMax, 0), 2 ** 48 - 1)))
}

// A request needs half a dozen ids, so random bytes are drawn in bulk and the text is built without intermediate strings.
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

const base32 = Buffer.from('0123456789abcdefghjkmnpqrstvwxyz')
const digits = Buffer.alloc(26)

function textOf(kind: IdKind, parts: { msecs: number; seq: number; random: Uint8Array }): string {
  // 26 characters hold 130 bits, two more than needed: the first character carries only 3.
  let length = 0
  let rest = 0
  let restLength = 2
  for (const byte of uuidv7(parts, uuid)) {
    rest = (rest << 8) | byte
    restLength += 8
    for (; restLength >= 5; restLength -= 5) digits[length++] = base32[(rest >> (restLength - 5)) & 31] ?? 0
    rest &= 31
  }
  return `${idPrefixes[kind]}_${digits.toString('latin1')}`
}

/**
 * The wire schema of an id of this kind. Only the prefix is part of the contract: a wrong prefix is a validation issue, and
 * an unknown id is "not found", whatever follows the prefix.
 */
export function Id(kind: IdKind, description?: string) {
  return Type.String({
    title: `${kind.charAt(0).toUpperCase()}${kind.slice(1)}Id`,
    pattern: `^${idPrefixes[kind]}_`,
    maxLength: idLengthMax,
    examples: [exampleId(kind)],
    ...(description === undefined ? {} : { description }),
  })
}

/** The wire schema of the id of an API key or of a user of the console. */
export function CallerId(description: string) {
  return Type.String({
    title: 'CallerId',
    pattern: `^(${idPrefixes.apiKey}|${idPrefixes.user})_`,
    maxLength: idLengthMax,
    examples: [exampleId('apiKey')],
    description,
  })
}

// Characters; ours have up to 30. A refusal echoes the id, so its length must be bounded.
const idLengthMax = 255

/** Whether a cell of a file can be an id of this kind. In a JSON body, `Id` checks the id and the parser rejects NUL. */
export function isIdOf(kind: IdKind, cell: string): boolean {
  return cell.startsWith(`${idPrefixes[kind]}_`) && cell.length <= idLengthMax && !cell.includes('\0')
}

const generatedForm = new RegExp(`^(${Object.values(idPrefixes).join('|')})_[${base32}]{26}$`)

/** Whether a value has the form of an id that we generate, and therefore cannot hold a name or an e-mail address. */
export function isGeneratedId(value: unknown): value is string {
  return typeof value === 'string' && value.length <= idLengthMax && generatedForm.test(value)
}

/** Returns the example id for the documentation. It is constant, so that generated files are reproducible. */
export function exampleId(kind: IdKind): string {
  return `${idPrefixes[kind]}_01kah4pzc5e4r8v2m6t0x9y3bd`
}

import { createHash, randomBytes } from 'node:crypto'

/** Every reference of a payment, as a pattern without anchors. */
export const referencePattern = 'MM[A-Z2-7]{14}'

const form = new RegExp(`^${referencePattern}$`)

/** Whether an end-to-end reference may be one of ours; every other is someone else's. */
export function isReference(text: string): boolean {
  return form.test(text)
}

/**
 * The references that a text may hold, written in any letter case and with any blanks and punctuation between their characters. At every
 * position, because the characters before a reference can look like the beginning of one.
 */
export function referencesIn(text: string): string[] {
  return formsIn(text, referencePattern)
}

/** The message ids of batches that a text may hold, written in any way. */
export function batchReferencesIn(text: string): string[] {
  return formsIn(text, batchPattern)
}

function formsIn(text: string, pattern: string): string[] {
  const plain = text.toUpperCase().replace(/[^A-Z0-9]/g, '')
  return [...new Set([...plain.matchAll(new RegExp(`(?=(${pattern}))`, 'g'))].map(([, found = '']) => found))]
}

/** Whether a text may be the message id of a batch of ours. */
export function isBatchReference(text: string): boolean {
  return batchForm.test(text)
}

const batchPattern = 'MMB[A-Z2-7]{14}'
const batchForm = new RegExp(`^${batchPattern}$`)

/** Generates the message id of a batch. */
export function newBatchReference(): string {
  return `MMB${randomBase32(14)}`
}

/**
 * The reference of the payment of a withdrawal: `MM` and 14 characters. It fits every scheme: ISO 20022 takes 35 characters, Bacs 18 of
 * upper case. It follows from the withdrawal, so that a database that was restored to before the payment gives it the same reference
 * again, and the bank's answers find it. 70 bits: a collision, which a constraint would refuse, takes more payments than there are.
 */
export function referenceOf({ partnerId, withdrawalId }: { partnerId: string; withdrawalId: string }): string {
  return `MM${inBase32(createHash('sha256').update(`payment ${partnerId} ${withdrawalId}`).digest(), 14)}`
}

/** Random characters of [A-Z2-7]. */
function randomBase32(length: number): string {
  return inBase32(randomBytes(length), length)
}

function inBase32(bytes: Uint8Array, length: number): string {
  // 256 is a multiple of 32, so every character is equally likely.
  return [...bytes.subarray(0, length)].map(byte => base32[byte % 32]).join('')
}

const base32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

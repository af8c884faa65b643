/** The schema format of human-readable text, checked by `hasVisible`. It is not published. */
export const visibleFormat = 'visible-text'

/**
 * Whether a text has a visible character: a letter, digit, punctuation mark or symbol. Whitespace, control characters,
 * combining marks on their own, and letters and symbols that render as nothing (Hangul fillers, an empty Braille cell) do
 * not count.
 */
export function hasVisible(text: string): boolean {
  return visible.test(text)
}

const visible = /[[\p{L}\p{N}\p{P}\p{S}]--[\p{Default_Ignorable_Code_Point}\u2800]]/v

/** `1 member`, `2 members`. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/** Ends a message with a full stop, so that another sentence can follow. */
export function asSentence(message: string): string {
  return /[.!?…]$/.test(message) ? message : `${message}.`
}

/** The name of a column or table in the database. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

export function ago(at: Date, now: Date): string {
  return `${duration(at, now)} ago`
}

/** The time between two instants, rounded: `90 s`, `3 h`. */
export function duration(from: Date, to: Date): string {
  const seconds = Math.max(0, Math.round((to.getTime() - from.getTime()) / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`
}

/**
 * The message of an error. Connecting to a name with several addresses (`localhost`) fails with an AggregateError
 * whose message is empty.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

/** A place in a request that its schema, or the database, would refuse or silently alter. */
export type Fault = { path: string; message: string }

/** How many faults to look for in one part of a request: a response lists the first hundred and says if there are more. */
export const faultsMax = 101

/** Says why PostgreSQL could not store the text unchanged. @returns undefined if it can */
export function textFault(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain NUL'
  if (!text.isWellFormed()) return 'must not contain a lone surrogate'
  return undefined
}

/**
 * Types a text from your database as an id of one kind: `id('mem', row.memberId)`. The types keep a member's id from being
 * passed as a withdrawal's.
 * @throws TypeError if the text has another prefix
 */
export function id<Prefix extends string>(prefix: Prefix, text: string): `${Prefix}_${string}` {
  if (!text.startsWith(`${prefix}_`)) throw new TypeError(`'${text}' is not an id that begins with ${prefix}_`)
  return text as `${Prefix}_${string}`
}

/** Name of the schema format of texts for people, which `hasVisible` checks. It is not published. */
export const visibleFormat = 'visible-text'

/**
 * Whether a text shows anything: a letter, digit, sign or symbol. Blanks, controls, marks without a letter below them, and the
 * letters and symbols that Unicode draws as nothing (Hangul fillers, an empty Braille cell) do not.
 */
export function hasVisible(text: string): boolean {
  return visible.test(text)
}

const visible = /[[\p{L}\p{N}\p{P}\p{S}]--[\p{Default_Ignorable_Code_Point}\u2800]]/v

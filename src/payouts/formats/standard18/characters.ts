/** Columns of a name or a reference. */
export const fieldCharsMax = 18

/**
 * Writes a name as Bacs can carry it: at most 18 characters of `A-Z0-9.&/-` and space. Accents are dropped and letters of
 * Latin alphabets are spelled out (ß is SS, Ø is O); apostrophes vanish (O’Brien is OBRIEN), and all other characters become a
 * space. Intents show the result before it is used: it is what the payee reads on a statement.
 * @returns 'PAYEE' if nothing can be written, since the field must not be blank
 */
export function toBacsName(name: string): string {
  const spelled = name
    .normalize('NFKD')
    .toUpperCase()
    .replace(/\p{M}|['’‘`´ʼ]/gu, '')
    .replace(/[^A-Z0-9.&/ -]/gu, character => spellings[character] ?? ' ')
  return spelled.replace(/ +/g, ' ').trim().slice(0, fieldCharsMax).trimEnd() || 'PAYEE'
}

/** Letters that do not decompose into a letter and an accent, in upper case. The upper case of ß is already SS. */
const spellings: Record<string, string> = {
  ...{ Æ: 'AE', Œ: 'OE', Ø: 'O', Ł: 'L', Đ: 'D', Ð: 'D', Þ: 'TH', Ħ: 'H', Ŧ: 'T', Ŋ: 'NG', Ə: 'E', ẞ: 'SS' },
  ...{ '+': '&', '–': '-', '—': '-', '‐': '-', '‑': '-', '\\': '/' },
}

/** Whether a text can stand unchanged in a field of Standard 18, and is not blank. */
export function isField(text: string): boolean {
  return text.length <= fieldCharsMax && /^[A-Z0-9.&/ -]*[A-Z0-9.&/-][A-Z0-9.&/ -]*$/.test(text)
}

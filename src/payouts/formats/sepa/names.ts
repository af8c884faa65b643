/** The length at which SEPA names are cut. ISO 20022 allows 140 characters, the EPC rulebooks 70. */
const nameCharsMax = 70

/** Stands for a name of which no letter or digit can be written: the EPC's placeholder for a missing value. */
const noName = 'NOTPROVIDED'

/**
 * Writes a name in the EPC character set: letters without accents, digits, and `/-?:().,'+` and space. Never empty, at most 70
 * characters. The table is in docs/reference/bank-files.md.
 */
export function epcName(name: string): string {
  const cut = epcText(name).slice(0, nameCharsMax).trimEnd()
  return /[A-Za-z0-9]/.test(cut) ? cut : noName
}

/** Writes a text in the EPC character set, with single spaces. A character without a counterpart becomes a full stop. */
export function epcText(text: string): string {
  const written = allAllowed.test(text)
    ? text
    : Array.from(withGreekPairs(text.normalize('NFKC')), transliterate).join('')
  return written.replace(/ +/g, ' ').trim()
}

/** Whether banks take a text as a reference: EPC characters, neither a slash at the start or end nor two in a row. */
export function isEpcReference(text: string): boolean {
  return /^[A-Za-z0-9/?:().,'+ -]{1,35}$/.test(text) && !/^\/|\/$|\/\/|^ | $/.test(text)
}

const isAllowed = /^[A-Za-z0-9/?:().,'+ -]$/
// Most names need no conversion.
const allAllowed = /^[A-Za-z0-9/?:().,'+ -]*$/

function transliterate(character: string): string {
  if (isAllowed.test(character)) return character
  const written = writtenAs.get(character)
  if (written !== undefined) return written
  if (/^\p{White_Space}$/u.test(character)) return ' '
  if (/^[\p{M}\p{Default_Ignorable_Code_Point}]$/u.test(character)) return ''
  const base = character.normalize('NFKD').replace(/\p{M}/gu, '')
  if (base !== character && base !== '') return Array.from(base, transliterate).join('')
  return '.'
}

/** Greek letters that are written differently beside another, as in passports (ELOT 743). */
function withGreekPairs(text: string): string {
  return greekPairs.reduce(
    (written, [pattern, latin]) =>
      written.replace(pattern, letters => (letters === letters.toLowerCase() ? latin : latin.toUpperCase())),
    text,
  )
}

const greekPairs: [RegExp, string][] = [
  [/(?<=[οό])[υύ]/giu, 'u'],
  [/(?<=[αεη])[υύ](?=[αάεέηήιίοόυύωώβγδζλμνρ])/giu, 'v'],
  [/(?<=[αεη])[υύ]/giu, 'f'],
  [/γ(?=[γξχ])/giu, 'n'],
  [/(?<!\p{L})μπ/giu, 'b'],
]

// Latin letters that have no decomposition.
const latin = 'ß ss,ẞ SS,æ ae,œ oe,ø o,đ d,ð d,þ th,ł l,ħ h,ı i,ŋ n,ŧ t,ĸ k,ə e,ƒ f,ɓ b,ɗ d,ƙ k'

// ELOT 743, as the EPC's table.
const greek = 'α a,β v,γ g,δ d,ε e,ζ z,η i,θ th,ι i,κ k,λ l,μ m,ν n,ξ x,ο o,π p,ρ r,σ s,ς s,τ t,υ y,φ f,χ ch,ψ ps,ω o'

// ICAO Doc 9303, part 3, "Transliteration of Cyrillic characters": as passports write a name, which banks compare it with. A name
// does not say its language, so letters that several languages have are written as in the main column, and those of one
// language as in that language. A soft sign is not written.
const cyrillic =
  'а a,б b,в v,г g,д d,е e,ё e,ж zh,з z,и i,й i,к k,л l,м m,н n,о o,п p,р r,с s,т t,у u,ф f,х kh,ц ts,ч ch,ш sh,щ shch,' +
  'ъ ie,ы y,ь ,э e,ю iu,я ia,є ie,і i,ї i,ґ g,ў u,ђ d,ѓ gj,ѕ dz,ј j,ќ kj,љ lj,њ nj,ћ c,џ dz,ѝ i,ѫ u,ѵ y'

// As the EPC's table (EPC217-08).
const signs =
  "& +,_ -,` ',´ ',‘ ',’ ',ʼ ',ʹ ',“ ',” ',„ ',« ',» ',\" ',; ,,[ (,] ),{ (,} ),\\ /,| /,~ -,‐ -,‑ -,‒ -,– -,— -,− -,¿ ?"

const writtenAs: ReadonlyMap<string, string> = new Map(
  `${latin},${greek},${cyrillic}`
    .split(',')
    .map(pair => pair.split(' ') as [string, string])
    .flatMap(([letter, written]): [string, string][] => [
      [letter.toUpperCase(), `${written.charAt(0).toUpperCase()}${written.slice(1)}`],
      [letter, written],
    ])
    .concat(signs.match(/\S \S/g)?.map(pair => [pair.charAt(0), pair.charAt(2)]) ?? []),
)

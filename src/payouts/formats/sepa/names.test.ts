import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyText } from '../../../../test/runner/any-text.ts'
import { epcName, epcText, isEpcReference } from './names.ts'

const epcCharacters = /^[A-Za-z0-9/?:().,'+ -]*$/

test.each([
  ['Zoë Müller', 'Zoe Muller'],
  ['Łukasz Żółć', 'Lukasz Zolc'],
  ['Ærø Straße ẞ Þór Đỗ', 'Aero Strasse SS Thor Do'],
  ['İpek Işık', 'Ipek Isik'],
  ['Παπαδόπουλος Ευγενία Ευθύμιος', 'Papadopoulos Evgenia Efthymios'],
  ['Μπάμπης Άγγελος ΟΥΡΑΝΟΣ', 'Bampis Angelos OURANOS'],
  ['Юлия Щербакова-Хрущёва', 'Iuliia Shcherbakova-Khrushcheva'],
  ['Володимир Гриценко-Цюп’яль', "Volodimir Gritsenko-Tsiup'ial"],
  ['Георги Щерев Йорданов', 'Georgi Shcherev Iordanov'],
  ['Ђорђе Ђоковић', 'Dorde Dokovic'],
  ['Ќирил Ѓорѓиев', 'Kjiril Gjorgjiev'],
  ['O’Neill & “Co” – x_y; [z]', "O'Neill + 'Co' - x-y, (z)"],
  ['ﬁn Ａｄａ', 'fin Ada'],
  ['Ada\u200b \u00a0\t Love\u00adlace ', 'Ada Lovelace'],
  ['Ada\u0000 😀 <b>', 'Ada. . .b.'],
])('%s is written as %s', (name, written) => {
  expect(epcName(name)).toBe(written)
})

test('a name without a writable character becomes a placeholder, never empty', () => {
  expect(['', '   ', '王伟', '😀', '\u0301', '-/-'].map(epcName)).toEqual(Array(6).fill('NOTPROVIDED'))
})

test('a name is cut to 70 characters after it has grown', () => {
  expect(epcName('ß'.repeat(40))).toBe('s'.repeat(70))
  expect(epcName(`${'a'.repeat(69)} b`)).toBe('a'.repeat(69))
})

test('any text becomes a name in EPC characters, and converting twice changes nothing', () => {
  fc.assert(
    fc.property(anyText({ maxLength: 100 }), text => {
      const name = epcName(text)
      expect(name).toMatch(epcCharacters)
      expect(name).not.toMatch(/^ | $| {2}/)
      expect(name.length).toBeGreaterThan(0)
      expect(name.length).toBeLessThanOrEqual(70)
      expect(epcName(name)).toBe(name)
    }),
    { numRuns: 200 },
  )
})

test('every Latin, Greek and Cyrillic letter of a SEPA country has a counterpart', () => {
  const letters = [
    'ÀÁÂÃÄÅĀĂĄÆÇĆĈĊČĎĐÈÉÊËĒĔĖĘĚĜĞĠĢĤĦÌÍÎÏĨĪĬĮĲĴĶĹĻĽŁÑŃŅŇŊÒÓÔÕÖØŌŎŐŒŔŖŘŚŜŞŠȘŢŤŦȚÙÚÛÜŨŪŬŮŰŲŴŶŸÝŹŻŽÞÐ',
    'ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΆΈΉΊΌΎΏΪΫ',
    'АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЮЯЁЫЭЄІЇҐЎЂЈЉЊЋЏЃЌЅЍЀ',
  ].join('')
  for (const letter of letters + letters.toLowerCase()) expect(epcText(letter), letter).toMatch(/^[A-Za-z]+$/)
  // Passports do not write it.
  expect(epcText('Ольга Ь')).toBe('Olga')
})

test('the documented tables are those of the program', () => {
  const page = readFileSync(new URL('../../../../docs/reference/bank-files.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| [A-Z][A-Za-z ]*`([^`]+)` \| `([^`]+)`/gm)].filter(
    ([, from]) => !/ /.test(from ?? ''),
  )
  expect(rows.length).toBe(4)
  for (const [, from = '', to = ''] of rows)
    expect(Array.from(from, letter => epcText(letter)).join(' '), from).toBe(to)
})

test.each([
  ['MMABCDEFGHIJKLMN', true],
  ["A/b-1?:().,'+ z", true],
  ['', false],
  ['a'.repeat(36), false],
  ['/a', false],
  ['a/', false],
  ['a//b', false],
  ['bat_1', false],
  [' a', false],
  ['ä', false],
])('%s as a reference: %s', (text, isTaken) => {
  expect(isEpcReference(text)).toBe(isTaken)
})

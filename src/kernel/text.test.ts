import { expect, test } from 'vitest'
import { hasVisible } from './text.ts'

test.each(['Sam', '李', 'é', 'e\u0301', '7', '-', '👩🏽', '\u200bSam', 'ᄀ', '🏴󠁧󠁢󠁳󠁣󠁴󠁿'])('%j is visible', text => {
  expect(hasVisible(text)).toBe(true)
})

test.each([
  ['nothing', ''],
  ['whitespace', ' \u00a0\u3000\u2003'],
  ['zero-width characters', '\u200b\u200c\u200d\u2060\ufeff'],
  ['direction marks', '\u200e\u200f\u202e\u2066\u2069'],
  ['a soft hyphen', '\u00ad'],
  ['combining marks on their own', '\u0301\u0308\u20dd'],
  ['variation selectors', '\ufe0f\u{e0100}'],
  ['tags', '\u{e0001}\u{e0041}'],
  ['an empty Braille cell', '\u2800'],
  ['Hangul fillers', '\u115f\u1160\u3164\uffa0'],
  ['the Mongolian vowel separator', '\u180e'],
  ['control characters', '\u0000\u001b\u0085'],
])('invisible: %s', (_, text) => {
  expect(hasVisible(text)).toBe(false)
})

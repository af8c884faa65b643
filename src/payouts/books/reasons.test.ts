import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { gravestOf, type NextStep, nextStepOf, reasonOf } from './reasons.ts'

const pageOf = (name: string) => readFileSync(new URL(`../../../docs/reference/${name}`, import.meta.url), 'utf8')

test.each<[NextStep, string[]]>([
  ['give_back_and_block_account', ['AC01', 'AC03', 'AC04', 'AC07', 'RC01', 'BE04', '0', '3', '5', 'B']],
  ['give_back_and_review', ['AC06', 'AG01', 'MD07', 'MS02', 'MS03', 'FOCR', '2', 'C']],
  ['give_back', ['cancelled', 'counterpartyBankUnavailable']],
  ['decide_once_funded', ['AM04', 'notEnoughBalance']],
  ['decide', ['AM05', 'DU01', 'DU02', 'DU03', 'DU04', 'DU05', 'DUPL', 'duplicateTransmissionDetected']],
])('%s follows from its codes', (next, codes) => {
  for (const code of codes) expect(reasonOf(code), code).toMatchObject({ next, isKnown: true })
})

test.each([null, '', 'ZZ99', 'ac01', 'toString', '__proto__'])('the unknown reason %s is reviewed', code => {
  expect(reasonOf(code)).toMatchObject({ next: 'give_back_and_review', isKnown: false })
})

test.each<[string[], string | null]>([
  [[], null],
  [['AC04'], 'AC04'],
  [['AC04', 'DU04'], 'DU04'],
  [['AM04', 'AC04', 'DUPL'], 'DUPL'],
  [['AC04', 'AM04'], 'AM04'],
  [['AC04', 'MD07'], 'MD07'],
  [['NARR', 'AC04'], 'AC04'],
  [['1301813', 'AC01'], 'AC01'],
  [['X1', 'NARR'], 'X1'],
])('of the codes %j, %s decides', (codes, gravest) => {
  expect(gravestOf(codes)).toBe(gravest)
})

test.each([
  'DUPLICATE FILE: message id already processed',
  'Doppeleinreichung',
  'Datei wurde bereits am 12.03. eingereicht',
  'PmtInfId schon verwendet',
  'Possible dup: fichier déjà reçu',
  'MsgId is not unique',
  'ALREADY_RECEIVED',
  'The file was previously submitted',
  'Duplikat',
  'see DU01',
  'Datei wurde bereits angenommen',
  'El fichero ya fue procesado',
  'Distinta già presentata',
  'Plik został już przetworzony',
  'Bestand is reeds verwerkt',
  'Resubmission of file not allowed',
  'Repeated message id',
  'MsgId exists: message exists',
])('the words %j are about a duplicate, whatever the code', reasonText => {
  for (const reasonCodes of [[], ['NARR'], ['AC04'], ['FF01']])
    expect(nextStepOf({ reasonCodes, reasonText })).toBe('decide')
  expect(nextStepOf({ reasonCodes: ['NARR', reasonText], reasonText: null })).toBe('decide')
})

test.each([
  'Kontonummer falsch',
  'Account already closed',
  'Konto ist bereits aufgelöst',
  'Rekening is reeds opgeheven',
  'Conto già estinto',
  'Empfänger unbekannt, nicht verarbeitet',
  'The control sum is wrong',
  'Sent after the cut-off',
])('the words %j are not about a duplicate', reasonText => {
  expect(nextStepOf({ reasonCodes: ['AC04'], reasonText })).toBe('give_back_and_block_account')
})

test('the documented codes are those of the program, with their meanings', () => {
  const page = pageOf('bank-files.md')
  const rows = [
    ...page.slice(page.indexOf('## Reason codes')).matchAll(/^\| `([A-Z]{2}[0-9]{2}|[A-Z]{4}|[0-9A-Z])` \| (.+) \|$/gm),
  ]
  expect(rows.length).toBeGreaterThan(40)
  for (const [, code = '', meaning] of rows) expect(reasonOf(code), code).toMatchObject({ meaning, isKnown: true })
})

test('the documented reasons of Adyen are those of the program, with their meanings', () => {
  const page = pageOf('adyen.md')
  const reasons = page.slice(page.indexOf('## Reasons'))
  const rows = [
    ...reasons.matchAll(/^\| `([A-Za-z]+)` \| (.+) \|$/gm),
    ...reasons.matchAll(/`([A-Za-z]+)`: ([A-Z][a-z ]+[a-z])/g),
  ]
  expect(rows.length).toBeGreaterThan(25)
  for (const [, code = '', meaning] of rows)
    expect(reasonOf(code), code).toMatchObject({ meaning: expect.stringContaining(meaning ?? ''), isKnown: true })
})

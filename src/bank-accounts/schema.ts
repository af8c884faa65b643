import { type Static, Type } from 'typebox'
import { namedObject } from '../kernel/schemas.ts'
import { visibleFormat } from '../kernel/text.ts'

/** Single-line text: letters of any language, no line breaks or control characters, not only whitespace. */
export const oneLine = '^(?=.*\\S)[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*$'

const AccountHolder = Type.String({
  title: 'AccountHolder',
  minLength: 1,
  maxLength: 140,
  pattern: oneLine,
  format: visibleFormat,
  description: 'Name of the account holder, 1 to 140 characters.',
  examples: ['Sam Okafor'],
})

export const BankAccountUK = namedObject('BankAccountUK', {
  accountHolder: AccountHolder,
  sortCode: Type.String({
    pattern: '^[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{2}$',
    description: 'Six digits. Hyphens and spaces between the pairs are removed.',
    examples: ['089999'],
  }),
  accountNumber: Type.String({
    pattern: '^[0-9]{6,8}$',
    description: 'Eight digits. Six or seven digits are padded with leading zeros.',
    examples: ['66374958'],
  }),
})

export const BankAccountEU = namedObject('BankAccountEU', {
  accountHolder: AccountHolder,
  iban: Type.String({
    pattern: '^[A-Za-z]{2}[0-9]{2}([ ]?[A-Za-z0-9]){11,30}$',
    description: 'IBAN, stored in upper case without spaces.',
    examples: ['DE89370400440532013000'],
  }),
})

export const AccountDetails = Type.Union([BankAccountUK, BankAccountEU], { title: 'BankAccount' })
export type AccountDetails = Static<typeof AccountDetails>

import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { hasVisible, visibleFormat } from '../kernel/text.ts'
import { check, isSame, lastFour, normalised } from './rules.ts'
import { AccountDetails } from './schema.ts'

const holder = { accountHolder: 'Sam Okafor' }
const uk = (sortCode: string, accountNumber: string) => ({ ...holder, sortCode, accountNumber })
const eu = (iban: string) => ({ ...holder, iban })

// Source: Vocalink, "Validating account numbers", chapter 3: its test cases, in the same order.
const published: [title: string, sortCode: string, accountNumber: string, passes: boolean][] = [
  ['Pass modulus 10 check', '089999', '66374958', true],
  ['Pass modulus 11 check', '107999', '88837491', true],
  ['Pass modulus 11 and double alternate checks', '202959', '63748472', true],
  ['Exception 10 & 11 where first check passes and second check fails', '871427', '46238510', true],
  ['Exception 10 & 11 where first check fails and second check passes', '872427', '46238510', true],
  ['Exception 10 where ab = 09 and g = 9', '871427', '09123496', true],
  ['Exception 10 where ab = 99 and g = 9', '871427', '99123496', true],
  ['Exception 3 at the start of a range, where c = 6 and the second check is ignored', '820000', '73688637', true],
  ['Exception 3 at the end of a range, where c = 9 and the second check is ignored', '827999', '73988638', true],
  ['Exception 3 where c is neither 6 nor 9 and both checks pass', '827101', '28748352', true],
  ['Exception 4 where the remainder is equal to the check digits', '134020', '63849203', true],
  ['Exception 1 where 27 ensures that the check passes', '118765', '64371389', true],
  ['Exception 6 where the account fails but is a foreign currency account', '200915', '41011166', true],
  ['Exception 5 where the check passes', '938611', '07806039', true],
  ['Exception 5 where the check passes with substitution', '938600', '42368003', true],
  ['Exception 5 where both checks give a remainder of 0 and pass', '938063', '55065200', true],
  ['Exception 7 where passes but would fail the standard check', '772798', '99345694', true],
  ['Exception 8 where the check passes', '086090', '06774744', true],
  ['Exception 2 & 9 where the first check passes', '309070', '02355688', true],
  ['Exception 2 & 9 where the first fails and the second passes with substitution', '309070', '12345668', true],
  ['Exception 2 & 9 where a is not 0 and g is not 9 and passes', '309070', '12345677', true],
  ['Exception 2 & 9 where a is not 0 and g is 9 and passes', '309070', '99345694', true],
  ['Exception 5 where the first check digit is correct and the second incorrect', '938063', '15764273', false],
  ['Exception 5 where the first check digit is incorrect and the second correct', '938063', '15764264', false],
  ['Exception 5 where the first check digit is incorrect with a remainder of 1', '938063', '15763217', false],
  ['Exception 1 where it fails the double alternate check', '118765', '64371388', false],
  ['Pass modulus 11 check and fail double alternate check', '203099', '66831036', false],
  ['Fail modulus 11 check and pass double alternate check', '203099', '58716970', false],
  ['Fail modulus 10 check', '089999', '66374959', false],
  ['Fail modulus 11 check', '107999', '88837493', false],
  ['Exception 12/13 where it passes modulus 11 (and would fail modulus 10)', '074456', '12345112', true],
  ['Exception 12/13 where it passes modulus 11 (and would pass modulus 10)', '070116', '34012583', true],
  ['Exception 12/13 where it fails modulus 11 but passes modulus 10', '074456', '11104102', true],
  ['Exception 14 where the first check fails and the second passes', '180002', '00000190', true],
]

describe('a UK account is checked by the published specification', () => {
  test.each(published)('%s: %s %s', (_title, sortCode, accountNumber, passes) => {
    expect(check(uk(sortCode, accountNumber)) !== 'invalid').toBe(passes)
  })

  test('without an exception, both of two checks have to pass', () => {
    expect(check(uk('040010', '12345900'))).toBe('valid')
    // The modulus 11 check alone, then the double alternate check alone.
    expect(check(uk('040010', '12345609'))).toBe('invalid')
    expect(check(uk('040010', '12345603'))).toBe('invalid')
  })

  test('exception 14 checks a second time only if the last digit is 0, 1 or 9', () => {
    expect(check(uk('180002', '00000190'))).toBe('valid')
    expect(check(uk('180002', '00000192'))).toBe('invalid')
  })

  test('a check has no effect on later checks', () => {
    const accounts = Array.from({ length: 500 }, (_, n) => uk('772798', String(n * 199_999).padStart(8, '0')))
    const before = accounts.map(check)
    // Exception 7 with g = 9 ignores some weights.
    check(uk('772798', '99345694'))
    expect(accounts.map(check)).toEqual(before)
  })

  test('no bank has a sort code of zeros', () => {
    expect(check(uk('000000', '12345678'))).toBe('invalid')
  })

  test('an account for which the specification has no check is unknown', () => {
    expect(check(uk('000001', '12345678'))).toBe('unknown')
    expect(check(uk('200915', '41011166'))).toBe('unknown')
  })
})

// Source: SWIFT IBAN registry, the example of each country.
const realIbans = [
  'GB29NWBK60161331926819',
  'DE89370400440532013000',
  'FR1420041010050500013M02606',
  'NO9386011117947',
  'MT84MALT011000012345MTLCAST001S',
  'NL91ABNA0417164300',
  'ES9121000418450200051332',
  'IE29AIBK93115212345678',
]

describe('an IBAN', () => {
  test.each(realIbans)('%s is valid', iban => {
    expect(check(eu(iban))).toBe('valid')
  })

  test.each([
    ['a mistyped digit', 'DE89370400440532013001'],
    ['two digits swapped', 'DE89370400440532010300'],
    ['one digit too few', 'DE8937040044053201300'],
    ['one digit too many', 'DE893704004405320130000'],
    ['a letter where the country has digits', 'DE8937040044053201300A'],
    ['a country that has no IBAN', 'US89370400440532013000'],
    ['check digits 00', 'DE00370400440532013000'],
  ])('with %s is invalid', (_fault, iban) => {
    expect(check(eu(iban))).toBe('invalid')
  })
})

describe('normalising an account', () => {
  test('removes hyphens and spaces from the sort code, and keeps leading zeros', () => {
    expect(normalised(uk('08-99-99', '66374958'))).toEqual(uk('089999', '66374958'))
    expect(normalised(uk('08 99 99', '66374958'))).toEqual(uk('089999', '66374958'))
  })

  test('pads account numbers of six and seven digits', () => {
    expect(normalised(uk('089999', '123456'))).toEqual(uk('089999', '00123456'))
    expect(normalised(uk('089999', '1234567'))).toEqual(uk('089999', '01234567'))
  })

  test('upper-cases an IBAN and removes its spaces', () => {
    expect(normalised(eu('de89 3704 0044 0532 0130 00'))).toEqual(eu('DE89370400440532013000'))
  })
})

test('accounts with different holders, numbers or kinds are different', () => {
  const account = uk('089999', '66374958')
  expect(isSame(account, { ...account })).toBe(true)
  expect(isSame(account, { ...account, accountHolder: 'Mia Schulz' })).toBe(false)
  expect(isSame(account, uk('089999', '66374959'))).toBe(false)
  expect(isSame(account, eu('DE89370400440532013000'))).toBe(false)
  expect(isSame(eu('DE89370400440532013000'), account)).toBe(false)
})

test('the last four characters come from the account number or the IBAN', () => {
  expect(lastFour(uk('089999', '66374958'))).toBe('4958')
  expect(lastFour(eu('DE89370400440532013000'))).toBe('3000')
})

describe('the wire shape', () => {
  const isAccepted = new Ajv({ strict: false, formats: { [visibleFormat]: hasVisible } }).compile(AccountDetails)

  test.each([
    ['hyphens in the sort code', uk('08-99-99', '66374958')],
    ['a short account number', uk('089999', '123456')],
    ['an IBAN in groups of four', eu('DE89 3704 0044 0532 0130 00')],
    ['a holder in another script', { ...eu('DE89370400440532013000'), accountHolder: '小林 花子' }],
  ])('allows %s', (_what, account) => {
    expect(isAccepted(account)).toBe(true)
  })

  test.each([
    ['five digits in the sort code', uk('08999', '66374958')],
    ['nine digits in the account number', uk('089999', '663749581')],
    ['five digits in the account number', uk('089999', '12345')],
    ['letters in the account number', uk('089999', '6637495A')],
    ['digits of another script', uk('089999', '٦٦٣٧٤٩٥٨')],
    ['numbers instead of text', { ...holder, sortCode: 89999, accountNumber: 66374958 }],
    ['an IBAN that is too short for any country', eu('DE893704004405')],
    ['an IBAN that is too long for any country', eu(`DE89${'1'.repeat(31)}`)],
    ['an IBAN without check digits', eu('DEXX370400440532013000')],
    ['punctuation in an IBAN', eu('DE89-3704-0044-0532-0130-00')],
    ['both kinds at once', { ...uk('089999', '66374958'), iban: 'DE89370400440532013000' }],
    ['an incomplete UK account', { ...holder, sortCode: '089999' }],
    ['a blank holder', { ...eu('DE89370400440532013000'), accountHolder: '   ' }],
    ['a line break in the holder', { ...eu('DE89370400440532013000'), accountHolder: 'Sam\nOkafor' }],
    ['a holder of 141 characters', { ...eu('DE89370400440532013000'), accountHolder: 'x'.repeat(141) }],
    ['an unknown field', { ...eu('DE89370400440532013000'), bic: 'COBADEFF' }],
  ])('refuses %s', (_what, account) => {
    expect(isAccepted(account)).toBe(false)
  })
})
